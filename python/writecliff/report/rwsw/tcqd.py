"""Report for the thread count and queue depth sweep, with the summary "writecliff/tcqd/1"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from writecliff.procedures.rwsw.tcqd import Tcqd
from writecliff.report.demand_intensity import DemandIntensityReport
from writecliff.report.model import KeyFigure, Section
from writecliff.report.rwsw.capture_view import CaptureReport


class TcqdReport(CaptureReport, DemandIntensityReport):
    """Report for a thread count and queue depth sweep."""

    procedure: Tcqd

    def sections(self) -> Iterator[Section]:
        """Yield the sections about the capture, followed by those about demand intensity."""
        yield from self.capture_sections()
        yield from DemandIntensityReport.sections(self)

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield the operating points, followed by the capture."""
        yield from DemandIntensityReport.key_figures(self)
        yield from self.capture_figures()

    def results(self) -> dict[str, Any]:
        """Return the demand intensity, followed by the capture."""
        return {**DemandIntensityReport.results(self), **self.capture_results()}

    def notes(self) -> tuple[str, ...]:
        """Return the notes of both base reports."""
        return (*DemandIntensityReport.notes(self), *CaptureReport.notes(self))
