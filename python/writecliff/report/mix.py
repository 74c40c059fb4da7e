"""The report of the mix test; summary "writecliff/mix/1"."""

from __future__ import annotations

from writecliff.report.iops import IopsReport


class MixReport(IopsReport):
    """The report of a run of the mix test."""
