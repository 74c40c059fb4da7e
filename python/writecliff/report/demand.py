"""The report of ECW/CBW and DIRTH: preconditioning, demand variation, operating points, histograms.

The fourteen plots of the standard in its order; each histogram with its confidence plot besides.
Cells and operating points are the procedure's (`procedures.demand_intensity`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.errors import StoreError
from writecliff.procedures.demand_intensity import PRECONDITION, ROUNDS_PHASE, DemandProcedure
from writecliff.procedures.operating_points import NAMES, Cell, Name
from writecliff.report import demand_figures as drawings
from writecliff.report import stages
from writecliff.report.assembly import assembled
from writecliff.report.csvs import csv_text, histogram_csv
from writecliff.report.demand_tables import cell_tables, composition_table, points_table
from writecliff.report.header import NOT_APPLICABLE, amount, header, setup
from writecliff.report.latency import latency_mapping, service_note
from writecliff.report.model import DataFile, Header, KeyFigure, ReportModel, Section, Verdict
from writecliff.report.style import house_style
from writecliff.report.summary import described, files
from writecliff.report.testdata import TestData, load
from writecliff.store.rundir import RunDirectory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from writecliff._native import Histogram
    from writecliff.procedures.model import StageHistory, StepRow

PRECONDITION_CSV = "precondition.csv"
SAMPLES_CSV = "samples.csv"
STEPS_CSV = "steps.csv"
CELLS_CSV = "cells.csv"


@dataclass(frozen=True)
class DemandData:
    """A run of ECW/CBW or DIRTH with what its procedure found."""

    data: TestData
    procedure: DemandProcedure[Any]
    precondition: StageHistory | None
    rounds: StageHistory | None
    cells: tuple[Cell, ...]
    points: Mapping[Name, Cell]
    histograms: Mapping[Name, Histogram]

    def point_rows(self, name: Name) -> tuple[list[StepRow], StepRow | None]:
        """Pre-writes and histogram step of an operating point, as far as the run got."""
        stage = self.data.stage(f"rth-{name}")
        rows = stage.rows if stage is not None else []
        done = [row for row in rows if row.label.startswith("response-time histogram")]
        return [row for row in rows if row not in done], done[0] if done else None


def load_demand(run: RunDirectory) -> DemandData:
    """Raises StoreError: another test's run, or nothing measured yet."""
    data = load(run)
    procedure = data.procedure
    if not isinstance(procedure, DemandProcedure):
        raise StoreError(f"{run.path} is a run of {procedure.name}", hint="not ECW, CBW or DIRTH")
    rounds = data.stage(ROUNDS_PHASE)
    known = rounds is not None and rounds.rounds_done > 0
    found = DemandData(
        data,
        procedure,
        data.stage(PRECONDITION),
        rounds,
        procedure.cells(data.history) if known else (),
        procedure.operating_points(data.history) if known else {},
        {},
    )
    histograms: dict[Name, Histogram] = {}
    for name in NAMES:
        row = found.point_rows(name)[1]
        histogram = data.histogram([row]) if row is not None else None
        if histogram is not None:
            histograms[name] = histogram
    return replace(found, histograms=histograms)


def report(run: RunDirectory) -> ReportModel:
    """The report of a run. Raises StoreError: another test's run, or nothing measured yet."""
    demand = load_demand(run)
    data, procedure = demand.data, demand.procedure
    parts = (demand.precondition, demand.rounds)
    most = demand.histograms.get("max")
    with house_style():
        sections = _sections(demand)
    return assembled(
        data,
        title=f"{procedure.title}{stages.title_flag(parts)}",
        header=_header(demand),
        verdict=_verdict(demand),
        key_figures=_key_figures(demand),
        histogram=most,
        latency_note=service_note(
            most,
            " at the MaxIOPS operating point",
            otherwise="No response times were measured at an operating point.",
        ),
        sections=sections,
        more_notes=_more_notes(demand),
        files=_data_files(demand),
        summary=_summary(demand),
    )


def summary_of(run: RunDirectory) -> dict[str, Any]:
    """What `report(run)` holds as its summary, without drawing anything."""
    return _summary(load_demand(run))


