"""Comparison of published and simulated figures: errors, scores by kind, and winners."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from writecliff.published.conditions import (
    IMPROVEMENT,
    Condition,
    Load,
    baseline_condition,
    condition,
    measured_metric,
    parts_of,
    preset_of,
)
from writecliff.published.figures import PublishedFigure
from writecliff.published.kinds import (
    KINDS,
    WINNERS,
    WINNERS_GOALS,
    WINNERS_MIXED,
    Kind,
    is_mixed,
    kind_of,
)

Results = Mapping[str, Mapping[Load, Mapping[str, float]]]

_LOWER_IS_BETTER = ("latency", "power", "waf")
_CLEAR = 0.05  # Minimum published difference for a clear winner.


@dataclass(frozen=True)
class Row:
    """A published figure and its simulated value; `why` is the reason if there is no value."""

    figure: PublishedFigure
    simulated: float | None
    why: str = ""

    @property
    def kind(self) -> Kind:
        """Kind of the figure."""
        return kind_of(self.figure)

    @property
    def published(self) -> float:
        """Published value or, for an improvement, ratio of the drive's value to the baseline's."""
        f = self.figure
        return _ratio(f, f.value) if IMPROVEMENT in f.metric else f.value

    @property
    def compared(self) -> tuple[float, float] | None:
        """Published and simulated value or, for an improvement, ratios to the baseline.

        The result is `None` if the figure has no simulated value.
        """
        if self.simulated is None:
            return None
        if IMPROVEMENT in self.figure.metric:
            return self.published, _ratio(self.figure, self.simulated)
        return self.published, self.simulated

    @property
    def error_pct(self) -> float | None:
        """Relative error in %; for an improvement, error of the ratio to the baseline."""
        published, simulated = self.compared or (0.0, 0.0)
        return 100 * (simulated / published - 1) if published else None

    @property
    def error(self) -> float | None:
        """Error in the unit of its kind: %, simulated over published, or percentage points."""
        if self.simulated is None:
            return None
        if self.kind.unit == "points":
            return self.simulated - self.figure.value
        if self.kind.unit == "x":
            return self.simulated / self.figure.value if self.figure.value else None
        return self.error_pct

    @property
    def size(self) -> float | None:
        """Absolute error; for a ratio, the greater of the ratio and its reciprocal."""
        error = self.error
        if error is None or self.kind.unit != "x":
            return None if error is None else abs(error)
        return max(error, 1 / error) if error > 0 else float("inf")

    @property
    def is_far(self) -> bool:
        """`True` if the error exceeds the limit for its kind."""
        return self.size is not None and self.size > self.kind.limit


def _ratio(figure: PublishedFigure, improvement_pct: float) -> float:
    """Return the ratio of the drive's figure to the baseline's."""
    better = improvement_pct / 100
    return 1 - better if lower_is_better(figure.metric) else 1 + better


def lower_is_better(metric: str) -> bool:
    """Return `True` for latencies, power, WAF and standard deviations."""
    return metric.startswith(_LOWER_IS_BETTER) or metric.endswith("_stddev")


@dataclass(frozen=True)
class Score:
    """Errors of the figures of a kind, or winners of comparisons.

    `value` is the median absolute error in `unit`, or a percentage; `goal` is its target.
    """

    kind: str
    figures: int
    missing: int  # Number of figures that were not simulated.
    statistic: str  # Statistic: "median", "share within 2 x" or "share".
    unit: str
    value: float
    goal: float | None
    worst: Row | None

    @property
    def reached(self) -> bool | None:
        """`True` if the value reaches the goal, or None without a goal."""
        if self.goal is None:
            return None
        return self.value <= self.goal if self.statistic == "median" else self.value >= self.goal


@dataclass(frozen=True)
class PairwiseComparison:
    """Published and simulated figures of two drives under the same conditions."""

    item: str
    metric: str
    label: str
    drives: tuple[str, str]
    published: tuple[float, float]
    simulated: tuple[float, float]
    mixed: bool = False  # `True` if the load both reads and writes.

    @property
    def right(self) -> bool:
        """`True` if the published and simulated winner match; a simulated draw has no winner."""
        if self.simulated[0] == self.simulated[1]:
            return False

        def first_wins(pair: tuple[float, float]) -> bool:
            return (pair[0] > pair[1]) != lower_is_better(self.metric)

        return first_wins(self.published) == first_wins(self.simulated)

    @property
    def clear(self) -> bool:
        """`True` if the published figures differ by more than 5 %."""
        return is_clear(self.published)


def is_clear(published: tuple[float, float]) -> bool:
    """Return `True` if two published figures differ by more than 5 %."""
    low, high = sorted(published)
    return high > low * (1 + _CLEAR)


def value_of(condition: Condition, results: Results) -> float | None:
    """Return the simulated value under a condition, or None if it was not measured."""
    load = condition.load
    return (
        None
        if load is None
        else results.get(condition.device, {}).get(load, {}).get(condition.metric)
    )


def row_of(figure: PublishedFigure, results: Results, derived: Mapping[str, float]) -> Row:
    """Return a figure with its simulated value.

    `derived` holds values that no single load measures, by "device metric".
    """
    measured = condition(figure)
    if measured is None:
        return Row(figure, None, "the simulator has no equivalent")
    key = f"{measured.device} {measured.metric}"
    if key in derived:
        return Row(figure, derived[key])
    rows = [_single(part, results) for part in parts_of(figure)]
    values = [row.simulated for row in rows if row.simulated is not None]
    if len(values) < len(rows):
        return Row(figure, None, next(row.why for row in rows if row.simulated is None))
    return Row(figure, min(values) if figure.metric.endswith("_min") else max(values))


def _single(figure: PublishedFigure, results: Results) -> Row:
    """Return a figure under a single load."""
    measured, other = condition(figure), baseline_condition(figure)
    value = None if measured is None else value_of(measured, results)
    if value is None:
        return Row(figure, None, "the simulation does not measure it")
    if not figure.baseline:
        return Row(figure, value)
    base = value_of(other, results) if other else None
    if not base:
        return Row(figure, None, f"{figure.baseline} has no simulated figure")
    sign = -1 if lower_is_better(figure.metric) else 1
    return Row(figure, sign * 100 * (value / base - 1))


def scores_of(rows: Sequence[Row]) -> list[Score]:
    """Return a score for each kind that has simulated figures, then the scores of winners.

    Kinds appear in the order of `KINDS`. The first winner score covers mixed loads with published
    figures that differ by more than 5 %.
    """
    scores = []
    for kind in KINDS:
        members = [row for row in rows if row.kind is kind]
        simulated = [row for row in members if row.size is not None]
        if simulated:
            scores.append(_score(kind, simulated, len(members) - len(simulated)))
    comparisons = comparisons_of(rows)
    clear = [comparison for comparison in comparisons if comparison.mixed and comparison.clear]
    for name, of in ((WINNERS_MIXED, clear), (WINNERS, comparisons)):
        right = right_pct(of)
        if right is not None:
            goal = WINNERS_GOALS[name]
            scores.append(Score(name, len(of), 0, "share", "%", right, goal, None))
    return scores


def _score(kind: Kind, rows: Sequence[Row], missing: int) -> Score:
    sizes = [row.size or 0.0 for row in rows]
    statistic, unit, value = "median", kind.unit, statistics.median(sizes)
    if kind.statistic != "median":
        statistic, unit = f"share within {kind.limit:g} {kind.unit}", "%"
        value = 100 * sum(size <= kind.limit for size in sizes) / len(sizes)
    worst = max(rows, key=lambda row: row.size or 0.0)
    return Score(kind.name, len(rows), missing, statistic, unit, value, kind.goal, worst)


def pairs_of(figures: Sequence[PublishedFigure]) -> list[tuple[int, int | None]]:
    """Return the indices of all pairs of figures that can be compared.

    A pair consists of two drives' figures from one source under the same conditions with unequal
    values, or of (index, None) for a figure that is itself a comparison.
    """
    pairs: list[tuple[int, int | None]] = []
    by_test: dict[tuple[object, ...], list[int]] = {}
    for index, f in enumerate(figures):
        if f.baseline:
            if f.value:
                pairs.append((index, None))
            continue
        load = (f.access, f.block_bytes, f.read_pct, f.outstanding, f.compressible_pct)
        by_test.setdefault((f.source, f.item, *load, f.metric), []).append(index)
    for same in by_test.values():
        for a, b in combinations(same, 2):
            first, other = figures[a], figures[b]
            if first.value != other.value and preset_of(first.device) != preset_of(other.device):
                pairs.append((a, b))
    return pairs


def comparisons_of(rows: Iterable[Row]) -> list[PairwiseComparison]:
    """Return the comparisons of all simulated figure pairs (see `pairs_of`)."""
    simulated = [row for row in rows if row.simulated is not None]
    return [
        _improvement(simulated[a]) if b is None else _pair(simulated[a], simulated[b])
        for a, b in pairs_of([row.figure for row in simulated])
    ]


def _pair(row: Row, other: Row) -> PairwiseComparison:
    f = row.figure
    return PairwiseComparison(
        f.item,
        f.metric,
        f.label,
        (f.device, other.figure.device),
        (f.value, other.figure.value),
        (row.simulated or 0.0, other.simulated or 0.0),
        is_mixed(f),
    )


def _improvement(row: Row) -> PairwiseComparison:
    f = row.figure
    return PairwiseComparison(
        f.item,
        measured_metric(f.metric),
        f.label,
        (f.device, f.baseline),
        (_ratio(f, f.value), 1.0),
        (_ratio(f, row.simulated or 0.0), 1.0),
        is_mixed(f),
    )


def right_pct(comparisons: Sequence[PairwiseComparison]) -> float | None:
    """Return the percentage of comparisons with the right winner, or None without comparisons."""
    right = sum(comparison.right for comparison in comparisons)
    return 100 * right / len(comparisons) if comparisons else None
