"""What a fit makes small: deviations of figures, wrong winners, drives far from their family,
values far from the middle of their bounds.

Rates and means count by the logarithm of simulated over published; so do percentiles, with less
weight. What depends on single events is not fitted: maxima, 99.99th percentiles, deviations and
consistency of IOPS. A fit would chase chance, and drives that are scaled down stall for less time.
The messenger is left out too: the one drive that it was measured on stalls for 310 ms, which no
value that fits vary can do. Its rate would move the time of a command to its bound.

Of two drives that a source compares the slower one must not come out faster: a hinge on the
logarithm of their ratio, which is 0 as long as the right one wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from writecliff.published.figures import PublishedFigure
from writecliff.published.fit.coordinates import Coordinates, Vector
from writecliff.published.fit.specification import SOFT
from writecliff.published.kinds import (
    BETTER_RATES,
    BETTER_TAILS,
    MEAN,
    MIXED,
    PURE,
    TAILS,
    kind_of,
)
from writecliff.published.scores import Row, is_clear, pairs_of

_WEIGHTS = {PURE: 1.0, MIXED: 1.0, MEAN: 1.0, BETTER_RATES: 1.0, TAILS: 0.25, BETTER_TAILS: 0.25}
_SINGLE_EVENTS = ("latency_max", "latency_p99.99")
_UNEXPLAINED = ("messenger",)  # loads
_MISSING = 2.0  # a figure that the simulation cannot give is far off
_MARGIN = 0.02  # by which the right drive has to win, as a logarithm
_RANK_WEIGHT = 1.0


def is_fitted(figure: PublishedFigure) -> bool:
    """Whether a fit uses this figure."""
    if figure.access in _UNEXPLAINED or figure.metric.startswith(_SINGLE_EVENTS):
        return False
    return kind_of(figure) in _WEIGHTS


def deviations(rows: Sequence[Row]) -> Vector:
    """The weighted deviation of each figure."""
    return np.array([_deviation(row) for row in rows])


def soft_cost(vector: Vector) -> float:
    """Half of the soft square sum of a vector: what a fit makes least. Residuals far beyond `SOFT`
    count by their size, not by its square.
    """
    return float(SOFT**2 * np.sum(np.sqrt(1 + (vector / SOFT) ** 2) - 1))


def _deviation(row: Row) -> float:
    log = _log(row)
    if log is None:
        return _MISSING
    return _WEIGHTS[row.kind] * (log - float(np.log(max(row.published, 1e-9))))


def _log(row: Row) -> float | None:
    """The logarithm of what is simulated; of an improvement that of the ratio."""
    compared = row.compared
    return None if compared is None else float(np.log(max(compared[1], 1e-9)))


@dataclass(frozen=True)
class _Winner:
    """Which of two figures is published as the greater; `second` is None for an improvement, which
    is compared with 1.
    """

    first: int
    second: int | None
    sign: float


class Residuals:
    """The vector whose soft square sum is least at the fitted values."""

    def __init__(self, rows: Sequence[Row], coordinates: Coordinates) -> None:
        self._weights = np.array([_WEIGHTS.get(row.kind, 0.0) for row in rows])
        self._winners = _winners(rows)
        self._centre, self._prior = coordinates.priors()
        self._common = coordinates.common

    def vector(self, rows: Sequence[Row], at: Vector) -> Vector:
        """The residuals at a point, from the rows there."""
        logs = [0.0 if (log := _log(row)) is None else log for row in rows]
        ranks = [_RANK_WEIGHT * max(0.0, self._short(w, logs)) for w in self._winners]
        priors = SOFT * self._prior * (at - self._centre)
        return np.concatenate([deviations(rows), ranks, priors])

    def derivatives(
        self, rows: Sequence[Row], steps: Vector, neighbours: Sequence[Sequence[Row]]
    ) -> Vector:
        """Their Jacobian from the rows at steps along each coordinate."""
        here = deviations(rows)
        slopes = np.array(
            [
                (deviations(there) - here) / step
                for step, there in zip(steps, neighbours, strict=True)
            ]
        ).T
        logs = [0.0 if (log := _log(row)) is None else log for row in rows]
        ranks = [self._rank_slope(w, logs, slopes) for w in self._winners]
        priors = np.diag(SOFT * self._prior)
        return np.vstack([slopes, *ranks, priors])

    def known(self, vector: Vector) -> Vector:
        """The rows of a vector or a Jacobian that figures or other drives give, without those that
        only keep a value near the middle of its bounds.
        """
        first = len(vector) - len(self._common)
        rows: Vector = np.concatenate([vector[:first], vector[first:][~self._common]])
        return rows

    def _short(self, one: _Winner, logs: Sequence[float]) -> float:
        other = 0.0 if one.second is None else logs[one.second]
        return _MARGIN - one.sign * (logs[one.first] - other)

    def _rank_slope(self, one: _Winner, logs: Sequence[float], slopes: Vector) -> Vector:
        if self._short(one, logs) <= 0:
            return np.zeros(slopes.shape[1])
        slope: Vector = slopes[one.first] / self._weights[one.first]
        if one.second is not None:
            slope = slope - slopes[one.second] / self._weights[one.second]
        return np.multiply(-_RANK_WEIGHT * one.sign, slope)


def _winners(rows: Sequence[Row]) -> list[_Winner]:
    """Every comparison of logarithms whose published figures differ clearly."""
    found = []
    for first, second in pairs_of([row.figure for row in rows]):
        a = rows[first].published
        b = 1.0 if second is None else rows[second].published
        if is_clear((a, b)):
            found.append(_Winner(first, second, 1.0 if a > b else -1.0))
    return found
