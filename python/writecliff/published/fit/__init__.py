"""Estimation of free drive parameters from measured figures.

`specification.py` reads the parameters to vary, `problem.py` and `simulations.py` simulate, and
`residuals.py` weights the deviations. `solve.py` searches for the values, determines their standard
errors, and suggests measurements for values that the figures do not determine. `progress.py`
reports the progress.
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
