"""Estimating a drive's free parameters from measured figures.

The parameters of a specification (TOML) are varied within their bounds until the simulated drives
are as near to the figures as they get: least squares of the logarithms of simulated by measured,
with little weight for figures that contradict the rest. What the figures can and cannot tell apart
comes from the same derivatives: the standard error of each parameter, and the combinations of
parameters that hardly change any figure.

    drives = ["pm863-960", "pm863-800"]  # or paths of device files
    rivals = []  # drives that stay as they are, for figures relative to them
    scale = 16  # the drives are simulated at this fraction of their size
    [parameters."controller.collect_time"]
    from = "2 us"
    to = "60 us"

Method: Levenberg and Marquardt, with derivatives by finite differences; all simulations have the
same seeds, so that differences are those of the parameters. Lists of times are scaled as one.
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

from writecliff.devices import read_device_file
from writecliff.devices.edit import with_values
from writecliff.devices.quantities import number
from writecliff.engines.scaled import scaled_device
from writecliff.errors import ConfigError
from writecliff.parallel import Task, run_side_by_side
from writecliff.published.conditions import Load, baseline_condition, condition, preset_of
from writecliff.published.figures import PublishedFigure
from writecliff.published.measure import Drive, drive_memory, measure
from writecliff.published.scores import Row, row_of

Tell = Callable[[str], None]
Vector = npt.NDArray[np.float64]

FITS = Path(__file__).parent / "fits"
# Maxima and deviations are of single events: a fit would chase chance.
_METRICS = (
    "iops", "iops_fob", "iops_steady", "read_iops", "write_iops", "throughput", "throughput_fob",
    "latency_avg", "latency_p99", "latency_p99.9", "iops_improvement", "throughput_improvement",
)  # fmt: skip
_SECONDS_MAX = 6.0
_STEP = 0.06  # of a parameter's logarithm: above what short simulations scatter
_ITERATIONS_MAX = 8
_CONVERGED = 0.005  # relative change of the sum of squares
_SOFT = 0.15  # deviations beyond it count linearly, not squared
_UNTOLD = 0.5  # standard error of a logarithm from which a parameter is not determined
_LOST = 0.01  # share of a parameter in such combinations from which it has no standard error
LARGEST_IO_BYTES = 1 << 20


@dataclass(frozen=True)
class Parameter:
    """A key of the device file, and the bounds of its value (of the mean, for a list)."""

    key: str
    low: float
    high: float


@dataclass(frozen=True)
class Specification:
    drives: tuple[str, ...]
    rivals: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    scale: float


@dataclass(frozen=True)
class Estimate:
    """A fitted parameter, in `unit`. `error_pct` is one standard error; None where the figures say
    nothing."""

    key: str
    unit: str  # "ns", "bytes/s", "bytes", "" for counts
    start: float
    value: float
    low: float
    high: float
    error_pct: float | None

    @property
    def at_bound(self) -> bool:
        return min(self.value / self.low, self.high / self.value) < 1.01

    @property
    def told(self) -> bool:
        return self.error_pct is not None and self.error_pct < 100 * _UNTOLD


@dataclass(frozen=True)
class FitResult:
    """`confused`: combinations of parameters, as (key, share), that change hardly any figure."""

    estimates: tuple[Estimate, ...]
    confused: tuple[tuple[tuple[str, float], ...], ...]
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
    """Figures as a function of the logarithms of the parameters."""

    def __init__(self, spec: Specification, figures: Sequence[PublishedFigure]) -> None:
        self.spec = spec
        self.all = (*spec.drives, *spec.rivals)
        self.texts = {name: read_device_file(name) for name in self.all}
        self.figures = tuple(f for f in figures if self._usable(f))
        if not self.figures:
            raise ConfigError(f"there are no figures of {', '.join(spec.drives)} to fit to")
        self.files = {name: tomllib.loads(text) for name, (text, _) in self.texts.items()}
        first = self.files[spec.drives[0]]
        self.start = np.array([np.log(_value(first, p.key)) for p in spec.parameters])
        self.low = np.log([p.low for p in spec.parameters])
        self.high = np.log([p.high for p in spec.parameters])
        self.simulations = 0
        self.rivals = self._measure_all([(self._drive(name, None)) for name in spec.rivals])

    def unit(self, key: str) -> str:
        """Of a parameter's number: "ns", "bytes/s", "bytes", or "" for a count."""
        raw = _raw(self.files[self.spec.drives[0]], key)
        first = raw[0] if isinstance(raw, list) else raw
        if not isinstance(first, str):
            return ""
        return "bytes/s" if first.endswith("/s") else "bytes" if first.endswith("B") else "ns"

    def _usable(self, figure: PublishedFigure) -> bool:
        pair = {preset_of(figure.device), preset_of(figure.baseline or figure.device)}
        mine = pair <= set(self.all) and not pair.isdisjoint(self.spec.drives)
        one = condition(figure)
        return mine and figure.metric in _METRICS and bool(one and one.load)

    def loads(self, drive: str) -> set[Load]:
        found = {condition(f) for f in self.figures} | {baseline_condition(f) for f in self.figures}
        return {one.load for one in found if one and one.load and one.device == drive}

    def text(self, drive: str, at: Vector) -> str:
        values = {
            p.key: (_toml_value(self.files[drive], p.key, float(np.exp(x))), None)
            for p, x in zip(self.spec.parameters, at, strict=True)
        }
        return with_values(self.texts[drive][0], values)

    def rows(self, points: Sequence[Vector]) -> list[list[Row]]:
        """All figures at each point, side by side."""
        wanted = [self._drive(name, at) for at in points for name in self.spec.drives]
        answers = iter(self._measure_all(wanted))
        results = [{name: next(answers) for name in self.spec.drives} for _ in points]
        fixed = dict(zip(self.spec.rivals, self.rivals, strict=True))
        return [[row_of(f, result | fixed, {}) for f in self.figures] for result in results]

    def _measure_all(self, drives: Sequence[Drive]) -> list[Mapping[Load, Mapping[str, float]]]:
        self.simulations += len(drives)
        return run_side_by_side(
            [
                Task(f"{drive.name} {n}", drive_memory(drive), partial(self._measure, drive))
                for n, drive in enumerate(drives)
            ]
        )

    def _drive(self, name: str, at: Vector | None) -> Drive:
        text = self.texts[name][0] if at is None else self.text(name, at)
        if self.spec.scale > 1:
            text = scaled_device(text, self.spec.scale, largest_io_bytes=LARGEST_IO_BYTES)
        return Drive(name, text, self.texts[name][1])

    def _measure(self, drive: Drive) -> Mapping[Load, Mapping[str, float]]:
        short = {load: replace(load, seconds=min(load.seconds, _SECONDS_MAX)) for load in
                 self.loads(drive.name)}  # fmt: skip
        measured = measure(drive, short.values(), tell=lambda text: None)
        return {load: measured[brief] for load, brief in short.items()}


