"""fio options for a job's rates, arrival process, think time, start delay and end.

Bursts and pauses have no equivalent fio options; see `bursts`.
"""

from __future__ import annotations

import math

from writecliff.engines.fio.section import Section
from writecliff.workload.model import Job

_US = 1000  # fio's time unit (microseconds), in ns.
_TOLERANCE = 0.01  # Relative rounding error of a rate above which a warning is printed.
_POISSON_MAX = 1_000_000  # Maximum arrivals per second in a thread.


def is_rate_driven(job: Job) -> bool:
    """Return True if a rate, not the completion of I/Os, determines when a job issues I/Os."""
    return job.rate_iops is not None or job.rate_bytes_per_s is not None


def add_rates(section: Section) -> None:
    """Add rates, think time and start delay, and warn about rounding."""
    job = section.job
    if is_rate_driven(job):
        _add_rate(section)
    elif job.arrival == "poisson":
        section.refuse("poisson arrivals require a rate (rate_iops)")
    if job.think_ns:
        if job.think_ns % _US:
            section.refuse(
                f"think_ns {job.think_ns} is not a multiple of 1000: fio accepts whole "
                f"microseconds only"
            )
        section.add("thinktime", f"{job.think_ns // _US}us")
        section.add("thinktime_blocks", job.think_after_ios)
        if job.rate_ignores_think:
            section.add("rate_ignore_thinktime", 1)
    if job.start_delay_ns:
        section.add("startdelay", f"{round(job.start_delay_ns / _US)}us")
    if job.ramp_ns:
        section.add("ramp_time", f"{max(1, round(job.ramp_ns / _US))}us")


def _shares(section: Section) -> dict[int, float]:
    """Return the I/O fraction for each fio direction (0 is read, 1 is write, 2 is trim)."""
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
        section.refuse("rate_iops and rate_bytes_per_s are mutually exclusive")
    if job.writes or job.trims:
        section.refuse("for a rate of mixed operations, fio requires equal block sizes",
                       "use a separate job for each operation")  # fmt: skip
    total = sum(size.weight for size in job.block_sizes)
    mean_block = sum(size.bytes * size.weight for size in job.block_sizes) / total
    if job.arrival == "poisson":
        _add_poisson(section, mean_block)
        return
    if job.rate_iops is not None:
        bytes_per_s = job.rate_iops * mean_block
        if len(job.block_sizes) > 1:
            section.warn(f"fio paces a block size mix by bytes, {job.rate_iops:g} IOPS on average")
    else:
        bytes_per_s = float(job.rate_bytes_per_s or 0)
    # The rate is set in bytes rather than IOPS. fio treats both alike, but rounds a thread's byte
    # rate less.
    parts = ["", "", ""]
    for direction, share in _shares(section).items():
        rate = bytes_per_s * share / job.threads
        if rate < mean_block / 3600:  # The rate is below one I/O per hour.
            section.refuse("the job's rate is too small for fio to divide among its threads")
        parts[direction] = str(max(1, round(rate)))
    section.add("rate", ",".join(parts).rstrip(","))


def _add_poisson(section: Section, mean_block: float) -> None:
    """Add Poisson arrivals, whose mean gap in fio is `1000000 / rate_iops` whole microseconds."""
    job = section.job
    if len(job.block_sizes) > 1:
        section.refuse("fio does not support poisson arrivals for a block size mix")
    wanted = job.rate_iops
    if wanted is None:
        wanted = (job.rate_bytes_per_s or 0) / mean_block
    parts = ["", "", ""]
    applied = 0.0
    for direction, share in _shares(section).items():
        rate = round(wanted * share / job.threads)
        if rate < 1:
            section.refuse(
                f"{wanted:g} IOPS over {job.threads} threads is less than 1 IOPS per operation",
                "use fewer threads, or linear arrivals",
            )
        if rate > _POISSON_MAX:
            section.refuse(
                f"{rate} poisson arrivals per second in one thread exceed fio's maximum of "
                f"{_POISSON_MAX}"
            )
        parts[direction] = str(rate)
        # The mean gap is a whole number of microseconds, and fio truncates each gap to
        # microseconds.
        applied += 1e6 * math.expm1(1 / (1_000_000 // rate)) * job.threads
    if abs(applied - wanted) > wanted * _TOLERANCE:
        section.warn(f"fio rounds {wanted:g} poisson arrivals per second to {applied:.6g}")
    section.add("rate_iops", ",".join(parts).rstrip(","))
    section.add("rate_process", "poisson")


def add_ends(section: Section) -> None:
    """Add a job's end condition: its duration, volume or I/O count, whichever comes first.

    Volume and I/O count are divided among the job's threads. fio also ends a job after `size` bytes
    unless `time_based` or a larger `io_size` is set, so one of these options is always set.
    """
    job = section.job
    block = max(size.bytes for size in job.all_block_sizes)
    if job.duration_ns is None and job.volume_bytes is None and job.ios is None:
        section.refuse("the job has no stop condition", "set duration_ns, volume_bytes or ios")
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
    if job.volume_bytes is not None:  # Whole blocks, rounded up so that the job reaches the volume.
        io_sizes.append(-(-job.volume_bytes // (block * job.threads)) * block)
    if job.ios is not None:
        if job.ios % job.threads:
            section.refuse(f"{job.ios} I/Os are not divisible by its {job.threads} threads")
        section.add("number_ios", job.ios // job.threads)
        io_sizes.append(job.ios // job.threads * block)
    section.add("io_size", min(io_sizes))
