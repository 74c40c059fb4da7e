"""ACT's verdict from slices and lag, and the search for the highest multiple that passes.

Every decision is based only on step rows, so that a resumed run and a report reach the same result.
The figures of a step (`step_figures`) are the numbers of reads above the thresholds, and the lag
behind the schedule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from writecliff.procedures.model import StepRow
from writecliff.workload.model import SECOND_NS, Job

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.engines.base import JobResult, StepResult

THRESHOLDS_MS = (1, 2, 4, 8, 16, 32, 64)
# Limits for every slice: maximum percentage of reads that take longer than the key, in ms.
LIMITS_PCT = {1: 5.0, 8: 1.0, 64: 0.1}
MS = 1_000_000


def over(histogram: Histogram, threshold_ns: int) -> int:
    """Return the number of I/Os at or above a threshold.

    The bucket that contains the threshold is counted in full, so the number is an upper bound.
    Buckets have a relative width of 1/64.
    """
    _, upper, count = histogram.buckets()
    return int(count[upper >= threshold_ns].sum())


def step_figures(result: StepResult, jobs: Sequence[Job], multiple: float) -> dict[str, float]:
    """Return the step figures that the verdict uses, by name, as stored with the step's row."""
    figures = {"multiple": multiple, "lag_s": 0.0, "behind_s": 0.0}
    behind = []
    for measured, job in zip(result.jobs, jobs, strict=True):
        if job.rate_iops is not None:
            behind.append(_behind_s(measured, job))
        for operation in measured.operations.values():
            if operation.response is not None and operation.response.count:
                lag_s = (operation.response.max_ns or 0) / SECOND_NS
                figures["lag_s"] = max(figures["lag_s"], lag_s)
    if behind:
        # The lag is negative (ahead of schedule) only if no job is behind.
        figures["behind_s"] = max(behind) if max(behind) > 0 else min(behind)
    read = result.jobs[0].operations.get("read")
    histogram = None if read is None else read.service
    if read is not None and read.response is not None and jobs[0].queue_depth > 1:
        histogram = read.response  # The response time includes the time in ACT's queues.
    figures["reads"] = histogram.count if histogram is not None else 0
    for threshold in THRESHOLDS_MS:
        slow = over(histogram, threshold * MS) if histogram is not None else 0
        figures[f"over_{threshold}ms"] = slow
    return figures


def _behind_s(measured: JobResult, job: Job) -> float:
    """Return the number of seconds by which the load fell behind its schedule during the step.

    The value is negative if the load caught up, which is possible for a load that continues from
    step to step. A deviation within the tolerance counts as neither lag nor catching up. The
    tolerance is the I/Os that all threads may have outstanding, plus a thousandth of the due I/Os.
    """
    done = sum(operation.ios for operation in measured.operations.values())
    rate = job.rate_iops or 1.0
    due = rate * (job.duration_ns or 0) / SECOND_NS
    slack = job.threads * job.queue_depth + 1 + due / 1000
    return (max(0.0, due - done - slack) - max(0.0, done - due - slack)) / rate


@dataclass(frozen=True)
class Slice:
    """A slice (an hour) of a test, with the percentages of reads above the thresholds."""

    number: int  # Slice number, counted from 1.
    reads: int
    over_pct: Mapping[int, float]  # Percentages of slower reads by threshold in ms.

    @property
    def passed(self) -> bool:
        """`True` if the slice meets every limit."""
        return all(self.over_pct[ms] < limit for ms, limit in LIMITS_PCT.items())


@dataclass(frozen=True)
class Trial:
    """The steps completed so far in a test at one load."""

    multiple: float
    rows: Sequence[StepRow]
    steps_wanted: int
    slices: Sequence[Slice]  # Slices that are complete.
    lag_s: float

    def stopped(self, max_lag_s: float) -> bool:
        """Return `True` if the drive fell behind by more than `max_lag_s` (0: no limit)."""
        return 0 < max_lag_s < self.lag_s

    def failed(self, max_lag_s: float) -> bool:
        """Return `True` if the test was stopped, or if a slice exceeded a limit."""
        return self.stopped(max_lag_s) or not all(item.passed for item in self.slices)

    @property
    def complete(self) -> bool:
        """`True` if all steps of the test are complete."""
        return len(self.rows) >= self.steps_wanted


def slices_of(rows: Sequence[StepRow], steps_a_slice: int) -> list[Slice]:
    """Return the slices that are complete. An incomplete last slice is omitted, as in ACT."""
    slices = []
    for number in range(len(rows) // steps_a_slice):
        part = rows[number * steps_a_slice : (number + 1) * steps_a_slice]
        reads = sum(row.figures["reads"] for row in part)
        shares = {
            ms: 100 * sum(row.figures[f"over_{ms}ms"] for row in part) / reads if reads else 0.0
            for ms in THRESHOLDS_MS
        }
        slices.append(Slice(number + 1, round(reads), shares))
    return slices


def trial_of(
    multiple: float, rows: Sequence[StepRow], *, steps_a_slice: int, steps_wanted: int
) -> Trial:
    """Return the test that consists of the steps in `rows`."""
    behind = lag = 0.0
    for row in rows:
        lag = max(lag, behind + row.figures["lag_s"], behind + row.figures["behind_s"])
        behind = max(0.0, behind + row.figures["behind_s"])
    slices = slices_of(rows, min(steps_a_slice, steps_wanted))
    return Trial(multiple, rows, steps_wanted, slices, lag)


def split_by_load(rows: Sequence[StepRow]) -> list[tuple[float, list[StepRow]]]:
    """Group consecutive rows of the same load, as pairs (load, rows)."""
    groups: list[tuple[float, list[StepRow]]] = []
    for row in rows:
        multiple = row.figures["multiple"]
        if not groups or groups[-1][0] != multiple:
            groups.append((multiple, []))
        groups[-1][1].append(row)
    return groups


def next_multiple(passed: Sequence[int], failed: Sequence[int], first: int, most: int) -> int:
    """Return the next load to try, or 0 if the highest load that passes is known.

    The load doubles from `first` until a load fails, and is then bisected. A drive that fails at
    the first load is tested at lower loads.
    """
    best, worst = max(passed, default=0), min(failed, default=most + 1)
    if worst - best <= 1:
        return 0
    if not passed and not failed:
        return min(first, most)
    if not failed:
        return min(2 * best, most)
    return (best + worst) // 2
