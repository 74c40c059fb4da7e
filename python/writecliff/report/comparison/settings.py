"""Figures over a setting in which contenders differ by a number: active range, spare flash."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from writecliff.report import plots
from writecliff.report.axes import Axis, Line
from writecliff.report.comparison.figures import Figure
from writecliff.report.csvs import data_file
from writecliff.report.model import Figure as Drawing
from writecliff.report.model import Section, section

if TYPE_CHECKING:
    from writecliff.report.comparison import Comparison

MOST = 6  # figures that are drawn: those that the test is quoted by first
_LABEL = re.compile(r"(?P<name>\D+?) (?P<number>\d+(?:\.\d+)?)(?P<unit> %)?")
_NUMBER = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?: (?P<unit>\S+))?")
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
    labels = [_LABEL.fullmatch(label) for label in found.labels]
    known = [label for label in labels if label is not None]
    if len(known) == len(labels) and len({label["name"] for label in known}) == 1:
        unit = (known[0]["unit"] or "").strip()
        return _distinct(known[0]["name"], unit, [label["number"] for label in known])
    settings = []
    for part in found.differences:
        values = [_NUMBER.fullmatch(value or "") for value in part.values]
        numbers = [value for value in values if value is not None]
        same_unit = len({value["unit"] for value in numbers}) == 1
        if part.what not in _NO_SETTINGS and len(numbers) == len(values) and same_unit:
            name = part.what.removesuffix(" pct")
            unit = "%" if name != part.what else numbers[0]["unit"] or ""
            settings.append(_distinct(name, unit, [value["number"] for value in numbers]))
    return settings[0] if len(settings) == 1 else None


def _distinct(name: str, unit: str, texts: Sequence[str]) -> Setting | None:
    if name in _NO_SETTINGS or len(set(texts)) < max(len(texts), 2):
        return None
    return Setting(name, unit, [float(text) for text in texts])


def setting_section(found: Comparison) -> Section:
    """The headline figures over the setting; empty if the contenders differ in another way."""
    setting = setting_of(found)
    if setting is None:
        return section("", "")
    name = f"{setting.name[0].upper()}{setting.name[1:]}"
    intro = "A point for each run, from the figures above; their intervals are there."
    return section(f"Figures by {setting.name}", intro, *_drawings(found.figures, setting, name))


def _drawings(figures: Sequence[Figure], setting: Setting, name: str) -> Iterator[Drawing | None]:
    shown = [figure for figure in figures if figure.noise != "apart"][:MOST]
    x = Axis(f"{name} ({setting.unit})" if setting.unit else name)
    rows = [
        (figure.test, figure.one.label, figure.one.unit, number, value.value)
        for figure in shown
        for number, value in zip(setting.numbers, figure.values, strict=True)
        if value is not None
    ]
    head = ("test", "figure", "unit", setting.name.replace(" ", "_").replace("-", "_"), "value")
    data = data_file("by-setting.csv", head, rows)
    for count, figure in enumerate(shown, 1):
        points = sorted(
            (number, value.value)
            for number, value in zip(setting.numbers, figure.values, strict=True)
            if value is not None
        )
        label, unit = figure.one.label, figure.one.unit
        y = Axis(unit or label)  # a label of a campaign is longer than the plot is wide
        title = f"{label} v {setting.name}"
        line = Line(label, [at for at, _ in points], [value for _, value in points])
        yield plots.lines(f"by-setting-{count}", title, data, [line], x, y)
