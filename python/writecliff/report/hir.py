"""The report of HIR: preconditioning, IOPS of the bursts by wait, return to the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff import units
from writecliff.errors import StoreError
from writecliff.procedures.hir import PRECONDITION, Hir, baseline_phase, wait_phase
from writecliff.report import stages
from writecliff.report.assembly import assembled
from writecliff.report.axes import Axis, Line, time_axis
from writecliff.report.csvs import csv_text
from writecliff.report.header import amount, header, setup
from writecliff.report.latency import service_note
from writecliff.report.model import DataFile, Header, KeyFigure, ReportModel, Section, Table, drawn
from writecliff.report.plots import Reference, lines
from writecliff.report.series import series
from writecliff.report.style import house_style
from writecliff.report.summary import described, files
from writecliff.report.testdata import TestData, load
from writecliff.store.rundir import RunDirectory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from writecliff._native import Histogram
    from writecliff.procedures.model import StageHistory, StepRow
    from writecliff.procedures.steady import SteadyState
    from writecliff.report.series import Numbers

PRECONDITION_CSV = "precondition.csv"
BURSTS_CSV = "bursts.csv"
_ACTIVE = 0.02  # of the best interval of a burst: below, an interval only sees its last I/Os end


@dataclass(frozen=True)
class Points:
    """IOPS of bursts or of steps, by the time since the first burst of the run, and by the time
    spent writing since the first burst of the wait state."""

    time_ns: Numbers
    writing_ns: Numbers
    iops: Numbers


@dataclass(frozen=True)
class WaitState:
    """One wait, as far as the run got."""

    wait_s: float
    number: float  # the standard's: the wait in bursts
    bursts: Points
    baseline: Points

    @property
    def label(self) -> str:
        return f"{self.number:g}: {self.wait_s:g} s"

    @property
    def burst_iops(self) -> float | None:
        """Mean over the bursts (access A)."""
        return float(self.bursts.iops.mean()) if self.bursts.iops.size else None

    @property
    def best_iops(self) -> float | None:
        return float(self.bursts.iops.max()) if self.bursts.iops.size else None

    @property
    def baseline_iops(self) -> float | None:
        """Of the last five steps without pauses."""
        return float(self.baseline.iops[-5:].mean()) if self.baseline.iops.size else None


@dataclass(frozen=True)
class HirData:
    """A run of HIR."""

    data: TestData
    procedure: Hir

    @property
    def precondition(self) -> StageHistory | None:
        return self.data.stage(PRECONDITION)

    @property
    def tracked(self) -> bool:
        return bool(self.procedure.options.reading == "steady")

    @cached_property
    def reference_iops(self) -> float | None:
        """What waits are compared with: the window of the preconditioning, else its last step."""
        state = stages.window_of(self.precondition)
        if state is not None:
            return state.average
        rows = self.precondition.rows if self.precondition is not None else []
        return rows[-1].iops if rows else None

    @cached_property
    def waits(self) -> tuple[WaitState, ...]:
        """In the order of the run; those that were begun."""
        found, zero_ns = [], None
        for wait_s in self.procedure.options.waits_seconds:
            stage = self.data.stage(wait_phase(wait_s))
            if stage is None or not stage.rows:
                break
            zero_ns = stage.rows[0].started_ns if zero_ns is None else zero_ns
            after = self.data.stage(baseline_phase(wait_s))
            bursts = self._bursts(wait_s, stage.rows, zero_ns)
            written_ns = len(bursts.iops) * self.procedure.options.burst_seconds * 1e9
            rows = after.rows if after is not None else []
            baseline = _steps(rows, zero_ns, written_ns)
            found.append(WaitState(wait_s, self.procedure.wait_state(wait_s), bursts, baseline))
        return tuple(found)

    def _bursts(self, wait_s: float, rows: Sequence[StepRow], zero_ns: int) -> Points:
        """Each burst with what was completed in its time and until the next one."""
        burst_ns = self.procedure.options.burst_seconds * 1e9
        period_ns = burst_ns + wait_s * 1e9
        time, iops = [], []
        intervals = series(self.data, rows)
        first_ns = rows[0].started_ns
        for row, part in zip(rows, self.procedure.burst_steps, strict=False):
            mine = intervals.seq == self.data.seq(row)
            begin = intervals.begin_ns[mine] - (row.started_ns - first_ns)
            ios, width = intervals.ios[mine], intervals.width_ns[mine]
            place = np.minimum(((begin + width / 2) // period_ns).astype(np.int64), part.count - 1)
            for cycle in range(part.count):
                here = place == cycle
                time.append(row.started_ns - zero_ns + cycle * period_ns + burst_ns / 2)
                iops.append(_burst_iops(ios[here], width[here], burst_ns))
        writing = (np.arange(len(iops), dtype=np.float64) + 0.5) * burst_ns
        return Points(np.array(time, dtype=np.float64), writing, np.array(iops, dtype=np.float64))


def _burst_iops(ios: Numbers, width_ns: Numbers, burst_ns: float) -> float:
    """I/Os over the time of the burst, or longer if the load generator did not stop in time."""
    rate = np.divide(ios, width_ns, out=np.zeros_like(ios), where=width_ns > 0)
    if not rate.size or not rate.max():
        return 0.0
    # Intervals of a second cannot tell where in them a burst ended: only what is beyond it counts.
    active_ns = float(width_ns[rate >= _ACTIVE * rate.max()].sum())
    longest = float(width_ns.max())
    over_ns = active_ns if active_ns > burst_ns + 2 * longest else burst_ns
    return float(ios.sum()) / over_ns * 1e9


def _steps(rows: Sequence[StepRow], zero_ns: int, written_ns: float) -> Points:
    middle = np.array([row.started_ns - zero_ns + row.elapsed_ns / 2 for row in rows], dtype=float)
    taken = np.cumsum([row.elapsed_ns for row in rows]) if rows else np.array([])
    writing = np.array([written_ns + end - row.elapsed_ns / 2
                        for end, row in zip(taken, rows, strict=True)], dtype=float)  # fmt: skip
    return Points(middle, writing, np.array([row.iops for row in rows], dtype=float))


def load_hir(run: RunDirectory) -> HirData:
    """Raises StoreError: another test's run, or nothing measured yet."""
    data = load(run)
    if not isinstance(data.procedure, Hir):
        raise StoreError(f"{run.path} is a run of {data.procedure.name}", hint="not of HIR")
    return HirData(data, data.procedure)


