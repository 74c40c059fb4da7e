"""When a job issues I/Os and when it ends, in fio's options: rates, arrival process, think time,
start delay, ends. Bursts and pauses are not options of fio's: see `bursts`.
"""

from __future__ import annotations

import math

from writecliff.engines.fio.section import Section
from writecliff.workload.model import Job

_US = 1000  # fio keeps these times in microseconds
_TOLERANCE = 0.01  # rounding a rate by more than this is worth a warning
_POISSON_MAX = 1_000_000  # arrivals per second in one thread


def is_rate_driven(job: Job) -> bool:
    """Whether a rate, not the completion of I/Os, decides when a job issues the next one."""
    return job.rate_iops is not None or job.rate_bytes_per_s is not None


def add_rates(section: Section) -> None:
    """Add rates, think time and start delay; warn of what fio rounds."""
    job = section.job
    if is_rate_driven(job):
        _add_rate(section)
    elif job.arrival == "poisson":
        section.refuse("poisson arrivals need a rate (rate_iops)")
    if job.think_ns:
        if job.think_ns % _US:
            section.refuse(f"think_ns {job.think_ns}: fio takes whole microseconds")
        section.add("thinktime", f"{job.think_ns // _US}us")
        section.add("thinktime_blocks", job.think_after_ios)
        if job.rate_ignores_think:
            section.add("rate_ignore_thinktime", 1)
    if job.start_delay_ns:
        section.add("startdelay", f"{round(job.start_delay_ns / _US)}us")
    if job.ramp_ns:
        section.add("ramp_time", f"{max(1, round(job.ramp_ns / _US))}us")


def _shares(section: Section) -> dict[int, float]:
    """Share of the I/Os by fio's direction: 0 read, 1 write, 2 trim."""
    if section.job.trim_pct:
        return {2: 1.0}
    if (share := section.job.rate_read_pct) is not None:
        return {0: share / 100, 1: 1 - share / 100}
    reads = section.whole_percent("read_pct", section.job.read_pct) / 100
    return {key: share for key, share in ((0, reads), (1, 1 - reads)) if share > 0}


def _add_rate(section: Section) -> None:
    """Add the rates, which fio counts per thread and per direction in whole numbers."""
    job = section.job
    if job.rate_iops is not None and job.rate_bytes_per_s is not None:
        section.refuse("rate_iops and rate_bytes_per_s exclude each other")
    if job.writes or job.trims:
        section.refuse("a rate of operations with different block sizes", "use a job for each")
    total = sum(size.weight for size in job.block_sizes)
    mean_block = sum(size.bytes * size.weight for size in job.block_sizes) / total
    if job.arrival == "poisson":
        _add_poisson(section, mean_block)
        return
    if job.rate_iops is not None:
        bytes_per_s = job.rate_iops * mean_block
        if len(job.block_sizes) > 1:
            section.warn(
                f"fio spaces a mix of block sizes by bytes, {job.rate_iops:g} IOPS on average"
            )
    else:
        bytes_per_s = float(job.rate_bytes_per_s or 0)
    # In bytes, not IOPS: the same to fio, and the share of a thread is rounded far less.
    parts = ["", "", ""]
    for direction, share in _shares(section).items():
        rate = bytes_per_s * share / job.threads
        if rate < mean_block / 3600:  # slower than one I/O per hour
            section.refuse("its rate is too small for fio to spread over its threads")
        parts[direction] = str(max(1, round(rate)))
    section.add("rate", ",".join(parts).rstrip(","))


def _add_poisson(section: Section, mean_block: float) -> None:
    """Fio draws exponential gaps of mean `1000000 / rate_iops` microseconds, cut to whole ones."""
    job = section.job
    if len(job.block_sizes) > 1:
        section.refuse("fio has no poisson arrivals for a mix of block sizes")
    wanted = job.rate_iops
    if wanted is None:
        wanted = (job.rate_bytes_per_s or 0) / mean_block
    parts = ["", "", ""]
    applied = 0.0
    for direction, share in _shares(section).items():
        rate = round(wanted * share / job.threads)
        if rate < 1:
            section.refuse(
                f"{wanted:g} IOPS over {job.threads} threads is less than one per operation",
                "use fewer threads, or a linear arrival",
            )
        if rate > _POISSON_MAX:
            section.refuse(
                f"{rate} poisson arrivals per second in one thread: fio takes {_POISSON_MAX}"
            )
        parts[direction] = str(rate)
        # A gap is drawn with a whole mean and then cut to whole microseconds itself.
        applied += 1e6 * math.expm1(1 / (1_000_000 // rate)) * job.threads
    if abs(applied - wanted) > wanted * _TOLERANCE:
        section.warn(f"fio rounds {wanted:g} poisson arrivals per second to {applied:.6g}")
    section.add("rate_iops", ",".join(parts).rstrip(","))
    section.add("rate_process", "poisson")


def add_ends(section: Section) -> None:
    """The first of duration, volume and I/Os ends a job, in fio as in the model. Its volume and I/O
    count are split over its threads.

    fio also ends a job that has done `size` bytes, unless `time_based` or a larger `io_size` says
    otherwise; so one of the two is always given.
    """
    job = section.job
    block = max(size.bytes for size in job.all_block_sizes)
    if job.duration_ns is None and job.volume_bytes is None and job.ios is None:
        section.refuse("has no end", "give duration_ns, volume_bytes or ios")
    if job.ends_all:
        section.add("exitall")
    if job.flow_weight:
        section.add("flow", job.flow_weight)
        section.add("flow_id", job.flow_group)
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
