"""Figures as a function of the coordinates of a fit: simulated, compared, differentiated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from writecliff.devices import read_device_file
from writecliff.errors import ConfigError
from writecliff.parallel import Task, run_side_by_side
from writecliff.published.conditions import Load, baseline_condition, condition, parts_of, preset_of
from writecliff.published.figures import PublishedFigure
from writecliff.published.fit.coordinates import Coordinates, Vector
from writecliff.published.fit.device_text import with_numbers
from writecliff.published.fit.residuals import is_fitted
from writecliff.published.fit.specification import Specification
from writecliff.published.measure import ComparedDrive, Results, drive_memory, measure
from writecliff.published.scores import Row, row_of
from writecliff.published.states import PreparedDrives

SECONDS_MAX = 6.0
_STEP = 0.06  # of a parameter's logarithm: above the scatter of short simulations


class Problem:
    """All simulations use the same seeds, so that differences are those of the parameters. A drive
    is simulated once for each set of its values, whatever the values of other drives."""

    def __init__(self, spec: Specification, figures: Sequence[PublishedFigure]) -> None:
        self.spec = spec
        self._files = {name: read_device_file(name) for name in (*spec.drives, *spec.rivals)}
        self.figures = tuple(f for f in figures if self._usable(f))
        if not self.figures:
            raise ConfigError(f"there are no figures of {', '.join(spec.drives)} to fit to")
        self.texts = {name: text for name, (text, _) in self._files.items()}
        self.coordinates = Coordinates(spec, self.texts)
        self.simulations = 0
        self._prepared = PreparedDrives()  # parameters are times: candidates share their states
        self._results: dict[tuple[str, tuple[float, ...]], Results] = {}
        self._loads = {name: self._loads_of(name) for name in self._files}

    def _usable(self, figure: PublishedFigure) -> bool:
        pair = {preset_of(figure.device), preset_of(figure.baseline or figure.device)}
        ours = pair <= set(self._files) and not pair.isdisjoint(self.spec.drives)
        one = condition(figure)
        return ours and is_fitted(figure) and bool(one and one.load)

    def _loads_of(self, drive: str) -> tuple[Load, ...]:
        parts = [part for figure in self.figures for part in parts_of(figure)]
        found = [c for f in parts for c in (condition(f), baseline_condition(f))]
        return tuple({c.load: None for c in found if c and c.load and c.device == drive})

    def simulate(self, points: Sequence[Vector]) -> None:
        """All figures at each point; drives that no point has had yet run side by side."""
        wanted = {self._key(name, at): name for at in points for name in self._files}
        new = [key for key in wanted if key not in self._results]
        drives = [self._drive(name, dict(zip(self._keys(name), v, strict=True))) for name, v in new]
        self.simulations += len(drives)
        answers = run_side_by_side(
            [
                Task(f"{drive.name} {n}", 2 * drive_memory(drive), partial(self._measure, drive))
                for n, drive in enumerate(drives)
            ]
        )
        self._results |= dict(zip(new, answers, strict=True))

    def rows(self, at: Vector) -> tuple[Row, ...]:
        """Each figure beside its simulation."""
        self.simulate([at])
        results = {name: self._results[self._key(name, at)] for name in self._files}
        return tuple(row_of(figure, results, {}) for figure in self.figures)

    def neighbours(self, at: Vector) -> tuple[Vector, list[tuple[Row, ...]]]:
        """Steps along each coordinate, towards the middle of its bounds so that every point is
        within them, and the rows there."""
        middle = (self.coordinates.low + self.coordinates.high) / 2
        steps = _STEP * np.where(at < middle, 1.0, -1.0)
        points = [at + step for step in np.diag(steps)]
        self.simulate(points)
        return steps, [self.rows(point) for point in points]

    def values(self, drive: str, at: Vector) -> Mapping[str, float]:
        """The values of a drive's parameters; none for a rival."""
        return self.coordinates.values(drive, at) if drive in self.spec.drives else {}

    def _keys(self, drive: str) -> list[str]:
        return list(self.values(drive, self.coordinates.start))

    def _key(self, drive: str, at: Vector) -> tuple[str, tuple[float, ...]]:
        return drive, tuple(self.values(drive, at).values())

    def _drive(self, name: str, values: Mapping[str, float]) -> ComparedDrive:
        text, file_name = self._files[name]
        drive = ComparedDrive(name, with_numbers(text, values) if values else text, file_name)
        return drive.scaled(self.spec.scale) if self.spec.scale > 1 else drive

    def _measure(self, drive: ComparedDrive) -> Results:
        short = {
            load: replace(load, seconds=min(load.seconds, SECONDS_MAX))
            for load in self._loads[drive.name]
        }
        measured = measure(drive, set(short.values()), prepared=self._prepared)
        return {load: measured[brief] for load, brief in short.items()}
