"""Purge methods with the distributed tools: the data are erased, the format is preserved.

No emulator supports ATA security and sanitize or SCSI SANITIZE and FORMAT UNIT (QEMU's disk
acknowledges FORMAT UNIT without executing it). The drives of `tests.support`, attached to the real
SCSI stack, support these commands.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support import tcmu
from tests.support.ata_drive import AtaDrive
from tests.support.guest_drives import Drive
from tests.support.scsi_drive import ScsiDrive
from writecliff.engines.base import PurgeReport
from writecliff.engines.blockdev import ata_erase, purge
from writecliff.engines.blockdev.cache import set_write_cache
from writecliff.engines.blockdev.hdparm import NO_REGISTERS
from writecliff.engines.blockdev.purge import BLOCK_ERASE, CRYPTO_SCRAMBLE, ata_sanitize
from writecliff.engines.blockdev.topology import System, device_at
from writecliff.errors import EngineError, TargetError

SYSTEM = System()
MIB = 1 << 20
LONG = pytest.mark.long
Attach = Callable[[ScsiDrive], Path]


@pytest.fixture
def attach() -> Iterator[Attach]:
    """Yield a function that attaches a drive of `tests.support` and fills it; detach at the end."""
    if why := tcmu.available():
        pytest.skip(why)
    with ExitStack() as stack:

        def make(drive: ScsiDrive) -> Path:
            name = f"drive{os.urandom(3).hex()}"
            path = stack.enter_context(tcmu.attached(drive, name, drive.size_bytes))
            drive.medium[:] = os.urandom(drive.size_bytes)
            return path

        yield make


def purged(path: Path) -> PurgeReport:
    fd = os.open(path, os.O_RDWR | os.O_EXCL)
    try:
        return purge.purge_device(SYSTEM, device_at(SYSTEM, path), str(path), fd)
    finally:
        os.close(fd)


def is_empty(drive: ScsiDrive) -> bool:
    return not any(drive.medium)


@pytest.mark.figure(purge="SCSI sanitize, block erase")
def test_scsi_sanitize(attach: Attach) -> None:
    drive = ScsiDrive(protection=1)
    report = purged(attach(drive))
    assert (report.method, report.conformant) == ("SCSI sanitize (block erase)", True)
    assert "read back: 0 of 128 blocks kept" in report.note
    assert (drive.erases, is_empty(drive), drive.protection) == (["block"], True, 1)


@pytest.mark.figure(purge="SCSI format unit")
@pytest.mark.parametrize("protection", [1, 3, *(pytest.param(n, marks=LONG) for n in (0, 2))])
def test_scsi_format_unit_keeps_the_protection(attach: Attach, protection: int) -> None:
    drive = ScsiDrive(protection=protection, supports=("format",))
    path = attach(drive)
    before = purge.read_format(SYSTEM, path)
    report = purged(path)
    assert (report.method, report.conformant) == ("SCSI format unit", True)
    assert (drive.erases, is_empty(drive)) == (["format"], True)
    assert purge.read_format(SYSTEM, path) == before
    assert drive.protection == protection


@pytest.mark.figure(purge="SCSI sanitize, crypto erase")
def test_scsi_crypto_erase_is_disclosed(attach: Attach) -> None:
    drive = ScsiDrive(supports=("crypto",))
    report = purged(attach(drive))
    assert (report.method, report.conformant) == ("SCSI sanitize (crypto erase)", False)
    assert drive.erases == ["crypto"]


def test_an_erase_that_fails_or_does_nothing_is_no_purge(attach: Attach) -> None:
    failing = attach(ScsiDrive(fails=True, supports=("block",), seconds=1))
    with pytest.raises(EngineError, match=r"31h/03h \(the erase failed\)"):
        purged(failing)
    lying = attach(ScsiDrive(lies=True, supports=("block",), seconds=1))
    with pytest.raises(EngineError, match="was acknowledged, but 128 of 128 blocks kept"):
        purged(lying)


@pytest.mark.figure(purge="ATA sanitize, block erase")
def test_ata_sanitize_where_security_is_frozen(attach: Attach) -> None:
    drive = AtaDrive(frozen=True)
    report = ata_sanitize(SYSTEM.run, str(attach(drive)), BLOCK_ERASE)
    assert report == PurgeReport("ATA sanitize (block erase)", True)
    assert (drive.erases, is_empty(drive), drive.password) == (["block"], True, None)


@pytest.mark.figure(purge="ATA sanitize, crypto scramble")
def test_ata_crypto_scramble(attach: Attach) -> None:
    drive = AtaDrive()
    report = ata_sanitize(SYSTEM.run, str(attach(drive)), CRYPTO_SCRAMBLE)
    assert isinstance(report, PurgeReport), report
    assert (report.conformant, drive.erases) == (False, ["crypto"])


@pytest.mark.figure(purge="ATA security erase")
def test_ata_security_erase(attach: Attach) -> None:
    drive = AtaDrive(supports=("security", "enhanced"))
    path = str(attach(drive))
    assert "not supported" in str(ata_sanitize(SYSTEM.run, path))
    report = ata_erase.ata_secure_erase(SYSTEM.run, path)
    assert report == PurgeReport("ATA security erase", True)
    assert (drive.erases, is_empty(drive), drive.password) == (["security"], True, None)


@pytest.mark.parametrize(
    ("drive", "reason"),
    [
        (AtaDrive(sanitize_frozen=True), "sanitize is frozen"),
        (AtaDrive(fails=True, seconds=1), "the drive reports that it failed"),
        (AtaDrive(drops_registers=True), NO_REGISTERS),
        (AtaDrive(supports=("crypto", "security")), "not supported by the drive"),
    ],
)
def test_what_hdparm_says_of_a_sanitize_is_understood(
    attach: Attach, drive: AtaDrive, reason: str
) -> None:
    assert reason in str(ata_sanitize(SYSTEM.run, str(attach(drive))))


def test_the_enhanced_erase_where_the_normal_one_is_refused(attach: Attach) -> None:
    drive = AtaDrive(supports=("security", "enhanced"), refuses_normal_erase=True)
    report = ata_erase.ata_secure_erase(SYSTEM.run, str(attach(drive)))
    assert isinstance(report, PurgeReport), report
    assert report.method == "ATA security erase (enhanced)"
    assert (drive.erases, is_empty(drive), drive.password) == (["enhanced"], True, None)


def test_a_password_that_an_interrupted_erase_left_is_named_and_removed(attach: Attach) -> None:
    drive = AtaDrive(password=b"writecliff".ljust(32, b"\0"))
    path = str(attach(drive))
    assert ata_erase.clear_password(SYSTEM.run, path)
    assert drive.password is None
    drive.password = b"writecliff".ljust(32, b"\0")
    drive.power_cycle()
    assert not ata_erase.clear_password(SYSTEM.run, path)
    with pytest.raises(TargetError, match="locked by an ATA security password") as caught:
        ata_erase.refuse_locked(SYSTEM.run, path, path)
    command = str(caught.value.hint).partition("password: ")[2]
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, drive.password, drive.locked) == (0, None, False), done.stderr


def test_hdparm_is_not_used_through_an_adapter(attach: Attach) -> None:
    """The disk of a SCSI target is on no ATA port, like a drive behind a RAID adapter."""
    drive = AtaDrive()
    path = attach(drive)
    asked = len(drive.commands)
    with pytest.raises(EngineError, match="ATA erase: not sent through an adapter"):
        purged(path)
    assert (drive.commands[asked:], drive.erases) == ([], [])


@pytest.mark.figure(purge="discard, disclosed")
def test_discard_is_the_last_resort_and_says_so(
    scsi: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Purge scsi_debug, which has UNMAP but neither SANITIZE nor FORMAT UNIT.

    FORMAT UNIT is not sent: since Linux 6.15 its opcode, 04h, is FORMAT MEDIUM of scsi_debug's tapes.
    The driver checks the device type only for opcodes shared by several commands. FORMAT MEDIUM is
    therefore also executed on a disk, and partition_tape dereferences the null pointer of the
    missing tape.
    """
    monkeypatch.setattr(purge, "scsi_format_unit", lambda *words, **more: "not sent")
    path = Path(scsi.path)
    fill(path)
    report = purged(path)
    assert (report.method, report.conformant) == ("blkdiscard", False)
    assert "SCSI sanitize: " in report.note and "SCSI format unit: " in report.note
    assert re.search(r"read back: 0 of [1-9]\d* blocks kept", report.note)
    assert not any(path.read_bytes()[:MIB])


