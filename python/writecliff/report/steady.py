"""Steady state in reports and on the command line, as a view of a `StageHistory`.

The procedure determines whether a stage is steady and which rounds form its window. This module
presents the steady-state result as state, sentences, determination table, figures, CSV and JSON.
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
from writecliff.procedures.steady import (
    DATA_EXCURSION_PCT,
    SLOPE_EXCURSION_PCT,
    WINDOW_ROUNDS,
    SteadyState,
)
from writecliff.report import kinds
from writecliff.report.csvs import data_file
from writecliff.report.model import Figure, KeyFigure
from writecliff.report.table import DataFile, Quantity, Table, table

if TYPE_CHECKING:
    from writecliff.report.axes import Axis

State = Literal[
    "steady",
    "left",
    "fresh",
    "not known",
    "not reached",
    "undecided",
    "ended",
    "not steady",
    "not achieved",
]
UNSTEADY, UNKNOWN = "not in steady state", "steady state not known"
OTHER_ENDS = ("capacity", "time")  # WSAT end conditions other than steady state.
DRIFT_R, DRIFT_PCT = 0.9, 2.0
_QUANTITIES = {"MB/s": "Throughput", "µs": "Average latency"}


@dataclass(frozen=True)
class SteadyView:
    """Presentation of a stage that consists of rounds.

    Attributes:
        stage: The stage, or `None` if the run did not reach it.
        label: Text that distinguishes the stage within the run ("1024KiB", "Preconditioning").
        suffix: Suffix of figure and file names ("-1024k").
        ended: `True` for a complete run, whose stages can no longer become steady.
        short: `True` if the test was shortened (`--quick` on a real drive), which makes the rounds
            inconclusive.
        end: Reason why the rounds ended, if the standard has end conditions other than steady state
            (WSAT: "24 h of writes").
    """

    stage: StageHistory | None
    label: str = ""
    suffix: str = ""
    ended: bool = True
    short: bool = False
    end: str = ""

    # -- steady-state decision ------------------------------------------------------------

    @cached_property
    def state(self) -> State:
        """State of the stage.

        "left": the stage was steady, but its last window is not. "fresh": the last window meets the
        rule, but the drive may still be fresh out of the box. "ended": the standard's other end
        condition was met before steady state.
        """
        if self.stage is None:
            return "not reached"
        if self.stage.tracker is None:
            return "undecided"
        verdict = self.stage.tracker.verdict
        if verdict != "steady" and self.stage.tracker.first_steady is not None:
            return "left"
        if self.short and self.ended and verdict != "steady":
            return "not known"
        current = self.stage.tracker.current
        if current is not None and current.met and current.fresh:
            return "fresh"
        if self.end and self.ended and verdict != "steady":
            return "ended"
        return "not achieved" if verdict == "not steady" and self.ended else verdict

    @property
    def steady(self) -> bool:
        """`True` if the stage is steady in its last window."""
        return self.state == "steady"

    @property
    def reached(self) -> bool:
        """`True` if the stage was steady in the reported window, even if it is no longer steady."""
        return self.state in ("steady", "left")

    @property
    def rounds(self) -> tuple[int, ...]:
        """All complete rounds."""
        return tuple(range(1, (self.stage.rounds_done if self.stage else 0) + 1))

    @property
    def window(self) -> tuple[int, ...]:
        """Rounds that provide the results.

        The result contains the rounds of the reported window or, before a window exists, the last
        complete round.
        """
        decision = self.stage.decision if self.stage is not None else None
        return decision.rounds if decision is not None else self.rounds[-1:]

    @cached_property
    def judged(self) -> Sequence[tuple[TrackingVariable, SteadyState]]:
        """Reported window of each tracking variable, even if the window fails.

        The mapping is empty before a window exists.
        """
        if self.stage is None or self.stage.decision is None:
            return ()
        states = self.stage.decision.states
        return [(variable, states[variable.name]) for variable in self.stage.tracking]

    @property
    def determination(self) -> SteadyState | None:
        """Reported window of the first tracking variable, or None before a window exists."""
        return self.judged[0][1] if self.judged else None

    @property
    def values(self) -> Mapping[str, Sequence[float]]:
        """Samples of each round, by tracking variable."""
        tracker = self.stage.tracker if self.stage is not None else None
        return tracker.values if tracker is not None else {}

    # -- window results -----------------------------------------------------------------------

    @cached_property
    def cells(self) -> Mapping[Cell, Sequence[StepRow]]:
        """Rows of each cell (block size and read percentage), one for each complete round."""
        cells: dict[Cell, list[StepRow]] = {}
        for row in self.stage.rows if self.stage is not None else ():
            if row.round <= len(self.rounds) and row.block_bytes and row.read_pct is not None:
                cells.setdefault((row.block_bytes, row.read_pct), []).append(row)
        return cells

    def in_window(self, cell: Cell) -> Sequence[StepRow]:
        """Return a cell's rows for the window's rounds."""
        return [row for row in self.cells.get(cell, ()) if row.round in self.window]

    def samples(self, cell: Cell, value: Callable[[StepRow], float | None]) -> Sequence[float]:
        """Return a figure's known values for the window's rounds."""
        return [number for row in self.in_window(cell) if (number := value(row)) is not None]

    def mean(self, cell: Cell, value: Callable[[StepRow], float | None]) -> float | None:
        """Return a figure's mean over the window's rounds, or None if unknown."""
        measured = self.samples(cell, value)
        return fmean(measured) if measured else None

    def highest(self, cell: Cell, value: Callable[[StepRow], float | None]) -> float | None:
        """Return a figure's maximum over the window's rounds, or None if unknown."""
        return max(self.samples(cell, value), default=None)

    def over_rounds(self, cell: Cell, value: Callable[[StepRow], float | None]) -> Sequence[float]:
        """Return a figure for every complete round, with NaN if unknown."""
        return [or_nan(value(row)) for row in self.cells.get(cell, ())]

    # -- text ---------------------------------------------------------------------------------

    @property
    def flag(self) -> str:
        """Mark that indicates a stage that is not steady."""
        return UNKNOWN if self.state == "not known" else UNSTEADY

    @property
    def text(self) -> str:
        """Window in the form of the standard's header block, or the reason why there is none."""
        match self.state:
            case "steady" | "left":
                end = ", then left" if self.state == "left" else ""
                return f"Rounds {self.window[0]} - {self.window[-1]}{end}"
            case "undecided":
                return f"undecided ({len(self.rounds)} of {WINDOW_ROUNDS} rounds)"
            case "ended":
                return f"not reached; ended by {self.end}"
            case "fresh":
                rounds = f"rounds {self.window[0]} - {self.window[-1]}"
                end = f"; ended by {self.end}" if self.end else ""
                return f"drive still fresh in {rounds}{end}"
            case "not achieved":
                return f"not reached in {len(self.rounds)} rounds"
            case "not known":
                return f"not known ({len(self.rounds)} short rounds)"
            case "not steady":
                return f"not steady in {len(self.rounds)} rounds so far"
            case _:
                return "not reached"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Verdict sentences about the stage, one per tracking variable."""
        begin = f"{self.label}: " if self.label else ""
        if self.stage is None:
            return (f"{begin}the run did not reach this stage.",)
        if not self.judged:
            return (
                f"{begin}the steady-state rule needs {WINDOW_ROUNDS} complete rounds; this run has "
                f"{len(self.rounds)}.",
            )
        sentences = [f"{begin}{window_text(variable, state)}" for variable, state in self.judged]
        first = self.stage.tracker.first_steady if self.stage.tracker is not None else None
        if self.state == "left":
            sentences.append(
                f"{begin}the samples of these rounds met the steady-state rule; the last rounds do "
                "not. The figures below are those of this window, not of the drive's final state."
            )
        elif first is not None and first.rounds != self.window:
            sentences.append(
                f"{begin}the rule was first met in rounds {first.rounds[0]} to {first.rounds[-1]}; "
                "the run continued, and the last window that meets it is reported."
            )
        return tuple(text[0].upper() + text[1:] for text in sentences)

    @property
    def intro(self) -> str:
        """Introduction to the window's figures and tables."""
        if not self.judged:
            return f"{self.flag}: {len(self.rounds)} of the required {WINDOW_ROUNDS} rounds."
        names = ", ".join(variable.name for variable, _ in self.judged)
        first, last = self.window[0], self.window[-1]
        together = " by all variables in one window" if len(self.judged) > 1 else ""
        fresh = ", while the drive may still be fresh" if self.state == "fresh" else ""
        if self.reached or fresh:
            return f"Tracked: {names}. The rule is met{together}, rounds {first} to {last}{fresh}."
        return (
            f"Tracked: {names}. {self.flag}: no {WINDOW_ROUNDS} rounds meet the rule{together}; "
            f"the last rounds, {first} to {last}, are shown."
        )

    @property
    def source(self) -> str:
        """Rounds over which the results are averaged."""
        if not self.window:
            return f"No round is complete: {self.flag}."
        first, last = self.window[0], self.window[-1]
        if self.steady:
            return f"Means over the rounds of the measurement window, {first} to {last}."
        rounds = f"rounds {first} to {last}" if last > first else f"round {last}"
        still = "" if self.state == "not known" else "; the drive is not steady"
        return f"{self.flag}: means over the last {rounds}{still}."

    def flagged(self, title: str) -> str:
        """Return `title`, which is marked unless the stage is steady."""
        return title if self.steady else f"{title} - {self.flag}"

    def note(self, what: str = "") -> str:
        """Return a figure's averaging rounds, or `what`, which is marked unless steady."""
        if not what and self.window:
            what = f"mean of rounds {self.window[0]} to {self.window[-1]}"
        return what if self.steady else f"{self.flag}: {what}".removesuffix(": ")

    def key_figure(
        self, label: str, value: float | None, unit: str, *, digits: int | None = None
    ) -> KeyFigure:
        """Return a result for the top of the page, which is marked unless the stage is steady."""
        text = units.significant(value, 4) if digits is None else units.number(value, digits)
        return KeyFigure(label, text, unit, self.note())

    # -- tables, figures and data -------------------------------------------------------------

    def tables(self) -> tuple[Table, ...]:
        """Return the determination table of each tracking variable."""
        return tuple(determination_table(*judged, self.flag) for judged in self.judged)

    def data(self, name: str = "") -> DataFile:
        """Return every round's tracking variables as CSV."""
        tracking = self.stage.tracking if self.stage is not None else ()
        head = ("round", *(_with_unit(variable) for variable in tracking))
        rows = zip(self.rounds, *self.values.values(), strict=True)
        return data_file(name or f"tracking{self.suffix}.csv", head, rows)

    def window_figures(
        self, title: str = "Steady-state measurement window", data: str = ""
    ) -> tuple[Figure, ...]:
        """Return the window of every tracking variable, even if the window fails."""
        from writecliff.report.figures import steady_window

        window_figures = []
        for number, (variable, state) in enumerate(self.judged, 1):
            many = len(self.judged) > 1
            name = f"steady-window{self.suffix}" + (f"-{number}" if many else "")
            full = f"{title}, {variable.name}"
            shown = full if state.steady else f"{full} - {self.flag}"
            window_figures.append(
                steady_window(name, shown, self.data(data), state, _axis(variable), variable.name)
            )
        return tuple(window_figures)

    def convergence(
        self, title: str = "Steady-state convergence", *, data: str = "", log: bool = False
    ) -> Figure | None:
        """Return the tracking variables over all rounds; None before the first round."""
        from dataclasses import replace

        from writecliff.report.axes import Line
        from writecliff.report.figures import convergence

        if self.stage is None or not self.values or not self.rounds:
            return None
        series = [Line(name, self.rounds, samples) for name, samples in self.values.items()]
        axis = replace(_axis(self.stage.tracking[0]), log=log)
        name = f"convergence{self.suffix}" + ("-tracked" if len(series) > 1 else "")
        window = self.window if self.judged else ()
        return convergence(name, self.flagged(title), self.data(data), series, window, axis)

    def mapping(self) -> dict[str, Any]:
        """Return the JSON form for report summaries and the command line."""
        tracker = self.stage.tracker if self.stage is not None else None
        first = tracker.first_steady if tracker is not None else None
        window = None if self.determination is None else window_mapping(self.determination)
        return {
            "phase": self.stage.phase if self.stage is not None else None,
            "label": self.label or None,
            "state": self.state.replace(" ", "_"),
            "reached": first is not None,
            "first_reached_at_round": None if first is None else first.round,
            "rounds_done": len(self.rounds),
            "window_rounds": list(self.window),
            "tracking_variable": tracker.variables[0] if tracker is not None else None,
            "window": window,
            "tracking": [
                {"variable": variable.name, "unit": variable.unit, "window": window_mapping(state)}
                for variable, state in self.judged
            ],
        }


