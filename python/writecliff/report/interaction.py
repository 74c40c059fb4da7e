"""Drawing metadata that the page script uses to show values, zoom and hide series.

The drawing holds the numbers. The page script reads points from the paths and converts them to
values, using the limits and scales stored next to the drawing. A page therefore stores each number
only once, and a drawing is complete even if the script does not run.

`name_artists` assigns IDs to artists before the drawing is written. `described` describes the
artists after drawing, when limits and positions are final.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

from matplotlib.artist import Artist
from matplotlib.collections import Collection
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle, StepPatch
from matplotlib.text import Annotation
from matplotlib.ticker import FixedLocator

from writecliff import units

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_SCALES = {"linear": "linear", "log": "log", "function": "nines"}


class Label(str):
    """An axis label, from which the page script shows the name and unit next to values."""

    __slots__ = ("name", "unit")
    name: str
    unit: str

    def __new__(cls, name: str, unit: str = "", note: str = "") -> Self:
        """Return the name, followed by unit and note in parentheses."""
        behind = ", ".join(filter(None, (unit, note)))
        self = super().__new__(cls, f"{name} ({behind})" if behind else name)
        self.name, self.unit = name, unit
        return self


_AXIS_LABELS: WeakKeyDictionary[Axis, Label] = WeakKeyDictionary()


def write_label(axis: Axis, label: str, **how: Any) -> None:
    """Set an axis label, and record its name and unit, because Matplotlib stores only its text."""
    axis.set_label_text(label, **how)
    if isinstance(label, Label):
        _AXIS_LABELS[axis] = label


def name_artists(figure: Figure) -> None:
    """Assign an SVG ID to every artist that the script may move or hide."""
    for plot, axes in enumerate(_plots(figure)):
        for which in ("x", "y"):
            getattr(axes, f"{which}axis").set_gid(f"plot{plot}-{which}")
        for number, artist in enumerate(_drawn(axes)):
            artist.set_gid(f"plot{plot}-{number}")
    for legend in figure.legends:
        parts = zip(legend.legend_handles, legend.get_texts(), strict=True)
        for number, (handle, text) in enumerate(parts):
            text.set_gid(f"legend-{number}")
            if handle is not None:
                handle.set_gid(f"legend-{number}-key")


def described(figure: Figure) -> dict[str, Any]:
    """Return a drawn figure's plots and legend, or an empty result if the script cannot use them.

    Boxes are in points from the upper left corner, as in SVG.
    """
    plots = [_plot(figure, axes) for axes in _plots(figure)]
    names = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return {"plots": plots, "legend": names}


def _plots(figure: Figure) -> Iterator[Axes]:
    for axes in figure.axes:
        yield axes
        yield from axes.child_axes  # type: ignore[misc]  # a second x axis


def _drawn(axes: Axes) -> list[Artist]:
    return [*axes.collections, *axes.patches, *axes.lines, *axes.texts]


def _plot(figure: Figure, axes: Axes) -> dict[str, Any]:
    labels = _labels(axes)
    tips = _tips(axes)
    parts = [_part(figure, axes, artist, labels, tips) for artist in _drawn(axes)]
    # 3-D plots have no zoom, because their axes do not correspond to drawing coordinates.
    if axes.name == "3d":
        return {"parts": [part for part in parts if "tip" in part]}
    width, height = figure.get_size_inches() * 72
    box = axes.get_position()
    return {
        "box": _rounded(box.x0 * width, (1 - box.y1) * height, box.width * width,
                        box.height * height),
        "x": _axis(axes.xaxis), "y": _axis(axes.yaxis),
        "parts": parts,
    }  # fmt: skip


def _labels(axes: Axes) -> Mapping[Artist, str]:
    """Return the legend text of each artist that has a legend entry."""
    labels = {artist: str(artist.get_label()) for artist in _drawn(axes)}
    for container in axes.containers:
        for part in container.get_children():
            labels[part] = str(container.get_label())
    return {artist: label for artist, label in labels.items() if label and label[0] != "_"}


def _tips(axes: Axes) -> Mapping[Artist, str]:
    """Return the values of bars and columns as text."""
    tips: dict[Artist, str] = {}
    for container in axes.containers:
        if not isinstance(container, BarContainer):
            continue
        upright = container.orientation == "vertical"
        category, value = (axes.xaxis, axes.yaxis) if upright else (axes.yaxis, axes.xaxis)
        names = dict(_named(category))
        for bar in container.patches:
            assert isinstance(bar, Rectangle)
            begin, width = (bar.get_x(), bar.get_width()), (bar.get_y(), bar.get_height())
            across, along = (begin, width) if upright else (width, begin)
            centre = across[0] + across[1] / 2
            place = min(names, key=lambda at: abs(at - centre), default=None)
            words = [names[place] if place is not None else "", str(container.get_label())]
            text = ", ".join(word for word in words if word and word[0] != "_")
            name, unit = _name_and_unit(value)
            tips[bar] = f"{text or name}: {units.significant(along[1], 4)} {unit}".strip()
    if axes.name == "3d":
        tips |= {box: str(box.get_label()) for box in axes.collections if _description(box)}
    return tips


def _description(box: Collection) -> bool:
    return not str(box.get_label()).startswith("_")


def _part(
    figure: Figure,
    axes: Axes,
    artist: Artist,
    labels: Mapping[Artist, str],
    tips: Mapping[Artist, str],
) -> dict[str, Any]:
    """Return an artist's ID, series, zoomable axes, and value flag."""
    part: dict[str, Any] = {"id": artist.get_gid()}
    if artist in labels and artist not in tips:
        part["series"] = labels[artist]
    elif artist in labels:
        part |= {"series": labels[artist], "tip": tips[artist]}
    elif artist in tips:
        part["tip"] = tips[artist]
    if axes.name == "3d":
        return part
    transform: Any = Artist.get_transform(artist)
    if isinstance(artist, Annotation):
        inside = artist.xycoords != "data"
        transform = artist.xycoords if inside else axes.transData
        x, y = transform.transform(artist.xy)
        height = figure.get_size_inches()[1] * 72
        scale = 72 / figure.dpi
        part["at"] = _rounded(x * scale, height - y * scale)
    moves = transform.contains_branch_seperately(axes.transData)
    part["moves"] = "".join(name for name, does in zip("xy", moves, strict=True) if does)
    if part["moves"] == "xy" and isinstance(artist, Line2D | StepPatch):
        part["values"] = True
    return part


