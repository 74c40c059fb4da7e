"""Priors of parameters from drives of other fits.

Models that share hardware or firmware have similar internal times, regardless of how they were
tested. A parameter may therefore name `relatives`. The prior value is the mean of the relatives'
values, weighted by how well the relatives' figures determine them. The prior's standard deviation
is the parameter's `spread`, by which models differ, plus the standard error of that mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from writecliff.devices.edit import value_of
from writecliff.devices.quantities import number
from writecliff.errors import ConfigError
from writecliff.published.fit.specification import Specification


@dataclass(frozen=True)
class LogValue:
    """Logarithm of a relative's value, and its standard error (0 if the value is not fitted)."""

    log: float
    error: float


@dataclass(frozen=True)
class Prior:
    """Expected value and standard deviation of a parameter's logarithm."""

    centre: float
    deviation: float


def prior_of(relatives: Sequence[LogValue], spread: float) -> Prior | None:
    """Return a model's prior, given that models differ from their relatives by `spread`.

    The result is `None` if there are no relatives.
    """
    if not relatives:
        return None
    between = np.log(spread) ** 2
    weights = np.array([1 / (between + value.error**2) for value in relatives])
    centre = float(np.average([value.log for value in relatives], weights=weights))
    return Prior(centre, float(np.sqrt(between + 1 / weights.sum())))


def priors_of(
    spec: Specification, value_in: Callable[[str, str], LogValue | None]
) -> Mapping[str, Prior]:
    """Return the priors that relatives provide for a fit's parameters, by key.

    `value_in` returns the value of a drive's key, or None if it is unknown.
    """
    priors = {}
    for parameter in spec.parameters:
        values = [
            value for drive in parameter.relatives if (value := value_in(drive, parameter.key))
        ]
        if prior := prior_of(values, parameter.spread or 1.0):
            priors[parameter.key] = prior
    return priors


def in_file(text: str, key: str) -> LogValue | None:
    """Return a device file's value, or None if the file does not contain the key."""
    try:
        return LogValue(float(np.log(number(value_of(text, key)))), 0.0)
    except ConfigError:
        return None
