"""Search for the values that bring the simulated drives closest to the figures.

The method is SciPy's trust-region least squares with a soft L1 loss, which gives little weight to
figures that contradict other figures. Derivatives are finite differences. The derivatives also
determine each parameter's standard error, and the parameter combinations that hardly affect any
figure.
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

_EVALUATIONS_MAX = 16  # Maximum evaluations of all figures, excluding evaluations for derivatives.
_CONVERGED = 0.005  # Relative cost change below which the search has converged.
_SMALLEST_STEP = 1e-3  # Smallest step relative to the vector of logarithms.
_UNDETERMINED = 0.5  # Standard error of a logarithm above which a parameter counts as undetermined.
# Contribution to flat combinations above which a parameter has no standard error.
_SHARE_LOST = 0.01


@dataclass(frozen=True)
class Estimate:
    """A fitted parameter, expressed in `unit`.

    If each drive of a family has its own value, this estimate applies to `drive`. `error_pct` is
    one standard error, or `None` if the figures do not constrain the value.
    """

    key: str
    drive: str | None
    unit: str  # Unit: "ns", "bytes/s", "bytes", or "" for counts.
    start: float
    value: float
    low: float
    high: float
    error_pct: float | None

    @property
    def at_bound(self) -> bool:
        """`True` if the value is within 1 % of either bound."""
        return min(self.value / self.low, self.high / self.value) < 1.01

    @property
    def determined(self) -> bool:
        """`True` if the figures determine the parameter to within 50 %."""
        return self.error_pct is not None and self.error_pct < 100 * _UNDETERMINED


@dataclass(frozen=True)
class FitResult:
    """Result of a fit.

    Attributes:
        estimates: fitted parameters.
        unidentifiable: parameter combinations of (key, weight) that hardly change any figure.
        before: all figures with the initial values.
        after: all figures with the fitted values.
        simulations: number of simulated candidates.
        texts: device file for each drive, with its fitted values.
        next_figures: measurements that would determine the first combinations in `unidentifiable`.
        whole: all figures at full size, or empty if these were not simulated.
        cost: half of the soft sum of squares of the final residuals.
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
    """Best point of a search, with the standard error of each coordinate.

    Errors assume that figures deviate by `SOFT`, and include the priors.
    """

    at: Vector
    errors: Vector


