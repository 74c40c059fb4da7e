"""Compares readings of the machine and the drive around each step, and names what disturbed it.

Also counts what has been written since the purge, which decides whether a drop in throughput can be
the end of an SLC cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from writecliff.engines import disturbance
from writecliff.engines.base import OPERATIONS, Operation
from writecliff.engines.fio.intervals import IntervalSeries, Stats
from writecliff.workload.model import Job, Workload

if TYPE_CHECKING:
    import numpy as np

    from writecliff.engines.disturbance import Reading
    from writecliff.engines.fio.command import FioPlan

_WRITE = OPERATIONS.index("write")


def own_bytes(stats: Stats) -> dict[Operation, int]:
    """Bytes of all jobs by operation."""
    total: dict[Operation, int] = dict.fromkeys(OPERATIONS, 0)
    for (_, operation), one in stats.items():
        total[operation] += one.bytes
    return total


def _issues_freely(job: Job) -> bool:
    """Whether only the drive limits a job's writes, from start to end."""
    paced = job.rate_iops or job.rate_bytes_per_s or job.think_ns or job.pause_ns
    return job.read_pct == 0 and not job.trim_pct and not paced and not job.start_delay_ns


class DisturbanceWatch:
    """Finds the disturbances of the steps of one engine."""

    def __init__(self, disk_name: str, capacity_bytes: int) -> None:
        self._disk_name = disk_name
        self._capacity_bytes = capacity_bytes
        self._since_purge: int | None = None  # None: not purged by this engine

    def purged(self) -> None:
        self._since_purge = 0

    def conclude(
        self,
        workload: Workload,
        plan: FioPlan,
        series: IntervalSeries,
        before: Reading,
        after: Reading,
        *,
        complete: bool,
    ) -> tuple[list[str], dict[str, object]]:
        """The disturbances of a step as texts, and its figures; also counts its writes.

        The last I/Os of a failed step are unknown, so its foreign I/O is not computed.
        """
        mine = own_bytes(series.stats)
        known = mine if complete and plan.counted else None
        texts, figures = disturbance.between(before, after, known, self._disk_name)
        if self._since_purge is not None:
            if complete and all(_issues_freely(job) for job in workload.jobs):
                texts += self._cache_end(series.columns(), self._since_purge)
            self._since_purge += mine["write"]
        return texts, figures

    def _cache_end(self, columns: dict[str, np.ndarray], written: int) -> list[str]:
        import numpy as np

        writes = columns["operation"] == _WRITE
        ends, rows = np.unique(columns["end_ns"][writes], return_inverse=True)
        sizes = np.bincount(rows, weights=columns["bytes"][writes], minlength=len(ends))
        text = disturbance.end_of_slc_cache(
            ends.tolist(), [round(size) for size in sizes], written, self._capacity_bytes
        )
        return [text] if text else []
