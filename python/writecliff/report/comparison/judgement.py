"""Judgement of a run relative to another run: better, worse, equal, or cannot tell.

A difference counts if it is significant according to the rule for all comparisons (`figures.RULE`).
The judgement is "cannot tell" for figures without a significant difference, without an interval, or
with different loads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from writecliff.report.comparison.figures import Figure

Judgement = Literal["better", "worse", "equal", "cannot tell"]
JUDGEMENTS: Sequence[Judgement] = ("better", "worse", "equal", "cannot tell")


def judgement(figure: Figure, first: int, second: int) -> Judgement:
    """Return the judgement on contender `second` against `first`; both must have the figure."""
    pair = figure.pair(first, second)
    if pair.noise == "equal":
        return "equal"
    if pair.noise != "more" or pair.best is None:
        return "cannot tell"
    return "better" if pair.best == 1 else "worse"


def overall(judgements: Iterable[Judgement]) -> Judgement:
    """Return the judgement on all figures.

    The result is "better" if some figures are better and no figure is worse, and vice versa. The
    result is "cannot tell" if some figures are better and other figures worse, or if no figure can
    be judged.
    """
    judgement = set(judgements)
    if {"better", "worse"} <= judgement or not judgement:
        return "cannot tell"
    words: tuple[Judgement, ...] = ("better", "worse")
    for word in words:
        if word in judgement:
            return word
    return "equal" if judgement == {"equal"} else "cannot tell"
