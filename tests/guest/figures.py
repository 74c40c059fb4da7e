"""The figures that the drive tests are about: how many cases of each have passed, from their results."""

from __future__ import annotations

from collections.abc import Mapping

# What a figure counts, by the name that marks its tests.
FIGURES = {
    "drives": "drives on which the quick tests run to the end",
    "purge": "purge methods that succeed and are verified",
    "cache": "drives whose write cache is off, or reported",
    "faults": "faults survived with all measurements kept",
    "targets": "dangerous targets refused, unchanged",
    "gaps": "tests without a gap above 2 ms between intervals",
    "power": "runs resumed after a power failure",
}


class Figures:
    """The cases of each figure. A case may be several tests; it passes if all of them do."""

    def __init__(self) -> None:
        self._cases: dict[str, dict[str, str]] = {}

    def count(self, marks: Mapping[str, str], test: str, outcome: str) -> None:
        """Counts a phase of a test. `marks` maps figures to cases; "" makes each test a case."""
        for figure, case in marks.items():
            if figure not in FIGURES:
                raise ValueError(f"{test}: no figure is called {figure}; see {__name__}")
            cases = self._cases.setdefault(figure, {})
            name = case or test
            if cases.get(name, "passed") == "passed":
                cases[name] = outcome

    def lines(self) -> list[str]:
        """One line for each figure that was tested, and the cases that did not pass."""
        lines = []
        for figure, text in FIGURES.items():
            cases = self._cases.get(figure, {})
            if cases:
                passed = sum(outcome == "passed" for outcome in cases.values())
                lines.append(f"{text:<52} {passed} of {len(cases)}")
                lines += [f"    {case}: {how}" for case, how in cases.items() if how != "passed"]
        return lines
