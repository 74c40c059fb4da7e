"""Quantiles of Student's t distribution.

SciPy provides these quantiles, but importing SciPy takes longer than most commands.
"""

from __future__ import annotations

from functools import cache
from math import atan, cos, pi, sin, sqrt

_STEPS = 60  # Number of bracket halvings, which exceeds the resolution of a double.


@cache
def two_sided_t(share: float, degrees: int) -> float:
    """Return the t for which the fraction `share` of the distribution lies between -t and t.

    `degrees` (of freedom) must be at least 1. Source: The solution uses Abramowitz and Stegun,
    Handbook of Mathematical Functions, 26.7.3 and 26.7.4, with bisection over the angle atan(t /
    sqrt(degrees)).
    """
    low, high = 0.0, pi / 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _share_within(middle, degrees) < share:
            low = middle
        else:
            high = middle
    return sqrt(degrees) * sin(low) / cos(low)


def two_sided_p(t: float, degrees: int) -> float:
    """Return the probability of a value beyond t or -t, where `degrees` must be at least 1."""
    return max(0.0, 1.0 - _share_within(atan(abs(t) / sqrt(degrees)), degrees))


def _share_within(angle: float, degrees: int) -> float:
    """Return the fraction of the distribution within t = sqrt(degrees) * tan(angle) of 0."""
    odd = degrees % 2
    term = cos(angle) if odd else 1.0
    total = 0.0
    for step in range(1 + odd, degrees, 2):
        total += term
        term *= cos(angle) ** 2 * step / (step + 1)
    if odd:
        return 2 / pi * (angle + sin(angle) * total)
    return sin(angle) * total
