"""Comparison plots of curves, figures over a setting, and ratios to the first contender.

A setting is a number, such as the active range or the spare flash capacity. A line connects the
contenders with the same drive model, whose capacities may differ. Contenders with different drive
models differ in more than the setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from matplotlib.ticker import FuncFormatter, MaxNLocator

from writecliff import units
from writecliff.report import colours, kinds, plots, style
from writecliff.report.axes import Axis, Line
from writecliff.report.compared import Curve
from writecliff.report.comparison.contenders import Contender
from writecliff.report.comparison.figures import Figure
from writecliff.report.comparison.runs import DRIVE
from writecliff.report.csvs import data_file, lines_csv
from writecliff.report.interaction import Label
from writecliff.report.model import Figure as Drawing
from writecliff.report.model import Section, section
from writecliff.report.plots import lines, normalised
from writecliff.report.style import house_style
from writecliff.report.table import Column, Data, DataFile, Table, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from writecliff.report.comparison import Comparison
    from writecliff.report.headline import Headline


Curves = Sequence[tuple[str, Curve]]  # Curves of one name by contender.


def curves_section(contenders: Sequence[Contender]) -> Section:
    """Return all curves, and a table of their marked points.

    A reader can select a contender if all contenders have curves for the same tests.
    """
    by_name = _by_name(contenders)
    shown = section("Curves", "", _moments(by_name), *map(_drawn, by_name))
    alike = len({tuple(contender.runs) for contender in contenders}) == 1
    return replace(
        shown, choices=tuple(contender.label for contender in contenders) if alike else ()
    )


def curves_mapping(contenders: Sequence[Contender]) -> list[dict[str, Any]]:
    """Return the curves' marked points as JSON, in base units of the x axes."""
    return [
        {
            "name": curve.name,
            "title": curve.title,
            "x": _column(curve.x),
            "contender": label,
            "marks": {mark.label: mark.x for mark in curve.marks},
        }
        for curves in _by_name(contenders)
        for label, curve in curves
        if curve.marks
    ]


def _by_name(contenders: Sequence[Contender]) -> list[Curves]:
    curves: dict[str, list[tuple[str, Curve]]] = {}
    for contender in contenders:
        for run in contender.runs.values():
            for curve in run.curves:
                curves.setdefault(curve.name, []).append((contender.label, curve))
    return list(curves.values())


def _moments(by_name: Sequence[Curves]) -> Table | None:
    """Return the mark positions of each contender, by axis."""
    marked = [curves for curves in by_name if any(curve.marks for _, curve in curves)]
    if not marked:
        return None
    columns = {
        (mark.label, number): f"{mark.label[0].upper()}{mark.label[1:]}"
        for number, curves in enumerate(marked)
        for _, curve in curves
        for mark in curve.marks
    }
    labels = list(dict.fromkeys(label for curves in marked for label, _ in curves))
    rows = []
    for label in labels:
        of = [dict(curves).get(label) for curves in marked]
        at = {
            (mark.label, number): mark.x
            for number, curve in enumerate(of)
            if curve is not None
            for mark in curve.marks
        }
        rows.append((label, *(at.get(key) for key in columns)))
    axes = {key: marked[key[1]][0][1].x for key in columns}
    head = (
        Column("", key="contender"),
        *(
            Column(
                title,
                kinds.DURATION if axes[key].units else kinds.digits(3, axes[key].label.lower()),
                f"{key[0].replace(' ', '_')}_{_column(axes[key])}",
            )
            for key, title in columns.items()
        ),
    )
    return table("When the drives change their state", head, rows, file="moments.csv")


def _drawn(curves: Curves) -> Drawing | None:
    first = curves[0][1]
    series = [
        Line(label, [x for x, _ in curve.points], [y for _, y in curve.points])
        for label, curve in curves
    ]
    x = max((curve.x for _, curve in curves), key=lambda axis: axis.unit([]).size)
    data = DataFile(
        f"{first.name}.csv", lines_csv(series, "contender", _column(x), _column(first.y))
    )
    if first.relative:
        marks = {label: [(mark.label, mark.x) for mark in c.marks] for label, c in curves}
        return normalised(first.name, first.title, data, series, x, marks=marks)
    return lines(first.name, first.title, data, series, x, first.y)


