"""Runs side by side: any that have figures in common.

    runs.py        what a comparison reads of a run: set-up, headline figures, curves
    answers.py     the same of saved answers of `run` and `replay`
    contenders.py  who is compared, from the paths that were given, and what each is called
    figures.py     the figures in common: who is best, by how much, whether that is more than noise
    noise.py       the test of a difference, and its level for many figures
    groups.py      a long list of figures in groups: how often each contender is better
    verdict.py     all of it in one sentence, or in a few
    picture.py     all figures relative to the first contender, with their intervals
    grids.py       figures over two settings in common: side by side, differences, who is better
    settings.py    figures over a setting in which they differ by a number
    page.py, grid_page.py, curves.py
                   tables, pictures and JSON

What a test is compared by is up to its report (`TestReport.headlines`, `curves`, `grids`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from writecliff.errors import ConfigError
from writecliff.report.comparison.contenders import Contender, contenders_in, differences
from writecliff.report.comparison.figures import Figure, figures_of
from writecliff.report.comparison.grids import SharedGrid, grids_of
from writecliff.report.comparison.runs import Difference, Run
from writecliff.report.comparison.verdict import verdict_of
from writecliff.shown import Grid, Shown, Shows


@dataclass(frozen=True)
class Comparison(Shows):
    """Contenders with what they have in common. Begin with `compare`."""

    contenders: Sequence[Contender]  # who is compared, in order

    @cached_property
    def figures(self) -> Sequence[Figure]:
        """The figures that at least two contenders have."""
        return figures_of(self.contenders)

    @cached_property
    def grids(self) -> Sequence[SharedGrid]:
        """The figures over two settings that at least two contenders have."""
        return grids_of(self.contenders)

    @cached_property
    def differences(self) -> Sequence[Difference]:
        """What differs in the set-up of tests that at least two of them ran."""
        return differences(self.contenders)

    @property
    def labels(self) -> Sequence[str]:
        return [contender.label for contender in self.contenders]

    @cached_property
    def verdict(self) -> str:
        """Who is better at what, by how much, and whether that is more than noise."""
        return verdict_of(self.labels, self.figures)

    def _shown(self) -> Shown:
        from writecliff.report.comparison.page import figure_names
        from writecliff.report.headline import interval_text, value_text

        rows = []
        for name, figure in zip(figure_names(self), self.figures, strict=True):
            cells = (
                "" if one is None else f"{value_text(one.value)}{interval_text(one.interval)}"
                for one in figure.values
            )
            rows.append((name, *cells, figure.one.unit, figure.margin_text))
        head = ("figure", *self.labels, "unit", "apart")
        grid = Grid(head, rows, f"l{'r' * len(self.labels)}lr")
        return Shown("", [self.verdict], [grid] if rows else [])


def compare(paths: Sequence[Path], known: dict[Path, Run] | None = None) -> Comparison:
    """Compare what is in `paths`: run directories, suites, sweeps, folders of them, saved answers.

    `known`: runs that need not be read, see `contenders_in`. Raises ConfigError: fewer than two
    contenders, or nothing that two of them measured; StoreError for a damaged run.
    """
    found = Comparison(contenders_in(paths, known))
    if len(found.contenders) < 2:
        (one,) = found.contenders
        raise ConfigError(
            f"there is only one thing to compare: {one.label} ({', '.join(one.runs)})",
            hint="give at least two runs, suites or sweeps, or two runs of the same test",
        )
    if not found.figures:
        tests = (f"{one.label}: {', '.join(one.runs)}" for one in found.contenders)
        raise ConfigError(
            f"nothing was measured by two of them ({'; '.join(tests)})",
            hint="compare runs of the same test",
        )
    return found
