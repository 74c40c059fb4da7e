"""Simulated drives under the conditions of published figures.

Each drive is brought to a state once, and every load begins in exactly this state: what it measures
depends on the drive and the load alone, not on which other figures are wanted. Prepared states come
from the cache of the program where it has them.

Figures that differ only in how long they are measured share a run: the load goes on from one time
to the next, and each figure is of the time until its own. So an IOPS figure of a minute is the same
whether or not a maximum over five minutes is wanted too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from statistics import fmean
from threading import Event
from typing import TYPE_CHECKING

import numpy as np

from writecliff.devices import DeviceDescription, describe_device, open_device, read_device_file
from writecliff.engines.base import Operation, Progress, StepResult
from writecliff.engines.sim import SimEngine
from writecliff.engines.state_cache import StateCache
from writecliff.latency_basis import merged
from writecliff.native_errors import as_user_errors
from writecliff.parallel import (
    Stopped,
    Task,
    available_memory_bytes,
    drive_memory_bytes,
    run_side_by_side,
)
from writecliff.profiles import profile_workload
from writecliff.published.conditions import BURST_SECONDS, Condition, Load, State, tiers
from writecliff.published.states import PreparedDrives, StatefulDrive
from writecliff.units import plural
from writecliff.workload.model import BlockSize, Job, Workload

if TYPE_CHECKING:
    import numpy.typing as npt

    from writecliff._native import Histogram

Log = Callable[[str], None]
Results = Mapping[Load, Mapping[str, float]]

# Every step of a load has a seed of its own, none that of a preparation. Two that write the same
# addresses in the same order invalidate flash in the order in which it was written, and measure a
# drive that no random load would find.
_FIRST_SEED = 3001
_WARM_SHARE = 0.2  # of a load's shortest time, before it is measured: queues fill, the mix settles
SHORT = 0.1  # share of its time for which each load runs in a first look
LARGEST_IO_BYTES = 1 << 20  # of any load: what a drive that is scaled down must take
_IDLE_NS = 60_000_000_000


@dataclass(frozen=True)
class ComparedDrive:
    """A drive to measure: the text of its device file, and where that is from. `scale`: how many
    times smaller than the whole drive the text makes it.
    """

    name: str
    text: str
    file_name: str
    scale: float = 1.0

    @classmethod
    def preset(cls, name: str) -> ComparedDrive:
        return cls(name, *read_device_file(name))

    def describe(self) -> DeviceDescription:
        return describe_device(self.text, self.file_name)

    def scaled(self, scale: float) -> ComparedDrive:
        """The same drive, about so many times smaller (`Device.nearest_scale`). Rates stay, stalls
        shrink with it.
        """
        whole = open_device(self.text, self.file_name)
        exact = whole.nearest_scale(scale)
        if exact == 1:
            return self
        with as_user_errors():
            device = whole.scaled(exact, LARGEST_IO_BYTES)
        return replace(self, text=device.text, scale=self.scale * exact)


class MeasurementObserver:
    """Follows a measurement and may stop it. Its methods are called from several threads."""

    def __init__(self) -> None:
        self.stop = Event()  # set: the measurement ends with `Stopped`
        self.wall_s: dict[str, float] = {}  # by drive

    def preparing(self, drive: str, state: State, share: float) -> None:
        """The preparation of a drive for a state has come to `share`, 0 to 1."""

    def prepared(self, drive: str, state: State, total_bytes: int, progress: Progress) -> None:
        """Called while a drive is prepared, which ends after `total_bytes` of writes."""
        self.look()
        written = None if progress.counters is None else progress.counters.host_write_bytes
        if written is not None:
            self.preparing(drive, state, min(1.0, written / total_bytes))

    def running(self, drive: str, loads: Sequence[Load], share: float) -> None:
        """The run that measures these loads of a drive has come to `share`, 0 to 1."""

    def load(self, drive: str, load: Load) -> None:
        """A load of a drive has been measured."""

    def drive(self, drive: str, wall_s: float) -> None:
        """All loads of a drive have been measured."""
        self.wall_s[drive] = wall_s

    def look(self, progress: Progress | None = None) -> None:
        """Called between loads and while one runs. Raises Stopped once `stop` is set."""
        if self.stop.is_set():
            raise Stopped("stopped while it was measured")


def measure_all(
    drives: Mapping[str, ComparedDrive],
    conditions: Iterable[Condition],
    *,
    cache: StateCache | None = None,
    memory_budget_bytes: int | None = None,
    workers: int | None = None,
    time_share: float = 1.0,
    log: Log = lambda text: None,
    observer: MeasurementObserver | None = None,
) -> dict[str, Results]:
    """Measure every load of the conditions on its drive, drives side by side.

    `drives` has each device that the conditions name; the results have the same keys. All times are
    multiplied by `time_share`.
    """
    observer = observer or MeasurementObserver()
    cache = cache or StateCache.of_user()
    wanted = [(drives[name], loads) for name, loads in loads_by_drive(conditions).items()]
    # The largest first, so that none is left over at the end for one core.
    wanted.sort(key=lambda pair: (-drive_memory(pair[0]), pair[0].name))
    budget_bytes = memory_budget_bytes or available_memory_bytes()
    tasks = []
    for drive, loads in wanted:
        memory_bytes = drive_memory(drive)
        copies = len(loads) > 1 and 2 * memory_bytes <= budget_bytes
        run = partial(
            measure, drive, loads, cache, log, observer, time_share=time_share, copies=copies
        )
        remote = partial(_elsewhere, drive, loads, time_share=time_share, copies=copies)
        arrived = partial(_arrived, drive.name, observer)
        tasks.append(Task(drive.name, memory_bytes * (1 + copies), run, remote, arrived))
    results = run_side_by_side(
        tasks, memory_budget_bytes=budget_bytes, workers=workers, stop=observer.stop
    )
    return {drive.name: result for (drive, _), result in zip(wanted, results, strict=True)}


def loads_by_drive(conditions: Iterable[Condition]) -> dict[str, set[Load]]:
    """The loads that `measure_all` runs on each drive; drives without loads are left out."""
    found: dict[str, set[Load]] = {}
    for one in conditions:
        if one.load is not None:
            found.setdefault(one.device, set()).add(one.load)
    return found


def measure(
    drive: ComparedDrive,
    loads: Iterable[Load],
    cache: StateCache | None = None,
    log: Log = lambda text: None,
    observer: MeasurementObserver | None = None,
    *,
    time_share: float = 1.0,
    prepared: PreparedDrives | None = None,
    copies: bool = True,
) -> Results:
    """The metrics of each load on one drive; all times are multiplied by
    `time_share`. Candidates of a fit share `prepared`. Otherwise, with `copies` the drive is
    prepared once for each state and takes twice the memory, else it is prepared, or read from the
    cache, for each load.
    """
    observer = observer or MeasurementObserver()
    began_s = time.monotonic()
    simulated = StatefulDrive(
        drive.name,
        SimEngine.from_text(drive.text, drive.file_name),
        scale=drive.scale,
        copies=copies,
        cache=cache,
        prepared=prepared,
    )
    results = _measure(drive.name, simulated, loads, log, observer, time_share)
    observer.drive(drive.name, time.monotonic() - began_s)
    return results


def _elsewhere(
    drive: ComparedDrive, loads: Iterable[Load], *, time_share: float, copies: bool
) -> tuple[Results, float]:
    """`measure` in another process, with the cache of its user; also how long it took."""
    began_s = time.monotonic()
    cache = StateCache.of_user()
    found = measure(drive, loads, cache, time_share=time_share, copies=copies)
    return found, time.monotonic() - began_s


def _arrived(name: str, observer: MeasurementObserver, result: tuple[Results, float]) -> Results:
    found, wall_s = result
    for load in found:
        observer.load(name, load)
    observer.drive(name, wall_s)
    return found


def measure_variants(
    origin: ComparedDrive,
    variants: Sequence[tuple[ComparedDrive, Collection[Load]]],
    cache: StateCache | None = None,
    log: Log = lambda text: None,
    observer: MeasurementObserver | None = None,
    *,
    time_share: float = 1.0,
) -> list[Results]:
    """The metrics of each load on variants of one drive, which differ from it in times. All share
    the states of the drive itself, so it takes twice the memory of one.
    """
    observer = observer or MeasurementObserver()
    began_s = time.monotonic()
    device = open_device(origin.text, origin.file_name)
    found: list[dict[Load, Mapping[str, float]]] = [{} for _ in variants]
    for state in sorted({load.state for _, loads in variants for load in loads}):
        prepared = PreparedDrives({origin.name: device}, cache)  # of one state at a time
        for number, (drive, loads) in enumerate(variants):
            own = [load for load in loads if load.state == state]
            engine = SimEngine.from_text(drive.text, drive.file_name)
            simulated = StatefulDrive(origin.name, engine, scale=drive.scale, prepared=prepared)
            found[number] |= _measure(origin.name, simulated, own, log, observer, time_share)
    observer.drive(origin.name, time.monotonic() - began_s)
    return list(found)


def _measure(
    name: str,
    simulated: StatefulDrive,
    loads: Iterable[Load],
    log: Log,
    observer: MeasurementObserver,
    time_share: float,
) -> dict[Load, Mapping[str, float]]:
    results: dict[Load, Mapping[str, float]] = {}
    for state, runs in _by_state(loads):
        log(f"{name}: {state}, {plural(len(runs), 'load')}")
        for equal in runs:
            observer.look()
            total = _volume(simulated.steps_to(equal[0]))
            simulated.bring(equal[0], partial(observer.prepared, name, state, total))
            results |= _run(name, simulated, equal, time_share, observer)
            for load in equal:
                observer.load(name, load)
    return results


def _by_state(loads: Iterable[Load]) -> list[tuple[State, list[list[Load]]]]:
    """Loads by the state that they begin in, those that differ in their time alone together."""
    ordered = sorted(loads, key=lambda one: one.order)
    by_state = groupby(ordered, key=lambda one: (one.state, one.compressible_pct))
    return [
        (state, [list(same) for _, same in groupby(own, key=lambda one: replace(one, seconds=0))])
        for (state, _), own in by_state
    ]


def _volume(steps: Sequence[Workload]) -> int:
    return sum(job.volume_bytes or 0 for step in steps for job in step.jobs)


def _run(
    drive: str,
    simulated: StatefulDrive,
    equal: Sequence[Load],
    time_share: float,
    observer: MeasurementObserver,
) -> dict[Load, Mapping[str, float]]:
    """The metrics of loads that differ in their time alone: one run, cut where a time ends."""
    jobs = _jobs(simulated, equal[0])
    longest = max(equal, key=lambda load: load.seconds)
    warm_s = longest.least_seconds * _WARM_SHARE if longest.state != "fresh" else 0.0
    past_s = 0.0

    def look(seconds: float, progress: Progress) -> None:
        observer.look(progress)
        done_s = past_s + seconds * (progress.fraction or 0.0)
        observer.running(drive, equal, done_s / (warm_s + longest.seconds))

    def run(name: str, seconds: float, seed: int) -> StepResult:
        nonlocal past_s
        timed = tuple(job.with_duration_s(shortened_s(seconds, time_share)) for job in jobs)
        result = simulated.engine.run(Workload(name, timed, seed=seed), partial(look, seconds))
        past_s += seconds
        return result

    if warm_s:
        run("warm", warm_s, _FIRST_SEED)
    ends = {load.seconds for load in equal}
    ends |= {tier for tier in tiers() if longest.least_seconds <= tier < longest.seconds}
    found, parts, begin = {}, [], 0.0
    for number, end in enumerate(sorted(ends), 1):
        parts.append(run("measured", end - begin, _FIRST_SEED + number))
        begin = end
        found[end] = metrics_of(parts)
    return {load: found[load.seconds] for load in equal}


def shortened_s(seconds: float, time_share: float) -> float:
    """Return the shortened time of a load, in seconds, at least that of a burst.

    Shorter bursts would measure the buffer instead of the SLC cache.
    """
    return max(seconds * time_share, min(seconds, BURST_SECONDS))


def _jobs(simulated: StatefulDrive, load: Load) -> tuple[Job, ...]:
    if load.profile:
        capacity = simulated.capacity_bytes
        jobs = profile_workload(load.profile, capacity, queue_depth=load.outstanding).jobs
        return tuple(replace(job, compressible_pct=load.compressible_pct) for job in jobs)
    assert load.block_bytes is not None and load.read_pct is not None
    job = Job(
        pattern=load.pattern,
        read_pct=load.read_pct,
        block_sizes=(BlockSize(load.block_bytes),),
        queue_depth=load.outstanding or 1,
        compressible_pct=load.compressible_pct,
    )
    return (simulated.active_range(job) if load.state == "client" else job,)


def idle_watts(drive: ComparedDrive) -> float | None:
    """Mean power over a minute without commands; None if the drive reports no power."""
    engine = SimEngine.from_text(drive.text, drive.file_name)
    late = Job(read_pct=100.0, ios=1, start_delay_ns=_IDLE_NS)
    return metrics_of([engine.run(Workload("idle", (late,)))]).get("power")


def rated_bytes(drive: ComparedDrive, waf: float) -> float:
    """Host bytes until all flash has its rated cycles, at this write amplification."""
    described = drive.describe()
    return (described.rated_cycles or 0) * described.flash_bytes("an endurance rating") / waf


def drive_memory(drive: ComparedDrive) -> int:
    described = drive.describe()
    return drive_memory_bytes(described.capacity_bytes, described.mapped_bytes)


# -- metrics ---------------------------------------------------------------------------------------

# The metrics of a load by name, from what an engine measured of it.
#
# Rates are in I/Os or 10^6 bytes per second, latencies in ms, `waf` is write amplification, `power`
# mean watts. What is of reads or writes alone has `read` or `write` in its name. Where several jobs
# share a load (the readers of the messenger), such latencies are averages over the jobs, as the
# white paper states them; rates are totals. Metrics that cannot be determined are absent.

_QUANTILES = {"p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}
_WAYS: tuple[tuple[Operation, int], ...] = (("read", 0), ("write", 1))  # as the intervals have them
_SECOND_NS = 1_000_000_000
_SLOW_SHARE = 0.001  # of the seconds: those beyond the 99.9th percentile


def metrics_of(parts: Sequence[StepResult]) -> dict[str, float]:
    """Metrics over all steps of one load."""
    seconds = sum(part.elapsed_ns for part in parts) / 1e9
    metrics = _rates(parts, sum(part.measured_ns for part in parts) / 1e9)
    whole = [merged(filter(None, (part.service() for part in parts)))]
    metrics |= _latencies(whole, "")
    metrics |= _spread(parts, None, "iops", "")
    for way, number in _WAYS:
        metrics |= _latencies(_by_job(parts, way), f"_{way}")
        metrics |= _spread(parts, number, f"{way}_iops", f"_{way}")
    waf = parts[-1].counters_after.write_amplification_since(parts[0].counters_before)
    if waf is not None:
        metrics["waf"] = waf
    joules = [part.counted.energy_j for part in parts]
    known = [one for one in joules if one is not None]
    if len(known) == len(joules):
        metrics["power"] = sum(known) / seconds
    return metrics


def _rates(parts: Sequence[StepResult], seconds: float) -> dict[str, float]:
    found = {}
    ways: list[tuple[Operation | None, str]] = [(None, "")]
    ways += [(way, f"{way}_") for way, _ in _WAYS]
    for way, prefix in ways:
        totals = [part.total(way) for part in parts]
        found[f"{prefix}iops"] = sum(ios for ios, _ in totals) / seconds
        found[f"{prefix}throughput"] = sum(size for _, size in totals) / seconds / 1e6
    return found


def _by_job(parts: Sequence[StepResult], way: Operation) -> list[Histogram | None]:
    """The service times of each job that has this operation."""
    jobs = zip(*(part.jobs for part in parts), strict=True)
    return [
        merged(one.operations[way].service for one in same if way in one.operations)
        for same in jobs
        if any(way in one.operations for one in same)
    ]


def _latencies(histograms: Sequence[Histogram | None], suffix: str) -> dict[str, float]:
    """Mean, percentiles and maximum, averaged over the histograms."""
    known = [one for one in histograms if one is not None]
    times: dict[str, Sequence[float | None]] = {
        "avg": [one.mean_ns for one in known],
        "max": [one.max_ns for one in known],
        **{name: [one.quantile(q).value_ns for one in known] for name, q in _QUANTILES.items()},
    }
    found = {}
    for name, values in times.items():
        measured = [value for value in values if value is not None]
        if measured:
            found[f"latency_{name}{suffix}"] = fmean(measured) / 1e6
    return found


def _spread(
    parts: Sequence[StepResult], operation: int | None, rate: str, suffix: str
) -> dict[str, float]:
    """Standard deviation of the I/Os of each second, and the I/Os in the 99.9th percentile of the
    seconds over the average (nearest rank: below 1,000 seconds that of the slowest one).
    """
    counts = np.concatenate([_per_second(part, operation) for part in parts])
    average = float(counts.mean()) if len(counts) > 1 else 0.0
    if not average:
        return {}
    slow = np.sort(counts)[max(1, math.ceil(_SLOW_SHARE * len(counts))) - 1]
    return {
        f"{rate}_stddev": float(np.std(counts, ddof=1)),
        f"iops_consistency{suffix}": 100 * float(slow) / average,
    }


def _per_second(part: StepResult, operation: int | None) -> npt.NDArray[np.float64]:
    """I/Os of each whole second but the first, which begins with an empty queue."""
    ends = np.asarray(part.intervals["end_ns"])
    ios = np.asarray(part.intervals["ios"], dtype=float)
    wanted = ends % _SECOND_NS == 0
    seconds = len(np.unique(ends[wanted]))
    if operation is not None:
        wanted &= np.asarray(part.intervals["operation"]) == operation
    at = (ends[wanted] // _SECOND_NS - 1).astype(int)
    counts = np.bincount(at, weights=ios[wanted], minlength=seconds)[1:].astype(float)
    return counts
