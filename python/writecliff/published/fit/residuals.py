"""Residuals that a fit minimises.

The residuals are the deviations of figures, wrong winners, each drive's distance from its family,
and each value's distance from the centre of its bounds.

For rates and means, the residual is the logarithm of the ratio of the simulated to the published
value. Percentiles have a lower weight. Figures that depend on single events are not fitted. Such
figures are maxima, 99.99th percentiles, and the deviation and consistency of IOPS. Fitting them
would follow chance, and scaled-down drives stall for less time. The messenger workload's figures
are also excluded. The only drive with published messenger figures stalls for 310 ms, which no
fitted parameter can reproduce, and its rate would move the command time to a bound.

If a source compares two drives, the slower drive must not be simulated as faster. The residual is a
hinge on the logarithm of their ratio, which is 0 if the correct drive wins.
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
_UNEXPLAINED = ("messenger",)  # Loads that are not fitted.
_MISSING = 2.0  # Residual of a figure that the simulation does not measure.
_MARGIN = 0.02  # Minimum lead of the published winner, as a logarithm.
_RANK_WEIGHT = 1.0


def is_fitted(figure: PublishedFigure) -> bool:
    """Return `True` if a fit uses this figure."""
    if figure.access in _UNEXPLAINED or figure.metric.startswith(_SINGLE_EVENTS):
        return False
    return kind_of(figure) in _WEIGHTS


def deviations(rows: Sequence[Row]) -> Vector:
    """Return each figure's weighted deviation."""
    return np.array([_deviation(row) for row in rows])


def soft_cost(vector: Vector) -> float:
    """Return half of a vector's soft sum of squares, which a fit minimises.

    Residuals far above `SOFT` contribute linearly.
    """
    return float(SOFT**2 * np.sum(np.sqrt(1 + (vector / SOFT) ** 2) - 1))


def _deviation(row: Row) -> float:
    log = _log(row)
    if log is None:
        return _MISSING
    return _WEIGHTS[row.kind] * (log - float(np.log(max(row.published, 1e-9))))


def _log(row: Row) -> float | None:
    """Return the logarithm of the simulated value or, for an improvement, of the ratio."""
    compared = row.compared
    return None if compared is None else float(np.log(max(compared[1], 1e-9)))


@dataclass(frozen=True)
class _Winner:
    """Published winner of a comparison of two figures.

    `second` is `None` for an improvement, which is compared with 1.
    """

    first: int
    second: int | None
    sign: float


class Residuals:
    """Residual vector whose soft sum of squares is minimal at the fitted values."""

    def __init__(self, rows: Sequence[Row], coordinates: Coordinates) -> None:
        """Set up the residuals of the figures in `rows`."""
        self._weights = np.array([_WEIGHTS.get(row.kind, 0.0) for row in rows])
        self._winners = _winners(rows)
        self._centre, self._prior = coordinates.priors()
        self._common = coordinates.common

    def vector(self, rows: Sequence[Row], at: Vector) -> Vector:
        """Return the residuals at a point, given the rows simulated there."""
        logs = [0.0 if (log := _log(row)) is None else log for row in rows]
        ranks = [_RANK_WEIGHT * max(0.0, self._short(w, logs)) for w in self._winners]
        priors = SOFT * self._prior * (at - self._centre)
        return np.concatenate([deviations(rows), ranks, priors])

    def derivatives(
        self, rows: Sequence[Row], steps: Vector, neighbours: Sequence[Sequence[Row]]
    ) -> Vector:
        """Return the Jacobian of the residuals, given the rows one step along each coordinate."""
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

    def without_weak_priors(self, vector: Vector) -> Vector:
        """Return the rows of a vector or Jacobian without the rows of weak priors.

        Weak priors only keep a value near the centre of its bounds.
        """
        first = len(vector) - len(self._common)
        rows: Vector = np.concatenate([vector[:first], vector[first:][~self._common]])
        return rows

    def _short(self, winner: _Winner, logs: Sequence[float]) -> float:
        other = 0.0 if winner.second is None else logs[winner.second]
        return _MARGIN - winner.sign * (logs[winner.first] - other)

    def _rank_slope(self, winner: _Winner, logs: Sequence[float], slopes: Vector) -> Vector:
        if self._short(winner, logs) <= 0:
            return np.zeros(slopes.shape[1])
        slope: Vector = slopes[winner.first] / self._weights[winner.first]
        if winner.second is not None:
            slope = slope - slopes[winner.second] / self._weights[winner.second]
        return np.multiply(-_RANK_WEIGHT * winner.sign, slope)


def _winners(rows: Sequence[Row]) -> list[_Winner]:
    """Return all comparisons whose published figures clearly differ."""
    winners = []
    for first, second in pairs_of([row.figure for row in rows]):
        a = rows[first].published
        b = 1.0 if second is None else rows[second].published
        if is_clear((a, b)):
            winners.append(_Winner(first, second, 1.0 if a > b else -1.0))
    return winners
