"""Kinds of figures, and the unit in which the errors of each kind are counted.

Errors of maxima and means are not averaged together because they are not comparable. Rates and
means have relative errors, tails and deviations are compared as ratios, and percentages differ by
percentage points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from writecliff.published.conditions import (
    CONSISTENCIES,
    DEVIATIONS,
    FILL,
    IMPROVEMENT,
    LATENCIES,
    RATES,
    condition,
)
from writecliff.published.figures import PublishedFigure

Unit = Literal["%", "x", "points"]
Statistic = Literal["median", "share within"]


@dataclass(frozen=True)
class Kind:
    """A group of figures whose errors are comparable.

    Errors above `limit` count as large. `goal` is the target for the median error or for the
    percentage of errors within the limit, in `unit`.
    """

    name: str
    word: str  # Value of `--kind`.
    unit: Unit
    limit: float
    statistic: Statistic = "median"
    goal: float | None = None


PURE = Kind("IOPS and throughput, pure loads", "rates", "%", 20.0, goal=5.0)
MIXED = Kind("IOPS and throughput, mixed loads", "rates", "%", 20.0, goal=12.0)
MEAN = Kind("mean latency", "latency", "%", 20.0, goal=12.0)
TAILS = Kind("99.9 / 99.99 % and maxima", "tails", "x", 1.5, goal=1.5)
BETTER_RATES = Kind("improvement tables, IOPS", "improvements", "points", 15.0, goal=15.0)
BETTER_TAILS = Kind("improvement tables, latency", "improvements", "points", 15.0, goal=15.0)
CONSISTENCY = Kind("consistency", "consistency", "points", 3.0, goal=3.0)
DEVIATION = Kind("standard deviations", "deviations", "x", 2.0, "share within", 80.0)
VOLUME = Kind("volume of SLC caches", "slc-cache", "%", 10.0, goal=10.0)
ENDURANCE = Kind("endurance", "endurance", "%", 20.0)
POWER = Kind("power", "power", "%", 20.0)
OTHER = Kind("other", "other", "%", 20.0)
KINDS = (
    PURE, MIXED, MEAN, TAILS, BETTER_RATES, BETTER_TAILS, CONSISTENCY, DEVIATION, VOLUME,
    ENDURANCE, POWER, OTHER,
)  # fmt: skip
# Comparisons of two drives: percentage with the published winner.
WINNERS_MIXED, WINNERS = "right winner, mixed cells", "right winner, all comparisons"
WINNERS_GOALS: Mapping[str, float] = {WINNERS_MIXED: 90.0, WINNERS: 95.0}
ENDURANCES = ("tbw", "dwpd", "waf", "lifetime_ratio_streams_vs_none")
# Other metric names for `conditions.RATES`.
_OTHER_RATES = ("iops_fob", "iops_steady", "throughput_fob", "iops_burst", "throughput_burst")
_PER_LOAD = {
    **dict.fromkeys(LATENCIES, TAILS),
    **{name: MEAN for name in LATENCIES if name.startswith("latency_avg")},
    "latency_avg_burst": MEAN,
    **dict.fromkeys(CONSISTENCIES, CONSISTENCY),
    **dict.fromkeys(DEVIATIONS, DEVIATION),
    **dict.fromkeys(ENDURANCES, ENDURANCE),
}
METRICS = (*RATES, *_OTHER_RATES, *_PER_LOAD)


def kind_of(figure: PublishedFigure) -> Kind:
    """Return the kind of a figure."""
    metric = figure.metric
    if IMPROVEMENT in metric:
        return BETTER_TAILS if metric.startswith("latency") else BETTER_RATES
    if metric.startswith("power_"):
        return POWER
    if metric.startswith(FILL):
        return PURE if "throughput" in metric else VOLUME
    if metric in RATES + _OTHER_RATES:
        return MIXED if is_mixed(figure) else PURE
    return _PER_LOAD.get(metric, OTHER)


def is_mixed(figure: PublishedFigure) -> bool:
    """Return `True` if a figure's load both reads and writes."""
    measured = condition(figure)
    return measured is not None and measured.load is not None and measured.load.mixed


WORDS = tuple(dict.fromkeys(("pure", "mixed", *(kind.word for kind in KINDS))))


def is_of(figure: PublishedFigure, word: str) -> bool:
    """Return `True` if a `--kind` word selects the figure.

    "pure" and "mixed" select by load, and the other words select by metric.
    """
    if word in ("pure", "mixed"):
        measured = condition(figure)
        loaded = measured is not None and measured.load is not None
        return loaded and is_mixed(figure) == (word == "mixed")
    return kind_of(figure).word == word
