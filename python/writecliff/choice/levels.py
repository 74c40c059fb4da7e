"""Simulation levels, from coarse to fine, and the rule for running a drive at a finer level.

`choose` first simulates all candidates at a small fraction of their capacity. `choose` then
repeats, at a larger scale, only the simulations of drives that could still win. The errors at each
level were measured with `writecliff lab validate scales`, and are stored in `scale_errors.toml`.

A drive that has no SLC cache preserves its rates and tail latencies down to a few gigabytes,
because scaling preserves the dies, reclaim units and spare flash. In steady state, the load may
also run longer than requested, so that high percentiles include enough I/Os. A drive that has an
SLC cache is not stationary under most loads. Therefore, the load is shortened in proportion to the
drive, and the drive must remain larger. Stalls caused by checkpoints, patrols, and erases that
reads cannot interrupt shrink along with a drive. Therefore, drives that have such stalls are
simulated whole at the finest level, up to 2 TB.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Literal

from writecliff.choice.measured import Figures
from writecliff.choice.question import LIFE, PRICE, QUOTED, Question
from writecliff.choice.ranking import Ranked, rank
from writecliff.devices import DeviceDescription
from writecliff.engines.preconditioned import overwritten_pct
from writecliff.engines.sim import SimEngine
from writecliff.operation_names import FLUSH
from writecliff.procedures.scaling import possible_scales
from writecliff.procedures.workload import WorkloadRun
from writecliff.report.headline import Headline
from writecliff.workload.model import SECOND_NS

Class = Literal["flash", "SLC cache", "stalls", "storage-class memory"]
"""Classes of drives with different scale errors."""

_LARGEST_BYTES = 2e12  # Maximum I/O volume, in bytes, at the finest level for drives with stalls.
_STALLS = ("housekeeping.checkpoint_interval", "housekeeping.patrol_interval")
_INTERRUPTED_ERASE = "flash.erase_suspend_step"
_STATIONARY = "sustained"
_BURST_NS = SECOND_NS // 2  # Duration of the shortest burst on a scaled drive, in ns.


@dataclass(frozen=True)
class Level:
    """A simulation level.

    Attributes:
        name: Level name in `scale_errors.toml` and in the result.
        stationary_bytes: Capacity in bytes that a drive is scaled down to if the load is
            stationary.
        stationary_ns: Shortest load on such a drive, in ns.
        shrunk: Largest scale factor for other drives, whose load is shortened in proportion.
        stalls: Largest scale factor for drives that have stalls.
        shrunk_ns: Shortest load on a drive scaled by `shrunk` or `stalls`, in ns.
    """

    name: str
    stationary_bytes: float
    stationary_ns: int
    shrunk: float
    stalls: float
    shrunk_ns: int


ROUGH = Level("rough", 4e9, 2 * SECOND_NS, 64.0, 64.0, SECOND_NS // 2)
MEDIUM = Level("medium", 20e9, 8 * SECOND_NS, 32.0, 16.0, 2 * SECOND_NS)
FINE = Level("fine", 100e9, 10 * SECOND_NS, 16.0, 1.0, 10 * SECOND_NS)
LEVELS: Sequence[Level] = (ROUGH, MEDIUM, FINE)


def class_of(device: DeviceDescription) -> Class:
    """Return a drive's class."""
    if device.kind == "scm":
        return "storage-class memory"
    if device.has("slc_cache.size"):
        return "SLC cache"
    stalls = any(map(device.has, _STALLS)) or not device.has(_INTERRUPTED_ERASE)
    return "stalls" if stalls else "flash"


def at_level(run: WorkloadRun, engine: SimEngine, question: Question, level: Level) -> WorkloadRun:
    """Return the run with a level's drive scale and load duration."""
    device = engine.description
    of_class = class_of(device)
    stationary = _is_stationary(run) and of_class in ("flash", "storage-class memory")
    scales = possible_scales(run, engine, 1 if stationary else level.shrunk_ns, _BURST_NS)

    if stationary:
        largest = device.capacity_bytes / level.stationary_bytes
    elif of_class == "stalls":
        largest = max(level.stalls, device.capacity_bytes / _LARGEST_BYTES)
    else:
        largest = level.shrunk
    scale = max((s for s in scales if s <= largest), default=1.0)
    # The user's scale sets the finest level, and coarser levels must not be finer.
    if question.scale is not None:
        finest = max((s for s in scales if s <= question.scale), default=1.0)
        scale = finest if level is FINE else max(scale, finest)
    scale = max(scale, engine.least_scale())
    if scale == 1.0:
        return run
    if stationary:
        least_ns = round(level.stationary_ns * scale)
        run = run.with_jobs(
            lambda job: replace(job, duration_ns=max(job.duration_ns or 0, least_ns))
        )
    return replace(run, scale=scale)


