"""3-D columns over two categories, in the standard's style for IOPS, latency and CPU use.

The columns are drawn as boxes in space. Whole boxes are drawn from back to front along the line of
sight, which is exact for boxes on a grid in parallel projection. By default, matplotlib sorts faces
by their mean distance, so hidden columns show through taller columns in front of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import to_hex, to_rgb
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from mpl_toolkits.mplot3d.axes3d import Axes3D

from writecliff import units
from writecliff.report import colours, style
from writecliff.report.axes import Axis
from writecliff.report.model import Figure
from writecliff.report.style import house_style
from writecliff.report.table import Data

if TYPE_CHECKING:
    from writecliff.report.axes import Numbers

_WIDTH_IN, _HEIGHT_IN = 6.4, 4.4
_ELEVATION_DEG, _AZIMUTH_DEG = 24, -58  # View from the front, slightly left and above, in degrees.
_SIDE = 0.62  # Column width in grid steps.
_HALF_WIDTH = 60  # Maximum number of columns in a plot of half the page width.
_VALUES_UP_TO = 12  # Maximum number of columns with value labels.
_ON_TOP = "#10151a"  # The column tops are also light on dark pages.


@house_style()
def columns_3d(
    name: str,
    title: str,
    data: Data,
    columns: Sequence[str],
    rows: Sequence[str],
    values: Sequence[Sequence[float]],
    x_label: str,
    depth_label: str,
    y: Axis,
    *,
    alt: str = "",
) -> Figure | None:
    """Draw a column for each of `values[row][column]`, omitting NaN.

    Pass rows and columns in an order where values rise towards the right and the back, so that no
    column is hidden behind a taller column.

    Args:
        name: Figure name.
        title: Caption.
        data: File with the figure's data.
        columns: Column labels from left to right (block sizes).
        rows: Row labels from front to back (mixes); each row has a colour.
        values: Values by row and column, in base units.
        x_label: Column axis label.
        depth_label: Row axis label.
        y: Vertical axis, which starts at 0 or, on a logarithmic scale, at a power of ten.
        alt: Alternative text.

    Returns:
        The figure, or None without values.

    Raises:
        ValueError: If the shape of `values` is not `rows` by `columns`.
    """
    heights = np.array(values, dtype=np.float64)
    if heights.shape != (len(rows), len(columns)):
        raise ValueError(
            f"values have the shape {heights.shape}, not {len(rows)} rows by {len(columns)}"
        )
    if y.log:
        heights[heights <= 0] = np.nan
    if not np.isfinite(heights).any():
        return None
    unit = y.unit(heights[np.isfinite(heights)])
    heights = heights / unit.size
    figure = style.new_figure(width_in=_WIDTH_IN, height_in=_HEIGHT_IN)
    plot: Any = figure.add_axes((0.0, 0.0, 1.0, 0.97), projection="3d", computed_zorder=False)
    plot.set_proj_type("ortho")
    plot.view_init(elev=_ELEVATION_DEG, azim=_AZIMUTH_DEG)
    plot.set_box_aspect((1.6 * max(len(columns) / len(rows), 0.9), 1.6, 1.0), zoom=1.12)
    level = _vertical(plot, y, heights)
    _boxes(plot, heights, level, _texts(columns, rows, heights, unit.name or y.label), rows)
    _floor(plot, columns, rows, x_label, depth_label)
    style.write_above(figure, 0.08, y.title(unit))
    return style.finished(figure, name, title, data, alt, wide=heights.size > _HALF_WIDTH)


def _vertical(plot: Any, axis: Axis, heights: Numbers) -> Any:
    """Set up the vertical axis, and return the function that maps values to heights.

    This function draws exponents and labels them, because matplotlib has no logarithmic 3-D axes.
    """
    high = float(np.nanmax(heights))
    if not axis.log:
        style.linear_axis(plot, "z", from_zero=False)
        plot.set_zlim(0, axis.top or high * 1.04 or 1.0)
        return lambda value: value
    first = int(np.floor(np.log10(float(np.nanmin(heights)))))
    last = max(int(np.ceil(np.log10(high))), first + 1)
    plot.set_zlim(first, last)
    ticks = [10.0**power for power in range(first, last + 1)]
    if len(ticks) < 3:
        ticks = style.log_ticks(ticks[0], ticks[-1])
    plot.set_zticks(np.log10(ticks), list(map(style.compact, ticks)))
    return np.log10


def _texts(
    columns: Sequence[str], rows: Sequence[str], heights: Numbers, unit: str
) -> list[list[str]]:
    """Return the text that the page shows for each column."""
    return [
        [f"{row}, {column}: {units.significant(heights[i, j], 4)} {unit}"
         for j, column in enumerate(columns)]
        for i, row in enumerate(rows)
    ]  # fmt: skip


def _boxes(
    plot: Any, heights: Numbers, level: Any, texts: Sequence[Sequence[str]], rows: Sequence[str]
) -> None:
    """Draw the columns from back to front, showing three faces of each column."""
    looks = colours.looks(rows)
    bottom = plot.get_zlim()[0]
    row_count, column_count = heights.shape
    written = heights.size <= _VALUES_UP_TO
    cells = [(row, column) for row in range(row_count) for column in range(column_count)]
    # The viewpoint is in front (low y) and to the right (high x), so far columns have a high row
    # index and a low column index.
    cells.sort(key=lambda cell: (-cell[0], cell[1]))
    for order, (row, column) in enumerate(cells):
        value = heights[row, column]
        if not np.isfinite(value):
            continue
        top = float(level(value))
        left, front = column - _SIDE / 2, row - _SIDE / 2
        box = _box(left, front, bottom, top, colours.colour(looks[row]), order + 10)
        box.set_label(texts[row][column])
        plot.add_collection3d(box)
        if written:
            plot.text(column, row, top, units.significant(value), ha="center", va="bottom",
                      fontsize=8, color=_ON_TOP, zorder=1000)  # fmt: skip


def _box(
    left: float, front: float, bottom: float, top: float, colour: str, order: int
) -> Poly3DCollection:
    right, back = left + _SIDE, front + _SIDE
    faces = (
        [(left, front, bottom), (right, front, bottom), (right, front, top), (left, front, top)],
        [(right, front, bottom), (right, back, bottom), (right, back, top), (right, front, top)],
        [(left, front, top), (right, front, top), (right, back, top), (left, back, top)],
    )
    shades = [colour, _mixed(colour, 0.0, 0.28), _mixed(colour, 1.0, 0.38)]
    return Poly3DCollection(
        faces, facecolors=shades, edgecolors=_mixed(colour, 0.0, 0.45), linewidths=0.3, zorder=order
    )


def _mixed(colour: str, towards: float, share: float) -> str:
    """Return a lighter (`towards` 1) or darker (`towards` 0) shade of a colour."""
    return to_hex([part + (towards - part) * share for part in to_rgb(colour)])


def _floor(
    plot: Axes3D, columns: Sequence[str], rows: Sequence[str], x_label: str, depth_label: str
) -> None:
    """Draw the two category axes, and the walls at the back."""
    plot.set_xlim(-0.6, len(columns) - 0.4)
    plot.set_ylim(-0.6, len(rows) - 0.4)
    plot.set_xticks(range(len(columns)), list(columns))
    plot.set_yticks(range(len(rows)), list(rows), ha="left", va="center")
    plot.set_xlabel(x_label, labelpad=2)
    plot.set_ylabel(depth_label, labelpad=8)
    plot.tick_params(axis="x", pad=-2)
    plot.tick_params(axis="y", pad=-2)
    plot.tick_params(axis="z", pad=4)
    plot.zaxis.set_ticks_position("upper")
    for axis in (plot.xaxis, plot.yaxis, plot.zaxis):
        axis.set_pane_color((1, 1, 1, 0))
        axis.line.set_color(style.MUTED)
        axis._axinfo["grid"].update(color=style.GRID, linewidth=0.7)
        axis._axinfo["tick"].update(inward_factor=0.0, outward_factor=0.15)
