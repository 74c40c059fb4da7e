"""Compares published with simulated figures: errors, medians by group, and which drive wins."""

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

# Metrics by kind: the errors of a percentile, a mean and a power are not comparable.
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
    """A published figure and its simulation; without one `simulated` is None and `why` says why."""

    figure: PublishedFigure
    simulated: float | None
    why: str = ""

    @property
    def error_pct(self) -> float | None:
        """Relative error of the figure, in %; of the ratio where the figure is an improvement."""
        if self.simulated is None:
            return None
        if self.figure.metric.endswith("_improvement"):
            return 100 * ((100 + self.simulated) / (100 + self.figure.value) - 1)
        if self.figure.value == 0:
            return None
        return 100 * (self.simulated / self.figure.value - 1)

    @property
    def group(self) -> str:
        """Its key in `GROUPS`, `POWER` or "other"."""
        if self.figure.metric.startswith("power_"):
            return POWER
        return next((g for g, metrics in GROUPS.items() if self.figure.metric in metrics), "other")


@dataclass(frozen=True)
class Score:
    """Errors over the figures of one group."""

    group: str
    figures: int
    median_error_pct: float
    within_20_pct: float  # share of the figures, in %
    worst: Row


@dataclass(frozen=True)
class PairwiseComparison:
    """Two drives under the same conditions, as published and as simulated."""

    item: str
    metric: str
    label: str
    drives: tuple[str, str]
    published: tuple[float, float]
    simulated: tuple[float, float]

    @property
    def right(self) -> bool:
        """Whether both have the same winner; a simulated draw never has."""
        if self.simulated[0] == self.simulated[1]:
            return False

        def first_wins(pair: tuple[float, float]) -> bool:
            return (pair[0] > pair[1]) != self.metric.startswith(_LOWER_IS_BETTER)

        return first_wins(self.published) == first_wins(self.simulated)


def value_of(one: Condition, results: Results) -> float | None:
    """The simulated value under a condition; None if it was not measured."""
    load = one.load
    return None if load is None else results.get(one.device, {}).get(load, {}).get(one.metric)


def row_of(figure: PublishedFigure, results: Results, derived: Mapping[str, float]) -> Row:
    """A figure beside its simulation. `derived`: values that no single load gives, by "device
    metric"."""
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
    """A score for each group that has simulated figures, in the order of `GROUPS`."""
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


def comparisons_of(rows: Iterable[Row]) -> list[PairwiseComparison]:
    """Every two drives that one source shows under the same conditions with unequal figures, and
    every figure that is itself a comparison."""
    found = []
    by_test: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        f = row.figure
        if row.simulated is None:
            continue
        if f.baseline:
            metric = f.metric.removesuffix("_improvement")
            published, simulated = ((1 + v / 100, 1.0) for v in (f.value, row.simulated))
            drives = (f.device, f.baseline)
            found.append(PairwiseComparison(f.item, metric, f.label, drives, published, simulated))
            continue
        load = (f.access, f.block_bytes, f.read_pct, f.outstanding, f.compressible_pct)
        by_test.setdefault((f.source, f.item, *load, f.metric), []).append(row)
    for same in by_test.values():
        for a, b in combinations(same, 2):
            f, other = a.figure, b.figure
            if f.value == other.value or preset_of(f.device) == preset_of(other.device):
                continue
            drives, published = (f.device, other.device), (f.value, other.value)
            simulated = (a.simulated or 0.0, b.simulated or 0.0)
            found.append(
                PairwiseComparison(f.item, f.metric, f.label, drives, published, simulated)
            )
    return found


def right_pct(comparisons: Sequence[PairwiseComparison]) -> float | None:
    """Share of the comparisons with the right winner, in %; None without comparisons."""
    right = sum(one.right for one in comparisons)
    return 100 * right / len(comparisons) if comparisons else None
