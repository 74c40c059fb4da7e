"""95 % intervals of the figures of a load, from the batches of its steps.

A batch is a stretch of a step (see the table `batches`). For each figure the deviations of the
batches from its value are added up, and `dependence.py` estimates the variance of that total: of
I/Os from their expected number for IOPS, of latencies for a mean, of NAND bytes for write
amplification, of the number of I/Os slower than a value for a percentile (the indicator method:
Law and Kelton, 9.5.2; Woodruff, J. American Statistical Association 47, 1952). Intervals are made
on a logarithmic scale, for percentiles on the logit scale of the share of slower I/Os, so none
reaches below zero.

Real drives and older runs have no batches; the intervals of their series stand for them
(`of_intervals`), for rates and means alone.

A figure has no interval if its step is too short: fewer batches than `dependence.FEWEST`; for a
percentile fewer independent slow I/Os than `FEWEST_SLOW`, less than 4 s after the warm-up, or
latencies that still drift; for write amplification less than a tenth of the drive overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, isfinite, log, sqrt
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from writecliff.latency_basis import merged
from writecliff.report.dependence import (
    FEWEST,
    Floats,
    Variance,
    drift,
    variance_of_few,
    variance_of_total,
    warm_up,
)
from writecliff.report.student_t import two_sided_t
from writecliff.store.partial_intervals import whole_ends
from writecliff.store.tables import OPERATION_NAMES, SLOWER

if TYPE_CHECKING:
    from writecliff._native import Histogram

BATCHES = "repetitions of the load, from the variation between its batches"
SHARE = 0.95  # that an interval covers
FEWEST_SLOW = 20.0  # I/Os slower than a percentile, counted as if they were independent
_TREND_MAX = 25.0  # of any figure, see `dependence.drift`; steady rates and WAF reach 20
_DRIFT_MAX = 2.0  # of the distribution of latencies
_LEAST_S = 4.0  # of a step for intervals of percentiles; waves of garbage collection take seconds
WAF_LEAST_OVERWRITTEN = 0.1  # of the capacity
_FEWEST_COARSE = 5  # intervals of a log from which anything is estimated
_BATCHES_MAX = 256  # made of the intervals of a step
_DRIFT_AT = (0.5, 0.9, 0.99)  # quantiles that are tested for drift


class Bounds(NamedTuple):
    """An interval of a figure in its unit, with the degrees of freedom of its width."""

    low: float
    high: float
    degrees: float

    def times(self, factor: float) -> Bounds:
        """Return the interval in another unit."""
        return Bounds(self.low * factor, self.high * factor, self.degrees)

    def mapping(self) -> dict[str, float]:
        """Return the JSON form."""
        return self._asdict()


def about(value: float, error: float, degrees: float) -> Bounds:
    """Return the interval of a positive figure with this relative standard error."""
    reach = exp(min(two_sided_t(SHARE, max(1, int(degrees))) * error, 50.0))
    return Bounds(value / reach, value * reach, degrees)


@dataclass(frozen=True)
class Cell:
    """An operation of a job in consecutive batches, with a value per batch."""

    ios: Floats
    bytes: Floats
    latency_ns: Floats  # sums
    slower: Sequence[Floats]  # I/Os slower than each of the quantiles `SLOWER` of their step
    histogram: Histogram  # of all batches together

    def slower_than(self, value_ns: float) -> Floats:
        """Return the I/Os of each batch that are slower than a latency.

        Counts exist for the quantiles `SLOWER`; other latencies are interpolated.
        """
        lower, _, count = self.histogram.buckets()
        wanted = float(count[lower > value_ns].sum())
        counted = [self.ios, *self.slower, np.zeros(len(self.ios))]
        totals = [float(one.sum()) for one in counted]
        below = max(n for n, total in enumerate(totals) if total >= wanted or n == 0)
        above = min(below + 1, len(counted) - 1)
        span = totals[below] - totals[above]
        weight = (wanted - totals[above]) / span if span > 0 else 1.0
        return counted[below] * weight + counted[above] * (1 - weight)


@dataclass(frozen=True)
class Stretch:
    """Consecutive batches of a step, or of the rounds of a window, and operations in them."""

    width_ns: Floats
    host_bytes: Floats  # written to the whole drive
    nand_bytes: Floats  # written to its flash
    cells: Sequence[Cell]
    # Batches are the intervals of a log, long enough that a few of them give a mean its error.
    is_coarse: bool = False

    def total(self, pick: Callable[[Cell], Floats]) -> Floats:
        """Return the sum of a column over all operations."""
        return np.asarray(np.sum([pick(cell) for cell in self.cells], axis=0), dtype=np.float64)

    @cached_property
    def ios(self) -> Floats:
        return self.total(lambda cell: cell.ios)

    @cached_property
    def settled(self) -> slice:
        """Batches from the first to the last with an I/O, without the warm-up."""
        busy = np.flatnonzero(self.ios)
        if not len(busy):
            return slice(0, 0)
        first, last = int(busy[0]), int(busy[-1]) + 1
        if last - first < FEWEST:
            return slice(first, last)
        ios = self.ios[first:last]
        rate = ios / self.width_ns[first:last]
        latency = self.total(lambda cell: cell.latency_ns)[first:last] / np.maximum(ios, 1)
        return slice(first + warm_up([rate, latency]), last)

    def deviations(self, part: Floats, base: Floats) -> tuple[Floats, Floats] | None:
        """Return the relative deviation of each batch from its share of `part`, and its width.

        None if the batches are too few or empty.
        """
        mine, other = part[self.settled], base[self.settled]
        total, of = float(mine.sum()), float(other.sum())
        fewest = _FEWEST_COARSE if self.is_coarse else FEWEST
        if len(mine) < fewest or not total > 0 or not of > 0:
            return None
        return mine / total - other / of, self.width_ns[self.settled]

    def variance(self, part: Floats, base: Floats) -> Variance | None:
        """Return the relative variance of the ratio of the totals of `part` and `base`.

        None if it cannot be estimated.
        """
        if (found := self.deviations(part, base)) is None:
            return None
        if len(found[0]) < FEWEST:
            variance: Variance | None = variance_of_few(found[0])
        elif drift(*found) > _TREND_MAX:
            return None
        else:
            variance = variance_of_total(*found)
        used = float(part[self.settled].sum()) / float(part.sum())
        return None if variance is None else variance.times(used)


@dataclass(frozen=True)
class Measured:
    """Batches from which a figure was calculated. Each stretch is estimated separately."""

    stretches: Sequence[Stretch]

    def iops(self, value: float | None) -> Bounds | None:
        """Return the interval of I/Os per second."""
        return self._ratio(value, lambda one: (one.ios, one.width_ns))

    def bytes_per_s(self, value: float | None) -> Bounds | None:
        """Return the interval of bytes per second."""
        return self._ratio(value, lambda one: (one.total(lambda cell: cell.bytes), one.width_ns))

    def mean(self, value: float | None) -> Bounds | None:
        """Return the interval of a mean latency."""
        return self._ratio(value, lambda one: (one.total(lambda cell: cell.latency_ns), one.ios))

    def waf(self, value: float | None, capacity_bytes: int) -> Bounds | None:
        """Return the interval of a write amplification.

        Write amplification depends on the distribution of valid data over the flash, which changes
        as the drive is overwritten. A step that overwrites less than a tenth of the drive does not
        show this variation, so it has an interval only if all batches agree.
        """
        found = self._ratio(value, lambda one: (one.nand_bytes, one.host_bytes))
        written = sum(float(one.host_bytes.sum()) for one in self.stretches)
        enough = written >= WAF_LEAST_OVERWRITTEN * capacity_bytes
        return found if found is None or enough or found.low == found.high else None

    def _ratio(
        self, value: float | None, parts: Callable[[Stretch], tuple[Floats, Floats]]
    ) -> Bounds | None:
        if not value or not isfinite(value):
            return None
        variance = self._variance([parts(one) for one in self.stretches])
        return None if variance is None else about(value, sqrt(variance.value), variance.degrees)

    def _variance(self, parts: Sequence[tuple[Floats, Floats]]) -> Variance | None:
        """Return the relative variance of a ratio whose numerator is summed over stretches."""
        sums = [float(part.sum()) for part, _ in parts]
        total: Variance | None = None
        for stretch, (part, base), mine in zip(self.stretches, parts, sums, strict=True):
            if mine == 0:
                continue
            if (found := stretch.variance(part, base)) is None:
                return None
            found = found.times((mine / sum(sums)) ** 2)
            total = found if total is None else total + found
        return total

    @cached_property
    def histogram(self) -> Histogram | None:
        """Histogram of all latencies."""
        return merged(cell.histogram for one in self.stretches for cell in one.cells)

    def _slower(self, value_ns: float) -> list[tuple[Floats, Floats]]:
        return [(one.total(lambda cell: cell.slower_than(value_ns)), one.ios)
                for one in self.stretches]  # fmt: skip

    @cached_property
    def drifts(self) -> bool:
        """`True` if the latencies still change from the start of a stretch to its end."""
        ratios: list[list[float]] = [[] for _ in self.stretches]
        for q in _DRIFT_AT:
            value_ns = None if self.histogram is None else self.histogram.quantile(q).value_ns
            if value_ns is None:
                continue
            slower = self._slower(value_ns)
            for stretch, (part, base), mine in zip(self.stretches, slower, ratios, strict=True):
                found = stretch.deviations(part, base)
                if found is not None and part.sum() >= FEWEST_SLOW:
                    mine.append(drift(*found))
        means = [exp(fmean(map(log, one))) for one in ratios if one]
        return max(means, default=1.0) > _DRIFT_MAX

    def quantile(self, q: float) -> Bounds | None:
        """The interval of a quantile of the latencies; None: not enough samples, or batches that
        do not count slow I/Os."""
        if any(not cell.slower for one in self.stretches for cell in one.cells):
            return None
        histogram = self.histogram
        value_ns = None if histogram is None else histogram.quantile(q).value_ns
        length_s = sum(float(one.width_ns[one.settled].sum()) for one in self.stretches) / 1e9
        if histogram is None or value_ns is None or length_s < _LEAST_S or self.drifts:
            return None
        slower = self._slower(value_ns)
        total, count = (sum(float(one[n].sum()) for one in slower) for n in (0, 1))
        if not 0 < total < count or (variance := self._variance(slower)) is None:
            return None
        return _of_share(histogram, q, total / count, variance)


def _of_share(histogram: Histogram, q: float, slower: float, variance: Variance) -> Bounds | None:
    """Return the interval of a quantile from the relative variance of the share `slower`.

    The share of slower I/Os differs from 1 - q if many I/Os take the same time.
    """
    # The number of independent I/Os that would have this variance.
    independent = (1 - slower) / (slower * variance.value) if variance.value > 0 else float("inf")
    if independent * min(q, 1 - q) < FEWEST_SLOW:
        return None
    reach = two_sided_t(SHARE, max(1, int(variance.degrees))) / sqrt(independent * (1 - q) * q)
    odds = (1 - q) / q
    low = _value(histogram, 1 / (1 + odds * exp(reach)), 0)
    high = _value(histogram, 1 / (1 + odds * exp(-reach)), 1)
    return None if low is None or high is None else Bounds(low, high, variance.degrees)


def _value(histogram: Histogram, q: float, upper: int) -> float | None:
    """Return the lower (0) or upper (1) end of a quantile's bucket; None beyond the I/Os."""
    *edges, count = histogram.buckets()
    bucket = int(np.searchsorted(np.cumsum(count), q * histogram.count))
    least, most = histogram.min_ns, histogram.max_ns
    if q * histogram.count > histogram.count - 1 or least is None or most is None:
        return None
    return float(min(max(edges[upper][bucket], least), most))


