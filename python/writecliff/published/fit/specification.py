"""What a fit varies: the drives, their free parameters, and the bounds of each.

    drives = ["pm863-960", "pm863-800", "mlc-a-800"]  # or paths of device files
    rivals = []  # drives that stay as they are, for figures relative to them
    scale = 16  # the drives are simulated at this fraction of their size
    at_bound = 0.26  # what a value at its bound counts as: a figure that is off by 26 %

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

    [parameters."controller.mapping_update_time"]  # one value, near those of other fits' drives
    from = "6 us"
    to = "14 us"
    relatives = ["pm853t-960"]
    spread = 1.3

A `spread` is how far the drives of a family usually differ, as a factor: a drive whose value
differs by it from that of the family costs as much as a figure that is off by `SOFT`. With
`relatives`, drives of other fits whose hardware or firmware does the same, the drives of the fit
share their value, and the spread is how far such models differ (see `relatives.py`). A parameter
is of those drives whose device file has its key; `drives` in its table limits it to some of them.
`at_bound` says how much is known of the parameters before any figure: where the bounds are all that
is known, each value between them is as likely, and 0.26 gives the middle the weight that this has
(the square root of 3 deviations, of 15 % each). Less leaves more to the figures.
Lists of times are scaled as one. `at_least` names another parameter: a value below that of it,
which no device file may have, is raised to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from writecliff.devices.quantities import number
from writecliff.errors import ConfigError
from writecliff.input_files import as_type, only_keys, read_toml, shortened

FITS = Path(__file__).parent.parent / "fits"
SCALE_MAX = 1e6
SOFT = 0.15  # residuals beyond it count linearly, not squared
AT_BOUND = 0.05
AT_BOUND_MAX = 1.0
DRIVES_MAX, PARAMETERS_MAX = 100, 100  # each multiplies the simulations
SPREAD_MAX = 10.0
_Quantity = str | float  # "8 us", or a number in ns, bytes or bytes/s
_Parameter = TypedDict(
    "_Parameter",
    {
        "from": _Quantity,
        "to": _Quantity,
        "spread": float,
        "drives": list[str],
        "at_least": str,
        "relatives": list[str],
    },
    total=False,
)


class _Specification(TypedDict, total=False):
    drives: list[str]
    rivals: list[str]
    scale: float
    at_bound: float
    parameters: dict[str, _Parameter]


_KEYS = ("drives", "rivals", "scale", "at_bound", "parameters")
_PARAMETER_KEYS = {"from", "to", "spread", "drives", "at_least", "relatives"}


@dataclass(frozen=True)
class Parameter:
    """A key of the device file, and the bounds of its value (of the mean, for a list). Without a
    `spread`, or with `relatives`, all drives have the same value; `drives`: those that it is of,
    empty for all.
    """

    key: str
    low: float
    high: float
    spread: float | None = None
    drives: tuple[str, ...] = ()
    at_least: str = ""  # the key of another parameter
    relatives: tuple[str, ...] = ()  # drives of other fits


@dataclass(frozen=True)
class Specification:
    """The drives to fit, the drives they are compared with, and the free parameters."""

    drives: tuple[str, ...]
    rivals: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    scale: float
    at_bound: float = AT_BOUND  # what a value at its bound counts as: a figure so far off

    @property
    def relatives(self) -> tuple[str, ...]:
        """All drives of other fits that a parameter is compared with."""
        return tuple(dict.fromkeys(drive for one in self.parameters for drive in one.relatives))


def read_specification(path: Path) -> Specification:
    """Raises ConfigError with the file and what is wrong."""
    data = read_toml(path)
    only_keys(data, _KEYS, path)
    fit = as_type(data, _Specification, path)
    drives, tables = fit.get("drives"), fit.get("parameters")
    if not drives or not tables:
        raise ConfigError(f"{path}: a fit needs 'drives' and a table of 'parameters'")
    if len(drives) > DRIVES_MAX or len(tables) > PARAMETERS_MAX:
        raise ConfigError(
            f"{path}: {len(drives)} drives and {len(tables)} parameters: "
            f"a fit has at most {DRIVES_MAX} and {PARAMETERS_MAX}"
        )
    scale = fit.get("scale", 16.0)
    if not 1 <= scale <= SCALE_MAX:
        raise ConfigError(f"{path}: 'scale' is a factor between 1 and {SCALE_MAX:,.0f}")
    at_bound = fit.get("at_bound", AT_BOUND)
    if not 0 < at_bound <= AT_BOUND_MAX:
        raise ConfigError(f"{path}: 'at_bound' is above 0 and at most {AT_BOUND_MAX:g}")
    parameters = tuple(
        _parameter(f"{path}: {shortened(key)}", key, data["parameters"][key], table, drives)
        for key, table in tables.items()
    )
    keys = {one.key for one in parameters}
    for one in parameters:
        if one.at_least and one.at_least not in keys - {one.key}:
            raise ConfigError(f"{path}: {one.key}: '{one.at_least}' is no other parameter")
    return Specification(tuple(drives), tuple(fit.get("rivals", ())), parameters, scale, at_bound)


def shipped_fits() -> dict[str, Specification]:
    """The fits behind the presets, by name."""
    return {path.stem: read_specification(path) for path in sorted(FITS.glob("*.toml"))}


def _parameter(
    where: str, key: str, given: Mapping[str, Any], table: _Parameter, drives: list[str]
) -> Parameter:
    if not {"from", "to"} <= set(given) <= _PARAMETER_KEYS:
        raise ConfigError(
            f"{where} needs 'from' and 'to', and may have 'spread', 'drives', 'at_least' and "
            "'relatives'"
        )
    low, high = _bound(table["from"], f"{where}: from"), _bound(table["to"], f"{where}: to")
    if not 0 < low < high:
        raise ConfigError(f"{where}: 'from' must be above 0 and below 'to'")
    spread = table.get("spread")
    if spread is not None and not 1 < spread < SPREAD_MAX:
        raise ConfigError(f"{where}: 'spread' is a factor between 1 and {SPREAD_MAX:g}")
    only = tuple(table.get("drives", ()))
    if not set(only) <= set(drives):
        other = min(set(only) - set(drives))
        raise ConfigError(f"{where}: '{shortened(other)}' is none of 'drives'")
    relatives = tuple(table.get("relatives", ()))
    if relatives and spread is None:
        raise ConfigError(f"{where}: 'relatives' need a 'spread'")
    if own := set(relatives) & set(drives):
        raise ConfigError(f"{where}: '{shortened(min(own))}' is a drive of the fit, no relative")
    return Parameter(key, low, high, spread, only, table.get("at_least", ""), relatives)


def _bound(value: _Quantity, where: str) -> float:
    try:
        found = number(value)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}", hint=error.hint) from None
    if not math.isfinite(found):
        raise ConfigError(f"{where}: {found} is no quantity")
    return found
