"""Published against simulated: errors figure by figure, medians, and who wins."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from writecliff.published.conditions import (
    Condition,
    Load,
    baseline_condition,
    condition,
    preset_of,
)
from writecliff.published.figures import PublishedFigure

Results = Mapping[str, Mapping[Load, Mapping[str, float]]]

# Metrics by what is asked of them. A percentile is not a mean, and a watt is not a latency.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "throughput": (
        "iops", "iops_fob", "iops_steady", "read_iops", "write_iops", "throughput",
        "throughput_fob", "throughput_improvement", "iops_improvement",
    ),
    "latency, average": ("latency_avg",),
    "latency, percentiles and maximum": (
        "latency_p99", "latency_p99.9", "latency_p99.99", "latency_max",
    ),
    "consistency": ("iops_stddev",),
    "endurance": ("tbw", "dwpd", "waf", "lifetime_ratio_streams_vs_none"),
}  # fmt: skip
POWER = "power"
_LOWER_IS_BETTER = ("latency", "power", "iops_stddev", "waf")


@dataclass(frozen=True)
class Row:
    """A published figure and what the simulation says; None where it says nothing, and `why`."""

    figure: PublishedFigure
    simulated: float | None
    why: str = ""

    @property
    def error_pct(self) -> float | None:
        """Of the figure; of the ratio where the figure is an improvement."""
        if self.simulated is None:
            return None
        if self.figure.metric.endswith("_improvement"):
            return 100 * ((100 + self.simulated) / (100 + self.figure.value) - 1)
        if self.figure.value == 0:
            return None
        return 100 * (self.simulated / self.figure.value - 1)

    @property
    def group(self) -> str:
        if self.figure.metric.startswith("power_"):
            return POWER
        return next((g for g, metrics in GROUPS.items() if self.figure.metric in metrics), "other")


@dataclass(frozen=True)
class Score:
    """Over the figures of one group."""

    group: str
    figures: int
    median_error_pct: float
    within_20_pct: float  # share of the figures, in %
    worst: Row


@dataclass(frozen=True)
class Duel:
    """Two drives under the same conditions: which one is better, published and simulated."""

    item: str
    metric: str
    label: str
    drives: tuple[str, str]
    published: tuple[float, float]
    simulated: tuple[float, float]

    @property
    def right(self) -> bool:
        """A draw has no winner, so it is never right."""
        if self.simulated[0] == self.simulated[1]:
            return False

        def first_wins(pair: tuple[float, float]) -> bool:
            return (pair[0] > pair[1]) != self.metric.startswith(_LOWER_IS_BETTER)

        return first_wins(self.published) == first_wins(self.simulated)


def value_of(one: Condition, results: Results) -> float | None:
    """What the simulation says under a condition."""
    load = one.load
    return None if load is None else results.get(one.device, {}).get(load, {}).get(one.metric)


def row_of(figure: PublishedFigure, results: Results, derived: Mapping[str, float]) -> Row:
    """`derived`: figures that are not read off one load, by "device metric"."""
    one = condition(figure)
    if one is None:
        return Row(figure, None, "nothing here corresponds to it")
    key = f"{one.device} {one.metric}"
    if key in derived:
        return Row(figure, derived[key])
    value = value_of(one, results)
    if value is None:
        return Row(figure, None, "the simulation does not give it")
    if not figure.baseline:
        return Row(figure, value)
    other = baseline_condition(figure)
    base = value_of(other, results) if other else None
    if not base:
        return Row(figure, None, f"no figure of {figure.baseline}")
    return Row(figure, 100 * (value / base - 1))


def scores_of(rows: Iterable[Row]) -> list[Score]:
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        if row.error_pct is not None:
            grouped.setdefault(row.group, []).append(row)
    return [
        _score(group, grouped[group]) for group in (*GROUPS, POWER, "other") if group in grouped
    ]


def _score(group: str, rows: Sequence[Row]) -> Score:
    errors = [abs(row.error_pct or 0.0) for row in rows]
    return Score(
        group=group,
        figures=len(rows),
        median_error_pct=statistics.median(errors),
        within_20_pct=100 * sum(error <= 20 for error in errors) / len(errors),
        worst=max(rows, key=lambda row: abs(row.error_pct or 0.0)),
    )


def duels_of(rows: Iterable[Row]) -> list[Duel]:
    """Every two drives that one source shows under the same conditions with unequal figures, and
    every figure that is itself a comparison."""
    duels = []
    by_test: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        f = row.figure
        if row.simulated is None:
            continue
        if f.baseline:
            ratio = (1 + f.value / 100, 1 + row.simulated / 100)
            metric = f.metric.removesuffix("_improvement")
            pair = (f.device, f.baseline)
            duels.append(Duel(f.item, metric, f.label, pair, (ratio[0], 1.0), (ratio[1], 1.0)))
            continue
        load = (f.access, f.block_bytes, f.read_pct, f.outstanding, f.compressible_pct)
        test = (f.source, f.item, *load, f.metric)
        by_test.setdefault(test, []).append(row)
    for same in by_test.values():
        for a, b in combinations(same, 2):
            values = (a.figure.value, b.figure.value)
            if values[0] == values[1] or preset_of(a.figure.device) == preset_of(b.figure.device):
                continue
            simulated = (a.simulated or 0.0, b.simulated or 0.0)
            drives = (a.figure.device, b.figure.device)
            f = a.figure
            duels.append(Duel(f.item, f.metric, f.label, drives, values, simulated))
    return duels
