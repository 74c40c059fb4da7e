"""House style for figures: static SVG from matplotlib, identical for identical data.

Text in figures remains searchable text in a generic font stack. Text is measured with matplotlib's
bundled font, so the layout does not depend on the fonts installed on the machine. Colours are CSS
variables that fall back to the light theme, so a page can switch to a dark theme.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullLocator,
)
from matplotlib.transforms import blended_transform_factory

from writecliff.report import interaction, model
from writecliff.report.table import Data

# Each colour has a single use, so its variable can replace it in the SVG.
INK = "#1c2127"
MUTED = "#5c6670"
GRID = "#e4e7eb"
BLUE = "#1f5fa8"
ORANGE = "#c25a1c"
GREEN = "#3d7d53"
PURPLE = "#7a5aa8"
BAND = "#c8d8ea"
WINDOW = "#eef1d9"
# Series colours, in an order that also serves as a scale for block sizes, mixes and thread counts.
# Each colour has a marker that distinguishes lines without relying on colour.
SERIES = (
    "#1d4f91", "#2580b0", "#168f83", "#4f8f3a", "#9a8412", "#cc6f14", "#b93a3c", "#80489a",
)  # fmt: skip
MARKERS = "os^Dv*Xp"
_VARIABLES = {
    **{colour: f"s{number}" for number, colour in enumerate(SERIES, 1)},
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    BLUE: "blue",
    ORANGE: "orange",
    GREEN: "green",
    PURPLE: "purple",
    BAND: "band",
    WINDOW: "window",
}
WIDTH_IN = 5.0
HEIGHT_IN = 3.05
_LEFT_IN, _RIGHT_IN, _BOTTOM_IN, _TOP_IN, _TOP_AXIS_IN = 0.78, 0.16, 0.44, 0.36, 0.4
_COLUMN_MOST = 0.32  # Maximum fraction of the width for a legend next to the plots.
_X_LABEL_IN = 0.17  # Distance to the upper edge of the label below a plot, in inches.
_FONT_STACK = "var(--font, system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif)"

_RC: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "legend.columnspacing": 1.0,
    "legend.handletextpad": 0.5,
    "lines.linewidth": 1.4,
    "lines.solid_joinstyle": "round",
    "patch.linewidth": 0,
    "svg.fonttype": "none",
    "path.simplify": False,  # The page script reads values from a line's points.
    "svg.hashsalt": "writecliff",
    "text.color": INK,
    "text.parse_math": False,  # A dollar sign in a name is literal.
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.minor.width": 0.5,
    "ytick.minor.width": 0.5,
    "xtick.minor.size": 1.8,
    "ytick.minor.size": 1.8,
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw and save in the house style, independent of the user's matplotlibrc.

    The decorator `@house_style()` applies the style to a whole function.
    """
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        yield


def new_figure(*, width_in: float = WIDTH_IN, height_in: float = HEIGHT_IN) -> Figure:
    """Return an empty figure whose canvas only measures text; the output is SVG."""
    figure = Figure(figsize=(width_in, height_in), facecolor="none")
    FigureCanvasAgg(figure)
    return figure


def new_axes(x_label: str, y_label: str, *, top_axis: bool = False) -> tuple[Figure, Axes]:
    """Return a figure with a single plot at a fixed position.

    The y label is placed horizontally above its axis, and the legend is to the right of the data.
    """
    figure = new_figure()
    axes = add_axes(figure, x_label, top_axis=top_axis)
    write_above(figure, 0.08, y_label, of=axes)
    return figure, axes


def write_above(
    figure: Figure,
    x_in: float,
    text: str,
    *,
    row: int = 0,
    right: bool = False,
    of: Axes | None = None,
) -> None:
    """Write a y axis label above the plot `of`, on line `row` from the top."""
    if of is not None:
        interaction.write_label(of.yaxis, text, visible=False)  # The page script reads this label.
        of.yaxis.set_label_coords(0, 0.5)
    width_in, height_in = figure.get_size_inches()
    figure.text(
        x_in / width_in,
        1 - (0.09 + row * 0.24) / height_in,
        text,
        ha="right" if right else "left",
        va="top",
        fontweight="bold",
        fontsize=9,
    )


def add_axes(
    figure: Figure,
    x_label: str,
    *,
    top_axis: bool = False,
    left_in: float = 0.0,
    width_in: float | None = None,
    right_in: float = _RIGHT_IN,
) -> Axes:
    """Add a plot to `figure` that fills it, or that starts at `left_in` with `width_in`.

    `right_in` reserves space on the right for a second axis, and `top_axis` reserves a line above
    the plot.
    """
    whole_in, height_in = figure.get_size_inches()
    width_in = width_in or whole_in
    top = _TOP_IN + (_TOP_AXIS_IN if top_axis else 0)
    axes = figure.add_axes(
        (
            (left_in + _LEFT_IN) / whole_in,
            _BOTTOM_IN / height_in,
            (width_in - _LEFT_IN - right_in) / whole_in,
            (height_in - _BOTTOM_IN - top) / height_in,
        ),
        facecolor="none",
    )
    interaction.write_label(axes.xaxis, x_label)
    # The position is fixed, because matplotlib would otherwise draw all ticks a second time to
    # compute it.
    below = blended_transform_factory(axes.transAxes, figure.dpi_scale_trans)
    axes.xaxis.set_label_coords(0.5, _X_LABEL_IN, transform=below)
    axes.grid(True, axis="y")
    return axes


