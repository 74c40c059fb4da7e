"""Detection of disturbances from machine and drive readings before and after each step.

The module also counts the bytes written since the purge, because a drop in throughput can mark a
full SLC cache only within the first drive capacity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from writecliff.engines import disturbance
from writecliff.engines.base import OPERATIONS
from writecliff.workload.model import Job

if TYPE_CHECKING:
    import numpy as np

    from writecliff.engines.base import Operation
    from writecliff.engines.disturbance import Reading
    from writecliff.workload.model import Workload

_WRITE = OPERATIONS.index("write")
# Maximum time between fio's report of a cut and the reading of the kernel's statistics.
_CUT_MS = 250.0


def _issues_freely(job: Job) -> bool:
    """Return True if only the drive limits a job's writes, throughout the job."""
    paced = job.rate_iops or job.rate_bytes_per_s or job.think_ns or job.pause_ns
    at_once = not job.start_delay_ns and not job.ramp_ns
    return job.read_pct == 0 and not job.trim_pct and not paced and at_once


class Watched(Protocol):
    """A completed step, run by fio or as timed I/O."""

    @property
    def workload(self) -> Workload:
        """Workload of the step."""
        ...

    @property
    def before(self) -> Reading:
        """Drive and machine reading before the step."""
        ...

    @property
    def counted(self) -> bool:
        """True if the I/Os pass through the block layer, which counts I/Os."""
        ...

    @property
    def goes_on(self) -> bool:
        """True if the load continues after the step."""
        ...

    @property
    def since_ms(self) -> float:
        """Start time of the step on the load's clock."""
        ...

    @property
    def late_ms(self) -> float:
        """Delay between a report at a cut and the processing of the report."""
        ...

    @property
    def elapsed_ms(self) -> float:
        """Step length in ms."""
        ...

    def own_bytes(self) -> dict[Operation, int]:
        """Return the bytes of all jobs by operation."""
        ...


class DisturbanceWatch:
    """Detector of disturbances during the steps of an engine."""

    def __init__(self, disk_name: str, capacity_bytes: int) -> None:
        """Watch a disk, which is called `disk_name` in texts."""
        self._disk_name = disk_name
        self._capacity_bytes = capacity_bytes
        self._since_purge: int | None = None  # `None` if this engine has not purged the drive.

    def purged(self) -> None:
        """Restart the count of written bytes after a purge."""
        self._since_purge = 0

    def conclude(
        self,
        step: Watched,
        after: Reading,
        columns: Mapping[str, np.ndarray],
        *,
        complete: bool,
    ) -> tuple[list[str], dict[str, object]]:
        """Return a step's disturbances and figures, and add its writes to the written bytes.

        `columns` is the step's time series. For a failed step, the I/O by other programs is
        unknown, because the step's last I/Os are unknown.
        """
        mine = step.own_bytes()
        issued = mine if complete and step.counted else None
        slack = 0
        if step.goes_on or step.since_ms:  # Step cut out of a load that continued in the meantime.
            rate = sum(mine.values()) / max(1.0, step.elapsed_ms)
            slack = round((_CUT_MS + step.late_ms) * rate)
        texts, figures = disturbance.between(step.before, after, issued, self._disk_name, slack)
        if self._since_purge is not None:
            if complete and all(_issues_freely(job) for job in step.workload.jobs):
                texts += self._cache_end(columns, self._since_purge)
            self._since_purge += mine["write"]
        return texts, figures

    def _cache_end(self, columns: Mapping[str, np.ndarray], written: int) -> list[str]:
        import numpy as np

        writes = columns["operation"] == _WRITE
        ends, rows = np.unique(columns["end_ns"][writes], return_inverse=True)
        sizes = np.bincount(rows, weights=columns["bytes"][writes], minlength=len(ends))
        text = disturbance.end_of_slc_cache(
            ends.tolist(), [round(size) for size in sizes], written, self._capacity_bytes
        )
        return [text] if text else []