def fit(
    spec: Specification,
    figures: Sequence[PublishedFigure],
    tell: Tell = lambda text: None,
) -> FitResult:
    """Find the parameters. Raises ConfigError: no figures, unknown keys, a start out of bounds."""
    problem = _Problem(spec, figures)
    at = np.clip(problem.start, problem.low, problem.high)
    rows = before = problem.rows([at])[0]
    deviation = _deviations(rows)
    damping = 1e-2
    jacobian = np.zeros((len(deviation), len(at)))
    for iteration in range(1, _ITERATIONS_MAX + 1):
        tell(f"step {iteration}: deviation {_cost(deviation) ** 0.5:.3f}")
        jacobian = _jacobian(problem, at, deviation)
        steps = [_step(jacobian, deviation, d) for d in (damping / 10, damping, damping * 30)]
        points = [np.clip(at + step, problem.low, problem.high) for step in steps]
        answers = problem.rows(points)
        costs = [_cost(_deviations(answer)) for answer in answers]
        best = int(np.argmin(costs))
        if costs[best] >= _cost(deviation):
            break
        gained = 1 - costs[best] / _cost(deviation)
        at, rows = points[best], answers[best]
        deviation, damping = _deviations(rows), damping * (0.1, 1.0, 30.0)[best]
        if gained < _CONVERGED:
            break
    return _result(problem, at, jacobian, deviation, (before, rows))


def _deviations(rows: Sequence[Row]) -> Vector:
    """log(simulated / measured); a figure that the simulation lost is far off."""
    errors = (row.error_pct for row in rows)
    return np.array([2.0 if e is None else np.log(max(1 + e / 100, 1e-3)) for e in errors])


def _weights(deviation: Vector) -> Vector:
    """Square roots of the weights that make large deviations count linearly."""
    return (1 + (deviation / _SOFT) ** 2) ** -0.25


def _cost(deviation: Vector) -> float:
    return float(np.mean(2 * _SOFT**2 * (np.sqrt(1 + (deviation / _SOFT) ** 2) - 1)))


