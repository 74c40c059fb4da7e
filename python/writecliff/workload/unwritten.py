"""Detection of loads that read unwritten addresses, which a drive serves without its flash."""

from __future__ import annotations

from collections.abc import Iterable

from writecliff.workload.load import LoadStep
from writecliff.workload.model import Job

Range = tuple[int, int]  # Start and end in bytes.


def reads_unwritten(steps: Iterable[LoadStep], capacity_bytes: int) -> bool:
    """Return `True` if a job reads addresses on a new drive that no previous step covers.

    A step covers the ranges that the step writes sequentially from start to end. Random writes
    leave gaps.
    """
    covered: list[Range] = []
    for step in steps:
        jobs = () if step.rest_ns else step.workload.jobs
        ranges = [(job, _range(job, capacity_bytes)) for job in jobs]
        if any(_reads(job) and not _within(there, covered) for job, there in ranges):
            return True
        covered += [there for job, there in ranges if _fills(job, there)]
    return False


def _reads(job: Job) -> bool:
    zones = job.host_zones
    if zones is not None and not (zones.begin_full or zones.read_unwritten):
        return False  # The job reads only data that it wrote itself.
    given = job.log.operations if job.log is not None else ""
    given += job.model.streams.operations if job.model is not None else ""
    return "r" in given if given else job.read_pct > 0


def _range(job: Job, capacity_bytes: int) -> Range:
    given = job.range_bytes if job.model is None else job.model.range_bytes
    length = capacity_bytes - job.offset_bytes if given is None else given
    return job.offset_bytes, job.offset_bytes + length


def _fills(job: Job, there: Range) -> bool:
    """Return `True` if a job writes its whole range, not counting a partial last block."""
    only_writes = job.pattern == "sequential" and not job.read_pct and not job.trim_pct
    by_volume = job.duration_ns is None and job.ios is None
    whole = job.segments is None and job.log is None and job.model is None and not job.hole_bytes
    whole = whole and (job.host_zones is None or job.host_zones.capacity_bytes is None)
    largest = max(size.bytes for size in job.all_block_sizes)
    needed = there[1] - there[0] - largest
    return only_writes and by_volume and whole and (job.volume_bytes or 0) > needed


def _within(wanted: Range, covered: Iterable[Range]) -> bool:
    """Return `True` if the ranges cover all of `wanted` when combined."""
    begin, end = wanted
    for low, high in sorted(covered):
        if low > begin:
            break
        begin = max(begin, high)
    return begin >= end
