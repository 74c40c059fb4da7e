"""Figures of a placement page: what each stream holds, and how long its data live.

Call inside `style.house_style()`, as the generic figures of `plots.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from writecliff import units
from writecliff.report import style
from writecliff.report.axes import Axis, Line
from writecliff.report.plots import lines

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK_BYTES = 4096
_ROW_IN = 0.34
_NAMED_SHARE = 0.005  # of all bytes; origins that wrote less are drawn as one


@dataclass(frozen=True)
class Holder:
    """A stream, and what each origin wrote to it, in bytes."""

    label: str
    by_origin_bytes: Sequence[float]


def held(
    name: str, holders: Sequence[Holder], origins: Sequence[str], *, description: str
) -> str | None:
    """One horizontal bar a stream, divided by who wrote it."""
    volumes = np.array([holder.by_origin_bytes for holder in holders], dtype=np.float64)
    if volumes.size == 0 or volumes.sum() == 0:
        return None
    used = [n for n in np.argsort(-volumes.sum(axis=0), kind="stable") if volumes[:, n].sum() > 0]
    large = [n for n in used if volumes[:, n].sum() >= _NAMED_SHARE * volumes.sum()]
    shown = large[: len(style.SERIES)]
    unit = units.common_unit(volumes.sum(axis=1), units.BYTE_UNITS)
    height_in = 1.05 + _ROW_IN * max(3, len(holders)) + 0.2 * ((len(shown) + 1) // 2)
    figure = style.new_figure(height_in=height_in)
    top = 0.1 + 0.2 * ((len(shown) + 1) // 2)
    plot = figure.add_axes((0.2, 0.46 / height_in, 0.77, 1 - (0.56 + top) / height_in))
    plot.set_facecolor("none")
    plot.grid(True, axis="x")
    places = np.arange(len(holders))[::-1]
    left = np.zeros(len(holders))
    for number, origin in enumerate([*shown, None]):
        rest = [n for n in used if n not in shown]
        values = volumes[:, rest].sum(axis=1) if origin is None else volumes[:, origin]
        if values.sum() == 0:
            continue
        colour = style.GRID if origin is None else style.SERIES[number]
        label = "others" if origin is None else origins[origin]
        plot.barh(places, values / unit.size, 0.66, left=left, color=colour, label=label)
        left += values / unit.size
    plot.set_yticks(places, [holder.label for holder in holders])
    plot.tick_params(axis="y", length=0)
    plot.set_xlabel(f"Written ({unit.name})")
    style.linear_axis(plot, "x")
    figure.legend(
        loc="upper left",
        bbox_to_anchor=(0.01, 1 - 0.02 / height_in),
        ncols=2,
        borderaxespad=0.2,
    )
    return style.to_svg(figure, name, description)


def lifetime_line(label: str, blocks: NDArray[np.uint64]) -> Line:
    """Share of the data, in percent, that are dead after so many bytes written by the host.

    `blocks` by bucket, see `BlockTrace.replay`: the last bucket are those that outlived the trace.
    """
    total = max(1, int(blocks.sum()))
    upto = np.cumsum(blocks[:-1].astype(np.float64)) / total * 100
    ends = 2.0 ** np.arange(len(blocks) - 1) * BLOCK_BYTES
    known = np.flatnonzero(blocks[:-1])
    if len(known) == 0:
        return Line(label, [], [])
    part = slice(max(0, int(known[0]) - 1), int(known[-1]) + 1)
    return Line(label, ends[part].tolist(), upto[part].tolist())


def lifetimes(name: str, series: Sequence[Line], *, description: str) -> str | None:
    """Cumulative lifetimes, a line a stream or an origin."""
    x = Axis("Bytes that the host writes meanwhile", units.BYTE_UNITS, log=True)
    return lines(name, series, x, Axis("Dead by then (%)", top=100), description=description)
