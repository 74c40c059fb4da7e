"""Simulated drives under the conditions of published figures.

Each drive is brought to a state once; all loads that want this state follow each other on it, reads
first. Preconditioned states come from the cache of the program where it has them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event

import numpy as np

from writecliff import _native
from writecliff.devices import DeviceDescription, describe_device, read_device_file
from writecliff.engines.base import Progress, StepResult
from writecliff.engines.preconditioned import StateCache, bring_to, default_folder, recipe
from writecliff.engines.sim import SimEngine
from writecliff.parallel import Stopped, Task, drive_memory_bytes, run_side_by_side
from writecliff.published.conditions import KIB, Condition, Load, State
from writecliff.workload.model import BlockSize, Job, Segments, Workload

Log = Callable[[str], None]
Results = Mapping[Load, Mapping[str, float]]

# Every run has a different seed. Two that write the same addresses in the same order invalidate
# flash in the order in which it was written, and measure a drive that no random load would find.
_FIRST_SEED = 3001
_WARM_SHARE = 0.2  # of a load's time, before it is measured: queues fill, the mix settles
_CLIENT_RANGE, _CLIENT_BYTES, _CLIENT_SEGMENTS = 0.8, 8 << 30, 1024
_CLIENT_DEPTH = 32
_IDLE_NS = 60_000_000_000


@dataclass(frozen=True)
class ComparedDrive:
    """A drive to measure: the text of its device file, and where that is from."""

    name: str
    text: str
    file_name: str

    @classmethod
    def preset(cls, name: str) -> ComparedDrive:
        return cls(name, *read_device_file(name))

    def describe(self) -> DeviceDescription:
        return describe_device(self.text, self.file_name)


class MeasurementObserver:
    """Follows a measurement and may stop it. Its methods are called from several threads."""

    def __init__(self) -> None:
        self.stop = Event()  # set: the measurement ends with `Stopped`
        self.wall_s: dict[str, float] = {}  # by drive

    def preparing(self, drive: str, state: State, share: float) -> None:
        """The preparation of a drive for a state has come to `share`, 0 to 1."""

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
    log: Log = lambda text: None,
    observer: MeasurementObserver | None = None,
) -> dict[str, Results]:
    """Measure every load of the conditions on its drive, drives side by side.

    `drives` has each device that the conditions name; the results have the same keys."""
    observer = observer or MeasurementObserver()
    cache = cache or StateCache(default_folder())
    wanted = [(drives[name], loads) for name, loads in loads_by_drive(conditions).items()]
    # The largest first, so that none is left over at the end for one core.
    wanted.sort(key=lambda pair: (-drive_memory(pair[0]), pair[0].name))
    tasks = [
        Task(drive.name, drive_memory(drive), partial(measure, drive, loads, cache, log, observer))
        for drive, loads in wanted
    ]
    results = run_side_by_side(
        tasks, memory_budget_bytes=memory_budget_bytes, workers=workers, stop=observer.stop
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
) -> Results:
    """The metrics of each load (see `metrics_of`) on one drive."""
    observer = observer or MeasurementObserver()
    began_s = time.monotonic()
    engine = SimEngine.from_text(drive.text, drive.file_name)
    results: dict[Load, Mapping[str, float]] = {}
    by_state: dict[tuple[State, float], list[Load]] = {}
    for load in sorted(loads, key=lambda one: one.order):
        by_state.setdefault((load.state, load.compressible_pct), []).append(load)
    for (state, _), ordered in by_state.items():
        log(f"{drive.name}: {state}, {len(ordered)} load{'s' * (len(ordered) > 1)}")
        for n, load in enumerate(ordered):
            observer.look()
            if n == 0 or state == "fresh":
                _bring(engine, drive.name, load, cache, observer)
            results[load] = _run(engine, load, _FIRST_SEED + 2 * len(results), observer)
            observer.load(drive.name, load)
    observer.drive(drive.name, time.monotonic() - began_s)
    return results


def _bring(
    engine: SimEngine,
    drive: str,
    load: Load,
    cache: StateCache | None,
    observer: MeasurementObserver,
) -> None:
    """Bring a drive to the state that a load requires."""
    capacity = engine.identify().capacity_bytes
    if load.state == "fresh" or engine.description.kind == "disk":
        # New, whatever earlier loads did to the drive; the state of a disk never changes.
        engine.renew()
        return
    steps = _client_steps(capacity) if load.state == "client" else recipe(load.state, capacity)
    steps = [_of_data(step, load.compressible_pct) for step in steps]
    total = sum(job.volume_bytes or 0 for step in steps for job in step.jobs)

    def prepared(progress: Progress) -> None:
        observer.look()
        written = None if progress.counters is None else progress.counters.host_write_bytes
        if written is not None:
            observer.preparing(drive, load.state, min(1.0, written / total))

    bring_to(engine, steps, cache=cache, on_progress=prepared)


def _of_data(step: Workload, compressible_pct: float) -> Workload:
    return replace(
        step, jobs=tuple(replace(job, compressible_pct=compressible_pct) for job in step.jobs)
    )


def _client_steps(capacity_bytes: int) -> list[Workload]:
    """Twice 128 KiB in order over the range, then twice the active segments, as the test does."""
    fill = Job(
        pattern="sequential",
        block_sizes=(BlockSize(128 * KIB),),
        queue_depth=_CLIENT_DEPTH,
        range_bytes=_client_range(capacity_bytes),
        volume_bytes=2 * _client_range(capacity_bytes),
    )
    whole = Job(queue_depth=_CLIENT_DEPTH, volume_bytes=2 * _CLIENT_BYTES)
    active = _client_area(whole, capacity_bytes)
    return [Workload("client: fill", (fill,), seed=1003), Workload("client", (active,), seed=1004)]


def _client_range(capacity_bytes: int) -> int:
    return int(capacity_bytes * _CLIENT_RANGE) // (1 << 20) * (1 << 20)


def _client_area(job: Job, capacity_bytes: int) -> Job:
    segments = Segments(_CLIENT_SEGMENTS, _CLIENT_BYTES)
    return replace(job, range_bytes=_client_range(capacity_bytes), segments=segments)


def _run(
    engine: SimEngine, load: Load, seed: int, observer: MeasurementObserver
) -> Mapping[str, float]:
    job = Job(
        pattern=load.pattern,
        read_pct=load.read_pct,
        block_sizes=(BlockSize(load.block_bytes),),
        queue_depth=load.outstanding,
        compressible_pct=load.compressible_pct,
    )
    if load.state == "client":
        job = _client_area(job, engine.identify().capacity_bytes)
    if load.state != "fresh":
        warm = job.with_duration_s(load.seconds * _WARM_SHARE)
        engine.run(Workload("warm", (warm,), seed=seed), observer.look)
    measured = job.with_duration_s(load.seconds)
    return metrics_of(engine.run(Workload("measured", (measured,), seed=seed + 1), observer.look))


def metrics_of(result: StepResult) -> dict[str, float]:
    """Metrics of one step by name: rates in I/Os or 10^6 bytes per second, latencies in ms over all
    I/Os, write amplification, mean power in W. Metrics that cannot be determined are absent."""
    seconds = result.elapsed_ns / 1e9
    ios, size = result.total()
    metrics = {
        "iops": ios / seconds,
        "read_iops": result.total("read")[0] / seconds,
        "write_iops": result.total("write")[0] / seconds,
        "throughput": size / seconds / 1e6,
    }
    service = result.service() or _native.Histogram()
    times = {
        "latency_avg": service.mean_ns,
        "latency_max": service.max_ns,
        "latency_p99": service.quantile(0.99).value_ns,
        "latency_p99.9": service.quantile(0.999).value_ns,
        "latency_p99.99": service.quantile(0.9999).value_ns,
    }
    metrics |= {name: time / 1e6 for name, time in times.items() if time is not None}
    per_second = _per_second(result)
    if len(per_second) > 1:
        metrics["iops_stddev"] = float(np.std(per_second, ddof=1))
    waf = result.waf
    if waf is not None:
        metrics["waf"] = waf
    joules = result.counted.energy_j
    if joules is not None:
        metrics["power"] = joules / seconds
    return metrics


def _per_second(result: StepResult) -> Sequence[float]:
    """I/Os of each whole interval."""
    ends = np.asarray(result.intervals["end_ns"])
    if not len(ends):
        return []
    _, at = np.unique(ends, return_inverse=True)
    counts = np.bincount(at, weights=np.asarray(result.intervals["ios"], dtype=float))
    return list(counts[:-1])


def idle_watts(drive: ComparedDrive) -> float | None:
    """Mean power over a minute without commands; None if the drive reports no power."""
    engine = SimEngine.from_text(drive.text, drive.file_name)
    late = Job(read_pct=100.0, ios=1, start_delay_ns=_IDLE_NS)
    return metrics_of(engine.run(Workload("idle", (late,)))).get("power")


def rated_bytes(drive: ComparedDrive, waf: float) -> float:
    """Host bytes until all flash has its rated cycles, at this write amplification."""
    described = drive.describe()
    return (described.rated_cycles or 0) * described.flash_bytes("an endurance rating") / waf


def drive_memory(drive: ComparedDrive) -> int:
    described = drive.describe()
    return drive_memory_bytes(described.capacity_bytes, described.mapped_bytes)
