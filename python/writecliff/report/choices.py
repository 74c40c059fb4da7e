"""The section that names what a test of the standard does where sources of the standard differ."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from writecliff.procedures.pts import PtsProcedure
from writecliff.procedures.registry import entry_of
from writecliff.report.model import Section, section
from writecliff.report.table import Column, table
from writecliff.units import UNKNOWN

if TYPE_CHECKING:
    from writecliff.procedures.sources import Choice
    from writecliff.report.testdata import TestData

TITLE = "Where sources of the standard differ"
_INTRO = (
    "The full text of the standard is not public. Its quotations, the SNIA primer and published "
    "programs that follow it differ at these points; none of them is a deviation."
)


def choices_section(data: TestData) -> Section:
    """The choices of a run; an empty section, which is left out, for other tests."""
    found = _choices(data)
    if not found:
        return section(TITLE, "")
    head = (
        Column("Point", key="point"),
        Column("Sources, the default first", key="sources"),
        Column("This run", key="here"),
        Column("Option", key="option"),
    )
    rows = [(one.what.capitalize(), one.sources, one.here, one.option or UNKNOWN) for one in found]
    return section(TITLE, _INTRO, table(TITLE, head, rows, file="choices.csv"))


def choices_mapping(data: TestData) -> list[dict[str, Any]]:
    """The choices in the summary for programs."""
    return [asdict(one) for one in _choices(data)]


def _choices(data: TestData) -> tuple[Choice, ...]:
    procedure = data.procedure
    if not isinstance(procedure, PtsProcedure) or entry_of(data.manifest.procedure).campaign:
        return ()
    return procedure.choices()
