"""Figures over a setting in which contenders differ by a number: active range, spare flash.

A line joins the contenders of one model, which may differ in capacity; those of different models
differ in more than the setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from writecliff.report import plots
from writecliff.report.axes import Axis, Line
from writecliff.report.comparison.contenders import Contender
from writecliff.report.comparison.figures import Figure
from writecliff.report.comparison.runs import DRIVE
from writecliff.report.csvs import data_file
from writecliff.report.interaction import Label
from writecliff.report.model import Figure as Drawing
from writecliff.report.model import Section, section

if TYPE_CHECKING:
    from writecliff.report.comparison import Comparison

MOST = 6  # figures that are drawn: those that the test is quoted by first
_SAME_SIZE = 0.02  # 15.36 TB is shown as 15.4 TB
_NO_SETTINGS = ("seed", "serial number", "description", "target", "firmware")


@dataclass(frozen=True)
class Setting:
    """What differs, and its number of each contender."""

    name: str  # "over-provisioning"
    unit: str  # "%"; empty for counts
    numbers: Sequence[float]


def setting_of(found: Comparison) -> Setting | None:
    """The one setting by which the contenders are told apart: that of their labels, as in a sweep,
    otherwise the only number in which their set-up differs. None: none, or several."""
    labels = [_named_number(label) for label in found.labels]
    known = [label for label in labels if label is not None]
    if len(known) == len(labels) and len({name for name, _, _ in known}) == 1:
        name, _, unit = known[0]
        return _distinct(name, unit, [number for _, number, _ in known])
    settings = []
    for part in found.differences:
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
    """Number and unit of "960 GB" or "32"; None for other text."""
    number, space, unit = text.partition(" ")
    return (number, unit) if _is_number(number) and bool(unit) == bool(space) else None


def _named_number(label: str) -> tuple[str, str, str] | None:
    """Name, number and unit of "queue depth 32" or "over-provisioning 7 %"; None without them."""
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
    """Return the models of contenders' drives, without capacities at the ends of their names.

    Drives of one name are of one model, also where spare flash that was added has taken capacity
    from some, so that only the others still have the capacity that the name says.
    """
    drives = [one.first.setup.get(DRIVE) or "" for one in contenders]
    models = [_without_size(drive, one) for drive, one in zip(drives, contenders, strict=True)]
    shortest: dict[str, str] = {}
    for drive, model in zip(drives, models, strict=True):
        shortest[drive] = min(shortest.get(drive, model), model, key=len)
    return [shortest[drive] for drive in drives]


def _without_size(drive: str, one: Contender) -> str:
    """A name without the capacity at its end, as of "PM863 960 GB" and "pm863-960"."""
    bare = drive.removesuffix("GB").removesuffix("TB").rstrip(" ")
    start = max(bare.rfind(" "), bare.rfind("-"))
    size = _number(one.first.setup.get("capacity") or "")
    if start < 0 or not _is_number(bare[start + 1 :]) or size is None:
        return drive
    named, real = float(bare[start + 1 :]), float(size[0])
    likely = (real, 1000 * real) if size[1] == "TB" else (real,)
    is_size = any(abs(named - number) <= _SAME_SIZE * number for number in likely)
    return drive[:start] if is_size else drive


def setting_section(found: Comparison) -> Section:
    """The headline figures over the setting; empty if the contenders differ in another way, or no
    two of them are of one model."""
    setting = setting_of(found)
    models = models_of(found.contenders)
    if setting is None or len(set(models)) == len(models):
        return section("", "")
    intro = "A point for each run, from the figures above; their intervals are there."
    if len(set(models)) > 1:
        intro += " Lines join runs of one model."
    return section(f"Figures by {setting.name}", intro, *_drawings(found, setting, models))


def _drawings(
    found: Comparison, setting: Setting, models: Sequence[str]
) -> Iterator[Drawing | None]:
    name = f"{setting.name[0].upper()}{setting.name[1:]}"
    shown = [figure for figure in found.figures if figure.noise != "apart"][:MOST]
    x = Axis(Label(name, setting.unit))
    rows = [
        (figure.test, figure.one.label, figure.one.unit, model, number, value.value)
        for figure in shown
        for model, number, value in zip(models, setting.numbers, figure.values, strict=True)
        if value is not None
    ]
    column = setting.name.replace(" ", "_").replace("-", "_")
    head = ("test", "figure", "unit", "model", column, "value")
    data = data_file("by-setting.csv", head, rows)
    for count, figure in enumerate(shown, 1):
        label, unit = figure.one.label, figure.one.unit
        y = Axis(unit or label)  # a label of a campaign is longer than the plot is wide
        title = f"{label} v {setting.name}"
        series = [
            _line(model if len(set(models)) > 1 else label, figure, setting, models, model)
            for model in dict.fromkeys(models)
        ]
        yield plots.lines(f"by-setting-{count}", title, data, series, x, y)


def _line(label: str, figure: Figure, setting: Setting, models: Sequence[str], wanted: str) -> Line:
    """The points of one model, in order of the setting."""
    points = sorted(
        (number, value.value)
        for model, number, value in zip(models, setting.numbers, figure.values, strict=True)
        if value is not None and model == wanted
    )
    return Line(label, [at for at, _ in points], [value for _, value in points])
