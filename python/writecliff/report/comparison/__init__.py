"""Comparisons of runs that report the same metrics.

    runs.py        the compared data of a run: set-up, headline figures and curves
    contenders.py  contenders read from runs, suites, sweeps and saved answers, and their labels
    figures.py     shared figures with the best contender, the margin and the significance
    noise.py       the significance test for a difference, and its level for many figures
    judgement.py   judgement of a contender against another: better, worse, equal or cannot tell
    groups.py      groups in a long list of figures, with the wins of each contender
    verdict.py     the result in one or a few sentences
    grids.py       shared figures over two settings: values, differences and best contender
    pictures.py    plots of curves, of figures over a setting, and of ratios to the first contender
    page.py, grid_page.py
                   tables, pictures and JSON

A test's report determines what is compared (`TestReport.headlines`, `curves`, `grids`).
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

_FIGURES = 5  # Maximum number of figures in a notebook.


@dataclass(frozen=True, repr=False)
class Comparison(Shows):
    """Contenders and their shared figures, created by `compare`."""

    contenders: Sequence[Contender]  # Contenders in their order of presentation.

    @cached_property
    def figures(self) -> Sequence[Figure]:
        """Figures shared by at least two contenders."""
        return figures_of(self.contenders)

    @cached_property
    def grids(self) -> Sequence[SharedGrid]:
        """Grids shared by at least two contenders."""
        return grids_of(self.contenders)

    @cached_property
    def differences(self) -> Sequence[Difference]:
        """Set-up differences between tests run by at least two contenders."""
        return differences(self.contenders)

    @property
    def labels(self) -> Sequence[str]:
        """Contender labels, in order."""
        return [contender.label for contender in self.contenders]

    @cached_property
    def verdict(self) -> str:
        """Sentences on each best contender, the largest difference and undecided figures."""
        return verdict_of(self.labels, self.figures)

    def _shown(self) -> Shown:
        from writecliff.report.comparison.page import figure_names
        from writecliff.report.headline import interval_text, value_text

        rows = []
        for name, figure in zip(figure_names(self), self.figures, strict=True):
            cells = (
                "" if value is None else f"{value_text(value.value)}{interval_text(value.interval)}"
                for value in figure.values
            )
            rows.append((name, *cells, figure.sample.unit, figure.margin_text))
        head = ("figure", *self.labels, "unit", "apart")
        grid = Grid(head, rows, f"l{'r' * len(self.labels)}lr")
        return Shown(self.verdict, (), [grid] if rows else [])

    def _shown_in_notebook(self) -> Shown:
        from writecliff.report.comparison.page import comparison_page
        from writecliff.report.pages import first_screen

        shown = self._shown()
        grids = [
            grid._replace(rows=grid.rows[:_FIGURES], total=len(grid.rows)) for grid in shown.grids
        ]
        return shown._replace(grids=grids, screen=first_screen(comparison_page(self)))


def compare(paths: Sequence[Path], cache: dict[Path, Run] | None = None) -> Comparison:
    """Compare the contenders found in `paths`.

    Args:
        paths: Run directories, suites, sweeps, folders that contain them, or saved JSON output.
        cache: Runs that have already been read (see `contenders_in`).

    Raises:
        ConfigError: If there are fewer than two contenders, or if they share no figure.
        StoreError: If a run is damaged.
    """
    comparison = Comparison(contenders_in(paths, cache))
    if len(comparison.contenders) < 2:
        (only,) = comparison.contenders
        raise ConfigError(
            f"only one contender to compare: {only.label} ({', '.join(only.runs)})",
            hint="specify at least two runs, suites or sweeps, or two runs of the same test",
        )
    if not comparison.figures:
        tests = (
            f"{contender.label}: {', '.join(contender.runs)}" for contender in comparison.contenders
        )
        raise ConfigError(
            f"no two contenders have a figure in common ({'; '.join(tests)})",
            hint="compare runs of the same test",
        )
    return comparison
