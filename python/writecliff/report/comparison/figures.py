"""Figures shared by contenders, and their differences.

A figure's best value is compared with the second best. A statistical test (`noise.py`) determines
whether the difference is significant, at a joint level for all figures and pairs in a comparison.
Each confidence interval is computed from a single run and estimates the variation between repeated
runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Literal

from writecliff.report.comparison.contenders import Contender
from writecliff.report.comparison.noise import LEVEL, level_of, probability
from writecliff.report.headline import Headline
from writecliff.units import UNKNOWN

Noise = Literal["more", "within", "unknown", "equal", "apart"]
EQUAL_PCT = 0.1  # Percentage below which differences do not matter, even if significant.
RULE = (
    "A difference is significant if Welch's test on the errors of both values says so, at a "
    "level of 5 % for all figures of the comparison together (Holm's method); values within "
    f"{EQUAL_PCT:g} % of each other count as equal."
)
NOISE_TEXT = {
    "more": "significant",
    "within": "not significant",
    "unknown": "unknown: single values",
    "equal": "equal",
    "apart": "not at the same load",
}


@dataclass(frozen=True)
class Figure:
    """A figure shared by at least two contenders."""

    test: str  # Test that measured the figure.
    values: Sequence[Headline | None]  # Values by contender.
    level: float = LEVEL  # Largest probability for a difference that counts as significant.

    @cached_property
    def sample(self) -> Headline:
        """Value of any contender, for the fields that all values share."""
        return next(value for value in self.values if value is not None)

    @property
    def label(self) -> str:
        """Label of the figure; runs in different states may have different labels."""
        return " / ".join(dict.fromkeys(value.label for value in self.values if value is not None))

    @cached_property
    def order(self) -> Sequence[int]:
        """Contenders with a value, best first; in order if neither direction is better."""
        measured = [number for number, value in enumerate(self.values) if value is not None]
        if self.sample.higher_is_better is None:
            return measured
        return sorted(measured, key=self.value_of, reverse=self.sample.higher_is_better)

    @property
    def loads(self) -> Sequence[str]:
        """Loads used in the measurements; the texts are empty for most figures."""
        return [value.at for value in self.values if value is not None]

    def value_of(self, number: int) -> float:
        """Return the value of a contender that has the figure."""
        value = self.values[number]
        assert value is not None
        return value.value

    @property
    def best(self) -> int | None:
        """Contender with the best value.

        The result is `None` if neither direction is better, if the two best values are equal, or if
        loads differ.
        """
        if self.sample.higher_is_better is None or self.noise in ("equal", "apart"):
            return None
        return self.order[0]

    @property
    def next_best(self) -> int:
        """Contender with the second-best value."""
        return self.order[1]

    @cached_property
    def noise(self) -> Noise:
        """Result of the significance test for the difference between the two best values."""
        if len(set(self.loads)) > 1:
            return "apart"
        best, other = (self.value_of(number) for number in self.order[:2])
        if abs(best - other) <= abs(other) * EQUAL_PCT / 100:
            return "equal"
        first, second = (self.values[number] for number in self.order[:2])
        assert first is not None and second is not None
        if (chance := probability(first, second)) is None:
            return "unknown"
        return "more" if chance <= self.level else "within"

    def pair(self, first: int, second: int) -> Figure:
        """Return the figure restricted to the values of two contenders."""
        return replace(self, values=[self.values[first], self.values[second]])

    def probabilities(self) -> Iterator[float]:
        """Yield the probability of each pair's difference if the drives were equal, if known."""
        if len(set(self.loads)) > 1:
            return
        measured = [value for value in self.values if value is not None]
        for first, second in combinations(measured, 2):
            if (chance := probability(first, second)) is not None:
                yield chance

    @property
    def margin_pct(self) -> float | None:
        """Difference between the two best values in percent, or None if the second value is 0."""
        best, other = (self.value_of(number) for number in self.order[:2])
        return 100 * abs(best - other) / abs(other) if other else None

    @property
    def margin_text(self) -> str:
        """Margin in words, such as "12 % higher" or "3.1 % lower"."""
        if self.noise in ("equal", "apart"):
            return UNKNOWN
        best, other = (self.value_of(number) for number in self.order[:2])
        word = "higher" if best > other else "lower"
        return word if self.margin_pct is None else f"{percent(self.margin_pct)} {word}"


def percent(value: float) -> str:
    """Return a difference to two significant digits, such as "0.31 %", "4.2 %" or "118 %"."""
    return f"{value:,.0f} %" if value >= 10 else f"{value:.2g} %"


def figures_of(contenders: Sequence[Contender]) -> list[Figure]:
    """Return the figures shared by at least two contenders, in test order."""
    values_by_key: dict[tuple[str, str], list[Headline | None]] = {}
    for number, contender in enumerate(contenders):
        for test, run in contender.runs.items():
            for item in run.headlines:
                values = values_by_key.setdefault((test, item.key), [None] * len(contenders))
                values[number] = item
    figures = [
        Figure(test, values)
        for (test, _), values in values_by_key.items()
        if sum(value is not None for value in values) > 1
    ]
    level = level_of(chance for figure in figures for chance in figure.probabilities())
    return [replace(figure, level=level) for figure in figures]
