"""The page of `synthesise`: a trace and the workload that was made after it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from writecliff import units
from writecliff.report import kinds
from writecliff.report.colours import one_page
from writecliff.report.csvs import data_file
from writecliff.report.kinds import Kind
from writecliff.report.model import Section, section
from writecliff.report.pages import Page
from writecliff.report.table import Column, Quantity, Value, table
from writecliff.report.trace_workload import ShownTrace, sections_of
from writecliff.synthesis.played import rows_of
from writecliff.traces.characterise import Characterised

if TYPE_CHECKING:
    from writecliff.synthesis.played import Played
    from writecliff.synthesis.result import Synthesised
    from writecliff.workload.io_model import IoModel


@one_page()
def synthetic_page(found: Synthesised) -> Page:
    """The page."""
    shown = [
        ShownTrace(name, Characterised(Path(name), (), measures, (), ()))
        for name, measures in (("trace", found.measures), ("workload", found.synthetic))
    ]
    return Page(
        title=f"A workload like {found.trace.name}",
        intro="",
        verdict=_verdict(found),
        sections=(
            _side_by_side(found),
            *([_on_drive(found)] if found.played is not None else []),
            *sections_of(shown),
            _model(found),
        ),
        summary={**found.mapping(), "trace": str(found.trace)},
        disclosures=tuple(_disclosures(found)),
    )


def _verdict(found: Synthesised) -> str:
    rows, missed = [row for row in found.rows if row.within is not None], found.missed
    said = f"{len(rows) - len(missed)} of {len(rows)} measures are within their bounds"
    if found.played is None:
        return f"{said}."
    differences = found.played.differences()
    parts = [
        f"{name} {differences[key]:+.1f} %"
        for name, key in (("write amplification", "waf_pct"), ("p99.9", "p99_9_pct"))
        if differences[key] is not None
    ]
    return f"{said}; on {found.played.target}: {', '.join(parts)} of the trace's."


def _side_by_side(found: Synthesised) -> Section:
    rows = found.rows
    data = data_file(
        "side-by-side.csv",
        ("measure", "unit", "trace", "workload", "difference", "of", "bound", "within"),
        ((row.name, row.unit, row.trace, row.synthetic, row.difference, row.kind, row.bound,
          row.within) for row in rows),
    )  # fmt: skip
    shown = [
        (row.name, row.text(row.trace), row.text(row.synthetic), row.difference_text,
         row.bound_text, {None: "", True: "yes", False: "no"}[row.within])
        for row in rows
    ]  # fmt: skip
    head = ("", "Trace", "Workload", "Difference", "Bound", "Within")
    return section(
        "Side by side",
        "Measures of the trace and of a pass of the workload. Differences are in points of percent "
        "where the measure is a share, else in percent of the trace's. Without a bound nothing is "
        "promised.",
        table("", head, shown, "lrrrrl", data=data),
    )


def _on_drive(found: Synthesised) -> Section:
    played = found.played
    assert played is not None, "the section is of what was played"
    passes = played.passes
    difference = Column("Difference", kinds.signed())
    head = ("", "Trace", "Workload", difference, "fio job", difference)
    rows = [
        (
            one.name, *(Quantity(v, Kind(one.text, one.unit)) for v in (one.trace, one.workload)),
            _known(one.difference_pct), Quantity(one.job, Kind(one.text, one.unit)),
            _known(one.job_difference_pct),
        )
        for one in rows_of(played)
    ]  # fmt: skip
    return section(
        "On a drive",
        f"{played.target}, cut down to {units.size(played.capacity_bytes)} with "
        f"{units.pct(played.overprovision_pct, 1)} of over-provisioning, filled and written at "
        "random once. "
        f"Each was played on copies of {played.drives} such drives, which differ in their random "
        f"data: {passes.settling} passes without time to settle, {passes.measured} over which "
        f"write amplification is measured, {passes.timed_settling} at its own times, as an open "
        f"loop, to settle again, and {passes.timed} over which response times are. They count from "
        f"the intended arrival. {_spread(played)}",
        table("", head, rows),
    )


def _known(difference_pct: float | None) -> float | str:
    return "" if difference_pct is None else difference_pct


def _spread(played: Played) -> str:
    spread = played.spread
    said = [
        f"by {spread[key]:.1f} % in {name}"
        for name, key in (("write amplification", "waf_pct"), ("p99.9", "p99_9_pct"))
        if spread[key] is not None
    ]
    return f"Under the trace alone the drives differ {' and '.join(said)}." if said else ""


def _model(found: Synthesised) -> Section:
    model = found.model
    counts: list[tuple[str, Value]] = [
        ("I/Os of a pass", Quantity(model.ios, kinds.NUMBER)),
        ("Number of parameters", Quantity(model.numbers, kinds.NUMBER)),
        ("I/O streams", Quantity(len(model.streams.lengths), kinds.NUMBER)),
        *((name, Quantity(count, kinds.NUMBER)) for name, count in _parts(model)),
        ("Address range", Quantity(model.range_bytes, kinds.SIZE)),
        ("Address range of the trace", Quantity(found.span_bytes, kinds.SIZE)),
        ("Seed", f"{model.seed}"),
    ]
    intro = "What the workload file holds. A trace of many I/Os needs no more numbers than this."
    return section("The model", intro, table("", ("", ""), counts))


def _parts(model: IoModel) -> list[tuple[str, int]]:
    if model.sweeps is not None and model.demand is not None:
        return [
            ("Sweeps", len(model.sweeps.begin)),
            ("Intervals of demand", len(model.demand.ios)),
        ]
    return [
        ("States of the chain", len(model.states.stream)),
        ("Transitions", len(model.transitions.count)),
        ("Phases", len(set(model.periods.phase))),
        ("Periods", len(model.periods.ios)),
        ("Groups of addresses", len(model.places.count)),
    ]


def _disclosures(found: Synthesised) -> list[str]:
    said = [f"{note[0].upper()}{note[1:]}." for note in found.notes]
    said += [f"The fio job file: {note}." for note in found.mapping()["fio_notes"]]
    said += [
        f"Lines that are no I/Os: {one.lines:,} ({one.reason})."
        for one in found.skipped
        if not one.expected
    ]
    return said
