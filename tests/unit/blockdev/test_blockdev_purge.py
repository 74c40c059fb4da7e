"""Purge methods: selection and verification, and preservation of a SCSI drive's format."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.block_machine import MIB, Machine
from tests.support.hdparm_drive import HdparmDrive
from writecliff.engines.base import PurgeReport
from writecliff.engines.blockdev import purge
from writecliff.engines.blockdev.purge import attachment_of, purge_device
from writecliff.engines.blockdev.scsi_commands import ScsiAnswer, Sense, parse_sense
from writecliff.engines.blockdev.tools import ToolResult
from writecliff.engines.blockdev.topology import BlockDevice, System, device_at
from writecliff.errors import EngineError

REQUEST_SENSE, TEST_UNIT_READY = 0x03, 0x00
READ_CAPACITY = bytes([0x9E, 0x10])
NOTHING = bytes.fromhex("70000000000000 0a00000000000000000000".replace(" ", ""))
READY = ScsiAnswer()


def sense(key: int, asc: int, ascq: int, progress: int | None = None) -> bytes:
    """Return fixed format sense data (SPC-5 4.4.3)."""
    data = bytearray(18)
    data[0], data[2], data[7], data[12], data[13] = 0x70, key, 10, asc, ascq
    if progress is not None:
        data[15:18] = bytes([0x80, *progress.to_bytes(2, "big")])
    return bytes(data)


def capacity(protection: int = 0, block_bytes: int = 512, exponent: int = 0) -> bytes:
    """Return the parameter data of READ CAPACITY(16)."""
    field = 0 if protection == 0 else 1 | (protection - 1) << 1
    blocks = (MIB // block_bytes - 1).to_bytes(8, "big")
    return blocks + block_bytes.to_bytes(4, "big") + bytes([field, exponent << 4]) + bytes(18)


def disk_of(
    machine: Machine, name: str = "sdb", bus: str = "", vendor: str = "HGST"
) -> BlockDevice:
    path = machine.disk(name, (8, 16), bus=bus)
    machine.attributes(name, device__vendor=vendor)
    return device_at(machine.system, path)


@pytest.mark.parametrize(
    ("bus", "kind"),
    [
        ("pci0000:00/0000:00:1f.2/ata3/host2/target2:0:0/2:0:0:0/block", "libata"),
        ("pci0000:00/0000:01:00.0/host0/port-0:0/end_device-0:0/target0:0:0/block", "SAS"),
        ("pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host6/target6:0:0/block", "USB"),
        ("pci0000:00/0000:02:00.0/host1/target1:2:0/1:2:0:0/block", "other"),
    ],
)
def test_how_a_disk_is_attached(machine: Machine, bus: str, kind: str) -> None:
    assert attachment_of(disk_of(machine, bus=bus)) == kind


def test_sense_data_in_both_formats() -> None:
    assert parse_sense(sense(2, 4, 0x1B, 0x8000)) == Sense(2, 4, 0x1B, 0.5)
    described = bytes.fromhex("72 03 31 03 00 00 00 08 02 06 00 00 80 40 00 00")
    assert parse_sense(described) == Sense(3, 0x31, 3, 0.25)
    assert parse_sense(b"") is None and parse_sense(bytes(18)) is None


class Drive:
    """A SCSI drive with responses to REQUEST SENSE in order, after which it is ready (or not)."""

    def __init__(self, *pending: bytes, ready: ScsiAnswer = READY) -> None:
        self.pending = list(pending)
        self.ready = ready
        self.capacities = [capacity()]

    def __call__(self, path: Path, command: bytes, length: int) -> ScsiAnswer:
        if command[0] == REQUEST_SENSE:
            return ScsiAnswer(self.pending.pop(0) if self.pending else NOTHING)
        if command.startswith(READ_CAPACITY):
            remaining = self.capacities
            return ScsiAnswer(remaining.pop(0) if len(remaining) > 1 else remaining[0])
        assert command[0] == TEST_UNIT_READY
        return self.ready


def system_of(machine: Machine, drive: Drive) -> System:
    old = machine.system
    return System(old.sys, old.proc, old.dev, old.run, old.stat_node, scsi=drive)


def no_wait(seconds: float) -> None:
    pass


def test_sanitize_is_waited_for(machine: Machine) -> None:
    machine.answer("sg_sanitize --block --early --quick /dev/sdb")
    drive = Drive(sense(2, 4, 0x1B, 100), sense(0, 4, 0x1B, 60000), sense(6, 0x29, 0))
    seen: list[float] = []
    report = purge.scsi_sanitize(
        system_of(machine, drive), "/dev/sdb", sleep=no_wait, on_progress=seen.append
    )
    assert report == PurgeReport("SCSI sanitize (block erase)", True)
    assert seen == [100 / 65536, 60000 / 65536]
    assert drive.pending == []


def test_a_failed_sanitize_is_not_taken_for_a_finished_one(machine: Machine) -> None:
    """Check a drive for which `sg_sanitize` 1.46 to 1.49 sees no progress indication."""
    machine.answer("sg_sanitize")
    failed = ScsiAnswer(sense=Sense(3, 0x31, 0x03))
    for drive in (Drive(sense(3, 0x31, 0x03)), Drive(sense(2, 4, 0x1B, 9), ready=failed)):
        outcome = purge.scsi_sanitize(system_of(machine, drive), "/dev/sdb", sleep=no_wait)
        assert outcome == "the drive reports sense key 3h, 31h/03h (the erase failed)"


@pytest.mark.parametrize(
    ("protection", "options"),
    [
        (0, ["--fmtpinfo=0", "--pfu=0", "--pie=0"]),
        (1, ["--fmtpinfo=2", "--pfu=0", "--pie=0"]),
        (2, ["--fmtpinfo=3", "--pfu=0", "--pie=0"]),
        (3, ["--fmtpinfo=3", "--pfu=1", "--pie=0"]),
    ],
)
def test_format_unit_keeps_the_protection_information(
    machine: Machine, protection: int, options: list[str]
) -> None:
    machine.answer("sg_format")
    drive = Drive(sense(2, 4, 4, 100))
    drive.capacities = [capacity(protection)]
    report = purge.scsi_format_unit(system_of(machine, drive), "/dev/sdb", sleep=no_wait)
    assert report == PurgeReport("SCSI format unit", True)
    words = ["sg_format", "--format", "--quick", *options, "--early", "/dev/sdb"]
    assert machine.calls == [words]


def test_a_format_that_changes_stops_the_test(machine: Machine) -> None:
    machine.answer("sg_format")
    drive = Drive()
    drive.capacities = [capacity(1), capacity(0)]
    with pytest.raises(EngineError, match=r"protection=1.*protection=0"):
        purge.scsi_format_unit(system_of(machine, drive), "/dev/sdb", sleep=no_wait)
    drive.capacities = [b""]
    outcome = purge.scsi_format_unit(system_of(machine, drive), "/dev/sdb", sleep=no_wait)
    assert "does not report its format" in str(outcome)
    assert len(machine.calls) == 1


def test_format_comes_where_sanitize_is_refused(machine: Machine) -> None:
    machine.answer("sg_sanitize", returncode=9)
    machine.answer("sg_format")
    report = purge_device(system_of(machine, Drive()), disk_of(machine), "/dev/sdb", -1)
    assert (report.method, report.conformant) == ("SCSI format unit", True)
    assert "SCSI sanitize: exit status 9" in report.note


@pytest.mark.parametrize("name", ["sda", "sdb"])
def test_nothing_that_erases_is_sent_through_a_usb_bridge(machine: Machine, name: str) -> None:
    vendor = "ATA" if name == "sda" else "JMicron"
    disk = disk_of(machine, name, bus="usb2/2-1/host6", vendor=vendor)
    for command in ("hdparm", "sg_sanitize", "sg_format"):
        machine.answer(command)
    with pytest.raises(EngineError, match="not sent through a USB bridge") as caught:
        purge_device(machine.system, disk, "/dev/sdx", -1)
    assert machine.calls == []
    assert "--no-purge" in str(caught.value.hint)


def test_a_sata_drive_behind_a_sas_adapter_is_sanitized_by_translation(machine: Machine) -> None:
    disk = disk_of(machine, "sda", bus="host0/port-0:0/end_device-0:0", vendor="ATA")
    machine.answer("sg_sanitize --block")
    report = purge_device(system_of(machine, Drive()), disk, "/dev/sda", -1)
    assert report.method == "SCSI sanitize (block erase)"
    assert "ATA erase: not sent through a SAS adapter" in report.note
    machine.answer("sg_sanitize --block", returncode=5)
    with pytest.raises(EngineError):
        purge_device(system_of(machine, Drive()), disk, "/dev/sda", -1)
    assert {call[0] for call in machine.calls} == {"sg_sanitize"}


def test_sata_methods_in_their_order(machine: Machine) -> None:
    disk = disk_of(machine, "sda", bus="ata1", vendor="ATA")
    drive = HdparmDrive(frozen=True)
    old = machine.system
    system = System(old.sys, old.proc, old.dev, drive, old.stat_node)
    with pytest.raises(EngineError) as caught:
        purge_device(system, disk, "/dev/sda", -1)
    parts = ("ATA sanitize: not supp", "security erase: the drive is frozen", "crypto scramble:")
    positions = [str(caught.value).index(part) for part in (*parts, "discard:")]
    assert positions == sorted(positions)
    assert drive.erased == []


class _Medium:
    """A drive whose content is a file; `erases` defines the effect of its commands on the file."""

    def __init__(self, path: Path, *, erases: Sequence[str]) -> None:
        self.path, self.erases = path, erases
        path.write_bytes(os.urandom(MIB))

    def run(self, argv: Sequence[str], *, timeout_s: float = 30.0) -> ToolResult:
        if argv[0] in self.erases:
            self.path.write_bytes(bytes(MIB))
        return ToolResult(0, "")


@pytest.fixture
def buffered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "O_DIRECT", 0)  # A file system in memory may not support O_DIRECT.


@pytest.mark.usefixtures("buffered")
@pytest.mark.parametrize(
    ("erases", "method"),
    [(("sg_sanitize",), "SCSI sanitize (block erase)"), (("sg_format",), "SCSI format unit")],
)
def test_a_method_counts_only_if_the_data_is_gone(
    machine: Machine, erases: Sequence[str], method: str
) -> None:
    disk = disk_of(machine)
    path = machine.dev / "sdb"
    old = machine.system
    medium = _Medium(path, erases=erases)
    system = System(old.sys, old.proc, old.dev, medium.run, old.stat_node, scsi=Drive())
    report = purge_device(system, disk, str(path), -1)
    assert (report.method, report.conformant) == (method, True)
    assert "read back: 0 of 256 blocks kept their content" in report.note
    refused = "was acknowledged, but 256 of 256 blocks kept their content"
    assert (refused in report.note) == (method == "SCSI format unit")


@pytest.mark.usefixtures("buffered")
def test_a_drive_that_only_claims_to_erase_stops_the_test(machine: Machine) -> None:
    disk = disk_of(machine)
    path = machine.dev / "sdb"
    old = machine.system
    medium = _Medium(path, erases=())
    system = System(old.sys, old.proc, old.dev, medium.run, old.stat_node, scsi=Drive())
    with pytest.raises(EngineError) as caught:
        purge_device(system, disk, str(path), -1)
    assert str(caught.value).count("256 of 256 blocks kept their content") == 3


@pytest.mark.usefixtures("buffered")
def test_samples_leave_out_what_proves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "drive"
    path.write_bytes(bytes(MIB // 2) + os.urandom(MIB // 2))
    samples = purge.take_samples(str(path), MIB, 512)
    assert len(samples.content) == 128
    assert min(samples.content) == MIB // 2 and max(samples.content) == MIB - 4096
    assert samples.unchanged() == 128
    path.write_bytes(bytes(MIB))
    assert samples.unchanged() == 0
    assert purge.take_samples(str(tmp_path / "none"), MIB, 512).content == {}


def test_a_purge_that_changes_the_sectors_stops_the_test(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = disk_of(machine)
    machine.attributes("sdb", queue__logical_block_size="512")

    def shrink(*_: object, **__: object) -> PurgeReport:
        machine.attributes("sdb", queue__logical_block_size="4096")
        return PurgeReport("SCSI sanitize (block erase)", True)

    monkeypatch.setattr(purge, "scsi_sanitize", shrink)
    with pytest.raises(EngineError, match=r"sectors of 512 to .* sectors of 4096"):
        purge_device(machine.system, disk, "/dev/sdb", -1)
