"""Workload bursts and pauses (`Job.burst_ns`, `Job.pause_ns`), using one fio process per burst.

Processes start at multiples of burst + pause. fio takes a constant time from its start to its first
I/O (about 0.1 s), so pauses are accurate to a few milliseconds. fio's `thinktime_iotime` is not
used: before fio 3.34 its first burst lasts burst + pause, and since then, each period is extended
    by the latency of the I/Os in flight. In addition, fio does not report while a thread sleeps.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import replace

from writecliff.engines.fio.measured import Measured
from writecliff.engines.fio.parse import MS
from writecliff.engines.fio.rates import is_rate_driven
from writecliff.engines.fio.section import refuse
from writecliff.workload.model import Job, Workload

LEAST_PAUSE_NS = 500 * MS  # Stopping one process and starting the next takes up to 0.3 s.
LATE_SHARE = 0.05  # Fraction by which a pause may be longer before a warning is printed.
_LOOK_S = 1.0


def has_bursts(workload: Workload) -> bool:
    """Return True if a job has bursts or pauses."""
    return any(job.burst_ns or job.pause_ns for job in workload.jobs)


def burst_of(
    workload: Workload, number: int = 0, done: tuple[int, int] = (0, 0)
) -> Workload | None:
    """Return the workload of a burst, or None if the workload ends before the burst.

    Args:
        workload: The whole workload.
        number: Burst number, starting at 0.
        done: Number of I/Os and bytes in the previous bursts.

    Raises:
        EngineError: If the workload cannot be run in bursts.
    """
    for job in workload.jobs:
        _check(job)
    first = workload.jobs[0]
    same = {
        (job.burst_ns, job.pause_ns, job.start_delay_ns, job.duration_ns) for job in workload.jobs
    }
    if len(same) > 1 or (len(workload.jobs) > 1 and not _ends_by_time(workload)):
        refuse(
            workload.name,
            "the workload's jobs differ in pauses or stop conditions",
            "set the same burst_ns, pause_ns, start_delay_ns and duration_ns for all jobs",
        )
    at_ns = number * (first.burst_ns + first.pause_ns)
    if first.duration_ns is not None and at_ns >= first.duration_ns:
        return None
    left = [_rest(job, at_ns, *done) for job in workload.jobs]
    jobs = tuple(job for job in left if job is not None)
    return replace(workload, jobs=jobs, seed=_seed(workload.seed, number)) if jobs else None


def _seed(seed: int, number: int) -> int:
    """Return a seed that makes each burst use different addresses."""
    text = f"{seed}/burst/{number}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) >> 1


def _ends_by_time(workload: Workload) -> bool:
    return all(job.volume_bytes is None and job.ios is None for job in workload.jobs)


def _check(job: Job) -> None:
    for name, value in (("burst_ns", job.burst_ns), ("pause_ns", job.pause_ns)):
        if value <= 0:
            refuse(job.name, f"{name} is {value}, but burst_ns and pause_ns must both be above 0")
    if job.pause_ns < LEAST_PAUSE_NS:
        refuse(
            job.name,
            f"pause_ns is {job.pause_ns}, but starting fio for each burst takes up to 0.3 s",
            f"set pause_ns to at least {LEAST_PAUSE_NS}",
        )
    if job.ramp_ns:
        refuse(job.name, "ramp_ns and burst_ns cannot be combined in a job", "remove ramp_ns")
    if job.think_ns:
        refuse(job.name, "think_ns and burst_ns cannot be combined in a job")
    if is_rate_driven(job):
        refuse(job.name, "a rate cannot be combined with bursts", "remove the rate")


def _rest(job: Job, at_ns: int, ios: int, size: int) -> Job | None:
    """Return the job for one burst, or None if the job ends after `ios` I/Os or `size` bytes."""
    length_ns = job.burst_ns
    if job.duration_ns is not None:
        length_ns = min(length_ns, job.duration_ns - at_ns)
    volume, count = job.volume_bytes, job.ios
    if volume is not None:
        volume -= size
    if count is not None:  # fio requires a multiple of the thread count.
        count = -(-(count - ios) // job.threads) * job.threads
    if any(left is not None and left <= 0 for left in (volume, count)):
        return None
    return replace(
        job,
        burst_ns=0,
        pause_ns=0,
        start_delay_ns=0,
        duration_ns=length_ns,
        volume_bytes=volume,
        ios=count,
    )


def run_bursts(
    step: Measured, run_burst: Callable[[Workload], None], on_pause: Callable[[], None]
) -> None:
    """Run a step's bursts.

    `run_burst` runs a burst to completion, as the latest part of the step. `on_pause` is called
    repeatedly during pauses.
    """
    job = step.workload.jobs[0]
    begin_ns, number, late_ns = time.monotonic_ns(), 0, 0
    while (burst := burst_of(step.workload, number, step.done())) is not None:
        at_ns = job.start_delay_ns + number * (job.burst_ns + job.pause_ns)
        _sleep_until(begin_ns + at_ns, on_pause)
        now_ns = time.monotonic_ns() - begin_ns
        late_ns = max(late_ns, now_ns - at_ns)
        step.begin_part(now_ns / MS)
        run_burst(burst)
        number += 1
    # The workload ends after a time, not after a volume or I/O count.
    ended = burst_of(step.workload, number) is None
    if job.duration_ns is not None and ended:
        end_ns = job.start_delay_ns + job.duration_ns
        _sleep_until(begin_ns + end_ns, on_pause)
        step.pause_end_ms = end_ns / MS
    if late_ns > LATE_SHARE * job.pause_ns:
        step.notes.append(
            f"a pause was {late_ns / 1e9:.2f} s longer than {job.pause_ns / 1e9:g} s,"
            " because the machine started fio late"
        )


def _sleep_until(at_ns: int, on_pause: Callable[[], None]) -> None:
    while (left_s := (at_ns - time.monotonic_ns()) / 1e9) > 0:
        time.sleep(min(left_s, _LOOK_S))
        on_pause()
