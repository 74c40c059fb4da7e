"""Reports as plain data: tables, figures and sections, and the pages made of them.

Tests build a `ReportModel`, comparisons and suites a `pages.Page`; the renderers show either. Each
figure and table carries the CSV file with its numbers, so a page offers every number that it shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from writecliff.report.table import Data, DataFile, Table

Level = Literal["good", "warning", "bad"]


@dataclass(frozen=True)
class Figure:
    """A drawing with its caption. `svg` is a complete SVG element without outside references."""

    name: str  # of the element: unique in the report; letters, digits and hyphens
    title: str  # without the number: "Plot n" precedes it
    svg: str
    description: str  # alternative text
    data: Data
    wide: bool = False  # spans the whole width of the page (3-D columns, two panels)


@dataclass(frozen=True)
class Section:
    """A heading with text, tables and figures."""

    title: str
    intro: str
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()  # shown before the figures
    choices: tuple[str, ...] = ()  # series that a reader can show alone


def section(title: str, intro: str, *parts: Figure | Table | None) -> Section:
    """Return a section of `parts`; None stands for an empty figure, which is omitted."""
    return Section(
        title,
        intro,
        tuple(part for part in parts if isinstance(part, Figure)),
        tuple(part for part in parts if isinstance(part, Table)),
    )


@dataclass(frozen=True)
class Verdict:
    """The first box of the page: the state of the drive and what it means."""

    level: Level
    headline: str
    meaning: tuple[str, ...]


@dataclass(frozen=True)
class KeyFigure:
    """A result at the top of the page."""

    label: str
    value: str
    unit: str
    note: str = ""


@dataclass(frozen=True)
class HeaderColumn:
    """A column of the header block: ten labels with their values."""

    title: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Header:
    """The standard's header block."""

    test_run_date: str
    report_run_date: str
    page_title: str
    specification: str
    subtitle: str
    revision: str
    vendor: str
    model: str
    sponsor: str
    columns: tuple[HeaderColumn, ...]


@dataclass(frozen=True)
class ReportModel:
    """The report of one run."""

    title: str  # includes NOT STEADY STATE if it was not reached
    header: Header
    disclosures: tuple[str, ...]
    verdict: Verdict
    key_figures: tuple[KeyFigure, ...]
    latency_figures: tuple[KeyFigure, ...]
    latency_note: str
    sections: tuple[Section, ...]
    notes: tuple[str, ...]
    footer: tuple[tuple[str, str], ...]
    data: tuple[DataFile, ...]  # all files, including those of figures and tables
    summary: dict[str, Any]  # the result of `summarise`, embedded in the page as JSON
    stamp: str = ""  # across every page: "NOT PTS-CONFORMANT"
