"""Figures as a function of the coordinates of a fit: simulated, compared, differentiated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from writecliff.errors import ConfigError
from writecliff.published.conditions import Load, baseline_condition, condition, parts_of, preset_of
from writecliff.published.figures import PublishedFigure
from writecliff.published.fit.coordinates import Coordinates, Vector
from writecliff.published.fit.relatives import Belief, beliefs_of, in_file
from writecliff.published.fit.residuals import is_fitted
from writecliff.published.fit.simulations import Candidate, Simulations
from writecliff.published.fit.specification import Specification
from writecliff.published.scores import Row, row_of

_STEP = 0.06  # of a parameter's logarithm: above the scatter of short simulations


class Problem:
    """The figures that a fit uses, out of `figures`. `rivals`: values of rivals where they are not
    those of their files; `beliefs`: what relatives tell where it is not what their files say;
    `workers`: simulations at a time.
    """

    def __init__(
        self,
        spec: Specification,
        figures: Sequence[PublishedFigure],
        simulations: Simulations | None = None,
        *,
        rivals: Mapping[str, Mapping[str, float]] | None = None,
        beliefs: Mapping[str, Belief] | None = None,
        workers: int | None = None,
    ) -> None:
        self.spec = spec
        self.simulations = simulations or Simulations()
        self.figures = figures_of(spec, figures)
        if not self.figures:
            raise ConfigError(f"there are no figures of {', '.join(spec.drives)} to fit to")
        self._rivals = rivals or {}
        self._workers = workers
        names = (*spec.drives, *spec.rivals)
        self.texts = {name: self.simulations.text(name) for name in names}
        if beliefs is None:
            beliefs = beliefs_of(
                spec, lambda drive, key: in_file(self.simulations.text(drive), key)
            )
        self.coordinates = Coordinates(spec, self.texts, beliefs)
        self._loads = {name: self._loads_of(name) for name in names}

    def _loads_of(self, drive: str) -> tuple[Load, ...]:
        parts = [part for figure in self.figures for part in parts_of(figure)]
        found = [c for f in parts for c in (condition(f), baseline_condition(f))]
        return tuple({c.load: None for c in found if c and c.load and c.device == drive})

    def simulate(self, points: Sequence[Vector]) -> None:
        """All figures at each point."""
        wanted = {
            self._candidate(name, at): loads for at in points for name, loads in self._loads.items()
        }
        self.simulations.run(wanted, self._workers)

    def rows(self, at: Vector) -> tuple[Row, ...]:
        """Each figure beside its simulation."""
        self.simulate([at])
        results = {
            name: self.simulations.results(self._candidate(name, at)) for name in self._loads
        }
        return tuple(row_of(figure, results, {}) for figure in self.figures)

    def neighbours(self, at: Vector) -> tuple[Vector, list[tuple[Row, ...]]]:
        """Steps along each coordinate, towards the middle of its bounds so that every point is
        within them, and the rows there.
        """
        steps, points = self._neighbours(at)
        self.simulate(points)
        return steps, [self.rows(point) for point in points]

    def wanted(self, at: Vector) -> dict[Candidate, tuple[Load, ...]]:
        """What a point and its derivatives simulate of the drives of the fit."""
        points = [at, *self._neighbours(at)[1]]
        return {self._candidate(d, p): self._loads[d] for p in points for d in self.spec.drives}

    def values(self, drive: str, at: Vector) -> Mapping[str, float]:
        """The values of a drive's parameters; of a rival those that it was given."""
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
    """The figures that a fit uses: of its drives, also relative to each other or to rivals."""
    known = {*spec.drives, *spec.rivals}

    def usable(figure: PublishedFigure) -> bool:
        pair = {preset_of(figure.device), preset_of(figure.baseline or figure.device)}
        one = condition(figure)
        ours = pair <= known and not pair.isdisjoint(spec.drives)
        return ours and is_fitted(figure) and bool(one and one.load)

    return tuple(figure for figure in figures if usable(figure))
