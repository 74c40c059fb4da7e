"""One run or suite against another: what differs in set-up and environment, and in results.

Figures, intervals and the rule about noise are those of every comparison (`report.comparison`).
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
    """What tells run B from run A. Begin with `difference`."""

    compared: Comparison
    environment: Sequence[tuple[str, str | None, str | None]]  # what, of A, of B
    names: Sequence[str] = ()  # of A and B

    @cached_property
    def judgements(self) -> Sequence[tuple[Figure, Judgement]]:
        """The figures that both have, and what each says of B against A."""
        return [(figure, judgement(figure, 0, 1)) for figure in self.compared.figures]

    @property
    def judgement(self) -> Judgement:
        """All of it in a word: B against A."""
        return overall(word for _, word in self.judgements)

    @property
    def verdict(self) -> str:
        """The answer of the comparison in a sentence."""
        if not self.compared.figures:
            return "They have no figure in common: nothing can be said of their results."
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
            Grid((*one.head, "B is"), [(*row, w) for row, w in zip(one.rows, words, strict=True)],
                 f"{one.align}l")
            for one in figures
        ]  # fmt: skip
        return Shown("", [self.verdict, f"B in all: {self.judgement}"], grids)


def difference(first: Path, second: Path, names: Sequence[str]) -> RunDifference:
    """What differs between two run directories, suites or saved answers, A and B; messages call
    them by `names`.

    Raises ConfigError: a path that is not one run or suite; StoreError: damaged.
    """
    sides = zip("AB", (first, second), names, strict=True)
    contenders = [_one(side, path, name) for side, path, name in sides]
    return RunDifference(Comparison(contenders), _environment(first, second), names)


def _one(label: str, path: Path, name: str) -> Contender:
    found = contenders_in([path])
    if len(found) != 1:
        raise ConfigError(
            f"{name} holds {len(found)} things to compare",
            hint="give one run or suite; `writecliff compare` takes any number",
        )
    return replace(found[0], label=label, fixed=True)


def _environment(first: Path, second: Path) -> list[tuple[str, str | None, str | None]]:
    """Versions and host of two runs where they differ; what a simulated drive does depends on none
    of it but writecliff.
    """
    try:
        manifests = [read_manifest(path) for path in (first, second)]
    except ConfigError:  # a suite, or a saved answer
        return []
    mine, its = ({**one.versions, **one.host} for one in manifests)
    return [
        (what.replace("_", " "), mine.get(what), its.get(what))
        for what in dict.fromkeys((*mine, *its))
        if mine.get(what) != its.get(what)
    ]
