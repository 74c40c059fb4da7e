"""Reports of tests that have stages with rounds: verdict, convergence, window, for each of them.

Owns how "steady", "then left", "not achieved" and "undecided" are said; the decision itself is the
procedure's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from writecliff import units
from writecliff.procedures.model import StageHistory
from writecliff.procedures.steady import WINDOW_ROUNDS, SteadyState
from writecliff.report import figures
from writecliff.report.csvs import csv_text
from writecliff.report.model import DataFile, Figure, Table, Verdict, drawn
from writecliff.report.parts import determination
from writecliff.report.summary import window_mapping
from writecliff.report.wsat_text import drifting

State = Literal["steady", "left", "not achieved", "not steady", "undecided", "not reached"]


def state_of(stage: StageHistory | None) -> State:
    """ "left": it was steady, and is not any more in its last window."""
    if stage is None:
        return "not reached"
    if stage.tracker is None:
        return "undecided"
    verdict = stage.tracker.verdict
    if verdict != "steady" and stage.tracker.first_steady is not None:
        return "left"
    return verdict


def window_of(stage: StageHistory | None) -> SteadyState | None:
    """The determination of the reported window, also when it fails; None before five rounds."""
    decision = stage.decision if stage is not None else None
    return None if decision is None else next(iter(decision.states.values()))


def rounds_text(stage: StageHistory | None) -> str:
    """The rounds of the window as the standard prints them, or why there are none."""
    state = window_of(stage)
    if stage is None:
        return "not reached"
    if state is None:
        return f"undecided ({stage.rounds_done} of {WINDOW_ROUNDS} rounds)"
    text = f"Rounds {state.rounds[0]} - {state.rounds[-1]}"
    known = state_of(stage)
    if known == "left":
        return f"{text}, then left"
    return text if known == "steady" else "NOT ACHIEVED"


def excursions_text(state: SteadyState) -> str:
    """Measured and allowed, as a sentence."""
    return (
        f"Over rounds {state.rounds[0]} to {state.rounds[-1]} the rate spread by "
        f"{units.pct(state.data_excursion_pct)} of its average (20 % are allowed) and drifted by "
        f"{units.pct(state.slope_excursion_pct)} (10 % are allowed)."
    )


def verdict(parts: Sequence[tuple[str, StageHistory | None]], meaning: Sequence[str]) -> Verdict:
    """Of a test whose stages of rounds are `parts`, named: the worst of them decides."""
    lines = list(meaning)
    for name, stage in parts:
        lines.append(f"{name}: {_stage_text(stage)}")
    states = [(name, state_of(stage)) for name, stage in parts]
    bad = [(name, state) for name, state in states if state not in ("steady", "left")]
    if bad:
        name, state = bad[0]
        said = {
            "not achieved": "NOT ACHIEVED",
            "not steady": "not achieved yet",
            "undecided": "too early to tell",
            "not reached": "the run did not get there",
        }[state]
        return Verdict("bad", f"NOT STEADY STATE: {said} ({name.lower()})", tuple(lines))
    left = [name for name, state in states if state == "left"]
    if left:
        headline = f"NOT STEADY STATE at the end: reached, then left again ({left[0].lower()})"
        return Verdict("warning", headline, tuple(lines))
    return Verdict("good", "Steady state reached", tuple(lines))


def _stage_text(stage: StageHistory | None) -> str:
    if stage is None:
        return "the run did not get there."
    state = window_of(stage)
    if state is None:
        return f"the rule needs {WINDOW_ROUNDS} rounds, this run has {stage.rounds_done}."
    average = f"{units.number(state.average)} IOPS on average"
    match state_of(stage):
        case "steady":
            drift = drifting(state)
            still = f" The samples are still {drift}, which the rule allows." if drift else ""
            return f"steady, {average}. {excursions_text(state)}{still}"
        case "left":
            return f"steady once, {average}, and not any more in its last rounds."
        case _:
            return (
                f"NOT ACHIEVED in {stage.rounds_done} rounds. {excursions_text(state)} Figures "
                "taken after it are of a drive in transition and must not be quoted as sustained "
                "performance."
            )


def title_flag(stages: Sequence[StageHistory | None]) -> str:
    """What the title of a page says of its steady state; nothing if all is well."""
    return "" if all(state_of(one) == "steady" for one in stages) else " - NOT STEADY STATE"


def samples_csv(stage: StageHistory, name: str) -> DataFile | None:
    """The tracking variables of every round; None before the first."""
    tracker = stage.tracker
    if tracker is None or not tracker.rounds:
        return None
    head = ("round", *tracker.variables)
    rows = zip(tracker.rounds, *(tracker.values[v] for v in tracker.variables), strict=True)
    return DataFile(name, csv_text(head, rows))


def convergence_figures(
    stage: StageHistory, name: str, title: str, check_title: str, data: str
) -> tuple[Figure, ...]:
    """The tracking variable over all rounds, and its window with the limits and the line."""
    tracker, state = stage.tracker, window_of(stage)
    if tracker is None or not tracker.rounds:
        return ()
    (variable,) = tracker.variables
    flag = "" if state_of(stage) in ("steady", "left") else " (NOT STEADY STATE)"
    rounds = state.rounds if state is not None else ()
    found = drawn(
        f"{name}-convergence",
        title,
        figures.convergence(
            f"{name}-convergence", tracker.rounds, tracker.values[variable], rounds, "IOPS"
        ),
        data,
        f"{variable} of every round",
    )
    if state is None:
        return found
    return found + drawn(
        f"{name}-window",
        check_title + flag,
        figures.steady_window(f"{name}-window", state, "IOPS"),
        data,
        f"{variable} in the measurement window with its limits and the least-squares line",
    )


def determination_tables(stage: StageHistory, title: str, data: str = "") -> tuple[Table, ...]:
    state = window_of(stage)
    return () if state is None else (determination(state, title=title, data=data),)


def steady_mapping(stage: StageHistory | None) -> dict[str, Any] | None:
    """The key `steady_state` of a summary; None: the run did not get there."""
    if stage is None or stage.tracker is None:
        return None
    state, first = window_of(stage), stage.tracker.first_steady
    return {
        "state": state_of(stage).replace(" ", "_"),
        "reached": first is not None,
        "first_reached_at_round": None if first is None else first.round,
        "rounds_done": stage.rounds_done,
        "tracking_variable": stage.tracker.variables[0],
        "window": None if state is None else window_mapping(state),
    }
