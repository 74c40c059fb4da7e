"""Simulated drives under the conditions of published figures.

Each drive is brought to a state once; all loads that want this state follow each other on it, reads
first. Preconditioned states come from the cache of the program where it has them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from writecliff import _native
from writecliff.devices import describe_device, read_device_file
from writecliff.engines.base import StepResult
from writecliff.engines.preconditioned import StateCache, bring_to, default_folder, recipe
from writecliff.engines.sim import SimEngine
from writecliff.parallel import Task, drive_memory_bytes, run_side_by_side
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


@dataclass(frozen=True)
class Drive:
    """A drive that is to be measured: the text of its device file, and where that is from."""

    name: str
    text: str
    file_name: str

    @classmethod
    def preset(cls, name: str) -> Drive:
        return cls(name, *read_device_file(name))


def measure_all(
    conditions: Iterable[Condition],
    *,
    cache: StateCache | None = None,
    memory_budget_bytes: int | None = None,
    tell: Tell = lambda text: None,
) -> dict[str, Results]:
    """Every load of the conditions on its drive; drives side by side. Keys: presets."""
    wanted: dict[str, set[Load]] = {}
    for one in conditions:
        loads = wanted.setdefault(one.device, set())
        if one.load is not None:
            loads.add(one.load)
    cache = cache or StateCache(default_folder())
    drives = [(Drive.preset(name), loads) for name, loads in wanted.items() if loads]
    # The largest first, so that none is left over at the end for one core.
    drives.sort(key=lambda pair: (-_memory_bytes(pair[0]), pair[0].name))
    tasks = [
        Task(drive.name, _memory_bytes(drive), partial(measure, drive, loads, cache, tell))
        for drive, loads in drives
    ]
    results = run_side_by_side(tasks, memory_budget_bytes=memory_budget_bytes)
    return {drive.name: result for (drive, _), result in zip(drives, results, strict=True)}


def measure(
    drive: Drive, loads: Iterable[Load], cache: StateCache | None = None, tell: Tell = print
) -> Results:
    """Metric by metric for each load; see `metrics_of`."""
    engine = SimEngine.from_text(drive.text, drive.file_name)
    results: dict[Load, Mapping[str, float]] = {}
    by_state: dict[State, list[Load]] = {}
    for load in sorted(loads, key=lambda one: one.order):
        by_state.setdefault(load.state, []).append(load)
    for state, ordered in by_state.items():
        tell(f"{drive.name}: {state}, {len(ordered)} loads")
        for n, load in enumerate(ordered):
            if n == 0 or state == "fresh":
                _bring(engine, state, cache)
            results[load] = _run(engine, load, _FIRST_SEED + 2 * len(results))
    return results


def _bring(engine: SimEngine, state: State, cache: StateCache | None) -> None:
    capacity = engine.identify().capacity_bytes
    if state == "fresh":
        engine.purge()
        return
    steps = _client_steps(capacity) if state == "client" else recipe(state, capacity)
    bring_to(engine, steps, cache=cache)


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


def _run(engine: SimEngine, load: Load, seed: int) -> Mapping[str, float]:
    job = Job(
        pattern=load.pattern,
        read_pct=load.read_pct,
        block_sizes=(BlockSize(load.block_bytes),),
        queue_depth=load.outstanding,
    )
    if load.state == "client":
        job = _client_area(job, engine.identify().capacity_bytes)
    if load.state != "fresh":
        warm = job.with_duration_s(load.seconds * _WARM_SHARE)
        engine.run(Workload("warm", (warm,), seed=seed))
    measured = job.with_duration_s(load.seconds)
    return metrics_of(engine.run(Workload("measured", (measured,), seed=seed + 1)))


def metrics_of(result: StepResult) -> dict[str, float]:
    """What figures are made of. Latencies in ms over all I/Os of the load, throughput in MB/s
    (10^6), write amplification where something was written; what cannot be told is absent."""
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
    return metrics


def _per_second(result: StepResult) -> Sequence[float]:
    """I/Os of each whole interval."""
    ends = np.asarray(result.intervals["end_ns"])
    if not len(ends):
        return []
    _, at = np.unique(ends, return_inverse=True)
    counts = np.bincount(at, weights=np.asarray(result.intervals["ios"], dtype=float))
    return list(counts[:-1])


def rated_bytes(device_text: str, file_name: str, waf: float) -> float:
    """Host bytes until the rated cycles of all flash are used up at this write amplification."""
    cycles = tomllib.loads(device_text)["flash"]["rated_cycles"]
    return float(cycles * describe_device(device_text, file_name).raw_bytes / waf)


def _memory_bytes(drive: Drive) -> int:
    described = describe_device(drive.text, drive.file_name)
    return drive_memory_bytes(described.capacity_bytes, described.raw_bytes)
