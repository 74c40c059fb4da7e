"""One run set against another: better, worse, equal, or nothing can be said.

The rule is that of every comparison (`figures.RULE`): a difference counts where it is more than
noise. What lies within noise, has no interval or was measured at another load cannot be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from writecliff.report.comparison.figures import Figure

Judgement = Literal["better", "worse", "equal", "cannot tell"]
JUDGEMENTS: Sequence[Judgement] = ("better", "worse", "equal", "cannot tell")


def judgement(figure: Figure, first: int, second: int) -> Judgement:
    """What the figure says of contender `second` against contender `first`, both of which have
    it.
    """
    pair = figure.pair(first, second)
    if pair.noise == "equal":
        return "equal"
    if pair.noise != "more" or pair.best is None:
        return "cannot tell"
    return "better" if pair.best == 1 else "worse"


def overall(judgements: Iterable[Judgement]) -> Judgement:
    """All figures in one word: better if some are and none is worse, and the other way round; if
    some are better and others worse, or none can be told, nothing can be said.
    """
    found = set(judgements)
    if {"better", "worse"} <= found or not found:
        return "cannot tell"
    words: tuple[Judgement, ...] = ("better", "worse")
    for word in words:
        if word in found:
            return word
    return "equal" if found == {"equal"} else "cannot tell"
