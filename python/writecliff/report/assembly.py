"""The report of any test, put together: of what the test has to show, and of what all show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from writecliff.report.disclosure import disclosures
from writecliff.report.latency import latency_figures
from writecliff.report.model import DataFile, Header, KeyFigure, ReportModel, Section, Verdict
from writecliff.report.parts import device_text, footer, notes
from writecliff.report.testdata import stamp_of

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.report.testdata import Reported


def assembled(
    data: Reported,
    *,
    title: str,
    header: Header,
    verdict: Verdict,
    key_figures: Sequence[KeyFigure],
    sections: Sequence[Section],
    files: Sequence[DataFile],
    summary: dict[str, Any],
    histogram: Histogram | None = None,
    latency_note: str = "",
    more_notes: Sequence[str] = (),
) -> ReportModel:
    """`title` is without the drive; `histogram` are the response times for the top of the page.

    Sections that have neither figures nor tables are left out.
    """
    return ReportModel(
        title=f"{title}: {device_text(data)}",
        header=header,
        disclosures=disclosures(data),
        verdict=verdict,
        key_figures=tuple(key_figures),
        latency_figures=latency_figures(histogram) if histogram is not None else (),
        latency_note=latency_note,
        sections=tuple(part for part in sections if part.figures or part.tables),
        notes=(*notes(data), *more_notes),
        footer=footer(data),
        data=tuple(files),
        summary=summary,
        stamp=stamp_of(data.manifest),
    )
