"""Estimating free parameters of drives from measured figures.

`specification.py` says what is varied, `problem.py` simulates, `residuals.py` judges, `solve.py`
finds the values and how well the figures determine them, `held_out.py` tells how well they predict.
"""

from __future__ import annotations

from writecliff.published.fit.held_out import cross_validate
from writecliff.published.fit.solve import Estimate, Fit, FitResult
from writecliff.published.fit.specification import (
    FITS,
    Parameter,
    Specification,
    read_specification,
)

__all__ = (
    "FITS",
    "Estimate",
    "Fit",
    "FitResult",
    "Parameter",
    "Specification",
    "cross_validate",
    "read_specification",
)
