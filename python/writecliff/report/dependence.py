"""Standard error of a total of correlated samples.

Latencies, rates and write amplification are correlated over time, because garbage collection occurs
in waves and the drive state changes slowly. Formulas for independent samples therefore
underestimate the standard errors. The error of a total depends only on slow variations, so it is
estimated from these variations. Residuals of consecutive batches are projected on the cosines of
the lowest frequencies, and the mean square of the first few projections estimates the variance of
the total. With nu projections, the error estimate has nu degrees of freedom. Sources: Müller, "HAC
corrections for strongly autocorrelated time series", J. Business & Economic Statistics 32 (2014);
Lazarus, Lewis, Stock and Watson, "HAR inference: recommendations for practice", ibid. 36 (2018).

The method is equivalent to batch means (Law and Kelton, "Simulation modeling and analysis", 2007,
9.5), with the batch length expressed as a frequency: nu projections correspond to about nu batches.
The data determine the number of projections to use. A spectrum with a plateau, a corner and a noise
floor is fitted to the squared projections (Whittle's likelihood). Only frequencies up to the corner
are used, and each projection is divided by the fitted shape (prewhitening: Andrews and Monahan,
Econometrica 60, 1992). Because the estimate relies on few frequencies, spectra that are nearly as
likely may have several times the variance. `margin` selects the largest of these variances, so that
slow variations are not missed by chance.

The first batches of a step are dropped. The start of a load (with an empty write buffer) is
identical in each repetition, so it does not contribute to the variation between repetitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import sqrt

import numpy as np
import numpy.typing as npt

from writecliff.report.student_t import two_sided_p

Floats = npt.NDArray[np.float64]

FEWEST = 24  # Minimum number of batches for an estimate.
# Fractions of the batches that may be dropped at the start, and the largest ratio of the variance
# to its minimum over these fractions.
_WARM_UPS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
_WARM_UP_FACTOR = 3.0
_COARSE = 32  # Number of batch averages compared in the drift test.
_ORDINATES = 32  # Number of frequencies that the spectrum is fitted to.
# Minimum and maximum number of frequencies that estimate the error.
_FEWEST_USED, _MOST_USED = 4, 8
_CORNERS = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, np.inf)
_FLOORS = (0.0, 0.03, 0.1, 0.3, 1.0)  # Noise floors relative to the plateau.
_SLOWEST, _FASTER = 3, 15  # Numbers of frequencies whose power is compared to detect a drift.


@dataclass(frozen=True)
class Variance:
    """Variance of a total, with the degrees of freedom of the variance estimate."""

    value: float
    degrees: float

    def times(self, factor: float) -> Variance:
        """Return the variance multiplied by a factor."""
        return Variance(self.value * factor, self.degrees)

    def __add__(self, other: Variance) -> Variance:
        """Return the variance of a sum of independent totals.

        The degrees of freedom follow Satterthwaite (Biometrics Bulletin 2, 1946).
        """
        value = self.value + other.value
        parts = self.value**2 / self.degrees + other.value**2 / other.degrees
        return Variance(value, value**2 / parts if parts else self.degrees + other.degrees)


def warm_up(levels: Sequence[Floats]) -> int:
    """Return the number of batches to drop at the beginning of a step.

    The function finds the smallest number of dropped batches that brings the variance of each of
    `levels`, which have a value per batch, near its minimum (compare White, "An effective
    truncation heuristic for bias reduction in simulation output", Simulation 69, 1997).
    """
    count = len(levels[0])
    starts = [max(1, round(share * count)) for share in _WARM_UPS]
    size = max(1, count // _COARSE)  # Fast oscillations would mask the start-up transient.
    smooth = [np.convolve(level, np.full(size, 1 / size), "valid") for level in levels]
    spreads = [[float(np.var(level[start:])) for start in starts] for level in smooth]
    for number, start in enumerate(starts):
        if all(spread[number] <= _WARM_UP_FACTOR * min(spread) for spread in spreads):
            return start
    return starts[-1]


def variance_of_total(residuals: Floats, widths: Floats, *, margin: float = 0.0) -> Variance | None:
    """Return the variance of the sum over batches, or None if there are too few batches.

    Args:
        residuals: Deviations of the batches from their expected values; the deviations add up to
            zero.
        widths: Batch lengths.
        margin: Maximum log-likelihood difference from the best spectrum; the largest variance among
            the spectra within this difference is returned.
    """
    if len(residuals) < FEWEST:
        return None
    power = _power(residuals, widths)
    shapes, used = _spectra(len(power))
    level = (power / shapes).mean(axis=1)
    if not level.all():
        return Variance(0.0, _MOST_USED)
    badness = len(power) * np.log(level) + np.log(shapes).sum(axis=1)
    best = np.flatnonzero(badness <= badness.min() + max(margin, 1e-9))
    best = best if margin else best[:1]
    values = [float(np.mean(power[: used[n]] / shapes[n, : used[n]])) for n in best]
    chosen = int(np.argmax(values))
    return Variance(values[chosen], float(used[best[chosen]]))


def variance_of_few(residuals: Floats) -> Variance:
    """Return the variance of the sum over a few long batches (at least two).

    The method is classic batch means (Law and Kelton, 9.5.3), with a larger error if neighbouring
    batches are positively correlated.
    """
    count = len(residuals)
    squares = float(residuals @ residuals)
    lag = float(residuals[1:] @ residuals[:-1]) / squares if squares > 0 else 0.0
    lag = min(max(lag, 0.0), 0.9)
    return Variance(squares * count / (count - 1) * (1 + lag) / (1 - lag), count - 1)


def drift(residuals: Floats, widths: Floats) -> float:
    """Return the ratio of the slowest variations' power to that of faster variations.

    The ratio is about 1 if the batches are stationary and nearly uncorrelated. The arguments are
    the same as for `variance_of_total`.
    """
    power = _power(residuals, widths)
    faster = float(np.mean(power[_SLOWEST:_FASTER]))
    return float(np.mean(power[:_SLOWEST])) / faster if faster > 0 else 1.0


def drift_of_few(residuals: Floats, widths: Floats) -> float:
    """Return the probability of a trend at least this large in a few independent batches.

    The trend is the slowest cosine, tested against all residual variation (the F test of a
    regression). The arguments are the same as for `variance_of_total`, with at least three batches.
    """
    rates = residuals / widths
    rates = rates - np.average(rates, weights=widths)
    edges = np.concatenate([[0.0], np.cumsum(widths)]) / widths.sum()
    cosine = np.diff(np.sin(np.pi * edges)) / np.diff(edges)
    slope = float((widths * cosine) @ rates / ((widths * cosine) @ cosine))
    explained = slope**2 * float((widths * cosine) @ cosine)
    left = float(widths @ (rates - slope * cosine) ** 2)
    degrees = len(rates) - 2
    if left <= 0:
        return 0.0 if explained > 0 else 1.0
    return two_sided_p(sqrt(explained / left * degrees), degrees)


def _power(residuals: Floats, widths: Floats) -> Floats:
    """Return the squared projections of the residuals onto cosines of increasing frequency.

    Each cosine is averaged over each batch.
    """
    edges = np.concatenate([[0.0], np.cumsum(widths)]) / widths.sum()
    count = min(_ORDINATES, len(residuals) // 2)
    turns = np.pi * np.arange(1, count + 1)[:, None]
    means = np.diff(np.sin(turns * edges), axis=1) / (turns * np.diff(edges))
    projections: Floats = np.sqrt(2) * means @ residuals
    return projections**2


@cache
def _spectra(count: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return spectra relative to frequency zero, one per row, and their frequencies."""
    frequency = np.arange(1, count + 1)
    rows, used = [], []
    for corner, floor in product(_CORNERS, _FLOORS):
        rows.append((1 / (1 + (frequency / corner) ** 2) + floor) / (1 + floor))
        used.append(min(max(round(min(corner, _MOST_USED)), _FEWEST_USED), count))
    return np.array(rows), np.array(used)