def report(run: RunDirectory) -> ReportModel:
    """The report of a run. Raises StoreError: another test's run, or nothing measured yet."""
    hir = load_hir(run)
    data = hir.data
    histogram = _bursts_histogram(hir)
    parts = (hir.precondition,) if hir.tracked else ()
    with house_style():
        sections = (_preconditioning(hir), _recovery(hir))
    return assembled(
        data,
        title=f"{hir.procedure.title}{stages.title_flag(parts)}",
        header=_header(hir),
        verdict=stages.verdict(
            (("Preconditioning", hir.precondition),) if hir.tracked else (), _meaning(hir)
        ),
        key_figures=_key_figures(hir),
        histogram=histogram,
        latency_note=service_note(histogram, ": all bursts", otherwise="No bursts were measured."),
        sections=sections,
        files=_data_files(hir),
        summary=_summary(hir),
    )


def summary_of(run: RunDirectory) -> dict[str, Any]:
    """What `report(run)` holds as its summary, without drawing anything."""
    return _summary(load_hir(run))


def _bursts_histogram(hir: HirData) -> Histogram | None:
    found = [hir.data.stage(wait_phase(state.wait_s)) for state in hir.waits]
    rows = [row for stage in found if stage is not None for row in stage.rows]
    return hir.data.histogram(rows) if rows else None


def _header(hir: HirData) -> Header:
    data = hir.data
    rows = (
        ("Data Pattern", setup(data, "data_pattern")),
        ("AR & Amount", amount(data)),
        ("Write Stimulus", setup(data, "test_stimulus")),
        ("TOIO - TC/QD", setup(data, "toio")),
        ("Durations", setup(data, "write_duration")),
        ("Idle State", setup(data, "idle_state")),
        ("Durations", setup(data, "idle_durations")),
        ("Wait States", setup(data, "wait_states")),
        ("Return to Baseline", f"{hir.procedure.options.write_minutes:g} min"),
        ("", ""),
    )
    return header(data, stages.rounds_text(hir.precondition) if hir.tracked else "N/A", rows)


def _meaning(hir: HirData) -> list[str]:
    best = max(hir.waits, key=lambda state: state.burst_iops or 0, default=None)
    reference = hir.reference_iops
    if best is None or best.burst_iops is None or not reference:
        return ["The run did not get to the bursts."]
    return [
        f"With pauses of {best.wait_s:g} s the bursts ran at {units.number(best.burst_iops)} IOPS "
        f"on average, {best.burst_iops / reference:.2f} times the {units.number(reference)} IOPS "
        "of the preconditioned drive without pauses."
    ]


def _key_figures(hir: HirData) -> tuple[KeyFigure, ...]:
    state = stages.window_of(hir.precondition)
    steady = stages.state_of(hir.precondition) in ("steady", "left")
    found = [
        KeyFigure(
            "Steady-state IOPS" if steady else "IOPS, not steady",
            units.number(hir.reference_iops),
            "",
            "average of the window" if state is not None else "last step of the preconditioning",
        )
    ]
    for wait in hir.waits:
        ratio = _ratio(wait.burst_iops, hir.reference_iops)
        note = "of bursts" if ratio is None else f"{ratio:.2f} x without pauses"
        label, value = f"Pauses of {wait.wait_s:g} s", units.number(wait.burst_iops)
        found.append(KeyFigure(label, value, "IOPS", note))
    return tuple(found)


def _ratio(value: float | None, reference: float | None) -> float | None:
    return None if value is None or not reference else value / reference


