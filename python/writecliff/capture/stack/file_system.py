"""The file system that contains a folder, and the file system's block device."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from writecliff.capture.block.device import TracedDevice, traced_device
from writecliff.engines.blockdev.mounts import unescape
from writecliff.errors import StoreError, TargetError

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class FileSystem:
    """A mounted file system."""

    kind: str  # File system type, such as ext4 or xfs.
    place: Path
    number: tuple[
        int, int
    ]  # Device number of the files from stat, which differs from the block device number on btrfs.
    device: TracedDevice

    @property
    def kernel_number(self) -> int:
        """Device number in the format of kernel events."""
        return self.number[0] << 20 | self.number[1]

    def describe(self) -> dict[str, Any]:
        """Return a description of the file system for JSON output."""
        return {"type": self.kind, "mount": str(self.place), **self.device.describe()}


def file_system_of(folder: Path, mountinfo: Path = Path("/proc/self/mountinfo")) -> FileSystem:
    """Return the file system that contains `folder`.

    Raises:
        TargetError: If the folder does not exist, or is not on a block device (tmpfs, NFS,
            overlay).
    """
    try:
        info = folder.stat()
    except OSError:
        raise TargetError(f"the folder {folder} does not exist", hint="give --root") from None
    number = (os.major(info.st_dev), os.minor(info.st_dev))
    mounts = [
        (fields[4], rest[0], rest[1])
        for line in mountinfo.read_text().splitlines()
        if (halves := line.partition(" - "))[1]
        for fields, rest in [(halves[0].split(), halves[2].split())]
        if fields[2] == f"{number[0]}:{number[1]}"
    ]
    if not mounts:
        raise TargetError(f"the file system of {folder} is not mounted in this mount namespace")
    place, kind, source = mounts[0]
    source = unescape(source)
    if not source.startswith("/dev/"):
        raise TargetError(
            f"{folder} is on a file system of type {kind}, whose block device is unknown",
            hint="specify a --root folder whose file system is on a block device",
        )
    node = _node(source, number)
    return FileSystem(kind, Path(unescape(place)), number, traced_device(node))


def _node(source: str, number: tuple[int, int]) -> Path:
    """Return the device node, because `source` may be an obsolete name such as /dev/root."""
    by_number = Path(f"/sys/dev/block/{number[0]}:{number[1]}")
    if not Path(source).exists() and by_number.exists():
        return Path("/dev") / by_number.resolve().name.replace("!", "/")
    return Path(source)


def sync(folder: Path) -> None:
    """Write back all dirty page-cache data of the file system that contains `folder` (syncfs).

    Raises:
        StoreError: If the system call fails.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _libc.syncfs(descriptor):
            reason = os.strerror(ctypes.get_errno()).lower()
            raise StoreError(f"cannot sync {folder}: {reason}")
    finally:
        os.close(descriptor)
