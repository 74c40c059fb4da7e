"""Steering of writes to placement handles, and the reason given if it is impossible."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.block_machine import Machine
from tests.support.nvme_drives import answer_controller, page, replay
from writecliff.engines.blockdev.scsi_commands import ScsiAnswer
from writecliff.engines.blockdev.topology import BlockDevice, device_at
from writecliff.engines.fio.capability import DataPlacement, Fio
from writecliff.engines.fio.targets import find_data_placement

OLD = Fio("/usr/bin/fio", (3, 33), "fio-3.33", "io_uring")
NEW = Fio("/usr/bin/fio", (3, 38), "fio-3.38", "io_uring")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.disk("nvme0n1", (259, 0))
    (made.dev / "ng0n1").touch()
    replay(made, "2.16", "QFDP0001")
    return made


def disk(machine: Machine, name: str = "nvme0n1") -> BlockDevice:
    return device_at(machine.system, machine.dev / name)


def test_found(machine: Machine) -> None:
    method = find_data_placement(machine.system, NEW, disk(machine))
    assert method == DataPlacement("fdp", str(machine.dev / "ng0n1"), 8)


def test_the_streams_directive_where_it_is_enabled(machine: Machine) -> None:
    answer_controller(machine, oacs=1 << 5)
    answers = f"nvme admin-passthru {machine.dev}/nvme0 --opcode=0x1a --namespace-id=1"
    machine.answers = {w: a for w, a in machine.answers.items() if "--raw-binary" not in w}
    machine.answer(f"{answers} --cdw10=0x3ff", data=page(4096, {0: (1, 0b01)}))
    none = find_data_placement(machine.system, NEW, disk(machine))
    assert none == "the drive has neither flexible data placement nor streams"
    machine.answer(f"{answers} --cdw10=0x3ff", data=page(4096, {0: (1, 0b11)}))
    off = find_data_placement(machine.system, NEW, disk(machine))
    assert off == "the Streams directive is not enabled on this namespace"
    parameters = page(32, {0: (2, 16), 2: (2, 12), 16: (4, 32), 20: (2, 512)})
    machine.answer(f"{answers} --cdw10=7 --cdw11=0x101", data=parameters)
    method = find_data_placement(machine.system, NEW, disk(machine))
    assert method == DataPlacement("streams", str(machine.dev / "ng0n1"), 13)


def test_hints_where_the_kernel_has_write_streams(machine: Machine) -> None:
    machine.disk("sdb", (8, 16))
    machine.attributes("sdb", queue__max_write_streams="8")
    for fio in (OLD, NEW):  # writecliff sets the hints itself.
        method = find_data_placement(machine.system, fio, disk(machine, "sdb"))
        assert method == DataPlacement("hint", "", 5, hints=(0, 2, 3, 4, 5))


def permanent_streams(machine: Machine, count: int, *, reduced_control: bool = True) -> None:
    """Simulate scsi_debug of Linux 6.12, with five permanent streams of lifetimes 1 to 5."""
    descriptors = b"".join(
        bytes([0x04 if stream < count else 0, *bytes(15)]) for stream in range(6)
    )
    page = bytes([0x4A, 0x05, 0x00, 12 + len(descriptors), *bytes(12)]) + descriptors
    header = (6 + len(page)).to_bytes(2, "big") + bytes(6)
    machine.scsi_answers[bytes([0x5A, 0x08, 0x0A, 0x05])] = ScsiAnswer(header + page)
    limits = bytes.fromhex("00b7001c0001") if reduced_control else bytes.fromhex("00b7001c0000")
    machine.scsi_answers[bytes([0x12, 0x01, 0xB7])] = ScsiAnswer(limits + bytes(26))
    for stream in range(6):
        flags = 0x80 if stream < count else 0
        status = bytes([flags, 0, 0, stream, stream + 1, 0, 0, 0])
        command = bytes([0x9E, 0x16, 0, 0, 0, stream])
        machine.scsi_answers[command] = ScsiAnswer(bytes([0, 0, 0, 8, 0, 0, 0, 5]) + status)


@pytest.mark.parametrize(("count", "streams"), [(5, 5), (3, 3), (1, 1)])
def test_permanent_streams_of_a_scsi_drive(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, count: int, streams: int
) -> None:
    machine.disk("sdb", (8, 16))
    permanent_streams(machine, count)
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release="6.12.107+deb13-amd64"))
    method = find_data_placement(machine.system, OLD, disk(machine, "sdb"))
    hints = tuple(range(streams + 1))
    assert method == DataPlacement("hint", "", streams + 1, hints=hints)
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release="6.6.1"))
    old = find_data_placement(machine.system, OLD, disk(machine, "sdb"))
    assert old == "Linux 6.6.1 does not set group numbers of SCSI writes; 6.10 does"


def test_a_scsi_drive_without_streams_that_a_hint_reaches(machine: Machine) -> None:
    machine.disk("sdb", (8, 16))
    expected = "sdb has no permanent streams to which writes could be directed"
    assert find_data_placement(machine.system, NEW, disk(machine, "sdb")) == expected
    permanent_streams(machine, 5, reduced_control=False)
    assert find_data_placement(machine.system, NEW, disk(machine, "sdb")) == expected


def test_reasons(machine: Machine) -> None:
    system = machine.system
    assert find_data_placement(system, NEW, None) == "a file has no streams"
    machine.disk("sda", (8, 0))
    machine.attributes("sda", device__vendor="ATA")
    assert find_data_placement(system, NEW, disk(machine, "sda")) == (
        "sda is neither an NVMe nor a SCSI drive"
    )
    old = find_data_placement(system, OLD, disk(machine))
    assert old == "fio-3.33 cannot place writes; install 3.38 or later"
    libaio = Fio("/usr/bin/fio", (3, 41), "fio-3.41", "libaio")
    assert "needs io_uring" in str(find_data_placement(system, libaio, disk(machine)))
    status = f"nvme fdp status {machine.dev}/nvme0n1 --raw-binary"
    machine.answer(status, "", returncode=1)
    assert "not enabled" in str(find_data_placement(system, NEW, disk(machine)))
    replay(machine, "2.16", "QPLAIN01")
    assert "Streams directive is not enabled" in str(
        find_data_placement(system, NEW, disk(machine))
    )
    (machine.dev / "ng0n1").unlink()
    assert "no generic device" in str(find_data_placement(system, NEW, disk(machine)))
