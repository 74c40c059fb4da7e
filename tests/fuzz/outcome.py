"""Outcome of a case, and summary of a kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal[
    "done", "refused", "simulates", "traceback", "panic", "killed", "slow", "hangs", "large"
]
FAILURES: tuple[Verdict, ...] = ("traceback", "panic", "killed", "slow", "hangs", "large")


@dataclass(frozen=True)
class Outcome:
    """Outcome of one case.

    `place` is the source line of a failure, `message` the last line that the command printed.
    """

    number: int
    verdict: Verdict
    seconds: float  # CPU time in seconds.
    peak_bytes: int
    place: str = ""
    message: str = ""

    @property
    def failed(self) -> bool:
        return self.verdict in FAILURES


@dataclass
class Summary:
    """Outcomes of the cases of a kind."""

    kind: str
    outcomes: list[Outcome] = field(default_factory=list)

    def places(self) -> dict[tuple[str, str], list[int]]:
        """Return the counts of failed cases by verdict and location, the most frequent first."""
        numbers: dict[tuple[str, str], list[int]] = defaultdict(list)
        for outcome in self.outcomes:
            if outcome.failed:
                numbers[outcome.verdict, outcome.place].append(outcome.number)
        return dict(sorted(numbers.items(), key=lambda item: -len(item[1])))

    def lines(self) -> Iterable[str]:
        """Yield the summary lines: counts, extremes, and the first cases of each location."""
        counts: dict[str, int] = defaultdict(int)
        for outcome in self.outcomes:
            counts[outcome.verdict] += 1
        shown = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
        slowest = max(self.outcomes, key=lambda outcome: outcome.seconds)
        largest = max(self.outcomes, key=lambda outcome: outcome.peak_bytes)
        yield (
            f"{self.kind}: {len(self.outcomes)} cases: {shown}; slowest {slowest.seconds:.1f} s "
            f"(case {slowest.number}), largest {largest.peak_bytes >> 20} MiB (case {largest.number})"
        )
        for (verdict, place), numbers in self.places().items():
            message = next(
                outcome.message for outcome in self.outcomes if outcome.number == numbers[0]
            )
            yield f"  {len(numbers):4} {verdict} {place}: {message}  [{', '.join(map(str, numbers[:4]))}]"
