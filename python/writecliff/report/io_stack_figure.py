"""The picture of the I/O stack: how much of reads and writes each step of the way has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from writecliff import units
from writecliff.report import colours, style
from writecliff.report.interaction import Label, write_label
from writecliff.report.model import Figure
from writecliff.report.style import house_style
from writecliff.report.table import Data

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_IN = 8.6  # as wide as the page
_ROW_IN = 0.5
_LABELS_IN = 1.5  # left of the first panel
_GAP_IN = 0.35
_BAR = 0.46
_ROOM = 1.02  # of the longest bar, right of it


@dataclass(frozen=True)
class Layer:
    """A step of the way: bytes by what they are, of reads and of writes, and a line about each."""

    name: str
    parts: tuple[Mapping[str, float], Mapping[str, float]]
    text: tuple[str, str]


@house_style()
def stack_figure(
    name: str, title: str, data: Data, layers: Sequence[Layer], *, alt: str = ""
) -> Figure | None:
    """Two panels, of reads and of writes, with a bar for each layer, the program on top."""
    if not any(sum(part.values()) for layer in layers for part in layer.parts):
        return None
    height_in = 1.15 + _ROW_IN * len(layers)
    figure = style.new_figure(width_in=WIDTH_IN, height_in=height_in)
    labels = list(dict.fromkeys(label for layer in layers for p in layer.parts for label in p))
    looks = dict(zip(labels, colours.looks(labels), strict=True))
    width_in = (WIDTH_IN - _LABELS_IN - _GAP_IN - 0.1) / 2
    for number, what in enumerate(("Read", "Written")):
        left_in = _LABELS_IN + number * (width_in + _GAP_IN)
        box = (
            left_in / WIDTH_IN,
            0.46 / height_in,
            width_in / WIDTH_IN,
            1 - (0.46 + 0.42) / height_in,
        )
        plot = figure.add_axes(box)
        plot.set_facecolor("none")
        _panel(plot, layers, number, looks, what)
    handles = {
        label: handle
        for plot in figure.axes
        for handle, label in zip(*plot.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="upper left",
        bbox_to_anchor=(0.005, 1 - 0.02 / height_in),
        ncols=len(handles),
        borderaxespad=0.2,
    )
    return style.finished(figure, name, title, data, alt, wide=True)


def _panel(
    plot: Axes, layers: Sequence[Layer], number: int, looks: Mapping[str, int], what: str
) -> None:
    totals = [sum(layer.parts[number].values()) for layer in layers]
    unit = units.common_unit([max(totals)], units.SIZE_UNITS)
    rows = np.arange(len(layers))[::-1]
    left = np.zeros(len(layers))
    for label, look in looks.items():
        values = np.array([layer.parts[number].get(label, 0.0) for layer in layers]) / unit.size
        if not values.any():
            continue
        plot.barh(rows, values, _BAR, left=left, color=colours.colour(look), label=label)
        left += values
    for row, layer in zip(rows, layers, strict=True):
        plot.annotate(
            layer.text[number], (0, row + _BAR / 2), xytext=(1, 1.5), textcoords="offset points",
            va="bottom", ha="left", fontsize=7.5, color=style.MUTED,
        )  # fmt: skip
    plot.set_yticks(rows, [layer.name for layer in layers] if number == 0 else [])
    plot.tick_params(axis="y", length=0)
    write_label(plot.xaxis, Label(what, unit.name))
    plot.grid(True, axis="x")
    style.linear_axis(plot, "x")
    plot.set_xlim(0, max(float(left.max()), 1e-9) * _ROOM)
    plot.set_ylim(-0.5, len(layers) - 0.3)
