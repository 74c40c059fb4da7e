"""Families of drives of today as device files, from the figures that a fit may use.

    .venv/bin/python -m writecliff.published.modern_families

Every drive is derived by rule (`devices.derive`) from its figures of the part "fit" of `modern.csv`
(`modern_sheets`); what they do not say, from other capacities of its family, and then from what is
usual for other families (`modern_usual`). Figures that are kept aside are not looked at. A test
holds the files to this rule, so none is tuned by hand.

Drives of more than 16 TiB of flash came later, and are of another kind: they are made for capacity,
and write less than others. They count for no other family, so none has changed for them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace

from writecliff.devices.derive import Value, derived, text_of
from writecliff.devices.families import FOLDER
from writecliff.devices.generations import BITS
from writecliff.devices.sheet import DataSheet
from writecliff.published.modern import modern_sources
from writecliff.published.modern_scm import scm_values
from writecliff.published.modern_sheets import Drive, drives, facts, usable_figures, with_siblings
from writecliff.published.modern_usual import with_usual

Sheets = Mapping[str, Sequence[DataSheet]]
_COMMANDS = ("controller.read_command_time", "controller.write_command_time")
_OWN = ("name", "description", "model", "user_capacity", "rated_writes")  # of each capacity


def families() -> dict[str, str]:
    """The text of each family's file."""
    all_drives = drives()
    sheets = {
        name: [one.sheet for one in own]
        for name, own in all_drives.items()
        if facts()[name].get("usual", True)
    }
    of_flash = {name: _text(name, own, sheets) for name, own in all_drives.items()}
    return of_flash | {name: _scm_text(name) for name in facts() if name not in all_drives}


def _scm_text(family: str) -> str:
    """A family without flash. Its drives differ in their capacities."""
    own, figures = facts()[family], usable_figures()
    names = own["drives"]
    cited = sorted({f.source for f in figures if f.device in names})
    values = scm_values(names[0], own, figures)
    text = text_of(values, _head(own["about"], names, cited, "published/modern_scm.py"))
    capacities = {name: float(name.rpartition("-")[2]) for name in names}
    tables = (f'[variants.{n}]\nuser_capacity = "{c:g} GB"\n' for n, c in capacities.items())
    return text + "\n[variants]\n\n" + "\n".join(tables)


def _text(family: str, own: Sequence[Drive], sheets: Sheets) -> str:
    values = _values(own[0], own, sheets)
    cited = sorted({source for one in own for source in one.sources.values()})
    names = [one.name for one in own]
    head = _head(facts()[family]["about"], names, cited, "published/modern_families.py")
    text = text_of(values, head)
    return text + "\n" + _variants(own, values, sheets)


def _head(about: str, names: Sequence[str], cited: Sequence[str], rule: str) -> list[str]:
    """The comment above a family's file."""
    sources = modern_sources()
    head = (
        f"{about}. Derived by rule from the figures of {', '.join(names)} that "
        f"are not kept aside, see `{rule}`. Sources:"
    )
    titles = (f"* {key}: {sources[key].title}" for key in cited)
    return [line for part in (head, *titles) for line in _wrapped(part)]


def _values(one: Drive, own: Sequence[Drive], sheets: Sheets) -> list[Value]:
    """The values of a drive's device file, in its order."""
    sheet, said = with_siblings(one, own)
    client, bits = not sheet.enterprise, BITS[sheet.cell or "tlc"]
    sheet, usual = with_usual(one.family, sheet, sheets)
    said |= usual
    if client and sheet.slc_cache is None:
        sheet = replace(sheet, slc_cache=sheet.capacity / bits)
        said["slc_cache"] = f"no figure: all flash that is free, at one bit of {bits}"
    found = []
    for value in derived(sheet, said):
        reason = value.reason.replace("the sheet gives", "the figures give")
        reason = reason.replace("the sheet's", "the figures'")
        reason = reason.replace("the sheet", "the figures")
        reason = reason.replace("yours", "the drive and its capacity")
        text = f'"{facts()[one.family]["about"]}"' if value.key == "description" else value.value
        found.append(Value(value.key, text, reason))
    if client:
        found.append(Value("slc_cache.dynamic", "true", "uses free flash, as clients of the year"))
    return found


def _variants(own: Sequence[Drive], values: Sequence[Value], sheets: Sheets) -> str:
    base = {value.key: value.value for value in values}
    lines = ["[variants]"]
    for one in own:
        lines += [
            "",
            f"[variants.{one.name}]",
            f'user_capacity = "{one.sheet.capacity / 1e9:g} GB"',
        ]
        if one is own[0]:
            continue
        mine = _values(one, own, sheets)
        keys = {value.key: value for value in mine}
        for key in _COMMANDS:
            if key in base and key not in keys:
                mine.append(replace(keys["controller.command_time"], key=key))
        for value in mine:
            if value.key not in _OWN and base.get(value.key) != value.value:
                lines.append(f'"{value.key}" = {value.value}  # {value.reason}')
        if one.sheet.tbw and "rated_writes" in base:
            lines.append(f'rated_writes = "{one.sheet.tbw / 1e12:g} TB"  # {one.sources["tbw"]}')
    return "\n".join(lines) + "\n"


def _wrapped(line: str, width: int = 96) -> list[str]:
    return textwrap.wrap(line, width, subsequent_indent="  " if line.startswith("*") else "")


def main() -> None:
    """Write the files of all families."""
    for name, text in families().items():
        (FOLDER / f"{name}.toml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
