"""Reduction of a series for a plot to the minimum and maximum in each pixel column.

A line through these points covers the same pixels as a line through all points. Every drawn point
is a measured point at its measured time.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

MOST = 5_000  # Maximum number of marks in all plots on a page.
Array = np.ndarray[Any, np.dtype[np.float64]]


def columns_for(lines: int, wanted: int) -> int:
    """Return the number of pixel columns for `lines` lines and the screen width `wanted`."""
    return max(1, min(wanted, MOST // (2 * max(1, lines)) - 1))


def within(x: Array, y: Array, low: float, high: float, columns: int) -> tuple[Array, Array, bool]:
    """Return the points from `low` to `high`, and `True` if no point was omitted.

    An additional point on each side extends the line to the edge. A pixel column with more than two
    points is reduced to its minimum and maximum. Unknown values are NaN and are not drawn.
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
        if np.isnan(part[lowest]):  # NaN counts both as the minimum and as the maximum.
            measured = np.flatnonzero(~np.isnan(part))
            if not len(measured):
                continue
            lowest = int(measured[np.argmin(part[measured])])
            highest = int(measured[np.argmax(part[measured])])
        chosen += sorted({begin + lowest, begin + highest})
    return x[chosen], y[chosen], False


def numbers(values: Array) -> list[float | None]:
    """Return values for JSON, rounded to seven digits, with `None` for unknown values."""
    return [float(f"{value:.7g}") if value - value == 0 else None for value in values.tolist()]


def times(values: Array) -> list[float]:
    """Return times for JSON, in seconds with nanosecond resolution."""
    return [round(value, 9) for value in values.tolist()]