def or_nan(value: float | None) -> float:
    """Return a value for figures, with NaN in place of None."""
    return float("nan") if value is None else value


def _axis(variable: TrackingVariable) -> Axis:
    from writecliff.report.axes import Axis
    from writecliff.report.interaction import Label

    name = _QUANTITIES.get(variable.unit)
    return Axis(Label(name, variable.unit) if name else variable.unit)


def _with_unit(variable: TrackingVariable) -> str:
    """Return a name with its unit, such as "RND 4KiB W IOPS" or "average latency (µs)"."""
    name, unit = variable.name, variable.unit
    return name if name.endswith(unit) else f"{name} ({unit})"


def _value_text(value: float, unit: str) -> str:
    return f"{units.number(value) if unit == 'IOPS' else units.significant(value, 4)} {unit}"


def window_text(variable: TrackingVariable, state: SteadyState) -> str:
    """Return the verdict on one window as text, with measured and allowed excursions."""
    drift = drifting(state) if state.steady else None
    still = ""
    if drift is not None:
        end = "lower" if drift == "falling" else "higher"
        share = 100 * abs(state.slope) / state.average
        still = (
            f" The samples are still {drift}, by {share:.2g} % per round: the rule allows it, but "
            f"a longer run would end {end}."
        )
    return (
        f"{variable.name}, rounds {state.rounds[0]} to {state.rounds[-1]}: "
        f"{'steady' if state.steady else 'NOT steady'}. "
        f"Average {_value_text(state.average, variable.unit)}; {excursions_text(state)}.{still}"
    )


