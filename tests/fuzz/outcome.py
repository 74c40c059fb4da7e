"""What became of one case, and a summary of many."""

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
    """`place` is where a failure was noticed; `said` the last line of what the command said."""

    number: int
    verdict: Verdict
    seconds: float  # of processor time
    peak_bytes: int
    place: str = ""
    said: str = ""

    @property
    def failed(self) -> bool:
        return self.verdict in FAILURES


@dataclass
class Summary:
    """The outcomes of one kind."""

    kind: str
    outcomes: list[Outcome] = field(default_factory=list)

    def places(self) -> dict[tuple[str, str], list[int]]:
        """The numbers of the failed cases by verdict and place, the most frequent first."""
        found: dict[tuple[str, str], list[int]] = defaultdict(list)
        for one in self.outcomes:
            if one.failed:
                found[one.verdict, one.place].append(one.number)
        return dict(sorted(found.items(), key=lambda item: -len(item[1])))

    def lines(self) -> Iterable[str]:
        """For the terminal: counts, extremes, and each place with the numbers of its first cases."""
        counts: dict[str, int] = defaultdict(int)
        for one in self.outcomes:
            counts[one.verdict] += 1
        shown = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
        slowest = max(self.outcomes, key=lambda one: one.seconds)
        largest = max(self.outcomes, key=lambda one: one.peak_bytes)
        yield (
            f"{self.kind}: {len(self.outcomes)} cases: {shown}; slowest {slowest.seconds:.1f} s "
            f"(case {slowest.number}), largest {largest.peak_bytes >> 20} MiB (case {largest.number})"
        )
        for (verdict, place), numbers in self.places().items():
            said = next(one.said for one in self.outcomes if one.number == numbers[0])
            yield f"  {len(numbers):4} {verdict} {place}: {said}  [{', '.join(map(str, numbers[:4]))}]"
