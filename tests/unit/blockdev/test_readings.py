"""Number of commands sent to a drive between the steps of a test."""

from __future__ import annotations

import pytest

from tests.support.block_machine import Machine
from tests.support.nvme_drives import alone, replay
from writecliff.engines.blockdev.protection import Claim, inspect
from writecliff.engines.fio import targets
from writecliff.engines.fio.targets import DeviceTarget


@pytest.fixture
def target(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> DeviceTarget:
    alone(machine)
    replay(machine, "2.16", "QPLAIN01")
    inspected = inspect(machine.dev / "nvme0n1", machine.system)
    target = DeviceTarget(inspected, Claim(-1, inspected), machine.system)
    target.reading()
    return target


def test_a_drive_that_was_read_after_a_step_is_not_asked_before_the_next(
    machine: Machine, target: DeviceTarget
) -> None:
    after = target.reading()
    machine.calls.clear()
    (machine.proc / "stat").write_text("cpu 1 2 3 4 5 6 7 8\n")
    before = target.reading_before()
    assert machine.calls == []
    assert before.vitals == after.vitals
    assert (after.machine.cpu, before.machine.cpu and before.machine.cpu.busy) == (None, 19)
    # The last reading belongs to another step, because a load has run since.
    target.reading_before()
    assert machine.calls


def test_it_is_asked_again_after_a_while_under_load_and_after_a_command(
    machine: Machine, target: DeviceTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asks() -> bool:
        machine.calls.clear()
        target.reading_before()
        return bool(machine.calls)

    target.reading()
    assert not asks()
    target.reading(loaded=True)
    assert asks()
    target.reading()
    target.set_write_cache(False)
    assert asks()
    target.reading()
    now = targets.time.monotonic()
    monkeypatch.setattr(targets.time, "monotonic", lambda: now + 60)
    assert asks()
