"""Pages for sweeps with many cells, with tables and plots of settings and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING

import numpy as np

from writecliff import units
from writecliff.procedures.operating_points import KNEE_SHARE, Cell, knee
from writecliff.report import plots, style
from writecliff.report.axes import Axis, Line
from writecliff.report.comparison.contenders import option_text
from writecliff.report.comparison.grid_page import NOT_STEADY
from writecliff.report.csvs import Value, data_file
from writecliff.report.headline import Headline, value_text
from writecliff.report.interaction import Label
from writecliff.report.model import Figure, Section, section
from writecliff.report.style import house_style
from writecliff.report.table import DataFile, table

if TYPE_CHECKING:
    from writecliff.report.base import TestReport
    from writecliff.suite.folder import SuiteFolder

MOST_COMPARED = 8  # Maximum number of runs compared side by side; more runs are shown as rows.
MOST_FIGURES = 4  # Maximum number of figures drawn.
_DEPTH, _DEPTHS_LEAST = "queue_depth", 3
_WORDS_SHOWN = 12  # Maximum number of setting values that label an axis.


def has_cells(folder: SuiteFolder) -> bool:
    """Return `True` if the runs are shown as table cells instead of side by side."""
    several = any(len(member.settings) > 1 for member in folder.members.values())
    return folder.kind == "sweep" and (several or len(folder.members) > MOST_COMPARED)


def knee_of(folder: SuiteFolder, reports: Mapping[str, TestReport]) -> Cell | None:
    """Return the knee of a sweep that varies only the queue depth, by each run's total IOPS.

    Returns:
        The result is `None` for other sweeps and for fewer than three queue depths.
    """
    cells = []
    for name, report in reports.items():
        settings = folder.members[name].settings
        if folder.kind != "sweep" or [key.rpartition(".")[2] for key in settings] != [_DEPTH]:
            return None
        rates = [figure.value for figure in report.quoted if figure.unit == "IOPS"]
        (depth,) = settings.values()
        if not rates or not str(depth).isdecimal():
            return None
        cells.append(Cell(1, int(depth), sum(rates), nan))
    return knee(cells) if len(cells) >= _DEPTHS_LEAST else None


def knee_text(cell: Cell) -> str:
    """Return a sentence about the knee."""
    return (
        f"The knee is at queue depth {cell.queue_depth}, with {cell.iops:,.0f} IOPS: the smallest "
        f"depth that reaches {100 * KNEE_SHARE:.0f} % of the maximum"
    )


@dataclass(frozen=True)
class Column:
    """A setting or figure for all runs, with a number and a text for each run."""

    title: str
    numbers: Sequence[float]
    words: Mapping[float, str]  # Texts of setting values; empty for numbers.


def cell_sections(folder: SuiteFolder, reports: Mapping[str, TestReport]) -> Iterator[Section]:
    """Yield a table of each complete run's settings and figures, and the plots."""
    names = [name for name in reports if folder.members[name].settings]
    if not names:
        return
    headlines = {name: {figure.key: figure for figure in reports[name].quoted} for name in names}
    common = [
        figure
        for key, figure in headlines[names[0]].items()
        if all(key in headlines[name] for name in names)
    ]
    keys = list(folder.members[names[0]].settings)
    settings = {key: [folder.members[name].settings[key] for name in names] for key in keys}
    data = _data(names, settings, common, headlines)
    rows = [
        (
            name,
            *(settings[key][number] for key in keys),
            *(_cell(headlines[name][figure.key]) for figure in common),
        )
        for number, name in enumerate(names)
    ]
    head = ("Run", *map(_title, keys), *(f"{o.label} ({o.unit})" if o.unit else o.label
                                         for o in common))  # fmt: skip
    align = "w" + "r" * (len(head) - 1)
    yield section("Cells", "", table("Settings and figures", head, rows, align, data=data))
    shown = common[:MOST_FIGURES]
    columns = [setting_column(key, settings[key]) for key in keys]
    figures = [
        Column(figure.label, [headlines[name][figure.key].value for name in names], {})
        for figure in shown
    ]
    intro = (
        "A line for each run, through its settings and its figures, coloured by the first figure. "
        "It shows the settings that the best and the worst runs share."
    )
    picture = parallel_coordinates([*columns, *figures], len(columns), data)
    by = [
        part
        for headline, column in zip(shown, figures, strict=True)
        for part in _by_settings(headline, column, columns, data)
    ]
    yield section("Settings and figures", intro, picture, *by)


def _cell(figure: Headline) -> str:
    return value_text(figure.value) + ("" if figure.steady else NOT_STEADY)


def _title(key: str) -> str:
    text = option_text(key)
    shown = text if "." in text else f"{text[0].upper()}{text[1:]}"
    return shown + (" (%)" if key.endswith("_pct") else "")


