"""Measurement of simulated drives under the conditions of published figures.

Each drive is brought to a state once, and every load starts in exactly this state. A result
therefore depends only on the drive and the load, not on the other requested figures. States are
read from the state cache if the cache contains them.

Figures that differ only in measurement time share a run: the load continues, and each figure covers
the time from the start to its own end. The IOPS of one minute are therefore the same with and
without a five-minute maximum.
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

# Every step of a load has a separate seed, which differs from the preconditioning seeds. Two steps
# that write the same addresses in the same order would invalidate flash in write order, which no
# random load does.
_FIRST_SEED = 3001
_WARM_SHARE = 0.2  # Warm-up before the measurement, as a fraction of the load's minimum time.
SHORT = 0.1  # Fraction of the usual time of each load in a quick check.
LARGEST_IO_BYTES = 1 << 20  # Largest I/O in any load, which a scaled-down drive must accept.
_IDLE_NS = 60_000_000_000


@dataclass(frozen=True)
class ComparedDrive:
    """A drive to measure, given by its device file text and its name.

    `scale` is the ratio of the full drive's size to the size in the text.
    """

    name: str
    text: str
    file_name: str
    scale: float = 1.0

    @classmethod
    def preset(cls, name: str) -> ComparedDrive:
        """Return the drive of a preset or device file.

        Raises:
            ConfigError: If there is no such preset or file.
        """
        return cls(name, *read_device_file(name))

    def describe(self) -> DeviceDescription:
        """Return the device file values."""
        return describe_device(self.text, self.file_name)

    def scaled(self, scale: float) -> ComparedDrive:
        """Return the drive scaled down by approximately `scale` (`Device.nearest_scale`).

        Rates remain the same, but the duration of stalls shrinks with the drive.
        """
        whole = open_device(self.text, self.file_name)
        exact = whole.nearest_scale(scale)
        if exact == 1:
            return self
        with as_user_errors():
            device = whole.scaled(exact, LARGEST_IO_BYTES)
        return replace(self, text=device.text, scale=self.scale * exact)


class MeasurementObserver:
    """Observer of a measurement, which can also stop it.

    The observer's methods are called from several threads.
    """

    def __init__(self) -> None:
        """Create an observer that ignores progress."""
        self.stop = Event()  # Event that makes the measurement raise `Stopped`.
        self.wall_s: dict[str, float] = {}  # Wall-clock time by drive, in seconds.

    def preparing(self, drive: str, state: State, share: float) -> None:
        """Receive the preconditioning progress. `share` is 0 to 1."""

    def prepared(self, drive: str, state: State, total_bytes: int, progress: Progress) -> None:
        """Check `stop`, and report the progress of preconditioning that writes `total_bytes`."""
        self.look()
        written = None if progress.counters is None else progress.counters.host_write_bytes
        if written is not None:
            self.preparing(drive, state, min(1.0, written / total_bytes))

    def running(self, drive: str, loads: Sequence[Load], share: float) -> None:
        """Receive the progress of the run that measures `loads`. `share` is 0 to 1."""

    def load(self, drive: str, load: Load) -> None:
        """Receive a load that has been measured on a drive."""

    def drive(self, drive: str, wall_s: float) -> None:
        """Receive a drive whose loads have all been measured, and the time taken in seconds."""
        self.wall_s[drive] = wall_s

    def look(self, progress: Progress | None = None) -> None:
        """Check `stop`. The method is called between loads and during a load.

        Raises:
            Stopped: `stop` is set.
        """
        if self.stop.is_set():
            raise Stopped("the measurement was stopped")


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
    """Measure every load of the conditions on its drive, with several drives in parallel.

    Args:
        drives: Drive to measure for each device in `conditions`; the results have the same keys.
        conditions: Conditions to measure.
        cache: State cache (default: the user's cache).
        memory_budget_bytes: Memory limit for all drives, in bytes.
        workers: Maximum number of drives measured in parallel.
        time_share: Factor for all measurement times.
        log: Function called with progress messages.
        observer: Observer that receives progress and can stop the measurement.
    """
    observer = observer or MeasurementObserver()
    cache = cache or StateCache.of_user()
    wanted = [(drives[name], loads) for name, loads in loads_by_drive(conditions).items()]
    # The largest drives come first, so that no large drive runs alone at the end.
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
    """Return the loads that `measure_all` runs on each drive that has loads."""
    loads: dict[str, set[Load]] = {}
    for condition in conditions:
        if condition.load is not None:
            loads.setdefault(condition.device, set()).add(condition.load)
    return loads


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
    """Measure the metrics of each load on a drive.

    The candidates of a fit share `prepared`. Otherwise, with `copies`, the drive is preconditioned
    once per state and takes twice the memory. Without `copies`, the drive is preconditioned or read
    from the cache before each load. All measurement times are multiplied by `time_share`.
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
    """Run `measure` in another process with its user's cache; also return the elapsed time."""
    began_s = time.monotonic()
    cache = StateCache.of_user()
    results = measure(drive, loads, cache, time_share=time_share, copies=copies)
    return results, time.monotonic() - began_s


def _arrived(name: str, observer: MeasurementObserver, result: tuple[Results, float]) -> Results:
    results, wall_s = result
    for load in results:
        observer.load(name, load)
    observer.drive(name, wall_s)
    return results


def measure_variants(
    origin: ComparedDrive,
    variants: Sequence[tuple[ComparedDrive, Collection[Load]]],
    cache: StateCache | None = None,
    log: Log = lambda text: None,
    observer: MeasurementObserver | None = None,
    *,
    time_share: float = 1.0,
) -> list[Results]:
    """Measure the metrics of each load on variants of a drive that differ only in timing.

    All variants share the states of `origin`, so they take twice the memory of a single drive.
    """
    observer = observer or MeasurementObserver()
    began_s = time.monotonic()
    device = open_device(origin.text, origin.file_name)
    results: list[dict[Load, Mapping[str, float]]] = [{} for _ in variants]
    for state in sorted({load.state for _, loads in variants for load in loads}):
        prepared = PreparedDrives({origin.name: device}, cache)  # Prepare one state at a time.
        for number, (drive, loads) in enumerate(variants):
            in_state = [load for load in loads if load.state == state]
            engine = SimEngine.from_text(drive.text, drive.file_name)
            simulated = StatefulDrive(origin.name, engine, scale=drive.scale, prepared=prepared)
            results[number] |= _measure(origin.name, simulated, in_state, log, observer, time_share)
    observer.drive(origin.name, time.monotonic() - began_s)
    return list(results)


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
    """Group loads by initial state, then group loads that differ only in time."""
    ordered = sorted(loads, key=lambda load: load.order)
    by_state = groupby(ordered, key=lambda load: (load.state, load.compressible_pct))
    return [
        (
            state,
            [list(same) for _, same in groupby(members, key=lambda load: replace(load, seconds=0))],
        )
        for (state, _), members in by_state
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
    """Return the metrics of loads that differ only in time, all taken from a single run."""
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
    metrics, parts, begin = {}, [], 0.0
    for number, end in enumerate(sorted(ends), 1):
        parts.append(run("measured", end - begin, _FIRST_SEED + number))
        begin = end
        metrics[end] = metrics_of(parts)
    return {load: metrics[load.seconds] for load in equal}


def shortened_s(seconds: float, time_share: float) -> float:
    """Return a load's shortened duration in seconds, at least a burst's duration.

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
    """Return the mean idle power in W over a minute, or None without a power model."""
    engine = SimEngine.from_text(drive.text, drive.file_name)
    late = Job(read_pct=100.0, ios=1, start_delay_ns=_IDLE_NS)
    return metrics_of([engine.run(Workload("idle", (late,)))]).get("power")


def rated_bytes(drive: ComparedDrive, waf: float) -> float:
    """Return the host bytes after which the flash reaches its rated cycles at this WAF."""
    described = drive.describe()
    return (described.rated_cycles or 0) * described.flash_bytes("an endurance rating") / waf


def drive_memory(drive: ComparedDrive) -> int:
    """Return a simulated drive's memory size in bytes."""
    described = drive.describe()
    return drive_memory_bytes(described.capacity_bytes, described.mapped_bytes)


# -- metrics ---------------------------------------------------------------------------------------

# Metrics of a load by name, computed from the measurements of an engine.
#
# Rates are in I/Os per second or 10^6 bytes per second, and latencies are in ms. `waf` is write
# amplification, and `power` is mean watts. Metrics for reads only or writes only have `read` or
# `write` in their names. For several jobs (the readers in the messenger load), latencies are
# averages over the jobs, as in the white paper, and rates are totals. Metrics that cannot be
# determined are omitted.

_QUANTILES = {"p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}
# Operations and their numbers in `intervals`.
_WAYS: tuple[tuple[Operation, int], ...] = (("read", 0), ("write", 1))
_SECOND_NS = 1_000_000_000
_SLOW_SHARE = 0.001  # Fraction of the seconds beyond the 99.9th percentile.


def metrics_of(parts: Sequence[StepResult]) -> dict[str, float]:
    """Return the metrics over all steps in a load."""
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
    reported = [energy for energy in joules if energy is not None]
    if len(reported) == len(joules):
        metrics["power"] = sum(reported) / seconds
    return metrics


def _rates(parts: Sequence[StepResult], seconds: float) -> dict[str, float]:
    rates = {}
    ways: list[tuple[Operation | None, str]] = [(None, "")]
    ways += [(way, f"{way}_") for way, _ in _WAYS]
    for way, prefix in ways:
        totals = [part.total(way) for part in parts]
        rates[f"{prefix}iops"] = sum(ios for ios, _ in totals) / seconds
        rates[f"{prefix}throughput"] = sum(size for _, size in totals) / seconds / 1e6
    return rates


def _by_job(parts: Sequence[StepResult], way: Operation) -> list[Histogram | None]:
    """Return the service times of each job that has operations of this kind."""
    jobs = zip(*(part.jobs for part in parts), strict=True)
    return [
        merged(job.operations[way].service for job in same if way in job.operations)
        for same in jobs
        if any(way in job.operations for job in same)
    ]


def _latencies(histograms: Sequence[Histogram | None], suffix: str) -> dict[str, float]:
    """Return the mean, percentiles and maximum, averaged over the histograms."""
    present = [histogram for histogram in histograms if histogram is not None]
    times: dict[str, Sequence[float | None]] = {
        "avg": [histogram.mean_ns for histogram in present],
        "max": [histogram.max_ns for histogram in present],
        **{name: [h.quantile(q).value_ns for h in present] for name, q in _QUANTILES.items()},
    }
    latencies = {}
    for name, values in times.items():
        measured = [value for value in values if value is not None]
        if measured:
            latencies[f"latency_{name}{suffix}"] = fmean(measured) / 1e6
    return latencies


def _spread(
    parts: Sequence[StepResult], operation: int | None, rate: str, suffix: str
) -> dict[str, float]:
    """Return the standard deviation of the IOPS, and the IOPS consistency in %.

    IOPS consistency is the 99.9th percentile of the per-second values divided by their average
    (nearest rank; below 1,000 seconds, the slowest second).
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
    """Return the I/O count of each full second except the first, where the queue fills."""
    ends = np.asarray(part.intervals["end_ns"])
    ios = np.asarray(part.intervals["ios"], dtype=float)
    wanted = ends % _SECOND_NS == 0
    seconds = len(np.unique(ends[wanted]))
    if operation is not None:
        wanted &= np.asarray(part.intervals["operation"]) == operation
    at = (ends[wanted] // _SECOND_NS - 1).astype(int)
    counts = np.bincount(at, weights=ios[wanted], minlength=seconds)[1:].astype(float)
    return counts
