"""Headline figures of a run with unit, direction and interval.

Every test's report defines its own headline figures (`TestReport.headlines`). Comparisons, suite
and sweep pages, and a command's last lines show these figures for any test.

All intervals have a confidence level of 95 %. For a mean, the interval is Student's t over its
samples, usually the rounds in the steady-state window. For a quantile, the interval is computed
from order statistics. A single-value figure has no interval, because the run does not reveal the
figure's variation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, isfinite, sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.report.student_t import two_sided_t

if TYPE_CHECKING:
    from writecliff._native import Histogram

ROUNDS = "mean over the rounds of the window"
NS_PER_MS = 1e6
_SHARE = 0.95  # Confidence level of an interval.
_REACH_MAX = 50.0  # Maximum extent of an interval on a logarithmic scale.


@dataclass(frozen=True)
class Interval:
    """A 95 % confidence interval, in the figure's unit."""

    low: float  # Lower end of the interval.
    high: float  # Upper end of the interval.
    of: str  # Sampled quantity: `ROUNDS`, or "99.99 % quantile of the I/Os".
    degrees: float | None = None  # Degrees of freedom for Student's t; `None` if unknown.


@dataclass(frozen=True, kw_only=True)
class Headline:
    """A headline figure of a run."""

    # Key, which is the same for a quantity in all runs of a test, such as "iops_4k_0_100".
    key: str
    label: str  # Figure name for readers.
    # Group; figures with the same group and metric are of one kind, such as "mixes".
    group: str = ""
    load: str = ""  # Load that identifies the figure within its kind: "random, 4 KiB, OIO 1".
    metric: str = ""  # Metric in words, such as "IOPS".
    value: float  # Figure value in `unit`.
    unit: str  # Unit, such as "IOPS" or "ms"; empty for ratios.
    higher_is_better: bool | None = True  # `None` if neither direction is better.
    interval: Interval | None = None  # Confidence interval; `None` for a single value.
    at: str = ""  # Load that the run chose for the measurement, such as "TC8/QD32".
    steady: bool = True  # `False` if the drive was not in steady state.
    # For latencies from arrival: reason why the figure depends on the step length; "" if it does
    # not.
    not_sustained: str = ""

    @property
    def text(self) -> str:
        """Value with its unit, such as "41,213 IOPS"."""
        return f"{value_text(self.value)} {self.unit}".strip()

    @property
    def kind(self) -> str:
        """The figure's kind within its campaign: "mixes: IOPS", or "" if it has no group."""
        return f"{self.group}: {self.metric}" if self.group else ""

    @property
    def place(self) -> str:
        """Name of the figure within its kind, which is its load or, failing that, its label."""
        return self.load or self.label

    @property
    def full_text(self) -> str:
        """Value with its interval, such as "41,213 (40,950 to 41,480) IOPS"."""
        return f"{value_text(self.value)}{interval_text(self.interval)} {self.unit}".strip()


def value_text(value: float) -> str:
    """Return a value with four significant digits, or as a whole number if it is at least 1,000."""
    return units.significant(value, 4)


def interval_text(interval: Interval | None) -> str:
    """Return an interval in parentheses after a space, or "" for None."""
    if interval is None:
        return ""
    return f" ({value_text(interval.low)} to {value_text(interval.high)})"


def headline(key: str, label: str, value: float | None, unit: str, **more: Any) -> list[Headline]:
    """Return a single-value figure, or an empty result if the value is unknown."""
    if value is None or not isfinite(value):
        return []
    return [Headline(key=key, label=label, value=value, unit=unit, **more)]


def mean_headline(
    key: str,
    label: str,
    samples: Iterable[float | None],
    unit: str,
    *,
    value: float | None = None,
    of: str = ROUNDS,
    **more: Any,
) -> list[Headline]:
    """Return the mean of `samples` with its interval, or empty if no sample is known.

    `value` replaces the mean of the samples where a weighted mean is exact.
    """
    finite = [sample for sample in samples if sample is not None and isfinite(sample)]
    if not finite:
        return headline(key, label, value, unit, **more)
    mean = fmean(finite) if value is None else value
    return headline(key, label, mean, unit, interval=mean_interval(finite, mean, of), **more)


def mean_interval(samples: Sequence[float], mean: float, of: str = ROUNDS) -> Interval | None:
    """Return a mean's 95 % interval by Student's t, or None for fewer than two samples.

    For figures that cannot be negative, the scale is logarithmic, so the interval cannot extend
    below zero. The relative error is the mean's relative error (delta method).
    """
    if len(samples) < 2:
        return None
    degrees = len(samples) - 1
    half = two_sided_t(_SHARE, degrees) * stdev(samples) / sqrt(len(samples))
    if min(samples) < 0 or mean <= 0:
        return Interval(mean - half, mean + half, of, degrees)
    reach = exp(min(half / mean, _REACH_MAX))
    return Interval(mean / reach, mean * reach, of, degrees)


def quantile_headline(
    key: str, label: str, histogram: Histogram | None, q: float, **more: Any
) -> list[Headline]:
    """Return a response time quantile in ms, or empty if there are too few I/Os."""
    quantile = None if histogram is None or not histogram.count else histogram.quantile(q)
    if quantile is None or quantile.value_ns is None:
        return []
    interval = None
    if quantile.low_ns is not None and quantile.high_ns is not None:
        of = f"{units.nines(q)} quantile of the I/Os"
        interval = Interval(quantile.low_ns / NS_PER_MS, quantile.high_ns / NS_PER_MS, of)
    value = quantile.value_ns / NS_PER_MS
    return headline(key, label, value, "ms", higher_is_better=False, interval=interval, **more)


def ms(value_ns: float | None) -> float | None:
    """Convert a latency from ns to ms; None remains None."""
    return None if value_ns is None else value_ns / NS_PER_MS
