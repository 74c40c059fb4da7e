"""The device that is captured: its number, which part of it, and which events tell of it."""

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
"""A request is made, issued, completed; returned; or merged with others before it is issued."""

BIO_EVENTS = ("block_bio_queue", "block_bio_complete")
"""Of devices that take bios as they come and make no requests (dm, md, zram)."""


@dataclass(frozen=True)
class TracedDevice:
    """A whole disk, or a partition of it: addresses are relative to its begin."""

    path: Path
    device: BlockDevice
    disk: BlockDevice  # its whole disk, which the kernel's events name
    first_sector: int
    end_sector: int
    paths: tuple[DeviceNumber, ...] = ()
    """The hidden disks of a multipath NVMe drive: they get the requests."""

    @property
    def filter(self) -> str:
        """Lets only events through by which requests are known."""
        return _filter(self.paths or (self.disk.number,))

    @property
    def bio_filter(self) -> str:
        """Lets only bios for the disk through."""
        return _filter((self.disk.number,))

    @property
    def has_requests(self) -> bool:
        """Whether the kernel makes requests of what the disk is asked for."""
        return bool(self.paths) or (self.disk.directory / "mq").is_dir()

    @property
    def events(self) -> tuple[str, ...]:
        return REQUEST_EVENTS if self.has_requests else BIO_EVENTS

    def describe(self) -> dict[str, Any]:
        """What the metadata of a trace say of it."""
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
    """The device at `path`. Raises TargetError if there is none."""
    system = system or System()
    device = device_at(system, path)
    first = read_int(device.directory / "start") or 0 if device.is_partition else 0
    disk = whole_disk(system, device)
    end = first + device.size_bytes // SECTOR
    return TracedDevice(path, device, disk, first, end, _paths(system, disk))


def _filter(numbers: tuple[DeviceNumber, ...]) -> str:
    """In the kernel's own form of device numbers."""
    return " || ".join(f"dev == {major << 20 | minor}" for major, minor in numbers)


def _paths(system: System, disk: BlockDevice) -> tuple[DeviceNumber, ...]:
    """The disk nvme0n1 has nvme0c0n1 and the like; sysfs does not tell their numbers."""
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
