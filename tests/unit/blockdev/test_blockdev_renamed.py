"""Drives that have another name after a restart, on a simulated machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.block_machine import MIB, Machine
from writecliff.engines.base import DeviceIdentity
from writecliff.engines.target import node_now


@pytest.fixture
def before(machine: Machine) -> DeviceIdentity:
    """Return the identity of S2 when it was the first drive; S1 now has its old name."""
    machine.disk("nvme0n1", (259, 0), serial="S1")
    machine.disk("nvme1n1", (259, 1), serial="S2")
    machine.disk("nvme1n2", (259, 2), serial="S2")
    for name, number in (("nvme0n1", "1"), ("nvme1n1", "1"), ("nvme1n2", "2")):
        machine.attributes(name, nsid=number)
    return DeviceIdentity(
        target=str(machine.dev / "nvme0n1"),
        model="Drive",
        serial="S2",
        capacity_bytes=MIB,
        sector_bytes=512,
        simulated=False,
        backing="namespace 1",
    )


def test_the_drive_is_known_by_its_serial_number_and_namespace(
    machine: Machine, before: DeviceIdentity
) -> None:
    assert node_now(before, machine.system) == str(machine.dev / "nvme1n1")
    second = replace(before, backing="namespace 2")
    assert node_now(second, machine.system) == str(machine.dev / "nvme1n2")


def test_what_is_not_found_for_certain_keeps_its_name(
    machine: Machine, before: DeviceIdentity
) -> None:
    for other in (
        replace(before, serial="S1"),  # The old drive is still present.
        replace(before, serial="S3"),
        replace(before, serial=None),
        replace(before, capacity_bytes=2 * MIB),
        replace(before, backing="namespace 3"),
        # The partition is as large as its disk.
        replace(before, target=str(machine.dev / "nvme0n1p1")),
        # The link follows the drive automatically.
        replace(before, target=str(machine.dev / "disk/by-id/S2")),
    ):
        assert node_now(other, machine.system) == other.target


def test_two_paths_to_a_drive_are_no_answer(machine: Machine, before: DeviceIdentity) -> None:
    for number, name in enumerate(("sda", "sdb")):
        machine.disk(name, (8, number), serial="S4")
    twice = replace(before, target=str(machine.dev / "sdc"), serial="S4", backing=None)
    assert node_now(twice, machine.system) == twice.target
