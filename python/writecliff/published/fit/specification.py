"""What a fit varies: the drives, their free parameters, and the bounds of each.

    drives = ["pm863-960", "pm863-800", "mlc-a-800"]  # or paths of device files
    rivals = []  # drives that stay as they are, for figures relative to them
    scale = 16  # the drives are simulated at this fraction of their size

    [parameters."link.bandwidth"]  # one value for all drives
    from = "480 MB/s"
    to = "580 MB/s"

    [parameters."controller.relocation_time"]  # a value for each drive, near one of the family
    from = "2 us"
    to = "60 us"
    spread = 1.3

    [parameters."controller.write_command_time"]
    from = "10 us"
    to = "30 us"
    at_least = "controller.command_time"

A `spread` is how far the drives of a family usually differ, as a factor: a drive whose value
differs by it from that of the family costs as much as a figure that is off by `SOFT`. A parameter
is of those drives whose device file has its key; `drives` in its table limits it to some of them.
Lists of times are scaled as one. `at_least` names another parameter: a value below that of it,
which no device file may have, is raised to it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from writecliff.devices.quantities import number
from writecliff.errors import ConfigError

FITS = Path(__file__).parent.parent / "fits"
_KEYS = {"drives", "rivals", "scale", "parameters"}
_PARAMETER_KEYS = {"from", "to", "spread", "drives", "at_least"}


@dataclass(frozen=True)
class Parameter:
    """A key of the device file, and the bounds of its value (of the mean, for a list). Without a
    `spread` all drives have the same value; `drives`: those that it is of, empty for all."""

    key: str
    low: float
    high: float
    spread: float | None = None
    drives: tuple[str, ...] = ()
    at_least: str = ""  # the key of another parameter


@dataclass(frozen=True)
class Specification:
    """The drives to fit, the drives they are compared with, and the free parameters."""

    drives: tuple[str, ...]
    rivals: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    scale: float


def read_specification(path: Path) -> Specification:
    """Raises ConfigError with the file and what is wrong."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    unknown = set(data) - _KEYS
    if unknown:
        raise ConfigError(
            f"{path}: unknown key '{min(unknown)}'", hint=f"known: {', '.join(sorted(_KEYS))}"
        )
    drives, tables = data.get("drives"), data.get("parameters")
    if not drives or not tables:
        raise ConfigError(f"{path}: a fit needs 'drives' and a table of 'parameters'")
    parameters = tuple(_parameter(path, key, table, drives) for key, table in tables.items())
    keys = {one.key for one in parameters}
    for one in parameters:
        if one.at_least and one.at_least not in keys - {one.key}:
            raise ConfigError(f"{path}: {one.key}: '{one.at_least}' is no other parameter")
    rivals = tuple(data.get("rivals", ()))
    return Specification(tuple(drives), rivals, parameters, float(data.get("scale", 16)))


def shipped_fits() -> dict[str, Specification]:
    """The fits behind the presets, by name."""
    return {path.stem: read_specification(path) for path in sorted(FITS.glob("*.toml"))}


def _parameter(path: Path, key: str, table: Mapping[str, Any], drives: list[str]) -> Parameter:
    if not {"from", "to"} <= set(table) <= _PARAMETER_KEYS:
        raise ConfigError(
            f"{path}: {key} needs 'from' and 'to', and may have 'spread', 'drives' and 'at_least'"
        )
    low, high = number(table["from"]), number(table["to"])
    if not 0 < low < high:
        raise ConfigError(f"{path}: {key}: 'from' must be above 0 and below 'to'")
    spread = table.get("spread")
    if spread is not None and not 1 < spread < 10:
        raise ConfigError(f"{path}: {key}: 'spread' is a factor between 1 and 10")
    only = tuple(table.get("drives", ()))
    if not set(only) <= set(drives):
        raise ConfigError(f"{path}: {key}: '{min(set(only) - set(drives))}' is none of 'drives'")
    return Parameter(key, low, high, spread, only, table.get("at_least", ""))
