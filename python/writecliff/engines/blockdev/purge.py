"""Drive purge that uses the strongest method that the drive supports.

Purge methods in order of preference: NVMe format or sanitize; ATA sanitize (block erase) or
security erase; SCSI sanitize (block erase) or format unit; changing the encryption key; and, as a
weak substitute that the report must disclose, discarding all blocks (for a file: punching a hole).
If all methods fail, the purge fails, because a test may skip the purge only at the user's request.

Commands that would affect data outside the target are not used. Examples are an NVMe format or
sanitize that covers other namespaces, or an ATA erase on a drive that already has a password. Erase
commands are not sent through bridges that may alter them. A method fails if the drive reports
success but sampled blocks retain their content, or if the method changed the drive's format.
"""

from __future__ import annotations

import array
import fcntl
import mmap
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from writecliff.engines.base import PurgeHook, PurgeReport, unseen
from writecliff.engines.blockdev.ata_erase import ata_secure_erase
from writecliff.engines.blockdev.hdparm import doubt, identify
from writecliff.engines.blockdev.identity import is_ata, is_nvme, is_scsi
from writecliff.engines.blockdev.nvme.erase import nvme_erase
from writecliff.engines.blockdev.scsi_commands import (
    ILLEGAL_REQUEST,
    REQUEST_SENSE,
    TEST_UNIT_READY,
    UNIT_ATTENTION,
    ScsiAnswer,
    Sense,
    parse_sense,
    read_capacity_16,
)
from writecliff.engines.blockdev.tools import Runner, ToolResult
from writecliff.engines.blockdev.topology import BlockDevice, System, read_int
from writecliff.errors import EngineError

# ioctl _IO(0x12, 119) from linux/fs.h; its argument is two u64 values, start and length.
BLKDISCARD = 0x1277
_DISCARD = "blkdiscard"
_FALLOC_PUNCH = 0x02 | 0x01  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE.

Attempt = PurgeReport | str  # Purge report, or the reason why the method cannot be used.
Method = tuple[str, Callable[[], Attempt]]


def purge_device(
    system: System, disk: BlockDevice, path: str, fd: int, on_progress: PurgeHook = unseen
) -> PurgeReport:
    """Purge a claimed whole disk, whose exclusive descriptor is `fd`.

    Raises:
        EngineError: If all methods failed. The message lists the reasons.
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
        f"{path} cannot be purged: {'; '.join(reasons)}",
        hint="purge the drive with the vendor's tool, then run the test with --no-purge",
    )


def _methods(
    system: System, disk: BlockDevice, path: str, fd: int, seen: PurgeHook
) -> Iterator[Method]:
    """Yield a disk's purge methods, strongest first."""
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
            # A SATA drive's adapter translates SANITIZE (SAT-5), but does not translate FORMAT
            # UNIT.
            yield "SCSI sanitize", partial(scsi_sanitize, system, path, on_progress=seen)
        if kind != "USB" and is_scsi(disk):
            yield "SCSI format unit", partial(scsi_format_unit, system, path, on_progress=seen)
            crypto = partial(scsi_sanitize, system, path, crypto=True, on_progress=seen)
            yield "SCSI crypto erase", crypto
    yield "discard", lambda: _discard(disk, fd)


def _shape(disk: BlockDevice) -> tuple[int, int]:
    """Return the size and sector size in bytes that the kernel currently reports."""
    return disk.size_bytes, read_int(disk.directory / "queue/logical_block_size") or 512


def _require_shape(path: str, method: str, then: tuple[int, int], now: tuple[int, int]) -> None:
    if then != now:
        raise EngineError(
            f"{path}: {method} changed the layout from {then[0]} bytes in sectors of {then[1]} to"
            f" {now[0]} bytes in sectors of {now[1]}",
            hint="restore the drive's format with the vendor's tool before testing it",
        )


def _proven(report: PurgeReport, samples: Samples) -> Attempt:
    """Add the read-back result to the report, or return a reason if the method had no effect.

    Discarded blocks may retain their content, which the report discloses.
    """
    count = len(samples.content)
    if not count:
        return report
    unchanged = samples.unchanged()
    if unchanged and report.method != _DISCARD:
        text = f"but {unchanged} of {count} blocks kept their content"
        return f"{report.method} was acknowledged, {text}"
    text = f"read back: {unchanged} of {count} blocks kept their content"
    return replace(report, note="; ".join(part for part in (report.note, text) if part))


def _discard(disk: BlockDevice, fd: int) -> Attempt:
    if not read_int(disk.directory / "queue/discard_max_bytes"):
        return "the device does not support discard"
    size = os.lseek(fd, 0, os.SEEK_END)
    try:
        fcntl.ioctl(fd, BLKDISCARD, array.array("Q", [0, size]))
    except OSError as error:
        return f"{error.strerror}"
    return PurgeReport(_DISCARD, False, "the drive may keep the data of blocks that were discarded")


