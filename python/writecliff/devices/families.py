"""Drive families, which are a device file plus changes for other capacities and variants.

Drive models are sold in several capacities, which differ mainly in the number of dies. A family
file is the complete device file for one capacity, followed by `[variants]` and a table per drive:

    [variants]
    [variants.pm863-480]
    user_capacity = "480 GB"
    dies = 32  # source

`user_capacity` and `dies` determine the capacity, the geometry, the rated writes (for an equal
number of drive writes) and the DRAM size. Other entries are dotted device file keys with different
values, each of which must have a reason: `"controller.write_cache" = false`. Below `[variants]`,
`discontinued = 2022  # source` marks a family that is no longer sold.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from writecliff import _native
from writecliff.devices.edit import value_of, with_values
from writecliff.devices.quantities import size_bytes
from writecliff.errors import ConfigError
from writecliff.native_errors import as_user_errors

FOLDER = Path(__file__).parent / "families"
_MARK = re.compile(r"^\[variants\]", re.MULTILINE)
_NAME = re.compile(r"^\[variants\.([\w-]+)\]", re.MULTILINE)
Value = tuple[str, str]  # Value in TOML notation, and its source.


@dataclass(frozen=True)
class Variant:
    """A drive in a family; `changes` maps dotted keys to (TOML value, source)."""

    name: str
    family: Path
    changes: Mapping[str, Value]


@lru_cache(maxsize=1)
def variants() -> Mapping[str, Variant]:
    """Return the drives of all families, by name.

    Raises:
        ConfigError: If a family file is invalid.
    """
    return {
        variant.name: variant for path in sorted(FOLDER.glob("*.toml")) for variant in _read(path)
    }


def variant_text(variant: Variant) -> str:
    """Return a variant's device file, which is the family's device file with changed lines."""
    try:
        return with_values(_split(variant.family)[0], variant.changes)
    except ConfigError as error:
        raise ConfigError(f"{variant.family.name}: {error}") from None


def tables_of(path: Path) -> Mapping[str, Any]:
    """Return the tables from `[variants]` onwards, which follow a family's device file."""
    return tomllib.loads(_split(path)[1])


def discontinued_year(name: str) -> int | None:
    """Return the year in which a listed drive was discontinued, or `None`."""
    variant = variants().get(name)
    return None if variant is None else tables_of(variant.family)["variants"].get("discontinued")


def description_of(path: Path) -> str:
    """Return the description of the drives in a family."""
    return str(value_of(_split(path)[0], "description"))


def _split(path: Path) -> tuple[str, str]:
    text = path.read_text(encoding="utf-8")
    mark = _MARK.search(text)
    if mark is None:
        raise ConfigError(f"{path.name}: a family must end with a [variants] table")
    return text[: mark.start()], text[mark.start() :]


def _read(path: Path) -> list[Variant]:
    base_text, tables_text = _split(path)
    base, tables = _values(base_text, path), _values(tables_text, path)
    variants = []
    for name in _NAME.findall(tables_text):
        start = f"variants.{name}."
        exceptions = {k.removeprefix(start): v for k, v in tables.items() if k.startswith(start)}
        variants.append(Variant(name, path, _changes(path, base, name, exceptions)))
    return variants


def _values(text: str, path: Path) -> dict[str, Value]:
    """Return TOML values and comments, by dotted key."""
    with as_user_errors():
        rows = _native.toml_rows(text, path.name)
    return {key: (value, comment) for key, value, comment, _ in rows}


def _changes(
    path: Path, base: Mapping[str, Value], name: str, exceptions: dict[str, Value]
) -> dict[str, Value]:
    changes = {"name": (f'"{name}"', ""), "model": (f'"simulated {name}"', "")}
    whole, whole_source = base["user_capacity"]
    capacity, source = exceptions.pop("user_capacity", (whole, whole_source))
    if capacity != whole:
        changes["user_capacity"] = (capacity, source or "marketed capacity")
    if "dies" in exceptions:
        count, source = exceptions.pop("dies")
        dies = int(count)
        channels = min(int(base["flash.channels"][0]), dies)
        if dies % channels:
            raise ConfigError(f"{path.name}: {name} has {dies} dies on {channels} channels")
        changes["flash.channels"] = (str(channels), f"{channels} of the controller's in use")
        changes["flash.dies_per_channel"] = (str(dies // channels), source or f"{dies} dies")
    if "user_capacity" in changes and "rated_writes" in base:
        # The drives in a family have equal rated drive writes, but different rated bytes.
        rated = round(_bytes(base["rated_writes"][0]) * _bytes(capacity) / _bytes(whole) / 1e12)
        changes["rated_writes"] = (f'"{rated} TB"', "as many drive writes as the family")
    return changes | exceptions


def _bytes(value: str) -> int:
    return size_bytes(value.strip('"'))
