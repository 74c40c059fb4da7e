"""Volatile write cache of NVMe drives, from the output of two nvme-cli versions."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.block_machine import Machine
from tests.support.nvme_drives import VERSIONS, alone, answer_controller, replay, shared
from writecliff.engines.blockdev.cache import set_write_cache
from writecliff.engines.blockdev.tools import ToolResult

NODE = "/dev/nvme0n1"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_controller_is_asked(machine: Machine, version: str) -> None:
    disk = alone(machine)
    replay(machine, version, "QPLAIN01")
    report = set_write_cache(machine.system, disk, NODE, False)
    assert (report.enabled, report.note) == (False, "")
    assert {call[2] for call in machine.calls} == {str(machine.dev / "nvme0")}


@pytest.mark.parametrize("version", VERSIONS)
def test_both_states_as_printed(machine: Machine, version: str) -> None:
    disk = alone(machine)
    replay(machine, version, "QPLAIN01")
    feature = f"nvme get-feature {machine.dev}/nvme0 --feature-id=0x06"
    machine.answers[tuple(feature.split())] = machine.run(["cache", "on:", *feature.split()])
    cache_report = set_write_cache(machine.system, disk, NODE, False)
    assert cache_report.enabled is True and cache_report.note.startswith(
        "the drive kept its setting"
    )
    assert set_write_cache(machine.system, disk, NODE, True).enabled is True


@pytest.mark.parametrize("version", VERSIONS)
def test_what_the_namespace_answers(machine: Machine, version: str) -> None:
    """Check that the controller is queried: the namespace's node rejects the command."""
    replay(machine, version, "QPLAIN01")
    words = f"nvme set-feature {machine.dev}/nvme0n1 --feature-id=0x06 --value=0".split()
    answer = machine.run(words)
    assert not answer.ok and "Feature Not Namespace Specific" in answer.message


def test_a_drive_without_a_volatile_cache_is_not_switched(machine: Machine) -> None:
    disk = alone(machine)
    answer_controller(machine, vwc=0b110)
    report = set_write_cache(machine.system, disk, NODE, False)
    assert report.enabled is False
    assert "no volatile write cache" in report.note
    assert [call[1] for call in machine.calls] == ["id-ctrl"]


def test_a_refusal_is_named(machine: Machine) -> None:
    disk = alone(machine)
    answer_controller(machine)
    machine.answer("nvme get-feature", "get-feature:0x06 (...), Current value:0x00000001\n")
    machine.answer("nvme set-feature", returncode=1, stderr="NVMe status: Feature Not Changeable")
    report = set_write_cache(machine.system, disk, NODE, False)
    assert report.enabled is True and "Feature Not Changeable" in report.note
    machine.answers.clear()
    unknown = set_write_cache(machine.system, disk, NODE, True)
    assert unknown.enabled is None and "not installed" in unknown.note


def test_of_several_controllers_one_that_lives_is_asked(machine: Machine) -> None:
    disk = shared(machine)
    dead = machine.sys / "devices/pci0000:00/0000:00:00.0/nvme/nvme3"
    machine.write(dead, {"state": "connecting"})
    asked: list[str] = []

    def run(argv: Sequence[str], *, timeout_s: float = 30.0) -> ToolResult:
        asked.append(argv[2])
        return ToolResult(1, "", "no")

    object.__setattr__(machine.system, "run", run)
    set_write_cache(machine.system, disk, NODE, False)
    assert set(asked) == {str(machine.dev / "nvme4")}
