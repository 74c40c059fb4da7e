"""Time series of a step, computed from fio's periodic reports.

fio's reports (one JSON document per interval) are cumulative, and a row is the difference between
two reports (`parse.stats_since`). Unlike fio's log files, this method covers every I/O, including
the last partial interval. A step that is cut out of a longer load starts at one report and ends at
a later report.

fio reports at fixed times of its clock, which starts before the first I/O. The first and last
intervals of a load are therefore shorter than the others, as `end_ns` shows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from writecliff.engines.base import OPERATIONS, Operation
from writecliff.engines.fio.parse import MS, Measurable, OperationStats, stats_since
from writecliff.operation_names import FLUSH

if TYPE_CHECKING:
    import numpy as np

Key = tuple[int, Operation]
Stats = Mapping[tuple[int, Measurable], OperationStats]

# A final report replaces the previous report if it follows within this fraction of an interval. A
# report that follows a report from the first millisecond also replaces it.
_SLIVER = 0.1


@dataclass(frozen=True)
class IntervalRow:
    """Figures for one operation of a job in an interval, where unknown values are NaN."""

    ios: int
    bytes: int
    mean_ns: float
    max_ns: float
    sd_ns: float


_STALL = IntervalRow(0, 0, math.nan, math.nan, math.nan)


def difference(before: OperationStats | None, after: OperationStats) -> IntervalRow | None:
    """Return the difference between two cumulative reports, or None if no I/O completed."""
    added = stats_since(before, after)
    if added is None:
        return None
    sd = added.sd_ns if added.ios > 1 else math.nan
    return IntervalRow(added.ios, added.bytes, added.mean_ns, float(added.max_ns), sd)


def _of_ios(stats: Stats) -> dict[Key, OperationStats]:
    """Return the statistics, excluding flushes, which have no time series."""
    return {(job, name): done for (job, name), done in stats.items() if name != FLUSH}


def _ios(stats: Stats) -> int:
    return sum(done.ios for done in _of_ios(stats).values())


class IntervalSeries:
    """Rows of a series, computed from cumulative reports. The class is not thread-safe."""

    def __init__(
        self,
        start_delays_ms: tuple[float, ...],
        interval_ms: float,
        begin: tuple[float, Stats] = (0.0, MappingProxyType({})),
    ) -> None:
        """Start at a report, whose elapsed time and statistics are in `begin`."""
        self._start_delays_ms = start_delays_ms
        self._interval_ms = interval_ms
        self._begin = begin
        self._base = begin  # Report before the latest report.
        self._latest = begin
        self._rows: list[tuple[float, Key, IntervalRow]] = []

    @property
    def latest(self) -> tuple[float, Stats]:
        """Elapsed time and statistics of the latest report, since the start of the load."""
        return self._latest

    @property
    def elapsed_ms(self) -> float:
        """Time from the start of the step to the latest report."""
        return self._latest[0] - self._begin[0]

    @property
    def stats(self) -> Stats:
        """Statistics since the start of the step."""
        begin = self._begin[1]
        return {
            key: added
            for key, done in self._latest[1].items()
            if (added := stats_since(begin.get(key), done)) is not None
        }

    @property
    def ios_only(self) -> Mapping[Key, OperationStats]:
        """I/O statistics, excluding flushes."""
        return _of_ios(self.stats)

    @property
    def ios(self) -> int:
        """I/O count since the start of the step."""
        return _ios(self._latest[1]) - _ios(self._begin[1])

    def iops(self) -> float:
        """Return the IOPS in the latest interval, or 0 before the first report."""
        width_ms = self._latest[0] - self._base[0]
        done = _ios(self._latest[1]) - _ios(self._base[1])
        return done / width_ms * 1000 if width_ms > 0 else 0.0

    def add(self, stats: Stats) -> None:
        """Add the next cumulative report."""
        elapsed = max(
            (self._start_delays_ms[job] + done.runtime_ms for (job, _), done in stats.items()),
            default=0.0,
        )
        elapsed = max(elapsed, self._latest[0])
        last_ms, width_ms = self._latest[0], self._latest[0] - self._base[0]
        sliver = elapsed - last_ms < _SLIVER * self._interval_ms and last_ms > self._begin[0]
        if sliver or (self._rows and not width_ms):
            self._rows = [row for row in self._rows if row[0] < last_ms]
        else:
            self._base = self._latest
        self._latest = (elapsed, stats)
        width_ms = elapsed - self._base[0]
        for key, after in _of_ios(stats).items():
            before = self._base[1].get(key)
            row = difference(before, after)
            if row is None and before is not None:
                # No I/O completed. If the job is still running, the interval is a stall and has its
                # own row.
                if after.runtime_ms - before.runtime_ms < width_ms / 2:
                    continue
                row = _STALL
            if row is not None:
                self._rows.append((elapsed, key, row))

    def columns(self) -> dict[str, np.ndarray]:
        """Return the columns of `StepResult.intervals`."""
        import numpy as np

        rows = sorted(self._rows, key=lambda row: (row[0], row[1][0], OPERATIONS.index(row[1][1])))
        begin_ms = self._begin[0]
        ends_ms = [end - begin_ms for end, _, _ in rows]
        return {
            "end_ns": np.array([round(end * MS) for end in ends_ms], dtype=np.int64),
            "job": np.array([key[0] for _, key, _ in rows], dtype=np.int64),
            "operation": np.array([OPERATIONS.index(key[1]) for _, key, _ in rows], dtype=np.int64),
            "ios": np.array([row.ios for _, _, row in rows], dtype=np.int64),
            "bytes": np.array([row.bytes for _, _, row in rows], dtype=np.int64),
            "latency_mean_ns": np.array([row.mean_ns for _, _, row in rows], dtype=np.float64),
            "latency_max_ns": np.array([row.max_ns for _, _, row in rows], dtype=np.float64),
            "latency_sd_ns": np.array([row.sd_ns for _, _, row in rows], dtype=np.float64),
            "waf": np.full(len(rows), np.nan),
        }
