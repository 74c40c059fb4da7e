"""Whether a drive passes ACT: slices, lag, and the search for the largest multiple it passes.

All of it is decided from the rows of the steps, so that a resumed run and a report come to the same
result. The figures of a step (`step_figures`) are counts of reads over the thresholds, and how far
the load was behind its schedule.
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
# In every slice, of the reads: fewer than this percentage may be slower than so many ms.
LIMITS_PCT = {1: 5.0, 8: 1.0, 64: 0.1}
MS = 1_000_000


def over(histogram: Histogram, threshold_ns: int) -> int:
    """I/Os at or above a threshold. The whole bucket that holds the threshold counts, so this is an
    upper bound; buckets are 1/64 wide.
    """
    _, upper, count = histogram.buckets()
    return int(count[upper >= threshold_ns].sum())


def step_figures(result: StepResult, jobs: Sequence[Job], multiple: float) -> dict[str, float]:
    """The figures of a step that the judgement uses, by name, stored with its row."""
    found = {"multiple": multiple, "lag_s": 0.0, "behind_s": 0.0}
    behind = []
    for measured, job in zip(result.jobs, jobs, strict=True):
        if job.rate_iops is not None:
            behind.append(_behind_s(measured, job))
        for operation in measured.operations.values():
            if operation.response is not None and operation.response.count:
                lag_s = (operation.response.max_ns or 0) / SECOND_NS
                found["lag_s"] = max(found["lag_s"], lag_s)
    if behind:
        # Ahead only where none is behind.
        found["behind_s"] = max(behind) if max(behind) > 0 else min(behind)
    read = result.jobs[0].operations.get("read")
    histogram = None if read is None else read.service
    if read is not None and read.response is not None and jobs[0].queue_depth > 1:
        histogram = read.response  # of the queues: from the generator on
    found["reads"] = histogram.count if histogram is not None else 0
    for threshold in THRESHOLDS_MS:
        slow = over(histogram, threshold * MS) if histogram is not None else 0
        found[f"over_{threshold}ms"] = slow
    return found


def _behind_s(measured: JobResult, job: Job) -> float:
    """Seconds by which the load fell behind its schedule in the step; negative where it caught up,
    as a load can that goes on from step to step. As many I/Os as all threads may have in flight,
    and a thousandth, count as neither.
    """
    done = sum(operation.ios for operation in measured.operations.values())
    rate = job.rate_iops or 1.0
    due = rate * (job.duration_ns or 0) / SECOND_NS
    slack = job.threads * job.queue_depth + 1 + due / 1000
    return (max(0.0, due - done - slack) - max(0.0, done - due - slack)) / rate


@dataclass(frozen=True)
class Slice:
    """An hour of a test: shares of the reads over the thresholds, in percent."""

    number: int  # from 1
    reads: int
    over_pct: Mapping[int, float]  # by ms

    @property
    def passed(self) -> bool:
        return all(self.over_pct[ms] < limit for ms, limit in LIMITS_PCT.items())


@dataclass(frozen=True)
class Trial:
    """A test at one load, as far as it went."""

    multiple: float
    rows: Sequence[StepRow]
    steps_wanted: int
    slices: Sequence[Slice]  # complete ones
    lag_s: float

    def stopped(self, max_lag_s: float) -> bool:
        """Whether the drive could not keep up with the rate; a `max_lag_s` of 0 is no limit."""
        return 0 < max_lag_s < self.lag_s

    def failed(self, max_lag_s: float) -> bool:
        return self.stopped(max_lag_s) or not all(item.passed for item in self.slices)

    @property
    def complete(self) -> bool:
        return len(self.rows) >= self.steps_wanted


def slices_of(rows: Sequence[StepRow], steps_a_slice: int) -> list[Slice]:
    """The complete slices. ACT omits an incomplete one at the end, too."""
    found = []
    for number in range(len(rows) // steps_a_slice):
        part = rows[number * steps_a_slice : (number + 1) * steps_a_slice]
        reads = sum(row.figures["reads"] for row in part)
        shares = {
            ms: 100 * sum(row.figures[f"over_{ms}ms"] for row in part) / reads if reads else 0.0
            for ms in THRESHOLDS_MS
        }
        found.append(Slice(number + 1, round(reads), shares))
    return found


def trial_of(
    multiple: float, rows: Sequence[StepRow], *, steps_a_slice: int, steps_wanted: int
) -> Trial:
    """The test whose steps so far are `rows`."""
    behind = lag = 0.0
    for row in rows:
        lag = max(lag, behind + row.figures["lag_s"], behind + row.figures["behind_s"])
        behind = max(0.0, behind + row.figures["behind_s"])
    slices = slices_of(rows, min(steps_a_slice, steps_wanted))
    return Trial(multiple, rows, steps_wanted, slices, lag)


def split_by_load(rows: Sequence[StepRow]) -> list[tuple[float, list[StepRow]]]:
    """Consecutive rows of the same load, grouped: (load, rows)."""
    found: list[tuple[float, list[StepRow]]] = []
    for row in rows:
        multiple = row.figures["multiple"]
        if not found or found[-1][0] != multiple:
            found.append((multiple, []))
        found[-1][1].append(row)
    return found


def next_multiple(passed: Sequence[int], failed: Sequence[int], first: int, most: int) -> int:
    """The next load to try; 0 once the largest load that passes is known.

    Doubles from `first` until a load fails, then bisects. A drive that fails the first load is
    tried at lower ones.
    """
    best, worst = max(passed, default=0), min(failed, default=most + 1)
    if worst - best <= 1:
        return 0
    if not passed and not failed:
        return min(first, most)
    if not failed:
        return min(2 * best, most)
    return (best + worst) // 2
