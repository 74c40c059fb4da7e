"""Generic figures: lines over any axes, two y axes, curves normalised to their peaks, and bars.

Each function draws one `model.Figure` (equal data produce identical bytes), or returns None if
there are no data. `model.section` omits None. All functions take `name` (element name, unique on
the page), `title` (caption), `data` (name of the data file) and `alt` (alternative text, default:
the title).

    lines          several series, such as IOPS v block size by mix, IOPS v round, or throughput v
                   time, with window and reference lines
    two_axes       throughput on the left axis, and response times (logarithmic) on the right axis
    normalised     curves of several drives, each divided by its own peak
    bars           grouped bars labelled with their values
    agreement      expected v measured values on equal axes, where points near the diagonal agree

Example, the 2-D plot of the IOPS test:

    lines("iops-2d", "IOPS v block size", data, [Line("65/35", sizes, iops), ...],
          block_size_axis(sizes), Axis("IOPS", log=True))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from writecliff import units
from writecliff.report import axes as ax
from writecliff.report import colours, style
from writecliff.report.axes import Axis, Line
from writecliff.report.model import Figure
from writecliff.report.style import house_style
from writecliff.report.table import Data

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Plot

    from writecliff.report.axes import Numbers

_MARKED_POINTS = 60  # Number of points above which a line is drawn without markers.
_MARK_SHAPES = "oDs^"
GUIDE_PCT = 20.0  # Offset of the dashed guide lines from the `agreement` diagonal, in percent.


@dataclass(frozen=True)
class Reference:
    """A horizontal line in base units of the y axis, such as the average or 110 % of it."""

    label: str
    value: float
    dashed: bool = True


@dataclass(frozen=True)
class Bars:
    """A bar in each group, where NaN leaves an empty position."""

    label: str
    values: Sequence[float]


@dataclass(frozen=True)
class Marks:
    """Points with the same meaning on several series, in base units of both axes."""

    label: str
    points: Sequence[tuple[float, float]]


Drawable = list[tuple[str, "Numbers", "Numbers"]]


@house_style()
def lines(
    name: str,
    title: str,
    data: Data,
    series: Sequence[Line],
    x: Axis,
    y: Axis,
    *,
    alt: str = "",
    window: tuple[float, float] | None = None,
    window_label: str = "window",
    references: Sequence[Reference] = (),
    marks: Sequence[Marks] = (),
    joined: bool = True,
) -> Figure | None:
    """Draw labelled series over common axes, with markers unless there are many points.

    `window` is a shaded range in base units of x. `joined=False` draws points without connecting
    lines. A single series has a legend only if the plot has other elements that must be
    distinguished from the series.
    """
    drawn = _drawable(series, x, y)
    if not drawn:
        return None
    x_unit, y_unit = x.unit(_all(drawn, 1)), y.unit(_all(drawn, 2))
    figure, plot = style.new_axes(x.title(x_unit), y.title(y_unit))
    if window is not None:
        begin, end = (value / x_unit.size for value in window)
        plot.axvspan(begin, end, color=style.WINDOW, label=window_label)
    levels = [reference.value / y_unit.size for reference in references]
    for reference, level in zip(references, levels, strict=True):
        style_of = (0, (4, 3)) if reference.dashed else "-"
        plot.axhline(level, color=style.MUTED, lw=0.9, ls=style_of, label=reference.label)
    _draw(plot, drawn, x_unit, y_unit, joined=joined)
    for number, group in enumerate(marks):
        at = np.array(group.points, dtype=np.float64).reshape(-1, 2)
        plot.plot(
            at[:, 0] / x_unit.size, at[:, 1] / y_unit.size, linestyle="none",
            marker=_MARK_SHAPES[number % len(_MARK_SHAPES)], markersize=7, markeredgewidth=1.3,
            markerfacecolor="none", markeredgecolor=style.INK, label=group.label, clip_on=False,
        )  # fmt: skip
    ax.apply(plot, "x", x, x_unit, _all(drawn, 1) / x_unit.size)
    ax.apply(plot, "y", y, y_unit, np.append(_all(drawn, 2) / y_unit.size, levels))
    if len(drawn) + len(levels) + len(marks) > 1 or window is not None:
        style.legend(figure, plot)
    return style.finished(figure, name, title, data, alt)


@house_style()
def two_axes(
    name: str,
    title: str,
    data: Data,
    x: Axis,
    left: tuple[Axis, Sequence[Line]],
    right: tuple[Axis, Sequence[Line]],
    *,
    alt: str = "",
) -> Figure | None:
    """Draw series on left and right y axes over a common x axis.

    For example, throughput uses the left axis, while ART and MRT use the right axis. Lines on the
    right axis are dashed to show which axis each line belongs to.
    """
    parts = [(axis, _drawable(series, x, axis)) for axis, series in (left, right)]
    if not all(drawn for _, drawn in parts):
        return None
    x_unit = x.unit(np.concatenate([_all(drawn, 1) for _, drawn in parts]))
    figure = style.new_figure()
    plot = style.add_axes(figure, x.title(x_unit), top_axis=True, right_in=0.62)
    other = plot.twinx()
    other.set_facecolor("none")
    other.spines["right"].set_visible(True)
    looks = iter(colours.looks([text for _, drawn in parts for text, _, _ in drawn]))
    for on, (axis, drawn), dashes in ((plot, parts[0], ""), (other, parts[1], "--")):
        unit = axis.unit(_all(drawn, 2))
        labels = [(f"{text} ({'right' if dashes else 'left'})", px, py) for text, px, py in drawn]
        _draw(on, labels, x_unit, unit, looks=looks, dashes=dashes or "-")
        ax.apply(on, "y", axis, unit, _all(drawn, 2) / unit.size)
        label_in = figure.get_figwidth() - 0.08 if dashes else 0.08
        label = axis.title(unit)
        style.write_above(figure, label_in, label, row=1, right=bool(dashes), of=on)
    every = np.concatenate([_all(drawn, 1) for _, drawn in parts])
    ax.apply(plot, "x", x, x_unit, every / x_unit.size)
    style.legend(figure, plot, other)
    return style.finished(figure, name, title, data, alt)


def normalised(
    name: str,
    title: str,
    data: Data,
    curves: Sequence[Line],
    x: Axis,
    *,
    marks: Mapping[str, Sequence[tuple[str, float]]] | None = None,
    alt: str = "",
) -> Figure | None:
    """Draw curves, each divided by its peak (SNIA primer, figure 5).

    The curves compare the shapes of several drives' curves instead of their speeds. A curve without
    a positive value is omitted. `marks` maps a curve's label to the names and x positions of its
    marked points.
    """
    scaled = []
    marked: dict[str, list[tuple[float, float]]] = {}
    for curve in curves:
        values = np.asarray(curve.y, dtype=np.float64)
        peak = float(np.nanmax(values)) if np.isfinite(values).any() else 0.0
        if peak > 0:
            scaled.append(Line(curve.label, curve.x, (values / peak).tolist()))
            for label, at in (marks or {}).get(curve.label, ()):
                y = float(np.interp(at, curve.x, values / peak))
                marked.setdefault(label, []).append((at, y))
    y_axis = Axis("IOPS relative to peak", top=1.05)
    shown = [Marks(label, points) for label, points in marked.items()]
    return lines(name, title, data, scaled, x, y_axis, marks=shown, alt=alt)


@house_style()
def bars(
    name: str,
    title: str,
    data: Data,
    groups: Sequence[str],
    series: Sequence[Bars],
    y: Axis,
    *,
    alt: str = "",
    wide: bool = False,
) -> Figure | None:
    """Draw grouped bars from 0 with their values, such as throughput by block size."""
    values = np.array([bar.values for bar in series], dtype=np.float64).reshape(len(series), -1)
    if not np.isfinite(values).any():
        return None
    unit = y.unit(values[np.isfinite(values)])
    values = values / unit.size
    figure, plot = style.new_axes("", y.title(unit))
    width = 0.76 / len(series)
    looks = colours.looks([bar.label for bar in series])
    for number, (bar, heights) in enumerate(zip(series, values, strict=True)):
        centres = np.arange(len(groups)) + (number - (len(series) - 1) / 2) * width
        finite = np.isfinite(heights)
        plot.bar(
            centres[finite],
            heights[finite],
            width * 0.92,
            color=colours.colour(looks[number]),
            label=bar.label,
        )
        for centre, height in zip(centres[finite], heights[finite], strict=True):
            plot.annotate(units.significant(height), (centre, height), xytext=(0, 2),
                          textcoords="offset points", ha="center", va="bottom",
                          fontsize=8)  # fmt: skip
    style.linear_axis(plot, "y")
    plot.set_ylim(0, max(float(np.nanmax(values)), 1e-12) * 1.12)
    plot.set_xlim(-0.6, len(groups) - 0.4)
    plot.set_xticks(range(len(groups)), list(groups))
    plot.tick_params(axis="x", length=0)
    if len(series) > 1:
        style.legend(figure, plot)
    return style.finished(figure, name, title, data, alt, wide=wide)


@house_style()
def agreement(
    name: str,
    title: str,
    data: Data,
    series: Sequence[Line],
    x: Axis,
    y: Axis,
    *,
    alt: str = "",
) -> Figure | None:
    """Draw points (x: expected, y: measured), the diagonal, and lines 20 % above and below it.

    Both axes have the same unit and limits, and are either both logarithmic or both linear. The
    result is `None` if no point can be drawn.
    """
    drawn = _drawable(series, x, y)
    if not drawn:
        return None
    every = np.concatenate([np.append(px, py[np.isfinite(py)]) for _, px, py in drawn])
    unit = x.unit(every)
    figure, plot = style.new_axes(x.title(unit), y.title(unit))
    every = every / unit.size
    for which, axis in (("x", x), ("y", y)):
        ax.apply(plot, which, axis, unit, every)
    low, high = plot.get_xlim()
    plot.set_ylim(low, high)
    ends = np.array([low, high])
    plot.plot(ends, ends, color=style.MUTED, lw=0.9, label="equal")
    for factor in (1 + GUIDE_PCT / 100, 1 - GUIDE_PCT / 100):
        label = f"±{GUIDE_PCT:g} %" if factor > 1 else None
        plot.plot(ends, ends * factor, color=style.MUTED, lw=0.8, ls=(0, (4, 3)), label=label)
    looks = colours.looks([label for label, _, _ in drawn])
    for look, (label, px, py) in zip(looks, drawn, strict=True):
        plot.plot(
            px / unit.size,
            py / unit.size,
            linestyle="none",
            marker=colours.marker(look),
            markersize=4,
            markeredgewidth=0,
            alpha=0.85,
            color=colours.colour(look),
            label=label,
            clip_on=False,
        )
    style.legend(figure, plot)
    return style.finished(figure, name, title, data, alt)


def _drawable(series: Sequence[Line], x: Axis, y: Axis) -> Drawable:
    """Return the series with at least one point that these axes can show."""
    points = ((line.label, *ax.finite(line, x_log=x.log, y_log=y.log)) for line in series)
    return [(label, px, py) for label, px, py in points if np.isfinite(py).any()]


def _all(series: Drawable, which: int) -> Numbers:
    """Return all drawn x (1) or y (2) values."""
    return np.concatenate([entry[which][np.isfinite(entry[2])] for entry in series])


def _draw(
    plot: Plot,
    series: Drawable,
    x_unit: units.Unit,
    y_unit: units.Unit,
    *,
    joined: bool = True,
    looks: Iterator[int] | None = None,
    dashes: str = "-",
) -> None:
    """Draw every series with its colour and marker.

    `looks` applies to several axes together.
    """
    looks = looks or iter(colours.looks([label for label, _, _ in series]))
    for (label, px, py), look in zip(series, looks, strict=False):
        points = int(np.isfinite(py).sum())
        marked = points <= _MARKED_POINTS or not joined
        line = ":" if colours.again(look) else dashes
        plot.plot(
            px / x_unit.size,
            py / y_unit.size,
            linestyle=line if joined else "none",
            marker=colours.marker(look) if marked else "",
            markersize=4 if joined else 6 if points <= _MARKED_POINTS else 3,
            markeredgewidth=0,
            linewidth=1.2,
            color=colours.colour(look),
            label=label,
            clip_on=not marked,  # A marker at an axis limit must be drawn in full.
        )