def _preconditioning(hir: HirData) -> Section:
    stage = hir.precondition
    if stage is None or not hir.tracked:
        return Section("Preconditioning", "")
    return Section(
        "Preconditioning",
        f"Random 4 KiB writes; the {hir.procedure.options.sample} step of each round is its "
        "sample.",
        stages.convergence_figures(
            stage,
            "precondition",
            "Pre Condition IOPS v round",
            "Pre Condition steady-state window",
            PRECONDITION_CSV,
        ),
        stages.determination_tables(stage, "Steady-state determination"),
    )


def _recovery(hir: HirData) -> Section:
    if not hir.waits:
        return Section("Recovery", "")
    total = max(_last(points.time_ns) for w in hir.waits for points in (w.bursts, w.baseline))
    text = "IOPS of every burst, and of every step of the return to the baseline, over time"
    all_time = [Line(w.label, *_joined(w, "time_ns")) for w in hir.waits]
    references = []
    if hir.reference_iops:
        references.append(Reference("steady state", hir.reference_iops))
    over_time = lines(
        "iops-time",
        all_time,
        time_axis(total, "Time since the first burst"),
        Axis("IOPS"),
        description=text,
        references=references,
        joined=False,
    )
    longest = max(_last(points.writing_ns) for w in hir.waits for points in (w.bursts, w.baseline))
    over_writing = lines(
        "iops-writing",
        [Line(w.label, *_joined(w, "writing_ns")) for w in hir.waits],
        time_axis(longest, "Time spent writing in the wait state"),
        Axis("IOPS"),
        description=f"{text} spent writing",
        references=references,
    )
    return Section(
        "Host idle recovery",
        "A point a burst (access A), and a point a step of the writes without pauses that follow "
        "(return to baseline). Only the time of the bursts counts. Series are wait states with "
        "their pauses.",
        drawn("iops-time", "IOPS v time, all wait states", over_time, BURSTS_CSV, text)
        + drawn(
            "iops-writing",
            "IOPS v time spent writing, by wait state",
            over_writing,
            BURSTS_CSV,
            text,
        ),
        (_table(hir),),
    )


def _joined(wait: WaitState, which: str) -> tuple[list[float], list[float]]:
    """Bursts, then baseline."""
    x = np.concatenate([getattr(wait.bursts, which), getattr(wait.baseline, which)])
    y = np.concatenate([wait.bursts.iops, wait.baseline.iops])
    return x.tolist(), y.tolist()


def _last(values: Numbers) -> float:
    return float(values[-1]) if values.size else 0.0


def _table(hir: HirData) -> Table:
    def share(value: float | None) -> str:
        ratio = _ratio(value, hir.reference_iops)
        return units.UNKNOWN if ratio is None else f"{ratio:.3f}"

    rows = tuple(
        (
            f"{wait.number:g}",
            f"{wait.wait_s:g} s",
            units.number(wait.burst_iops, 1),
            units.number(wait.best_iops, 1),
            share(wait.burst_iops),
            units.number(wait.baseline_iops, 1),
            share(wait.baseline_iops),
        )
        for wait in hir.waits
    )
    head = ("Wait state", "Wait", "IOPS of bursts", "Best burst", "to steady state",
            "IOPS after return", "to steady state")  # fmt: skip
    return Table(
        "Recovery by wait state",
        head,
        rows,
        ("right",) * 7,
        "IOPS after return: mean of the last five steps of the return to the baseline.",
    )


def _data_files(hir: HirData) -> tuple[DataFile, ...]:
    stage = hir.precondition
    file = stages.samples_csv(stage, PRECONDITION_CSV) if stage is not None else None
    rows: list[tuple[str | float, ...]] = []
    for wait in hir.waits:
        for kind, points in (("burst", wait.bursts), ("baseline", wait.baseline)):
            rows += [
                (wait.wait_s, kind, round(t), round(w), y)
                for t, w, y in zip(points.time_ns.tolist(), points.writing_ns.tolist(),
                                   points.iops.tolist(), strict=True)
            ]  # fmt: skip
    head = ("wait_s", "kind", "time_ns", "writing_ns", "iops")
    bursts = DataFile(BURSTS_CSV, csv_text(head, rows))
    return (bursts,) if file is None else (file, bursts)


def _summary(hir: HirData) -> dict[str, Any]:
    """Schema "writecliff/hir/1"; see docs/reference/json.md."""
    state: SteadyState | None = stages.window_of(hir.precondition)
    return {
        "schema": "writecliff/hir/1",
        **described(hir.data),
        "preconditioning": stages.steady_mapping(hir.precondition) if hir.tracked else None,
        "reference_iops": hir.reference_iops,
        "reference": "window" if state is not None else "last step",
        "wait_states": [
            {
                "number": wait.number,
                "wait_s": wait.wait_s,
                "bursts": int(wait.bursts.iops.size),
                "burst_iops": wait.burst_iops,
                "best_burst_iops": wait.best_iops,
                "burst_ratio": _ratio(wait.burst_iops, hir.reference_iops),
                "baseline_steps": int(wait.baseline.iops.size),
                "baseline_iops": wait.baseline_iops,
                "baseline_ratio": _ratio(wait.baseline_iops, hir.reference_iops),
            }
            for wait in hir.waits
        ],
        **files(hir.data),
    }
