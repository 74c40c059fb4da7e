"""Current drive families as device files, derived from the figures that a fit may use.

    .venv/bin/python -m writecliff.lab.published.modern_families

Every drive is derived by rule (`devices.derive`) from the figures marked "fit" in `modern.csv`
(`modern_sheets`). Missing figures are taken from other capacities in the family or, failing that,
from typical values of other families (`modern_usual`). Held-out figures are not used. A test
compares the files with this rule, so that no file is tuned by hand.

Drives with more than 16 TiB of flash were added later. Drives with more than 16 TiB of flash are
built for capacity and write more slowly, so they do not affect the typical values of other
families.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from writecliff.devices.derive import Value, derived, quoted_time, text_of
from writecliff.devices.families import FOLDER
from writecliff.devices.generations import BITS, KIB, LINKS, SLOT, US
from writecliff.devices.sheet import ANSWERS, DataSheet
from writecliff.errors import ConfigError
from writecliff.published.figures import PublishedFigure
from writecliff.published.modern import modern_sources
from writecliff.published.modern_sheets import (
    Drive,
    drives,
    facts,
    usable_figures,
    with_siblings,
)
from writecliff.published.modern_usual import with_usual
from writecliff.published.ssd_iq.drives import SSD_IQ, listed_drives

Sheets = Mapping[str, Sequence[DataSheet]]
_COMMANDS = ("controller.read_command_time", "controller.write_command_time")
_FACTS = ("interface", "year", "cell", "power_loss_protection", "dram")
_RATES = ("sequential_read", "sequential_write", "random_read", "random_write")
_PAPER = "data sheets of the drives of Haas et al., SSD-iq, PVLDB 18(11), 2025"
_PER_CAPACITY = (
    "name",
    "description",
    "model",
    "user_capacity",
    "rated_writes",
)  # Parameter values by capacity.


def families() -> dict[str, str]:
    """Return the text of each family's file."""
    all_drives = drives()
    sheets = {
        name: [drive.sheet for drive in members]
        for name, members in all_drives.items()
        if facts()[name].get("usual", True)
    }
    of_flash = {name: _text(name, members, sheets) for name, members in listed_drives().items()}
    return of_flash | {name: _scm_text(name) for name in facts() if name not in of_flash}


def _siblings(drive: Drive, members: Sequence[Drive]) -> list[Drive]:
    """Return the drives that a drive may adopt figures from."""
    if SSD_IQ in drive.sources.values():
        return [drive]
    return [other for other in members if SSD_IQ not in other.sources.values()]


def _scm_text(family: str) -> str:
    """The text of a family without flash, whose drives differ only in capacity."""
    family_facts, figures = facts()[family], usable_figures()
    names = family_facts["drives"]
    cited = sorted({f.source for f in figures if f.device in names})
    values = scm_values(names[0], family_facts, figures)
    text = text_of(
        values, _head(family_facts["about"], names, cited, "lab/published/modern_families.py")
    )
    capacities = {name: float(name.rpartition("-")[2]) for name in names}
    tables = (f'[variants.{n}]\nuser_capacity = "{c:g} GB"\n' for n, c in capacities.items())
    status = ""
    if year := family_facts.get("discontinued"):
        status = f"discontinued = {year}  # {family_facts['discontinued_source']}\n"
    return text + f"\n[variants]\n{status}\n" + "\n".join(tables)


def _text(family: str, members: Sequence[Drive], sheets: Sheets) -> str:
    values = _values(members[0], members, sheets)
    cited = sorted({source for drive in members for source in drive.sources.values()})
    names = [drive.name for drive in members]
    head = _head(facts()[family]["about"], names, cited, "lab/published/modern_families.py")
    text = text_of(values, head)
    return "\n".join((text, _variants(members, values, sheets), _sheets(members, sheets)))


