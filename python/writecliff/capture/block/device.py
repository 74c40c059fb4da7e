"""The device that is captured: its number, which part of it, and which events tell of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from writecliff.engines.blockdev.topology import (
    SECTOR,
    BlockDevice,
    System,
    device_at,
    label_of,
    read_int,
    whole_disk,
)

REQUEST_EVENTS = (
    "block_getrq", "block_rq_issue", "block_rq_complete", "block_rq_requeue", "block_rq_merge",
    "block_bio_frontmerge",
)  # fmt: skip
"""A request is made, issued, completed; returned; or merged with others before it is issued."""

BIO_EVENTS = ("block_bio_queue", "block_bio_complete")
"""Of devices that take bios as they come and make no requests (dm, md, zram, NVMe multipath)."""


@dataclass(frozen=True)
class TracedDevice:
    """A whole disk, or a partition of it: addresses are relative to its begin."""

    path: Path
    device: BlockDevice
    disk: BlockDevice  # its whole disk, which the kernel's events name
    first_sector: int
    end_sector: int

    @property
    def filter(self) -> str:
        """Lets only events of the disk through."""
        major, minor = self.disk.number
        return f"dev == {major << 20 | minor}"

    @property
    def has_requests(self) -> bool:
        """Whether the kernel makes requests of what the disk is asked for."""
        return (self.disk.directory / "mq").is_dir()

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
    return TracedDevice(path, device, disk, first, first + device.size_bytes // SECTOR)


def _scheduler(disk: BlockDevice) -> str | None:
    try:
        text = (disk.directory / "queue/scheduler").read_text()
    except OSError:
        return None
    chosen = text.partition("[")[2].partition("]")[0]
    return chosen or text.strip() or None
