"""Fit of a twin, which finds a starting point, the times, and the errors of held-out figures.

Several starting points with different numbers of dies are compared, each with firmware or flash as
the bottleneck. The fit of `published.fit` continues from the best starting points, with the same
residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from writecliff.devices.derive import text_of
from writecliff.devices.edit import value_of
from writecliff.devices.quantities import number
from writecliff.errors import ConfigError
from writecliff.published.conditions import Load, condition
from writecliff.published.figures import PublishedFigure
from writecliff.published.fit import Fit, FitResult, Parameter, Specification
from writecliff.published.fit.problem import Problem
from writecliff.published.fit.residuals import deviations, soft_cost
from writecliff.published.fit.simulations import Simulations
from writecliff.published.measure import ComparedDrive, MeasurementObserver, measure
from writecliff.published.scores import Row, row_of
from writecliff.published.sheet_check import fitting_scale
from writecliff.store.files import write_atomically
from writecliff.twin.evidence import Evidence
from writecliff.twin.start import first_values, measured_sheet
from writecliff.twin.structure import (
    LINK,
    SMALL_BYTES,
    Spare,
    Variant,
    alternatives,
    link_most,
    variants,
    with_page_times,
    with_spare_for,
    with_write_times,
)

Log = Callable[[str], None]
SECONDS_MAX = 2.0  # Maximum simulated duration of a load during the fit.
# Minimum durations, which suffice to fill queues and the write buffer.
READS_LEAST_S, WRITES_LEAST_S = 0.05, 0.3
IOS_ENOUGH = 20_000  # I/O count of a load, of which 200 I/Os are above the 99th percentile.
NEAR = 1.3  # Maximum relative cost for fitting a start with a different die count.
FITS_MOST = 12  # Maximum number of starts that are fitted.
# Number of refinement rounds, and maximum relative cost of an accepted change.
ROUNDS, BETTER = 4, 0.97
FAR = 2.0  # Relative cost for a die count above which larger counts are skipped.
STARTS = "starts"  # Folder for the compared device files.

# Values that the fit varies, with bounds given as factors of the starting value.
FREE: Mapping[str, tuple[float, float]] = {
    "flash.read": (0.4, 2.5),
    "flash.program": (0.3, 3.0),
    "flash.bus": (0.4, 2.5),
    "flash.erase": (0.4, 3.0),
    "controller.command_time": (0.3, 1.6),
    "controller.write_command_time": (0.3, 1.6),
    "controller.read_command_time": (0.3, 1.6),
    "controller.mapping_update_time": (0.1, 2.0),
    "controller.relocation_time": (0.1, 6.0),
    "slc_cache.program": (0.4, 2.5),
}
# Bounds that do not depend on the start.
LATENCY, LATENCY_NS = "controller.latency", (300.0, 40_000.0)
# Lower bound as a factor of the starting value; the interface sets the upper bound.
LINK_LEAST = 0.4
_OF_WRITES = (
    "flash.program", "flash.erase", "controller.mapping_update_time", "controller.relocation_time",
    "controller.write_command_time", "slc_cache.program",
)  # fmt: skip
_AT_LEAST = {
    "controller.write_command_time": "controller.command_time",
    "controller.read_command_time": "controller.command_time",
}


@dataclass(frozen=True)
class Fitted:
    """A fitted twin.

    Attributes:
        text: Device file, with the reasons for its starting point.
        path: Device file path used in figures and errors.
        fit_result: Result of the fit, or None before the fit.
        bounds: Bottlenecks of reads and writes at the starting point.
        starts: Number of starting points that were compared.
        held_out: Held-out figures with their predictions.
        scale: Factor by which the simulated twin was scaled down.
    """

    text: str
    path: str
    fit_result: FitResult | None
    dies: int
    bounds: str
    starts: int
    spare: Spare | None
    held_out: tuple[Row, ...]
    scale: float

    @property
    def result(self) -> FitResult:
        """Result of a fit that has already run."""
        assert self.fit_result is not None
        return self.fit_result

    def predicted(self, figures: Sequence[PublishedFigure]) -> tuple[Row, ...]:
        """Return the drive's figures with the twin's predictions."""
        figures_of_twin = [replace(figure, device=self.path) for figure in figures]
        return predicted(self.text, self.path, figures_of_twin, scale=self.scale)


def make_twin(
    evidence: Evidence,
    folder: Path,
    name: str,
    *,
    facts: Mapping[str, object],
    log: Log = lambda text: None,
) -> Fitted:
    """Fit a twin to a drive. The device files of the starting points are stored in `folder`.

    Args:
        evidence: Measurements of the drive.
        folder: Folder for the twin.
        name: Name of the twin.
        facts: Facts stated by the user, by data sheet key.
        log: Function called with progress messages.

    Raises:
        ConfigError: If no simulated drive can reach the measured figures.
    """
    sheet = measured_sheet(evidence, name, facts)
    protected = facts.get("power_loss_protection")
    flag = None if protected is None else str(protected).lower() in ("yes", "true")
    head = (f"{name}: a start, from measurements",)
    text = text_of(first_values(sheet, protected=flag), head)
    path = folder / STARTS / "first.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    text, _ = _with_spare(text, str(path), evidence, log)
    if evidence.fill and evidence.fill.last and evidence.steady_iops and evidence.waf:
        text = with_write_times(text, evidence.fill.last, evidence.steady_iops, evidence.waf)
    text = with_page_times(text, evidence.single_reads_ns)
    nearest, compared = _nearest(text, path, evidence, log)
    tried = [
        _fit_from(start, folder / STARTS / f"from-{number}.toml", evidence, log)
        for number, start in enumerate(nearest, 1)
    ]
    best = min(tried, key=lambda fit: fit.result.cost)
    for number_ in range(1, ROUNDS + 1):
        better = _refined(best, folder / STARTS / f"refined-{number_}.toml", evidence, log)
        if better is best:
            break
        best = better
    log("predicting the held-out figures")
    held_out = best.predicted(evidence.figures(held_out=True))
    return replace(best, held_out=held_out, starts=compared)


def _fit_from(start: Variant, path: Path, evidence: Evidence, log: Log) -> Fitted:
    """Fit from a starting point with refitted over-provisioning, which depends on the dies."""
    text, spare = _with_spare(start.text, str(path), evidence, log)
    scale = fitting_scale(text, str(path), SMALL_BYTES)
    log(f"fitting from {start.dies} dies, {start.bounds}")
    begun = Fitted(text, str(path), None, start.dies, start.bounds, 0, spare, (), scale)
    return _searched(begun, evidence, log)


def _refined(best: Fitted, path: Path, evidence: Evidence, log: Log) -> Fitted:
    """Refine a fit by changing write buffer, channels and suspensions, which are not parameters.

    Returns:
        The fit after the best change, or the given fit if no change improves it.
    """
    least = _cost_of(best.text, path, evidence)
    chosen: tuple[float, str, str] | None = None
    for words, text in alternatives(best.text):
        try:
            cost = _cost_of(text, path, evidence)
        except ConfigError:  # Such a drive is not possible.
            continue
        log(f"with {words}: {cost:.2f}, without {least:.2f}")
        if cost < BETTER * least and (chosen is None or cost < chosen[0]):
            chosen = cost, words, text
    if chosen is None:
        return best
    log(f"continuing with {chosen[1]}")
    again = replace(best, text=chosen[2], path=str(path))
    refitted = _searched(again, evidence, log)
    return refitted if refitted.result.cost < best.result.cost else best


def _searched(start: Fitted, evidence: Evidence, log: Log) -> Fitted:
    """Fit from the device file of `start`, after writing the file to its path."""
    write_atomically(Path(start.path), start.text.encode())
    here = evidence.of(start.path)
    specification = _specification(start.text, start.path, start.scale, gentle=evidence.gentle)
    log(f"fitting {len(specification.parameters)} values")
    figures = here.figures(held_out=False)
    result = Fit(specification, figures, log, seconds=_seconds_of(here)).run()
    return replace(start, text=result.texts[start.path], fit_result=result)


def _cost_of(text: str, path: Path, evidence: Evidence) -> float:
    """Return the cost of a device file without fitting it."""
    write_atomically(path, text.encode())
    here = evidence.of(str(path))
    scale = fitting_scale(text, str(path), SMALL_BYTES)
    spec = _specification(text, str(path), scale, gentle=evidence.gentle)
    problem = Problem(spec, here.figures(held_out=False), Simulations(seconds=_seconds_of(here)))
    return soft_cost(deviations(problem.rows(problem.coordinates.start)))


def _seconds_of(evidence: Evidence) -> Callable[[Load], float]:
    """Return a load's simulated duration, which covers enough I/Os for its tail."""
    most = min(SECONDS_MAX, evidence.seconds)
    rates: dict[tuple[object, ...], float] = {}
    for observed in evidence.observed:
        f = observed.figure
        if f.metric.startswith("iops"):
            rates[f.access, f.block_bytes, f.read_pct, f.outstanding] = f.value

    def seconds(load: Load) -> float:
        key = (load.pattern, load.block_bytes, load.read_pct, load.outstanding)
        least = READS_LEAST_S if load.read_pct == 100 else WRITES_LEAST_S
        rate = rates.get(key)
        return most if not rate else min(max(IOS_ENOUGH / rate, least), most)

    return seconds