def excursions_text(state: SteadyState) -> str:
    """Return measured and allowed excursions, such as "data excursion 3.21 % (allowed: 20 %)"."""
    data, slope = units.pct(state.data_excursion_pct), units.pct(state.slope_excursion_pct)
    return (
        f"data excursion {data} (allowed: {DATA_EXCURSION_PCT:g} %), "
        f"slope excursion {slope} (allowed: {SLOPE_EXCURSION_PCT:g} %)"
    )


def drifting(state: SteadyState) -> Literal["falling", "rising"] | None:
    """Return the direction in which a steady window's samples still drift, or None.

    A line through five random points reaches an |r| of 0.9 by chance in fewer than 1 case in 25 (t
    test with three degrees of freedom). An excursion below 2 % is smaller than the usual difference
    between two runs.
    """
    if state.r is None or abs(state.r) < DRIFT_R or (state.slope_excursion_pct or 0) < DRIFT_PCT:
        return None
    return "falling" if state.slope < 0 else "rising"


def drift_text(variable: TrackingVariable, state: SteadyState) -> str:
    """Describe the drift of a steady window's samples; the text is empty without drift."""
    drift = drifting(state)
    if drift is None:
        return ""
    share = 100 * abs(state.slope) / state.average
    quantity = _QUANTITIES.get(variable.unit, variable.unit)
    return f"{quantity} still {drift} by {share:.2g} % a round"


