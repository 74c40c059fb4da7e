"""The picture of a comparison: every figure relative to the first contender, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.ticker import FuncFormatter, MaxNLocator

from writecliff.report import colours, style
from writecliff.report.comparison.figures import Figure
from writecliff.report.interaction import Label
from writecliff.report.model import Figure as Drawing
from writecliff.report.style import house_style
from writecliff.report.table import Data

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from writecliff.report.headline import Headline

MOST = 24  # figures of a picture: more would not be read
_ROW_IN, _WIDTH_IN, _BOTTOM_IN, _TOP_IN = 0.30, 8.6, 0.48, 0.40
_LINEAR_TO = 2.0  # ratio of the axis' ends from which on it is logarithmic


def drawable(figures: Sequence[Figure], most: int | None = MOST) -> list[Figure]:
    """The first figures that can be shown as "so many times as good"; with `most` None all."""
    return [
        figure
        for figure in figures
        if figure.one.higher_is_better is not None
        and figure.noise != "apart"
        and (first := figure.values[0]) is not None
        and first.value > 0
        and all(value is None or value.value > 0 for value in figure.values)
    ][:most]


@house_style()
def relative(
    labels: Sequence[str],
    figures: Sequence[Figure],
    names: Sequence[str],
    data: Data,
    *,
    title: str = "",
    most: int = MOST,
) -> Drawing | None:
    """A row for each figure, a point for each contender; further right is better. None if no figure
    can be drawn. Without another `title` it names the figures and their intervals; `most` rows."""
    shown = drawable(figures, most)
    if not shown:
        return None
    name_of = {id(figure): name for figure, name in zip(figures, names, strict=True)}
    figure = style.new_figure(
        width_in=_WIDTH_IN, height_in=_BOTTOM_IN + _TOP_IN + _ROW_IN * len(shown)
    )
    plot = style.add_axes(figure, Label(f"times as good as {labels[0]}", note="right is better"))
    ends = [1.0]
    for number, look in enumerate(colours.looks(labels)):
        ends += _points(plot, number, labels, look, shown)
    plot.axvline(1.0, color=style.MUTED, lw=0.9)
    plot.set_yticks(range(len(shown)), [name_of[id(item)] for item in shown])
    plot.set_ylim(len(shown) - 0.5, -0.5)
    plot.tick_params(axis="y", length=0)
    plot.grid(True, axis="x")
    plot.grid(False, axis="y")
    _scale(plot, min(ends), max(ends))
    style.make_room_left(figure, plot)
    style.legend(figure, plot)
    able = len(drawable(figures, None))
    which = "All figures" if able <= most else f"The first {most} of {able} figures"
    title = title or f"{which} relative to {labels[0]}, with 95 % intervals"
    return style.finished(figure, "relative", title, data, title, wide=True)


def _points(
    plot: Axes, number: int, labels: Sequence[str], look: int, shown: Sequence[Figure]
) -> list[float]:
    """Draw one contender; the ends of its bars."""
    count = len(labels)
    offset = (number - (count - 1) / 2) * min(0.16, 0.7 / count)
    x, y, low, high = [], [], [], []
    for row, figure in enumerate(shown):
        value, first = figure.values[number], figure.values[0]
        if value is None or first is None:
            continue
        at, ends = _ratios(value, first.value)
        x.append(at)
        y.append(row + offset)
        low.append(at - min(ends))
        high.append(max(ends) - at)
    plot.errorbar(
        x, y, xerr=(low, high), fmt=colours.marker(look), markersize=5,
        color=colours.colour(look), elinewidth=1.3, capsize=2.5, label=labels[number],
    )  # fmt: skip
    return [*(a - b for a, b in zip(x, low, strict=True)),
            *(a + b for a, b in zip(x, high, strict=True))]  # fmt: skip


def _ratios(value: Headline, reference: float) -> tuple[float, tuple[float, float]]:
    """How many times as good a value is, and the ends of its interval."""
    interval = value.interval
    low, high = (value.value,) * 2 if interval is None else (interval.low, interval.high)
    low = low if low > 0 else value.value / 10  # an interval may reach zero, a ratio cannot
    if value.higher_is_better:
        return value.value / reference, (low / reference, high / reference)
    return reference / value.value, (reference / high, reference / low)


def _scale(plot: Axes, low: float, high: float) -> None:
    linear = high / low < _LINEAR_TO
    room = 1.04 if linear else 1.12
    low, high = low / room, high * room
    if linear:
        plot.set_xlim(low, high)
        plot.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 2.5, 5, 10]))
        plot.xaxis.set_major_formatter(FuncFormatter(style.times))
    else:
        style.log_axis(plot, "x", low, high, style.times)
