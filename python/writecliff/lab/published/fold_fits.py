"""The values of drives as found from the figures outside a fold.

A fit of a fold knows nothing of that of all figures: it starts at the middle of its bounds, with
derivatives of its own, and is given no figure of the fold. Rivals have the values of their own fits
of the same fold; only one that no fit varies stays as its file has it. What the first points of the
folds have in common is simulated once.

Fits whose parameters have relatives are done twice: first each from its own figures, then again
with what the first fits of the same fold, and device files where no fit varies the value, tell of
the relatives. So a prior knows no more of the fold than the fit itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from graphlib import CycleError, TopologicalSorter

from writecliff.errors import ConfigError
from writecliff.parallel import Task, run_side_by_side
from writecliff.published.conditions import Load
from writecliff.published.figures import PublishedFigure
from writecliff.published.fit.coordinates import Coordinates
from writecliff.published.fit.problem import Problem, figures_of
from writecliff.published.fit.relatives import LogValue, Prior, in_file, priors_of
from writecliff.published.fit.simulations import Candidate, Simulations
from writecliff.published.fit.solve import Optimum, optimum
from writecliff.published.fit.specification import Specification
from writecliff.published.measure import MeasurementObserver

Values = Mapping[str, float]  # by key of the device file
DriveValues = Mapping[tuple[str, int], Values]  # of a drive without a fold


@dataclass(frozen=True)
class FoldFit:
    """A fit to do without a fold. `work`: its share of all work, estimated; `again`: with what is
    known of relatives and of rivals whose fit has relatives.
    """

    fit: str
    fold: int
    work: float
    again: bool = False


class FoldFits:
    """All fits that a cross-validation needs. `needed`: pairs of a fit and a fold; `fold_of`: of
    the figures, those without one are never left out.
    """

    def __init__(
        self,
        specs: Mapping[str, Specification],
        figures: Sequence[PublishedFigure],
        fold_of: Mapping[PublishedFigure, int],
        needed: Collection[tuple[str, int]],
        observer: MeasurementObserver | None = None,
    ) -> None:
        self._specs = specs
        self._figures = figures
        self._fold_of = fold_of
        self._observer = observer or MeasurementObserver()
        self._simulations = Simulations(self._observer)
        self._values: dict[tuple[str, int], Values] = {}
        self._first: dict[tuple[str, int], tuple[Coordinates, Optimum]] = {}  # by fit and fold
        self.owners = owners_of(specs)
        self._last = with_others(specs, needed)
        self.needed = with_others(specs, needed, relatives=True)
        self._again = fits_again(specs)

    def run(self, done: Callable[[FoldFit], None] = lambda one: None) -> DriveValues:
        """Find the values of each drive without each fold."""
        todo, waves = self.todo(), self._waves()
        for again in (False, True):
            for wave in waves:
                folds = [one for one in todo if one.fit in wave and one.again is again]
                self._run(folds, done)
        return self._values

    def _run(self, folds: Sequence[FoldFit], done: Callable[[FoldFit], None]) -> None:
        self._simulations.run(self._first_points({one.fit for one in folds if not one.again}))
        tasks = [
            Task(
                f"{one.fit} without fold {one.fold}",
                self._memory_bytes(self._specs[one.fit]),
                partial(self._find, one, done),
            )
            for one in folds
        ]
        run_side_by_side(tasks, stop=self._observer.stop)

    def todo(self) -> list[FoldFit]:
        """The fits, those with the most work first."""
        works = {name: self._work(name) for name in self._specs}
        runs = [(fit, fold, False) for fit, fold in self.needed]
        runs += [(fit, fold, True) for fit, fold in self._last if fit in self._again]
        total = sum(works[fit] for fit, _, _ in runs) or 1.0
        found = [FoldFit(fit, fold, works[fit] / total, again) for fit, fold, again in runs]
        return sorted(found, key=lambda one: (one.again, -one.work, one.fit, one.fold))

    def _work(self, name: str) -> float:
        """Simulations grow with the loads, and derivatives with the parameters."""
        spec = self._specs[name]
        return (1 + len(spec.parameters)) * (1 + len(figures_of(spec, self._figures)))

    def _waves(self) -> list[tuple[str, ...]]:
        """The fits in groups, rivals before those who need them."""
        before = {
            fit: {self.owners[rival] for rival in spec.rivals if rival in self.owners} - {fit}
            for fit, spec in self._specs.items()
        }
        sorter, waves = TopologicalSorter(before), []
        try:
            sorter.prepare()
        except CycleError as error:
            names = " and ".join(sorted(set(error.args[1])))
            raise ConfigError(
                f"the fits {names} have each other's drives as rivals",
                hint="make one fit of all their drives",
            ) from None
        while sorter.is_active():
            waves.append(sorter.get_ready())
            sorter.done(*waves[-1])
        return waves

    def _first_points(self, fits: Collection[str]) -> dict[Candidate, Collection[Load]]:
        found: dict[Candidate, Collection[Load]] = {}
        for name in sorted(fits):
            spec = self._specs[name]
            if figures_of(spec, self._figures):
                problem = Problem(spec, self._figures, self._simulations)
                found |= problem.wanted(problem.coordinates.middle)
        return found

    def _memory_bytes(self, spec: Specification) -> int:
        return max(self._simulations.memory_bytes(d, spec.scale) for d in spec.drives)

    def _find(self, one: FoldFit, done: Callable[[FoldFit], None]) -> None:
        spec = self._specs[one.fit]
        seen = [f for f in self._figures if self._fold_of.get(f) != one.fold]
        texts = {drive: self._simulations.text(drive) for drive in spec.drives}
        priors = self._priors(spec, one.fold) if one.again else {}
        coordinates = Coordinates(spec, texts, priors)
        start = self._first[one.fit, one.fold][1].at if one.again else coordinates.middle
        if figures_of(spec, seen):
            rivals = {rival: self._values.get((rival, one.fold), {}) for rival in spec.rivals}
            problem = Problem(
                spec, seen, self._simulations, rivals=rivals, priors=priors, workers=1
            )
            found = optimum(problem, start)
        else:
            found = Optimum(*coordinates.priors_alone())
        if not one.again:
            self._first[one.fit, one.fold] = coordinates, found
        for drive in spec.drives:
            self._values[drive, one.fold] = coordinates.values(drive, found.at)
        done(one)

    def _priors(self, spec: Specification, fold: int) -> Mapping[str, Prior]:
        def known(drive: str, key: str) -> LogValue | None:
            first = self._first.get((self.owners.get(drive, ""), fold))
            varied = (
                None
                if first is None
                else first[0].log_value(drive, key, first[1].at, first[1].errors)
            )
            return varied or in_file(self._simulations.text(drive), key)

        return priors_of(spec, known)


def owners_of(specs: Mapping[str, Specification]) -> dict[str, str]:
    """The fit that varies each drive; of several the first."""
    found: dict[str, str] = {}
    for name, spec in specs.items():
        for drive in spec.drives:
            found.setdefault(drive, name)
    return found


def with_others(
    specs: Mapping[str, Specification],
    needed: Collection[tuple[str, int]],
    *,
    relatives: bool = False,
) -> set[tuple[str, int]]:
    """The fits and folds, those of their rivals, of whose rivals, and so on; with `relatives` those
    of relatives too.
    """
    owners, found, more = owners_of(specs), set[tuple[str, int]](), set(needed)
    while more:
        found |= more
        more = {
            (owners[drive], fold)
            for fit, fold in more
            for drive in (*specs[fit].rivals, *(specs[fit].relatives if relatives else ()))
            if drive in owners
        } - found
    return found


def fits_again(specs: Mapping[str, Specification]) -> set[str]:
    """The fits that have relatives, or rivals whose fits are done again."""
    owners, found = owners_of(specs), {name for name, spec in specs.items() if spec.relatives}
    more = found
    while more:
        more = {
            name
            for name, spec in specs.items()
            if any(owners.get(rival) in more for rival in spec.rivals)
        } - found
        found = found | more
    return found
