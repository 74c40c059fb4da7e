"""How fast a job arrives, in fio's options: rates, arrival process, think time, start delay."""

from __future__ import annotations

import math

from writecliff.engines.fio.refuse import refuse, whole_percent
from writecliff.workload.model import Job

Option = tuple[str, str]

_US = 1000  # fio keeps these times in microseconds
_TOLERANCE = 0.01  # a rate that is rounded by more than this is worth a warning


def options(job: Job, warnings: list[str]) -> list[Option]:
    """Options for rates and pauses. Warns of what fio rounds."""
    return [*_rate(job, warnings), *_pauses(job)]


def is_rate_driven(job: Job) -> bool:
    return job.rate_iops is not None or job.rate_bytes_per_s is not None


def _pauses(job: Job) -> list[Option]:
    chosen: list[Option] = []
    if job.think_ns:
        if job.think_ns % _US:
            refuse(job.name, f"think_ns {job.think_ns}: fio takes whole microseconds")
        chosen.append(("thinktime", f"{job.think_ns // _US}us"))
        chosen.append(("thinktime_blocks", str(job.think_after_ios)))
    if job.start_delay_ns:
        chosen.append(("startdelay", f"{round(job.start_delay_ns / _US)}us"))
    return chosen


def _mean_block(job: Job) -> float:
    total = sum(size.weight for size in job.block_sizes)
    return sum(size.bytes * size.weight for size in job.block_sizes) / total


def _shares(job: Job) -> dict[int, float]:
    """Share of the I/Os by fio's direction: 0 read, 1 write, 2 trim."""
    if job.trim_pct:
        return {2: 1.0}
    reads = whole_percent(job.name, "read_pct", job.read_pct) / 100
    return {key: share for key, share in ((0, reads), (1, 1 - reads)) if share > 0}


def _rate(job: Job, warnings: list[str]) -> list[Option]:
    """fio's rates are per thread and per direction, and whole numbers."""
    if not is_rate_driven(job):
        if job.arrival == "poisson":
            refuse(job.name, "poisson arrivals need a rate (rate_iops)")
        return []
    if job.rate_iops is not None and job.rate_bytes_per_s is not None:
        refuse(job.name, "rate_iops and rate_bytes_per_s exclude each other")
    mean = _mean_block(job)
    if job.arrival == "poisson":
        return _poisson(job, mean, warnings)
    if job.rate_iops is not None:
        bytes_per_s = job.rate_iops * mean
        if len(job.block_sizes) > 1:
            warnings.append(
                f"job {job.name}: fio spaces a mix of block sizes by bytes,"
                f" {job.rate_iops:g} IOPS on average"
            )
    else:
        bytes_per_s = float(job.rate_bytes_per_s or 0)
    # In bytes, not IOPS: the same to fio, and a share of a thread is rounded far less.
    return [("rate", _split(job, bytes_per_s, mean))]


def _split(job: Job, total: float, least: float) -> str:
    """The list "read,write,trim" of one thread's rates; empty where there is no limit."""
    parts = ["", "", ""]
    for direction, share in _shares(job).items():
        rate = total * share / job.threads
        if rate < least / 3600:  # slower than one I/O an hour
            refuse(job.name, "its rate is too small for fio to spread over its threads")
        parts[direction] = str(max(1, round(rate)))
    return ",".join(parts).rstrip(",")


def _poisson(job: Job, mean_block: float, warnings: list[str]) -> list[Option]:
    """fio draws exponential gaps of mean `1000000 / rate_iops` microseconds, cut to whole ones."""
    if len(job.block_sizes) > 1:
        refuse(job.name, "fio has no poisson arrivals for a mix of block sizes")
    wanted = job.rate_iops
    if wanted is None:
        wanted = (job.rate_bytes_per_s or 0) / mean_block
    parts = ["", "", ""]
    applied = 0.0
    for direction, share in _shares(job).items():
        rate = round(wanted * share / job.threads)
        if rate < 1:
            refuse(
                job.name,
                f"{wanted:g} IOPS over {job.threads} threads is less than one an operation",
                hint="use fewer threads, or a linear arrival",
            )
        if rate > 1_000_000:
            refuse(job.name, f"{rate} poisson arrivals a second in one thread: fio takes 1000000")
        parts[direction] = str(rate)
        # A gap is drawn with a whole mean and then cut to whole microseconds itself.
        applied += 1e6 * math.expm1(1 / (1_000_000 // rate)) * job.threads
    if abs(applied - wanted) > wanted * _TOLERANCE:
        warnings.append(
            f"job {job.name}: fio rounds {wanted:g} poisson arrivals a second to {applied:.6g}"
        )
    return [("rate_iops", ",".join(parts).rstrip(",")), ("rate_process", "poisson")]
