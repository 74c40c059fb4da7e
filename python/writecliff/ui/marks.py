"""Few enough points of a series for a plot: of each column of pixels the least and the greatest.

A line through both covers what a line through all points would. Every point that is drawn is one
that was measured, at its time.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

MOST = 5_000  # marks of all plots of a page together
Array = np.ndarray[Any, np.dtype[np.float64]]


def columns_for(lines: int, wanted: int) -> int:
    """How many columns of pixels each of so many lines may have; `wanted` of the screen."""
    return max(1, min(wanted, MOST // (2 * max(1, lines)) - 1))


def within(x: Array, y: Array, low: float, high: float, columns: int) -> tuple[Array, Array, bool]:
    """The points from `low` to `high` and one on each side, which the line to the edge needs; with
    more than two a column, the least and greatest of each. Unknown values are NaN and not drawn.
    Also whether these are all.
    """
    first = max(0, int(np.searchsorted(x, low, "left")) - 1)
    last = min(len(x), int(np.searchsorted(x, high, "right")) + 1)
    x, y = x[first:last], y[first:last]
    if len(x) <= 2 * columns:
        return x, y, True
    edges = np.searchsorted(x, np.linspace(x[0], x[-1], columns + 1)[:-1])
    chosen: list[int] = []
    starts = [*np.unique(edges).tolist(), len(x)]
    for begin, end in pairwise(starts):
        part = y[begin:end]
        lowest, highest = int(np.argmin(part)), int(np.argmax(part))
        if np.isnan(part[lowest]):  # NaN counts as least and as greatest
            known = np.flatnonzero(~np.isnan(part))
            if not len(known):
                continue
            lowest = int(known[np.argmin(part[known])])
            highest = int(known[np.argmax(part[known])])
        chosen += sorted({begin + lowest, begin + highest})
    return x[chosen], y[chosen], False


def numbers(values: Array) -> list[float | None]:
    """For JSON: seven digits, and None for what is unknown."""
    return [float(f"{value:.7g}") if value - value == 0 else None for value in values.tolist()]


def times(values: Array) -> list[float]:
    """For JSON: seconds to the nanosecond."""
    return [round(value, 9) for value in values.tolist()]
