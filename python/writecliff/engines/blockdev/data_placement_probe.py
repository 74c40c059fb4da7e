"""Probe for the data placement features (hints, streams, FDP) of a real drive and the kernel.

The probe does not write to the drive. `notes` lists properties that the probe cannot determine
because a tool is missing or the drive is not an NVMe drive.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from writecliff.engines.blockdev.identity import is_nvme, is_scsi
from writecliff.engines.blockdev.nvme.drive import NvmeDrive, Refused
from writecliff.engines.blockdev.nvme.fdp import handle_count, placement_handles
from writecliff.engines.blockdev.scsi_streams import (
    KERNEL_SINCE,
    PermanentStreams,
    read_streams,
)
from writecliff.engines.blockdev.topology import (
    BlockDevice,
    System,
    device_by_number,
    read_int,
    whole_disk,
)
from writecliff.errors import TargetError


@dataclass(frozen=True)
class DataPlacementProbe:
    """Result of a data placement probe.

    A field is `None` if it does not apply or is unknown (see `notes`).
    """

    path: str
    disk: str | None  # Kernel name of the underlying whole disk.
    kernel: str
    hints: tuple[HintAnswer, ...]
    max_write_streams: int | None  # Number of block-layer write streams (Linux 6.16).
    write_stream_granularity_bytes: int | None
    # Placement handle count of the namespace; 0 if FDP is unavailable or disabled.
    fdp_handles: int | None
    # Return parameters of the Streams directive; empty if the directive is disabled.
    streams: Mapping[str, int] | None
    notes: tuple[str, ...]
    permanent_streams: PermanentStreams | None = None  # Permanent streams (SCSI drives only).

    @property
    def taken(self) -> tuple[str, ...]:
        """Lifetime hints that the kernel accepted."""
        return tuple(a.hint for a in self.hints if a.call == "F_SET_RW_HINT" and not a.refused)

    def mapping(self) -> dict[str, Any]:
        """Return the probe result as JSON values, including the verdict."""
        return {**asdict(self), "verdict": list(verdict(self))}


def probe(path: str, system: System | None = None) -> DataPlacementProbe:
    """Probe the kernel, and the drive that contains `path` (a device, file or folder).

    Raises:
        TargetError: If the path does not exist.
    """
    system = system or System()
    notes: list[str] = []
    disk = _disk_below(system, Path(path), notes)
    hints = _hints(Path(path), notes)
    queue = disk.directory / "queue" if disk is not None else None
    nvme = NvmeDataPlacement()
    if disk is not None and is_nvme(disk):
        nvme = ask_nvme(system, disk)
        notes += nvme.notes
    permanent = None
    if disk is not None and is_scsi(disk):
        permanent = read_streams(system.scsi, disk.node(system))
    return DataPlacementProbe(
        path=path,
        disk=None if disk is None else disk.name,
        kernel=os.uname().release,
        hints=hints,
        max_write_streams=None if queue is None else read_int(queue / "max_write_streams"),
        write_stream_granularity_bytes=(
            None if queue is None else read_int(queue / "write_stream_granularity")
        ),
        fdp_handles=nvme.fdp_handles,
        streams=nvme.streams,
        notes=tuple(notes),
        permanent_streams=permanent,
    )


def _hints(path: Path, notes: list[str]) -> tuple[HintAnswer, ...]:
    try:
        return try_hints(path)
    except TargetError as error:
        notes.append(f"{error}: hints were not tried")
        return ()


def _disk_below(system: System, path: Path, notes: list[str]) -> BlockDevice | None:
    node = system.stat_node(path)
    if node is None:
        raise TargetError(f"{path} is neither an existing file nor a device")
    try:
        number = node.number
        if not node.is_block:
            info = path.stat()
            number = (os.major(info.st_dev), os.minor(info.st_dev))
        return whole_disk(system, device_by_number(system, number, str(path)))
    except TargetError:
        notes.append(f"{path}: the kernel reports no block device below it")
        return None


@dataclass(frozen=True)
class NvmeDataPlacement:
    """Data placement support of an NVMe namespace; see `DataPlacementProbe`."""

    fdp_handles: int | None = None
    streams: Mapping[str, int] | None = None
    notes: tuple[str, ...] = ()


def ask_nvme(system: System, disk: BlockDevice) -> NvmeDataPlacement:
    """Read a drive's placement handles and streams, or None if nvme-cli cannot read them."""
    drive = NvmeDrive(system, disk)
    try:
        controller = drive.controller()
    except Refused as reason:
        absent = "nvme-cli is not installed: FDP and directives were not probed"
        return NvmeDataPlacement(notes=(absent if reason.absent else f"nvme id-ctrl: {reason}",))
    notes: list[str] = []
    handles, streams = 0, dict[str, int]()
    if controller.has_fdp:
        handles = handle_count(placement_handles(drive, 512))
        if not handles:
            notes.append("flexible data placement is not enabled on this namespace")
    if controller.has_directives and drive.has_streams():
        try:
            streams = drive.stream_parameters()
        except Refused:
            notes.append("the Streams directive is not enabled on this namespace")
    return NvmeDataPlacement(handles, streams, tuple(notes))


