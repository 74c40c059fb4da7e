"""Host zones on a drive at a fraction of its size: zones shrink with it down to their blocks, and
become fewer below that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from writecliff.workload.model import Job

_SECTOR_BYTES = 512
_SLOT_BYTES = 4096


@dataclass(frozen=True)
class SmallZones:
    """The zones of all jobs of a workload on the small drive."""

    scale: float
    drive_bytes: int
    size_bytes: int
    capacity_bytes: int | None

    @classmethod
    def of(cls, jobs: Iterable[Job], scale: float, drive_bytes: int) -> SmallZones | None:
        """Those of a drive of `drive_bytes`; None if the jobs have no zones."""
        zoned = [job for job in jobs if job.host_zones is not None]
        if not zoned or (whole := zoned[0].host_zones) is None:
            return None
        size = max(_slots(_largest(zoned)), _slots(whole.size_bytes / scale))
        capacity = whole.capacity_bytes
        if capacity is not None:
            sectors = round(capacity * size / whole.size_bytes / _SECTOR_BYTES)
            least = _largest([job for job in zoned if job.trim_pct < 100])
            capacity = min(size, max(least, sectors * _SECTOR_BYTES))
        return cls(scale, drive_bytes, size, capacity)

    def job(self, whole: Job, small: Job) -> Job:
        """`small`, the job that became of `whole`, in whole zones of the small drive."""
        if small.host_zones is None:
            return small
        size = self.size_bytes
        every = self.drive_bytes // size
        first = min(int(whole.offset_bytes / self.scale) // size, every - 1)
        count = every - first
        if whole.range_bytes is not None:
            count = min(count, max(1, round(whole.range_bytes / self.scale / size)))
        zones = replace(small.host_zones, size_bytes=size, capacity_bytes=self.capacity_bytes)
        return replace(small, offset_bytes=first * size, range_bytes=count * size, host_zones=zones)


def _largest(jobs: Iterable[Job]) -> int:
    return max((size.bytes for job in jobs for size in job.all_block_sizes), default=0)


def _slots(size: float) -> int:
    return -int(-size // _SLOT_BYTES) * _SLOT_BYTES
