"""Figures about streams: what each stream holds, and how long its data live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from writecliff import units
from writecliff.parallel import SLOT_BYTES
from writecliff.report import colours, style
from writecliff.report.axes import Axis, Line
from writecliff.report.interaction import Label, write_label
from writecliff.report.model import Figure
from writecliff.report.plots import lines
from writecliff.report.style import house_style
from writecliff.report.table import Data

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROW_IN = 0.34
_NAMED_SHARE = 0.005  # of all bytes; origins that wrote less are drawn as one


@house_style()
def held(
    name: str,
    title: str,
    data: Data,
    streams: Sequence[str],
    origins: Sequence[str],
    written_bytes: Sequence[Sequence[float]],
    *,
    alt: str = "",
) -> Figure | None:
    """One horizontal bar for each stream, divided by what each origin wrote to it.

    `written_bytes` has a row for each stream and a column for each origin."""
    volumes = np.array(written_bytes, dtype=np.float64)
    if volumes.size == 0 or volumes.sum() == 0:
        return None
    by_origin = volumes.sum(axis=0)
    order = [n for n in np.argsort(-by_origin, kind="stable") if by_origin[n] > 0]
    large = [n for n in order if by_origin[n] >= _NAMED_SHARE * by_origin.sum()]
    shown = large[: len(style.SERIES)]
    looks = colours.looks([origins[n] for n in shown])
    parts = [
        (origins[n], colours.colour(look), volumes[:, n])
        for n, look in zip(shown, looks, strict=True)
    ]
    rest = [n for n in order if n not in shown]
    if rest:
        parts.append(("others", style.GRID, volumes[:, rest].sum(axis=1)))
    unit = units.common_unit(volumes.sum(axis=1), units.BYTE_UNITS)
    legend_in = 0.2 * ((len(shown) + 1) // 2)
    height_in = 1.05 + _ROW_IN * max(3, len(streams)) + legend_in
    figure = style.new_figure(height_in=height_in)
    plot = figure.add_axes((0.2, 0.46 / height_in, 0.77, 1 - (0.66 + legend_in) / height_in))
    plot.set_facecolor("none")
    plot.grid(True, axis="x")
    rows = np.arange(len(streams))[::-1]
    left = np.zeros(len(streams))
    for label, colour, values in parts:
        plot.barh(rows, values / unit.size, 0.66, left=left, color=colour, label=label)
        left += values / unit.size
    plot.set_yticks(rows, list(streams))
    plot.tick_params(axis="y", length=0)
    write_label(plot.xaxis, Label("Written", unit.name))
    style.linear_axis(plot, "x")
    anchor = (0.01, 1 - 0.02 / height_in)
    figure.legend(loc="upper left", bbox_to_anchor=anchor, ncols=2, borderaxespad=0.2)
    return style.finished(figure, name, title, data, alt)


def lifetime_line(label: str, blocks: NDArray[np.uint64]) -> Line:
    """Share of the data, in percent, that are dead after so many bytes written by the host.

    `blocks` counts by bucket (see `BlockTrace.replay`); the last bucket outlived the trace.
    """
    total = max(1, int(blocks.sum()))
    dead_pct = np.cumsum(blocks[:-1].astype(np.float64)) / total * 100
    ends = 2.0 ** np.arange(len(blocks) - 1) * SLOT_BYTES
    known = np.flatnonzero(blocks[:-1])
    if len(known) == 0:
        return Line(label, [], [])
    part = slice(max(0, int(known[0]) - 1), int(known[-1]) + 1)
    return Line(label, ends[part].tolist(), dead_pct[part].tolist())


def lifetimes(
    name: str, title: str, data: Data, series: Sequence[Line], *, alt: str = ""
) -> Figure | None:
    """Cumulative lifetimes, a line for each stream or origin."""
    x = Axis("Bytes written by the host meanwhile", units.BYTE_UNITS, log=True)
    return lines(name, title, data, series, x, Axis(Label("Dead by then", "%"), top=100), alt=alt)