def purge_file(path: str, fd: int, size_bytes: int) -> PurgeReport:
    """Deallocate all blocks of a file, and allocate the blocks again.

    Raises:
        EngineError: If the file system does not support hole punching.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    offset_type = ctypes.c_int64
    done = libc.fallocate(fd, _FALLOC_PUNCH, offset_type(0), offset_type(size_bytes))
    if done != 0:
        reason = os.strerror(ctypes.get_errno())
        raise EngineError(f"{path} cannot be purged: punching holes failed: {reason}")
    try:
        os.posix_fallocate(fd, 0, size_bytes)
    except OSError as error:
        raise EngineError(f"{path} cannot be reallocated: {error.strerror}") from error
    os.fsync(fd)
    note = "the target is a file, so its underlying drive is not purged"
    return PurgeReport("punch hole", False, note)


# -- attachment ------------------------------------------------------------------------------------

# The disk attachment, determined from its sysfs path, decides which commands reach the drive.
#
# A SATA drive on a libata port receives every ATA command unmodified. Behind a SAS adapter or USB
# bridge, the translation (SAT-5) decides which commands reach the drive. The translation often
# returns no drive registers, and hdparm then reads the registers as zeros. Erase commands are
# therefore sent only to drives that receive ATA commands unmodified.

Attachment = Literal["libata", "SAS", "USB", "other"]

_PARTS: tuple[tuple[str, Attachment], ...] = (
    (r"ata\d+", "libata"),
    (r"usb\d+", "USB"),
    (r"(?:port|end_device|expander)-\d+.*", "SAS"),
)


def attachment_of(disk: BlockDevice) -> Attachment:
    """Return the type of the nearest bridge above a disk.

    "other" stands for adapters of unknown type (RAID, virtio-scsi, a kernel target).
    """
    for part in reversed(disk.whole_directory.parts):
        for pattern, kind in _PARTS:
            if re.fullmatch(pattern, part):
                return kind
    return "other"


def bridge_text(kind: Attachment) -> str:
    """Return the name, for messages, of the bridge between the machine and the drive."""
    words = {"SAS": "a SAS adapter", "USB": "a USB bridge", "libata": "an ATA port"}
    return words.get(kind, "an adapter that translates commands")


# -- purge proof -----------------------------------------------------------------------------------

# Some drives and most bridges acknowledge an erase but do not execute it, so a test would not start
# with a fresh drive. Therefore, the purge reads blocks across the drive with direct I/O before and
# after the erase. A block that contained data before the purge must not return the same data
# afterwards. The purge check writes nothing to the drive.

_SAMPLES = 256
_BLOCK = 4096


@dataclass(frozen=True)
class Samples:
    """Block contents by byte offset.

    Blocks that repeat a single byte are omitted, because an erased drive may return the same
    content.
    """

    path: str
    block_bytes: int
    content: Mapping[int, bytes]

    def unchanged(self) -> int:
        """Return the number of readable blocks that retain their previous content."""
        now = _read(self.path, tuple(self.content), self.block_bytes)
        return sum(now.get(offset) == content for offset, content in self.content.items())


def take_samples(path: str, size_bytes: int, sector_bytes: int) -> Samples:
    """Read evenly spaced blocks of the drive, including the first and the last.

    The result is empty if the device cannot be read.
    """
    block = max(_BLOCK, sector_bytes)
    count = size_bytes // block
    chosen = sorted({i * (count - 1) // (_SAMPLES - 1) for i in range(_SAMPLES)}) if count else []
    read = _read(path, tuple(index * block for index in chosen), block)
    content = {offset: data for offset, data in read.items() if len(set(data)) > 1}
    return Samples(path, block, content)


def _read(path: str, offsets: tuple[int, ...], block: int) -> dict[int, bytes]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError:
        return {}
    blocks: dict[int, bytes] = {}
    with mmap.mmap(-1, block) as buffer:  # Direct I/O requires an aligned buffer.
        for offset in offsets:
            try:
                if os.preadv(fd, [buffer], offset) == block:
                    blocks[offset] = bytes(buffer)
            except OSError:
                continue
    os.close(fd)
    return blocks


# -- ATA sanitize ----------------------------------------------------------------------------------

# ATA SANITIZE DEVICE through hdparm, with block erase or, as a weaker substitute, crypto scramble.
#
# A sanitize needs no password, continues after a power cycle, and works even if the machine's
# firmware has frozen ATA security, as most firmware does. (ACS-4 4.18: the security feature set
# blocks a sanitize only while the drive is locked.) The drive erases in the background, and the
# code polls `--sanitize-status` until the erase completes.
#
# The parser follows the output formats of hdparm 9.65 (`hdparm.c`: `sanitize_normal_output`,
# `sanitize_error_output`).

State = Literal["idle", "frozen", "in process", "failed"]
BLOCK_ERASE = ("--sanitize-block-erase", "BLOCK_ERASE_EXT command")
CRYPTO_SCRAMBLE = ("--sanitize-crypto-scramble", "CRYPTO_SCRAMBLE_EXT command")

_STATE = re.compile(r"State:\s+SD(\d)")
_PROGRESS = re.compile(r"Progress:\s+0x[0-9a-fA-F]+ \((\d+)%\)")
_REASON = re.compile(r"SANITIZE device error reason: (.+)")
_SUCCEEDED = "Last Sanitize Operation Completed Without Error"
_FAILED = "SD3 Sanitize Operation Failed"
_STATES: dict[str, State] = {"0": "idle", "1": "frozen", "2": "in process", "3": "failed"}
_TIMEOUT_S = 12 * 3600.0
_POLL_S = 2.0

Sleep = Callable[[float], None]


@dataclass(frozen=True)
class SanitizeStatus:
    """Result of SANITIZE STATUS EXT (ACS-4 7.36); `succeeded` is about the last operation."""

    state: State
    succeeded: bool = False
    percent: int | None = None


def parse_status(answer: ToolResult) -> SanitizeStatus | str:
    """Parse the output of `hdparm --sanitize-status`, or return the reason for a failure."""
    if _FAILED in answer.stderr:
        return SanitizeStatus("failed")
    if not answer.ok:
        return reason_of(answer)
    if reason := doubt(answer):
        return reason
    match = _STATE.search(answer.stdout)
    if match is None or match[1] not in _STATES:
        return "hdparm prints no sanitize state"
    progress = _PROGRESS.search(answer.stdout)
    return SanitizeStatus(
        _STATES[match[1]], _SUCCEEDED in answer.stdout, int(progress[1]) if progress else None
    )


def reason_of(answer: ToolResult) -> str:
    """Return the reason why hdparm's sanitize command failed, as reported by the drive if any."""
    match = _REASON.search(answer.stderr)
    return match[1].strip().lower() if match else answer.message