def _header(demand: DemandData) -> Header:
    data, o = demand.data, demand.procedure.options
    rows = (
        ("Data Pattern", setup(data, "data_pattern")),
        ("AR & Amount", amount(data)),
        ("Test Stimulus 1", setup(data, "test_stimulus")),
        ("R/W %", setup(data, "rw_mix")),
        ("TOIO - TC/QD", setup(data, "toio")),
        ("TOIO Order", setup(data, "order")),
        ("Steady State", stages.rounds_text(demand.rounds)),
        ("Test Stimulus 2", setup(data, "test_stimulus_2")),
        ("Pre Write / RTH", f"{o.histogram_prewrite_minutes:g} / {o.histogram_minutes:g} min"),
        ("ART Limit", setup(data, "toio_2", NOT_APPLICABLE)),
    )
    found = header(data, stages.rounds_text(demand.precondition), rows)
    return replace(found, page_title=f"{demand.procedure.title} (OPTIONAL) - Report Page")


def _verdict(demand: DemandData) -> Verdict:
    procedure = demand.procedure
    threads, depth = procedure.tracked
    meaning = [
        f"{procedure.mix} was run at {len(demand.cells)} loads from TC {threads}/QD {depth} down."
    ]
    if demand.cells and not demand.points:
        meaning.append(
            "NO OPERATING POINT: no load has an average response time below "
            f"{procedure.options.art_limit_ms:g} ms, so no histograms were taken."
        )
    parts = (("Preconditioning", demand.precondition), ("Demand variation", demand.rounds))
    return stages.verdict(parts, meaning)


def _key_figures(demand: DemandData) -> tuple[KeyFigure, ...]:
    state = stages.window_of(demand.rounds)
    threads, depth = demand.procedure.tracked
    steady = stages.state_of(demand.rounds) in ("steady", "left")
    found = [
        KeyFigure(
            f"{'Steady-state' if steady else 'NOT STEADY'} IOPS at TC{threads}/QD{depth}",
            units.number(state.average if state is not None else None),
            "",
            "average of the window",
        )
    ]
    for name in NAMES:
        cell = demand.points.get(name)
        if cell is None:
            found.append(KeyFigure(f"{name.capitalize()} IOPS", units.UNKNOWN, "", "no such point"))
            continue
        note = f"TC{cell.threads}/QD{cell.queue_depth}, ART {units.latency(cell.art_ns)}"
        found.append(KeyFigure(f"{name.capitalize()} IOPS", units.number(cell.iops), "", note))
    return tuple(found)


def _sections(demand: DemandData) -> tuple[Section, ...]:
    found = [
        _preconditioning(demand),
        Section(
            "Pre-writes between rounds",
            f"{demand.procedure.load} writes before the cells of every round.",
            drawings.prewrites(demand, STEPS_CSV),
        ),
        _loop(demand),
        Section(
            "Demand variation and demand intensity",
            "Every load is the average over "
            + (
                "the rounds of the measurement window."
                if demand.procedure.options.operating_points == "window"
                else "the last round alone."
            ),
            drawings.variation(demand, CELLS_CSV),
            cell_tables(demand.cells),
        ),
        Section(
            "Operating points",
            "Of loads with an average response time below "
            f"{demand.procedure.options.art_limit_ms:g} ms: the most IOPS, the fewest outstanding "
            "I/Os, and the load half way between them in IOPS.",
            tables=points_table(demand),
        ),
    ]
    found += [
        Section(
            f"Response times at {name.capitalize()} IOPS",
            _point_text(demand, name),
            drawings.point(demand, name, STEPS_CSV, histogram_name(name)),
            drawings.point_tables(demand, name),
        )
        for name in NAMES
    ]
    if demand.data.manifest.procedure == "ecw":
        found.append(
            Section(
                "The composite workload",
                "Block sizes and zones of addresses of JESD219; "
                f"{setup(demand.data, 'alignment')}.",
                tables=composition_table(),
            )
        )
    return tuple(found)


def _preconditioning(demand: DemandData) -> Section:
    stage = demand.precondition
    if stage is None:
        return Section("Preconditioning", "")
    threads, depth = demand.procedure.tracked
    load = f"TC{threads}-QD{depth}"
    return Section(
        "Preconditioning",
        f"{demand.procedure.load} writes; the first step of each round is its sample.",
        stages.convergence_figures(
            stage,
            "precondition",
            f"Pre Conditioning IOPS ({load})",
            "Pre Conditioning steady-state check",
            PRECONDITION_CSV,
        ),
        stages.determination_tables(stage, "Preconditioning: steady-state determination"),
    )