def _head(about: str, names: Sequence[str], cited: Sequence[str], rule: str) -> list[str]:
    """Return the comment at the top of a family's file."""
    titles = {name: source.title for name, source in modern_sources().items()} | {SSD_IQ: _PAPER}
    head = (
        f"{about}. Derived by rule from the figures of {', '.join(names)} that "
        f"are not held out, see `{rule}`. Sources:"
    )
    listed = (f"* {key}: {titles[key]}" for key in cited)
    return [line for part in (head, *listed) for line in _wrapped(part)]


def _values(drive: Drive, members: Sequence[Drive], sheets: Sheets) -> list[Value]:
    """Return the values of a drive's device file, in file order."""
    sheet, origins = with_siblings(drive, _siblings(drive, members))
    client, bits = not sheet.enterprise, BITS[sheet.cell or "tlc"]
    sheet, usual = with_usual(drive.family, sheet, sheets)
    origins |= usual
    if client and sheet.slc_cache is None:
        sheet = replace(sheet, slc_cache=sheet.capacity / bits)
        origins["slc_cache"] = f"no figure: all flash that is free, at one bit of {bits}"
    values = []
    for value in derived(sheet, origins):
        reason = value.reason.replace("the sheet gives", "the figures give")
        reason = reason.replace("the sheet's", "the figures'")
        reason = reason.replace("the sheet", "the figures")
        reason = reason.replace("yours", "the drive and its capacity")
        text = f'"{facts()[drive.family]["about"]}"' if value.key == "description" else value.value
        values.append(Value(value.key, text, reason))
    if client:
        values.append(Value("slc_cache.dynamic", "true", "uses free flash, as clients of the year"))
    return values


def _variants(members: Sequence[Drive], values: Sequence[Value], sheets: Sheets) -> str:
    base = {value.key: value.value for value in values}
    lines = ["[variants]"]
    for drive in members:
        lines += [
            "",
            f"[variants.{drive.name}]",
            f'user_capacity = "{drive.sheet.capacity / 1e9:g} GB"',
        ]
        if drive is members[0]:
            continue
        mine = _values(drive, members, sheets)
        keys = {value.key: value for value in mine}
        for key in _COMMANDS:
            if key in base and key not in keys:
                mine.append(replace(keys["controller.command_time"], key=key))
        for value in mine:
            if value.key not in _PER_CAPACITY and base.get(value.key) != value.value:
                lines.append(f'"{value.key}" = {value.value}  # {value.reason}')
        if drive.sheet.tbw:
            lines.append(
                f'rated_writes = "{drive.sheet.tbw / 1e12:g} TB"  # {drive.sources["tbw"]}'
            )
    return "\n".join(lines) + "\n"


def _sheets(members: Sequence[Drive], sheets: Sheets) -> str:
    """Return the tables that `devices/capacities.py` derives other capacities from."""
    lines = ["[sheets]"]
    for name in _FACTS:
        if (value := getattr(members[0].sheet, name)) is not None:
            lines.append(f"{name} = {_answer(name, value)}  # all capacities")
    for drive in members:
        lines += ["", f"[sheets.{drive.name}]"]
        for field in ANSWERS:
            value = getattr(drive.sheet, field.name)
            if value is not None and field.name not in (*_FACTS, "name", "capacity"):
                source = drive.sources.get(field.name, "follows from the phases of the drive")
                lines.append(f"{field.name} = {_answer(field.name, value)}  # {source}")
        others, reasons = _of_others(drive, members, sheets)
        if others:
            lines.append(f"[sheets.{drive.name}.others]")
            lines += [f"{n} = {_answer(n, v)}  # {reasons[n]}" for n, v in others.items()]
    return "\n".join((*lines, "", *_class_rates(members, sheets), ""))


def _of_others(
    drive: Drive, members: Sequence[Drive], sheets: Sheets
) -> tuple[dict[str, object], dict[str, str]]:
    """Return the fields taken from other families, and the reasons for the field values."""
    sheet, _ = with_siblings(drive, _siblings(drive, members))
    sheet, reasons = with_usual(drive.family, sheet, sheets)
    if not sheet.enterprise and sheet.slc_cache is None:
        sheet = replace(sheet, slc_cache=sheet.capacity / BITS[sheet.cell or "tlc"])
        reasons |= {"slc_cache": "no figure: all free flash"}
    return {name: getattr(sheet, name) for name in reasons}, reasons


