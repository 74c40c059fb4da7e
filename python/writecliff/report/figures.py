"""Figures that all tests share.

These are the steady-state convergence and window, the histogram, the confidence plot, and the
response time by percentile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import NullLocator

from writecliff import units
from writecliff.operation_names import plural_of
from writecliff.procedures.steady import SteadyState
from writecliff.report import colours, plots, style
from writecliff.report.axes import Axis, Line, round_axis
from writecliff.report.csvs import histogram_csv, histograms_csv
from writecliff.report.interaction import Label
from writecliff.report.latency import NINES, latency_unit
from writecliff.report.model import Figure, views
from writecliff.report.plots import lines
from writecliff.report.style import house_style
from writecliff.report.table import Data, DataFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt
    from matplotlib.axes import Axes

    from writecliff._native import Histogram
    from writecliff.report.axes import Numbers


_BINS_PER_DECADE = 30
_MAX_NINES = 6  # Upper limit of the confidence plot: 99.9999 %.


def convergence(
    name: str,
    title: str,
    data: Data,
    series: Sequence[Line],
    window: Sequence[int],
    y: Axis,
) -> Figure | None:
    """Return series over the rounds, with the rounds in `window` shaded.

    The x values in `series` are round numbers.
    """
    return lines(
        name,
        title,
        data,
        series,
        round_axis(),
        y,
        alt=f"{y.label} of each round" + (", by series" if len(series) > 1 else ""),
        window=(window[0] - 0.4, window[-1] + 0.4) if window else None,
        window_label=f"window, rounds {window[0]}-{window[-1]}" if window else "",
    )


@house_style()
def steady_window(
    name: str, title: str, data: Data, state: SteadyState, y: Axis, series: str = "data"
) -> Figure:
    """Return the data, average, 110 %, 90 % and fitted lines over the measurement window.

    `y` is the tracking variable's axis, and `series` is the name used for the data in other plots.
    The fitted line is the least-squares line in `state` (PTS 2.0.2 section 2.1.24), not a line
    through the end points.
    """
    shown = y.unit([state.average])
    figure, axes = style.new_axes("Round", y.title(shown))
    rounds = np.array(state.rounds)
    ends = np.array([rounds[0] - 0.35, rounds[-1] + 0.35])
    average = state.average / shown.size
    for factor in (1.1, 0.9):
        axes.plot(
            ends,
            np.full(2, average * factor),
            color=style.MUTED,
            linestyle=(0, (4, 3)),
            linewidth=0.9,
            label="110 %, 90 %" if factor > 1 else "_",
        )
    axes.plot(ends, np.full(2, average), color=style.MUTED, linewidth=0.9, label="average")
    fitted = [state.fitted(number) / shown.size for number in (rounds[0], rounds[-1])]
    axes.plot([rounds[0], rounds[-1]], fitted, color=style.ORANGE, label="least-squares line")
    values = [value / shown.size for value in state.values]
    colour = colours.colour(*colours.looks([series]))
    axes.plot(rounds, values, "o", color=colour, markersize=5, label="data")
    drawn = [*values, *fitted, average * 1.1, average * 0.9]
    low, high = min(drawn), max(drawn)
    margin = 0.12 * (high - low) or 1.0
    axes.set_ylim(low - margin, high + margin)
    axes.set_xlim(*ends)
    axes.set_xticks(rounds)
    style.linear_axis(axes, "y", from_zero=False)
    style.legend(figure, axes)
    text = (
        f"{y.label} in the measurement window, rounds {rounds[0]} to {rounds[-1]}, "
        f"fitted line {state.formula}"
    )
    return style.finished(figure, name, title, data, text)


def _log_bins(histogram: Histogram) -> tuple[np.ndarray, np.ndarray]:
    """Return edges and counts of equal-width bins on a logarithmic axis.

    Stored buckets are finer than these bins, and the relative bucket width varies. A bucket that
    crosses a bin edge is split.
    """
    lower, upper, count = (column.astype(np.float64) for column in histogram.buckets())
    edges_in, start = np.append(lower, upper[-1] + 1), 0.0
    cumulative = np.concatenate([[start], np.cumsum(count)])
    # No I/Os lie between buckets, so the sum stays constant until the next bucket starts.
    x = np.column_stack([lower, upper + 1]).ravel()
    y = np.column_stack([cumulative[:-1], cumulative[1:]]).ravel()
    first = math.floor(math.log10(max(edges_in[0], 1)) * _BINS_PER_DECADE)
    last = math.ceil(math.log10(edges_in[-1]) * _BINS_PER_DECADE)
    edges = 10 ** (np.arange(first, max(last, first + 1) + 1) / _BINS_PER_DECADE)
    return edges, np.diff(np.interp(edges, x, y))


_DATA_SHARE = 0.58  # Height fraction of the data; marker labels are above it.
_LABEL_PITCH = 0.062
_LABEL_ROOM = 0.3  # Width fraction to the left of the first marker.


def histogram_figures(
    histogram: Histogram | None, name: str = "", what: str = "", data: str = ""
) -> tuple[Figure, ...]:
    """Return the response-time histogram and confidence plot, or an empty list without I/Os.

    Both plots use the buckets of `histogram` as data.

    Args:
        histogram: Response times to plot.
        name: Suffix for element and file names ("-max").
        what: Title prefix ("Max IOPS: ").
        data: File name (default: "histogram" and the suffix).
    """
    if histogram is None or not histogram.count:
        return ()
    file = DataFile(data or f"histogram{name}.csv", histogram_csv(histogram))
    longest = units.latency(histogram.max_ns, latency_unit(histogram))
    title, second = f"response-time histogram (maximum {longest})", "confidence level plot"
    if not what:
        title, second = title.capitalize(), second.capitalize()
    return views(
        f"response-times{name}",
        {
            "histogram": response_time_histogram(f"histogram{name}", what + title, file, histogram),
            "confidence level": confidence(f"confidence{name}", what + second, file, histogram),
        },
    )


@house_style()
def response_time_histogram(name: str, title: str, data: Data, histogram: Histogram) -> Figure:
    """Draw the number of I/Os by response time on two logarithmic axes, with markers.

    The markers show the average, the nines and the maximum.
    """
    edges, counts = _log_bins(histogram)
    unit = latency_unit(histogram)
    edges = edges / unit.size
    figure, axes = style.new_axes(Label("Response time", unit.name, "logarithmic"), "I/Os per bin")
    axes.stairs(np.maximum(counts, 0.5), edges, baseline=0.5, fill=True, color=style.BAND)
    axes.stairs(np.maximum(counts, 0.5), edges, color=style.BLUE, linewidth=1)
    markers = [("average", histogram.mean_ns)]
    markers += [(units.nines(q), histogram.quantile(q).value_ns) for q in NINES]
    markers += [("maximum", histogram.max_ns)]
    marks = [(text, value / unit.size) for text, value in markers if value is not None]
    marks.sort(key=lambda marker: marker[1])
    high = float(edges[-1])
    room = (marks[0][1] / high**_LABEL_ROOM) ** (1 / (1 - _LABEL_ROOM))
    style.log_axis(axes, "x", min(float(edges[0]), room), high)
    top = 0.5 * (float(counts.max()) / 0.5) ** (1 / _DATA_SHARE)
    style.log_axis(axes, "y", 0.5, max(top, 10.0), style.compact, minor=False)
    decades = math.ceil(math.log10(max(float(counts.max()), 10.0)))
    axes.set_yticks([10.0**k for k in range(decades + 1)])
    _mark(axes, marks, unit)
    text = f"Histogram of {histogram.count:,} response times"
    return style.finished(figure, name, title, data, text)


def _mark(axes: Axes, markers: Sequence[tuple[str, float]], unit: units.Unit) -> None:
    """Draw vertical lines with labels at ascending heights.

    Every label ends at its own line, above the lines to the left, so labels never overlap.
    """
    for level, (text, value) in enumerate(markers):
        y = 0.985 - _LABEL_PITCH * (len(markers) - 1 - level)
        axes.plot(
            [value, value],
            [0, y],
            transform=axes.get_xaxis_transform(),
            color=style.ORANGE,
            linewidth=0.8,
        )
        axes.annotate(
            f"{text}: {units.latency(value * unit.size, unit)}",
            (value, y),
            xycoords=axes.get_xaxis_transform(),
            xytext=(-3, 0),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=8,
        )


def _nines(share: npt.ArrayLike) -> Numbers:
    """Return the number of nines in a fraction."""
    return -np.log10(np.maximum(1 - np.asarray(share, dtype=np.float64), 1e-12))


def _of_nines(count: npt.ArrayLike) -> Numbers:
    """Return the fraction with `count` nines (the inverse of `_nines`)."""
    return 1 - 10 ** -np.asarray(count, dtype=np.float64)


@house_style()
def confidence(name: str, title: str, data: Data, histogram: Histogram) -> Figure:
    """Draw the cumulative fraction of I/Os over response time, up to the known nines."""
    unit = latency_unit(histogram)
    _, upper, count = (column.astype(np.float64) for column in histogram.buckets())
    total = histogram.count
    slower = total - np.cumsum(count)
    incomplete = slower >= 1
    x = np.minimum(upper, float(histogram.max_ns or 0))[incomplete] / unit.size
    y = 1 - slower[incomplete] / total
    figure, axes = style.new_axes(
        Label("Response time", unit.name, "logarithmic"), "Share of I/Os completed within"
    )
    highest = min(math.log10(total) if total > 1 else 1.0, float(_MAX_NINES))
    top = 1 - 10 ** -max(highest, 1.0)
    # No I/O takes longer than the maximum, so the curve leaves the logarithmic axis there.
    x = np.append(x, float(histogram.max_ns or 0) / unit.size)
    y = np.append(y, 1 - (1 - top) / 10)
    axes.step(x, y, where="post", color=style.BLUE, label="all I/Os")
    points = [(q, histogram.quantile(q).value_ns) for q in (0.9, *NINES)]
    marked = [(value / unit.size, q) for q, value in points if value is not None and q <= top]
    if marked:
        axes.plot(
            *zip(*marked, strict=True), "o", color=style.ORANGE, markersize=4, label="nines",
            clip_on=False,
        )  # fmt: skip
    ticks = [0.5, *(1 - 10.0**-k for k in range(1, math.floor(highest) + 1))]
    axes.set_yscale("function", functions=(_nines, _of_nines))
    axes.set_ylim(0, top)
    axes.set_yticks(ticks, [units.nines(q) for q in ticks])
    axes.yaxis.set_minor_locator(NullLocator())
    low = float(histogram.min_ns or 1) / unit.size
    style.log_axis(axes, "x", max(low, 1e-9) * 0.9, float(histogram.max_ns or 1) / unit.size * 1.1)
    axes.grid(True, axis="x")
    style.legend(figure, axes)
    text = f"Cumulative share of {total:,} I/Os over response time"
    return style.finished(figure, name, title, data, text)


# -- percentiles -------------------------------------------------------------------------------
#
# The logarithmic x axis counts I/Os per slower I/O, and its ticks are percentiles. Only percentiles
# with enough I/Os are plotted.


_NINES = 5
_PER_DECADE = 8
_TICKS = (2.0, *(10.0**nines for nines in range(1, _NINES + 1)))
PERCENTILE = Axis(
    "Percentile of the I/Os", log=True, ticks=tuple((t, units.nines(1 - 1 / t)) for t in _TICKS)
)
RESPONSE = Axis("Response time", units=units.LATENCY_UNITS, log=True)


def percentile_figure(
    name: str, title: str, histograms: Mapping[str, Histogram], *, data: str = ""
) -> Figure | None:
    """Return a response time curve per operation, or None without I/Os.

    `data` names the file of the buckets (default: `name`).
    """
    file = DataFile(data or f"{name}.csv", histograms_csv(histograms))
    lines = [percentile_line(plural_of(operation), h) for operation, h in histograms.items()]
    alt = f"Response time of {' and '.join(map(plural_of, histograms))} by percentile"
    return plots.lines(name, title, file, lines, PERCENTILE, RESPONSE, alt=alt)


def percentile_line(label: str, histogram: Histogram) -> Line:
    """Return a histogram's response times at the percentiles that its I/O count supports."""
    x, y = [], []
    for step in range(round(math.log10(2) * _PER_DECADE), _NINES * _PER_DECADE + 1):
        one_in = 10 ** (step / _PER_DECADE)
        value = histogram.quantile(1 - 1 / one_in).value_ns
        if value is not None:
            x.append(one_in)
            y.append(float(value))
    return Line(label, x, y)