def _column(axis: Axis) -> str:
    """Return a column name in base units."""
    name = axis.label.lower().replace(" ", "_")
    if name == "block_size_(kib)":  # The ticks are in KiB, but the values are in bytes.
        return "block_bytes"
    if not axis.units:
        return name
    return f"{name}_{'bytes_per_s' if axis.units[0] is units.MB_S else 'ns'}"


# -- figures over a setting --------------------------------------------------------------------


SETTING_FIGURES = 6  # Number of plotted figures, starting with the headline figures.
_SAME_SIZE = 0.02  # Relative tolerance, because 15.36 TB is displayed as 15.4 TB.
_NO_SETTINGS = ("seed", "serial number", "description", "target", "firmware")


@dataclass(frozen=True)
class Setting:
    """A numeric setting that distinguishes contenders."""

    name: str  # Setting name, such as "over-provisioning".
    unit: str  # Unit, such as "%"; empty for counts.
    numbers: Sequence[float]


def setting_of(comparison: Comparison) -> Setting | None:
    """Return the single setting that distinguishes the contenders.

    The setting is the one in the contender labels, as in a sweep, or the only numeric set-up
    difference. The result is `None` if there is no such setting or more than one.
    """
    labels = [_named_number(label) for label in comparison.labels]
    measured = [label for label in labels if label is not None]
    if len(measured) == len(labels) and len({name for name, _, _ in measured}) == 1:
        name, _, unit = measured[0]
        return _distinct(name, unit, [number for _, number, _ in measured])
    settings = []
    for part in comparison.differences:
        values = [_number(value or "") for value in part.values]
        numbers = [value for value in values if value is not None]
        same_unit = len({unit for _, unit in numbers}) == 1
        if part.what not in _NO_SETTINGS and len(numbers) == len(values) and same_unit:
            name = part.what.removesuffix(" pct")
            unit = "%" if name != part.what else numbers[0][1]
            settings.append(_distinct(name, unit, [number for number, _ in numbers]))
    return settings[0] if len(settings) == 1 else None


def _is_number(text: str) -> bool:
    whole, dot, part = text.partition(".")
    return whole.isdecimal() and (part.isdecimal() or not dot)


def _number(text: str) -> tuple[str, str] | None:
    """Return the number and unit in "960 GB" or "32", or None for other text."""
    number, space, unit = text.partition(" ")
    return (number, unit) if _is_number(number) and bool(unit) == bool(space) else None


def _named_number(label: str) -> tuple[str, str, str] | None:
    """Return the name, number and unit in "queue depth 32" or "over-provisioning 7 %", or None."""
    bare = label.removesuffix(" %")
    name, _, number = bare.rpartition(" ")
    if not name or not _is_number(number) or any(letter.isdecimal() for letter in name):
        return None
    return name, number, "%" if bare != label else ""


def _distinct(name: str, unit: str, texts: Sequence[str]) -> Setting | None:
    if name in _NO_SETTINGS or len(set(texts)) < max(len(texts), 2):
        return None
    return Setting(name, unit, [float(text) for text in texts])


def models_of(contenders: Sequence[Contender]) -> list[str]:
    """Return the contenders' drive models, without the capacities at the ends of their names.

    Drives with the same name belong to one model. Some drives may have lost capacity to added spare
    flash, so only the other drives still have the capacity stated in their name.
    """
    drives = [contender.first.setup.get(DRIVE) or "" for contender in contenders]
    models = [
        _without_size(drive, contender) for drive, contender in zip(drives, contenders, strict=True)
    ]
    shortest: dict[str, str] = {}
    for drive, model in zip(drives, models, strict=True):
        shortest[drive] = min(shortest.get(drive, model), model, key=len)
    return [shortest[drive] for drive in drives]


def _without_size(drive: str, contender: Contender) -> str:
    """Return a name without its final capacity ("PM863 960 GB", "pm863-960")."""
    bare = drive.removesuffix("GB").removesuffix("TB").rstrip(" ")
    start = max(bare.rfind(" "), bare.rfind("-"))
    size = _number(contender.first.setup.get("capacity") or "")
    if start < 0 or not _is_number(bare[start + 1 :]) or size is None:
        return drive
    named, real = float(bare[start + 1 :]), float(size[0])
    likely = (real, 1000 * real) if size[1] == "TB" else (real,)
    is_size = any(abs(named - number) <= _SAME_SIZE * number for number in likely)
    return drive[:start] if is_size else drive


