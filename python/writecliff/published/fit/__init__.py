"""Estimating free parameters of drives from measured figures.

`specification.py` says what is varied, `problem.py` and `simulations.py` simulate, `residuals.py`
judges, `solve.py` finds the values and how well the figures determine them, `next_figures.py` what
to measure where they do not, `cross_validation.py` tells how well they predict. `progress.py` says
what is going on, `bench.py` how long it takes.
"""

from __future__ import annotations

from writecliff.published.fit.cross_validation import CrossValidation, Prediction
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
    "CrossValidation",
    "Estimate",
    "Fit",
    "FitResult",
    "Parameter",
    "Prediction",
    "Specification",
    "read_specification",
    "shipped_fits",
)