def _axis(axis: Axis) -> dict[str, Any]:
    """Return an axis's scale, limits, quantity and tick names."""
    name, unit = _name_and_unit(axis)
    low, high = axis.get_view_interval()
    ticks = [[at, text] for at, text in _named(axis) if low <= at <= high]
    return {
        "id": axis.get_gid(),
        "scale": _SCALES[axis.get_scale()],
        "from": float(low),
        "to": float(high),
        "name": name,
        "unit": unit,
        **({"ticks": ticks} if ticks else {}),
    }


def _named(axis: Axis) -> Iterable[tuple[float, str]]:
    """Yield named ticks, such as block sizes, drives and percentages."""
    locator, formatter = axis.get_major_locator(), axis.get_major_formatter()
    of_numbers = getattr(getattr(formatter, "func", None), "__module__", "")
    if not isinstance(locator, FixedLocator) or of_numbers == NUMBERS:
        return ()
    places = [float(place) for place in locator()]
    return list(zip(places, formatter.format_ticks(places), strict=True))


NUMBERS = "writecliff.report.style"  # Module of the plain-number formatters.


def _name_and_unit(axis: Axis) -> tuple[str, str]:
    label = _AXIS_LABELS.get(axis)
    return (label.name, label.unit) if label is not None else (axis.get_label_text(), "")


def _rounded(*values: float) -> list[float]:
    return [round(float(value), 4) for value in values]
