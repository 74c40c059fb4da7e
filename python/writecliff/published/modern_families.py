"""Families of drives of today as device files, from the figures that a fit may use.

    .venv/bin/python -m writecliff.published.modern_families

Every family is derived by rule (`devices.derive`) from the part "fit" of `modern.csv` and from what
`modern_drives.toml` says of it; figures that are kept aside are not looked at. What the figures
leave open is usual for the year. A test holds the files to this rule, so none is tuned by hand.
"""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from writecliff.devices.derive import Value, derived, text_of
from writecliff.devices.families import FOLDER
from writecliff.devices.generations import BITS
from writecliff.devices.sheet import DataSheet
from writecliff.published.figures import PublishedFigure
from writecliff.published.modern import modern_figures, modern_sources, parts_of_figures

DRIVES = Path(__file__).parent / "modern_drives.toml"
_YEARS = 5  # of the warranty, that drive writes a day are of
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
    ("fill_throughput_after", "sequential", 0.0): ("write_after_cache", 1e6),
    ("fill_volume", "sequential", 0.0): ("slc_cache", 1e9),
}
Known = dict[str, tuple[float, str]]  # by field: value and source


def families() -> dict[str, str]:
    """The text of each family's file."""
    facts = tomllib.loads(DRIVES.read_text(encoding="utf-8"))
    figures = modern_figures()
    parts = parts_of_figures(figures)
    usable = [f for f, part in zip(figures, parts, strict=True) if part != "aside"]
    return {name: _text(name, about, usable) for name, about in facts.items()}


def capacity_bytes(device: str) -> float:
    """The capacity in the name of a drive: "pm9a3-7680"."""
    return float(device.rpartition("-")[2]) * 1e9


def _known(device: str, figures: Iterable[PublishedFigure]) -> Known:
    found: Known = {}
    for f in figures:
        if f.device != device:
            continue
        field = _FIELDS.get((f.metric, f.access, f.read_pct))
        if field:
            found.setdefault(field[0], (f.value * field[1], f.source))
        elif f.metric == "tbw":
            found["tbw"] = (f.value * 1e12, f.source)
        elif f.metric == "dwpd":
            total = f.value * 365 * _YEARS * capacity_bytes(device)
            found.setdefault("tbw", (total, f.source))
    return found


def _text(name: str, facts: Mapping[str, Any], figures: Sequence[PublishedFigure]) -> str:
    drives: list[str] = facts["drives"]
    base = drives[0]
    known = _known(base, figures)
    for other in drives[1:]:
        for field, value in _known(other, figures).items():
            if field not in ("tbw", "slc_cache"):
                known.setdefault(field, value)
    values = _values(base, facts, known)
    cited = sorted({source for _, source in known.values()})
    sources = modern_sources()
    about = (
        f"{facts['about']}. Derived by rule from the figures of {', '.join(drives)} that are not "
        "kept aside, see `published/modern_families.py`. Sources:"
    )
    titles = (f"* {key}: {sources[key].title}" for key in cited)
    text = text_of(values, [line for part in (about, *titles) for line in _wrapped(part)])
    return text + "\n" + _variants(drives, facts, figures, values)


def _values(base: str, facts: Mapping[str, Any], known: Known) -> list[Value]:
    numbers: dict[str, Any] = {field: value for field, (value, _) in known.items()}
    client = not facts.get("data_centre", False)
    sheet = DataSheet(
        name=base,
        interface=facts["interface"],
        capacity=capacity_bytes(base),
        year=facts["year"],
        cell=facts["cell"],
        power_loss_protection=not client,
        dram=facts.get("dram"),
        **numbers,
    )
    bits, whole, folded = BITS[facts["cell"]], sheet.capacity, 1.0
    if client:
        size = min(sheet.slc_cache or whole / bits, whole / bits)
        folded = 1.0 if size * bits < 0.9 * whole else bits / (bits - 1)
        after = sheet.write_after_cache
        sheet = replace(sheet, slc_cache=size, write_after_cache=after and after * folded)
    found = []
    for one in derived(sheet):
        reason = one.reason.replace("the sheet gives", "the figures give")
        reason = reason.replace("the sheet", "the figures")
        reason = reason.replace("yours", "the drive and its capacity")
        if one.key == "flash.program" and folded > 1 and sheet.write_after_cache:
            reason += f", of which the host has {1 / folded:.0%} and folding the rest"
        value = f'"{facts["about"]}"' if one.key == "description" else one.value
        if one.key == "slc_cache.size" and "slc_cache" not in known:
            reason = f"no figure: all flash that is free, at one bit of {bits}"
        found.append(Value(one.key, value, reason))
    if client:
        found.append(Value("slc_cache.dynamic", "true", "uses free flash, as clients of the year"))
    return found


def _variants(
    drives: Sequence[str],
    facts: Mapping[str, Any],
    figures: Sequence[PublishedFigure],
    values: Sequence[Value],
) -> str:
    by_key = {one.key: one.value for one in values}
    dies = int(by_key["flash.channels"]) * int(by_key["flash.dies_per_channel"])
    lines = ["[variants]"]
    for drive in drives:
        share = capacity_bytes(drive) / capacity_bytes(drives[0])
        lines += [
            "",
            f"[variants.{drive}]",
            f'user_capacity = "{capacity_bytes(drive) / 1e9:g} GB"',
        ]
        if drive == drives[0]:
            continue
        own = max(1, round(dies * share))
        count = min((n for n in (1 << k for k in range(12))), key=lambda n: abs(n - own))
        if count != dies:
            lines.append(f"dies = {count}  # as many as the capacity asks for")
        known = _known(drive, figures)
        if "slc_cache.size" in by_key:
            size, why = known.get("slc_cache", (0.0, ""))
            if not size:
                size = float(by_key["slc_cache.size"].strip('"').split()[0]) * 1e9 * share
            why = why or "as much of the capacity as the family"
            lines.append(f'"slc_cache.size" = "{size / 1e9:.4g} GB"  # {why}')
        if "tbw" in known and "rated_writes" in by_key:
            total, why = known["tbw"]
            lines.append(f'rated_writes = "{total / 1e12:g} TB"  # {why}')
    return "\n".join(lines) + "\n"


def _wrapped(line: str, width: int = 96) -> list[str]:
    return textwrap.wrap(line, width, subsequent_indent="  " if line.startswith("*") else "")


def main() -> None:
    """Write the files of all families."""
    for name, text in families().items():
        (FOLDER / f"{name}.toml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
