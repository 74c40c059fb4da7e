"""How far a running workload is, from what its jobs have done and when they end."""

from __future__ import annotations

from writecliff.engines.base import Progress
from writecliff.engines.fio.intervals import IntervalSeries
from writecliff.workload.model import Job, Workload


def _job_fraction(job: Job, elapsed_ns: float, ios: int, size: int) -> float:
    """A job ends at the first of its ends, so the furthest advanced one counts."""
    parts = []
    if job.duration_ns is not None:
        parts.append((elapsed_ns - job.start_delay_ns) / max(1, job.duration_ns))
    if job.volume_bytes is not None:
        parts.append(size / max(1, job.volume_bytes))
    if job.ios is not None:
        parts.append(ios / max(1, job.ios))
    return min(1.0, max(0.0, *parts)) if parts else 0.0


def progress_of(workload: Workload, series: IntervalSeries) -> Progress:
    """A workload is as far as its slowest job."""
    elapsed_ns = series.elapsed_ms * 1e6
    fractions = []
    for index, job in enumerate(workload.jobs):
        mine = [one for (owner, _), one in series.stats.items() if owner == index]
        ios, size = sum(one.ios for one in mine), sum(one.bytes for one in mine)
        fractions.append(_job_fraction(job, elapsed_ns, ios, size))
    return Progress(
        fraction=min(fractions, default=None),
        elapsed_ns=round(elapsed_ns),
        ios=series.ios,
        iops=series.iops(),
    )
