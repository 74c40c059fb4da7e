"""95 % confidence intervals of a load's figures, estimated from the batches in its steps.

A batch is a period within a step (see the `batches` table). For each figure, the batches'
deviations from its value are summed, and `dependence.py` estimates the variance of the sum. For
IOPS, the deviation of the I/O count from the expected count is used; means use latencies, and write
amplification uses NAND bytes. Percentiles use the number of I/Os slower than a value (the indicator
method: Law and Kelton, 9.5.2; Woodruff, J. American Statistical Association 47, 1952). Intervals
    are computed on a logarithmic scale, or on the logit scale for the fraction of slow I/Os, so
    that no interval extends below zero. A percentile's interval contains the latencies for which
    the percentile's fraction of slower I/Os is plausible. The error is evaluated at the tested
    fraction (Wilson, J. American Statistical Association 22,
1927).

Real drives and older runs do not have batches. For real drives and older runs, the series intervals
are used instead (`of_intervals`), but only for rates and means.

A figure has no interval if its step has fewer batches than `dependence.FEWEST`. Percentiles also
require `FEWEST_SLOW` slow I/Os in `FEWEST_SLOW_BATCHES` batches, 4 s after the warm-up and, if a
flash drive is written, `LATENCY_LEAST_OVERWRITTEN`. Write amplification requires that at least a
tenth of the drive was overwritten. A rule based on the estimated variance would favour runs that
have a small variance by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import copysign, exp, inf, isfinite, log, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from writecliff.latency_basis import merged
from writecliff.report.dependence import (
    FEWEST,
    Floats,
    Variance,
    drift,
    drift_of_few,
    variance_of_few,
    variance_of_total,
    warm_up,
)
from writecliff.report.student_t import two_sided_t
from writecliff.store.partial_intervals import whole_ends
from writecliff.store.tables import SLOWER, TIMED_NAMES

if TYPE_CHECKING:
    from writecliff._native import Histogram

BATCHES = "repetitions of the load, from the variation between its batches"
SHARE = 0.95  # Confidence level of an interval.
FEWEST_SLOW = 30.0  # Minimum number of I/Os slower than a percentile.
# Minimum effective number of batches with slow I/Os, which is (sum of counts)² / sum of counts².
FEWEST_SLOW_BATCHES = 6.0
_FEWEST_INDEPENDENT = 20.0  # Number of slow I/Os that suffices to estimate their own correlation.
# Trend limit for any figure (see `dependence.drift`); steady rates and WAF reach 20.
_TREND_MAX = 25.0
_TREND_LEVEL = 0.01  # Trend probability at or below which a few batches count as drifting.
# Log-likelihood margins (see `dependence.variance_of_total`).
_MARGIN, _MARGIN_OF_SHARES = 0.5, 0.75
# Minimum step duration for percentile intervals, because waves of garbage collection take seconds.
_LEAST_S = 4.0
WAF_LEAST_OVERWRITTEN = 0.1  # Minimum overwritten fraction of the capacity for WAF intervals.
# Minimum overwritten volume, as a multiple of the capacity, for percentiles of loads that write.
LATENCY_LEAST_OVERWRITTEN = 2.0
_FEWEST_COARSE = 5  # Minimum number of log intervals for an estimate.
_BATCHES_MAX = 256  # Maximum number of batches in a step.


class Bounds(NamedTuple):
    """A figure's interval in the figure's unit, with the degrees of freedom of its width."""

    low: float
    high: float
    degrees: float

    def times(self, factor: float) -> Bounds:
        """Return the interval converted to another unit."""
        return Bounds(self.low * factor, self.high * factor, self.degrees)

    def mapping(self) -> dict[str, float]:
        """Return the interval in JSON form."""
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
    latency_ns: Floats  # Sums of the latencies in ns.
    slower: Sequence[Floats]  # Counts of I/Os slower than each `SLOWER` quantile of their step.
    histogram: Histogram  # Histogram of all batches combined.

    @cached_property
    def _buckets(self) -> tuple[npt.NDArray[np.uint64], ...]:
        return self.histogram.buckets()

    def slower_than(self, value_ns: float) -> Floats:
        """Return the number of I/Os slower than a latency in each batch.

        Counts are stored for the `SLOWER` quantiles, and counts for other latencies are
        interpolated.
        """
        lower, _, count = self._buckets
        wanted = float(count[lower > value_ns].sum())
        counted = [self.ios, *self.slower, np.zeros(len(self.ios))]
        totals = [float(column.sum()) for column in counted]
        below = max(n for n, total in enumerate(totals) if total >= wanted or n == 0)
        above = min(below + 1, len(counted) - 1)
        span = totals[below] - totals[above]
        weight = (wanted - totals[above]) / span if span > 0 else 1.0
        return counted[below] * weight + counted[above] * (1 - weight)


@dataclass(frozen=True)
class Stretch:
    """Consecutive batches of a step or a window's rounds, and the operations in these batches."""

    width_ns: Floats
    host_bytes: Floats  # Bytes that the host wrote to the whole drive.
    nand_bytes: Floats  # Bytes written to the drive's flash.
    cells: Sequence[Cell]
    # Batches are log intervals that are long enough for a few batches to determine the error of a
    # mean.
    is_coarse: bool = False

    def total(self, pick: Callable[[Cell], Floats]) -> Floats:
        """Return a column's sum over all operations."""
        return np.asarray(np.sum([pick(cell) for cell in self.cells], axis=0), dtype=np.float64)

    @cached_property
    def ios(self) -> Floats:
        """I/O count of each batch, summed over all operations."""
        return self.total(lambda cell: cell.ios)

    @cached_property
    def settled(self) -> slice:
        """Batches from the first to the last batch with I/Os, excluding the warm-up."""
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
        """Return each batch's relative deviation from its part of the total, and its width.

        Returns:
            The result is `None` if there are too few batches or if the batches are empty.
        """
        mine, other = part[self.settled], base[self.settled]
        total, base_total = float(mine.sum()), float(other.sum())
        fewest = _FEWEST_COARSE if self.is_coarse else FEWEST
        if len(mine) < fewest or not total > 0 or not base_total > 0:
            return None
        return mine / total - other / base_total, self.width_ns[self.settled]

    def variance(self, part: Floats, base: Floats, *, of_share: bool = False) -> Variance | None:
        """Return the relative variance of the ratio of the totals of `part` and `base`.

        With `of_share`, the ratio is the fraction of slow I/Os, which often varies more slowly than
        rates do.

        Returns:
            The result is `None` if the variance cannot be estimated.
        """
        if (deviations := self.deviations(part, base)) is None:
            return None
        if len(deviations[0]) < FEWEST:
            drifts = drift_of_few(*deviations) < _TREND_LEVEL
            variance = None if drifts else variance_of_few(deviations[0])
        elif not of_share and drift(*deviations) > _TREND_MAX:
            return None
        else:
            variance = variance_of_total(
                *deviations, margin=_MARGIN_OF_SHARES if of_share else _MARGIN
            )
        used = float(part[self.settled].sum()) / float(part.sum())
        return None if variance is None else variance.times(used)


