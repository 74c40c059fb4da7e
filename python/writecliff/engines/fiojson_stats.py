"""Statistics in fio's JSON, computed from measured histograms and series.

The formulas are the same as in fio 3.33 (stat.c), with two exceptions. Percentiles are upper bounds
of their bucket and never exceed the maximum, while fio prints the middle of the bucket, which may
exceed the maximum. The second exception is that histograms have no upper limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from writecliff.engines.base import (
    OPERATIONS,
    JobResult,
    Operation,
    OperationResult,
    StepResult,
)
from writecliff.workload.model import Job, Workload

if TYPE_CHECKING:
    import numpy as np

    from writecliff._native import Histogram

Json = dict[str, Any]

_LEVELS = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)
_EMPTY_LATENCY: Mapping[str, Any] = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}


def latency_block(
    histogram: Histogram | None, percentiles: Sequence[float] | None, *, shown: bool = True
) -> Json:
    """Return a `clat_ns` or `lat_ns` object, without percentiles or bins that are None."""
    if histogram is None or not histogram.count or not shown:
        return dict(_EMPTY_LATENCY)
    block: Json = {
        "min": histogram.min_ns,
        "max": histogram.max_ns,
        "mean": round(histogram.mean_ns or 0.0, 6),
        "stddev": round(histogram.sd_ns or 0.0, 6),
        "N": histogram.count,
    }
    if percentiles is not None:
        block["percentile"] = _percentiles(histogram, percentiles)
        lower, upper, counts = histogram.buckets()
        # The formula is `plat_idx_to_val` in fio's stat.c.
        middles = lower + (upper - lower + 1) // 2
        keys = map(str, middles.tolist())
        block["bins"] = dict(zip(keys, counts.tolist(), strict=True))
    return block


def _percentiles(histogram: Histogram, percentiles: Sequence[float]) -> dict[str, int]:
    """Return nearest-rank percentiles as upper bucket ends, limited to the maximum."""
    import numpy as np

    _, upper, counts = histogram.buckets()
    ranks = np.cumsum(counts.astype(np.int64))
    values = {}
    for percentile in percentiles:
        # Subtracting 1e-9 keeps the 99.9 % rank of 1000 values at 999 despite binary rounding.
        rank = max(1, math.ceil(histogram.count * percentile / 100 - 1e-9))
        index = min(int(np.searchsorted(ranks, rank)), len(ranks) - 1)
        values[f"{percentile:f}"] = min(int(upper[index]), int(histogram.max_ns or 0))
    return values


def latency_distribution(histogram: Histogram | None) -> Json:
    """Return `latency_ns`, `latency_us` and `latency_ms`, the I/O percentages below each level."""
    shares = {unit: [0] * (len(_LEVELS) + 2) for unit in ("ns", "us", "ms")}
    if histogram is not None and histogram.count:
        lower, upper, counts = histogram.buckets()
        for low, high, count in zip(lower.tolist(), upper.tolist(), counts.tolist(), strict=True):
            unit, index = _level((low + high) // 2)
            shares[unit][index] += count
    total = histogram.count if histogram is not None else 0
    names = [*map(str, _LEVELS), "2000", ">=2000"]
    return {
        f"latency_{unit}": {
            name: _percent(count, total)
            for name, count in list(zip(names, counts, strict=True))[: 12 if unit == "ms" else 10]
        }
        for unit, counts in shares.items()
    }


def _level(value_ns: int) -> tuple[str, int]:
    unit, value = "ns", value_ns
    if value_ns >= 1_000_000:
        unit, value = "ms", value_ns // 1_000_000
    elif value_ns >= 1000:
        unit, value = "us", value_ns // 1000
    if value >= 1000:
        return unit, 10 if value < 2000 else 11
    return unit, next(index for index, level in enumerate(_LEVELS) if value < level)


def _percent(count: int, total: int) -> float:
    """Return a percentage of at least 0.01 for fractions above 0, as fio does."""
    if not count or not total:
        return 0.0
    return round(max(100 * count / total, 0.01), 6)


@dataclass(frozen=True)
class Member:
    """Job `index` in a step, as a member of a JSON entry."""

    step: StepResult
    workload: Workload
    index: int

    @property
    def job(self) -> Job:
        """Job definition."""
        return self.workload.jobs[self.index]

    @property
    def result(self) -> JobResult:
        """Job measurements."""
        return self.step.jobs[self.index]

    @property
    def operations(self) -> Mapping[Operation, OperationResult]:
        """Job measurements by operation."""
        return self.result.operations


def samples(members: Sequence[Member], operation: Operation) -> tuple[np.ndarray, np.ndarray]:
    """Return the members' total (KiB/s, IOPS) for each series interval.

    An interval at the end of a step is omitted if it is shorter than half the full length, which
    matches fio.
    """
    import numpy as np

    rates = [
        _step_samples([member for member in members if member.step is step], operation)
        for step in {id(member.step): member.step for member in members}.values()
    ]
    sizes = np.concatenate([size for size, _ in rates]) if rates else np.empty(0)
    ios = np.concatenate([count for _, count in rates]) if rates else np.empty(0)
    return sizes / 1024, ios


def _step_samples(members: Sequence[Member], operation: Operation) -> tuple[np.ndarray, np.ndarray]:
    """Return (bytes/s, I/Os per second) of a step's members while any member runs."""
    import numpy as np

    rows = members[0].step.intervals
    if not rows or not len(rows["end_ns"]):
        return np.empty(0), np.empty(0)
    ends = np.unique(rows["end_ns"]).astype(np.int64)
    starts = np.concatenate(([0], ends[:-1]))
    chosen = np.isin(rows["job"], [member.index for member in members]) & (
        rows["operation"] == OPERATIONS.index(operation)
    )
    at = np.searchsorted(ends, rows["end_ns"][chosen].astype(np.int64))
    width = (ends - starts) / 1e9
    totals = [
        np.bincount(at, weights=rows[column][chosen].astype(np.float64), minlength=len(ends))
        for column in ("bytes", "ios")
    ]
    first = min(member.result.began_ns for member in members)
    last = max(member.result.began_ns + member.result.elapsed_ns for member in members)
    counted = (starts >= first) & (starts < last)
    counted &= np.minimum(ends, last) - starts >= members[0].workload.interval_ns / 2
    return totals[0][counted] / width[counted], totals[1][counted] / width[counted]


def sample_block(kind: str, values: np.ndarray, deviation: str) -> Json:
    """Return `bw_*` or `iops_*` for a series, or zeros if there are no samples."""
    count = len(values)
    spread = float(values.std(ddof=1)) if count > 1 else 0.0
    return {
        f"{kind}_min": int(values.min()) if count else 0,
        f"{kind}_max": int(values.max()) if count else 0,
        f"{kind}_mean": round(float(values.mean()), 6) if count else 0.0,
        f"{kind}_{deviation}": round(spread, 6),
        f"{kind}_samples": count,
    }
