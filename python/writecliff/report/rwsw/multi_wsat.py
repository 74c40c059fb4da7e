"""Report for Multi-WSAT, with the summary "writecliff/multi-wsat/1"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from writecliff.procedures.rwsw.multi_wsat import MultiWsat
from writecliff.report import kinds
from writecliff.report.model import KeyFigure, Section, section
from writecliff.report.rwsw.capture_view import CaptureReport
from writecliff.report.table import Column, table
from writecliff.report.wsat import WsatReport


class MultiWsatReport(CaptureReport, WsatReport):
    """Report for a Multi-WSAT run."""

    procedure: MultiWsat

    def sections(self) -> Iterator[Section]:
        """Yield sections on the capture, the drive compared with it, and the saturation."""
        yield from self.capture_sections()
        yield self._against()
        yield from WsatReport.sections(self)

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield the saturation's key figures, followed by the capture's key figures."""
        yield from WsatReport.key_figures(self)
        yield from self.capture_figures()

    def _against(self) -> Section:
        """Return the drive's IOPS alongside the capture's IOPS."""
        wsat, mean = self.wsat, self.mean_iops
        label = "steady state" if wsat.view.steady else "last window, not steady"
        rows = [
            ("Drive, " + label, wsat.saturated_iops),
            ("Drive, fresh out of box", wsat.fob_iops),
        ]
        rows += [("Capture, busiest time step", value) for value in (self.peak_iops,) if value]
        rows += [("Capture, mean", value) for value in (mean,) if value]
        cells = [(name, iops, iops / mean if mean else None) for name, iops in rows]
        intro = (
            "The drive ran the applied workload at full speed at "
            f"{self.procedure.toio}; the capture shows the load of its host."
        )
        head = ("", Column("IOPS", kinds.NUMBER), Column("Of the capture's mean", kinds.TIMES))
        return section("The drive against the capture", intro, table("", head, cells))

    def results(self) -> dict[str, Any]:
        """Return the saturation results, followed by the capture."""
        return {**WsatReport.results(self), **self.capture_results()}

    def notes(self) -> tuple[str, ...]:
        """Return the notes of both base reports."""
        return (*WsatReport.notes(self), *CaptureReport.notes(self))
