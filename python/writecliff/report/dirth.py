"""The DIRTH report, whose summary schema is "writecliff/dirth/1"."""

from __future__ import annotations

from writecliff.report.demand_intensity import DemandIntensityReport


class DirthReport(DemandIntensityReport):
    """Report for a DIRTH run."""
