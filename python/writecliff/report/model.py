"""Reports as plain data: tables, figures and sections, and the pages made of them.

Tests build a `ReportModel`, comparisons and suites a `pages.Page`; the renderers show either. A
figure and a table each carry the CSV file with their numbers, so that a page can offer every number
that it shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from writecliff.report.table import Data, DataFile, Table

Level = Literal["good", "warning", "bad"]


@dataclass(frozen=True)
class Figure:
    """A drawing with its caption. `svg` is a complete SVG element without outside references."""

    name: str  # of its element: unique in the report; letters, digits and hyphens
    title: str  # without its number: "Plot n" is put before it
    svg: str
    description: str  # for readers who do not see it
    data: Data
    wide: bool = False  # takes the whole width of the page (3-D columns, two panels)


@dataclass(frozen=True)
class Section:
    """What is shown together."""

    title: str
    intro: str
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()  # shown before the figures
    choices: tuple[str, ...] = ()  # series of its figures of which a reader may show one alone


def section(title: str, intro: str, *parts: Figure | Table | None) -> Section:
    """A section of `parts`; None stands for a figure that had nothing to draw and is left out."""
    return Section(
        title,
        intro,
        tuple(part for part in parts if isinstance(part, Figure)),
        tuple(part for part in parts if isinstance(part, Table)),
    )


@dataclass(frozen=True)
class Verdict:
    """The first box: in which state the drive is and what that means."""

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

    title: str  # says NOT STEADY STATE when it is not
    header: Header
    disclosures: tuple[str, ...]
    verdict: Verdict
    key_figures: tuple[KeyFigure, ...]
    latency_figures: tuple[KeyFigure, ...]
    latency_note: str
    sections: tuple[Section, ...]
    notes: tuple[str, ...]
    footer: tuple[tuple[str, str], ...]
    data: tuple[DataFile, ...]  # all files, those of figures and tables included
    summary: dict[str, Any]  # what `summarise` returns, inside the page as JSON
    stamp: str = ""  # across every page: "NOT PTS-CONFORMANT"
