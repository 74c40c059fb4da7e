"""The parameters of several drives as a single vector.

A parameter shared by all drives is a single coordinate, the logarithm of its value. A parameter
with a spread has a coordinate for the family and a coordinate for each drive, the logarithm of the
ratio between the drive's value and the family's value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from writecliff.devices.edit import value_of
from writecliff.devices.quantities import number
from writecliff.errors import ConfigError
from writecliff.published.fit.relatives import LogValue, Prior
from writecliff.published.fit.specification import SOFT, Parameter, Specification

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Coordinate:
    """A fitted coordinate of `parameter`, for a drive, or for the family if `drive` is None."""

    parameter: Parameter
    drive: str | None
    start: float
    low: float
    high: float


class Coordinates:
    """All coordinates of a fit."""

    def __init__(
        self,
        spec: Specification,
        texts: Mapping[str, str],
        priors: Mapping[str, Prior] | None = None,
    ) -> None:
        """Create the coordinates.

        Args:
            spec: The fit's parameters.
            texts: Device file of each drive, by name.
            priors: Priors of parameters from drives of other fits, by key.

        Raises:
            ConfigError: If no drive has a parameter, or if a parameter's value is not positive.
        """
        self.spec = spec
        self._priors = priors or {}
        self.drives_of = {p.key: _drives_of(p, spec, texts) for p in spec.parameters}
        self.all: tuple[Coordinate, ...] = tuple(
            coordinate for p in spec.parameters for coordinate in self._of(p, texts)
        )
        self._index = {(c.parameter.key, c.drive): i for i, c in enumerate(self.all)}
        self.start = np.array([c.start for c in self.all])
        self.low = np.array([c.low for c in self.all])
        self.high = np.array([c.high for c in self.all])

    @property
    def middle(self) -> Vector:
        """Centre of all bounds, where every drive has its family's value."""
        middle: Vector = (self.low + self.high) / 2
        return middle

    def _of(self, parameter: Parameter, texts: Mapping[str, str]) -> list[Coordinate]:
        drives = self.drives_of[parameter.key]
        logs = {d: float(np.log(_value(d, parameter.key, texts[d]))) for d in drives}
        low, high = float(np.log(parameter.low)), float(np.log(parameter.high))
        separate = parameter.spread is not None and len(drives) > 1 and not parameter.relatives
        common = sum(logs.values()) / len(logs) if separate else logs[drives[0]]
        family = min(max(common, low), high)
        coordinates = [Coordinate(parameter, None, family, low, high)]
        if separate:
            width = high - low
            coordinates += [
                Coordinate(parameter, d, min(max(logs[d], low), high) - family, -width, width)
                for d in drives
            ]
        return coordinates

    def values(self, drive: str, at: Vector) -> dict[str, float]:
        """Return the values of a drive's parameters, limited to their bounds."""
        values = {}
        for p in self.spec.parameters:
            if drive not in self.drives_of[p.key]:
                continue
            log = at[self._index[p.key, None]]
            if (p.key, drive) in self._index:
                log = log + at[self._index[p.key, drive]]
            values[p.key] = float(np.exp(np.clip(log, np.log(p.low), np.log(p.high))))
        for p in self.spec.parameters:
            if p.key in values and p.at_least in values:
                values[p.key] = max(values[p.key], values[p.at_least])
        return values

    def index(self, key: str, drive: str | None) -> int:
        """Return a coordinate's position in the vector."""
        return self._index[key, drive]

    def priors(self) -> tuple[Vector, Vector]:
        """Return the centre of each coordinate's prior, and its weight per unit.

        The prior pulls a drive towards its family with a weight derived from the parameter's
        spread. The prior pulls a shared value towards its relatives or, without relatives, towards
        the centre of its bounds, where a bound counts as `at_bound`. Values that no figure
        determines therefore stay near the centre instead of following the scatter of short
        simulations.
        """
        centre = self.middle
        weights = self.spec.at_bound / SOFT / np.maximum((self.high - self.low) / 2, 1e-9)
        for i, coordinate in enumerate(self.all):
            if coordinate.drive:
                centre[i], weights[i] = 0.0, 1 / float(np.log(coordinate.parameter.spread or 2.0))
            elif prior := self._priors.get(coordinate.parameter.key):
                centre[i], weights[i] = prior.centre, 1 / prior.deviation
        return centre, weights

    def priors_alone(self) -> tuple[Vector, Vector]:
        """Return the centres and standard deviations of the priors, before any figures are used."""
        centre, weights = self.priors()
        return centre, 1 / weights

    def log_value(self, drive: str, key: str, at: Vector, errors: Vector) -> LogValue | None:
        """Return a drive's fitted value and its standard error; None if the value is not fitted."""
        if drive not in self.drives_of.get(key, ()):
            return None
        family, offset = self._index[key, None], self._index.get((key, drive))
        indices = [family] if offset is None else [family, offset]
        return LogValue(
            float(np.log(self.values(drive, at)[key])), float(np.linalg.norm(errors[indices]))
        )

    @property
    def common(self) -> npt.NDArray[np.bool_]:
        """Mask of the coordinates whose only prior is the centre of their bounds."""
        return np.array([c.drive is None and c.parameter.key not in self._priors for c in self.all])


def _value(drive: str, key: str, text: str) -> float:
    value = number(value_of(text, key))
    if not value > 0:
        raise ConfigError(f"{drive}: '{key}' is {value:g}; only a value above 0 can be fitted")
    return value


def _drives_of(
    parameter: Parameter, spec: Specification, texts: Mapping[str, str]
) -> tuple[str, ...]:
    drives = []
    for drive in parameter.drives or spec.drives:
        try:
            value_of(texts[drive], parameter.key)
        except ConfigError:
            if parameter.drives:
                raise
            continue
        drives.append(drive)
    if not drives:
        raise ConfigError(f"none of the fit's drives has '{parameter.key}'")
    return tuple(drives)
