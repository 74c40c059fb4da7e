"""The parameters of several drives as one vector, and back.

A parameter that all drives share is one coordinate, the logarithm of its value. One with a spread
has a coordinate for the family and one for each drive, the logarithm of the ratio of its value to
that of the family.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from writecliff.devices.edit import value_of
from writecliff.devices.quantities import number
from writecliff.errors import ConfigError
from writecliff.published.fit.relatives import Belief, Known
from writecliff.published.fit.specification import SOFT, Parameter, Specification

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Coordinate:
    """One number that is varied: of `parameter`, for a family (`drive` is None) or for a drive."""

    parameter: Parameter
    drive: str | None
    start: float
    low: float
    high: float


class Coordinates:
    """All coordinates of a fit. `texts`: the device file of each drive, by name; `beliefs`: what
    drives of other fits tell of a parameter, by key.
    """

    def __init__(
        self,
        spec: Specification,
        texts: Mapping[str, str],
        beliefs: Mapping[str, Belief] | None = None,
    ) -> None:
        self.spec = spec
        self._beliefs = beliefs or {}
        self.drives_of = {p.key: _drives_of(p, spec, texts) for p in spec.parameters}
        self.all: tuple[Coordinate, ...] = tuple(
            one for p in spec.parameters for one in self._of(p, texts)
        )
        self._index = {(one.parameter.key, one.drive): i for i, one in enumerate(self.all)}
        self.start = np.array([one.start for one in self.all])
        self.low = np.array([one.low for one in self.all])
        self.high = np.array([one.high for one in self.all])

    @property
    def middle(self) -> Vector:
        """The middle of all bounds, where no drive differs from its family."""
        middle: Vector = (self.low + self.high) / 2
        return middle

    def _of(self, parameter: Parameter, texts: Mapping[str, str]) -> list[Coordinate]:
        drives = self.drives_of[parameter.key]
        logs = {d: float(np.log(_value(d, parameter.key, texts[d]))) for d in drives}
        low, high = float(np.log(parameter.low)), float(np.log(parameter.high))
        own = parameter.spread is not None and len(drives) > 1 and not parameter.relatives
        common = sum(logs.values()) / len(logs) if own else logs[drives[0]]
        family = min(max(common, low), high)
        found = [Coordinate(parameter, None, family, low, high)]
        if own:
            width = high - low
            found += [
                Coordinate(parameter, d, min(max(logs[d], low), high) - family, -width, width)
                for d in drives
            ]
        return found

    def values(self, drive: str, at: Vector) -> dict[str, float]:
        """The values of a drive's parameters, within their bounds."""
        found = {}
        for p in self.spec.parameters:
            if drive not in self.drives_of[p.key]:
                continue
            log = at[self._index[p.key, None]]
            if (p.key, drive) in self._index:
                log = log + at[self._index[p.key, drive]]
            found[p.key] = float(np.exp(np.clip(log, np.log(p.low), np.log(p.high))))
        for p in self.spec.parameters:
            if p.key in found and p.at_least in found:
                found[p.key] = max(found[p.key], found[p.at_least])
        return found

    def index(self, key: str, drive: str | None) -> int:
        """The position of a coordinate in the vector."""
        return self._index[key, drive]

    def priors(self) -> tuple[Vector, Vector]:
        """Where each coordinate is drawn to, and its weight per unit: a drive to its family as its
        spread says; a value shared by all drives to its relatives, or else to the middle of its
        bounds, `at_bound` at a bound. What no figure determines stays there instead of following
        the scatter of short simulations.
        """
        centre = self.middle
        weights = self.spec.at_bound / SOFT / np.maximum((self.high - self.low) / 2, 1e-9)
        for i, one in enumerate(self.all):
            if one.drive:
                centre[i], weights[i] = 0.0, 1 / float(np.log(one.parameter.spread or 2.0))
            elif belief := self._beliefs.get(one.parameter.key):
                centre[i], weights[i] = belief.centre, 1 / belief.deviation
        return centre, weights

    def priors_alone(self) -> tuple[Vector, Vector]:
        """Where priors draw each coordinate, and how far they leave it open: what is known without
        figures.
        """
        centre, weights = self.priors()
        return centre, 1 / weights

    def known(self, drive: str, key: str, at: Vector, errors: Vector) -> Known | None:
        """What a fit that ended at `at` found of a drive's value; None if it does not vary it."""
        if drive not in self.drives_of.get(key, ()):
            return None
        family, own = self._index[key, None], self._index.get((key, drive))
        indices = [family] if own is None else [family, own]
        return Known(
            float(np.log(self.values(drive, at)[key])), float(np.linalg.norm(errors[indices]))
        )

    @property
    def common(self) -> npt.NDArray[np.bool_]:
        """Which coordinates only the middle of their bounds draws to itself."""
        return np.array(
            [one.drive is None and one.parameter.key not in self._beliefs for one in self.all]
        )


def _value(drive: str, key: str, text: str) -> float:
    value = number(value_of(text, key))
    if not value > 0:
        raise ConfigError(f"{drive}: '{key}' is {value:g}; only a value above 0 can be fitted")
    return value


def _drives_of(
    parameter: Parameter, spec: Specification, texts: Mapping[str, str]
) -> tuple[str, ...]:
    found = []
    for drive in parameter.drives or spec.drives:
        try:
            value_of(texts[drive], parameter.key)
        except ConfigError:
            if parameter.drives:
                raise
            continue
        found.append(drive)
    if not found:
        raise ConfigError(f"no drive of the fit has '{parameter.key}'")
    return tuple(found)
