"""Data sheets of current drives, derived from their published figures.

Only figures that a fit may use are considered. Reviews of client drives measure the phases of a
sequential fill of a new drive. Phases that a review does not state are computed from the other
phases.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import exp, log
from pathlib import Path
from typing import Any

from writecliff.devices.generations import BITS
from writecliff.devices.sheet import DataSheet
from writecliff.published.figures import PublishedFigure
from writecliff.published.modern import modern_figures, parts_of_figures

DRIVES = Path(__file__).parent / "modern_drives.toml"
_YEARS = 5  # Warranty period in years, which drive writes per day refer to.
_WHOLE = 0.9  # Fraction of the flash in SLC mode above which no data are written past the cache.
# Data sheet field and unit factor by metric, access pattern and read percentage.
_FIELDS: Mapping[tuple[str, str, float | None], tuple[str, float]] = {
    ("throughput", "sequential", 100.0): ("sequential_read", 1e6),
    ("throughput", "sequential", 0.0): ("sequential_write", 1e6),
    ("throughput_burst", "sequential", 0.0): ("sequential_write", 1e6),
    ("iops", "random", 100.0): ("random_read", 1.0),
    ("iops", "random", 0.0): ("random_write", 1.0),
    ("iops_burst", "random", 0.0): ("random_write", 1.0),
    ("latency_avg", "random", 100.0): ("read_latency", 1e6),
    ("latency_avg", "random", 0.0): ("write_latency", 1e6),
}
# Quantities from a sequential fill (`_phases`), with their unit factors.
_FILLED: Mapping[str, tuple[str, float]] = {
    "fill_volume": ("volume", 1e9),
    "fill_volume_after": ("volume_after", 1e9),
    "fill_throughput": ("mean", 1e6),
    "fill_throughput_burst": ("burst", 1e6),
    "fill_throughput_after": ("after", 1e6),
    "fill_throughput_late": ("late", 1e6),
}
# Quantities proportional to the capacity.
_SCALED = ("slc_cache", "write_after_cache", "write_while_folding")
_SHARED = (
    "sequential_read", "sequential_write", "random_read", "random_write", "read_latency",
    "write_latency",
)  # fmt: skip


@dataclass(frozen=True)
class Drive:
    """A drive, with the data sheet from its own figures and the source of each field."""

    name: str
    family: str
    sheet: DataSheet
    sources: Mapping[str, str] = field(default_factory=dict)


@lru_cache(maxsize=1)
def facts() -> Mapping[str, Mapping[str, Any]]:
    """Return the contents of `modern_drives.toml` by family."""
    return tomllib.loads(DRIVES.read_text(encoding="utf-8"))


def capacity_bytes(device: str) -> float:
    """Return the capacity in a drive's name in bytes, such as 7.68e12 for "pm9a3-7680"."""
    return float(device.rpartition("-")[2]) * 1e9


def usable_figures() -> list[PublishedFigure]:
    """Return the figures that a fit may use, and the figures stated without a load."""
    figures = modern_figures()
    parts = parts_of_figures(figures)
    return [f for f, part in zip(figures, parts, strict=True) if part != "aside"]


def drives() -> dict[str, list[Drive]]:
    """Return each family's drives with flash, with data sheets from their own figures."""
    usable = usable_figures()
    return {
        family: [_drive(name, family, fact, usable) for name in fact["drives"]]
        for family, fact in facts().items()
        if "cell" in fact
    }


def _drive(
    name: str, family: str, fact: Mapping[str, Any], figures: Iterable[PublishedFigure]
) -> Drive:
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    filled: dict[str, float] = {}
    for f in figures:
        if f.device != name:
            continue
        key, unit = _FIELDS.get((f.metric, f.access, f.read_pct), ("", 0.0))
        if f.metric in _FILLED:
            phase, unit = _FILLED[f.metric]
            filled.setdefault(phase, f.value * unit)
            sources.setdefault(phase, f.source)
        elif f.metric == "tbw":
            values["tbw"], sources["tbw"] = f.value * 1e12, f.source
        elif f.metric == "dwpd" and "tbw" not in values:
            values["tbw"] = f.value * 365 * _YEARS * capacity_bytes(name)
            sources["tbw"] = f.source
        elif key and key not in values:
            values[key], sources[key] = f.value * unit, f.source
    plp = bool(fact.get("data_centre", False))
    sheet = DataSheet(
        name=name, interface=fact["interface"], capacity=capacity_bytes(name), year=fact["year"],
        cell=fact["cell"], power_loss_protection=plp, dram=fact.get("dram"), **values,
    )  # fmt: skip
    return Drive(name, family, sheet if plp else _phases(sheet, filled), sources)


def _phases(sheet: DataSheet, filled: Mapping[str, float]) -> DataSheet:
    """Return the sheet, completed with the phases of a sequential fill of the drive.

    In the first phase, writes are stored in flash in SLC mode. In the second phase, they bypass the
    cache. In the third phase, no flash is free, so the cache is folded during the writes. A cache
    of V bytes occupies flash with a capacity of V times the bits per cell, so folding starts after
    capacity - (bits - 1) V bytes have been written. The times of the phases add up to the total
    time, which is known from the mean rate.
    """
    whole, bits = sheet.capacity, BITS[sheet.cell or "tlc"]
    volume, after, late = filled.get("volume"), filled.get("after"), filled.get("late")
    mean, burst = filled.get("mean"), filled.get("burst") or sheet.sequential_write
    if volume is None and "volume_after" in filled:
        volume = (whole - filled["volume_after"]) / (bits - 1)
    if volume is None and mean and after and burst and mean < burst and not late:
        volume = (whole / after - whole / mean) / (1 / after - 1 / burst)
    size = min(volume or whole / bits, whole / bits)
    all_flash = size * bits >= _WHOLE * whole and late is None
    if after is None and all_flash and mean and burst and volume:
        after = (whole - volume) / (whole / mean - volume / burst)
    return replace(
        sheet,
        slc_cache=size if volume else None,
        write_after_cache=None if all_flash else after,
        write_while_folding=after if all_flash else late,
    )


def with_siblings(drive: Drive, family: Iterable[Drive]) -> tuple[DataSheet, dict[str, str]]:
    """Complete a data sheet with values from other capacities of the family.

    A value comes from the nearest capacity or, between two capacities, is interpolated on
    logarithmic scales. Cache sizes and rates after the cache are proportional to the capacity.

    Returns:
        A completed data sheet, with the origin of each added field.
    """
    sheet = drive.sheet
    origins: dict[str, str] = {}
    others = [other for other in family if other.name != drive.name]
    for name in (*_SHARED, *_SCALED):
        have = [(log(o.sheet.capacity / drive.sheet.capacity), o) for o in others]
        have = [(far, o) for far, o in have if getattr(o.sheet, name) is not None]
        if getattr(sheet, name) is not None or not have:
            continue
        below = max((h for h in have if h[0] < 0), default=None, key=lambda h: h[0])
        above = min((h for h in have if h[0] > 0), default=None, key=lambda h: h[0])
        near = [h for h in (below, above) if h]
        logs = [log(getattr(o.sheet, name)) for _, o in near]
        if name in _SCALED:
            logs = [value - far for value, (far, _) in zip(logs, near, strict=True)]
        value = logs[0]
        if len(near) == 2:
            value += (logs[1] - logs[0]) * -near[0][0] / (near[1][0] - near[0][0])
        estimate: dict[str, Any] = {name: exp(value)}
        sheet = replace(sheet, **estimate)
        origins[name] = f"from {' and '.join(o.name for _, o in near)}"
    return sheet, origins