def _class_rates(members: Sequence[Drive], sheets: Sheets) -> Iterator[str]:
    """Yield the table of typical rates for the largest drives of the class."""
    largest = max(members, key=lambda drive: drive.sheet.capacity).sheet
    rates: dict[str, Any] = dict.fromkeys(_RATES)
    reads = [drive.sheet.sequential_read for drive in members if drive.sheet.sequential_read]
    rates["sequential_read"] = max(reads, default=None)
    sheet, origins = with_usual(members[0].family, replace(largest, **rates), sheets)
    yield "[usual]"
    for name in _RATES:
        if name in origins:
            yield f"{name} = {_answer(name, getattr(sheet, name))}  # {origins[name]}"


def _answer(name: str, value: object) -> str:
    """Return a data sheet field in TOML, in the format that `device new` reads."""
    field = next(field for field in ANSWERS if field.name == name)
    if isinstance(value, bool | str | int):
        return json.dumps(value)
    assert isinstance(value, float)
    match field.metadata.get("unit"):
        case "size":
            return f'"{value / 1e12:g} TB"' if value >= 1e13 else f'"{value / 1e9:.6g} GB"'
        case "rate":
            return f'"{value / 1e6:.6g} MB/s"'
        case "time":
            return quoted_time(value)
    return f"{value:.0f}"


def _wrapped(line: str, width: int = 96) -> list[str]:
    return textwrap.wrap(line, width, subsequent_indent="  " if line.startswith("*") else "")


def main() -> None:
    """Write the files of all families."""
    for name, text in families().items():
        (FOLDER / f"{name}.toml").write_text(text, encoding="utf-8")


# -- modern scm ------------------------------------------------------------------------------------

# Storage-class memory drives as device files, derived from the figures that a fit may use.
#
# The rule applies to the figures for all capacities of a family together:
#
# * The controller needs a fixed time per command and a fixed time per access. Both controller times
#   are derived from the highest rate of single-access reads, and from the rate of random 4 KiB
#   writes, which take eight accesses.
# * A 4 KiB block is in one bank, so its latency exceeds that of a single access by seven bank
#   accesses.
# * Firmware accounts for the remaining latency of a single access.
# * Banks write at the rated sequential write speed.
#
# The number of banks is not published. The controller of the predecessor, the P4800X, has seven
# channels (ComputerBase, "Intel Optane SSD DC P4801X", 2018), and the model treats each channel as
# a bank. Capacities do not differ in any other parameter: the predecessor's small drives were as
# fast as its large drives (SQLPerformance, Intel Optane SSD DC P4800X; AnandTech, its review of 750
# GB, 2017). No published figures were found for a write buffer, background wear levelling or power,
# so the drive model includes none of these features.

UNIT = 512  # Smallest logical block in bytes.
BANKS = 7
_PER_SLOT = SLOT // UNIT
_YEARS = 5  # Warranty period in years, which drive writes per day refer to.


def scm_values(
    name: str, facts: Mapping[str, Any], figures: Iterable[PublishedFigure]
) -> list[Value]:
    """Return the device file values of the drive `name`, in file order.

    Raises:
        ConfigError: If a figure that the rule requires is missing.
    """
    family_figures = [f for f in figures if f.device in facts["drives"]]
    capacity = float(name.rpartition("-")[2]) * 1e9
    link = LINKS[facts["interface"]]
    per_day = _figure(family_figures, "dwpd", None, None)
    rated = per_day.value * 365 * _YEARS * capacity
    values = [
        Value("name", f'"{name}"', "the drive and its capacity"),
        Value("description", f'"{facts["about"]}"', "the figures"),
        Value("model", f'"simulated {name}"', "shown in reports"),
        Value("user_capacity", f'"{capacity / 1e9:g} GB"', "the figures"),
        Value(
            "rated_writes",
            f'"{rated / 1e12:g} TB"',
            f"{per_day.value:g} drive writes a day for {_YEARS} years: {per_day.source}",
        ),
    ]
    return [
        *values,
        *_timing(family_figures, link.most_mb_s * 1e6, link.command_us * US),
        *_link(facts),
    ]


