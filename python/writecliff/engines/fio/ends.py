"""When a job ends, in fio's options. Its volume and I/O count are split over its threads."""

from __future__ import annotations

from writecliff.engines.fio.refuse import refuse
from writecliff.workload.model import Job

Option = tuple[str, str]


def options(job: Job) -> list[Option]:
    """The first of duration, volume and I/Os ends a job, in fio as in the model.

    fio also ends a job that has done `size` bytes, unless `time_based` or a larger `io_size` says
    otherwise; so one of the two is always given.
    """
    if job.duration_ns is None and job.volume_bytes is None and job.ios is None:
        refuse(job.name, "has no end", hint="give duration_ns, volume_bytes or ios")
    chosen: list[Option] = []
    if job.duration_ns is not None:
        chosen.append(("runtime", f"{max(1, round(job.duration_ns / 1000))}us"))
    if job.volume_bytes is None and job.ios is None:
        return [*chosen, ("time_based", "")]
    io_sizes = []
    if job.volume_bytes is not None:
        io_sizes.append(_volume(job, job.volume_bytes))
    if job.ios is not None:
        if job.ios % job.threads:
            refuse(job.name, f"{job.ios} I/Os do not divide by its {job.threads} threads")
        chosen.append(("number_ios", str(job.ios // job.threads)))
        io_sizes.append(job.ios // job.threads * max(size.bytes for size in job.block_sizes))
    return [*chosen, ("io_size", str(min(io_sizes)))]


def _volume(job: Job, volume_bytes: int) -> int:
    """Bytes of each thread: whole blocks, rounded up so that the volume is reached."""
    block = max(size.bytes for size in job.block_sizes)
    blocks = -(-volume_bytes // (block * job.threads))
    return blocks * block
