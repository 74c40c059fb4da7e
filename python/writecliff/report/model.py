"""Reports as plain data: tables, figures, sections, and pages that contain them.

Tests build a `ReportModel`, whereas comparisons and suites build a `pages.Page`. The renderers
accept a `ReportModel` or a `pages.Page`. Each figure and table includes a CSV file with its data,
so a page offers every number that it shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from writecliff.report.table import Data, DataFile, Table

Level = Literal["good", "warning", "bad"]


@dataclass(frozen=True)
class Figure:
    """A drawing with a caption.

    `svg` is a complete SVG element without external references.
    """

    name: str  # Element name, unique in the report, made of letters, digits and hyphens.
    title: str  # Title excluding the preceding "Plot n".
    svg: str
    description: str  # Alternative text of the figure.
    data: Data
    wide: bool = False  # `True` if the figure spans the page width (3-D columns, two panels).
    # Switch name. Figures with the same switch name are views of one curve, and the page displays
    # one view.
    switch: str = ""
    view: str = ""  # View label, such as "time, log".


@dataclass(frozen=True)
class Section:
    """A heading followed by text, tables and figures."""

    title: str
    intro: str
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()  # Tables displayed before the figures.
    choices: tuple[str, ...] = ()  # Series that a reader can display alone.


def views(switch: str, figures: Mapping[str, Figure | None]) -> tuple[Figure, ...]:
    """Return figures as labelled views of a single figure; None stands for an empty figure.

    A single figure needs no switch.
    """
    drawn = {label: figure for label, figure in figures.items() if figure is not None}
    if len(drawn) == 1:
        return tuple(drawn.values())
    return tuple(replace(figure, switch=switch, view=label) for label, figure in drawn.items())


def section(title: str, intro: str, *parts: Figure | Table | None) -> Section:
    """Return a section that consists of `parts`, omitting None (an empty figure)."""
    return Section(
        title,
        intro,
        tuple(part for part in parts if isinstance(part, Figure)),
        tuple(part for part in parts if isinstance(part, Table)),
    )


def with_lead(sections: Sequence[Section], name: str = "") -> tuple[Section, tuple[Section, ...]]:
    """Return a section with one figure or a switch's views, and the remaining sections.

    The lead includes its section's introduction if the section contains nothing else.

    Args:
        sections: Sections of the page.
        name: Name of the figure or of the switch; the first figure if no figure has it.
    """
    # One series selector controls all figures in a section, so these figures stay together.
    figures = [figure for part in sections if not part.choices for figure in part.figures]
    if not figures:
        return Section("", ""), tuple(sections)
    lead = next((f for f in figures if name in (f.name, f.switch) and name), figures[0])
    moved = tuple(f for f in figures if f is lead or (lead.switch and f.switch == lead.switch))
    rest, intro = [], ""
    for part in sections:
        left = replace(part, figures=tuple(f for f in part.figures if f not in moved))
        if left.figures or left.tables:
            rest.append(left)
        else:
            intro = part.intro
    return Section("", intro, moved), tuple(rest)


@dataclass(frozen=True)
class Verdict:
    """The first box on the page, which shows the drive state and its meaning."""

    level: Level
    headline: str
    meaning: tuple[str, ...]


@dataclass(frozen=True)
class KeyFigure:
    """A result shown at the top of the page."""

    label: str
    value: str
    unit: str
    note: str = ""


@dataclass(frozen=True)
class HeaderColumn:
    """A header block column with ten labels and their values."""

    title: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Header:
    """Header block as defined by the standard."""

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
    """Report of a single run."""

    title: str  # Title, including "not steady" if steady state was not reached.
    question: str  # Question that the test answers.
    finding: str  # Answer to the question, in at most 20 words.
    # Section with the figure (or its views) at the top of the page; not repeated in `sections`.
    lead: Section
    header: Header
    disclosures: tuple[str, ...]
    verdict: Verdict
    key_figures: tuple[KeyFigure, ...]
    latency_figures: tuple[KeyFigure, ...]
    latency_note: str
    sections: tuple[Section, ...]
    notes: tuple[str, ...]
    footer: tuple[tuple[str, str], ...]
    data: tuple[DataFile, ...]  # All data files, including those of figures and tables.
    summary: dict[str, Any]  # Result of `summarise`, embedded in the page as JSON.
    stamp: str = ""  # Page badge, such as "NOT PTS-CONFORMANT".

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All figures, in page order."""
        return (*self.lead.figures, *(figure for part in self.sections for figure in part.figures))
