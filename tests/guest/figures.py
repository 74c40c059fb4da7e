"""Figures of the drive tests: how many cases of each figure have passed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Self

# Description of each figure by the name in its tests' marks.
FIGURES = {
    "drives": "tests to the end on a drive, conformant but short",
    "purge": "purge methods that succeed and are verified",
    "cache": "drives whose write cache is off, or reported",
    "faults": "faults survived with all measurements kept",
    "targets": "dangerous targets refused, unchanged",
    "gaps": "loads whose cuts add no gap above 2 ms",
}
_WIDTH = max(map(len, FIGURES.values())) + 2


class Figures:
    """Cases of each figure. A case may consist of several tests; it passes if all of them pass."""

    def __init__(self) -> None:
        self._cases: dict[str, dict[str, str]] = {}

    def count(self, figure: str, case: str, outcome: str) -> None:
        """Count one phase of a test.

        Raises:
            ValueError: the figure does not exist.
        """
        if figure not in FIGURES:
            raise ValueError(f"{case}: no figure is called {figure}; see {__name__}")
        cases = self._cases.setdefault(figure, {})
        if cases.get(case, "passed") == "passed":
            cases[case] = outcome

    def save(self, path: Path) -> None:
        """Write the cases to a file."""
        path.write_text(json.dumps(self._cases, indent=1))

    @classmethod
    def of_files(cls, *paths: Path) -> Self:
        """Read the cases from those files that exist."""
        figures = cls()
        for path in paths:
            cases = json.loads(path.read_text()) if path.exists() else {}
            for figure, outcomes in cases.items():
                for case, outcome in outcomes.items():
                    figures.count(figure, case, outcome)
        return figures

    def lines(self) -> list[str]:
        """Return a line for each tested figure, and a line for each case that did not pass."""
        lines = []
        for figure, text in FIGURES.items():
            cases = self._cases.get(figure, {})
            if cases:
                passed = sum(outcome == "passed" for outcome in cases.values())
                lines.append(f"{text:<{_WIDTH}}{passed} of {len(cases)}")
                lines += [f"    {case}: {how}" for case, how in cases.items() if how != "passed"]
        return lines
