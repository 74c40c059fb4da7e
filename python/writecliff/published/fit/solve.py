"""The values that bring the simulated drives nearest to the figures, and how well they are known.

Method: SciPy's trust-region least squares with a soft L1 loss, so that figures which contradict the
rest have little weight. Derivatives are finite differences; the same derivatives show which
parameters the figures determine: the standard error of each, and the combinations that hardly
change any figure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from writecliff.devices.edit import value_of
from writecliff.published.conditions import condition
from writecliff.published.figures import PublishedFigure
from writecliff.published.figures import unit_of as unit_of_metric
from writecliff.published.fit.coordinates import Vector
from writecliff.published.fit.device_text import unit_of, with_numbers
from writecliff.published.fit.problem import Problem
from writecliff.published.fit.progress import FitProgress
from writecliff.published.fit.residuals import Residuals, deviations, soft_cost
from writecliff.published.fit.simulations import Seconds, Simulations, at_most_long
from writecliff.published.fit.specification import SOFT, Parameter, Specification
from writecliff.published.scores import Row

Log = Callable[[str], None]

_EVALUATIONS_MAX = 16  # of all figures, those for derivatives not counted
_CONVERGED = 0.005  # relative change of the cost
_SMALLEST_STEP = 1e-3  # relative to the vector of logarithms
_UNDETERMINED = 0.5  # standard error of a logarithm from which a parameter is not determined
_SHARE_LOST = 0.01  # share of a parameter in flat combinations that voids its standard error


@dataclass(frozen=True)
class Estimate:
    """A fitted parameter, in `unit`; of a family that has values of its own for each drive, that of
    `drive`. `error_pct` is one standard error, or None where the figures do not constrain it.
    """

    key: str
    drive: str | None
    unit: str  # "ns", "bytes/s", "bytes", "" for counts
    start: float
    value: float
    low: float
    high: float
    error_pct: float | None

    @property
    def at_bound(self) -> bool:
        """Whether the value ended within 1 % of a bound."""
        return min(self.value / self.low, self.high / self.value) < 1.01

    @property
    def determined(self) -> bool:
        """Whether the figures determine the parameter to within 50 %."""
        return self.error_pct is not None and self.error_pct < 100 * _UNDETERMINED


@dataclass(frozen=True)
class FitResult:
    """`cost`: of the figures at the end, half of their soft square sum. `unidentifiable`:
    combinations of parameters, as (key, share), that change hardly any figure. `before` and
    `after`: all figures with the first and the fitted values. `texts`: the device file of each
    drive with its fitted values. `next_figures`: what to measure to determine the first of
    `unidentifiable`. `whole`: all figures of the drives at their full size; empty if these were not
    simulated.
    """

    estimates: tuple[Estimate, ...]
    unidentifiable: tuple[tuple[tuple[str, float], ...], ...]
    before: tuple[Row, ...]
    after: tuple[Row, ...]
    simulations: int
    texts: dict[str, str]
    next_figures: tuple[Suggestion, ...] = ()
    whole: tuple[Row, ...] = ()
    cost: float = 0.0


@dataclass(frozen=True)
class Optimum:
    """The best point that a search finds, and the standard error of each of its coordinates if
    figures are off by `SOFT`; their priors count.
    """

    at: Vector
    errors: Vector


def optimum(
    problem: Problem, start: Vector, look: Callable[[Sequence[Row]], None] = lambda rows: None
) -> Optimum:
    """The best point that the search from `start` finds. `look` is shown the figures wherever
    derivatives are taken.
    """
    from scipy.optimize import least_squares

    residuals = Residuals(problem.rows(start), problem.coordinates)

    def derivatives(at: Vector) -> Vector:
        rows = problem.rows(at)
        look(rows)
        return residuals.derivatives(rows, *problem.neighbours(at))

    found = least_squares(
        lambda at: residuals.vector(problem.rows(at), at),
        start,
        derivatives,
        bounds=(problem.coordinates.low, problem.coordinates.high),
        loss="soft_l1",
        f_scale=SOFT,
        ftol=_CONVERGED,
        xtol=_SMALLEST_STEP,
        max_nfev=_EVALUATIONS_MAX,
    )
    variances = SOFT**2 * np.diag(np.linalg.inv(found.jac.T @ found.jac))
    return Optimum(found.x, np.sqrt(variances))


class Fit:
    """A fit under way, from the values of the device files; `at` is the best point so far. A load
    is simulated for `seconds` of it at most.
    """

    def __init__(
        self,
        spec: Specification,
        figures: Sequence[PublishedFigure],
        log: Log = lambda text: None,
        *,
        seconds: Seconds = at_most_long,
    ) -> None:
        simulations = Simulations(FitProgress(log), seconds=seconds)
        self.problem = Problem(spec, figures, simulations)
        self.coordinates = self.problem.coordinates
        self.at = self.coordinates.start
        self._log = log
        log(f"{len(self.problem.figures)} figures, {len(self.at)} values to find")
        self.rows = self.problem.rows(self.at)  # a first look before the first derivatives

    def run(self, *, whole: bool = False) -> FitResult:
        """Find the parameters that bring the simulated drives nearest to the figures. The search is
        on drives that are scaled down; with `whole`, those found are simulated at full size too.
        """
        if not whole or self.problem.spec.scale <= 1:
            return self._search()
        start, simulations = self.at, self.problem.simulations
        full = Problem(replace(self.problem.spec, scale=1.0), self.problem.figures, simulations)
        # A large drive takes minutes to prepare. Its state depends on no time, so it is made with
        # the first values beside the search, and copied at the end.
        with ThreadPoolExecutor(1) as beside:
            begun = beside.submit(full.rows, start)
            try:
                result = self._search()
                self._log("simulating the drives at full size")
                before = begun.result()
            except BaseException:
                simulations.stop()
                raise
        return replace(result, before=before, whole=full.rows(self.at))

    def _search(self) -> FitResult:
        before = self.rows
        self.at = optimum(self.problem, self.at, self._report).at
        self.rows = self.problem.rows(self.at)
        return self._result(before, Residuals(before, self.coordinates))

    def _report(self, rows: Sequence[Row]) -> None:
        count = self.problem.simulations.count
        sizes = [abs(row.error_pct) for row in rows if row.error_pct is not None]
        self._log(
            f"{count} simulations: median error {np.median(sizes):.1f} %"
            if sizes
            else f"{count} simulations"
        )

    def _result(self, before: tuple[Row, ...], residuals: Residuals) -> FitResult:
        vector = residuals.known(residuals.vector(self.rows, self.at))
        # Square roots of the weights that make large deviations count linearly.
        weights = (1 + (vector / SOFT) ** 2) ** -0.25
        freedom = max(len(vector) - len(self.at), 1)
        variance = float(np.sum((vector * weights) ** 2)) / freedom
        steps, neighbours = self.problem.neighbours(self.at)
        jacobian = residuals.known(residuals.derivatives(self.rows, steps, neighbours))
        spread = _Spread(jacobian * weights[:, None], variance)
        names = [
            one.parameter.key + (f" of {one.drive}" if one.drive else "")
            for one in self.coordinates.all
        ]
        drives = self.problem.spec.drives
        open_directions = spread.undetermined()
        if open_directions:
            self._log("looking for what to measure next")
        texts = {
            name: with_numbers(self.problem.texts[name], self.problem.values(name, self.at))
            for name in drives
        }
        return FitResult(
            tuple(self._estimates(spread)),
            tuple(_combination(names, direction) for direction in open_directions),
            before,
            self.rows,
            self.problem.simulations.count,
            texts,
            suggestions(self.problem, self.at, open_directions),
            cost=soft_cost(vector),
        )

    def _estimates(self, spread: _Spread) -> list[Estimate]:
        found = []
        for index, one in enumerate(self.coordinates.all):
            along = np.zeros(len(self.at))
            along[index] = 1.0
            if one.drive:
                along[self.coordinates.index(one.parameter.key, None)] = 1.0
            found.append(self._estimate(one.parameter, one.drive, along, spread))
        return found

    def _estimate(
        self, parameter: Parameter, drive: str | None, along: Vector, spread: _Spread
    ) -> Estimate:
        first = self.coordinates.drives_of[parameter.key][0]
        unit = unit_of(value_of(self.problem.texts[drive or first], parameter.key))
        start, value = (
            float(np.exp(np.clip(along @ at, np.log(parameter.low), np.log(parameter.high))))
            for at in (self.coordinates.start, self.at)
        )
        return Estimate(
            parameter.key, drive, unit, start, value, parameter.low, parameter.high,
            spread.error_pct(along),
        )  # fmt: skip


class _Spread:
    """How far the figures leave each direction open, from the weighted Jacobian at the optimum."""

    def __init__(self, jacobian: Vector, variance: float) -> None:
        # All directions, also those that fewer figures than parameters leave out.
        _, values, self._directions = np.linalg.svd(jacobian, full_matrices=True)
        singular = np.pad(values, (0, len(self._directions) - len(values)))
        # A direction along which no figure changes has no bound.
        self._steep = singular > 1e-3 * max(float(singular[0]), 1e-9)
        deviation = np.where(self._steep, 1 / np.maximum(singular, 1e-12), np.inf)
        self._deviation = variance**0.5 * deviation

    def error_pct(self, along: Vector) -> float | None:
        """One standard error of a combination of coordinates, in %; None if it is not bounded."""
        shares = self._directions @ along
        if np.sum(shares[~self._steep] ** 2) > _SHARE_LOST:
            return None
        steep = self._steep
        return 100 * float(np.linalg.norm(shares[steep] * self._deviation[steep]))

    def undetermined(self) -> list[Vector]:
        return list(self._directions[self._deviation > _UNDETERMINED])


def _combination(names: Sequence[str], direction: Vector) -> tuple[tuple[str, float], ...]:
    pairs = [(name, float(x)) for name, x in zip(names, direction, strict=True)]
    return tuple(sorted((pair for pair in pairs if abs(pair[1]) > 0.2), key=lambda p: -abs(p[1])))


# -- next figures ----------------------------------------------------------------------------------

# Proposed measurements: loads that separate parameters that the figures of a fit do not determine.
#
# For a combination of parameters that hardly changes any figure, the loads of a menu are simulated
# around the fitted values. The load whose figure changes most determines the combination best.

_KIB = 1024
# Access, block size, share of reads, outstanding I/Os, metric: loads that most drives support.
_MENU = (
    ("random", 4 * _KIB, 100.0, 1, "latency_avg"),
    ("random", 128 * _KIB, 100.0, 1, "latency_avg"),
    ("random", 4 * _KIB, 0.0, 1, "latency_avg_burst"),
    ("random", 4 * _KIB, 100.0, 128, "iops"),
    ("random", 4 * _KIB, 0.0, 32, "iops"),
    ("random", 4 * _KIB, 0.0, 32, "iops_burst"),
    ("random", 4 * _KIB, 70.0, 32, "iops"),
    ("random", 64 * _KIB, 0.0, 32, "throughput"),
    ("sequential", 128 * _KIB, 100.0, 32, "throughput"),
    ("sequential", 128 * _KIB, 0.0, 32, "throughput"),
    ("sequential", 128 * _KIB, 0.0, 32, "throughput_burst"),
)
_LEAST = 0.1  # change of a figure's logarithm for one of the combination's that is worth measuring
COMBINATIONS_MAX = 3


@dataclass(frozen=True)
class Suggestion:
    """A figure to measure. `combination`: which of those that are not determined it bounds;
    `change_pct`: of the figure, if that combination changes by 10 %.
    """

    combination: int
    figure: PublishedFigure
    change_pct: float


def suggestions(
    problem: Problem, at: Vector, directions: Sequence[Vector]
) -> tuple[Suggestion, ...]:
    """The most telling figure for each of the first `directions`; none where no load of the menu
    changes with it.
    """
    menu = _menu(problem)
    if not directions or not menu:
        return ()
    loads = Problem(problem.spec, menu, problem.simulations)
    rows = loads.rows(at)
    here = deviations(rows)
    steps, neighbours = loads.neighbours(at)
    slopes = np.array(
        [(deviations(there) - here) / step for step, there in zip(steps, neighbours, strict=True)]
    ).T
    found = []
    for number, direction in enumerate(directions[:COMBINATIONS_MAX]):
        changes = np.abs(slopes @ direction)
        best = int(np.argmax(changes))
        if changes[best] > _LEAST:
            change_pct = 100 * float(1.1 ** changes[best] - 1)
            found.append(Suggestion(number, rows[best].figure, change_pct))
    return tuple(found)


def _menu(problem: Problem) -> list[PublishedFigure]:
    """The figures of the menu that the fit does not have yet."""
    have = {(one.device, one.load, one.metric) for f in problem.figures if (one := condition(f))}
    figures = [
        PublishedFigure(
            source="next", item="", device=drive, baseline="", access=access, block_bytes=block,
            read_pct=read, outstanding=depth, metric=metric, value=1.0, unit=unit_of_metric(metric),
            note="",
        )
        for drive in problem.spec.drives
        for access, block, read, depth, metric in _MENU
    ]  # fmt: skip
    return [
        f for f in figures
        if (one := condition(f)) and (one.device, one.load, one.metric) not in have
    ]  # fmt: skip
