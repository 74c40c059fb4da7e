"""Typical values of current drives, for figures that a drive's sources do not state.

A missing figure is predicted from the median of a physically meaningful ratio over the other
families in its class (data-centre drives, client drives with DRAM, client drives without DRAM).
Only figures that a fit may use are considered, never the family's own figures. A held-out figure
therefore influences neither its own drive nor the typical values. If a class has no other family,
the families of all classes are considered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from writecliff.devices.derive import drive_amplification, flash_rate
from writecliff.devices.generations import LINKS, SLOT
from writecliff.devices.sheet import DataSheet

Ratio = Callable[[DataSheet], float | None]


def _over(value: float | None, other: float | None) -> float | None:
    return value / other if value and other else None


def _of_link(sheet: DataSheet) -> float | None:
    return _over(sheet.sequential_read, LINKS[sheet.interface].most_mb_s * 1e6)


def _of_reads(sheet: DataSheet) -> float | None:
    return _over(sheet.sequential_write, sheet.sequential_read)


def _small_reads(sheet: DataSheet) -> float | None:
    return _over((sheet.random_read or 0) * SLOT, sheet.sequential_read)


def _small_writes(sheet: DataSheet) -> float | None:
    """Return the ratio that predicts a drive's random write rate.

    For data-centre drives, this is random writes times write amplification over sequential writes;
    for client drives, it is random writes over random reads.
    """
    if not sheet.enterprise:
        return _over(sheet.random_write, sheet.random_read)
    moved = (sheet.random_write or 0) * SLOT * drive_amplification(sheet)
    return _over(moved, sheet.sequential_write)


def _latency(sheet: DataSheet) -> float | None:
    return sheet.write_latency


def _folding(sheet: DataSheet) -> float | None:
    return _over(sheet.write_while_folding, flash_rate(sheet))


@dataclass(frozen=True)
class Rule:
    """A data sheet field that is predicted as a ratio.

    `ratio` computes the ratio from a sheet, `base` computes the denominator, and `phrase` describes
    the ratio.
    """

    ratio: Ratio
    base: Ratio
    phrase: str


# The order of the rules matters, because later rules use the results of earlier rules.
RULES: Mapping[str, Rule] = {
    "sequential_read": Rule(
        _of_link, lambda s: LINKS[s.interface].most_mb_s * 1e6, "of what the interface carries"
    ),
    "sequential_write": Rule(_of_reads, lambda s: s.sequential_read, "of the sequential reads"),
    "random_read": Rule(
        _small_reads,
        lambda s: (s.sequential_read or 0) / SLOT,
        "of the sequential reads in blocks of 4 KiB",
    ),
    "random_write": Rule(
        _small_writes,
        lambda s: (s.sequential_write or 0) / SLOT / drive_amplification(s)
        if s.enterprise else s.random_read,
        "of the sequential writes, amplified, in steady state; of the random reads on a client",
    ),
    "write_latency": Rule(_latency, lambda s: 1.0, "like other families"),
    "write_while_folding": Rule(_folding, flash_rate, "of what the dies program"),
}  # fmt: skip
_ENTERPRISE, _CACHED = ("write_latency",), ("write_while_folding",)


def class_of(sheet: DataSheet) -> str:
    """Return the class of families with which a drive is compared."""
    if sheet.enterprise:
        return "data-centre drives"
    return "client drives without DRAM" if sheet.dram is False else "client drives with DRAM"


def _writes_class_of(sheet: DataSheet) -> str:
    """Return the class for sequential writes.

    A faster link speeds up reads, but not writes. Data-centre drives whose reads need PCIe 5.0 are
    therefore a separate class.
    """
    name = class_of(sheet)
    fast = (sheet.sequential_read or 0) > LINKS["pcie4"].most_mb_s * 1e6
    return f"{name} on {LINKS['pcie5'].name}" if sheet.enterprise and fast else name


def usual_ratio(
    field: str, family: str, sheets: Mapping[str, Iterable[DataSheet]], of: str
) -> float | None:
    """Return a field's median ratio over the families in the class `of`, omitting `family`.

    If the class has no other family, all other families are considered. Each family counts once,
    with the median over its drives. The result is `None` if no ratio is known.
    """
    in_class: dict[str, float] = {}
    in_all: dict[str, float] = {}
    for name, members in sheets.items():
        ratios = [r for sheet in members if (r := RULES[field].ratio(sheet))]
        if name == family or not ratios:
            continue
        in_all[name] = median(ratios)
        classes = {name_of(sheet) for sheet in members for name_of in (class_of, _writes_class_of)}
        if of in classes:
            in_class[name] = in_all[name]
    values = list((in_class or in_all).values())
    return median(values) if values else None


def with_usual(
    family: str, sheet: DataSheet, sheets: Mapping[str, Iterable[DataSheet]]
) -> tuple[DataSheet, dict[str, str]]:
    """Complete a data sheet with typical values; also return the origin of each added field."""
    added: dict[str, str] = {}
    for field, rule in RULES.items():
        if getattr(sheet, field) is not None:
            continue
        if field in _ENTERPRISE and not sheet.enterprise:
            continue
        if field in _CACHED and not sheet.has_cache:
            continue
        of = _writes_class_of(sheet) if field == "sequential_write" else class_of(sheet)
        ratio, base = usual_ratio(field, family, sheets, of), rule.base(sheet)
        if ratio is None or not base:
            continue
        estimate: dict[str, Any] = {field: ratio * base}
        sheet = replace(sheet, **estimate)
        share = rule.phrase if base == 1.0 else f"{ratio:.0%} {rule.phrase}"
        added[field] = f"usual for {of}, {share}"
    return sheet, added
