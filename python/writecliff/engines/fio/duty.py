"""Bursts and pauses of a job, in fio's options, and where fio falls short.

Owns: `burst_ns`/`pause_ns` as `thinktime_iotime`/`thinktime`. Each thread issues for the first,
lets its I/Os in flight end, and sleeps for the second; threads keep their own clocks, which start
together. Facts of fio (its history): the option exists since 3.28; until 3.33 the first burst lasts
burst + pause, and a pause is measured from the end of its burst so that bursts keep an exact
period; since 3.34 the first burst is as long as the others, and a period is longer than burst +
pause by the time that the I/Os in flight take to end.

fio answers no request for a report while a thread sleeps. `intervals.Series` puts the report that
was held back where it belongs, which is possible only if all jobs of a workload pause alike.
"""

from __future__ import annotations

from writecliff.engines.fio.capability import Fio
from writecliff.engines.fio.rates import is_rate_driven
from writecliff.engines.fio.refuse import refuse
from writecliff.workload.model import Job, Workload

Option = tuple[str, str]

SINCE = (3, 28)
FIRST_BURST_SINCE = (3, 34)
_US = 1000
_LONGEST_US = (1 << 31) - 1  # fio keeps both in 32 bits


def options(job: Job, fio: Fio, warnings: list[str]) -> list[Option]:
    """Options of a job with pauses; none for others. Warns of an over-long first burst."""
    if not (job.burst_ns or job.pause_ns):
        return []
    _check(job, fio)
    if fio.version < FIRST_BURST_SINCE:
        first, others = (job.burst_ns + job.pause_ns) / 1e9, job.burst_ns / 1e9
        warnings.append(
            f"job {job.name}: {fio.version_text} makes the first burst last {first:g} s instead of"
            f" {others:g} s (fio 3.34 and later do not)"
        )
    return [
        ("thinktime", f"{job.pause_ns // _US}us"),
        ("thinktime_iotime", f"{job.burst_ns // _US}us"),
    ]


def _check(job: Job, fio: Fio) -> None:
    for name, value in (("burst_ns", job.burst_ns), ("pause_ns", job.pause_ns)):
        if value <= 0:
            refuse(job.name, f"{name} is {value}: bursts and pauses go together, both above 0")
        if value % _US or value // _US > _LONGEST_US:
            refuse(job.name, f"{name} {value}: fio takes whole microseconds, up to 2147 s")
    if job.think_ns:
        refuse(job.name, "think_ns and burst_ns exclude each other")
    if is_rate_driven(job):
        refuse(job.name, "fio has no rate within bursts", hint="leave the rate out")
    if fio.version < SINCE:
        refuse(
            job.name,
            f"{fio.version_text} has no bursts and pauses",
            hint="install fio 3.28 or later (3.34 for an exact first burst)",
        )


def duty_of(workload: Workload) -> tuple[int, int]:
    """(burst, pause) of all jobs in ns, zeros if they do not pause. Refuses unlike ones."""
    duties = {(job.burst_ns, job.pause_ns, job.start_delay_ns) for job in workload.jobs}
    if len(duties) > 1 and any(pause for _, pause, _ in duties):
        refuse(
            workload.name,
            "jobs that pause differently: fio tells nothing while one of them sleeps",
            hint="give all jobs the same burst_ns, pause_ns and start_delay_ns",
        )
    burst_ns, pause_ns, _ = next(iter(duties))
    return burst_ns, pause_ns
