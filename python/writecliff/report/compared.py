"""Curves and grids of figures that reports provide for comparisons, besides headline figures.

A comparison draws the curves of all runs on one plot. It puts grids of the same name side by side:
the values of the runs in adjacent columns, their difference, and a mark on the better value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from writecliff.report.axes import Axis

Key = tuple[str, str]  # row and column of a grid


@dataclass(frozen=True)
class Mark:
    """A named point of a curve, such as "steady state begins"."""

    label: str
    x: float


@dataclass(frozen=True)
class Curve:
    """A series that comparisons draw for every run, all runs on one plot."""

    name: str  # of the plot
    title: str
    x: Axis
    y: Axis
    points: Sequence[tuple[float, float]]
    relative: bool = False  # to its peak: compares shapes, not speeds
    marks: Sequence[Mark] = ()


@dataclass(frozen=True, kw_only=True)
class Grid:
    """One figure over two settings, such as IOPS over mix and queue depth.

    `values` are in `unit`, by the texts of row and column; unmeasured cells are missing. `drawn` is
    the form in comparisons besides tables: "bars" has a group for each row; "lines" a plot for each
    column, over `x`, with the rows at `places` (base units of `x`).
    """

    name: str  # unique in its test; name of its file
    title: str
    corner: str  # name of rows, then columns: "Queue depth, reads"
    rows: Sequence[str]
    columns: Sequence[str]
    values: Mapping[Key, float]
    unit: str
    higher_is_better: bool
    steady: bool = True  # False: the drive was not in steady state
    drawn: Literal["", "bars", "lines"] = ""
    x: Axis | None = None
    places: Sequence[float] = ()