def determination_table(variable: TrackingVariable, state: SteadyState, flag: str) -> Table:
    """Return the standard's steady-state determination table, marked `flag` unless steady."""
    kind = kinds.decimals(1 if variable.unit == "IOPS" else 3, variable.unit)
    met = {True: "met", False: "NOT met"}
    return table(
        f"Steady-state determination, {variable.name}",
        ("Quantity", "Allowed", "Measured", ""),
        (
            ("Rounds", "", f"{state.rounds[0]} - {state.rounds[-1]}", ""),
            ("Average", "", Quantity(state.average, kind), ""),
            (
                f"Data excursion, max - min ({DATA_EXCURSION_PCT:g} % of average)",
                Quantity(state.data_excursion_allowed, kind),
                Quantity(state.data_excursion, kind),
                met[state.data_ok],
            ),
            (
                f"Slope excursion, |slope| x 4 ({SLOPE_EXCURSION_PCT:g} % of average)",
                Quantity(state.slope_excursion_allowed, kind),
                Quantity(state.slope_excursion, kind),
                met[state.slope_ok],
            ),
            ("Least-squares line, R = round", "", state.formula, ""),
            ("Correlation coefficient r", "", Quantity(state.r, kinds.decimals(4)), ""),
        ),
        "lrrl",
        note="" if state.steady else flag,
        data=_determination_file(variable.unit, state),
    )


def _determination_file(unit: str, state: SteadyState) -> DataFile:
    """Return a determination table's numbers as one row, in a file named after the table."""
    measured = {
        "average": state.average,
        "data excursion allowed": state.data_excursion_allowed,
        "data excursion": state.data_excursion,
        "slope excursion allowed": state.slope_excursion_allowed,
        "slope excursion": state.slope_excursion,
        "slope per round": state.slope,
        "intercept": state.intercept,
    }
    head = ("first round", "last round", *(f"{name} ({unit})" for name in measured), "r")
    return data_file("", head, [(state.rounds[0], state.rounds[-1], *measured.values(), state.r)])


def window_mapping(state: SteadyState) -> dict[str, Any]:
    """Return the JSON form of a determination table, including failed determinations."""
    return {
        "rounds": list(state.rounds),
        "values": list(state.values),
        "average": state.average,
        "data_excursion_allowed": state.data_excursion_allowed,
        "data_excursion": state.data_excursion,
        "slope_excursion_allowed": state.slope_excursion_allowed,
        "slope_excursion": state.slope_excursion,
        "slope_per_round": state.slope,
        "intercept": state.intercept,
        "r": state.r,
        "formula": state.formula,
        "steady": state.steady,
    }
