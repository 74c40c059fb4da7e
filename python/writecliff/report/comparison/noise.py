"""Significance test for the difference between two values of a figure.

The test is Welch's (Biometrika 34, 1947), applied to the logarithms of the values. Welch's test
compares the difference with the standard errors implied by both 95 % intervals, using the
intervals' degrees of freedom. Each value's error is taken from the side of its interval that faces
the other value, because percentile intervals are not symmetric (Zou and Donner, Statistics in
Medicine 27, 2008).

In a comparison of 20 figures, at least one figure would often differ by chance at a 5 % level. The
level therefore applies to the whole comparison: with Holm's method (Scandinavian Journal of
Statistics 6, 1979), two equal drives show a significant difference in any figure with a probability
of at most 5 %.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, log, sqrt
from typing import NamedTuple

from writecliff.report.headline import Headline
from writecliff.report.student_t import two_sided_p, two_sided_t

LEVEL = 0.05  # Significance level of a whole comparison.
_SHARE = 0.95  # Confidence level of an interval.


def probability(first: Headline, second: Headline) -> float | None:
    """Return the probability that equal drives differ by at least this much.

    The result is `None` if either value lacks an interval with degrees of freedom.
    """
    low, high = sorted((first, second), key=lambda item: item.value)
    below, above = _error(low, upper=True), _error(high, upper=False)
    if below is None or above is None:
        return None
    variance = below.value**2 + above.value**2
    difference = log(high.value / low.value) if low.value > 0 else inf
    if low.value == high.value or variance == inf:
        return 1.0
    if variance == 0 or difference == inf:
        return 0.0
    shares = below.value**4 / below.degrees + above.value**4 / above.degrees
    return two_sided_p(difference / sqrt(variance), max(1, int(variance**2 / shares)))


class _Error(NamedTuple):
    """Standard error of a value's logarithm on one side."""

    value: float
    degrees: float


def _error(item: Headline, *, upper: bool) -> _Error | None:
    interval = item.interval
    if interval is None or interval.degrees is None:
        return None
    if item.value <= 0 or interval.low <= 0:
        return _Error(inf if interval.low < interval.high else 0.0, interval.degrees)
    ratio = interval.high / item.value if upper else item.value / interval.low
    t = two_sided_t(_SHARE, max(1, int(interval.degrees)))
    return _Error(max(log(ratio), 0.0) / t, interval.degrees)


def level_of(probabilities: Iterable[float]) -> float:
    """Return the largest probability for which a difference counts as significant.

    All differences in a comparison are then tested jointly at `LEVEL` (Holm's method).
    """
    ordered = sorted(probabilities)
    level = 0.0
    for number, probability in enumerate(ordered):
        if probability > LEVEL / (len(ordered) - number):
            break
        level = probability
    return level
