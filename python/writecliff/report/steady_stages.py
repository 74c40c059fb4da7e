"""Steady state of a whole run, with a verdict on all of its stages.

The stage furthest from steady state determines the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from writecliff.procedures.steady import WINDOW_ROUNDS
from writecliff.report.model import Verdict
from writecliff.report.steady import UNKNOWN, UNSTEADY, State, SteadyView, drift_text

_WORST_FIRST: Sequence[State] = (
    "not achieved", "not steady", "undecided", "not reached", "ended", "fresh", "not known",
    "left", "steady",
)  # fmt: skip
_SHORT = (
    "The test was shortened (--quick) to a fraction of what the standard requires. It shows neither"
    " the behaviour of the drive after hours of writes nor any sustained performance."
)


def worst(views: Sequence[SteadyView]) -> State:
    """Return the state of the stage furthest from steady state.

    The state is "steady" if there are no stages.
    """
    return min((view.state for view in views), key=_WORST_FIRST.index, default="steady")


def flag(views: Sequence[SteadyView]) -> str:
    """Return a title's suffix, which is empty if all stages are steady."""
    state = worst(views)
    if state in ("ended", "fresh"):
        end = next(view.end for view in views if view.state == state)
        state_text = "not steady" if state == "ended" else "level, may still be fresh"
        return f" - ended by {end}, {state_text}" if end else f" - {state_text}"
    return "" if state == "steady" else f" - {UNKNOWN if state == 'not known' else UNSTEADY}"


def views_text(views: Sequence[SteadyView]) -> str:
    """Return the windows of all stages for the header block."""
    if len(views) == 1:
        return views[0].text
    return "; ".join(f"{view.label}: {view.text}" for view in views)


def views_mapping(views: Sequence[SteadyView]) -> dict[str, Any]:
    """Return the JSON form of all stages."""
    return {
        "state": worst(views).replace(" ", "_"),
        "reached": all(view.steady for view in views),
        "loops": [view.mapping() for view in views],
    }


def verdict(views: Sequence[SteadyView], opening: Sequence[str]) -> Verdict:
    """Return the first box on the page, with `opening` and each stage's sentences.

    The stage furthest from steady state determines the headline.
    """
    meaning = [*opening, *(text for view in views for text in view.sentences)]
    if not views:
        return Verdict("good", "Measured without a steady-state criterion", tuple(meaning))
    state = worst(views)
    deciding = next(view for view in views if view.state == state)
    where = f" ({deciding.label})" if deciding.label else ""
    if state == "steady":
        headline = f"Steady state reached, {_windows(views)}"
        drift = drift_text(*deciding.judged[0]) if len(views) == 1 and deciding.judged else ""
        headline += f", with {drift}" if drift else ""
        if not deciding.short:
            return Verdict("good", headline, tuple(meaning))
        meaning.append(_SHORT)
        return Verdict("warning", f"{headline}, of a shortened test", tuple(meaning))
    if state == "left":
        rounds = f"rounds {deciding.window[0]} to {deciding.window[-1]}"
        headline = f"Steady state reached in {rounds}, then left again{where}"
        return Verdict("warning", headline, tuple(meaning))
    if state == "not known":
        meaning.append(_SHORT)
        rounds = f"{len(deciding.rounds)} short rounds are not enough"
        return Verdict("warning", f"{_sentence(UNKNOWN)}: {rounds}{where}", tuple(meaning))
    if state == "fresh":
        rounds = f"rounds {deciding.window[0]} to {deciding.window[-1]}"
        by = f"Ended by {deciding.end}: level" if deciding.end else "Rule met"
        headline = f"{by} in {rounds}, but the drive may still be fresh{where}"
        return Verdict("warning", headline, tuple(meaning))
    meaning.append(
        "The figures below are of a drive in transition and must not be quoted as sustained "
        "performance."
    )
    if state == "ended":
        made = len(deciding.rounds)
        reached = f", steady state not reached in {made} rounds" if made else ""
        headline = f"Ended by {deciding.end}{reached or ' before a round was complete'}"
        return Verdict("warning", f"{headline}{where}", tuple(meaning))
    headline = {
        "not achieved": f"Steady state not reached in {len(deciding.rounds)} rounds",
        "not steady": f"Steady state not reached so far, after {len(deciding.rounds)} rounds",
        "undecided": f"Too few rounds for steady state: {len(deciding.rounds)} of {WINDOW_ROUNDS}",
        "not reached": "The run ended before the rounds of the steady-state rule",
    }[state]
    return Verdict("bad", f"{headline}{where}", tuple(meaning))


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _windows(views: Sequence[SteadyView]) -> str:
    """Return the windows as text, such as "rounds 1 to 5", with labels if there are several."""
    return "; ".join(
        (f"{view.label}: " if len(views) > 1 else "")
        + f"rounds {view.window[0]} to {view.window[-1]}"
        for view in views
    )
