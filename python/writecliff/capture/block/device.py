"""The captured device, with its number, captured address range and required tracepoints."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from writecliff.engines.blockdev.topology import (
    SECTOR,
    BlockDevice,
    DeviceNumber,
    System,
    device_at,
    label_of,
    read_int,
    read_text,
    whole_disk,
)

_MULTIPATH = re.compile(r"(nvme\d+)(n\d+)")
REQUEST_EVENTS = (
    "block_getrq", "block_rq_issue", "block_rq_complete", "block_rq_requeue", "block_rq_merge",
    "block_bio_frontmerge",
)  # fmt: skip
"""Creation, issue, completion and requeueing of a request, and merges before its issue."""

BIO_EVENTS = ("block_bio_queue", "block_bio_complete")
"""Events of devices that take bios directly, without requests (dm, md, zram)."""


@dataclass(frozen=True)
class TracedDevice:
    """A whole disk or a partition, with addresses relative to its start."""

    path: Path
    device: BlockDevice
    disk: BlockDevice  # Whole disk, because kernel events name whole disks.
    first_sector: int
    end_sector: int
    paths: tuple[DeviceNumber, ...] = ()
    """Hidden disks of a multipath NVMe drive, which receive the requests."""

    @property
    def filter(self) -> str:
        """Event filter that passes the disk's requests."""
        return _filter(self.paths or (self.disk.number,))

    @property
    def bio_filter(self) -> str:
        """Event filter that passes the disk's bios."""
        return _filter((self.disk.number,))

    @property
    def has_requests(self) -> bool:
        """`True` if the kernel creates requests for the disk."""
        return bool(self.paths) or (self.disk.directory / "mq").is_dir()

    @property
    def events(self) -> tuple[str, ...]:
        """Names of the tracepoints to record."""
        return REQUEST_EVENTS if self.has_requests else BIO_EVENTS

    def describe(self) -> dict[str, Any]:
        """Return the device description for the metadata of a trace."""
        major, minor = self.device.number
        return {
            "path": str(self.path),
            "name": self.device.name,
            "number": f"{major}:{minor}",
            "disk": self.disk.name,
            "model": label_of(self.disk).model,
            "size_bytes": self.device.size_bytes,
            "first_sector": self.first_sector,
            "requests": self.has_requests,
            "scheduler": _scheduler(self.disk),
        }


def traced_device(path: Path, system: System | None = None) -> TracedDevice:
    """Return the device at `path`.

    Raises:
        TargetError: If the device does not exist.
    """
    system = system or System()
    device = device_at(system, path)
    first = read_int(device.directory / "start") or 0 if device.is_partition else 0
    disk = whole_disk(system, device)
    end = first + device.size_bytes // SECTOR
    return TracedDevice(path, device, disk, first, end, _paths(system, disk))


def _filter(numbers: tuple[DeviceNumber, ...]) -> str:
    """Return a filter with the device numbers in the kernel's format."""
    return " || ".join(f"dev == {major << 20 | minor}" for major, minor in numbers)


def _paths(system: System, disk: BlockDevice) -> tuple[DeviceNumber, ...]:
    """Return the hidden disks of a disk, such as nvme0c0n1 for nvme0n1, from /proc/diskstats."""
    match = _MULTIPATH.fullmatch(disk.name)
    if match is None or (disk.directory / "mq").is_dir():
        return ()
    path = re.compile(rf"{match[1]}c\d+{match[2]}")
    rows = [line.split() for line in (read_text(system.proc / "diskstats") or "").splitlines()]
    return tuple((int(row[0]), int(row[1])) for row in rows if path.fullmatch(row[2]))


def _scheduler(disk: BlockDevice) -> str | None:
    try:
        text = (disk.directory / "queue/scheduler").read_text()
    except OSError:
        return None
    chosen = text.partition("[")[2].partition("]")[0]
    return chosen or text.strip() or None
