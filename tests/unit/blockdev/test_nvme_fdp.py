"""Flexible data placement of a real drive, in the types that a simulated drive also uses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.block_machine import Machine
from tests.support.nvme_drives import NODE, VERSIONS, WRITTEN, alone, controller_page, page, replay
from writecliff.cli.cmd_run import data_placement_lines
from writecliff.engines.blockdev.nvme import fdp
from writecliff.engines.blockdev.nvme.drive import NvmeDrive
from writecliff.engines.blockdev.protection import Claim, inspect
from writecliff.engines.blockdev.vitals import read_vitals
from writecliff.engines.counters import Counters
from writecliff.engines.data_placement_status import DataPlacementStatus, FdpStatistics
from writecliff.engines.fio.measured import counted_since
from writecliff.engines.fio.targets import DeviceTarget

BLOCKS = 8 << 20 >> 9  # Number of 512-byte blocks in a reclaim unit.


@pytest.mark.parametrize("version", VERSIONS)
def test_the_status_of_a_drive(machine: Machine, version: str) -> None:
    disk = alone(machine)
    replay(machine, version, "QFDP0001")
    before = fdp.read_status(NvmeDrive(machine.system, disk))
    replay(machine, version, "QFDP0001", WRITTEN)
    after = read_vitals(machine.system, disk, NODE).data_placement
    assert before is not None and after is not None
    assert (after.interface, after.enabled, after.limit) == ("nvme-fdp", True, 8)
    assert [handle_row.placement_id for handle_row in after.handles] == list(range(8))
    assert [handle_row.available_blocks for handle_row in after.handles[1:]] == [BLOCKS] * 7
    assert before.handles[0].available_blocks != after.handles[0].available_blocks
    grown = after.statistics.since(before.statistics)
    assert (grown.hbmw, round(grown.dlwa or 0, 3)) == (
        20 << 20,
        1.05 if version == "2.3" else 1.075,
    )
    shown = after.mapping(before)
    assert shown["hbmw_bytes"] == 20 << 20 and shown["streams_opened"] is None
    assert shown["events"] == {} and shown["abandoned_bytes"] is None
    lines = data_placement_lines(after.mapping(before))
    assert lines[0].startswith("FDP: HBMW 21 MB") or lines[0].startswith("FDP: HBMW 20.97 MB")


def test_available_writes_are_in_blocks_of_512_bytes(machine: Machine) -> None:
    disk = alone(machine)
    replay(machine, "2.16", "QFDP0001")
    drive = NvmeDrive(machine.system, disk)
    assert fdp.placement_handles(drive, 4096)[1].available_blocks == 8 * BLOCKS


def event(
    at: int, code: int, flags: int, more: dict[int, tuple[int, int]]
) -> dict[int, tuple[int, int]]:
    fields = {0: (1, code), 1: (1, flags), 2: (2, 5), 4: (6, 1234), 12: (4, 1), 34: (1, 3)}
    return {64 + 64 * at + start: field for start, field in (fields | more).items()}


def test_events_are_those_of_the_log(machine: Machine) -> None:
    disk = alone(machine)
    replay(machine, "2.16", "QFDP0001")
    log = f"nvme get-log {machine.dev}/nvme0 --log-id=0x23 --log-len=4096 --lsi=1"
    first = event(0, 0x03, 0b011, {})
    moved = event(1, 0x80, 0b100, {16: (1, 0), 18: (2, 700)})
    unknown = event(2, 0x70, 0, {})
    machine.answer(f"{log} --lsp=1 --raw-binary", data=page(4096, {0: (4, 1), **first}))
    machine.answer(f"{log} --raw-binary", data=page(4096, {0: (4, 0)}))
    drive = NvmeDrive(machine.system, disk)
    before = fdp.read_status(drive)
    both = {0: (4, 3), **first, **moved, **unknown}
    machine.answer(f"{log} --lsp=1 --raw-binary", data=page(4096, both))
    after = fdp.read_status(drive)
    assert before is not None and after is not None
    assert [logged_event.kind for logged_event in after.log] == [
        "invalid placement identifier", "media reallocated", "event 70h",
    ]  # fmt: skip
    invalid, moved_event, _ = after.log
    assert (invalid.placement_id, invalid.namespace, invalid.handle) == (5, 1, None)
    assert (moved_event.placement_id, moved_event.handle, moved_event.blocks_moved) == (
        None,
        3,
        700,
    )
    assert invalid.time_ns == 1_234_000_000
    assert after.events_since(before) == {"media reallocated": 1, "event 70h": 1}
    assert any(
        "media reallocated 1" in line for line in data_placement_lines(after.mapping(before))
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_all_events_are_enabled_behind_all_handles(machine: Machine, version: str) -> None:
    disk = alone(machine)
    replay(machine, version, "QFDP0001")
    answer = machine.run(
        f"nvme fdp set-events {machine.dev}/nvme0n1 --placement-handle=1 --enable"
        " --event-types=0,1,2,3,128,129".split()
    )
    assert answer.ok  # The answer was recorded from the tool.
    machine.answer("nvme fdp set-events")
    machine.calls.clear()
    assert fdp.enable_events(NvmeDrive(machine.system, disk)) == ""
    calls = [call[4:] for call in machine.calls if "set-events" in call]
    assert len(calls) == 8 and calls[7][0] == "--placement-handle=7"


def test_events_that_a_drive_does_not_know_are_named(machine: Machine) -> None:
    disk = alone(machine)
    replay(machine, "2.16", "QFDP0001")
    for index in range(8):
        words = f"nvme fdp set-events {machine.dev}/nvme0n1 --placement-handle={index} --enable"
        for codes, code in (("0", 0), ("1", 1), ("2", 0), ("3", 0), ("128", 0), ("129", 0)):
            machine.answer(f"{words} --event-types={codes}", returncode=code)
        machine.answer(f"{words} --event-types=0,1,2,3,128,129", returncode=1)
        machine.answer(f"{words} --event-types=0,2,3,128,129")
    note = fdp.enable_events(NvmeDrive(machine.system, disk))
    assert note == (
        "the drive does not log FDP events of these types: reclaim unit time limit exceeded"
    )


def test_a_drive_without_fdp_is_left_alone(machine: Machine) -> None:
    disk = alone(machine)
    machine.answer("nvme id-ctrl", data=controller_page())
    assert fdp.enable_events(NvmeDrive(machine.system, disk)) == ""
    assert fdp.read_status(NvmeDrive(machine.system, disk)) is None
    assert {call[1] for call in machine.calls} == {"id-ctrl"}


def test_media_writes_that_stand_still_are_unknown() -> None:
    before = Counters(host_write_bytes=10, nand_write_bytes=10**9)
    after = Counters(host_write_bytes=10**8, nand_write_bytes=10**9)
    assert counted_since(before, after).nand_write_bytes is None
    assert counted_since(before, after).write_amplification_since(before) is None
    moved = Counters(host_write_bytes=10**8, nand_write_bytes=2 * 10**9)
    assert counted_since(before, moved) == moved
    read_only = Counters(**{**after, "host_write_bytes": 10})
    assert counted_since(before, read_only).nand_write_bytes == 10**9


def test_a_simulated_drive_still_counts_its_events() -> None:
    placement_status = DataPlacementStatus(
        "nvme-fdp",
        True,
        (),
        8,
        1,
        0,
        0,
        0,
        {},
        FdpStatistics(0, 0, 0),
        (),
        {"media reallocated": 3},
    )
    more = replace(placement_status, events={"media reallocated": 5}, streams_opened=4)
    assert more.events_since(placement_status) == {"media reallocated": 2}
    assert more.mapping(placement_status)["streams_opened"] == 3


def test_events_are_enabled_for_runs_that_write_once(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that opening the drive, as in a dry run, changes no setting."""
    alone(machine)
    replay(machine, "2.16", "QFDP0001")
    machine.answer("nvme fdp set-events")
    inspected = inspect(machine.dev / "nvme0n1", machine.system)

    def calls(claim: Claim | None) -> int:
        machine.calls.clear()
        target = DeviceTarget(inspected, claim, machine.system)
        assert not [call for call in machine.calls if "set-events" in call]
        target.reading()
        target.reading()
        return len([call for call in machine.calls if "set-events" in call])

    assert (calls(None), calls(Claim(-1, inspected))) == (0, 8)
