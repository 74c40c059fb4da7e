"""What a report gives to comparisons besides its headline figures: curves, and grids of figures.

A comparison draws the curves of all runs on one plot and puts grids of the same name side by side:
the values of the runs beside each other, with their difference and the better one marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from writecliff.report.axes import Axis

Key = tuple[str, str]  # row and column of a grid


@dataclass(frozen=True)
class Mark:
    """A moment of a curve that has a name: "steady state begins"."""

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
    relative: bool = False  # to its own peak: the shapes compare, not the speeds
    marks: Sequence[Mark] = ()


@dataclass(frozen=True, kw_only=True)
class Grid:
    """One figure over two settings, such as IOPS over mix and queue depth.

    `values` are in `unit`, by the texts of row and column; what was not measured is left out.
    `drawn` is how comparisons show it besides tables: "bars" has a group for each row; "lines" a
    plot for each column, over `x`, with the rows at `places` (base units of `x`).
    """

    name: str  # unique in its test; of the file with its numbers
    title: str
    corner: str  # what the rows are, and the columns: "Queue depth, reads"
    rows: Sequence[str]
    columns: Sequence[str]
    values: Mapping[Key, float]
    unit: str
    higher_is_better: bool
    steady: bool = True  # False: the drive was not in steady state
    drawn: Literal["", "bars", "lines"] = ""
    x: Axis | None = None
    places: Sequence[float] = ()
