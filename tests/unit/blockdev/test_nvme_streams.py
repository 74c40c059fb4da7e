"""Streams directive of a real drive, in the type that a simulated drive also uses.

The responses follow Base Specification 2.1, 8.1.8.3.1, because no emulator supports the directive.
"""

from __future__ import annotations

import pytest

from tests.support.block_machine import Machine
from tests.support.nvme_drives import NODE, alone, answer_controller, page
from writecliff.cli.cmd_run import data_placement_lines
from writecliff.engines.blockdev.nvme import streams
from writecliff.engines.blockdev.nvme.drive import NvmeDrive
from writecliff.engines.blockdev.topology import BlockDevice
from writecliff.engines.blockdev.vitals import read_vitals

PARAMETERS, STATUS = "--cdw10=7 --cdw11=0x101", "--cdw10=0x3ff --cdw11=0x102"


@pytest.fixture
def disk(machine: Machine) -> BlockDevice:
    return alone(machine)


def answer(machine: Machine, *open_streams: int, nsa: int = 0) -> None:
    """Return sixteen streams, of which `nsa` belong to the namespace."""
    receive = f"nvme admin-passthru {machine.dev}/nvme0 --opcode=0x1a --namespace-id=1"
    sizes = {0: (2, 16), 2: (2, 16 - nsa), 16: (4, 32), 20: (2, 64), 22: (2, nsa)}
    machine.answer(f"{receive} {PARAMETERS}", data=page(32, sizes))
    names = {2 + 2 * at: (2, number) for at, number in enumerate(open_streams)}
    machine.answer(f"{receive} {STATUS}", data=page(4096, {0: (2, len(open_streams)), **names}))


def test_the_open_streams_are_those_that_the_drive_names(
    machine: Machine, disk: BlockDevice
) -> None:
    answer_controller(machine, oacs=0b100010)
    answer(machine)
    before = read_vitals(machine.system, disk, NODE).data_placement
    answer(machine, 7, 2)
    after = read_vitals(machine.system, disk, NODE).data_placement
    assert before is not None and after is not None
    assert (before.open_streams, after.open_streams, after.limit) == ((), (2, 7), 16)
    shown = after.mapping(before)
    assert (shown["interface"], shown["open_streams"]) == ("nvme-streams", [2, 7])
    unknown = ("streams_opened", "overflow_writes", "hbmw_bytes", "mbmw_bytes", "dlwa")
    assert {shown[name] for name in unknown} == {None}
    assert "handles" not in shown
    assert data_placement_lines(after.mapping(before)) == [
        "streams open: 2, 7 (of 16 beside the default one)"
    ]


def test_a_namespace_has_the_streams_that_it_allocated(machine: Machine, disk: BlockDevice) -> None:
    answer_controller(machine, oacs=0b100010)
    answer(machine, 1, nsa=4)
    status = streams.read_status(NvmeDrive(machine.system, disk))
    assert status is not None and status.limit == 4


def test_a_drive_with_the_directive_off_has_no_status(machine: Machine, disk: BlockDevice) -> None:
    answer_controller(machine, oacs=0b100010)
    assert streams.read_status(NvmeDrive(machine.system, disk)) is None


def test_a_drive_without_directives_is_not_asked(machine: Machine, disk: BlockDevice) -> None:
    answer_controller(machine)
    answer(machine, 1)
    assert streams.read_status(NvmeDrive(machine.system, disk)) is None
    assert not [call for call in machine.calls if "--opcode=0x1a" in call]
