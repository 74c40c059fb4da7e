"""When a job ends, in fio's options. Its volume and I/O count are split over its threads."""

from __future__ import annotations

from writecliff.engines.fio.section import Section


def add_ends(section: Section) -> None:
    """The first of duration, volume and I/Os ends a job, in fio as in the model.

    fio also ends a job that has done `size` bytes, unless `time_based` or a larger `io_size` says
    otherwise; so one of the two is always given.
    """
    job = section.job
    block = max(size.bytes for size in job.block_sizes)
    if job.duration_ns is None and job.volume_bytes is None and job.ios is None:
        section.refuse("has no end", "give duration_ns, volume_bytes or ios")
    if job.duration_ns is not None:
        section.add("runtime", f"{max(1, round(job.duration_ns / 1000))}us")
    if job.volume_bytes is None and job.ios is None:
        section.add("time_based")
        return
    io_sizes = []
    if job.volume_bytes is not None:  # whole blocks, rounded up so that the volume is reached
        io_sizes.append(-(-job.volume_bytes // (block * job.threads)) * block)
    if job.ios is not None:
        if job.ios % job.threads:
            section.refuse(f"{job.ios} I/Os are not divisible by its {job.threads} threads")
        section.add("number_ios", job.ios // job.threads)
        io_sizes.append(job.ios // job.threads * block)
    section.add("io_size", min(io_sizes))
