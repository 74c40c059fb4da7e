"""Differences between two runs or suites, in set-up, environment and results.

Figures, intervals and the significance rule are the same as in `report.comparison`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from writecliff.errors import ConfigError
from writecliff.report.comparison import Comparison
from writecliff.report.comparison.contenders import Contender, contenders_in
from writecliff.report.comparison.figures import Figure
from writecliff.report.comparison.judgement import Judgement, judgement, overall
from writecliff.shown import Grid, Shown, Shows
from writecliff.store.manifest import read_manifest


@dataclass(frozen=True)
class RunDifference(Shows):
    """Differences between run B and run A, created by `difference`."""

    compared: Comparison
    environment: Sequence[tuple[str, str | None, str | None]]  # Name, value in A, value in B.
    names: Sequence[str] = ()  # Names of runs A and B.

    @cached_property
    def judgements(self) -> Sequence[tuple[Figure, Judgement]]:
        """Figures that both runs have, each with the judgement on B relative to A."""
        return [(figure, judgement(figure, 0, 1)) for figure in self.compared.figures]

    @property
    def judgement(self) -> Judgement:
        """Overall judgement on B relative to A."""
        return overall(word for _, word in self.judgements)

    @property
    def verdict(self) -> str:
        """Comparison result as a sentence."""
        if not self.compared.figures:
            return "The two runs have no figure in common, so their results cannot be compared."
        return self.compared.verdict

    def _shown(self) -> Shown:
        from writecliff.report.comparison.page import differences_table

        setup = differences_table(self.compared)
        rows = [] if setup is None else [[str(cell) for cell in row] for row in setup.rows]
        rows += [[what, mine or "", its or ""] for what, mine, its in self.environment]
        grids = [Grid(("differs", "A", "B"), rows, "lll")] if rows else []
        figures = self.compared._shown().grids
        words = [word for _, word in self.judgements]
        grids += [
            Grid((*grid.head, "B is"), [(*row, w) for row, w in zip(grid.rows, words, strict=True)],
                 f"{grid.align}l")
            for grid in figures
        ]  # fmt: skip
        return Shown("", [self.verdict, f"B in all: {self.judgement}"], grids)


def difference(first: Path, second: Path, names: Sequence[str]) -> RunDifference:
    """Compare A and B, which can be run directories, suites or saved outputs.

    Args:
        first: Run or suite A.
        second: Run or suite B.
        names: Names of A and B used in messages.

    Raises:
        ConfigError: If a path does not contain exactly one run or suite.
        StoreError: If a run is damaged.
    """
    sides = zip("AB", (first, second), names, strict=True)
    contenders = [_contender(side, path, name) for side, path, name in sides]
    return RunDifference(Comparison(contenders), _environment(first, second), names)


def _contender(label: str, path: Path, name: str) -> Contender:
    contenders = contenders_in([path])
    if len(contenders) != 1:
        raise ConfigError(
            f"{name} contains {len(contenders)} runs or suites",
            hint="specify a single run or suite, or use `writecliff compare`, which takes any "
            "number",
        )
    return replace(contenders[0], label=label, fixed=True)


def _environment(first: Path, second: Path) -> list[tuple[str, str | None, str | None]]:
    """Return the versions and host data that differ between two runs.

    A simulated drive's results depend only on the writecliff version.
    """
    try:
        manifests = [read_manifest(path) for path in (first, second)]
    except ConfigError:  # The path refers to a suite or saved output.
        return []
    mine, its = ({**manifest.versions, **manifest.host} for manifest in manifests)
    return [
        (what.replace("_", " "), mine.get(what), its.get(what))
        for what in dict.fromkeys((*mine, *its))
        if mine.get(what) != its.get(what)
    ]
