"""Time series within steps: stored intervals, and longer samples computed from intervals.

An interval belongs to the sample that contains its midpoint. A sample's rates cover the total time
of its intervals, its maxima are maxima over the intervals, and its means are weighted by I/O count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from writecliff.procedures.model import StepRow
from writecliff.report.axes import Line
from writecliff.report.testdata import TestData
from writecliff.store.partial_intervals import whole_ends
from writecliff.store.tables import OPERATION_NAMES

if TYPE_CHECKING:
    import numpy.typing as npt

    from writecliff.report.axes import Numbers

_MIN_SHARE = 0.5  # Minimum fraction of its length that a sample must cover.

_SQL = """
select seq, end_ns, sum(ios) as ios, sum(bytes) as bytes,
       sum(mean_ns * ios) / sum(case when mean_ns is null then null else ios end) as mean_ns,
       sum((sd_ns * sd_ns + mean_ns * mean_ns) * ios)
           / sum(case when sd_ns is null then null else ios end) as square_ns2,
       max(max_ns) as max_ns
from (select *, {mean} as mean_ns, {sd} as sd_ns, {max} as max_ns from intervals)
where seq in (select unnest(?::int[])) and operation in (select unnest(?::int[]))
group by seq, end_ns
order by seq, end_ns
"""


@dataclass(frozen=True)
class Series:
    """Consecutive intervals, with times relative to the start of the first step.

    NaN marks unknown values.
    """

    seq: npt.NDArray[np.int64]
    begin_ns: Numbers
    end_ns: Numbers
    ios: Numbers
    bytes: Numbers
    mean_ns: Numbers
    square_ns2: Numbers  # Mean of the squared latencies.
    max_ns: Numbers

    def __len__(self) -> int:
        """Return the number of intervals."""
        return len(self.seq)

    @property
    def middle_ns(self) -> Numbers:
        """Midpoint of each interval in ns."""
        return (self.begin_ns + self.end_ns) / 2

    @property
    def width_ns(self) -> Numbers:
        """Length of each interval in ns."""
        return self.end_ns - self.begin_ns


@dataclass(frozen=True)
class Samples:
    """Equal parts of a time span with one value each, where NaN marks unknown values."""

    # Segment numbers, starting at 1; segments that have no I/Os are omitted.
    number: npt.NDArray[np.int64]
    time_ns: Numbers  # Middle of each segment.
    iops: Numbers
    bytes_per_s: Numbers
    mean_ns: Numbers
    sd_ns: Numbers  # Standard deviation of the latencies.
    max_ns: Numbers

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.number)


def series(data: TestData, rows: Sequence[StepRow], operation: str | None = None) -> Series:
    """Return the intervals of `rows` over all jobs, for one operation or for all operations."""
    names = OPERATION_NAMES if operation is None else (operation,)
    codes = [OPERATION_NAMES.index(name) for name in names]
    # Latencies from intended arrivals are used if a job has them and the engine measured them.
    open_loads = "response_mean_ns" in data.run.table("intervals").column_names
    columns = {
        name: f"coalesce(response_{name}_ns, latency_{name}_ns)" if open_loads
        else f"latency_{name}_ns"
        for name in ("mean", "sd", "max")
    }  # fmt: skip
    intervals = data.run.query(_SQL.format(**columns), [[data.seq(row) for row in rows], codes])
    column: dict[str, Numbers] = {
        name: intervals.column(name).to_numpy(zero_copy_only=False).astype(np.float64)
        for name in ("end_ns", "ios", "bytes", "mean_ns", "square_ns2", "max_ns")
    }
    seq = intervals.column("seq").to_numpy(zero_copy_only=False).astype(np.int64)
    seq, column = _without_partial(seq, column)
    begin_ns, end_ns = timeline(data, rows, seq, column.pop("end_ns"))
    return Series(seq, begin_ns, end_ns, **column)


def is_from_arrival(data: TestData) -> bool:
    """Return `True` if interval latencies are measured from the intended arrival of I/Os."""
    intervals = data.run.table("intervals")
    if "response_mean_ns" not in intervals.column_names:
        return False
    return bool(intervals.column("response_mean_ns").null_count < intervals.num_rows)


def _without_partial(
    seq: npt.NDArray[np.int64], column: Mapping[str, Numbers]
) -> tuple[npt.NDArray[np.int64], dict[str, Numbers]]:
    """Merge partial intervals into their neighbours (see `store.partial_intervals`)."""
    ends = whole_ends(seq, column["end_ns"])
    new = np.append(True, (seq[1:] != seq[:-1]) | (ends[1:] != ends[:-1]))[: len(seq)]
    starts = np.flatnonzero(new)
    if len(starts) == len(seq):
        return seq, dict(column)
    ios = column["ios"]

    def mean(values: Numbers) -> Numbers:
        finite = np.isfinite(values)
        weight = np.add.reduceat(np.where(finite, ios, 0.0), starts)
        with np.errstate(invalid="ignore", divide="ignore"):
            total = np.add.reduceat(np.where(finite, values * ios, 0.0), starts)
            return np.asarray(np.where(weight > 0, total / weight, np.nan), dtype=np.float64)

    return seq[starts], {
        "end_ns": ends[starts],
        "ios": np.add.reduceat(ios, starts),
        "bytes": np.add.reduceat(column["bytes"], starts),
        "mean_ns": mean(column["mean_ns"]),
        "square_ns2": mean(column["square_ns2"]),
        "max_ns": np.fmax.reduceat(column["max_ns"], starts),
    }


def timeline(
    data: TestData, rows: Sequence[StepRow], seq: npt.NDArray[np.int64], inside_ns: Numbers
) -> tuple[Numbers, Numbers]:
    """Return the start and end times of intervals, relative to the start of the first row.

    `inside_ns` holds the intervals' end times within their steps.
    """
    zero_ns = rows[0].started_ns if rows else 0
    start = {data.seq(row): row.started_ns - zero_ns for row in rows}
    offset = np.array([start[int(number)] for number in seq], dtype=np.float64)
    first = np.append(True, seq[1:] != seq[:-1])[: len(seq)]
    begin = np.where(first, 0.0, np.append(0.0, inside_ns[:-1])[: len(seq)])
    return begin + offset, inside_ns + offset


def samples(intervals: Series, length_ns: float) -> Samples:
    """Return the series divided into parts of `length_ns`.

    A part that ran for less than half of its length is omitted, unless it is the only part.
    """
    if not len(intervals):
        nothing = np.array([], dtype=np.float64)
        return Samples(np.array([], dtype=np.int64), *[nothing] * 6)
    part = (intervals.middle_ns // length_ns).astype(np.int64)
    parts, index = np.unique(part, return_inverse=True)

    def total(values: Numbers) -> Numbers:
        return np.bincount(index, weights=values, minlength=len(parts)).astype(np.float64)

    width = total(intervals.width_ns)
    ios, size = total(intervals.ios), total(intervals.bytes)

    def mean_of(values: Numbers) -> Numbers:
        finite = np.isfinite(values)
        weight = np.where(finite, intervals.ios, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = total(np.where(finite, values, 0.0) * weight) / total(weight)
        return np.asarray(mean, dtype=np.float64)

    mean, square = mean_of(intervals.mean_ns), mean_of(intervals.square_ns2)
    highest = np.full(len(parts), -np.inf)
    np.maximum.at(highest, index, np.where(np.isfinite(intervals.max_ns), intervals.max_ns, 0.0))
    highest[highest <= 0] = np.nan
    keep = width >= _MIN_SHARE * length_ns
    if not keep.any():
        keep[:] = True
    return Samples(
        parts[keep] + 1,
        (parts[keep].astype(np.float64) + 0.5) * length_ns,
        ios[keep] / width[keep] * 1e9,
        size[keep] / width[keep] * 1e9,
        mean[keep],
        np.sqrt(np.maximum(square - mean**2, 0.0))[keep],
        highest[keep],
    )


def with_gaps(label: str, sampled: Samples, column: str, length_ns: float) -> Line:
    """Return a sample column over time as a line with gaps where nothing ran."""
    values = getattr(sampled, column)
    holes = np.flatnonzero(np.diff(sampled.number) > 1) + 1
    times = np.insert(sampled.time_ns, holes, sampled.time_ns[holes] - length_ns)
    return Line(label, times.tolist(), np.insert(values, holes, np.nan).tolist())
