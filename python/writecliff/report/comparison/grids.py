"""Grids of figures that contenders have in common: values, differences, who is better.

A difference is that of a contender from the first one: in percent of it, or in points where the
figures are percentages. The best of a cell is none where the two best values are within 0.1 % of
each other. Cells are single values or means without intervals, so nothing here tells noise.
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
    """A grid of at least two contenders."""

    test: str  # that measured it
    by: Sequence[Grid | None]  # by contender

    @cached_property
    def one(self) -> Grid:
        """Any of them, for what they share."""
        return next(grid for grid in self.by if grid is not None)

    @cached_property
    def rows(self) -> Sequence[str]:
        """The rows that at least two contenders have values in."""
        return self._shared(0, [row for grid in self.by if grid is not None for row in grid.rows])

    @cached_property
    def columns(self) -> Sequence[str]:
        """The columns that at least two contenders have values in."""
        return self._shared(1, [c for grid in self.by if grid is not None for c in grid.columns])

    def _shared(self, part: int, names: Sequence[str]) -> list[str]:
        """The different ones of `names` that are row (0) or column (1) of a cell in common."""
        common = {key[part] for key in self.common}
        return [name for name in dict.fromkeys(names) if name in common]

    @cached_property
    def common(self) -> set[Key]:
        """The cells that at least two contenders have."""
        keys = [key for grid in self.by if grid is not None for key in grid.values]
        return {key for key in keys if keys.count(key) > 1}

    def value(self, key: Key, number: int) -> float | None:
        """The value of a contender; None if it has none."""
        grid = self.by[number]
        return None if grid is None else grid.values.get(key)

    @property
    def points(self) -> bool:
        """Differences are in percentage points."""
        return self.one.unit == PERCENT

    def difference(self, key: Key, number: int) -> float | None:
        """How far a contender is from the first one, in percent of it or in points; None where one
        of them has no value, or the first one is 0.
        """
        first, value = self.value(key, 0), self.value(key, number)
        if number == 0 or first is None or value is None:
            return None
        if self.points:
            return value - first
        return 100 * (value / first - 1) if first else None

    def better(self, key: Key, number: int) -> bool | None:
        """Whether a contender is better than the first one; None: equal or unknown."""
        first, value = self.value(key, 0), self.value(key, number)
        if first is None or value is None or _equal(first, value):
            return None
        return (value > first) == self.one.higher_is_better

    def best(self, key: Key) -> int | None:
        """The contender with the best value of a cell; None if the two best are equal, or only one
        contender has it.
        """
        known = [
            (value, n) for n in range(len(self.by)) if (value := self.value(key, n)) is not None
        ]
        known.sort(key=lambda item: item[0], reverse=self.one.higher_is_better)
        if len(known) < 2 or _equal(known[0][0], known[1][0]):
            return None
        return known[0][1]

    def difference_text(self, key: Key, number: int) -> str:
        """ "+12 %", "-3.1 points", "equal"."""
        difference = self.difference(key, number)
        if difference is None:
            return UNKNOWN
        if self.better(key, number) is None:
            return "equal"
        sign = "+" if difference > 0 else "-"
        text = percent(abs(difference))
        return sign + (text.replace(" %", " points") if self.points else text)

    def mapping(self, labels: Sequence[str]) -> dict[str, Any]:
        """The grid for programs; unknown values are null."""
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
        one = self.one
        return {
            "test": self.test,
            "name": one.name,
            "title": one.title,
            "unit": one.unit,
            "difference_unit": "points" if self.points else PERCENT,
            "higher_is_better": one.higher_is_better,
            "steady": [None if grid is None else grid.steady for grid in self.by],
            "cells": cells,
        }


def _equal(one: float, other: float) -> bool:
    return abs(one - other) <= abs(other) * EQUAL_PCT / 100


def grids_of(contenders: Sequence[Contender]) -> list[SharedGrid]:
    """The grids of which at least two contenders have a cell in common, in the order of tests."""
    found: dict[tuple[str, str], list[Grid | None]] = {}
    for number, one in enumerate(contenders):
        for test, run in one.runs.items():
            for grid in run.grids:
                found.setdefault((test, grid.name), [None] * len(contenders))[number] = grid
    shared = [SharedGrid(test, by) for (test, _), by in found.items()]
    return [grid for grid in shared if grid.common]
