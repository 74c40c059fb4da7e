"""What reports of tests with rounds of cells share: windows, verdict, steady-state pages, data.

IOPS, throughput and latency repeat a loop of cells (a block size at a mix) until it is steady, and
their results are of the rounds of the measurement window. A `Loop` is such a stage of a run as its
report shows it; throughput has one for each block size. Nothing is decided here: windows are those
of the procedure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from writecliff import units
from writecliff.procedures.cells import Cell
from writecliff.procedures.model import StageHistory, StepRow, TrackingVariable
from writecliff.procedures.steady import WINDOW_ROUNDS, SteadyState
from writecliff.report import figures
from writecliff.report.assembly import assembled
from writecliff.report.csvs import csv_text
from writecliff.report.header import header
from writecliff.report.model import (
    Align,
    DataFile,
    Figure,
    KeyFigure,
    ReportModel,
    Section,
    Table,
    Verdict,
    drawn,
)
from writecliff.report.parts import determination
from writecliff.report.summary import window_mapping

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.report.testdata import TestData

State = Literal["steady", "not steady", "not achieved", "undecided"]
_WORST: Sequence[State] = ("not achieved", "not steady", "undecided", "steady")
_LABELS = {"MB/s": "Throughput (MB/s)", "µs": "Average latency (µs)"}
STEPS_CSV = "steps.csv"
UNSTEADY = "NOT STEADY STATE"


@dataclass(frozen=True)
class Loop:
    """A stage of rounds. `stage` is None if the run did not get there."""

    stage: StageHistory | None
    label: str = ""  # "1024KiB": what tells it from the other loops of the run
    suffix: str = ""  # "-1024k": the same in names of figures and files

    @property
    def state(self) -> State:
        if self.stage is None or self.stage.tracker is None:
            return "undecided"
        return self.stage.tracker.verdict

    @property
    def steady(self) -> bool:
        return self.state == "steady"

    @property
    def rounds(self) -> tuple[int, ...]:
        """All complete rounds."""
        return tuple(range(1, (self.stage.rounds_done if self.stage else 0) + 1))

    @property
    def window(self) -> tuple[int, ...]:
        """The rounds that results are of: the window's; before there is one, the last complete."""
        if self.stage is None:
            return ()
        decision = self.stage.decision
        return decision.rounds if decision is not None else self.rounds[-1:]

    @property
    def judged(self) -> Sequence[tuple[TrackingVariable, SteadyState]]:
        """The reported window of each tracking variable, also if it fails."""
        if self.stage is None or self.stage.decision is None:
            return ()
        states = self.stage.decision.states
        return [(variable, states[variable.name]) for variable in self.stage.tracking]

    @cached_property
    def cells(self) -> Mapping[Cell, Sequence[StepRow]]:
        """The rows of each cell, one for each complete round."""
        found: dict[Cell, list[StepRow]] = {}
        for row in self.stage.rows if self.stage is not None else ():
            if row.round <= len(self.rounds) and row.block_bytes and row.read_pct is not None:
                found.setdefault((row.block_bytes, row.read_pct), []).append(row)
        return found

    def in_window(self, cell: Cell) -> Sequence[StepRow]:
        return [row for row in self.cells.get(cell, ()) if row.round in self.window]

    def mean(self, cell: Cell, value: Callable[[StepRow], float | None]) -> float | None:
        """Mean of a figure over the rounds of the window; None if it is unknown."""
        known = [number for row in self.in_window(cell) if (number := value(row)) is not None]
        return fmean(known) if known else None

    def over_rounds(self, cell: Cell, value: Callable[[StepRow], float | None]) -> Sequence[float]:
        """A figure in every complete round; NaN where it is unknown."""
        values = [value(row) for row in self.cells.get(cell, ())]
        return [float("nan") if number is None else number for number in values]

    @property
    def rounds_text(self) -> str:
        """As the standard's header prints the window: "1 - 5", or why there is none."""
        match self.state:
            case "steady":
                return f"{self.window[0]} - {self.window[-1]}"
            case "undecided":
                return f"undecided ({len(self.rounds)} of {WINDOW_ROUNDS} rounds)"
            case "not achieved":
                return "NOT ACHIEVED"
            case _:
                return f"not steady in {len(self.rounds)} rounds so far"

    @property
    def source(self) -> str:
        """What values are the mean of, for intros and notes."""
        if not self.window:
            return f"No round is complete: {UNSTEADY}."
        first, last = self.window[0], self.window[-1]
        if self.steady:
            return f"Means over the rounds of the measurement window, {first} to {last}."
        rounds = f"rounds {first} to {last}" if last > first else f"round {last}"
        return f"{UNSTEADY}: means over the last {rounds}, not of a steady drive."


def worst(loops: Sequence[Loop]) -> State:
    return min((loop.state for loop in loops), key=_WORST.index)


def flag(loops: Sequence[Loop]) -> str:
    """For titles: nothing if all is steady."""
    return "" if worst(loops) == "steady" else f" - {UNSTEADY}"


