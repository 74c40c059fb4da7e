"""Brings a drive back to the state of "no writes", with the strongest method that it offers.

In this order: NVMe format or sanitize; ATA sanitize (block erase) or security erase; SCSI sanitize
(block erase) or format unit; a change of keys; and, as a weak substitute that the report must
disclose, discarding all blocks (for a file: punching a hole). If no method works the purge fails: a
test never continues on a drive that was not purged, unless the user asked for just that.

Commands that would reach beyond the target are not used: an NVMe format or sanitize that covers
other namespaces, or an ATA erase on a drive that already has a password. Commands that erase are
not sent through bridges that may change them. A method that claims success while blocks that were
read before still hold their content has failed, and so has one that changed the drive's format.
"""

from __future__ import annotations

import array
import fcntl
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from writecliff.engines.base import PurgeHook, PurgeReport, unseen
from writecliff.engines.blockdev.ata_erase import ata_secure_erase
from writecliff.engines.blockdev.ata_sanitize import CRYPTO_SCRAMBLE, ata_sanitize
from writecliff.engines.blockdev.attachment import attachment_of, bridge_text
from writecliff.engines.blockdev.identity import is_ata, is_nvme, is_scsi
from writecliff.engines.blockdev.nvme.erase import nvme_erase
from writecliff.engines.blockdev.purge_proof import Samples, take_samples
from writecliff.engines.blockdev.scsi_erase import scsi_format_unit, scsi_sanitize
from writecliff.engines.blockdev.topology import BlockDevice, System, read_int
from writecliff.errors import EngineError

BLKDISCARD = 0x1277  # linux/fs.h: _IO(0x12, 119), argument: two u64, start and length
_DISCARD = "blkdiscard"
_FALLOC_PUNCH = 0x02 | 0x01  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE

Attempt = PurgeReport | str  # a report, or why the method cannot be used
Method = tuple[str, Callable[[], Attempt]]


def purge_device(
    system: System, disk: BlockDevice, path: str, fd: int, on_progress: PurgeHook = unseen
) -> PurgeReport:
    """Purge a claimed whole disk (`fd` is its exclusive descriptor).

    Raises `EngineError` that lists every method and why it failed.
    """
    before = _shape(disk)
    samples = take_samples(path, *before)
    reasons: list[str] = []
    for name, method in _methods(system, disk, path, fd, on_progress):
        outcome = method()
        if isinstance(outcome, PurgeReport):
            outcome = _proven(outcome, samples)
        if isinstance(outcome, PurgeReport):
            _require_shape(path, outcome.method, before, _shape(disk))
            note = "; ".join(part for part in (outcome.note, *reasons) if part)
            return replace(outcome, note=note)
        reasons.append(f"{name}: {outcome}")
    raise EngineError(
        f"{path}: cannot be purged: {'; '.join(reasons)}",
        hint="purge it with the vendor's tool, then run the test with --no-purge",
    )


def _methods(
    system: System, disk: BlockDevice, path: str, fd: int, seen: PurgeHook
) -> Iterator[Method]:
    """The methods that suit a disk, the strongest first."""
    kind = attachment_of(disk)
    if is_nvme(disk):
        yield "NVMe format/sanitize", lambda: nvme_erase(system, disk, seen)
    elif is_ata(disk) and kind == "libata":
        yield "ATA sanitize", lambda: ata_sanitize(system.run, path, on_progress=seen)
        yield "ATA security erase", lambda: ata_secure_erase(system.run, path)
        scramble = partial(ata_sanitize, system.run, path, CRYPTO_SCRAMBLE, on_progress=seen)
        yield "ATA crypto scramble", scramble
    elif kind == "USB" or is_ata(disk) or is_scsi(disk):
        if kind == "USB" or is_ata(disk):
            what = "ATA" if is_ata(disk) else "SCSI"
            yield f"{what} erase", lambda: f"not sent through {bridge_text(kind)}"
        if kind != "USB":
            # The adapter of a SATA drive translates it (SAT-5: SANITIZE), but not FORMAT UNIT.
            yield "SCSI sanitize", partial(scsi_sanitize, system, path, on_progress=seen)
        if kind != "USB" and is_scsi(disk):
            yield "SCSI format unit", partial(scsi_format_unit, system, path, on_progress=seen)
            crypto = partial(scsi_sanitize, system, path, crypto=True, on_progress=seen)
            yield "SCSI crypto erase", crypto
    yield "discard", lambda: _discard(disk, fd)


def _shape(disk: BlockDevice) -> tuple[int, int]:
    """(size, sector) in bytes, as the kernel sees them now."""
    return disk.size_bytes, read_int(disk.directory / "queue/logical_block_size") or 512


def _require_shape(path: str, method: str, then: tuple[int, int], now: tuple[int, int]) -> None:
    if then != now:
        raise EngineError(
            f"{path}: {method} changed it from {then[0]} bytes in sectors of {then[1]} to"
            f" {now[0]} bytes in sectors of {now[1]}",
            hint="format the drive with the vendor's tool before it is tested",
        )


def _proven(report: PurgeReport, samples: Samples) -> Attempt:
    """The report with what reading back showed; a string if the method did nothing. A discard may
    keep what it discards, and says so."""
    count = len(samples.content)
    if not count:
        return report
    kept = samples.kept()
    if kept and report.method != _DISCARD:
        return f"{report.method} was acknowledged, but {kept} of {count} blocks kept their content"
    text = f"read back: {kept} of {count} blocks kept their content"
    return replace(report, note="; ".join(part for part in (report.note, text) if part))


def _discard(disk: BlockDevice, fd: int) -> Attempt:
    if not read_int(disk.directory / "queue/discard_max_bytes"):
        return "the device does not discard"
    size = os.lseek(fd, 0, os.SEEK_END)
    try:
        fcntl.ioctl(fd, BLKDISCARD, array.array("Q", [0, size]))
    except OSError as error:
        return f"{error.strerror}"
    return PurgeReport(_DISCARD, False, "the drive may keep the data of blocks that were discarded")


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