@pytest.mark.figure(purge="discard of SATA, disclosed")
def test_a_sata_drive_without_security_is_discarded(sata: Drive) -> None:
    path = Path(sata.path)
    fill(path)
    report = purged(path)
    assert (report.method, report.conformant) == ("blkdiscard", False)
    for part in ("ATA sanitize: not supported", "ATA security erase: not supported by the drive"):
        assert part in report.note


@pytest.mark.figure(purge="discard of virtio, disclosed")
def test_a_virtio_disk_has_only_discard(plug: Callable[..., Drive]) -> None:
    """QEMU acknowledges a discard without executing it, so the image retains the data."""
    if subprocess.run(["modprobe", "virtio_blk"], check=False).returncode:
        pytest.skip("no module virtio_blk")
    path = Path(plug("QVIRT001", driver="virtio-blk-pci").path)
    fill(path)
    report = purged(path)
    assert (report.method, report.conformant) == ("blkdiscard", False)
    assert "the drive may keep the data of blocks that were discarded" in report.note
    assert re.search(r"read back: [1-9]\d* of \d+ blocks kept their content", report.note)
    disk = device_at(SYSTEM, path)
    for state in (False, True):
        assert set_write_cache(SYSTEM, disk, str(path), state).enabled is state


def fill(path: Path) -> None:
    """Write random data to the first 16 MiB, where a purge samples blocks."""
    fd = os.open(path, os.O_RDWR)
    os.pwrite(fd, os.urandom(16 * MIB), 0)
    os.fsync(fd)
    os.close(fd)
