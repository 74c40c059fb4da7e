"""Specification of a fit: the drives, their free parameters, and the parameters' bounds.

    drives = ["pm863-960", "pm863-800", "mlc-a-800"]  # or paths of device files
    rivals = []  # drives that are not fitted, for figures relative to them
    scale = 16  # factor by which the simulated drives are scaled down
    at_bound = 0.26  # a value at its bound counts like a figure with an error of 26 %

    [parameters."link.bandwidth"]  # one value for all drives
    from = "480 MB/s"
    to = "580 MB/s"

    [parameters."controller.relocation_time"]  # a value per drive, near that of the family
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

`spread` is the typical factor by which the drives of a family differ. A drive whose value differs
from the family value by this factor adds the same cost as a figure with an error of `SOFT`.
`relatives` are drives from other fits that share the hardware or firmware. If `relatives` is given,
the drives of the fit share a value, and `spread` is the factor by which related models differ (see
`relatives.py`). A parameter applies to all drives whose device files contain its key, and `drives`
restricts it to some of them. `at_bound` is the weight of the bounds relative to the figures.
Without other information, each value between the bounds is equally likely, for which 0.26 is the
right weight (the square root of 3 deviations of 15 % each). A smaller weight gives the figures more
influence. Lists of times are scaled together. `at_least` names another parameter whose value is the
lower limit, because device files must not contain a smaller value.
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
SOFT = 0.15  # Residual above which residuals count linearly instead of squared.
AT_BOUND = 0.05
AT_BOUND_MAX = 1.0
# Maximum numbers of drives and parameters, each of which multiplies the number of simulations.
DRIVES_MAX, PARAMETERS_MAX = 100, 100
SPREAD_MAX = 10.0
_Quantity = str | float  # Quantity such as "8 us", or a number in ns, bytes or bytes/s.
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
    """A device file key with the bounds of its value (for a list, of the mean).

    Without a `spread`, or with `relatives`, all drives have the same value. `drives` restricts the
    parameter to some drives; if it is empty, it applies to all.
    """

    key: str
    low: float
    high: float
    spread: float | None = None
    drives: tuple[str, ...] = ()
    at_least: str = ""  # Key of another parameter that is a lower bound.
    relatives: tuple[str, ...] = ()  # Related drives from other fits.


@dataclass(frozen=True)
class Specification:
    """Drives to fit, their comparison drives, and the free parameters."""

    drives: tuple[str, ...]
    rivals: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    scale: float
    # Figure error that counts as much as a parameter value at its bound.
    at_bound: float = AT_BOUND

    @property
    def relatives(self) -> tuple[str, ...]:
        """All drives from other fits that are relatives of a parameter."""
        return tuple(
            dict.fromkeys(drive for parameter in self.parameters for drive in parameter.relatives)
        )


def read_specification(path: Path) -> Specification:
    """Read the specification of a fit.

    Raises:
        ConfigError: If the file is invalid; the message names the file and the key.
    """
    data = read_toml(path)
    only_keys(data, _KEYS, path)
    fit = as_type(data, _Specification, path)
    drives, tables = fit.get("drives"), fit.get("parameters")
    if not drives or not tables:
        raise ConfigError(f"{path}: 'drives' or 'parameters' is missing; a fit needs both")
    if len(drives) > DRIVES_MAX or len(tables) > PARAMETERS_MAX:
        raise ConfigError(
            f"{path}: {len(drives)} drives and {len(tables)} parameters are too many "
            f"(at most {DRIVES_MAX} and {PARAMETERS_MAX})"
        )
    scale = fit.get("scale", 16.0)
    if not 1 <= scale <= SCALE_MAX:
        raise ConfigError(f"{path}: 'scale' is {scale:g}; it must be 1 to {SCALE_MAX:,.0f}")
    at_bound = fit.get("at_bound", AT_BOUND)
    if not 0 < at_bound <= AT_BOUND_MAX:
        raise ConfigError(
            f"{path}: 'at_bound' is {at_bound:g}; it must be above 0 and at most {AT_BOUND_MAX:g}"
        )
    parameters = tuple(
        _parameter(f"{path}: {shortened(key)}", key, data["parameters"][key], table, drives)
        for key, table in tables.items()
    )
    keys = {parameter.key for parameter in parameters}
    for parameter in parameters:
        if parameter.at_least and parameter.at_least not in keys - {parameter.key}:
            raise ConfigError(
                f"{path}: {parameter.key}: at_least is '{parameter.at_least}', which is not "
                "another parameter of the fit"
            )
    return Specification(tuple(drives), tuple(fit.get("rivals", ())), parameters, scale, at_bound)


def shipped_fits() -> dict[str, Specification]:
    """Return the preset fits by name."""
    return {path.stem: read_specification(path) for path in sorted(FITS.glob("*.toml"))}


def _parameter(
    where: str, key: str, given: Mapping[str, Any], table: _Parameter, drives: list[str]
) -> Parameter:
    if not {"from", "to"} <= set(given) <= _PARAMETER_KEYS:
        raise ConfigError(
            f"{where} must contain 'from' and 'to', and may contain 'spread', 'drives', "
            f"'at_least' and "
            "'relatives'"
        )
    low, high = _bound(table["from"], f"{where}: from"), _bound(table["to"], f"{where}: to")
    if not 0 < low < high:
        raise ConfigError(f"{where}: 'from' must be above 0 and below 'to'")
    spread = table.get("spread")
    if spread is not None and not 1 < spread < SPREAD_MAX:
        raise ConfigError(
            f"{where}: 'spread' is {spread:g}; it must be above 1 and below {SPREAD_MAX:g}"
        )
    only = tuple(table.get("drives", ()))
    if not set(only) <= set(drives):
        other = min(set(only) - set(drives))
        raise ConfigError(f"{where}: '{shortened(other)}' is not among the fit's 'drives'")
    relatives = tuple(table.get("relatives", ()))
    if relatives and spread is None:
        raise ConfigError(f"{where}: 'relatives' requires 'spread'")
    if fitted := set(relatives) & set(drives):
        raise ConfigError(
            f"{where}: '{shortened(min(fitted))}' is one of the fit's drives; relatives must be "
            f"drives from other fits"
        )
    return Parameter(key, low, high, spread, only, table.get("at_least", ""), relatives)


def _bound(value: _Quantity, where: str) -> float:
    try:
        bound = number(value)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}", hint=error.hint) from None
    if not math.isfinite(bound):
        raise ConfigError(f"{where}: {bound} is not a finite quantity")
    return bound