def _timing(figures: list[PublishedFigure], bandwidth: float, command_ns: float) -> list[Value]:
    small, many = _fastest(figures, UNIT), _figure(figures, "iops", SLOT, 0.0)
    access = (1e9 / many.value - 1e9 / small.value) / (_PER_SLOT - 1)
    command = 1e9 / small.value - access
    first, block = (
        _figure(figures, "latency_avg", UNIT, 100.0),
        _figure(figures, "latency_avg", SLOT, 100.0),
    )
    more = (block.value - first.value) * 1e6 - (SLOT - UNIT) / bandwidth * 1e9
    read = more / (_PER_SLOT - 1)
    latency = first.value * 1e6 - 1e9 / small.value - read - command_ns - UNIT / bandwidth * 1e9
    written = _figure(figures, "throughput", 128 * KIB, 0.0)
    write = BANKS * UNIT / (written.value * 1e6) * 1e9
    if min(access, command, read, latency) <= 0:
        raise ConfigError(f"the figures of {figures[0].device} contradict each other")
    media = (
        ("banks", str(BANKS), "not published: the channels of the predecessor's controller "
         "(ComputerBase, Intel Optane SSD DC P4801X)"),
        ("unit", f'"{UNIT} B"', "the smallest logical block; not published"),
        ("interleave", f'"{SLOT // KIB} KiB"', "a block of 4 KiB lies in one bank"),
        ("read_time", quoted_time(read),
         f"leaves {block.value * 1e3:g} us for 4 KiB and {first.value * 1e3:g} us for 512 bytes: "
         f"{block.source}, {first.source}"),
        ("write_time", quoted_time(write),
         f"all banks write {written.value:,.0f} MB/s: {written.source}"),
    )  # fmt: skip
    controller = (
        ("command_time", quoted_time(command),
         f"leaves {small.value:,.0f} reads of 512 bytes a second: {small.source}"),
        ("access_time", quoted_time(access),
         f"leaves {many.value:,.0f} random writes of 4 KiB a second: {many.source}"),
        ("latency", quoted_time(latency),
         f"leaves {first.value * 1e3:g} us for a read of 512 bytes: {first.source}"),
    )  # fmt: skip
    rows = [("media", media), ("controller", controller)]
    return [Value(f"{table}.{key}", *rest) for table, cells in rows for key, *rest in cells]


def _link(facts: Mapping[str, Any]) -> list[Value]:
    link = LINKS[facts["interface"]]
    rows = (
        ("interface", f'"{link.name}"', "the figures"),
        ("bandwidth", f'"{link.most_mb_s:.1f} MB/s"', f"what {link.name} carries"),
        ("duplex", '"full"', link.name),
        ("command", f'"{link.command_us:g} us"', "frames or doorbells of a command"),
        ("queues", str(link.queues), "usual"),
        ("queue_depth", str(link.depth), "usual"),
    )
    return [Value(f"link.{key}", value, why) for key, value, why in rows]


def _figure(
    figures: Iterable[PublishedFigure], metric: str, size: int | None, read_pct: float | None
) -> PublishedFigure:
    """Return the first figure for a metric. Raises ConfigError if the metric has no figure."""
    for f in figures:
        if (f.metric, f.block_bytes, f.read_pct) == (metric, size, read_pct):
            return f
    raise ConfigError(f"the figure {metric} with {size} bytes and {read_pct} % reads is missing")


def _fastest(figures: Iterable[PublishedFigure], size: int) -> PublishedFigure:
    """The highest rate of random reads of `size` bytes, because the host may limit other rates."""
    reads = [f for f in figures if (f.metric, f.block_bytes, f.read_pct) == ("iops", size, 100.0)]
    if not reads:
        raise ConfigError(f"the rate of random reads of {size} bytes is missing")
    return max(reads, key=lambda f: f.value)


if __name__ == "__main__":
    main()
