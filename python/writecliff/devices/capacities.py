"""Capacities that a family does not list, which are derived on request: `sim:pm9a3-1920`.

A family file ends with the drives' data sheets (`[sheets]`) and the typical rates of large drives
in the class (`[usual]`). The rules below derive the data sheet for another capacity, and
`derive.py` converts that data sheet to a device file. Therefore, dies, channels, buffer and
over-provisioning scale with the capacity, as do the rates that they limit:

* Sequential rates are limited by the dies or the controller, so these rates are proportional to the
  capacity, up to the rate of the next larger drive.
* Random I/Os use the dies and then the controller, so the time per I/O is the sum of a constant and
  a term that is inversely proportional to the capacity. Two known capacities determine both terms.
* Below the smallest known capacity, the controller equals the smallest drive's, and the dies are
  typical of the year. Above the largest known capacity, rates increase up to the typical rates in
  the class.
* The SLC cache size, the rates when the cache is full, and the rated writes are proportional to the
  capacity. Latencies equal those at the nearest known capacity.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log
from pathlib import Path
from typing import Any

from writecliff.devices.derive import Value, derived, text_of, time_text
from writecliff.devices.families import description_of, tables_of, variants
from writecliff.devices.sheet import ANSWERS, DataSheet, sheet_of
from writecliff.errors import ConfigError

_GIGABYTES = re.compile(r"[1-9]\d{0,6}")
_REACH = 16  # Maximum ratio, in either direction, to the nearest known capacity.
_IN_ORDER = ("sequential_read", "sequential_write")
_RANDOM = ("random_read", "random_write")
_LATENCIES = ("read_latency", "write_latency")
_PROPORTIONAL = ("slc_cache", "write_after_cache", "write_while_folding", "tbw")


@dataclass(frozen=True)
class FamilySheets:
    """Data sheets for a model's capacities, smallest first.

    Attributes:
        description: Description of the drives, for lists.
        published: Published figures of each drive.
        completed: Published figures, completed with values from other families for fields that no
            drive in the family states.
        usual: Typical rates of large drives in the class.
    """

    description: str
    published: tuple[DataSheet, ...]
    completed: tuple[DataSheet, ...]
    usual: Mapping[str, float]


@dataclass(frozen=True)
class Scaled:
    """A field in a derived data sheet, where `is_flash` marks values that affect the flash."""

    value: float
    reason: str
    is_flash: bool


def family_and_capacity(name: str) -> tuple[Path, float] | None:
    """Return the family file and the capacity in bytes of a drive to derive on request.

    Return `None` if the catalogue lists the drive, or has no family that has this name and data
    sheets.
    """
    model, _, gigabytes = name.rpartition("-")
    if not _GIGABYTES.fullmatch(gigabytes) or name in variants() or model not in _models():
        return None
    return _models()[model], float(gigabytes) * 1e9


def derived_text(name: str) -> str | None:
    """Return the device file for a drive such as "pm9a3-1920", or `None` for an unknown family.

    Raises:
        ConfigError: If the capacity is too far from the family's capacities.
    """
    named = family_and_capacity(name)
    if named is None:
        return None
    path, capacity = named
    sheets = family_sheets(path, model_of(name))
    capacities = [sheet.capacity for sheet in sheets.published]
    low, high = min(capacities) / _REACH, max(capacities) * _REACH
    if not low <= capacity <= high:
        names = ", ".join(sheet.name for sheet in sheets.published)
        raise ConfigError(
            f"the capacity of {name} is too far from the known capacities ({names})",
            hint=f"choose a capacity from {low / 1e9:,.0f} to {high / 1e9:,.0f} GB",
        )
    return text_of_capacity(name, capacity, sheets)


def family_of(name: str) -> str | None:
    """Return the family of a drive that is listed or can be derived, or `None`."""
    if name in variants():
        return variants()[name].family.stem
    named = family_and_capacity(name)
    return None if named is None else named[0].stem


def model_of(name: str) -> str:
    """Return a drive's name without its capacity: "pm9a3" for "pm9a3-960"."""
    return name.rpartition("-")[0]


@lru_cache(maxsize=1)
def _models() -> Mapping[str, Path]:
    """Return the family file of each model that has data sheets."""
    listed: dict[Path, list[str]] = {}
    for variant in variants().values():
        listed.setdefault(variant.family, []).append(variant.name)
    return {
        model_of(name): path
        for path, names in listed.items()
        for sheets in (tables_of(path).get("sheets", {}),)
        for name in names
        if name in sheets
    }


@lru_cache(maxsize=64)
def family_sheets(path: Path, model: str) -> FamilySheets:
    """Return a model's data sheets, read from the family file."""
    tables = tables_of(path)
    listed = tables["sheets"]
    facts = {name: value for name, value in listed.items() if not isinstance(value, dict)}
    published, completed = [], []
    for name, answers in listed.items():
        if name in facts or model_of(name) != model:
            continue
        figures = facts | {"capacity": f"{name.rpartition('-')[2]} GB"} | answers
        others = figures.pop("others", {})
        published.append(replace(_sheet(figures), name=name))
        completed.append(replace(_sheet(figures | others), name=name))
    largest = max(published, key=lambda sheet: sheet.capacity)
    usual = _sheet(facts | {"capacity": f"{largest.capacity:.0f} B"} | tables.get("usual", {}))
    rates = {name: getattr(usual, name) for name in (*_IN_ORDER, *_RANDOM)}
    return FamilySheets(
        description_of(path),
        tuple(sorted(published, key=lambda sheet: sheet.capacity)),
        tuple(sorted(completed, key=lambda sheet: sheet.capacity)),
        {name: value for name, value in rates.items() if value is not None},
    )


