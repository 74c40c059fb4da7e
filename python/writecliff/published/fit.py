"""Estimating a drive's free parameters from measured figures.

The parameters of a specification (TOML) are varied within their bounds until the simulated drives
are as near to the figures as they get: least squares of the logarithms of simulated by measured,
with little weight for figures that contradict the rest. The same derivatives show which parameters
the figures determine: the standard error of each parameter, and the combinations of parameters that
hardly change any figure.

    drives = ["pm863-960", "pm863-800"]  # or paths of device files
    rivals = []  # drives that stay as they are, for figures relative to them
    scale = 16  # the drives are simulated at this fraction of their size
    [parameters."controller.relocation_time"]
    from = "2 us"
    to = "60 us"

Method: SciPy's trust-region least squares with a soft L1 loss. Derivatives are finite differences;
all simulations use the same seeds, so that differences are those of the parameters. Lists of times
are scaled as one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from writecliff.devices import open_device, read_device_file
from writecliff.devices.edit import value_of, with_values
from writecliff.devices.quantities import number
from writecliff.errors import ConfigError
from writecliff.native_errors import as_user_errors
from writecliff.parallel import Task, run_side_by_side
from writecliff.published.conditions import Load, baseline_condition, condition, preset_of
from writecliff.published.figures import PublishedFigure
from writecliff.published.measure import ComparedDrive, drive_memory, measure
from writecliff.published.scores import Row, row_of

Log = Callable[[str], None]
Vector = npt.NDArray[np.float64]

FITS = Path(__file__).parent / "fits"
# Maxima and deviations depend on single events: a fit would chase chance.
_METRICS = (
    "iops", "iops_fob", "iops_steady", "read_iops", "write_iops", "throughput", "throughput_fob",
    "latency_avg", "latency_p99", "latency_p99.9", "iops_improvement", "throughput_improvement",
)  # fmt: skip
_SECONDS_MAX = 6.0
_STEP = 0.06  # of a parameter's logarithm: above the scatter of short simulations
_EVALUATIONS_MAX = 16  # of all figures, those for derivatives not counted
_CONVERGED = 0.005  # relative change of the cost
_SMALLEST_STEP = 1e-3  # relative to the vector of logarithms
_SOFT = 0.15  # deviations beyond it count linearly, not squared
_UNDETERMINED = 0.5  # standard error of a logarithm from which a parameter is not determined
_SHARE_LOST = 0.01  # share of a parameter in flat combinations that voids its standard error
LARGEST_IO_BYTES = 1 << 20


@dataclass(frozen=True)
class Parameter:
    """A key of the device file, and the bounds of its value (of the mean, for a list)."""

    key: str
    low: float
    high: float


@dataclass(frozen=True)
class Specification:
    """The drives to fit, the drives they are compared with, and the free parameters."""

    drives: tuple[str, ...]
    rivals: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    scale: float


@dataclass(frozen=True)
class Estimate:
    """A fitted parameter, in `unit`. `error_pct` is one standard error, or None where the figures
    do not constrain the parameter."""

    key: str
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
    """`unidentifiable`: combinations of parameters, as (key, share), that change hardly any
    figure. `before` and `after`: all figures with the first and the fitted values."""

    estimates: tuple[Estimate, ...]
    unidentifiable: tuple[tuple[tuple[str, float], ...], ...]
    before: tuple[Row, ...]
    after: tuple[Row, ...]
    simulations: int


def read_specification(path: Path) -> Specification:
    """Raises ConfigError with the file and what is wrong."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    unknown = set(data) - {"drives", "rivals", "scale", "parameters"}
    if unknown:
        raise ConfigError(
            f"{path}: unknown key '{min(unknown)}'", hint="known: drives, parameters, rivals, scale"
        )
    drives, tables = data.get("drives"), data.get("parameters")
    if not drives or not tables:
        raise ConfigError(f"{path}: a fit needs 'drives' and a table of 'parameters'")
    parameters = tuple(_parameter(path, key, table) for key, table in tables.items())
    rivals = tuple(data.get("rivals", ()))
    return Specification(tuple(drives), rivals, parameters, float(data.get("scale", 16)))


def _parameter(path: Path, key: str, table: Mapping[str, Any]) -> Parameter:
    if set(table) != {"from", "to"}:
        raise ConfigError(f"{path}: {key} needs 'from' and 'to', and nothing else")
    low, high = number(table["from"]), number(table["to"])
    if not 0 < low < high:
        raise ConfigError(f"{path}: {key}: 'from' must be above 0 and below 'to'")
    return Parameter(key, low, high)