def rounds_text(loops: Sequence[Loop]) -> str:
    """For the header block: "1 - 5", or "1024KiB: 1 - 5; 128KiB: NOT ACHIEVED"."""
    return "; ".join(
        f"{loop.label}: {loop.rounds_text}" if loop.label and len(loops) > 1 else loop.rounds_text
        for loop in loops
    )


def verdict(data: TestData, loops: Sequence[Loop]) -> Verdict:
    """The first box of the page."""
    meaning = [_began(data)]
    for loop in loops:
        meaning += [_meaning(loop, variable, state) for variable, state in loop.judged]
        if not loop.judged:
            done = len(loop.rounds)
            meaning.append(
                f"{_prefix(loop)}the rule needs {WINDOW_ROUNDS} complete rounds, this run has "
                f"{done}."
            )
    state = worst(loops)
    if state != "steady":
        meaning.append("The figures below must not be quoted as those of a steady drive.")
    match state:
        case "steady":
            text = rounds_text(loops).replace(" - ", " to ")
            return Verdict("good", f"Steady state reached, rounds {text}", tuple(meaning))
        case "undecided":
            return Verdict("bad", f"{UNSTEADY}: too early to tell", tuple(meaning))
        case _:
            failed = [loop for loop in loops if loop.state == state]
            where = f" ({', '.join(loop.label for loop in failed)})" if failed[0].label else ""
            rounds = max(len(loop.rounds) for loop in failed)
            how = "NOT ACHIEVED in" if state == "not achieved" else "not reached so far, after"
            return Verdict("bad", f"{UNSTEADY}: {how} {rounds} rounds{where}", tuple(meaning))


def _began(data: TestData) -> str:
    purge = data.manifest.purge
    method = "in an unknown state" if purge is None else f"purge: {purge.method}"
    written = sum(row.host_write_bytes for row in data.rows)
    drive = "The simulated drive" if data.manifest.device.simulated else "The drive"
    reason = data.manifest.reason
    ended = f" The run ended with: {reason}." if data.status == "complete" and reason else ""
    return (
        f"{drive} ({method.replace(' (', ', ').removesuffix(')')}) was tested for "
        f"{units.duration(data.elapsed_ns)} and written {units.size(written)}, "
        f"{units.significant(written / data.capacity_bytes)} times its capacity.{ended}"
    )


def _prefix(loop: Loop) -> str:
    return f"{loop.label}: " if loop.label else ""


def _meaning(loop: Loop, variable: TrackingVariable, state: SteadyState) -> str:
    data, slope = units.pct(state.data_excursion_pct), units.pct(state.slope_excursion_pct)
    first, last = state.rounds[0], state.rounds[-1]
    average = f"{_number(state.average, variable.unit)} {variable.unit}"
    verdict = "steady" if state.steady else "NOT steady"
    return (
        f"{variable.name}, rounds {first} to {last}: {verdict}. Average {average}, spread by "
        f"{data} of it ({'20 % are' if state.data_ok else 'only 20 % are'} allowed), drifted "
        f"by {slope} ({'10 % are' if state.slope_ok else 'only 10 % are'} allowed)."
    )


def _number(value: float, unit: str) -> str:
    return units.number(value) if unit == "IOPS" else units.significant(value, 4)


# -- pages ----------------------------------------------------------------------------------


def axis_label(variable: TrackingVariable) -> str:
    return _LABELS.get(variable.unit, variable.unit)


def tracking_csv_name(loop: Loop) -> str:
    return f"tracking{loop.suffix}.csv"


def window_figures(loop: Loop) -> tuple[Figure, ...]:
    """The measurement window of every tracking variable, also of a run that was never steady."""
    found: list[Figure] = []
    for number, (variable, state) in enumerate(loop.judged, 1):
        name = f"steady-window{loop.suffix}" + (f"-{number}" if len(loop.judged) > 1 else "")
        title = f"Steady-state measurement window, {variable.name}"
        found += drawn(
            name,
            title if state.steady else f"{title} - {UNSTEADY}",
            figures.steady_window(name, state, axis_label(variable)),
            tracking_csv_name(loop),
            f"{variable.name} in the window with average, 110 %, 90 % and the least-squares line",
        )
    return tuple(found)


def determinations(loop: Loop) -> tuple[Table, ...]:
    return tuple(
        determination(
            state,
            variable.unit,
            digits=1 if variable.unit == "IOPS" else 3,
            title=f"Steady-state determination, {variable.name}",
        )
        for variable, state in loop.judged
    )


def window_intro(loop: Loop) -> str:
    names = ", ".join(variable.name for variable, _ in loop.judged)
    if not loop.judged:
        return f"{UNSTEADY}: {len(loop.rounds)} of the {WINDOW_ROUNDS} rounds that it takes."
    first, last = loop.window[0], loop.window[-1]
    by = " by all of them in the same window" if len(loop.judged) > 1 else ""
    if loop.steady:
        return f"Tracked: {names}. The steady-state rule is met{by}, rounds {first} to {last}."
    return (
        f"Tracked: {names}. {UNSTEADY}: the rule is NOT met{by} in any five rounds; the last ones, "
        f"{first} to {last}, are shown."
    )


