"""The series of a step and how far it is, from fio's periodic reports.

fio's reports (one JSON document every interval) are cumulative. Counts of a row are differences of
exact counts; mean and standard deviation follow from the cumulative moments. The maximum of an
interval is exact where it is a new maximum of the run; otherwise it is the upper end of the highest
bin that gained I/Os (at most 1/64 above the true value). This covers every I/O, the last partial
interval included, which fio's own log files do not.

fio reports at fixed steps of its own clock, which starts before the first I/O, so the first and the
last row are shorter than the others. `end_ns` tells how long each is.

fio delays a report while a thread sleeps between bursts, and then combines the time of the request
with the counts at the time of the answer. The delay tells when the pause ended, and so when it
began; the series gets the burst, a row without I/Os for the pause, and the next burst.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from writecliff.engines.base import OPERATIONS, Operation, Progress
from writecliff.engines.fio.parse import LAST_BIN_NS, MS, OperationStats, bin_upper_ns
from writecliff.workload.model import Job, Workload

if TYPE_CHECKING:
    import numpy as np

Key = tuple[int, Operation]
Stats = Mapping[Key, OperationStats]

# A last report this close to the one before (as a share of the interval) replaces it.
_SLIVER = 0.1
# A report that is this late, at a time when a pause can end, was delayed by the pause. It is
# requested within one interval of the start of the pause, or one interval later: two requests in
# quick succession leave fio an answer in stock. A busy machine causes shorter delays.
_HELD_MS = 50.0
_HELD_SHARE = 0.8
_PERIOD_SHARE = 0.9


@dataclass(frozen=True)
class IntervalRow:
    """What one operation of one job did in one interval. NaN where it cannot be known."""

    ios: int
    bytes: int
    mean_ns: float
    max_ns: float
    sd_ns: float


_STALL = IntervalRow(0, 0, math.nan, math.nan, math.nan)


def _interval_max(before: OperationStats | None, after: OperationStats) -> float:
    old = before.bins if before is not None else {}
    if before is None or after.max_ns > before.max_ns:
        return float(after.max_ns)
    gained = [middle for middle, count in after.bins.items() if count > old.get(middle, 0)]
    if not gained:
        return math.nan
    highest = max(gained)
    if highest >= LAST_BIN_NS:
        return float(after.max_ns)
    return float(min(bin_upper_ns(highest), after.max_ns))


def difference(before: OperationStats | None, after: OperationStats) -> IntervalRow | None:
    """What was added between two cumulative reports; None if nothing was."""
    ios = after.ios - (before.ios if before else 0)
    size = after.bytes - (before.bytes if before else 0)
    if ios <= 0:
        return None
    highest = _interval_max(before, after)
    if before is None:
        sd = after.sd_ns if ios > 1 else math.nan
        return IntervalRow(ios, size, after.mean_ns, highest, sd)
    mean = (after.mean_ns * after.ios - before.mean_ns * before.ios) / ios
    # Chan et al. 1979: sums of squared deviations of two parts and of their union.
    squares = after.sd_ns**2 * (after.ios - 1) - before.sd_ns**2 * (before.ios - 1)
    squares -= (mean - before.mean_ns) ** 2 * before.ios * ios / after.ios
    sd = math.sqrt(max(0.0, squares) / (ios - 1)) if ios > 1 else math.nan
    # fio reads its counters while they move, so a report may be a few I/Os out of step.
    mean = min(max(mean, 0.0), highest) if not math.isnan(highest) else mean
    return IntervalRow(ios, max(0, size), mean, highest, sd)


class IntervalSeries:
    """Collects cumulative reports and keeps them as rows. Not thread-safe."""

    def __init__(
        self,
        start_delays_ms: tuple[float, ...],
        interval_ms: float,
        duty_ms: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        """`duty_ms` are the burst and the pause of all jobs, zeros if they do not pause."""
        self._start_delays_ms = start_delays_ms
        self._interval_ms = interval_ms
        self._period_ms, self._pause_ms = sum(duty_ms), duty_ms[1]
        self._resumed_ms = max(start_delays_ms, default=0.0)  # when the latest burst began
        self._lag_ms: float | None = None  # our clock minus fio's for reports that were not delayed
        self._base: tuple[float, Stats] = (0.0, {})  # the report before the latest
        self._latest: tuple[float, Stats] = (0.0, {})
        self._rows: list[tuple[float, Key, IntervalRow]] = []

    @property
    def elapsed_ms(self) -> float:
        return self._latest[0]

    @property
    def stats(self) -> Stats:
        """The latest cumulative stats."""
        return self._latest[1]

    @property
    def ios(self) -> int:
        return sum(one.ios for one in self.stats.values())

    def iops(self) -> float:
        """Over the latest interval; 0 before there is one."""
        width_ms = self._latest[0] - self._base[0]
        before = sum(one.ios for one in self._base[1].values())
        return (self.ios - before) / width_ms * 1000 if width_ms > 0 else 0.0

    def add(self, stats: Stats, arrived_ms: float | None = None) -> None:
        """Take the next cumulative report; `arrived_ms` is when it came, on any clock."""
        elapsed = max(
            (self._start_delays_ms[job] + one.runtime_ms for (job, _), one in stats.items()),
            default=0.0,
        )
        held_ms = self._held_ms(elapsed, arrived_ms)
        if not held_ms:
            self._take(elapsed, stats)
            return
        self._resumed_ms = resumed = elapsed + held_ms
        self._take(min(elapsed, resumed - self._pause_ms), stats)
        self._rows += [(resumed, key, _STALL) for key in stats]
        self._base, self._latest = self._latest, (resumed, stats)

    def _held_ms(self, elapsed: float, arrived_ms: float | None) -> float:
        """How long a pause delayed a report; 0 if none did, or if that is unknown."""
        if arrived_ms is None or elapsed == 0 or not self._pause_ms:
            return 0.0
        lag = arrived_ms - elapsed
        self._lag_ms = lag if self._lag_ms is None else min(lag, self._lag_ms)
        held = lag - self._lag_ms
        ends = elapsed + held >= self._resumed_ms + _PERIOD_SHARE * self._period_ms
        least = max(_HELD_MS, _HELD_SHARE * (self._pause_ms - 2 * self._interval_ms))
        return held if ends and held >= least else 0.0

    def _take(self, elapsed: float, stats: Stats) -> None:
        elapsed = max(elapsed, self._latest[0])
        sliver = elapsed - self._latest[0] < _SLIVER * self._interval_ms
        after_pause = self._latest[0] == self._resumed_ms
        if sliver and after_pause and sum(one.ios for one in stats.values()) == self.ios:
            self._latest = (self._latest[0], stats)
            return
        if after_pause and self._latest[0] > 0:
            elapsed = max(elapsed, self._latest[0] + 1)  # every row has a width
        if sliver and not after_pause and self._latest[0] > 0:
            self._rows = [row for row in self._rows if row[0] < self._latest[0]]
        else:
            self._base = self._latest
        self._latest = (elapsed, stats)
        width_ms = elapsed - self._base[0]
        for key, after in stats.items():
            before = self._base[1].get(key)
            row = difference(before, after)
            if row is None and before is not None:
                # Nothing completed. If the job still runs, that is a stall and counts as measured.
                if after.runtime_ms - before.runtime_ms < width_ms / 2:
                    continue
                row = _STALL
            if row is not None:
                self._rows.append((elapsed, key, row))

    def columns(self) -> dict[str, np.ndarray]:
        """The columns that `StepResult.intervals` promises."""
        import numpy as np

        rows = sorted(self._rows, key=lambda row: (row[0], row[1][0], OPERATIONS.index(row[1][1])))
        return {
            "end_ns": np.array([round(end * MS) for end, _, _ in rows], dtype=np.int64),
            "job": np.array([key[0] for _, key, _ in rows], dtype=np.int64),
            "operation": np.array([OPERATIONS.index(key[1]) for _, key, _ in rows], dtype=np.int64),
            "ios": np.array([row.ios for _, _, row in rows], dtype=np.int64),
            "bytes": np.array([row.bytes for _, _, row in rows], dtype=np.int64),
            "latency_mean_ns": np.array([row.mean_ns for _, _, row in rows], dtype=np.float64),
            "latency_max_ns": np.array([row.max_ns for _, _, row in rows], dtype=np.float64),
            "latency_sd_ns": np.array([row.sd_ns for _, _, row in rows], dtype=np.float64),
            "waf": np.full(len(rows), np.nan),
        }


def _job_fraction(job: Job, elapsed_ns: float, ios: int, size: int) -> float:
    """A job ends at the first of its ends, so the furthest advanced one counts."""
    parts = []
    if job.duration_ns is not None:
        parts.append((elapsed_ns - job.start_delay_ns) / max(1, job.duration_ns))
    if job.volume_bytes is not None:
        parts.append(size / max(1, job.volume_bytes))
    if job.ios is not None:
        parts.append(ios / max(1, job.ios))
    return min(1.0, max(0.0, *parts)) if parts else 0.0


def progress_of(workload: Workload, series: IntervalSeries) -> Progress:
    """A workload is as far as its slowest job."""
    elapsed_ns = series.elapsed_ms * 1e6
    fractions = []
    for index, job in enumerate(workload.jobs):
        mine = [one for (owner, _), one in series.stats.items() if owner == index]
        ios, size = sum(one.ios for one in mine), sum(one.bytes for one in mine)
        fractions.append(_job_fraction(job, elapsed_ns, ios, size))
    return Progress(
        fraction=min(fractions, default=None),
        elapsed_ns=round(elapsed_ns),
        ios=series.ios,
        iops=series.iops(),
    )