def ata_sanitize(
    run: Runner,
    path: str,
    kind: tuple[str, str] = BLOCK_ERASE,
    *,
    sleep: Sleep = time.sleep,
    on_progress: PurgeHook = unseen,
) -> PurgeReport | str:
    """Sanitize the whole drive, and return the reason if it fails.

    If a sanitize operation from an interrupted run is still in progress, the function first waits
    for its completion, because the drive rejects other commands until then.
    """
    option, feature = kind
    drive = identify(run, path)
    if isinstance(drive, str):
        return drive
    if not drive.enabled(feature):
        return "not supported by the drive"
    before = _settled(run, path, sleep, on_progress)
    if isinstance(before, str):
        return before
    if before.state == "frozen":
        return "sanitize is frozen (plug the drive in again, or power the machine off and on)"
    started = run(["hdparm", "--yes-i-know-what-i-am-doing", option, path])
    if not started.ok:
        return f"starting: {reason_of(started)}"
    ended = _settled(run, path, sleep, on_progress)
    if isinstance(ended, str):
        return ended
    if ended.state == "failed":
        return "the drive reports that it failed"
    if not ended.succeeded:
        return f"the drive is {ended.state} again and does not report success"
    if kind == CRYPTO_SCRAMBLE:
        note = "the drive has new encryption keys, but its blocks may still be mapped"
        return PurgeReport("ATA sanitize (crypto scramble)", False, note)
    return PurgeReport("ATA sanitize (block erase)", True)


def _settled(run: Runner, path: str, sleep: Sleep, on_progress: PurgeHook) -> SanitizeStatus | str:
    """Wait until no sanitize operation is in progress, and return the status."""
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        status = parse_status(run(["hdparm", "--sanitize-status", path]))
        if isinstance(status, str) or status.state != "in process":
            return status
        if time.monotonic() >= deadline:
            return f"did not complete within {_TIMEOUT_S / 3600:g} h ({status.percent} % done)"
        if status.percent is not None:
            on_progress(status.percent / 100)
        sleep(_POLL_S)


# -- SCSI SANITIZE (block erase) and FORMAT UNIT through sg3-utils ---------------------------------

# SANITIZE and FORMAT UNIT run in the background on the drive. The code polls REQUEST SENSE and TEST
# UNIT READY until the command completes, because `sg_sanitize` reports a failed sanitize as
# complete. The purge preserves the drive's format: `sg_format` removes the protection information
# unless the current type is passed, and changes block size and block count only on request.
#
# Sources: SBC-4 5.3 (FORMAT UNIT: FMTPINFO, PROTECTION FIELD USAGE; table 38), 5.21 (READ
# CAPACITY(16): P_TYPE, PROT_EN, P_I_EXPONENT), 5.30 (SANITIZE), 4.12; SPC-5 annex F (codes 04h/04h
# and 04h/1Bh: in progress; 31h/00h, 31h/01h, 31h/03h: failed); sg_format(8), sg_sanitize(8).

