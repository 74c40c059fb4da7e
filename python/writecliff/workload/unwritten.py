"""Which loads read addresses that nothing has written: a drive answers them without its flash."""

from __future__ import annotations

from collections.abc import Iterable

from writecliff.workload.load import LoadStep
from writecliff.workload.model import Job

Range = tuple[int, int]  # begin and end in bytes


def reads_unwritten(
    steps: Iterable[LoadStep], capacity_bytes: int, written: Iterable[Range] = ()
) -> Job | None:
    """The first job that reads addresses which neither `written` nor the steps before it cover;
    None if there is none.

    A step covers what it writes in order from begin to end. Random writes leave gaps.
    """
    covered = list(written)
    for step in steps:
        for job in step.workload.jobs if not step.rest_ns else ():
            if job.read_pct > 0 and not _within(_range(job, capacity_bytes), covered):
                return job
        ranges = [(job, _range(job, capacity_bytes)) for job in step.workload.jobs]
        covered += [there for job, there in ranges if _fills(job, there)]
    return None


def _range(job: Job, capacity_bytes: int) -> Range:
    length = capacity_bytes - job.offset_bytes if job.range_bytes is None else job.range_bytes
    return job.offset_bytes, job.offset_bytes + length


def _fills(job: Job, there: Range) -> bool:
    """Whether a job writes its whole range, as far as its definition tells. What is left of a last
    block does not count."""
    only_writes = job.pattern == "sequential" and not job.read_pct and not job.trim_pct
    by_volume = job.duration_ns is None and job.ios is None and job.segments is None
    largest = max(size.bytes for size in job.block_sizes)
    needed = there[1] - there[0] - largest
    return only_writes and by_volume and (job.volume_bytes or 0) > needed


def _within(wanted: Range, covered: Iterable[Range]) -> bool:
    """Whether the ranges together cover all of `wanted`."""
    begin, end = wanted
    for low, high in sorted(covered):
        if low > begin:
            break
        begin = max(begin, high)
    return begin >= end