@dataclass(frozen=True)
class Measured:
    """Batches from which a figure was calculated.

    The variance of each stretch of batches is estimated separately.
    """

    stretches: Sequence[Stretch]
    capacity_bytes: int  # Drive capacity in bytes.

    def iops(self, value: float | None) -> Bounds | None:
        """Return the confidence interval of the I/Os per second."""
        return self._ratio(value, lambda stretch: (stretch.ios, stretch.width_ns))

    def bytes_per_s(self, value: float | None) -> Bounds | None:
        """Return the confidence interval of the bytes per second."""
        return self._ratio(value, lambda s: (s.total(lambda cell: cell.bytes), s.width_ns))

    def mean(self, value: float | None) -> Bounds | None:
        """Return the confidence interval of a mean latency."""
        return self._ratio(value, lambda s: (s.total(lambda cell: cell.latency_ns), s.ios))

    def waf(self, value: float | None) -> Bounds | None:
        """Return the confidence interval of a write amplification.

        Write amplification depends on the distribution of valid data over the flash, which changes
        as the drive is overwritten. A step that overwrites less than a tenth of the drive does not
        show this variation, so its write amplification has an interval only if the values of all
        batches agree.
        """
        bounds = self._ratio(value, lambda s: (s.nand_bytes, s.host_bytes))
        enough = self._written >= WAF_LEAST_OVERWRITTEN * self.capacity_bytes
        return bounds if bounds is None or enough or bounds.low == bounds.high else None

    @property
    def _written(self) -> float:
        """Number of bytes written to the drive."""
        return sum(float(stretch.host_bytes.sum()) for stretch in self.stretches)

    def _ratio(
        self, value: float | None, parts: Callable[[Stretch], tuple[Floats, Floats]]
    ) -> Bounds | None:
        if not value or not isfinite(value):
            return None
        variance = self._variance([parts(stretch) for stretch in self.stretches])
        return None if variance is None else about(value, sqrt(variance.value), variance.degrees)

    def _variance(
        self, parts: Sequence[tuple[Floats, Floats]], *, of_share: bool = False
    ) -> Variance | None:
        """Return the relative variance of a ratio whose numerator is summed over stretches."""
        sums = [float(part.sum()) for part, _ in parts]
        total: Variance | None = None
        for stretch, (part, base), mine in zip(self.stretches, parts, sums, strict=True):
            if mine == 0:
                continue
            if (variance := stretch.variance(part, base, of_share=of_share)) is None:
                return None
            variance = variance.times((mine / sum(sums)) ** 2)
            total = variance if total is None else total + variance
        return total

    @cached_property
    def histogram(self) -> Histogram | None:
        """Histogram of all latencies."""
        return merged(cell.histogram for s in self.stretches for cell in s.cells)

    def _slower_than(self, value_ns: float) -> Sequence[tuple[Floats, Floats]]:
        """Return the count of I/Os slower than a latency and the total I/O count of each batch."""
        return [(s.total(lambda cell: cell.slower_than(value_ns)), s.ios) for s in self.stretches]

    def _share(self, value_ns: float) -> _Share | None:
        """Return the fraction of I/Os slower than a latency, or None if the fraction is 0 or 1."""
        slower = self._slower_than(value_ns)
        part, count = (sum(float(pair[n].sum()) for pair in slower) for n in (0, 1))
        if not 0 < part < count or (variance := self._variance(slower, of_share=True)) is None:
            return None
        return _Share(part / count, variance)

    @cached_property
    def _counted_shares(self) -> Sequence[_Share]:
        """Fractions of I/Os that are slower than the `SLOWER` quantiles."""
        if (histogram := self.histogram) is None:
            return []
        _, upper, count = histogram.buckets()
        shares = [self._share(float(upper[_bucket_of(q, count)])) for q in SLOWER]
        return [share for share in shares if share is not None]

    def _independent(self, share: _Share, tested: float) -> tuple[float, float]:
        """Return the effective number of slow I/Os and the degrees of freedom.

        Slow I/Os are never considered more independent than faster I/Os. A small sample of slow
        I/Os often misses the long bursts that cause most of the variance. In this case, the
        correlation among faster I/Os applies.
        """
        count, degrees = share.independent(tested), share.variance.degrees
        for other in self._counted_shares:
            bound = other.independent(tested)
            if other.value > share.value and bound < min(count, _FEWEST_INDEPENDENT):
                count, degrees = bound, other.variance.degrees
        return count, degrees

    def _deviation(self, share: _Share, tested: float) -> float:
        """Return by how many half-widths a measured fraction exceeds a tested fraction."""
        count, degrees = self._independent(share, tested)
        reach = two_sided_t(SHARE, max(1, int(degrees))) / sqrt(count * (1 - tested))
        distance = _logit(share.value) - _logit(tested)
        return distance / reach if reach > 0 else copysign(inf, distance) if distance else 0.0

    def covers_slower(self, value_ns: float, share: float) -> bool:
        """Return `True` if the interval for the fraction of slower I/Os contains `share`."""
        measured = self._share(value_ns)
        return measured is not None and abs(self._deviation(measured, share)) <= 1

    @property
    def _shows_latencies(self) -> bool:
        """`True` if the batches show the variation in latencies.

        The latencies of a flash drive under writes depend on the distribution of valid data, as
        write amplification does. Latencies vary with this distribution until the drive has been
        overwritten.
        """
        if any(not cell.slower for s in self.stretches for cell in s.cells):
            return False
        length_s = sum(float(s.width_ns[s.settled].sum()) for s in self.stretches) / 1e9
        is_flash = all(isfinite(s.nand_bytes.sum()) for s in self.stretches)
        least = LATENCY_LEAST_OVERWRITTEN * self.capacity_bytes
        return length_s >= _LEAST_S and not (is_flash and 0 < self._written < least)

    def quantile(self, q: float) -> Bounds | None:
        """Return a latency quantile's interval, or None if there are too few samples.

        The interval contains the latencies where a fraction of 1 - q slower I/Os is plausible. The
        correlation is estimated at each end of the interval, because the slowest I/Os are most
        strongly correlated.
        """
        histogram = self.histogram
        if histogram is None or not self._shows_latencies:
            return None
        lower, upper, count = histogram.buckets()
        middle, last = _bucket_of(q, count), len(count) - 1
        slow = np.concatenate([part for part, _ in self._slower_than(float(upper[middle]))])
        batches = float(slow.sum()) ** 2 / max(float(slow @ slow), 1.0)
        if min(q, 1 - q) * count.sum() < FEWEST_SLOW or batches < FEWEST_SLOW_BATCHES:
            return None

        @cache
        def share(bucket: int) -> _Share | None:
            return self._share(float(upper[bucket]))

        def beyond(bucket: int) -> bool:
            return (slower := share(bucket)) is None or self._deviation(slower, 1 - q) < -1

        def before(bucket: int) -> bool:
            return (slower := share(bucket)) is not None and self._deviation(slower, 1 - q) > 1

        high = _first(beyond, middle, last, 1)
        low = _first(before, middle - 1, 0, -1)
        least, most, measured = histogram.min_ns, histogram.max_ns, share(middle)
        if high is None or share(high) is None or least is None or most is None or measured is None:
            return None
        low = 0 if low is None else low + 1
        return Bounds(max(float(lower[low]), least), min(float(upper[high]), most),
                      self._independent(measured, 1 - q)[1])  # fmt: skip


