"""Simulated drives under the conditions of published figures.

Each drive is brought to a state once; all loads that want this state follow each other on it, reads
first. Preconditioned states come from the cache of the program where it has them.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event

import numpy as np

from writecliff import _native
from writecliff.devices import describe_device, read_device_file
from writecliff.engines.base import Progress, StepResult
from writecliff.engines.preconditioned import StateCache, bring_to, default_folder, recipe
from writecliff.engines.sim import SimEngine
from writecliff.parallel import Stopped, Task, drive_memory_bytes, run_side_by_side
from writecliff.published.conditions import KIB, Condition, Load, State
from writecliff.workload.model import BlockSize, Job, Segments, Workload

Tell = Callable[[str], None]
Results = Mapping[Load, Mapping[str, float]]

# Every run has a seed of its own. Two that write the same addresses in the same order invalidate
# flash in the order in which it was written, and measure a drive that no random load would find.
_FIRST_SEED = 3001
_WARM_SHARE = 0.2  # of a load's time, before it is measured: queues fill, the mix settles
_CLIENT_RANGE, _CLIENT_BYTES, _CLIENT_SEGMENTS = 0.8, 8 << 30, 1024
_CLIENT_DEPTH = 32
_IDLE_NS = 60_000_000_000


@dataclass(frozen=True)
class Drive:
    """A drive that is to be measured: the text of its device file, and where that is from."""

    name: str
    text: str
    file_name: str

    @classmethod
    def preset(cls, name: str) -> Drive:
        return cls(name, *read_device_file(name))


class Watch:
    """Sees what has been measured, and may stop it. Its methods are called from several threads."""

    def __init__(self) -> None:
        self.stop = Event()  # set: what runs ends with `Stopped`

    def preparing(self, drive: str, state: State, share: float) -> None:
        """So much of what brings a drive to a state is done, 0 to 1."""

    def load(self, drive: str, load: Load) -> None:
        """A load of a drive has been measured."""

    def drive(self, drive: str, wall_s: float) -> None:
        """All loads of a drive have."""

    def look(self, progress: Progress | None = None) -> None:
        """Raises Stopped if it is to end; between loads and every moment while one runs."""
        if self.stop.is_set():
            raise Stopped("stopped while it was measured")


def measure_all(
    drives: Mapping[str, Drive],
    conditions: Iterable[Condition],
    *,
    cache: StateCache | None = None,
    memory_budget_bytes: int | None = None,
    workers: int | None = None,
    tell: Tell = lambda text: None,
    watch: Watch | None = None,
) -> dict[str, Results]:
    """Every load of the conditions on its drive; drives side by side. By the names of `drives`,
    which have all that the conditions are about."""
    watch = watch or Watch()
    cache = cache or StateCache(default_folder())
    wanted = [(drives[name], loads) for name, loads in loads_by_drive(conditions).items()]
    # The largest first, so that none is left over at the end for one core.
    wanted.sort(key=lambda pair: (-drive_memory(pair[0]), pair[0].name))
    tasks = [
        Task(drive.name, drive_memory(drive), partial(measure, drive, loads, cache, tell, watch))
        for drive, loads in wanted
    ]
    results = run_side_by_side(
        tasks, memory_budget_bytes=memory_budget_bytes, workers=workers, stop=watch.stop
    )
    return {drive.name: result for (drive, _), result in zip(wanted, results, strict=True)}


def loads_by_drive(conditions: Iterable[Condition]) -> dict[str, set[Load]]:
    """What `measure_all` runs: nothing on drives whose figures need no load."""
    found: dict[str, set[Load]] = {}
    for one in conditions:
        if one.load is not None:
            found.setdefault(one.device, set()).add(one.load)
    return found


def measure(
    drive: Drive,
    loads: Iterable[Load],
    cache: StateCache | None = None,
    tell: Tell = print,
    watch: Watch | None = None,
) -> Results:
    """Metric by metric for each load; see `metrics_of`."""
    watch = watch or Watch()
    began_s = time.monotonic()
    engine = SimEngine.from_text(drive.text, drive.file_name)
    results: dict[Load, Mapping[str, float]] = {}
    by_state: dict[tuple[State, float], list[Load]] = {}
    for load in sorted(loads, key=lambda one: one.order):
        by_state.setdefault((load.state, load.compressible_pct), []).append(load)
    for (state, compressible), ordered in by_state.items():
        tell(f"{drive.name}: {state}, {len(ordered)} load{'s' * (len(ordered) > 1)}")
        for n, load in enumerate(ordered):
            watch.look()
            if n == 0 or state == "fresh":
                told = partial(_prepared, watch, drive.name, state)
                _bring(engine, state, compressible, cache, told)
            results[load] = _run(engine, load, _FIRST_SEED + 2 * len(results), watch)
            watch.load(drive.name, load)
    watch.drive(drive.name, time.monotonic() - began_s)
    return results


def _prepared(watch: Watch, drive: str, state: State, total: int, progress: Progress) -> None:
    watch.look()
    written = None if progress.counters is None else progress.counters.host_write_bytes
    if written is not None:
        watch.preparing(drive, state, min(1.0, written / total))


def _bring(
    engine: SimEngine,
    state: State,
    compressible_pct: float,
    cache: StateCache | None,
    prepared: Callable[[int, Progress], None],
) -> None:
    """Bring a drive to a state; `prepared` is told of how many bytes in all, and how it goes."""
    capacity = engine.identify().capacity_bytes
    if state == "fresh" or "flash" not in tomllib.loads(engine.device_text):
        # New, whatever the drive has been through for other loads; a disk is always as it was.
        engine.renew()
        return
    steps = _client_steps(capacity) if state == "client" else recipe(state, capacity)
    steps = [_of_data(step, compressible_pct) for step in steps]
    total = sum(job.volume_bytes or 0 for step in steps for job in step.jobs)
    bring_to(engine, steps, cache=cache, on_progress=partial(prepared, total))


def _of_data(step: Workload, compressible_pct: float) -> Workload:
    return replace(
        step, jobs=tuple(replace(job, compressible_pct=compressible_pct) for job in step.jobs)
    )


def _client_steps(capacity_bytes: int) -> list[Workload]:
    """Twice 128 KiB in order over the range, then twice what is active, as the test will."""
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


def _run(engine: SimEngine, load: Load, seed: int, watch: Watch) -> Mapping[str, float]:
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
        engine.run(Workload("warm", (warm,), seed=seed), watch.look)
    measured = job.with_duration_s(load.seconds)
    return metrics_of(engine.run(Workload("measured", (measured,), seed=seed + 1), watch.look))


def metrics_of(result: StepResult) -> dict[str, float]:
    """What figures are made of. Latencies in ms over all I/Os of the load, throughput in MB/s
    (10^6), write amplification where something was written, mean power in W; what cannot be told is
    absent."""
    seconds = result.elapsed_ns / 1e9
    ios, size = result.total()
    metrics = {
        "iops": ios / seconds,
        "read_iops": result.total("read")[0] / seconds,
        "write_iops": result.total("write")[0] / seconds,
        "throughput": size / seconds / 1e6,
    }
    service = _native.Histogram()
    for job in result.jobs:
        for operation in job.operations.values():
            service.merge(operation.service)
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
    waf = result.counters_after.write_amplification_since(result.counters_before)
    if waf is not None:
        metrics["waf"] = waf
    joules = result.counters_after.joules_since(result.counters_before)
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


def idle_watts(drive: Drive) -> float | None:
    """Mean power over a while without commands; None where the drive does not tell."""
    engine = SimEngine.from_text(drive.text, drive.file_name)
    late = Job(read_pct=100.0, ios=1, start_delay_ns=_IDLE_NS)
    return metrics_of(engine.run(Workload("idle", (late,)))).get("power")


def rated_bytes(device_text: str, file_name: str, waf: float) -> float:
    """Host bytes until the rated cycles of all flash are used up at this write amplification."""
    cycles = tomllib.loads(device_text)["flash"]["rated_cycles"]
    return float(cycles * describe_device(device_text, file_name).raw_bytes / waf)


def drive_memory(drive: Drive) -> int:
    described = describe_device(drive.text, drive.file_name)
    return drive_memory_bytes(described.capacity_bytes, described.mapped_bytes)
