"""Drive values, estimated from the figures outside a fold.

A fold's fit uses nothing from the fit to all figures. The fit starts at the midpoint of its bounds,
calculates its own derivatives, and receives no figure in the fold. Rival drives have the values
from their own fits for the same fold. A rival that no fit varies has the values in its device file.
Simulations that several folds share are run once.

Fits whose parameters have relatives are run twice. The first run uses only the fit's own figures.
The second run uses priors from the first fits for the same fold, or from device files for values
that no fit varies. A prior therefore uses no more of the fold's figures than the fit itself.
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

Values = Mapping[str, float]  # Parameter values by device file key.
DriveValues = Mapping[tuple[str, int], Values]  # Parameter values by drive and held-out fold.


@dataclass(frozen=True)
class FoldFit:
    """A fit that omits a fold.

    `work` is the fit's estimated fraction of all work. `again` marks the second run, with priors
    from relatives and with rivals whose fits have relatives.
    """

    fit: str
    fold: int
    work: float
    again: bool = False


class FoldFits:
    """All fits that a cross-validation requires."""

    def __init__(
        self,
        specs: Mapping[str, Specification],
        figures: Sequence[PublishedFigure],
        fold_of: Mapping[PublishedFigure, int],
        needed: Collection[tuple[str, int]],
        observer: MeasurementObserver | None = None,
    ) -> None:
        """Plan the fits.

        Args:
            specs: All fits.
            figures: Figure table.
            fold_of: Folds by figure; figures without a fold are never held out.
            needed: Pairs of a fit and a fold.
            observer: Observer that receives the progress.
        """
        self._specs = specs
        self._figures = figures
        self._fold_of = fold_of
        self._observer = observer or MeasurementObserver()
        self._simulations = Simulations(self._observer)
        self._values: dict[tuple[str, int], Values] = {}
        # Optimum by fit and fold.
        self._first: dict[tuple[str, int], tuple[Coordinates, Optimum]] = {}
        self.owners = owners_of(specs)
        self._last = with_others(specs, needed)
        self.needed = with_others(specs, needed, relatives=True)
        self._again = fits_again(specs)

    def run(self, done: Callable[[FoldFit], None] = lambda fold_fit: None) -> DriveValues:
        """Estimate each drive's values, excluding one fold at a time."""
        todo, waves = self.todo(), self._waves()
        for again in (False, True):
            for wave in waves:
                folds = [f for f in todo if f.fit in wave and f.again is again]
                self._run(folds, done)
        return self._values

    def _run(self, folds: Sequence[FoldFit], done: Callable[[FoldFit], None]) -> None:
        self._simulations.run(self._first_points({f.fit for f in folds if not f.again}))
        tasks = [
            Task(
                f"{f.fit} without fold {f.fold}",
                self._memory_bytes(self._specs[f.fit]),
                partial(self._find, f, done),
            )
            for f in folds
        ]
        run_side_by_side(tasks, stop=self._observer.stop)

    def todo(self) -> list[FoldFit]:
        """Return the fits in descending order of work."""
        works = {name: self._work(name) for name in self._specs}
        runs = [(fit, fold, False) for fit, fold in self.needed]
        runs += [(fit, fold, True) for fit, fold in self._last if fit in self._again]
        total = sum(works[fit] for fit, _, _ in runs) or 1.0
        fold_fits = [FoldFit(fit, fold, works[fit] / total, again) for fit, fold, again in runs]
        return sorted(fold_fits, key=lambda f: (f.again, -f.work, f.fit, f.fold))

    def _work(self, name: str) -> float:
        """Estimated work, which grows with the numbers of loads and parameters."""
        spec = self._specs[name]
        return (1 + len(spec.parameters)) * (1 + len(figures_of(spec, self._figures)))

    def _waves(self) -> list[tuple[str, ...]]:
        """The fits in groups, where the fits of rivals precede the fits that depend on them."""
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
                f"the fits {names} use each other's drives as rivals",
                hint="fit all of their drives together",
            ) from None
        while sorter.is_active():
            waves.append(sorter.get_ready())
            sorter.done(*waves[-1])
        return waves

    def _first_points(self, fits: Collection[str]) -> dict[Candidate, Collection[Load]]:
        points: dict[Candidate, Collection[Load]] = {}
        for name in sorted(fits):
            spec = self._specs[name]
            if figures_of(spec, self._figures):
                problem = Problem(spec, self._figures, self._simulations)
                points |= problem.wanted(problem.coordinates.middle)
        return points

    def _memory_bytes(self, spec: Specification) -> int:
        return max(self._simulations.memory_bytes(d, spec.scale) for d in spec.drives)

    def _find(self, fold_fit: FoldFit, done: Callable[[FoldFit], None]) -> None:
        spec = self._specs[fold_fit.fit]
        seen = [f for f in self._figures if self._fold_of.get(f) != fold_fit.fold]
        texts = {drive: self._simulations.text(drive) for drive in spec.drives}
        priors = self._priors(spec, fold_fit.fold) if fold_fit.again else {}
        coordinates = Coordinates(spec, texts, priors)
        start = (
            self._first[fold_fit.fit, fold_fit.fold][1].at if fold_fit.again else coordinates.middle
        )
        if figures_of(spec, seen):
            rivals = {rival: self._values.get((rival, fold_fit.fold), {}) for rival in spec.rivals}
            problem = Problem(
                spec, seen, self._simulations, rivals=rivals, priors=priors, workers=1
            )
            best = optimum(problem, start)
        else:
            best = Optimum(*coordinates.priors_alone())
        if not fold_fit.again:
            self._first[fold_fit.fit, fold_fit.fold] = coordinates, best
        for drive in spec.drives:
            self._values[drive, fold_fit.fold] = coordinates.values(drive, best.at)
        done(fold_fit)

    def _priors(self, spec: Specification, fold: int) -> Mapping[str, Prior]:
        def value_in(drive: str, key: str) -> LogValue | None:
            first = self._first.get((self.owners.get(drive, ""), fold))
            varied = (
                None
                if first is None
                else first[0].log_value(drive, key, first[1].at, first[1].errors)
            )
            return varied or in_file(self._simulations.text(drive), key)

        return priors_of(spec, value_in)


def owners_of(specs: Mapping[str, Specification]) -> dict[str, str]:
    """Return the (first) fit that varies each drive."""
    owners: dict[str, str] = {}
    for name, spec in specs.items():
        for drive in spec.drives:
            owners.setdefault(drive, name)
    return owners


def with_others(
    specs: Mapping[str, Specification],
    needed: Collection[tuple[str, int]],
    *,
    relatives: bool = False,
) -> set[tuple[str, int]]:
    """Return the fits and folds, including the fits of their rivals, recursively.

    If `relatives` is set, the fits of relatives are also included.
    """
    owners, pairs, more = owners_of(specs), set[tuple[str, int]](), set(needed)
    while more:
        pairs |= more
        more = {
            (owners[drive], fold)
            for fit, fold in more
            for drive in (*specs[fit].rivals, *(specs[fit].relatives if relatives else ()))
            if drive in owners
        } - pairs
    return pairs


def fits_again(specs: Mapping[str, Specification]) -> set[str]:
    """Return the fits that have relatives, or rivals whose fits are run again."""
    owners, names = owners_of(specs), {name for name, spec in specs.items() if spec.relatives}
    more = names
    while more:
        more = {
            name
            for name, spec in specs.items()
            if any(owners.get(rival) in more for rival in spec.rivals)
        } - names
        names = names | more
    return names
