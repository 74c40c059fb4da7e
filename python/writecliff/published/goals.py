"""What a catalogue that predicts drives has to reach, and how far it is from that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from writecliff.published.scores import Duel, Score

Measure = Literal["median_error_pct", "within_20_pct"]


@dataclass(frozen=True)
class Goal:
    """One goal and what was reached, both in per cent; None: nothing to judge."""

    what: str
    limit_pct: float
    at_least: bool  # else at most
    reached_pct: float | None

    @property
    def met(self) -> bool | None:
        if self.reached_pct is None:
            return None
        return self.short_by_pct == 0

    @property
    def short_by_pct(self) -> float | None:
        """Percentage points; 0 where it is met."""
        if self.reached_pct is None:
            return None
        short = self.limit_pct - self.reached_pct
        return max(0.0, short if self.at_least else -short)

    @property
    def limit_text(self) -> str:
        return f"{'at least' if self.at_least else 'at most'} {self.limit_pct:g} %"

    @property
    def verdict(self) -> str:
        if self.short_by_pct is None:
            return "nothing to judge"
        return "met" if self.met else f"short by {self.short_by_pct:.1f} points"


# Group of `scores.GROUPS`, which number of it, its limit in %, whether more is better.
_GOALS: tuple[tuple[str, Measure, float, bool], ...] = (
    ("throughput", "median_error_pct", 6.0, False),
    ("throughput", "within_20_pct", 90.0, True),
    ("latency, average", "median_error_pct", 10.0, False),
    ("latency, percentiles and maximum", "median_error_pct", 35.0, False),
)
_WORDS: dict[Measure, str] = {
    "median_error_pct": "median absolute error",
    "within_20_pct": "figures within 20 %",
}
_DUELS_PCT = 95.0


def goals_of(scores: Sequence[Score], duels: Sequence[Duel]) -> tuple[Goal, ...]:
    by_group = {score.group: score for score in scores}
    found = []
    for group, measure, limit, at_least in _GOALS:
        score = by_group.get(group)
        reached = None if score is None else float(getattr(score, measure))
        found.append(Goal(f"{group}: {_WORDS[measure]}", limit, at_least, reached))
    share = right_pct(duels)
    return (*found, Goal("which of two drives is better: right", _DUELS_PCT, True, share))


def right_pct(duels: Sequence[Duel]) -> float | None:
    """Share of the comparisons with the right winner, in %; None without comparisons."""
    return 100 * sum(duel.right for duel in duels) / len(duels) if duels else None
