"""What the figures of a drive of today say of it, as a data sheet.

Only figures that a fit may use are looked at. Reviews of client drives give the phases of a new
drive that is written from end to end; what they leave open of the phases follows from the rest.
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
_YEARS = 5  # of the warranty, that drive writes a day are of
_WHOLE = 0.9  # of the flash at one bit a cell: nothing is left to be written past the cache
# The field of a data sheet for the metric of a load, and its unit in the sheet's.
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
# The same for a drive that is filled (`_phases`).
_FILLED: Mapping[str, tuple[str, float]] = {
    "fill_volume": ("volume", 1e9),
    "fill_volume_after": ("volume_after", 1e9),
    "fill_throughput": ("mean", 1e6),
    "fill_throughput_burst": ("burst", 1e6),
    "fill_throughput_after": ("after", 1e6),
    "fill_throughput_late": ("late", 1e6),
}
_SCALED = ("slc_cache", "write_after_cache", "write_while_folding")  # with the capacity
_SHARED = (
    "sequential_read", "sequential_write", "random_read", "random_write", "read_latency",
    "write_latency",
)  # fmt: skip


@dataclass(frozen=True)
class Drive:
    """A drive: what its own figures say, and the source of each field."""

    name: str
    family: str
    sheet: DataSheet
    sources: Mapping[str, str] = field(default_factory=dict)


@lru_cache(maxsize=1)
def facts() -> Mapping[str, Mapping[str, Any]]:
    """What `modern_drives.toml` says of each family."""
    return tomllib.loads(DRIVES.read_text(encoding="utf-8"))


def capacity_bytes(device: str) -> float:
    """The capacity in the name of a drive: "pm9a3-7680"."""
    return float(device.rpartition("-")[2]) * 1e9


def usable_figures() -> list[PublishedFigure]:
    """The figures that a fit may use, and those that are stated."""
    figures = modern_figures()
    parts = parts_of_figures(figures)
    return [f for f, part in zip(figures, parts, strict=True) if part != "aside"]


def drives() -> dict[str, list[Drive]]:
    """The drives of each family with flash, as their own figures have them."""
    usable = usable_figures()
    return {
        family: [_drive(name, family, one, usable) for name in one["drives"]]
        for family, one in facts().items()
        if "cell" in one
    }


def _drive(
    name: str, family: str, one: Mapping[str, Any], figures: Iterable[PublishedFigure]
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
    plp = bool(one.get("data_centre", False))
    sheet = DataSheet(
        name=name, interface=one["interface"], capacity=capacity_bytes(name), year=one["year"],
        cell=one["cell"], power_loss_protection=plp, dram=one.get("dram"), **values,
    )  # fmt: skip
    return Drive(name, family, sheet if plp else _phases(sheet, filled), sources)


def _phases(sheet: DataSheet, filled: Mapping[str, float]) -> DataSheet:
    """The sheet with the phases of a drive that is filled: at one bit a cell, then past the cache,
    then, once no flash is free, while the cache is folded.

    A cache of V bytes takes V times the bits of its flash, so folding begins when
    capacity - (bits - 1) V are written; and the times of the phases add up to that of the mean.
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


def with_siblings(one: Drive, family: Iterable[Drive]) -> tuple[DataSheet, dict[str, str]]:
    """The sheet with what other capacities of the family say: as the next capacity has it, between
    two of them in proportion on logarithmic scales; volumes and rates of a full cache in proportion
    to the capacity. And for each such field where it is from.
    """
    sheet = one.sheet
    said: dict[str, str] = {}
    others = [other for other in family if other.name != one.name]
    for name in (*_SHARED, *_SCALED):
        have = [(log(o.sheet.capacity / one.sheet.capacity), o) for o in others]
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
        found: dict[str, Any] = {name: exp(value)}
        sheet = replace(sheet, **found)
        said[name] = f"from {' and '.join(o.name for _, o in near)}"
    return sheet, said