def _jacobian(problem: _Problem, at: Vector, here: Vector) -> Vector:
    """Derivatives towards the middle of the bounds, so that all points are within."""
    middle = (problem.low + problem.high) / 2
    signs = np.where(at < middle, 1.0, -1.0)
    points = [at + _STEP * sign * unit for sign, unit in zip(signs, np.eye(len(at)), strict=True)]
    there = [_deviations(rows) for rows in problem.rows(points)]
    return np.array([(d - here) / (_STEP * s) for d, s in zip(there, signs, strict=True)]).T


def _step(jacobian: Vector, deviation: Vector, damping: float) -> Vector:
    weights = _weights(deviation)
    j, r = jacobian * weights[:, None], deviation * weights
    normal = j.T @ j
    scale = np.diag(normal) + 1e-6
    return np.asarray(-np.linalg.solve(normal + damping * np.diag(scale), j.T @ r))


def _result(
    problem: _Problem,
    at: Vector,
    jacobian: Vector,
    deviation: Vector,
    rows: tuple[Sequence[Row], Sequence[Row]],
) -> FitResult:
    weights = _weights(deviation)
    j = jacobian * weights[:, None]
    freedom = max(len(deviation) - len(at), 1)
    variance = float(np.sum((deviation * weights) ** 2)) / freedom
    _, singular, directions = np.linalg.svd(j, full_matrices=False)
    # A direction along which no figure changes has no bound; it is told as such, not as infinity.
    sharp = singular > 1e-3 * max(float(singular[0]), 1e-9)
    spread = np.where(sharp, 1 / np.maximum(singular, 1e-12), np.inf)
    errors = []
    for row in directions.T:
        lost = float(np.sum(row[~sharp] ** 2)) > _LOST
        told = float(np.sqrt(variance * np.sum((row[sharp] * spread[sharp]) ** 2)))
        errors.append(np.inf if lost else told)
    estimates = tuple(
        Estimate(
            p.key, problem.unit(p.key), float(np.exp(start)), float(np.exp(x)), p.low, p.high,
            100 * error if np.isfinite(error) else None,
        )
        for p, start, x, error in zip(
            problem.spec.parameters, problem.start, at, errors, strict=True
        )
    )  # fmt: skip
    blurred = variance**0.5 * spread > _UNTOLD
    confused = tuple(
        _combination(problem.spec.parameters, direction)
        for direction, is_blurred in zip(directions, blurred, strict=True)
        if is_blurred
    )
    return FitResult(estimates, confused, tuple(rows[0]), tuple(rows[1]), problem.simulations)


def _combination(
    parameters: Sequence[Parameter], direction: Vector
) -> tuple[tuple[str, float], ...]:
    pairs = [(p.key, float(x)) for p, x in zip(parameters, direction, strict=True)]
    return tuple(sorted((pair for pair in pairs if abs(pair[1]) > 0.2), key=lambda p: -abs(p[1])))


def fitted_text(text: str, result: FitResult) -> str:
    """A device file with the fitted values; their sources stay."""
    file = tomllib.loads(text)
    changes = {e.key: (_toml_value(file, e.key, e.value), None) for e in result.estimates}
    return with_values(text, changes)


def _value(file: Mapping[str, Any], key: str) -> float:
    return number(_raw(file, key))


def _raw(file: Mapping[str, Any], key: str) -> Any:
    value: Any = file
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise ConfigError(f"the device file has no '{key}' to fit")
        value = value[part]
    return value


def _toml_value(file: Mapping[str, Any], key: str, value: float) -> str:
    """`value` in the form that the file has for the key; a list keeps its proportions."""
    raw = _raw(file, key)
    if isinstance(raw, list):
        factor = value / number(raw)
        return "[" + ", ".join(_quantity(one, number(one) * factor) for one in raw) + "]"
    return _quantity(raw, value)


def _quantity(raw: object, value: float) -> str:
    if not isinstance(raw, str):
        return str(round(value)) if isinstance(raw, int) else f"{value:.4g}"
    if raw.endswith("/s"):
        return f'"{value / 1e6:.4g} MB/s"'
    if raw.endswith("B"):
        return f'"{max(1, round(value / 1024))} KiB"'
    whole_ns = round(float(f"{value:.4g}"))  # the simulator counts whole nanoseconds
    return f'"{whole_ns / 1e3:g} us"' if whole_ns < 1e6 else f'"{whole_ns / 1e6:g} ms"'
