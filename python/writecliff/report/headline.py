"""The headline figures of a run, each with unit, direction and interval.

The report of every test names its own (`TestReport.headlines`). Comparisons, the pages of suites
and sweeps, and the last lines of a command show these figures and depend on no test.

An interval covers 95 %. The interval of a mean is Student's t over its samples, mostly the rounds
of the steady-state window; that of a quantile follows from the order statistics. A figure of a
single value has none, because the run does not show how much it would vary.
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
_SHARE = 0.95  # of an interval
_REACH_MAX = 50.0  # of an interval on a logarithmic scale


@dataclass(frozen=True)
class Interval:
    """A 95 % interval, in the unit of its figure."""

    low: float  # its lower end
    high: float  # its upper end
    of: str  # the quantity: `ROUNDS`, "99.99 % quantile of the I/Os"
    degrees: float | None = None  # of freedom, by Student's t; None if unknown


@dataclass(frozen=True, kw_only=True)
class Headline:
    """A headline figure of a run."""

    key: str  # equal in all runs of a test for equal quantities: "iops_4k_0_100"
    label: str  # for readers
    group: str = ""  # equal group and metric make a kind: "mixes"
    load: str = ""  # load that identifies it among its kind: "random, 4 KiB, OIO 1"
    metric: str = ""  # in words: "IOPS"
    value: float  # in `unit`
    unit: str  # "IOPS", "ms"; empty for ratios
    higher_is_better: bool | None = True  # None: neither
    interval: Interval | None = None  # None: a single value
    at: str = ""  # load that the run chose for the measurement: "TC8/QD32"
    steady: bool = True  # False: the drive was not in steady state
    # Latencies from arrival: why the figure depends on the length of the step; "" if it does not.
    not_sustained: str = ""

    @property
    def text(self) -> str:
        """The value with its unit: "41,213 IOPS"."""
        return f"{value_text(self.value)} {self.unit}".strip()

    @property
    def kind(self) -> str:
        """The kind of the figure in its campaign: "mixes: IOPS"; empty without a group."""
        return f"{self.group}: {self.metric}" if self.group else ""

    @property
    def place(self) -> str:
        """The name of the figure within its kind: its load, else its label."""
        return self.load or self.label

    @property
    def full_text(self) -> str:
        """The value with its interval: "41,213 (40,950 to 41,480) IOPS"."""
        return f"{value_text(self.value)}{interval_text(self.interval)} {self.unit}".strip()


def value_text(value: float) -> str:
    """Return a value with four significant digits; from 1,000 on a whole number."""
    return units.significant(value, 4)


def interval_text(interval: Interval | None) -> str:
    """Return an interval in parentheses after a space; empty for None."""
    if interval is None:
        return ""
    return f" ({value_text(interval.low)} to {value_text(interval.high)})"


def headline(key: str, label: str, value: float | None, unit: str, **more: Any) -> list[Headline]:
    """Return a figure of a single value; empty if the value is unknown."""
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
    """Return the mean of `samples` with its interval; empty if none is known.

    `value` replaces the mean if a weighted mean is exact.
    """
    finite = [sample for sample in samples if sample is not None and isfinite(sample)]
    if not finite:
        return headline(key, label, value, unit, **more)
    mean = fmean(finite) if value is None else value
    return headline(key, label, mean, unit, interval=mean_interval(finite, mean, of), **more)


def mean_interval(samples: Sequence[float], mean: float, of: str = ROUNDS) -> Interval | None:
    """Return the 95 % interval of a mean by Student's t; None for fewer than two samples.

    For figures that cannot be negative the scale is logarithmic, so the interval does not reach
    below zero. The relative error is that of the mean (the delta method).
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
    """Return a quantile of response times in ms; empty if it has too few I/Os."""
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
    """Convert a latency from ns to ms; None stays None."""
    return None if value_ns is None else value_ns / NS_PER_MS