def _loop(demand: DemandData) -> Section:
    stage = demand.rounds
    if stage is None or not stage.rounds_done:
        return Section("Steady state", "")
    threads, depth = demand.procedure.tracked
    check = stages.convergence_figures(
        stage, "dv", "", f"DV steady-state check TC{threads}-QD{depth}", SAMPLES_CSV
    )[1:]
    return Section(
        "Steady state of the demand variation",
        f"Tracking variable: IOPS of {demand.procedure.mix} at TC{threads}/QD{depth}.",
        drawings.tracking(demand, STEPS_CSV) + check,
        stages.determination_tables(stage, "Demand variation: steady-state determination"),
    )


def _point_text(demand: DemandData, name: Name) -> str:
    cell = demand.points.get(name)
    if cell is None:
        return ""
    return (
        f"TC{cell.threads}/QD{cell.queue_depth}: {demand.procedure.load} writes, then "
        f"{demand.procedure.mix}, every I/O timed."
    )


def _more_notes(demand: DemandData) -> tuple[str, ...]:
    if not demand.cells or any(cell.cpu_pct is not None for cell in demand.cells):
        return ()
    simulated = demand.data.manifest.device.simulated
    why = "a simulated drive has no host" if simulated else "it was not measured"
    return (f"The plot of system CPU utilisation is left out: {why}.",)


def histogram_name(name: Name) -> str:
    return f"histogram-{name}.csv"


def _data_files(demand: DemandData) -> tuple[DataFile, ...]:
    found = [DataFile(STEPS_CSV, _steps_csv(demand.data))]
    for stage, name in ((demand.precondition, PRECONDITION_CSV), (demand.rounds, SAMPLES_CSV)):
        file = stages.samples_csv(stage, name) if stage is not None else None
        found += [file] if file is not None else []
    if demand.cells:
        head = ("threads", "queue_depth", "iops", "art_ns", "cpu_busy_pct")
        rows = ((c.threads, c.queue_depth, c.iops, c.art_ns, c.cpu_pct) for c in demand.cells)
        found.append(DataFile(CELLS_CSV, csv_text(head, rows)))
    found += [
        DataFile(histogram_name(name), histogram_csv(histogram))
        for name, histogram in demand.histograms.items()
    ]
    return tuple(found)


def _steps_csv(data: TestData) -> str:
    head = ("phase", "round", "step", "label", "threads", "queue_depth", "started_ns", "elapsed_ns",
            "ios", "bytes", "iops", "latency_mean_ns", "latency_max_ns", "waf")  # fmt: skip
    return csv_text(head, ([getattr(row, name) for name in head] for row in data.rows))


def _summary(demand: DemandData) -> dict[str, Any]:
    """Schemas "writecliff/ecw/1" and "writecliff/dirth/1"; see docs/reference/json.md."""
    data, procedure = demand.data, demand.procedure
    threads, depth = procedure.tracked
    return {
        "schema": f"writecliff/{procedure.name}/1",
        **described(data),
        "workload": {
            "name": procedure.load,
            "read_pct": procedure.read_pct,
            "tracked_threads": threads,
            "tracked_queue_depth": depth,
        },
        "preconditioning": stages.steady_mapping(demand.precondition),
        "steady_state": stages.steady_mapping(demand.rounds),
        "cells": [_cell_mapping(cell) for cell in demand.cells],
        "operating_points": {name: _point_mapping(demand, name) for name in NAMES},
        **files(data),
    }


def _cell_mapping(cell: Cell) -> dict[str, Any]:
    return {
        "threads": cell.threads,
        "queue_depth": cell.queue_depth,
        "iops": cell.iops,
        "art_ns": cell.art_ns if cell.art_ns == cell.art_ns else None,
        "cpu_busy_pct": cell.cpu_pct,
    }


def _point_mapping(demand: DemandData, name: Name) -> dict[str, Any] | None:
    """None: there is no such operating point."""
    cell, histogram = demand.points.get(name), demand.histograms.get(name)
    if cell is None:
        return None
    latency = latency_mapping(histogram) if histogram is not None else None
    return {**_cell_mapping(cell), "latency": latency}