def setting_column(key: str, values: Sequence[str]) -> Column:
    """Return a setting's values for all runs.

    Numbers are used unchanged, and words are numbered in order of first use.
    """
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        order = {word: float(place) for place, word in enumerate(dict.fromkeys(values))}
        return Column(_title(key), [order[value] for value in values],
                       {place: word for word, place in order.items()})  # fmt: skip
    words = dict(sorted(zip(numbers, values, strict=True)))
    return Column(_title(key), numbers, words)


def _data(
    names: Sequence[str],
    settings: Mapping[str, Sequence[str]],
    common: Sequence[Headline],
    headlines: Mapping[str, Mapping[str, Headline]],
) -> DataFile:
    rows: list[tuple[Value, ...]] = []
    for number, name in enumerate(names):
        row: list[Value] = [name, *(values[number] for values in settings.values())]
        for figure in (headlines[name][headline.key] for headline in common):
            interval = figure.interval
            ends = (None, None) if interval is None else (interval.low, interval.high)
            row += [figure.value, *ends, int(figure.steady)]
        rows.append(tuple(row))
    parts = ("", "_low", "_high", "_steady")
    figures = (f"{figure.key}{part}" for figure in common for part in parts)
    return data_file("cells.csv", ("run", *settings, *figures), rows)


@house_style()
def parallel_coordinates(columns: Sequence[Column], settings: int, data: DataFile) -> Figure:
    """Draw an axis for each column, scaled to the column's own range.

    The first `settings` columns are settings, and the next column determines the colour.
    """
    from matplotlib import colormaps

    figure = style.new_figure(width_in=2 * style.WIDTH_IN, height_in=1.25 * style.HEIGHT_IN)
    plot = figure.add_axes((0.07, 0.12, 0.86, 0.76))
    heights = np.array([scaled(column.numbers) for column in columns])
    shades = heights[settings] if settings < len(columns) else np.zeros(heights.shape[1])
    for run in np.argsort(shades, kind="stable"):
        colour = colormaps["viridis"](0.92 * float(shades[run]))
        plot.plot(range(len(columns)), heights[:, run], color=colour, linewidth=1.0, alpha=0.75)
    for place, column in enumerate(columns):
        plot.axvline(place, color=style.MUTED, linewidth=0.8)
        for height, text in axis_ticks(column):
            ground = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.0}
            plot.text(place - 0.02, height, text, ha="right", va="center", fontsize=7,
                      color=style.INK, bbox=ground)  # fmt: skip
    plot.set_xticks(range(len(columns)), [column.title for column in columns])
    plot.set_yticks([])
    plot.set_xlim(-0.35, len(columns) - 0.9)
    plot.set_ylim(-0.05, 1.05)
    plot.grid(False)
    for side in plot.spines.values():
        side.set_visible(False)
    title = "Runs by settings and figures"
    return style.finished(figure, "parallel-coordinates", title, data, wide=True)


def scaled(numbers: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return numbers scaled from 0 (minimum) to 1 (maximum), or all 0.5 if they are equal."""
    values = np.array(numbers, dtype=np.float64)
    low, width = values.min(), np.ptp(values)
    return (values - low) / width if width else np.full(len(values), 0.5)


def axis_ticks(column: Column) -> Iterator[tuple[float, str]]:
    """Yield an axis's heights and texts: all words of a setting, or the ends if there are many."""
    if 0 < len(column.words) <= _WORDS_SHOWN:
        places = list(column.words)
        yield from zip(scaled(places).tolist(), column.words.values(), strict=True)
        return
    low, high = min(column.numbers), max(column.numbers)
    ends = [(0.5, low)] if low == high else [(0.0, low), (1.0, high)]
    for height, value in ends:
        yield height, column.words.get(value) or units.significant(value, 4)


def _by_settings(
    headline: Headline, figure: Column, settings: Sequence[Column], data: DataFile
) -> Iterator[Figure | None]:
    """Yield the figure over each numeric setting, for all runs or averaged by value."""
    y = Axis(Label(headline.label, headline.unit))
    for number, setting in enumerate(settings, 1):
        if any(setting.words[value] != f"{value:g}" for value in setting.words):
            continue
        places = sorted(set(setting.numbers))
        at = np.array(setting.numbers)
        values = np.array(figure.numbers)
        means = [float(values[at == place].mean()) for place in places]
        series = [Line("mean", places, means)] if len(places) <= len(at) // 2 else [
            Line("runs", *zip(*sorted(zip(at.tolist(), values.tolist(), strict=True)), strict=True))
        ]  # fmt: skip
        name = f"cells-{headline.key.replace('_', '-')}-{number}"
        title = f"{headline.label} v {setting.title}"
        if series[0].label == "mean":
            title += ", mean of the runs"
        yield plots.lines(name, title, data, series, Axis(setting.title), y,
                          joined=series[0].label == "mean")  # fmt: skip
