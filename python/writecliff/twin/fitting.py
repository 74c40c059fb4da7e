"""From measurements to a twin: a start, the values of times, the errors of what was kept aside.

Several starts are compared: numbers of dies, each with firmware or flash as what bounds writes. The
fit goes on from the one that comes nearest; it is that of `published.fit`, with the same residuals.
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
SECONDS_MAX = 2.0  # of a load, while values are searched
READS_LEAST_S, WRITES_LEAST_S = 0.05, 0.3  # queues and the write buffer fill in less
IOS_ENOUGH = 20_000  # of a load: its 99th percentile is of 200
NEAR = 1.3  # other numbers of dies are tried if a start is off by no more, relative to the best
FITS_MOST = 12  # from starts
ROUNDS, BETTER = 4, 0.97  # of refinements; the share of the cost that one must fall to
FAR = 2.0  # more dies are not looked at once the starts of a number are so much farther off
STARTS = "starts"  # a folder of the device files that were compared

# What is varied, by factors around the start.
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
LATENCY, LATENCY_NS = "controller.latency", (300.0, 40_000.0)  # bounds, whatever the start
LINK_LEAST = 0.4  # of what the start carries; at most what the interface does
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
    """What was found. `text`: the device file, with the reasons of its start; `bounds`:
    what bounded reads and writes there; `kept`: each figure
    that was kept aside beside its prediction; `scale`: how many times smaller it was simulated.
    """

    text: str
    path: str  # that figures and errors name
    found: FitResult | None  # None: not searched yet
    dies: int
    bounds: str
    starts: int  # that were compared
    spare: Spare | None
    kept: tuple[Row, ...]
    scale: float

    @property
    def result(self) -> FitResult:
        """What the fit has found."""
        assert self.found is not None
        return self.found

    def predicted(self, figures: Sequence[PublishedFigure]) -> tuple[Row, ...]:
        """Figures of the drive beside what the twin makes of them."""
        own = [replace(figure, device=self.path) for figure in figures]
        return predicted(self.text, self.path, own, scale=self.scale)


def make_twin(
    evidence: Evidence,
    folder: Path,
    name: str,
    *,
    said: Mapping[str, object],
    log: Log = lambda text: None,
) -> Fitted:
    """Find the twin of a drive; device files to start from are kept in `folder`. Raises
    ConfigError: no drive of the simulator can be it.
    """
    sheet = measured_sheet(evidence, name, said)
    protected = said.get("power_loss_protection")
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
        _fit_from(one, folder / STARTS / f"from-{number}.toml", evidence, log)
        for number, one in enumerate(nearest, 1)
    ]
    best = min(tried, key=lambda one: one.result.cost)
    for number_ in range(1, ROUNDS + 1):
        better = _refined(best, folder / STARTS / f"refined-{number_}.toml", evidence, log)
        if better is best:
            break
        best = better
    log("predicting what was kept aside")
    kept = best.predicted(evidence.figures(kept=True))
    return replace(best, kept=kept, starts=compared)


def _fit_from(start: Variant, path: Path, evidence: Evidence, log: Log) -> Fitted:
    """A fit that begins at a start, whose over-provisioning is found anew: dies have changed it."""
    text, spare = _with_spare(start.text, str(path), evidence, log)
    scale = fitting_scale(text, str(path), SMALL_BYTES)
    log(f"from {start.dies} dies, {start.bounds}")
    begun = Fitted(text, str(path), None, start.dies, start.bounds, 0, spare, (), scale)
    return _searched(begun, evidence, log)


def _refined(best: Fitted, path: Path, evidence: Evidence, log: Log) -> Fitted:
    """The fit from the best of what no value that is varied says: the write buffer, channels,
    suspensions; the given one, if nothing is better.
    """
    least = _cost_of(best.text, path, evidence)
    chosen: tuple[float, str, str] | None = None
    for words, text in alternatives(best.text):
        try:
            found = _cost_of(text, path, evidence)
        except ConfigError:  # there is no such drive
            continue
        log(f"with {words}: {found:.2f}, without {least:.2f}")
        if found < BETTER * least and (chosen is None or found < chosen[0]):
            chosen = found, words, text
    if chosen is None:
        return best
    log(f"going on with {chosen[1]}")
    again = replace(best, text=chosen[2], path=str(path))
    found_again = _searched(again, evidence, log)
    return found_again if found_again.result.cost < best.result.cost else best


def _searched(start: Fitted, evidence: Evidence, log: Log) -> Fitted:
    """The fit from the device file of `start`, which is written to its path."""
    write_atomically(Path(start.path), start.text.encode())
    here = evidence.of(start.path)
    specification = _specification(start.text, start.path, start.scale, gentle=evidence.gentle)
    log(f"fitting {len(specification.parameters)} values")
    figures = here.figures(kept=False)
    found = Fit(specification, figures, log, seconds=_seconds_of(here)).run()
    return replace(start, text=found.texts[start.path], found=found)


def _cost_of(text: str, path: Path, evidence: Evidence) -> float:
    """How far the figures are off, of a device file as it is."""
    write_atomically(path, text.encode())
    here = evidence.of(str(path))
    scale = fitting_scale(text, str(path), SMALL_BYTES)
    spec = _specification(text, str(path), scale, gentle=evidence.gentle)
    problem = Problem(spec, here.figures(kept=False), Simulations(seconds=_seconds_of(here)))
    return soft_cost(deviations(problem.rows(problem.coordinates.start)))


def _seconds_of(evidence: Evidence) -> Callable[[Load], float]:
    """How long a load is simulated: for as many I/Os as its tail needs, and no longer than it was
    measured.
    """
    most = min(SECONDS_MAX, evidence.seconds)
    known: dict[tuple[object, ...], float] = {}
    for one in evidence.observed:
        f = one.figure
        if f.metric.startswith("iops"):
            known[f.access, f.block_bytes, f.read_pct, f.outstanding] = f.value

    def seconds(load: Load) -> float:
        key = (load.pattern, load.block_bytes, load.read_pct, load.outstanding)
        least = READS_LEAST_S if load.read_pct == 100 else WRITES_LEAST_S
        rate = known.get(key)
        return most if not rate else min(max(IOS_ENOUGH / rate, least), most)

    return seconds


def _with_spare(text: str, path: str, evidence: Evidence, log: Log) -> tuple[str, Spare | None]:
    """The device file with the over-provisioning that write amplification tells, where known."""
    if evidence.waf is None or not evidence.overwritten_pct:
        return text, None
    try:
        spare = with_spare_for(text, path, evidence.overwritten_pct, evidence.waf, log)
    except ConfigError:
        return text, None
    return spare.text, spare


def _nearest(text: str, path: Path, evidence: Evidence, log: Log) -> tuple[Sequence[Variant], int]:
    """The starts whose figures come nearest to those measured, and how many were compared."""
    found = [
        one
        for one in variants(text)
        if not evidence.gentle or (one.suspends and "writes" not in one.flash_bounds)
    ]
    log(f"comparing {len(found)} starts")
    far: list[tuple[float, Variant]] = []
    for number_, one in enumerate(found, 1):
        if _is_worse(far, one):
            continue
        far.append((_cost_of(one.text, path.with_name(f"start-{number_}.toml"), evidence), one))
        log(f"{number_} of {len(found)}: {one.dies} dies, {one.bounds}: {far[-1][0]:.2f}")
    if not far:
        raise ConfigError("no drive of the simulator has what was measured")
    far.sort(key=lambda pair: pair[0])
    # Neither dies nor what bounds reads shows in a start, before times are fitted: of each number
    # of dies that is near, the best start is tried, and those of which flash bounds all or nothing.
    # So are half and twice the dies of the best start, however far off: fitted times may make good
    # what its program time does not.
    best = far[0][1]
    beside = {(dies, best.suspends) for dies in (best.dies // 2, best.dies * 2)}
    kinds = ((cost <= NEAR * far[0][0], (one.dies, one.suspends)) for cost, one in far)
    near = dict.fromkeys(kind for is_near, kind in kinds if is_near or kind in beside)
    tried: list[Variant] = []
    for kind in near:
        own = [one for _, one in far if (one.dies, one.suspends) == kind]
        tried += [one for one in own if len(one.flash_bounds) != 1 or one is own[0]]
    return tried[:FITS_MOST], len(found)


def _is_worse(far: Sequence[tuple[float, Variant]], one: Variant) -> bool:
    """Whether more dies have come to nothing already: the best of the last number of dies is far
    behind that of one before.
    """
    best: dict[int, float] = {}
    for found, variant in far:
        if variant.dies < one.dies:
            best[variant.dies] = min(found, best.get(variant.dies, found))
    return bool(best) and best[max(best)] > FAR * min(best.values())


def _specification(text: str, device: str, scale: float, *, gentle: bool) -> Specification:
    """What is free, around the values of the device file; of reads only, if writes were not
    measured.
    """
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
    """Each figure beside what the device file makes of it."""
    drive = ComparedDrive(path, text, path)
    drive = drive.scaled(scale) if scale > 1 else drive
    loads = {one.load for f in figures if (one := condition(f)) and one.load}
    brief = {load: replace(load, seconds=min(load.seconds, seconds)) for load in loads}
    measured = measure(drive, set(brief.values()), observer=observer)
    results = {path: {load: measured[short] for load, short in brief.items()}}
    return tuple(row_of(figure, results, {}) for figure in figures)