class _Share(NamedTuple):
    """A fraction of I/Os from 0 to 1, with its relative variance."""

    value: float
    variance: Variance

    def independent(self, share: float) -> float:
        """Return the number of independent I/Os with this variance at a given true fraction."""
        value = self.variance.value
        return (1 - self.value) / value * share / self.value if value > 0 else inf


def _logit(share: float) -> float:
    return log(share / (1 - share))


def _bucket_of(q: float, count: npt.NDArray[np.uint64]) -> int:
    return int(np.searchsorted(np.cumsum(count), q * count.sum()))


def _first(is_true: Callable[[int], bool], start: int, end: int, step: int) -> int | None:
    """Return the first number from `start` to `end`, in steps of `step`, that passes the test.

    All numbers after the returned number also pass the test. The result is `None` if no number
    passes the test.
    """
    if (end - start) * step < 0:
        return None
    false, at, width = start - step, start, 1
    while not is_true(at):
        if at == end:
            return None
        false, width = at, 2 * width
        at = min(at + width, end) if step > 0 else max(at - width, end)
    while abs(at - false) > 1:
        middle = (at + false) // 2
        at, false = (middle, false) if is_true(middle) else (at, middle)
    return at


# -- batches from the store --------------------------------------------------------------------

Key = tuple[int, str]  # Job number and operation.


