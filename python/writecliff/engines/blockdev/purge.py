"""Brings a drive back to the state of "no writes", with the strongest method that it offers.

The order is NVMe format or sanitize, ATA security erase, SCSI sanitize or format, and, as a weak
substitute that the report must disclose, discarding all blocks (for a file: punching a hole). If no
method works the purge fails: a test never continues on a drive that was not purged.

Commands that would reach beyond the target are not used: an NVMe format or sanitize that covers
other namespaces, or an ATA erase on a drive that already has a password or is frozen.
"""

from __future__ import annotations

import array
import fcntl
import os
from collections.abc import Callable

from writecliff.engines.base import PurgeReport
from writecliff.engines.blockdev.ata_erase import ata_secure_erase
from writecliff.engines.blockdev.identity import is_ata, is_nvme, is_scsi
from writecliff.engines.blockdev.nvme_erase import nvme_erase
from writecliff.engines.blockdev.topology import BlockDevice, System, read_int
from writecliff.errors import EngineError

BLKDISCARD = 0x1277  # linux/fs.h: _IO(0x12, 119), argument: two u64, start and length
_FALLOC_PUNCH = 0x02 | 0x01  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
_FORMAT_TIMEOUT_S = 12 * 3600.0

Attempt = PurgeReport | str  # a report, or why the method cannot be used


def purge_device(system: System, disk: BlockDevice, path: str, fd: int) -> PurgeReport:
    """Purge a claimed whole disk (`fd` is its exclusive descriptor).

    Raises `EngineError` that lists every method and why it failed.
    """
    methods: list[tuple[str, Callable[[], Attempt]]] = []
    if is_nvme(disk):
        methods.append(("NVMe format/sanitize", lambda: nvme_erase(system, disk, path)))
    if is_ata(disk):
        methods.append(("ATA security erase", lambda: ata_secure_erase(system.run, path)))
    if is_scsi(disk):
        methods.append(("SCSI sanitize/format", lambda: _scsi_erase(system, path)))
    methods.append(("discard", lambda: _discard(disk, fd)))
    reasons: list[str] = []
    for name, method in methods:
        outcome = method()
        if isinstance(outcome, PurgeReport):
            note = "; ".join(part for part in (outcome.note, *reasons) if part)
            return PurgeReport(outcome.method, outcome.conformant, note)
        reasons.append(f"{name}: {outcome}")
    raise EngineError(
        f"{path}: cannot be purged: {'; '.join(reasons)}",
        hint="purge it with the vendor's tool, then run without the purge step",
    )


def _scsi_erase(system: System, path: str) -> Attempt:
    sanitize = system.run(
        ["sg_sanitize", "--block", "--wait", "--quick", path], timeout_s=_FORMAT_TIMEOUT_S
    )
    if sanitize.ok:
        return PurgeReport("SCSI sanitize (block erase)", True)
    formatted = system.run(["sg_format", "--format", "--quick", path], timeout_s=_FORMAT_TIMEOUT_S)
    if formatted.ok:
        return PurgeReport("SCSI format unit", True)
    return f"{sanitize.message}; {formatted.message}"


def _discard(disk: BlockDevice, fd: int) -> Attempt:
    if not read_int(disk.directory / "queue/discard_max_bytes"):
        return "the device does not discard"
    size = os.lseek(fd, 0, os.SEEK_END)
    try:
        fcntl.ioctl(fd, BLKDISCARD, array.array("Q", [0, size]))
    except OSError as error:
        return f"{error.strerror}"
    return PurgeReport(
        "blkdiscard", False, "the drive may keep the data of blocks that were discarded"
    )


def purge_file(path: str, fd: int, size_bytes: int) -> PurgeReport:
    """Punch a file out and allocate it anew. Raises `EngineError` where that is not possible."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    offset_type = ctypes.c_int64
    done = libc.fallocate(fd, _FALLOC_PUNCH, offset_type(0), offset_type(size_bytes))
    if done != 0:
        reason = os.strerror(ctypes.get_errno())
        raise EngineError(f"{path}: cannot be purged: punching holes: {reason}")
    try:
        os.posix_fallocate(fd, 0, size_bytes)
    except OSError as error:
        raise EngineError(f"{path}: cannot be allocated again: {error.strerror}") from error
    os.fsync(fd)
    note = "a file, not a drive: the drive below it is not purged"
    return PurgeReport("punch hole", False, note)
