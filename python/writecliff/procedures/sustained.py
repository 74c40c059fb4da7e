"""Detection of loads whose rate the drive cannot sustain.

The criterion is the backlog of an open-loop load, not only the rate, because a burst that drains is
sustained. The engine measures how the time from intended arrival to completion grows over the
schedule (`engines.base.Adherence`). If the load exceeds the drive's capability, this time grows by
`asked / served - 1` seconds per second, and a step's last I/Os are still waiting when the step
ends. Latencies counted from arrival then depend on the step length, so the latencies describe the
test instead of the drive.

fio does not report arrivals. fio loads are judged by the number of I/Os, because a job that
finishes with fewer I/Os than its rate requires has not caught up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.engines.base import Adherence

if TYPE_CHECKING:
    from writecliff.workload.model import Job, Workload

SLOPE_LEAST = 0.01  # Age growth in seconds per second if 1 % of the load is not served.
ERRORS_LEAST = 8.0  # Standard errors of the slope; high because ages of adjacent I/Os correlate.
DRAINED = 0.5  # Fraction of the line's final age below which the backlog counts as drained.


@dataclass(frozen=True)
class Shortfall:
    """A job that the drive served at a lower rate than requested."""

    job: str
    share: float  # Ratio of served to requested I/Os or bytes.
    asked: str  # Requested rate, such as "10,000 IOPS".

    @property
    def text(self) -> str:
        """Description of the fraction and rate, such as "82 % of 10,000 IOPS"."""
        pct = 100 * self.share
        shown = f"{floor(pct)}" if pct < 99 else f"{floor(10 * pct) / 10:g}"
        return f"{shown} % of {self.asked}"


def shortfalls(load: Workload, rows: Sequence[Sequence[Mapping[str, object]]]) -> list[Shortfall]:
    """Return the jobs whose load was not sustained in at least half of the rows.

    Args:
        load: The workload of the step.
        rows: The column `jobs` of each row of the step, or of its measurement window.
    """
    behind = []
    for number, job in enumerate(load.jobs):
        mine = [row[number] for row in rows if number < len(row)]
        if not job.is_scheduled or not mine:
            continue
        missed = [row for row in mine if _is_behind(job, row)]
        if 2 * len(missed) >= len(mine) and (shortfall := _shortfall(job, missed)) is not None:
            behind.append(shortfall)
    return behind


def shortfall_text(shortfalls: Sequence[Shortfall], jobs: int) -> str:
    """Return a reason such as "load not sustained: 82 % of 10,000 IOPS", with any job names."""
    if not shortfalls:
        return ""
    names = (f"{item.job} {item.text}" if jobs > 1 else item.text for item in shortfalls)
    return f"load not sustained: {', '.join(names)}"


def _is_behind(job: Job, row: Mapping[str, object]) -> bool:
    if (adherence := adherence_of(row)) is not None:
        grows = adherence.slope >= max(SLOPE_LEAST, ERRORS_LEAST * adherence.slope_error)
        return grows and adherence.last_age_ns >= DRAINED * adherence.slope * adherence.span_ns
    asked = _asked_ios(job, row)
    if asked is None or job.think_ns:  # The load itself pauses.
        return False
    slack = asked * SLOPE_LEAST + job.threads * job.queue_depth + 1
    return bool(_total(row, "ios") < asked - slack)


def adherence_of(row: Mapping[str, object]) -> Adherence | None:
    """Return a job's adherence in a row of the table `rounds`, or `None` if it was not measured."""
    names = Adherence.__dataclass_fields__
    values: dict[str, Any] = {name: row.get(f"schedule_{name}") for name in names}
    return None if None in values.values() else Adherence(**values)


def _total(row: Mapping[str, Any], what: str) -> int:
    return sum(row.get(f"{name}_{what}") or 0 for name in ("read", "write", "trim"))


def _asked_ios(job: Job, row: Mapping[str, Any]) -> float | None:
    """Return the I/O count that the rate requires, or `None` if the job has no rate."""
    seconds = float(row["elapsed_ns"]) / 1e9
    if job.rate_iops is not None:
        return job.rate_iops * seconds
    ios, size = _total(row, "ios"), _total(row, "bytes")
    if job.rate_bytes_per_s is None or not size:
        return None
    return job.rate_bytes_per_s * seconds * ios / size


def _shortfall(job: Job, rows: Sequence[Mapping[str, Any]]) -> Shortfall | None:
    seconds = sum(row["elapsed_ns"] for row in rows) / 1e9
    if not seconds:
        return None
    if job.rate_bytes_per_s is not None:
        served = sum(_total(row, "bytes") for row in rows) / seconds
        share = served / job.rate_bytes_per_s
        return Shortfall(job.name, share, units.throughput(job.rate_bytes_per_s))
    iops = sum(_total(row, "ios") for row in rows) / seconds
    if (asked := job.rate_iops) is None:  # A log or a model has recorded arrivals.
        measured = [entry for row in rows if (entry := adherence_of(row)) is not None]
        span_s = sum(entry.span_ns for entry in measured) / 1e9
        asked = sum(entry.ios for entry in measured) / span_s
    return Shortfall(job.name, iops / asked, f"{units.number(asked)} IOPS")