class _Problem:
    """Figures as a function of the logarithms of the parameters; every point is simulated once."""

    def __init__(self, spec: Specification, figures: Sequence[PublishedFigure]) -> None:
        self.spec = spec
        self.texts = {name: read_device_file(name) for name in (*spec.drives, *spec.rivals)}
        self.figures = tuple(f for f in figures if self._usable(f))
        if not self.figures:
            raise ConfigError(f"there are no figures of {', '.join(spec.drives)} to fit to")
        self.text = self.texts[spec.drives[0]][0]
        self.start = np.array([np.log(number(value_of(self.text, p.key))) for p in spec.parameters])
        self.low = np.log([p.low for p in spec.parameters])
        self.high = np.log([p.high for p in spec.parameters])
        self.simulations = 0
        rivals = self._measure_all([self._drive(name, None) for name in spec.rivals])
        self._rivals = dict(zip(spec.rivals, rivals, strict=True))
        self._rows: dict[bytes, list[Row]] = {}

    def _usable(self, figure: PublishedFigure) -> bool:
        pair = {preset_of(figure.device), preset_of(figure.baseline or figure.device)}
        ours = pair <= set(self.texts) and not pair.isdisjoint(self.spec.drives)
        one = condition(figure)
        return ours and figure.metric in _METRICS and bool(one and one.load)

    def simulate(self, points: Sequence[Vector]) -> None:
        """All figures at each point, side by side."""
        new = [at for at in points if at.tobytes() not in self._rows]
        drives = [self._drive(name, at) for at in new for name in self.spec.drives]
        answers = iter(self._measure_all(drives))
        for at in new:
            results = {name: next(answers) for name in self.spec.drives} | self._rivals
            self._rows[at.tobytes()] = [row_of(f, results, {}) for f in self.figures]

    def rows(self, at: Vector) -> tuple[Row, ...]:
        self.simulate([at])
        return tuple(self._rows[at.tobytes()])

    def deviations(self, at: Vector) -> Vector:
        """log(simulated / measured); a figure that the simulation cannot give is far off."""
        errors = (row.error_pct for row in self.rows(at))
        return np.array([2.0 if e is None else np.log(max(1 + e / 100, 1e-3)) for e in errors])

    def jacobian(self, at: Vector) -> Vector:
        """Derivatives of `deviations` by finite differences, towards the middle of the bounds so
        that every point is within them."""
        here = self.deviations(at)
        signs = np.where(at < (self.low + self.high) / 2, 1.0, -1.0)
        points = [at + step for step in _STEP * np.diag(signs)]
        self.simulate(points)
        there = [self.deviations(point) for point in points]
        return np.array([(d - here) / (_STEP * s) for d, s in zip(there, signs, strict=True)]).T

    def _measure_all(
        self, drives: Sequence[ComparedDrive]
    ) -> list[Mapping[Load, Mapping[str, float]]]:
        self.simulations += len(drives)
        return run_side_by_side(
            [
                Task(f"{drive.name} {n}", drive_memory(drive), partial(self._measure, drive))
                for n, drive in enumerate(drives)
            ]
        )

    def _drive(self, name: str, at: Vector | None) -> ComparedDrive:
        text, file_name = self.texts[name]
        if at is not None:
            keys = [p.key for p in self.spec.parameters]
            text = _with_values(text, dict(zip(keys, np.exp(at).tolist(), strict=True)))
        if self.spec.scale > 1:
            with as_user_errors():
                device = open_device(text, file_name).scaled(self.spec.scale, LARGEST_IO_BYTES)
            text = device.text
        return ComparedDrive(name, text, file_name)

    def _measure(self, drive: ComparedDrive) -> Mapping[Load, Mapping[str, float]]:
        found = (c for f in self.figures for c in (condition(f), baseline_condition(f)))
        loads = {one.load for one in found if one and one.load and one.device == drive.name}
        short = {load: replace(load, seconds=min(load.seconds, _SECONDS_MAX)) for load in loads}
        measured = measure(drive, short.values(), log=lambda text: None)
        return {load: measured[brief] for load, brief in short.items()}


