"""`ReportModel`: a report as plain data. Procedures build it, renderers show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

T = TypeVar("T")
Level = Literal["good", "warning", "bad"]
Align = Literal["left", "right", "whole"]  # "whole": left, and never broken into two lines


@dataclass(frozen=True)
class Table:
    """Cells are finished text, with units."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: tuple[Align, ...]
    note: str = ""
    data: str = ""  # name of the `DataFile` with its numbers; "": its cells are made into one

    @classmethod
    def of(
        cls,
        title: str,
        items: Iterable[T],
        *columns: tuple[str, Align, Callable[[T], str]],
        note: str = "",
        data: str = "",
    ) -> Table:
        """A row for each item; a column is its header, its alignment and what makes its cell."""
        rows = tuple(tuple(cell(item) for _, _, cell in columns) for item in items)
        header, align = tuple(c[0] for c in columns), tuple(c[1] for c in columns)
        return cls(title, header, rows, align, note, data)


@dataclass(frozen=True)
class DataFile:
    """Numbers behind a figure, for download from inside the page."""

    name: str
    text: str  # CSV with one header line; units are in the column names


@dataclass(frozen=True)
class Figure:
    """A drawing with its caption. `svg` is a complete SVG element without outside references."""

    name: str  # of a file and an element: unique in the report, letters, digits and hyphens
    title: str  # without its number: "Plot n" is put before it
    svg: str
    description: str  # for readers who do not see it
    data: str  # name of the `DataFile` behind it
    wide: bool = False  # takes the whole width of the page (3-D columns, two panels)


def drawn(
    name: str, title: str, svg: str | None, data: str, description: str, *, wide: bool = False
) -> tuple[Figure, ...]:
    """The figure as a tuple of one, or of none where there was nothing to draw (`svg` is None):
    sections are put together by adding these."""
    return () if svg is None else (Figure(name, title, svg, description, data, wide),)


@dataclass(frozen=True)
class Section:
    """What is shown together. On paper each begins a new report page under the header block, and
    goes on to as many pages as it needs: two figures, or one and a table, fill a page."""

    title: str
    intro: str
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()  # shown before the figures
    subtitle: str = (
        ""  # of the page header, if it is not that of the report ("TP - SEQ 1024KiB R/W")
    )


@dataclass(frozen=True)
class Verdict:
    """The first box: in which state the drive is and what that means."""

    level: Level
    headline: str
    meaning: tuple[str, ...]
    table: Table | None = None


@dataclass(frozen=True)
class KeyFigure:
    label: str
    value: str
    unit: str
    note: str = ""


@dataclass(frozen=True)
class HeaderColumn:
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
    data: tuple[DataFile, ...]
    summary: dict[str, Any]  # what `summarise` returns, inside the page as JSON
    stamp: str = ""  # across every page: "NOT PTS-CONFORMANT"