def optimum(
    problem: Problem, start: Vector, look: Callable[[Sequence[Row]], None] = lambda rows: None
) -> Optimum:
    """Search for the best point from `start`; `look` receives the rows of each derivative."""
    from scipy.optimize import least_squares

    residuals = Residuals(problem.rows(start), problem.coordinates)

    def derivatives(at: Vector) -> Vector:
        rows = problem.rows(at)
        look(rows)
        return residuals.derivatives(rows, *problem.neighbours(at))

    solution = least_squares(
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
    variances = SOFT**2 * np.diag(np.linalg.inv(solution.jac.T @ solution.jac))
    return Optimum(solution.x, np.sqrt(variances))


class Fit:
    """A fit that starts from the device file values; `at` is the best point so far."""

    def __init__(
        self,
        spec: Specification,
        figures: Sequence[PublishedFigure],
        log: Log = lambda text: None,
        *,
        seconds: Seconds = at_most_long,
    ) -> None:
        """Prepare a fit and simulate its initial values.

        Args:
            spec: The fit.
            figures: Figures to fit to.
            log: Function called with progress messages.
            seconds: Maximum simulated time of a load.

        Raises:
            ConfigError: If no figure or parameter fits the drives.
        """
        simulations = Simulations(FitProgress(log), seconds=seconds)
        self.problem = Problem(spec, figures, simulations)
        self.coordinates = self.problem.coordinates
        self.at = self.coordinates.start
        self._log = log
        log(f"{len(self.problem.figures)} figures, {len(self.at)} free parameters")
        self.rows = self.problem.rows(self.at)

    def run(self, *, whole: bool = False) -> FitResult:
        """Search for the parameters that bring the simulated drives closest to the figures.

        The search uses scaled-down drives. With `whole`, the fitted drives are also simulated at
        full size.
        """
        if not whole or self.problem.spec.scale <= 1:
            return self._search()
        start, simulations = self.at, self.problem.simulations
        full = Problem(replace(self.problem.spec, scale=1.0), self.problem.figures, simulations)
        # A large drive takes minutes to precondition. The drive state does not depend on times. The
        # state is therefore prepared with the initial values during the search, and copied at the
        # end.
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
        vector = residuals.without_weak_priors(residuals.vector(self.rows, self.at))
        # Square roots of the weights that make large deviations count linearly.
        weights = (1 + (vector / SOFT) ** 2) ** -0.25
        freedom = max(len(vector) - len(self.at), 1)
        variance = float(np.sum((vector * weights) ** 2)) / freedom
        steps, neighbours = self.problem.neighbours(self.at)
        jacobian = residuals.without_weak_priors(
            residuals.derivatives(self.rows, steps, neighbours)
        )
        spread = _Spread(jacobian * weights[:, None], variance)
        names = [
            coordinate.parameter.key + (f" of {coordinate.drive}" if coordinate.drive else "")
            for coordinate in self.coordinates.all
        ]
        drives = self.problem.spec.drives
        open_directions = spread.undetermined()
        if open_directions:
            self._log("searching for measurements that determine the remaining parameters")
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
        estimates = []
        for index, coordinate in enumerate(self.coordinates.all):
            along = np.zeros(len(self.at))
            along[index] = 1.0
            if coordinate.drive:
                along[self.coordinates.index(coordinate.parameter.key, None)] = 1.0
            estimates.append(self._estimate(coordinate.parameter, coordinate.drive, along, spread))
        return estimates

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
    """Uncertainty of each direction, from the weighted Jacobian at the optimum."""

    def __init__(self, jacobian: Vector, variance: float) -> None:
        # All directions are returned, even if there are fewer figures than parameters.
        _, values, self._directions = np.linalg.svd(jacobian, full_matrices=True)
        singular = np.pad(values, (0, len(self._directions) - len(values)))
        # A direction that affects no figure is unbounded.
        self._steep = singular > 1e-3 * max(float(singular[0]), 1e-9)
        deviation = np.where(self._steep, 1 / np.maximum(singular, 1e-12), np.inf)
        self._deviation = variance**0.5 * deviation

    def error_pct(self, along: Vector) -> float | None:
        """Return a combination's standard error in %, or None if it is unbounded."""
        shares = self._directions @ along
        if np.sum(shares[~self._steep] ** 2) > _SHARE_LOST:
            return None
        steep = self._steep
        return 100 * float(np.linalg.norm(shares[steep] * self._deviation[steep]))

    def undetermined(self) -> list[Vector]:
        """Return the directions that the figures do not determine."""
        return list(self._directions[self._deviation > _UNDETERMINED])


def _combination(names: Sequence[str], direction: Vector) -> tuple[tuple[str, float], ...]:
    pairs = [(name, float(x)) for name, x in zip(names, direction, strict=True)]
    return tuple(sorted((pair for pair in pairs if abs(pair[1]) > 0.2), key=lambda p: -abs(p[1])))


# -- next figures ----------------------------------------------------------------------------------

# Proposed measurements for parameters that the figures of a fit do not determine.
#
# For a parameter combination that hardly affects any figure, the loads in a menu are simulated
# around the fitted values. The load whose figure changes most is best suited to determine the
# combination.

_KIB = 1024
# Loads that most drives support: access pattern, block size, read percentage, outstanding I/Os and
# metric.
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
_LEAST = 0.1  # Minimum change in a figure's logarithm per change in the combination's logarithm.
COMBINATIONS_MAX = 3


@dataclass(frozen=True)
class Suggestion:
    """A figure to measure.

    `combination` is the index of the undetermined combination that the figure would determine, and
    `change_pct` is the figure's change if the combination changes by 10 %.
    """

    combination: int
    figure: PublishedFigure
    change_pct: float


def suggestions(
    problem: Problem, at: Vector, directions: Sequence[Vector]
) -> tuple[Suggestion, ...]:
    """Return the most sensitive figure for each of the first `directions` directions.

    A direction that affects no load of the menu has no such figure.
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
    chosen = []
    for number, direction in enumerate(directions[:COMBINATIONS_MAX]):
        changes = np.abs(slopes @ direction)
        best = int(np.argmax(changes))
        if changes[best] > _LEAST:
            change_pct = 100 * float(1.1 ** changes[best] - 1)
            chosen.append(Suggestion(number, rows[best].figure, change_pct))
    return tuple(chosen)


def _menu(problem: Problem) -> list[PublishedFigure]:
    """Return the menu's figures that the fit does not yet use."""
    have = {(c.device, c.load, c.metric) for f in problem.figures if (c := condition(f))}
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
        if (c := condition(f)) and (c.device, c.load, c.metric) not in have
    ]  # fmt: skip