def fit(
    spec: Specification,
    figures: Sequence[PublishedFigure],
    log: Log = lambda text: None,
) -> FitResult:
    """Find the parameters that bring the simulated drives nearest to the figures.

    `log` receives a line per iteration. Raises ConfigError: no figures, or a key that the device
    file does not have.
    """
    from scipy.optimize import least_squares

    problem = _Problem(spec, figures)
    begin = problem.start.clip(problem.low, problem.high)

    def derivatives(at: Vector) -> Vector:
        cost = np.mean(_SOFT**2 * 2 * (np.sqrt(1 + (problem.deviations(at) / _SOFT) ** 2) - 1))
        log(f"{problem.simulations} simulations: deviation {cost**0.5:.3f}")
        return problem.jacobian(at)

    found = least_squares(
        problem.deviations,
        begin,
        derivatives,
        bounds=(problem.low, problem.high),
        loss="soft_l1",
        f_scale=_SOFT,
        ftol=_CONVERGED,
        xtol=_SMALLEST_STEP,
        max_nfev=_EVALUATIONS_MAX,
    )
    return _result(problem, begin, found.x)


def _result(problem: _Problem, begin: Vector, at: Vector) -> FitResult:
    deviation = problem.deviations(at)
    # Square roots of the weights that make large deviations count linearly.
    weights = (1 + (deviation / _SOFT) ** 2) ** -0.25
    freedom = max(len(deviation) - len(at), 1)
    variance = float(np.sum((deviation * weights) ** 2)) / freedom
    weighted = problem.jacobian(at) * weights[:, None]
    _, singular, directions = np.linalg.svd(weighted, full_matrices=False)
    # A direction along which no figure changes has no bound.
    steep = singular > 1e-3 * max(float(singular[0]), 1e-9)
    spread = np.where(steep, 1 / np.maximum(singular, 1e-12), np.inf)
    flat = np.sum(directions[~steep] ** 2, axis=0) > _SHARE_LOST
    errors = np.sqrt(variance * np.sum((directions[steep].T * spread[steep]) ** 2, axis=1))
    estimates = tuple(
        Estimate(
            p.key, _unit(value_of(problem.text, p.key)), float(np.exp(start)), float(np.exp(x)),
            p.low, p.high, None if is_flat else 100 * float(error),
        )
        for p, start, x, error, is_flat in zip(
            problem.spec.parameters, problem.start, at, errors, flat, strict=True
        )
    )  # fmt: skip
    unidentifiable = tuple(
        _combination(problem.spec.parameters, direction)
        for direction in directions[variance**0.5 * spread > _UNDETERMINED]
    )
    before, after = problem.rows(begin), problem.rows(at)
    return FitResult(estimates, unidentifiable, before, after, problem.simulations)


def _combination(
    parameters: Sequence[Parameter], direction: Vector
) -> tuple[tuple[str, float], ...]:
    pairs = [(p.key, float(x)) for p, x in zip(parameters, direction, strict=True)]
    return tuple(sorted((pair for pair in pairs if abs(pair[1]) > 0.2), key=lambda p: -abs(p[1])))


def fitted_text(text: str, result: FitResult) -> str:
    """A device file with the fitted values; comments with sources stay."""
    return _with_values(text, {e.key: e.value for e in result.estimates})


def _with_values(text: str, values: Mapping[str, float]) -> str:
    """The device file with new values in the form that it has; a list keeps its proportions."""

    def written(raw: object, value: float) -> str:
        if not isinstance(raw, list):
            return _quantity(raw, value)
        factor = value / number(raw)
        return "[" + ", ".join(_quantity(one, number(one) * factor) for one in raw) + "]"

    return with_values(
        text, {key: (written(value_of(text, key), value), None) for key, value in values.items()}
    )


def _unit(raw: object) -> str:
    """The unit of a value of a device file: "ns", "bytes/s", "bytes", or "" for a count."""
    first = raw[0] if isinstance(raw, list) else raw
    if not isinstance(first, str):
        return ""
    return "bytes/s" if first.endswith("/s") else "bytes" if first.endswith("B") else "ns"


def _quantity(raw: object, value: float) -> str:
    """`value`, in the unit of `raw`, as TOML."""
    unit = _unit(raw)
    if not unit:
        return str(round(value)) if isinstance(raw, int) else f"{value:.4g}"
    if unit == "bytes/s":
        return f'"{value / 1e6:.4g} MB/s"'
    if unit == "bytes":
        return f'"{max(1, round(value / 1024))} KiB"'
    whole_ns = round(float(f"{value:.4g}"))  # the simulator counts whole nanoseconds
    return f'"{whole_ns / 1e3:g} us"' if whole_ns < 1e6 else f'"{whole_ns / 1e6:g} ms"'