def aligned(columns: int) -> tuple[Align, ...]:
    """A table of names on the left and so many columns of numbers."""
    right: Align = "right"
    return ("left", *(right for _ in range(columns)))


def flagged(title: str, loop: Loop) -> str:
    return title if loop.steady else f"{title} - {UNSTEADY}"


def known(value: float | None) -> float:
    """For figures: unknown is NaN."""
    return float("nan") if value is None else value


# -- data -----------------------------------------------------------------------------------


def data_files(data: TestData, loops: Sequence[Loop]) -> tuple[DataFile, ...]:
    """All steps, and the tracking variables of each loop by round."""
    files = [DataFile(STEPS_CSV, steps_csv(data))]
    for loop in loops:
        if loop.rounds and loop.stage is not None and loop.stage.tracker is not None:
            values = loop.stage.tracker.values
            names = [f"{v.name} ({v.unit})" for v in loop.stage.tracking]
            rows = zip(loop.rounds, *values.values(), strict=True)
            files.append(DataFile(tracking_csv_name(loop), csv_text(("round", *names), rows)))
    return tuple(files)


_COLUMNS = (
    "phase", "round", "step", "label", "pattern", "block_bytes", "read_pct", "threads",
    "queue_depth", "started_ns", "elapsed_ns", "ios", "bytes", "iops", "bytes_per_s",
    "latency_mean_ns", "latency_p999_ns", "latency_p9999_ns", "latency_p99999_ns",
    "latency_max_ns", "host_write_bytes", "host_write_bytes_total", "drive_fills", "waf",
)  # fmt: skip


def steps_csv(data: TestData) -> str:
    """Every step of the run; units are in the names of the columns."""
    return csv_text(_COLUMNS, ([getattr(row, name) for name in _COLUMNS] for row in data.rows))


def steady_mapping(loops: Sequence[Loop]) -> dict[str, Any]:
    """The key `steady_state` of the summary."""
    return {
        "state": worst(loops).replace(" ", "_"),
        "reached": all(loop.steady for loop in loops),
        "loops": [_loop_mapping(loop) for loop in loops],
    }


def _loop_mapping(loop: Loop) -> dict[str, Any]:
    stage = loop.stage
    return {
        "phase": stage.phase if stage is not None else None,
        "label": loop.label or None,
        "state": loop.state.replace(" ", "_"),
        "first_reached_at_round": stage.steady_at_round if stage is not None else None,
        "rounds_done": len(loop.rounds),
        "window_rounds": list(loop.window),
        "tracking": [
            {"variable": variable.name, "unit": variable.unit, "window": window_mapping(state)}
            for variable, state in loop.judged
        ],
    }


def key_figure(
    label: str, value: float | None, unit: str, loop: Loop, *, digits: int | None = None
) -> KeyFigure:
    """A result for the top of the page, marked if it is not of a steady drive."""
    text = units.significant(value, 4) if digits is None else units.number(value, digits)
    return KeyFigure(label, text, unit, note(loop))


def note(loop: Loop, what: str = "") -> str:
    """Of which rounds a figure is the mean, or else `what` it is; marked if they are not steady."""
    if not what and loop.window:
        what = f"mean of rounds {loop.window[0]} to {loop.window[-1]}"
    return what if loop.steady else f"{UNSTEADY}: {what}".removesuffix(": ")


def common_figures(data: TestData) -> tuple[KeyFigure, ...]:
    """How much was written and how long it took."""
    written = sum(row.host_write_bytes for row in data.rows)
    amount = units.size(written).rpartition(" ")
    fills = units.significant(written / data.capacity_bytes)
    return (
        KeyFigure("Written", amount[0], amount[2], f"in {units.duration(data.elapsed_ns)}"),
        KeyFigure("Drive fills", fills, "", "times the user capacity, preconditioning included"),
    )


def model(
    data: TestData,
    loops: Sequence[Loop],
    *,
    key_figures: Sequence[KeyFigure],
    sections: Sequence[Section],
    files: Sequence[DataFile],
    summary: dict[str, Any],
    histogram: Histogram | None = None,
    latency_note: str = "",
    more_notes: Sequence[str] = (),
) -> ReportModel:
    """The report, of what its test has to show and what all of them show."""
    return assembled(
        data,
        title=f"{data.manifest.title}{flag(loops)}",
        header=header(data, rounds_text(loops)),
        verdict=verdict(data, loops),
        key_figures=(*key_figures, *common_figures(data)),
        histogram=histogram,
        latency_note=latency_note,
        sections=sections,
        more_notes=more_notes,
        files=(*data_files(data, loops), *files),
        summary=summary,
    )
