"""Figures as a function of a fit's coordinates, and their derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from writecliff.errors import ConfigError
from writecliff.published.conditions import Load, baseline_condition, condition, parts_of, preset_of
from writecliff.published.figures import PublishedFigure
from writecliff.published.fit.coordinates import Coordinates, Vector
from writecliff.published.fit.relatives import Prior, in_file, priors_of
from writecliff.published.fit.residuals import is_fitted
from writecliff.published.fit.simulations import Candidate, Simulations
from writecliff.published.fit.specification import Specification
from writecliff.published.scores import Row, row_of

_STEP = 0.06  # Step in a parameter's logarithm, which must exceed the scatter of short simulations.


class Problem:
    """Figures used in a fit, simulated at points in its coordinate space."""

    def __init__(
        self,
        spec: Specification,
        figures: Sequence[PublishedFigure],
        simulations: Simulations | None = None,
        *,
        rivals: Mapping[str, Mapping[str, float]] | None = None,
        priors: Mapping[str, Prior] | None = None,
        workers: int | None = None,
    ) -> None:
        """Select a fit's figures.

        Args:
            spec: The fit.
            figures: Figures to select from.
            simulations: Simulations to share with other fits.
            rivals: Values of rivals that differ from the rivals' device files.
            priors: Parameter priors (default: the values in the relatives' device files).
            workers: Maximum number of parallel simulations.

        Raises:
            ConfigError: If `figures` contains no figure for the fit's drives.
        """
        self.spec = spec
        self.simulations = simulations or Simulations()
        self.figures = figures_of(spec, figures)
        if not self.figures:
            raise ConfigError(
                f"the figures include none of {', '.join(spec.drives)}",
                hint="specify a table that contains figures for the fitted drives",
            )
        self._rivals = rivals or {}
        self._workers = workers
        names = (*spec.drives, *spec.rivals)
        self.texts = {name: self.simulations.text(name) for name in names}
        if priors is None:
            priors = priors_of(spec, lambda drive, key: in_file(self.simulations.text(drive), key))
        self.coordinates = Coordinates(spec, self.texts, priors)
        self._loads = {name: self._loads_of(name) for name in names}

    def _loads_of(self, drive: str) -> tuple[Load, ...]:
        parts = [part for figure in self.figures for part in parts_of(figure)]
        conditions = [c for f in parts for c in (condition(f), baseline_condition(f))]
        return tuple({c.load: None for c in conditions if c and c.load and c.device == drive})

    def simulate(self, points: Sequence[Vector]) -> None:
        """Simulate all figures at each point."""
        wanted = {
            self._candidate(name, at): loads for at in points for name, loads in self._loads.items()
        }
        self.simulations.run(wanted, self._workers)

    def rows(self, at: Vector) -> tuple[Row, ...]:
        """Return each figure with its simulated value."""
        self.simulate([at])
        results = {
            name: self.simulations.results(self._candidate(name, at)) for name in self._loads
        }
        return tuple(row_of(figure, results, {}) for figure in self.figures)

    def neighbours(self, at: Vector) -> tuple[Vector, list[tuple[Row, ...]]]:
        """Return a step along each coordinate and the simulated rows after each step.

        Steps point towards the centre of the bounds, so every point stays within the bounds.
        """
        steps, points = self._neighbours(at)
        self.simulate(points)
        return steps, [self.rows(point) for point in points]

    def wanted(self, at: Vector) -> dict[Candidate, tuple[Load, ...]]:
        """Return the candidates and loads to simulate for a point and its derivatives."""
        points = [at, *self._neighbours(at)[1]]
        return {self._candidate(d, p): self._loads[d] for p in points for d in self.spec.drives}

    def values(self, drive: str, at: Vector) -> Mapping[str, float]:
        """Return a drive's parameter values; for a rival, return the values given for it."""
        if drive in self.spec.drives:
            return self.coordinates.values(drive, at)
        return self._rivals.get(drive, {})

    def _neighbours(self, at: Vector) -> tuple[Vector, list[Vector]]:
        steps = _STEP * np.where(at < self.coordinates.middle, 1.0, -1.0)
        return steps, [at + step for step in np.diag(steps)]

    def _candidate(self, drive: str, at: Vector) -> Candidate:
        return Candidate(drive, self.spec.scale, tuple(self.values(drive, at).items()))


def figures_of(
    spec: Specification, figures: Sequence[PublishedFigure]
) -> tuple[PublishedFigure, ...]:
    """Return the figures used in a fit: its drives' absolute figures and their ratios."""
    drives = {*spec.drives, *spec.rivals}

    def usable(figure: PublishedFigure) -> bool:
        pair = {preset_of(figure.device), preset_of(figure.baseline or figure.device)}
        measured = condition(figure)
        ours = pair <= drives and not pair.isdisjoint(spec.drives)
        return ours and is_fitted(figure) and bool(measured and measured.load)

    return tuple(figure for figure in figures if usable(figure))