def _is_stationary(run: WorkloadRun) -> bool:
    """Return `True` for a single load of fixed duration on a drive in a sustained state."""
    sustained = run.precondition == _STATIONARY or (overwritten_pct(run.precondition) or 0) >= 200
    if not sustained or len(run.steps) != 1:
        return False
    step = run.steps[0]
    if step.until_steady or step.rest_ns or not step.measured:
        return False
    return all(
        job.duration_ns and not job.burst_ns and not job.start_delay_ns
        and job.volume_bytes is None and job.ios is None
        for job in step.workload.jobs
    )  # fmt: skip


# -- errors ----------------------------------------------------------------------------------------


@cache
def scale_errors() -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    """Return the largest error factor for each kind of figure, by drive class and level."""
    text = files("writecliff.choice").joinpath("scale_errors.toml").read_text(encoding="utf-8")
    return {name: table for name, table in tomllib.loads(text).items() if isinstance(table, dict)}


def kind_of(key: str) -> str | None:
    """Return a figure's kind in the scale error table, or `None` if the figure has no error."""
    name = key.replace("service/", "")
    if name in ("iops", "mb_per_s", "watts", f"{FLUSH}/iops"):
        return "rate"
    if name in ("waf", LIFE):
        return "wear"
    return None if name == PRICE else name


def _factor(errors: Mapping[str, float], key: str) -> float:
    """Return a figure's error factor, or the largest one for a figure that was not measured."""
    kind = kind_of(key)
    if kind is None or not errors:
        return 1.0
    return errors.get(kind) or max(errors.values())


def _moved(figures: Figures, errors: Mapping[str, float], *, better: bool) -> dict[str, Headline]:
    """Return the figures, adjusted by all errors in the drive's favour or to its detriment."""
    moved = {}
    for key, figure in figures.items():
        factor = _factor(errors, key)
        rises = (figure.higher_is_better is not False) == better
        moved[key] = replace(figure, value=figure.value * (factor if rises else 1 / factor))
    return moved


def _optimistic(figures: Figures, errors: Mapping[str, float]) -> Figures:
    """Return the figures, adjusted by all errors in the drive's favour, and ignore any backlog."""
    moved = {
        key: replace(figure, steady=True, not_sustained="")
        for key, figure in _moved(figures, errors, better=True).items()
    }
    for basis in ("", "service/"):
        for name, percentile in QUOTED.items():
            figure = moved.get(f"{basis}{name}")
            if figure is not None:
                least = _least(moved, basis, 1 - percentile)
                moved[f"{basis}{name}"] = replace(figure, value=max(figure.value, least))
    return moved


def _least(figures: Figures, basis: str, tail: float) -> float:
    """Return a lower bound on the latency that a fraction `tail` of all I/Os exceeds.

    If reads are a fraction r of all I/Os, and a fraction t of the reads exceeds a latency, then at
    least r * t of all I/Os exceed that latency.
    """
    bounds = [0.0]
    reads, writes, both = (figures.get(f"{part}{basis}mean") for part in ("reads/", "writes/", ""))
    if reads and writes and both and reads.value != writes.value:
        share = (writes.value - both.value) / (writes.value - reads.value)
        for part, of_all in (("reads/", share), ("writes/", 1 - share)):
            for name, percentile in QUOTED.items():
                figure = figures.get(f"{part}{basis}{name}")
                if figure is not None and of_all * (1 - percentile) >= tail:
                    bounds.append(figure.value)
    return max(bounds)


def could_be_first(
    row: Ranked,
    first: Ranked,
    question: Question,
    weights: Mapping[str, float],
    errors: tuple[Mapping[str, float], Mapping[str, float]],
) -> bool:
    """Return `True` if a drive could outrank the top drive within both drives' scale errors.

    `errors` contains the errors for the drive and the top drive, by kind of figure.
    """
    if any(key not in row.figures for key in weights):
        return True  # This level simulates too few I/Os.
    pair = {
        row.name: (row.drive, _optimistic(row.figures, errors[0]), row.error),
        first.name: (first.drive, _moved(first.figures, errors[1], better=False), first.error),
    }
    return rank(pair, question, weights)[0].name == row.name
