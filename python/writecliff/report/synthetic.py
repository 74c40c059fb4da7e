"""Page for `synthesise`, which shows a trace and the workload generated from it."""

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
def synthetic_page(synthesised: Synthesised) -> Page:
    """Return the page that compares a trace with the workload generated from it."""
    shown = [
        ShownTrace(name, Characterised(Path(name), (), measures, (), ()))
        for name, measures in (("trace", synthesised.measures), ("workload", synthesised.synthetic))
    ]
    return Page(
        title=f"A workload like {synthesised.trace.name}",
        intro="",
        verdict=_verdict(synthesised),
        sections=(
            _side_by_side(synthesised),
            *([_on_drive(synthesised)] if synthesised.played is not None else []),
            *sections_of(shown),
            _model(synthesised),
        ),
        summary={**synthesised.mapping(), "trace": str(synthesised.trace)},
        disclosures=tuple(_disclosures(synthesised)),
    )


def _verdict(synthesised: Synthesised) -> str:
    rows, missed = [row for row in synthesised.rows if row.within is not None], synthesised.missed
    text = f"{len(rows) - len(missed)} of {len(rows)} measures are within their bounds"
    if synthesised.played is None:
        return f"{text}."
    differences = synthesised.played.differences()
    parts = [
        f"{name} {differences[key]:+.1f} %"
        for name, key in (("write amplification", "waf_pct"), ("p99.9", "p99_9_pct"))
        if differences[key] is not None
    ]
    return f"{text}; on {synthesised.played.target}: {', '.join(parts)} of the trace's."


def _side_by_side(synthesised: Synthesised) -> Section:
    rows = synthesised.rows
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
        "if the measure is a share, else in percent of the trace's. Measures without a bound are "
        "not checked.",
        table("", head, shown, "lrrrrl", data=data),
    )


def _on_drive(synthesised: Synthesised) -> Section:
    played = synthesised.played
    assert played is not None, "only a played workload has this section"
    passes = played.passes
    difference = Column("Difference", kinds.signed())
    head = ("", "Trace", "Workload", difference, "fio job", difference)
    rows = [
        (
            row.name, *(Quantity(v, Kind(row.text, row.unit)) for v in (row.trace, row.workload)),
            _difference(row.difference_pct), Quantity(row.job, Kind(row.text, row.unit)),
            _difference(row.job_difference_pct),
        )
        for row in rows_of(played)
    ]  # fmt: skip
    return section(
        "On a drive",
        f"{played.target}, cut down to {units.size(played.capacity_bytes)} with "
        f"{units.pct(played.overprovision_pct, 1)} of over-provisioning, filled and written at "
        "random once. "
        f"Each load ran on copies of {played.drives} such drives, which differ in their random "
        f"data. Write amplification is measured over {passes.measured} passes after "
        f"{passes.settling} passes for settling. Response times are measured over {passes.timed} "
        f"passes at the intended times (an open loop), after {passes.timed_settling} passes for "
        f"settling; they start at the intended arrival. {_spread(played)}",
        table("", head, rows),
    )


def _difference(difference_pct: float | None) -> float | str:
    return "" if difference_pct is None else difference_pct


def _spread(played: Played) -> str:
    spread = played.spread
    differences = [
        f"by {spread[key]:.1f} % in {name}"
        for name, key in (("write amplification", "waf_pct"), ("p99.9", "p99_9_pct"))
        if spread[key] is not None
    ]
    if not differences:
        return ""
    return f"Under the trace alone the drives differ {' and '.join(differences)}."


def _model(synthesised: Synthesised) -> Section:
    model = synthesised.model
    counts: list[tuple[str, Value]] = [
        ("I/Os of a pass", Quantity(model.ios, kinds.NUMBER)),
        ("Number of parameters", Quantity(model.numbers, kinds.NUMBER)),
        ("I/O streams", Quantity(len(model.streams.lengths), kinds.NUMBER)),
        *((name, Quantity(count, kinds.NUMBER)) for name, count in _parts(model)),
        ("Address range", Quantity(model.range_bytes, kinds.SIZE)),
        ("Address range of the trace", Quantity(synthesised.span_bytes, kinds.SIZE)),
        ("Seed", f"{model.seed}"),
    ]
    intro = "Contents of the workload file. Its size does not grow with the number of I/Os."
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


def _disclosures(synthesised: Synthesised) -> list[str]:
    disclosures = [f"{note[0].upper()}{note[1:]}." for note in synthesised.notes]
    disclosures += [f"The fio job file: {note}." for note in synthesised.mapping()["fio_notes"]]
    disclosures += [
        f"Skipped lines: {skipped.lines:,} ({skipped.reason})."
        for skipped in synthesised.skipped
        if not skipped.expected
    ]
    return disclosures