def make_room_left(figure: Figure, axes: Axes) -> None:
    """Move a plot's left edge so that the labels of its y axis fit."""
    canvas: Any = figure.canvas
    renderer = canvas.get_renderer()
    widest = max(label.get_window_extent(renderer).width for label in axes.get_yticklabels())
    left = (widest / figure.dpi + 0.16) / figure.get_figwidth()
    box = axes.get_position()
    axes.set_position((left, box.y0, box.x1 - left, box.height))


def legend(figure: Figure, *plots: Axes) -> Legend:
    """Add a legend for all `plots` that does not cover any plot.

    The legend is a row above the plots if it fits next to their labels, otherwise a column on the
    right. If a column would be too wide, the legend is set in rows between labels and plots, and
    the figure grows.
    """
    entries: dict[str, Any] = {}
    for axes in plots:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    width_in, height_in = figure.get_size_inches()
    row = figure.legend(
        list(entries.values()),
        list(entries),
        loc="upper right",
        bbox_to_anchor=(1 - 0.12 / width_in, 1 - 0.01 / height_in),
        ncols=max(len(entries), 1),
        borderaxespad=0.2,
    )
    canvas: Any = figure.canvas
    renderer = canvas.get_renderer()
    box = row.get_window_extent(renderer)
    beside = (text.get_window_extent(renderer) for text in figure.texts)
    if box.x0 > max((text.x1 for text in beside if text.y1 > box.y0), default=0) + 4:
        return row
    row.remove()
    column = figure.legend(
        list(entries.values()),
        list(entries),
        loc="upper right",
        bbox_to_anchor=(1 - 0.04 / width_in, 1 - _TOP_IN / height_in),
        borderaxespad=0.0,
        labelspacing=0.45,
        handlelength=1.8,
    )
    taken = column.get_window_extent(renderer).width / figure.dpi / width_in
    if taken <= _COLUMN_MOST:
        _squeeze(plots, taken)
        return column
    column.remove()
    return _stacked(figure, entries)


def _stacked(figure: Figure, entries: Mapping[str, Any]) -> Legend:
    """Add the legend in rows between the labels and the plots."""
    width_in, height_in = figure.get_size_inches()
    canvas: Any = figure.canvas
    renderer = canvas.get_renderer()
    for columns in range(min(len(entries), 4), 0, -1):
        rows = figure.legend(
            list(entries.values()), list(entries), loc="upper left", ncols=columns,
            borderaxespad=0.0, labelspacing=0.35,
        )  # fmt: skip
        box = rows.get_window_extent(renderer)
        if columns == 1 or box.width <= (width_in - 0.2) * figure.dpi:
            break
        rows.remove()
    more_in = box.height / figure.dpi + 0.05
    figure.set_figheight(height_in + more_in)
    for text in figure.texts:  # Preserve the distance from the upper edge.
        text.set_y(1 - (1 - text.get_position()[1]) * height_in / (height_in + more_in))
    for axes in figure.axes:  # Preserve the height and the distance from the lower edge.
        place = axes.get_position()
        share = height_in / (height_in + more_in)
        axes.set_position((place.x0, place.y0 * share, place.width, place.height * share))
    above = min((text.get_window_extent(renderer).y0 for text in figure.texts), default=None)
    top_in = height_in + more_in - 0.05 if above is None else above / figure.dpi - 0.06
    rows.set_bbox_to_anchor((0.06 / width_in, top_in / (height_in + more_in)))
    return rows


def _squeeze(plots: tuple[Axes, ...], taken: float) -> None:
    """Free the fraction `taken` of the figure's width at its right edge.

    Adjacent plots share the loss of width, and overlaid plots (with a second y axis) remain
    aligned.
    """
    lefts = sorted({round(axes.get_position().x0, 6) for axes in plots})
    lost = taken / len(lefts)
    for axes in plots:
        box = axes.get_position()
        before = lefts.index(round(box.x0, 6)) * lost
        axes.set_position((box.x0 - before, box.y0, box.width - lost, box.height))


def plain(value: float, _position: int | None = None) -> str:
    """Return tick text without exponents or lost digits, such as 10,000, 12.5 or 0.05."""
    return f"{value:,.10g}"


def times(value: float, _position: int | None = None) -> str:
    """Return tick text for ratios, such as 0.5× or 20×."""
    return f"{value:,.4g}×"


def linear_axis(axes: Axes, which: str, *, from_zero: bool = True) -> None:
    """Format a linear axis with plain numbers, starting at 0 if `from_zero` is set."""
    axis = getattr(axes, f"{which}axis")
    axis.set_major_formatter(FuncFormatter(plain))
    if from_zero:
        from_zero_to(axes, which, None)