# -- from the store ----------------------------------------------------------------------------

Key = tuple[int, str]  # number of the job, operation


def of_intervals(intervals: pa.Table, seqs: Iterable[int]) -> pa.Table:
    """Batches made of the intervals of steps, for engines and older runs that store no batches.

    Real drives have one interval a second, whose slow I/Os and flash writes are unknown: so there
    are rates and means, and neither percentiles nor write amplification.
    """
    chosen = intervals.filter(pc.field("seq").isin(list(seqs)))
    chosen = chosen.sort_by([("seq", "ascending"), ("end_ns", "ascending")])
    seq, job, operation, end_ns, ios, size = (
        chosen.column(name).to_numpy()
        for name in ("seq", "job", "operation", "end_ns", "ios", "bytes")
    )
    ends = whole_ends(seq, end_ns.astype(np.float64))
    times, place = np.unique(np.stack([seq, ends]), axis=1, return_inverse=True)
    lengths = np.unique(times[0], return_counts=True)[1]
    # At most so many batches a step: neighbours are joined.
    group = np.concatenate([np.arange(n) * min(n, _BATCHES_MAX) // n for n in lengths])
    is_last = np.append((np.diff(group) != 0) | (np.diff(times[0]) != 0), True)
    last = np.flatnonzero(is_last)
    at = np.searchsorted(last, place.reshape(-1))
    step, end = times[:, last]
    width = end - np.where(np.diff(step, prepend=-1) != 0, 0.0, np.append(0.0, end[:-1]))
    columns = {
        "seq": seq, "job": job, "operation": operation, "end_ns": end[at], "width_ns": width[at],
        "ios": ios, "bytes": size, "host_write_bytes": np.zeros(len(at)),
        "nand_write_bytes": np.zeros(len(at)),
    }  # fmt: skip
    kinds = {"service": "latency_mean_ns", "response": "response_mean_ns"}
    tables = []
    for kind, name in kinds.items():
        if name in chosen.column_names:
            mean_ns = np.nan_to_num(chosen.column(name).to_numpy(zero_copy_only=False))
            rows = {**columns, "latency_sum_ns": mean_ns * ios, "kind": [kind] * len(at)}
            tables.append(pa.table(rows))
    keys = ["seq", "job", "operation", "kind", "end_ns", "width_ns"]
    sums = ("ios", "bytes", "latency_sum_ns", "host_write_bytes", "nand_write_bytes")
    batches = pa.concat_tables(tables).group_by(keys).aggregate([(name, "sum") for name in sums])
    return batches.select([*keys, *(f"{name}_sum" for name in sums)]).rename_columns([*keys, *sums])


def stretch_of(
    table: pa.Table, seqs: Iterable[int], kind: str, histograms: Mapping[Key, Histogram]
) -> Callable[[Iterable[Key]], Stretch | None]:
    """Return a function that selects the batches of some operations of jobs in these steps.

    Args:
        table: the table `batches` of the run.
        seqs: the steps, in order.
        kind: that of the latencies.
        histograms: all latencies of the steps.

    Returns:
        The function. It returns None if the run has no batches of an operation.
    """
    rows = table.filter(pc.field("seq").isin(list(seqs)) & (pc.field("kind") == kind))
    columns = {name: rows.column(name).to_numpy() for name in rows.column_names if name != "kind"}
    times = np.stack([columns["seq"], columns["end_ns"]])
    batches, first, place = np.unique(times, axis=1, return_index=True, return_inverse=True)
    place = place.reshape(-1)

    def cell(key: Key) -> Cell | None:
        if key not in histograms or key[1] not in OPERATION_NAMES:
            return None
        number = OPERATION_NAMES.index(key[1])
        mine = (columns["job"] == key[0]) & (columns["operation"] == number)
        if not mine.any():
            return None

        def column(name: str) -> Floats:
            values = np.zeros(batches.shape[1])
            values[place[mine]] = columns[name][mine]
            return values

        slower = [column(name) for name in SLOWER.values() if name in columns]
        return Cell(column("ios"), column("bytes"), column("latency_sum_ns"), slower,
                    histograms[key])  # fmt: skip

    def restricted(keys: Iterable[Key]) -> Stretch | None:
        cells = [cell(key) for key in keys]
        known = [one for one in cells if one is not None]
        if not known or len(known) < len(cells):
            return None
        return Stretch(
            columns["width_ns"][first].astype(np.float64),
            columns["host_write_bytes"][first].astype(np.float64),
            columns["nand_write_bytes"][first].astype(np.float64),
            known,
            is_coarse=SLOWER[0.5] not in columns,
        )

    return restricted
