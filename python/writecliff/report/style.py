"""The house style of figures: matplotlib to static SVG, identical bytes for identical data.

Text stays text (searchable, small) in a generic font stack; it is measured with the font that comes
with matplotlib, so that the layout does not depend on the fonts of a machine. Colours are CSS
variables with the light theme as fallback, so that a page can switch to dark.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

# Each colour is used for nothing else, so that it can be replaced by its variable in the SVG.
INK = "#1c2127"
MUTED = "#5c6670"
GRID = "#e4e7eb"
BLUE = "#1f5fa8"
ORANGE = "#c25a1c"
GREEN = "#3d7d53"
PURPLE = "#7a5aa8"
BAND = "#c8d8ea"
WINDOW = "#eef1d9"
_VARIABLES = {
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
    "svg.hashsalt": "writecliff",
    "text.color": INK,
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
    """Everything drawn and saved inside looks alike, whatever the user's matplotlibrc says."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        yield


def new_axes(x_label: str, y_label: str, *, top_axis: bool = False) -> tuple[Figure, Axes]:
    """A figure with one plot in a fixed place. The y label stands level above its axis, where it
    is read without turning the head; the legend goes to its right, outside the data."""
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN), facecolor="none")
    FigureCanvasSVG(figure)
    top = _TOP_IN + (_TOP_AXIS_IN if top_axis else 0)
    axes = figure.add_axes(
        (
            _LEFT_IN / WIDTH_IN,
            _BOTTOM_IN / HEIGHT_IN,
            (WIDTH_IN - _LEFT_IN - _RIGHT_IN) / WIDTH_IN,
            (HEIGHT_IN - _BOTTOM_IN - top) / HEIGHT_IN,
        ),
        facecolor="none",
    )
    axes.set_xlabel(x_label)
    axes.grid(True, axis="y")
    figure.text(
        0.08 / WIDTH_IN,
        1 - 0.09 / HEIGHT_IN,
        y_label,
        ha="left",
        va="top",
        fontweight="bold",
        fontsize=9,
    )
    return figure, axes


def legend(figure: Figure, axes: Axes) -> None:
    """The legend in one row at the top right, above the plot."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="upper right",
        bbox_to_anchor=(1 - 0.12 / WIDTH_IN, 1 - 0.01 / HEIGHT_IN),
        ncols=len(labels),
        borderaxespad=0.2,
    )


def plain(value: float, _position: int | None = None) -> str:
    """Tick text without exponents: 10,000 and 0.05."""
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:g}"


def linear_axis(axes: Axes, which: str, *, from_zero: bool = True) -> None:
    axis = getattr(axes, f"{which}axis")
    axis.set_major_formatter(FuncFormatter(plain))
    if from_zero:
        getattr(axes, f"set_{which}lim")(0, None)


def compact(value: float, _position: int | None = None) -> str:
    """Tick text for large counts: 10 k, 1 M."""
    for size, name in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:g}{name}"
    return f"{value:g}"


def log_axis(
    axes: Axes, which: str, low: float, high: float, text: Callable[..., str] = plain
) -> None:
    """A logarithmic axis from `low` to `high`; 1-2-5 ticks if it spans few decades."""
    getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    few = high / low < 100
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,), numticks=20))
    axis.set_major_formatter(FuncFormatter(text))
    axis.set_minor_formatter(NullFormatter())
    if few:
        axis.set_minor_locator(NullLocator())
    getattr(axes, f"set_{which}lim")(low, high)


def to_svg(figure: Figure, name: str, description: str) -> str:
    """The figure as an SVG element that can stand beside others in one page: its ids begin with
    `name`, and it refers to nothing outside."""
    sink = io.StringIO()
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
    label = _escaped(description)
    return re.sub(
        r'<svg [^>]*?viewBox="([^"]+)"[^>]*>',
        rf'<svg xmlns="http://www.w3.org/2000/svg" viewBox="\1" role="img" aria-label="{label}">',
        text,
        count=1,
    )


def _escaped(text: str) -> str:
    for plain_text, entity in (("&", "&amp;"), ("<", "&lt;"), ('"', "&quot;")):
        text = text.replace(plain_text, entity)
    return text
