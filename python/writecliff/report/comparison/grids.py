"""Grids of figures shared by contenders: values, differences, best contender.

Differences are relative to the first contender, in percent of its value, or in percentage points if
the figures are percentages. A cell has no best contender if the two best values differ by at most
0.1 %. Cells are single values or means without confidence intervals, so they cannot show
statistical significance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from writecliff.report.compared import Grid, Key
from writecliff.report.comparison.contenders import Contender
from writecliff.report.comparison.figures import EQUAL_PCT, percent
from writecliff.units import UNKNOWN

PERCENT = "%"


@dataclass(frozen=True)
class SharedGrid:
    """A grid shared by at least two contenders."""

    test: str  # Test that measured the grid.
    by: Sequence[Grid | None]  # Grids by contender.

    @cached_property
    def sample(self) -> Grid:
        """Grid of any contender, for the fields that all grids share."""
        return next(grid for grid in self.by if grid is not None)

    @cached_property
    def rows(self) -> Sequence[str]:
        """Rows with values for at least two contenders."""
        return self._shared(0, [row for grid in self.by if grid is not None for row in grid.rows])

    @cached_property
    def columns(self) -> Sequence[str]:
        """Columns with values for at least two contenders."""
        return self._shared(1, [c for grid in self.by if grid is not None for c in grid.columns])

    def _shared(self, part: int, names: Sequence[str]) -> list[str]:
        """Return the distinct `names` that are rows (0) or columns (1) of a shared cell."""
        common = {key[part] for key in self.common}
        return [name for name in dict.fromkeys(names) if name in common]

    @cached_property
    def common(self) -> set[Key]:
        """Cells shared by at least two contenders."""
        keys = [key for grid in self.by if grid is not None for key in grid.values]
        return {key for key in keys if keys.count(key) > 1}

    def value(self, key: Key, number: int) -> float | None:
        """Return a contender's value, or None if it is missing."""
        grid = self.by[number]
        return None if grid is None else grid.values.get(key)

    @property
    def points(self) -> bool:
        """`True` if differences are in percentage points."""
        return self.sample.unit == PERCENT

    def difference(self, key: Key, number: int) -> float | None:
        """Return the difference from the first contender, in percent or in percentage points.

        The result is `None` if either value is missing or the first value is 0.
        """
        first, value = self.value(key, 0), self.value(key, number)
        if number == 0 or first is None or value is None:
            return None
        if self.points:
            return value - first
        return 100 * (value / first - 1) if first else None

    def better(self, key: Key, number: int) -> bool | None:
        """Return `True` if a contender's value is better than the first contender's.

        The result is `None` if the values are equal or a value is missing.
        """
        first, value = self.value(key, 0), self.value(key, number)
        if first is None or value is None or _equal(first, value):
            return None
        return (value > first) == self.sample.higher_is_better

    def best(self, key: Key) -> int | None:
        """Return the contender with the best value in a cell.

        The result is `None` if the two best values are equal or if only one contender has a value.
        """
        measured = [
            (value, n) for n in range(len(self.by)) if (value := self.value(key, n)) is not None
        ]
        measured.sort(key=lambda item: item[0], reverse=self.sample.higher_is_better)
        if len(measured) < 2 or _equal(measured[0][0], measured[1][0]):
            return None
        return measured[0][1]

    def difference_text(self, key: Key, number: int) -> str:
        """Return the difference as text, such as "+12 %", "-3.1 points" or "equal"."""
        difference = self.difference(key, number)
        if difference is None:
            return UNKNOWN
        if self.better(key, number) is None:
            return "equal"
        sign = "+" if difference > 0 else "-"
        text = percent(abs(difference))
        return sign + (text.replace(" %", " points") if self.points else text)

    def mapping(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return the grid as JSON; unknown values are null."""
        cells = []
        for row in self.rows:
            for column in self.columns:
                key, every = (row, column), range(len(self.by))
                best = self.best(key)
                cells.append(
                    {
                        "row": row,
                        "column": column,
                        "values": [self.value(key, n) for n in every],
                        "differences": [self.difference(key, n) for n in every],
                        "best": None if best is None else labels[best],
                    }
                )
        sample = self.sample
        return {
            "test": self.test,
            "name": sample.name,
            "title": sample.title,
            "unit": sample.unit,
            "difference_unit": "points" if self.points else PERCENT,
            "higher_is_better": sample.higher_is_better,
            "steady": [None if grid is None else grid.steady for grid in self.by],
            "cells": cells,
        }


def _equal(value: float, other: float) -> bool:
    return abs(value - other) <= abs(other) * EQUAL_PCT / 100


def grids_of(contenders: Sequence[Contender]) -> list[SharedGrid]:
    """Return the grids where at least two contenders share a cell."""
    by_name: dict[tuple[str, str], list[Grid | None]] = {}
    for number, contender in enumerate(contenders):
        for test, run in contender.runs.items():
            for grid in run.grids:
                by_name.setdefault((test, grid.name), [None] * len(contenders))[number] = grid
    shared = [SharedGrid(test, by) for (test, _), by in by_name.items()]
    return [grid for grid in shared if grid.common]