def of_intervals(intervals: pa.Table, seqs: Iterable[int]) -> pa.Table:
    """Return batches derived from step intervals, for runs without batches.

    The function is for engines and older runs that store no batches. Real drives have 1 s intervals
    that lack slow I/Os and flash writes. Such batches support rates and means, but neither
    percentiles nor write amplification.
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
    # Adjacent intervals are joined so that a step has at most `_BATCHES_MAX` batches.
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
    table: pa.Table,
    seqs: Iterable[int],
    kind: str,
    histograms: Mapping[Key, Histogram],
    began_ns: Mapping[tuple[int, int], int] | None = None,
) -> Callable[[Iterable[Key]], Stretch | None]:
    """Return a function that selects the batches of given operations and jobs in these steps.

    Args:
        table: `batches` table of the run.
        seqs: Sequence numbers of the steps, in order.
        kind: Latency kind.
        histograms: Histogram of all latencies in the steps.
        began_ns: Start time of each job within the step, by step and job number (default: 0). The
            batch where the first selected job starts is shortened to that start time.

    Returns:
        The function. The selected result is `None` if the run has no batches for an operation.
    """
    rows = table.filter(pc.field("seq").isin(list(seqs)) & (pc.field("kind") == kind))
    columns = {name: rows.column(name).to_numpy() for name in rows.column_names if name != "kind"}
    times = np.stack([columns["seq"], columns["end_ns"]])
    batches, first, place = np.unique(times, axis=1, return_index=True, return_inverse=True)
    place = place.reshape(-1)

    def widths(keys: Sequence[Key]) -> Floats:
        width_ns: Floats = columns["width_ns"][first].astype(np.float64)
        starts: dict[int, int] = {}
        for (seq, job), start_ns in (began_ns or {}).items():
            if any(key[0] == job for key in keys):
                starts[seq] = min(start_ns, starts.get(seq, start_ns))
        for seq, start_ns in starts.items():
            within = batches[1] - start_ns
            starting = (batches[0] == seq) & (within > 0) & (within < width_ns)
            width_ns[starting] = within[starting]
        return width_ns

    def cell(key: Key) -> Cell | None:
        if key not in histograms:
            return None
        number = TIMED_NAMES.index(key[1])
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
        keys = list(keys)
        cells = [cell(key) for key in keys]
        measured = [c for c in cells if c is not None]
        if not measured or len(measured) < len(cells):
            return None
        return Stretch(
            widths(keys),
            columns["host_write_bytes"][first].astype(np.float64),
            columns["nand_write_bytes"][first].astype(np.float64),
            measured,
            is_coarse=SLOWER[0.5] not in columns,
        )

    return restricted