def verdict(probed: DataPlacementProbe) -> tuple[str, ...]:
    """Describe, in sentences, the hints and stream numbers that reach the drive."""
    sentences = _about_hints(probed.hints) if probed.hints else []
    streams, permanent = probed.max_write_streams, probed.permanent_streams
    if permanent is not None and permanent.count:
        sentences += _about_permanent_streams(permanent)
    elif streams:
        size = probed.write_stream_granularity_bytes
        each = f", each of {size} bytes at a time" if size else ""
        sentences.append(
            f"The block layer passes {streams} write streams to the drive{each}; the hint of a node"
            f" selects the stream of direct writes to {probed.disk}, from 1."
        )
    elif probed.disk is not None:
        report = "has no write streams" if streams == 0 else "does not report write streams"
        sentences.append(
            f"The kernel's queue of {probed.disk} {report}: hints do not reach the drive."
        )
    if probed.fdp_handles:
        sentences.append(f"FDP: {probed.fdp_handles} placement handles, through NVMe passthrough.")
    if probed.streams:
        count = probed.streams.get("nssa", 0)
        sentences.append(f"Streams directive: {count} streams available, through NVMe passthrough.")
    return tuple(sentences)


def _about_permanent_streams(streams: PermanentStreams) -> list[str]:
    lifetimes = ", ".join(map(str, streams.lifetimes))
    sentences = [f"SCSI: {streams.count} permanent streams, of relative lifetimes {lifetimes}."]
    if not streams.reduced_control:
        return [
            *sentences,
            "The drive does not support reduced stream control: hints do not reach it.",
        ]
    since = ".".join(map(str, KERNEL_SINCE))
    return [*sentences, f"Hint n of a direct write is its group number n, from Linux {since} on."]


def _about_hints(hints: tuple[HintAnswer, ...]) -> list[str]:
    sentences = []
    refused = [a for a in hints if a.call == "F_SET_RW_HINT" and a.refused]
    if refused:
        errors = ", ".join(f"{a.hint} ({a.refused})" for a in refused)
        sentences.append(f"F_SET_RW_HINT: the kernel rejects {errors}.")
    else:
        sentences.append("F_SET_RW_HINT: the kernel accepts all hints, as 64 bits.")
    short = next(a for a in hints if a.call == "F_SET_RW_HINT, 32 bits")
    if short.refused:
        sentences.append(
            f"A hint passed as 32 bits is rejected ({short.refused}) if stray bytes follow it: "
            "`writecliff capture` counts such calls of a program."
        )
    if all(a.refused for a in hints if a.call == "F_SET_FILE_RW_HINT"):
        sentences.append("F_SET_FILE_RW_HINT: rejected; hints of programs that use it are lost.")
    return sentences


# -- kernel write hints ----------------------------------------------------------------------------

# A hint is an inode property and changes no data; the probe restores the previous hint. Hint values
# are those that Linux defines (RWH_WRITE_LIFE_*). The kernel interface takes 64-bit arguments. The
# kernel rejects a value whose upper bits are not zero, so programs that pass a 32-bit enumeration
# lose their hints (RocksDB before pull request 12595).

HINTS = ("not set", "none", "short", "medium", "long", "extreme")
_GET_RW_HINT, _SET_RW_HINT = 1035, 1036  # fcntl commands that get and set the inode's hint.
_SET_FILE_RW_HINT = 1038  # fcntl command that sets the open file's hint; removed in Linux 5.18.
_DIRTY = 0xDEAD << 32  # Stray bits above a 32-bit argument.


@dataclass(frozen=True)
class HintAnswer:
    """Result of a hint call; `refused` is the error name, or `None` if the kernel accepted it."""

    call: str  # Call: "F_SET_RW_HINT", "F_SET_FILE_RW_HINT" or "F_SET_RW_HINT, 32 bits".
    hint: str
    refused: str | None


def try_hints(path: Path) -> tuple[HintAnswer, ...]:
    """Set every hint on a file, on a block device, or on a new file in a folder.

    Raises:
        TargetError: If the path cannot be opened for reading.
    """
    try:
        if path.is_dir():
            with tempfile.TemporaryFile(dir=path) as file:
                return _answers(file.fileno())
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise TargetError(f"{path}: {error.strerror}") from error
    try:
        return _answers(fd)
    finally:
        os.close(fd)


def _answers(fd: int) -> tuple[HintAnswer, ...]:
    before = _get(fd)
    answers = []
    for number, name in enumerate(HINTS):
        answers.append(HintAnswer("F_SET_RW_HINT", name, _set(fd, _SET_RW_HINT, number)))
    for number, name in enumerate(HINTS):
        refused = _set(fd, _SET_FILE_RW_HINT, number)
        answers.append(HintAnswer("F_SET_FILE_RW_HINT", name, refused))
    short = HINTS.index("short")
    refused = _set(fd, _SET_RW_HINT, short | _DIRTY)
    answers.append(HintAnswer("F_SET_RW_HINT, 32 bits", HINTS[short], refused))
    if before is not None:
        _set(fd, _SET_RW_HINT, before)
    return tuple(answers)


def _get(fd: int) -> int | None:
    try:
        return int(struct.unpack("=Q", fcntl.fcntl(fd, _GET_RW_HINT, struct.pack("=Q", 0)))[0])
    except OSError:
        return None


def _set(fd: int, command: int, value: int) -> str | None:
    try:
        fcntl.fcntl(fd, command, struct.pack("=Q", value))
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error.errno))
    return None
