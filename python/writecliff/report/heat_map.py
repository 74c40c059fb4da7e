"""A heat map: I/Os by address and time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff import units
from writecliff.report import style
from writecliff.report.csvs import data_file
from writecliff.report.interaction import Label
from writecliff.report.model import Figure
from writecliff.report.style import house_style

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HEIGHT_IN = 3.0
_LEVELS = 8
NS_PER_S = 1e9


@house_style()
def heat_map(name: str, title: str, heat: Mapping[str, Any], which: str) -> Figure | None:
    """`heat` is a map of `_native.TraceMeasures.result`, `which` "reads" or "writes".

    Cells are drawn as one area for each of eight levels, on a logarithmic scale, so that thousands
    of cells take little space in the page."""
    counts: NDArray[np.float64] = np.array(heat[which], dtype=np.float64)
    if counts.size == 0 or not counts.any():
        return None
    rows, columns = counts.shape
    time, size = units.time_unit(columns * heat["cell_s"] * NS_PER_S), _byte_unit(rows, heat)
    width, height = heat["cell_s"] * NS_PER_S / time.size, heat["cell_bytes"] / size.size
    figure, plot = style.new_axes(Label("Time", time.name), Label("Address", size.name))
    highest = np.log1p(counts.max())
    level = np.ceil(np.log1p(counts) / highest * _LEVELS).astype(int)
    for number in range(1, _LEVELS + 1):
        spans = [
            (begin * width, (end - begin) * width, row * height)
            for row in range(rows)
            for begin, end in _runs(level[row] == number)
        ]
        if spans:
            _draw(plot, spans, height, number / _LEVELS)
    plot.set_xlim(0, columns * width)
    plot.set_ylim(0, rows * height)
    plot.grid(False)
    data = data_file(
        f"{name}.csv",
        ("address_bytes", "time_s", "ios"),
        (
            (row * heat["cell_bytes"], float(column * heat["cell_s"]), int(counts[row, column]))
            for row, column in zip(*np.nonzero(counts), strict=True)
        ),
    )
    alt = f"{title} by address and time; darker cells have more"
    return style.finished(figure, name, title, data, alt)


def _byte_unit(rows: int, heat: Mapping[str, Any]) -> units.Unit:
    return units.common_unit([rows * heat["cell_bytes"]], units.BYTE_UNITS)


def _runs(where: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Begin and end of each run of what is true."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], where.astype(np.int8), [0]))))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _draw(plot: Any, spans: list[tuple[float, float, float]], height: float, share: float) -> None:
    """All cells of a level as one path."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    corners, codes = [], []
    for x, width, y in spans:
        corners += [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
        codes += [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    colour = style.SERIES[0]
    path = Path(corners, codes)
    plot.add_patch(PathPatch(path, facecolor=colour, alpha=0.12 + 0.88 * share, linewidth=0))