_SCSI_TIMEOUT_S = 24 * 3600.0
_NOT_YET = 0x04  # Logical unit not ready: format or sanitize in progress.
_DAMAGED = 0x31  # Medium format corrupted: format or sanitize failed.
_RESETS_IN_A_ROW = 5


@dataclass(frozen=True)
class ScsiFormat:
    """Drive format with block size, block count, and protection information type and exponent."""

    block_bytes: int
    blocks: int
    protection: int
    protection_exponent: int

    @property
    def options(self) -> list[str]:
        """`sg_format` options that preserve the protection information (SBC-4 table 38)."""
        information = {0: 0, 1: 2}.get(self.protection, 3)
        usage = 1 if self.protection == 3 else 0
        return [
            f"--fmtpinfo={information}",
            f"--pfu={usage}",
            f"--pie={self.protection_exponent}",
        ]


def read_format(system: System, path: Path) -> ScsiFormat | None:
    """Return the drive's format, or None if the drive does not report it."""
    data = read_capacity_16(system.scsi, path)
    if not data:
        return None
    enabled, kind = data[12] & 0x01, (data[12] >> 1) & 0x07
    return ScsiFormat(
        block_bytes=int.from_bytes(data[8:12], "big"),
        blocks=int.from_bytes(data[:8], "big") + 1,
        protection=kind + 1 if enabled else 0,
        protection_exponent=data[13] >> 4,
    )


def scsi_sanitize(
    system: System,
    path: str,
    *,
    crypto: bool = False,
    sleep: Sleep = time.sleep,
    on_progress: PurgeHook = unseen,
) -> PurgeReport | str:
    """Sanitize the drive, or return the reason for a failure."""
    what = "--crypto" if crypto else "--block"
    started = system.run(["sg_sanitize", what, "--early", "--quick", path])
    if not started.ok:
        return started.message
    if failure := _await_end(system, Path(path), sleep, on_progress):
        return failure
    if crypto:
        note = "the drive has new keys; its blocks may still be mapped"
        return PurgeReport("SCSI sanitize (crypto erase)", False, note)
    return PurgeReport("SCSI sanitize (block erase)", True)


def scsi_format_unit(
    system: System, path: str, *, sleep: Sleep = time.sleep, on_progress: PurgeHook = unseen
) -> PurgeReport | str:
    """Reformat the drive in its current format, or return the reason for a failure.

    Raises:
        EngineError: If the drive's format changed.
    """
    before = read_format(system, Path(path))
    if before is None:
        return "the drive does not report its format, so the format could not be kept"
    words = ["sg_format", "--format", "--quick", *before.options]
    started = system.run([*words, "--early", path])
    if not started.ok:
        return started.message
    if failure := _await_end(system, Path(path), sleep, on_progress):
        return failure
    after = read_format(system, Path(path))
    if after != before:
        raise EngineError(
            f"{path}: the format changed from {before} to {after}",
            hint="format the drive with the vendor's tool before it is tested",
        )
    return PurgeReport("SCSI format unit", True)


def _await_end(system: System, path: Path, sleep: Sleep, on_progress: PurgeHook) -> str:
    """Wait until the drive is ready again, and return the reason for a failure, or ""."""
    deadline = time.monotonic() + _SCSI_TIMEOUT_S
    resets = 0
    while time.monotonic() < deadline:
        sense = _pending(system.scsi(path, REQUEST_SENSE, 252))
        if sense is None:
            answer = system.scsi(path, TEST_UNIT_READY, 0)
            if answer.ok:
                return ""
            if answer.sense is None:
                return answer.message
            sense = answer.sense
        if sense.key == UNIT_ATTENTION and resets < _RESETS_IN_A_ROW:
            resets += 1
            continue
        if sense.asc != _NOT_YET:
            failed = " (the erase failed)" if sense.asc == _DAMAGED else ""
            return f"the drive reports {sense}{failed}"
        if sense.progress is not None:
            on_progress(sense.progress)
        sleep(_POLL_S)
    return f"did not complete within {_SCSI_TIMEOUT_S / 3600:g} h"


def _pending(answer: ScsiAnswer) -> Sense | None:
    """Return the pending operation or error from REQUEST SENSE, if any.

    NO SENSE with code 04h also indicates a sanitize in progress (SBC-4 4.12.3).
    """
    sense = parse_sense(answer.data) if answer.ok else answer.sense
    if sense is None or sense.key == ILLEGAL_REQUEST:  # The drive does not support REQUEST SENSE.
        return None
    return sense if sense.key or sense.asc == _NOT_YET else None
