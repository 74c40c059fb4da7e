"""The report of DIRTH; summary "writecliff/dirth/1"."""

from __future__ import annotations

from writecliff.report.demand_intensity import DemandIntensityReport


class DirthReport(DemandIntensityReport):
    """The report of a run of DIRTH."""