def from_zero_to(axes: Axes, which: str, top: float | None) -> None:
    """Start an axis at zero and end it at `top` (default: the end of the data).

    The axis for a series of zeros ends at 1, because matplotlib warns about zero-length axes.
    """
    end = getattr(axes, f"get_{which}lim")()[1] if top is None else top
    getattr(axes, f"set_{which}lim")(0, end if math.isfinite(end) and end > 0 else 1.0)


def compact(value: float, _position: int | None = None) -> str:
    """Return tick text for large counts, such as 10 k or 1 M."""
    for size, name in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:g}{name}"
    return f"{value:g}"


def log_axis(
    axes: Axes,
    which: str,
    low: float,
    high: float,
    text: Callable[..., str] = plain,
    *,
    minor: bool = True,
) -> None:
    """Set a logarithmic axis from `low` to `high` with at least three labelled ticks.

    Minor ticks are placed between powers of ten.
    """
    getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    # Number of powers of ten in range.
    powers = math.floor(math.log10(high)) - math.ceil(math.log10(low)) + 1
    if powers < 3:
        axis.set_major_locator(FixedLocator(log_ticks(low, high)))
    else:
        crowded = which == "x" and powers > 6  # Label only some powers of ten.
        axis.set_major_locator(LogLocator(subs=(1,), numticks=6 if crowded else 20))
        if minor and powers <= 8:
            _minor_ticks(axes, which, low, high)
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(text))
    getattr(axes, f"set_{which}lim")(low, high)


def _minor_ticks(axes: Axes, which: str, low: float, high: float) -> None:
    """Draw all minor ticks of a logarithmic axis as one line with markers.

    matplotlib's own ticks would take longer than the rest of the figure.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
    places = [digit * 10.0**n for n in powers for digit in range(2, 10)]
    places = [place for place in places if low <= place <= high]
    right = which == "y" and axes.yaxis.get_ticks_position() == "right"
    edge = [float(right)] * len(places)
    x, y = (places, edge) if which == "x" else (edge, places)
    axes.add_line(
        Line2D(
            x, y, linestyle="none", marker={"x": 3, "y": 1 if right else 0}[which],
            markersize=1.8, markeredgewidth=0.5, color=MUTED, clip_on=False,
            transform=getattr(axes, f"get_{which}axis_transform")(),
        )
    )  # fmt: skip


def log_ticks(low: float, high: float) -> list[float]:
    """Return three to seven ticks for a logarithmic axis that spans few decades.

    Ticks follow 1-3 or 1-2-5, or are closer if fewer than three of these values are in range.
    """
    powers = [10.0**n for n in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    wide = high / low > 150
    for digits in ((1, 3) if wide else (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
        ticks = [digit * power for power in powers for digit in digits]
        seen = [tick for tick in ticks if low <= tick <= high]
        if len(seen) >= 3:
            return seen
    ticks = [float(tick) for tick in MaxNLocator(5).tick_values(low, high)]
    return [tick for tick in ticks if low <= tick <= high]


def finished(
    figure: Figure, name: str, title: str, data: Data, alt: str = "", *, wide: bool = False
) -> model.Figure:
    """Return the drawing with its caption and data.

    `alt` is the alternative text (default: the title).
    """
    name = element_name(name)
    return model.Figure(name, title, to_svg(figure, name, alt or title), alt or title, data, wide)


def element_name(text: str) -> str:
    """Return `text` as an element name of letters, digits and hyphens.

    A digest distinguishes names where characters other than spaces were replaced.
    """
    hyphened = text.replace(" ", "-")
    plain = "".join(c for c in hyphened if c in "-_" or (c.isascii() and c.isalnum()))
    if plain == hyphened:
        return plain
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{plain[:40]}-{digest[:8]}"


def to_svg(figure: Figure, name: str, description: str) -> str:
    """Return the figure as an SVG element that can share a page with other elements.

    The element's IDs start with `name`, and the element has no external references.
    """
    name = element_name(name)
    sink = io.StringIO()
    interaction.name_artists(figure)
    figure.savefig(
        sink,
        format="svg",
        transparent=True,
        metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
    )
    text = sink.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)
    text = re.sub(r'xlink:href="#([^"]+)"', rf'href="#{name}-\1"', text)
    text = text.replace("'DejaVu Sans'", _FONT_STACK)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var(--{variable}, {colour})")
    dumps = json.dumps(interaction.described(figure), ensure_ascii=False, separators=(",", ":"))
    opening = (
        'preserveAspectRatio="xMinYMid" role="img" '
        f'aria-label="{_escaped(description)}" data-plots="{_escaped(dumps)}">'
    )
    return re.sub(
        r'<svg [^>]*?viewBox="([^"]+)"[^>]*>',
        lambda match: f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{match[1]}" {opening}',
        text,
        count=1,
    )


def _escaped(text: str) -> str:
    for plain_text, entity in (("&", "&amp;"), ("<", "&lt;"), ('"', "&quot;")):
        text = text.replace(plain_text, entity)
    return text