def all_sheets() -> list[FamilySheets]:
    """Return the data sheets of all models that have any."""
    return [family_sheets(path, model) for model, path in sorted(_models().items())]


def _sheet(answers: Mapping[str, Any]) -> DataSheet:
    texts = {key: json.dumps(v) if isinstance(v, bool) else str(v) for key, v in answers.items()}
    return sheet_of(texts)


def scaled_sheet(
    name: str, capacity: float, sheets: FamilySheets
) -> tuple[DataSheet, Mapping[str, Scaled]]:
    """Return the data sheet for another capacity in a family, and the source of each field."""
    near = min(sheets.published, key=lambda sheet: abs(log(sheet.capacity / capacity)))
    fields: dict[str, Scaled] = {}
    for field in (*_IN_ORDER, *_RANDOM, *_LATENCIES, *_PROPORTIONAL):
        points = _published_points(field, sheets.published)
        is_published = bool(points)
        points = points or _published_points(field, sheets.completed)
        usual = sheets.usual.get(field)
        if points:
            scaled = _scaled(field, capacity, points, usual)
            fields[field] = replace(scaled, is_flash=scaled.is_flash and is_published)
        elif usual is not None:
            fields[field] = Scaled(usual, "usual rates of the class", False)
    blank: dict[str, Any] = dict.fromkeys(
        (*_IN_ORDER, *_RANDOM, *_LATENCIES, *_PROPORTIONAL, "form_factor")
    )
    values = {field: scaled.value for field, scaled in fields.items()}
    return replace(near, **blank | values, name=name, capacity=capacity), fields


@dataclass(frozen=True)
class _Point:
    """A value from a drive's data sheet."""

    drive: str
    capacity: float
    value: float


def _published_points(field: str, sheets: Iterable[DataSheet]) -> list[_Point]:
    return [
        _Point(sheet.name, sheet.capacity, value)
        for sheet in sheets
        if (value := getattr(sheet, field)) is not None
    ]


def _scaled(field: str, capacity: float, points: list[_Point], usual: float | None) -> Scaled:
    """Return a field at `capacity`, given its `known` values in order of capacity."""
    below = next((k for k in reversed(points) if k.capacity <= capacity), None)
    above = next((k for k in points if k.capacity > capacity), None)
    near = min(points, key=lambda k: abs(log(k.capacity / capacity)))
    if field in _LATENCIES:
        return Scaled(near.value, f"as of {near.drive}", True)
    if field in _PROPORTIONAL:
        value = near.value * capacity / near.capacity
        return Scaled(value, f"in proportion to the capacity of {near.drive}", True)
    if below is None:
        assert above is not None
        return Scaled(above.value, f"at most those of {above.drive}; its dies limit it", False)
    if above is None:
        most = max(usual or 0.0, below.value)
        before = [k for k in points if k.capacity < below.capacity]
        if before and before[-1].value * 1.05 >= below.value:
            most = below.value  # The controller already limits the largest drive.
        above = _Point("usual rates of the class", float("inf"), most)
    reason = f"interpolated between {below.drive} and {above.drive}"
    if field in _IN_ORDER:
        value = min(above.value, below.value * capacity / below.capacity)
        return Scaled(max(value, min(below.value, above.value)), reason, True)
    return Scaled(_in_series(capacity, below, above), reason, True)


def _in_series(capacity: float, below: _Point, above: _Point) -> float:
    """Return a rate, assuming that the time per I/O is linear in 1 / capacity."""
    if below.value >= above.value:
        return above.value
    growth = 1 / below.value - 1 / above.value
    # The unit of `dies` is time x capacity.
    dies = growth / (1 / below.capacity - 1 / above.capacity)
    controller = 1 / above.value - dies / above.capacity
    if controller < 0:  # The value grows faster than the capacity.
        share = log(capacity / below.capacity) / log(above.capacity / below.capacity)
        return float(below.value * (above.value / below.value) ** share)
    return 1 / (dies / capacity + controller)


def text_of_capacity(name: str, capacity: float, sheets: FamilySheets) -> str:
    """Return the device file for another capacity of a model."""
    sheet, fields = scaled_sheet(name, capacity, sheets)
    limits = {field: scaled.reason for field, scaled in fields.items() if not scaled.is_flash}
    about = json.dumps(sheets.description, ensure_ascii=False)
    values = []
    for value in derived(sheet, limits):
        text = about if value.key == "description" else value.value
        reason = value.reason.replace("the sheet", "the family")
        values.append(Value(value.key, text, reason.replace("yours", "the drive and its capacity")))
    if sheet.has_cache:
        values.append(Value("slc_cache.dynamic", "true", "uses free flash, as its family"))
    drives = ", ".join(sheet.name for sheet in sheets.published)
    head = [
        f"{name}: derived by rule from {drives} (`devices/capacities.py`).",
        "Figures of other capacities:",
        *(
            f"* {field.replace('_', ' ')} {_quantity(field, scaled.value)}: {scaled.reason}"
            for field, scaled in fields.items()
        ),
    ]
    return text_of(values, head)


def _quantity(field: str, value: float) -> str:
    """Return a data sheet value with its unit."""
    unit = next(answer.metadata["unit"] for answer in ANSWERS if answer.name == field)
    match unit:
        case "rate":
            return f"{value / 1e6:,.0f} MB/s"
        case "time":
            return time_text(value)
        case "size":
            return f"{value / 1e9:,.0f} GB"
    return f"{value:,.0f} per second"
