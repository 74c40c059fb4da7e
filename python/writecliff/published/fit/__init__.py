"""Estimating free parameters of drives from measured figures.

`specification.py` says what is varied, `problem.py` and `simulations.py` simulate, `residuals.py`
judges, `solve.py` finds the values, how well the figures determine them, and what to measure where
they do not. `progress.py` reports the progress.
"""

from __future__ import annotations

from writecliff.published.fit.solve import Estimate, Fit, FitResult
from writecliff.published.fit.specification import (
    FITS,
    Parameter,
    Specification,
    read_specification,
    shipped_fits,
)

__all__ = (
    "FITS",
    "Estimate",
    "Fit",
    "FitResult",
    "Parameter",
    "Specification",
    "read_specification",
    "shipped_fits",
)
