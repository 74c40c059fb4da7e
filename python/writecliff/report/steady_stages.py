"""Steady state of a whole run: what is said of all of its stages together.

The stage that is furthest from steady decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from writecliff.report.model import Verdict
from writecliff.report.steady import UNKNOWN, UNSTEADY, State, SteadyView, drifting

_WORST_FIRST: Sequence[State] = (
    "not achieved", "not steady", "undecided", "not reached", "ended", "fresh", "not known",
    "left", "steady",
)  # fmt: skip
_SHORT = (
    "The test was shortened (--quick) to moments of what the standard requires. What the drive does"
    " once it has been written for hours is not known from it, nor is any sustained performance."
)


def worst(views: Sequence[SteadyView]) -> State:
    """The state of the stage that is furthest from steady; "steady" if there is none."""
    return min((view.state for view in views), key=_WORST_FIRST.index, default="steady")


def flag(views: Sequence[SteadyView]) -> str:
    """What a title adds: nothing if all stages are steady."""
    state = worst(views)
    if state in ("ended", "fresh"):
        end = next(view.end for view in views if view.state == state)
        found = "not steady" if state == "ended" else "level, may still be fresh"
        return f" - ended by {end}, {found}" if end else f" - {found}"
    return "" if state == "steady" else f" - {UNKNOWN if state == 'not known' else UNSTEADY}"


def views_text(views: Sequence[SteadyView]) -> str:
    """The windows of all stages for the header block."""
    if len(views) == 1:
        return views[0].text
    return "; ".join(f"{view.label}: {view.text}" for view in views)


def views_mapping(views: Sequence[SteadyView]) -> dict[str, Any]:
    """The JSON form of all stages."""
    return {
        "state": worst(views).replace(" ", "_"),
        "reached": all(view.steady for view in views),
        "loops": [view.mapping() for view in views],
    }


def verdict(views: Sequence[SteadyView], opening: Sequence[str]) -> Verdict:
    """The first box of the page: `opening`, then what is said of each stage; the stage that is
    furthest from steady decides the headline.
    """
    meaning = [*opening, *(text for view in views for text in view.sentences)]
    if not views:
        return Verdict("good", "Measured without a steady-state criterion", tuple(meaning))
    state = worst(views)
    one = next(view for view in views if view.state == state)
    where = f" ({one.label})" if one.label else ""
    if state == "steady":
        headline = f"Steady state reached, {_windows(views)}"
        drift = drifting(one.determination) if one.determination and len(views) == 1 else None
        headline += f", still {drift}" if drift else ""
        if not one.short:
            return Verdict("good", headline, tuple(meaning))
        meaning.append(_SHORT)
        return Verdict("warning", f"{headline}, of a shortened test", tuple(meaning))
    if state == "left":
        rounds = f"rounds {one.window[0]} to {one.window[-1]}"
        headline = f"{UNSTEADY} at the end: reached in {rounds}, then left again{where}"
        return Verdict("warning", headline, tuple(meaning))
    if state == "not known":
        meaning.append(_SHORT)
        rounds = f"{len(one.rounds)} short rounds cannot tell"
        return Verdict("warning", f"{UNKNOWN}: {rounds}{where}", tuple(meaning))
    if state == "fresh":
        rounds = f"rounds {one.window[0]} to {one.window[-1]}"
        by = f"Ended by {one.end}: level" if one.end else "Rule met"
        headline = f"{by} in {rounds}, but the drive may still be fresh{where}"
        return Verdict("warning", headline, tuple(meaning))
    meaning.append(
        "The figures below are of a drive in transition and must not be quoted as sustained "
        "performance."
    )
    if state == "ended":
        made = len(one.rounds)
        reached = f", steady state not reached in {made} rounds" if made else ""
        headline = f"Ended by {one.end}{reached or ' before a round was complete'}"
        return Verdict("warning", f"{headline}{where}", tuple(meaning))
    said = {
        "not achieved": f"NOT ACHIEVED in {len(one.rounds)} rounds",
        "not steady": f"not reached so far, after {len(one.rounds)} rounds",
        "undecided": "too early to tell",
        "not reached": "the run did not get there",
    }[state]
    return Verdict("bad", f"{UNSTEADY}: {said}{where}", tuple(meaning))


def _windows(views: Sequence[SteadyView]) -> str:
    """ "rounds 1 to 5", or "1024KiB: rounds 1 to 5; 128KiB: rounds 2 to 6"."""
    return "; ".join(
        (f"{view.label}: " if len(views) > 1 else "")
        + f"rounds {view.window[0]} to {view.window[-1]}"
        for view in views
    )
