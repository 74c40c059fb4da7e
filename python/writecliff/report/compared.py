"""Curves and grids that reports provide for comparisons, in addition to headline figures.

A comparison draws all runs' curves on a single plot. Grids with the same name are shown side by
side, with the runs' values in adjacent columns, their difference, and a mark at the better value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from writecliff.report.axes import Axis

Key = tuple[str, str]  # Row and column of a grid.


@dataclass(frozen=True)
class Mark:
    """A named point on a curve, such as "steady state begins"."""

    label: str
    x: float


@dataclass(frozen=True)
class Curve:
    """A series that comparisons draw on a shared plot for every run."""

    name: str  # Plot name.
    title: str
    x: Axis
    y: Axis
    points: Sequence[tuple[float, float]]
    # Values are relative to the peak, so the comparison is between shapes rather than speeds.
    relative: bool = False
    marks: Sequence[Mark] = ()


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A figure over two settings, such as IOPS over mix and queue depth.

    `values` are in `unit` and keyed by row and column text, and exclude unmeasured cells. `drawn`
    is the form that comparisons use besides tables. "bars" draws a group for each row. "lines"
    draws a plot for each column over `x`, with the rows at `places` (base units of `x`).
    """

    name: str  # Grid name, unique within its test, and file name.
    title: str
    corner: str  # Corner label for rows and columns, such as "Queue depth, reads".
    rows: Sequence[str]
    columns: Sequence[str]
    values: Mapping[Key, float]
    unit: str
    higher_is_better: bool
    steady: bool = True  # `False` if the drive was not in steady state.
    drawn: Literal["", "bars", "lines"] = ""
    x: Axis | None = None
    places: Sequence[float] = ()
