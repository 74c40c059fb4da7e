"""Bursts and pauses of a job, in fio's options, and where fio falls short.

`burst_ns`/`pause_ns` become `thinktime_iotime`/`thinktime`. Each thread issues for the first, lets
its I/Os in flight end, and sleeps for the second; threads keep separate clocks, which start
together. Facts of fio (its history): the option exists since 3.28; until 3.33 the first burst lasts
burst + pause, and a pause is measured from the end of its burst so that bursts keep an exact
period; since 3.34 the first burst is as long as the others, and a period is longer than burst +
pause by the time that the I/Os in flight take to end.

fio answers no request for a report while a thread sleeps. `intervals.IntervalSeries` puts the
delayed report where it belongs, which is possible only if all jobs of a workload pause alike.
"""

from __future__ import annotations

from writecliff.engines.fio.capability import Fio
from writecliff.engines.fio.rates import is_rate_driven
from writecliff.engines.fio.section import Section, refuse
from writecliff.workload.model import Workload

SINCE = (3, 28)
FIRST_BURST_SINCE = (3, 34)
_US = 1000
_LONGEST_US = (1 << 31) - 1  # fio keeps both in 32 bits


def add_duty(section: Section, fio: Fio) -> None:
    """Add the options of a job with pauses; none for others. Warn of an over-long first burst."""
    job = section.job
    if not (job.burst_ns or job.pause_ns):
        return
    for name, value in (("burst_ns", job.burst_ns), ("pause_ns", job.pause_ns)):
        if value <= 0:
            section.refuse(f"{name} is {value}: bursts and pauses go together, both above 0")
        if value % _US or value // _US > _LONGEST_US:
            section.refuse(f"{name} {value}: fio takes whole microseconds, up to 2147 s")
    if job.think_ns:
        section.refuse("think_ns and burst_ns exclude each other")
    if is_rate_driven(job):
        section.refuse("fio has no rate within bursts", "leave the rate out")
    if fio.version < SINCE:
        section.refuse(
            f"{fio.version_text} has no bursts and pauses",
            "install fio 3.28 or later (3.34 for an exact first burst)",
        )
    if fio.version < FIRST_BURST_SINCE:
        first, others = (job.burst_ns + job.pause_ns) / 1e9, job.burst_ns / 1e9
        section.warn(
            f"{fio.version_text} makes the first burst last {first:g} s instead of {others:g} s"
            " (fio 3.34 and later do not)"
        )
    section.add("thinktime", f"{job.pause_ns // _US}us")
    section.add("thinktime_iotime", f"{job.burst_ns // _US}us")


def duty_of(workload: Workload) -> tuple[int, int]:
    """(burst, pause) of all jobs in ns, zeros if they do not pause. Refuses unlike ones."""
    duties = {(job.burst_ns, job.pause_ns, job.start_delay_ns) for job in workload.jobs}
    if len(duties) > 1 and any(pause for _, pause, _ in duties):
        refuse(
            workload.name,
            "jobs that pause differently: fio reports nothing while one of them sleeps",
            "give all jobs the same burst_ns, pause_ns and start_delay_ns",
        )
    burst_ns, pause_ns, _ = next(iter(duties))
    return burst_ns, pause_ns