def _with_spare(text: str, path: str, evidence: Evidence, log: Log) -> tuple[str, Spare | None]:
    """Return the device file with its over-provisioning fitted to the write amplification."""
    if evidence.waf is None or not evidence.overwritten_pct:
        return text, None
    try:
        spare = with_spare_for(text, path, evidence.overwritten_pct, evidence.waf, log)
    except ConfigError:
        return text, None
    return spare.text, spare


def _nearest(text: str, path: Path, evidence: Evidence, log: Log) -> tuple[Sequence[Variant], int]:
    """Return the starting points with the lowest costs, and the number of starting points."""
    starts = [
        variant
        for variant in variants(text)
        if not evidence.gentle or (variant.suspends and "writes" not in variant.flash_bounds)
    ]
    log(f"comparing {len(starts)} starting points")
    far: list[tuple[float, Variant]] = []
    for number_, start in enumerate(starts, 1):
        if _is_worse(far, start):
            continue
        far.append((_cost_of(start.text, path.with_name(f"start-{number_}.toml"), evidence), start))
        log(f"{number_} of {len(starts)}: {start.dies} dies, {start.bounds}: {far[-1][0]:.2f}")
    if not far:
        raise ConfigError("no simulated drive can reach the measured figures")
    far.sort(key=lambda pair: pair[0])
    # Until times have been fitted, a start does not reveal the die count or the read bottleneck.
    # Therefore, for each die count near the best, the fit includes the best start, and the starts
    # where flash limits all operations or none. Half and twice the die count of the best start are
    # always fitted too, because fitted times can compensate for a wrong program time.
    best = far[0][1]
    beside = {(dies, best.suspends) for dies in (best.dies // 2, best.dies * 2)}
    kinds = ((cost <= NEAR * far[0][0], (start.dies, start.suspends)) for cost, start in far)
    near = dict.fromkeys(kind for is_near, kind in kinds if is_near or kind in beside)
    tried: list[Variant] = []
    for kind in near:
        of_kind = [start for _, start in far if (start.dies, start.suspends) == kind]
        tried += [start for start in of_kind if len(start.flash_bounds) != 1 or start is of_kind[0]]
    return tried[:FITS_MOST], len(starts)


def _is_worse(far: Sequence[tuple[float, Variant]], start: Variant) -> bool:
    """Return `True` if more dies cannot improve the fit.

    This is the case if the best starting point for the latest number of dies is far worse than the
    best starting point for a lower number.
    """
    best: dict[int, float] = {}
    for cost, variant in far:
        if variant.dies < start.dies:
            best[variant.dies] = min(cost, best.get(variant.dies, cost))
    return bool(best) and best[max(best)] > FAR * min(best.values())


def _specification(text: str, device: str, scale: float, *, gentle: bool) -> Specification:
    """Return the free values with bounds around the device file (if `gentle`, no write values)."""
    start = number(value_of(text, LATENCY))
    low, high = min(LATENCY_NS[0], start), max(LATENCY_NS[1], start)
    carried = number(value_of(text, LINK))
    parameters = [
        Parameter(LATENCY, low, high),
        Parameter(LINK, LINK_LEAST * carried, max(1.02 * link_most(text), 1.05 * carried)),
    ]
    keys = [key for key in FREE if not (gentle and key in _OF_WRITES)]
    have = {key: value for key in keys if (value := _value(text, key)) is not None and value > 0}
    for key, value in have.items():
        low, high = FREE[key]
        least = _AT_LEAST.get(key, "")
        parameters.append(
            Parameter(key, low * value, high * value, at_least=least if least in have else "")
        )
    return Specification((device,), (), tuple(parameters), scale)


def _value(text: str, key: str) -> float | None:
    try:
        return number(value_of(text, key))
    except ConfigError:
        return None


def predicted(
    text: str,
    path: str,
    figures: Sequence[PublishedFigure],
    *,
    scale: float,
    seconds: float = SECONDS_MAX,
    observer: MeasurementObserver | None = None,
) -> tuple[Row, ...]:
    """Return the figures with predictions from a device file."""
    drive = ComparedDrive(path, text, path)
    drive = drive.scaled(scale) if scale > 1 else drive
    loads = {
        known_condition.load
        for f in figures
        if (known_condition := condition(f)) and known_condition.load
    }
    brief = {load: replace(load, seconds=min(load.seconds, seconds)) for load in loads}
    measured = measure(drive, set(brief.values()), observer=observer)
    results = {path: {load: measured[short] for load, short in brief.items()}}
    return tuple(row_of(figure, results, {}) for figure in figures)