def setting_section(comparison: Comparison) -> Section:
    """Return the headline figures plotted over the setting.

    The section is empty if the contenders differ in another way, or if no two contenders share a
    model.
    """
    setting = setting_of(comparison)
    models = models_of(comparison.contenders)
    if setting is None or len(set(models)) == len(models):
        return section("", "")
    intro = "A point for each run. The figures above have the intervals."
    if len(set(models)) > 1:
        intro += " Lines join runs of one model."
    return section(f"Figures by {setting.name}", intro, *_drawings(comparison, setting, models))


def _drawings(
    comparison: Comparison, setting: Setting, models: Sequence[str]
) -> Iterator[Drawing | None]:
    name = f"{setting.name[0].upper()}{setting.name[1:]}"
    shown = [figure for figure in comparison.figures if figure.noise != "apart"][:SETTING_FIGURES]
    x = Axis(Label(name, setting.unit))
    rows = [
        (figure.test, figure.sample.label, figure.sample.unit, model, number, value.value)
        for figure in shown
        for model, number, value in zip(models, setting.numbers, figure.values, strict=True)
        if value is not None
    ]
    column = setting.name.replace(" ", "_").replace("-", "_")
    head = ("test", "figure", "unit", "model", column, "value")
    data = data_file("by-setting.csv", head, rows)
    for count, figure in enumerate(shown, 1):
        label, unit = figure.sample.label, figure.sample.unit
        y = Axis(unit or label)  # A campaign label may be longer than the plot width.
        title = f"{label} v {setting.name}"
        series = [
            _line(model if len(set(models)) > 1 else label, figure, setting, models, model)
            for model in dict.fromkeys(models)
        ]
        yield plots.lines(f"by-setting-{count}", title, data, series, x, y)


def _line(label: str, figure: Figure, setting: Setting, models: Sequence[str], wanted: str) -> Line:
    """Return a model's points, ordered by the setting."""
    points = sorted(
        (number, value.value)
        for model, number, value in zip(models, setting.numbers, figure.values, strict=True)
        if value is not None and model == wanted
    )
    return Line(label, [at for at, _ in points], [value for _, value in points])


# -- figures relative to the first contender ---------------------------------------------------


MOST = 24  # Maximum number of figures in a picture.
_ROW_IN, _WIDTH_IN, _BOTTOM_IN, _TOP_IN = 0.30, 8.6, 0.48, 0.40
_LINEAR_TO = 2.0  # Ratio of the axis limits above which the axis is logarithmic.


def drawable(figures: Sequence[Figure], most: int | None = MOST) -> list[Figure]:
    """Return the first `most` figures (default: all) as ratios to the first contender."""
    return [
        figure
        for figure in figures
        if figure.sample.higher_is_better is not None
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
    """Draw a row per figure and a point per contender; points further right are better.

    The result is `None` if no figure can be drawn.

    Args:
        labels: Contender labels.
        figures: Figures to draw.
        names: Figure names.
        data: Figure data.
        title: Caption (default: the number of figures and the kind of intervals).
        most: Maximum number of rows.
    """
    shown = drawable(figures, most)
    if not shown:
        return None
    name_of = {id(figure): name for figure, name in zip(figures, names, strict=True)}
    figure = style.new_figure(
        width_in=_WIDTH_IN, height_in=_BOTTOM_IN + _TOP_IN + _ROW_IN * len(shown)
    )
    plot = style.add_axes(
        figure, Label(f"times as good as {labels[0]}", note="further right is better")
    )
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
    """Draw a contender, and return the end points of its bars."""
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
    """Return the ratio to a reference (above 1 if better), and the ends of the ratio's interval."""
    interval = value.interval
    low, high = (value.value,) * 2 if interval is None else (interval.low, interval.high)
    # An interval may include zero, where no ratio exists.
    low = low if low > 0 else value.value / 10
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
