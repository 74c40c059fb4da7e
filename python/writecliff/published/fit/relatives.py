"""What the drives of other fits tell about a parameter: a prior for its value.

Models that share hardware or firmware have similar times inside the drive, whatever they are
tested with. So a parameter may name `relatives`. Their values, weighted by how well their own
figures determine them, are where the value of the fit is drawn to: as far as the parameter's
`spread` says that models differ, plus what the mean of the relatives leaves open.
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
class Known:
    """The logarithm of a relative's value, and its standard error: 0 for a value that no fit
    varies.
    """

    log: float
    error: float


@dataclass(frozen=True)
class Belief:
    """Where the logarithm of a value is expected, and how far from it."""

    centre: float
    deviation: float


def belief_of(relatives: Sequence[Known], spread: float) -> Belief | None:
    """What relatives tell of a model that differs from them by the factor `spread`; None without
    relatives.
    """
    if not relatives:
        return None
    between = np.log(spread) ** 2
    weights = np.array([1 / (between + one.error**2) for one in relatives])
    centre = float(np.average([one.log for one in relatives], weights=weights))
    return Belief(centre, float(np.sqrt(between + 1 / weights.sum())))


def beliefs_of(
    spec: Specification, known: Callable[[str, str], Known | None]
) -> Mapping[str, Belief]:
    """What relatives tell of the parameters of a fit, by key. `known`: of a drive and a key, None
    where nothing is known.
    """
    found = {}
    for one in spec.parameters:
        values = [value for drive in one.relatives if (value := known(drive, one.key))]
        if belief := belief_of(values, one.spread or 1.0):
            found[one.key] = belief
    return found


def in_file(text: str, key: str) -> Known | None:
    """The value in a device file; None if it has none."""
    try:
        return Known(float(np.log(number(value_of(text, key)))), 0.0)
    except ConfigError:
        return None
