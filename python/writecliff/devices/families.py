"""Families of drives: one device file, and what the other capacities and cuts change of it.

A drive is sold in several capacities that differ in the number of dies and in little else. A
family is a complete device file of one of them, followed by `[variants]` and a table a drive:

    [variants]
    [variants.pm863-480]
    user_capacity = "480 GB"
    dies = 32  # source

`user_capacity` and `dies` give capacity, geometry, the rated writes (the same number of drive
writes) and the DRAM. Any other key is a dotted one of the device file and an exception that needs
its own reason: `"controller.write_cache" = false`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from writecliff.devices.edit import with_values
from writecliff.devices.quantities import size_bytes
from writecliff.errors import ConfigError

FOLDER = Path(__file__).parent / "families"
_MARK = re.compile(r"^\[variants\]", re.MULTILINE)
_SOURCE = re.compile(r'^"?([\w.]+)"? *= *[^#\n]*?# *(.*)$')


@dataclass(frozen=True)
class Variant:
    """One drive of a family. `changes` maps dotted keys to (TOML value, reason)."""

    name: str
    family: Path
    changes: Mapping[str, tuple[str, str]]


@lru_cache(maxsize=1)
def variants() -> Mapping[str, Variant]:
    """All drives of all families, by name. Raises ConfigError on a malformed family."""
    return {one.name: one for path in sorted(FOLDER.glob("*.toml")) for one in _read(path)}


def variant_text(variant: Variant) -> str:
    """The device file of a variant: the family's, with the lines that differ written anew."""
    try:
        return with_values(_split(variant.family)[0], variant.changes)
    except ConfigError as error:
        raise ConfigError(f"{variant.family.name}: {error}") from None


def _split(path: Path) -> tuple[str, str]:
    text = path.read_text(encoding="utf-8")
    mark = _MARK.search(text)
    if mark is None:
        raise ConfigError(f"{path.name}: a family ends with a table [variants]")
    return text[: mark.start()], text[mark.start() :]


def _read(path: Path) -> list[Variant]:
    base_text, tables_text = _split(path)
    base = tomllib.loads(base_text)
    tables = tomllib.loads(tables_text)["variants"]
    sources = _sources(tables_text)
    return [
        Variant(name, path, _changes(path, base, name, table, sources.get(name, {})))
        for name, table in tables.items()
    ]


def _sources(text: str) -> dict[str, dict[str, str]]:
    """The comment of each key of each variant."""
    found: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("[variants."):
            current = found.setdefault(line.split("]")[0].removeprefix("[variants."), {})
        elif match := _SOURCE.match(line):
            current[match[1]] = match[2]
    return found


def _changes(
    path: Path,
    base: Mapping[str, Any],
    name: str,
    table: Mapping[str, Any],
    sources: Mapping[str, str],
) -> dict[str, tuple[str, str]]:
    own = dict(table)
    capacity = own.pop("user_capacity", base["user_capacity"])
    changes = {
        "name": (_toml(name), ""),
        "model": (_toml(own.pop("model", f"simulated {name}")), ""),
    }
    if capacity != base["user_capacity"]:
        source = sources.get("user_capacity", "marketed capacity")
        changes["user_capacity"] = (_toml(capacity), source)
    if "dies" in own:
        dies = int(own.pop("dies"))
        channels = min(int(base["flash"]["channels"]), dies)
        if dies % channels:
            raise ConfigError(f"{path.name}: {name} has {dies} dies on {channels} channels")
        reason = sources.get("dies", f"{dies} dies")
        changes["flash.channels"] = (str(channels), f"{channels} of the controller's in use")
        changes["flash.dies_per_channel"] = (str(dies // channels), reason)
    if "user_capacity" in changes and "rated_writes" in base and "rated_writes" not in own:
        # Drive writes, not bytes, are what a family shares.
        ratio = size_bytes(capacity) / size_bytes(base["user_capacity"])
        rated = round(size_bytes(base["rated_writes"]) * ratio / 1e12)
        changes["rated_writes"] = (_toml(f"{rated} TB"), "as many drive writes as the family")
    for key, value in own.items():
        changes[key] = (_toml(value), sources.get(key, ""))
    return changes


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)
