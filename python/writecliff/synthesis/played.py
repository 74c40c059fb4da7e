"""A trace and what was made after it, played on the same simulated drive.

The drive is cut down to the range that the trace uses, but not to less than 1 GiB; it is filled
and written once more at random. Then each is played on a copy of it: without time until some drive
fills are written, then at its own times, as an open loop. Response times count from the intended
arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.devices import describe, open_device, read_device_file
from writecliff.engines.base import merged
from writecliff.engines.sim import SimEngine
from writecliff.native_errors import as_user_errors
from writecliff.replay.model import simulated_name
from writecliff.synthesis.laid_out import FLUSH
from writecliff.synthesis.streams import LETTERS
from writecliff.workload.model import BlockSize, IoLog, Job, Workload

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.engines.base import StepResult
    from writecliff.synthesis.laid_out import LaidOut

FILL_PCT = 85.0  # of the drive, by the range of the trace
FILLS = 4.0  # drive fills written without time: half before write amplification is measured
CAPACITY_MIN_BYTES = 1 << 30  # smaller drives have few dies, and answer as no drive does
TIMED_IOS = 50_000  # at least, of whole passes
_ROUNDS_MAX, _ROUND_IOS_MAX = 2000, 30_000_000  # of what is played without time
_PAGE = BlockSize(4096)
_QUEUE_DEPTH = 4096  # an open loop waits for nothing below it
WAF_BOUND_PCT, LATENCY_BOUND_PCT = 5.0, 20.0


@dataclass(frozen=True)
class Figures:
    """What one of them did to the drive."""

    waf: float | None  # None: nothing was written
    iops: float
    response_ns: Mapping[str, float]  # of all I/Os: mean, p50, p99, p99_9, max
    reads_p99_9_ns: float | None
    writes_p99_9_ns: float | None


@dataclass(frozen=True)
class Played:
    """Both on one drive."""

    target: str
    capacity_bytes: int
    overprovision_pct: float | None
    rounds: int  # without time
    timed_passes: int
    trace: Figures
    synthetic: Figures
    fio_job: Figures | None = None

    def differences(self, of: Figures | None = None) -> dict[str, float | None]:
        """Percent by which figures differ from those of the trace."""
        other = of or self.synthetic
        a, b = self.trace, other

        def pct(one: float | None, two: float | None) -> float | None:
            return None if not one or two is None else 100.0 * (two / one - 1)

        return {
            "waf_pct": pct(a.waf, b.waf),
            "iops_pct": pct(a.iops, b.iops),
            "p99_9_pct": pct(a.response_ns["p99_9"], b.response_ns["p99_9"]),
            "reads_p99_9_pct": pct(a.reads_p99_9_ns, b.reads_p99_9_ns),
            "writes_p99_9_pct": pct(a.writes_p99_9_ns, b.writes_p99_9_ns),
        }

    @property
    def within(self) -> bool:
        """Whether write amplification and p99.9 keep their bounds."""
        found = self.differences()
        bounds = {"waf_pct": WAF_BOUND_PCT, "p99_9_pct": LATENCY_BOUND_PCT}
        return all(abs(found[key] or 0.0) <= bound for key, bound in bounds.items())

    def mapping(self) -> dict[str, Any]:
        job = self.fio_job
        return {
            **asdict(self),
            "differences": self.differences(),
            "fio_job_differences": None if job is None else self.differences(job),
            "bounds": {"waf_pct": WAF_BOUND_PCT, "p99_9_pct": LATENCY_BOUND_PCT},
            "within": self.within,
        }


def trace_job(trace: LaidOut) -> Job:
    """The trace as a job that repeats it at its times."""
    letters = bytes(LETTERS, "ascii")
    return Job(
        name="trace",
        log=IoLog(
            operations=bytes(letters[n] for n in trace.operation.tolist()).decode(),
            offsets=tuple(trace.offset.tolist()),
            lengths=tuple(trace.length.tolist()),
            times_ns=tuple(trace.time_ns.tolist()),
        ),
        ios=int((trace.operation != FLUSH).sum()),  # flushes do not count
    )


def play(
    trace: LaidOut,
    synthetic: Job,
    on: str,
    *,
    fio_job: str = "",
    seed: int = 1,
    on_part: Callable[[str], None] = lambda text: None,
) -> Played:
    """Play both on the simulated drive `on`, and the text of a fio job file. Raises
    ConfigError."""
    opened = open_device(*read_device_file(simulated_name(on)))
    wanted = max(round(trace.range_bytes * 100 / FILL_PCT), CAPACITY_MIN_BYTES)
    with as_user_errors():
        device = opened.for_streams(1, min(wanted, describe(opened).capacity_bytes))
    simulated = describe(device)
    on_part("filling the drive")
    full = SimEngine.from_device(device, seed=seed)
    fill = Job(pattern="sequential", block_size=1 << 17, queue_depth=32,
               volume_bytes=simulated.capacity_bytes)  # fmt: skip
    full.precondition(Workload("fill", (fill,)))
    full.precondition(Workload("random", (replace(fill, pattern="random", block_sizes=(_PAGE,)),)))
    written = int(trace.length[trace.operation == LETTERS.index("w")].sum())
    rounds = _rounds(len(trace), written, simulated.capacity_bytes)
    passes = max(1, -(-TIMED_IOS // len(trace)))
    loads = {
        "the trace": [trace_job(trace)],
        "the workload": [synthetic],
        "the fio job": _fio_jobs(fio_job, simulated.capacity_bytes),
    }
    found: list[Figures | None] = []
    for name, jobs in loads.items():
        on_part(f"playing {name}")
        found.append(_figures(full, device, jobs, rounds, passes, seed) if jobs else None)
    of_trace, of_workload, of_fio = found
    assert of_trace is not None and of_workload is not None, "both have jobs"
    return Played(
        target=on,
        capacity_bytes=simulated.capacity_bytes,
        overprovision_pct=simulated.overprovision_pct,
        rounds=rounds,
        timed_passes=passes,
        trace=of_trace,
        synthetic=of_workload,
        fio_job=of_fio,
    )


def _fio_jobs(text: str, capacity_bytes: int) -> list[Job]:
    """The jobs of a job file of one step."""
    import tempfile

    from writecliff.workload.load import load_workload

    if not text:
        return []
    with tempfile.TemporaryDirectory(prefix="writecliff-fio-") as folder:
        file = Path(folder) / "workload.fio"
        file.write_text(text.replace("${DRIVE}", "/dev/drive"), encoding="utf-8")
        loaded = load_workload(file, capacity_bytes=capacity_bytes)
    return list(loaded.workloads[0].jobs)


def _rounds(ios: int, written: int, capacity_bytes: int) -> int:
    """Passes without time, an even number: half of them settle the drive."""
    enough = -(-FILLS * capacity_bytes // max(written, 1))
    most = max(2, min(_ROUNDS_MAX, _ROUND_IOS_MAX // ios))
    return int(-(-max(2, min(enough, most)) // 2) * 2)


def _figures(
    full: SimEngine, device: Any, jobs: list[Job], rounds: int, passes: int, seed: int
) -> Figures:
    engine = SimEngine.from_device(device, seed=seed)
    engine.copy_from(full)

    def load(times: int, **changes: Any) -> Workload:
        each = (
            replace(job, ios=(job.ios or 1) * times, volume_bytes=None, **changes) for job in jobs
        )
        return Workload("played", tuple(each), seed=seed)

    half = load(rounds // 2)
    engine.precondition(half)
    before = engine.counters()
    engine.precondition(half)
    result = engine.run(load(passes, queue_depth=_QUEUE_DEPTH))
    times = _responses(result, ("read", "write", "trim"))
    assert times is not None, "a trace has reads or writes"
    quantile = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999}
    return Figures(
        waf=engine.counters().write_amplification_since(before),
        iops=result.iops(),
        response_ns={
            "mean": times.mean_ns or 0.0,
            **{name: _at(times, q) or 0.0 for name, q in quantile.items()},
            "max": float(times.max_ns or 0),
        },
        reads_p99_9_ns=_at(_responses(result, ("read",)), 0.999),
        writes_p99_9_ns=_at(_responses(result, ("write",)), 0.999),
    )


def _responses(result: StepResult, operations: tuple[str, ...]) -> Histogram | None:
    """Response times from intended arrivals."""
    found = (
        done.response
        for one in result.jobs
        for name, done in one.operations.items()
        if name in operations and done.response is not None
    )
    return merged(found)


def _at(of: Histogram | None, q: float) -> float | None:
    found = None if of is None else of.quantile(q).value_ns
    return None if found is None else float(found)


def rows_of(played: Played) -> list[tuple[str, ...]]:
    """Figures of the trace, the workload and the fio job, with differences, for tables."""
    job, of_job = played.fio_job, played.differences(played.fio_job)
    found = played.differences()

    def row(
        name: str, value: Callable[[Figures], float | None], text: Callable[[float], str], key: str
    ) -> tuple[str, ...]:
        def shown(of: Figures | None) -> str:
            number = None if of is None else value(of)
            return units.UNKNOWN if number is None else text(number)

        def differs(by: Mapping[str, float | None]) -> str:
            number = by.get(key)
            return "" if number is None else f"{number:+.1f} %"

        return (
            name, shown(played.trace), shown(played.synthetic), differs(found), shown(job),
            "" if job is None else differs(of_job),
        )  # fmt: skip

    def quantile(key: str) -> Callable[[Figures], float | None]:
        return lambda of: of.response_ns[key]

    return [
        row("write amplification", lambda of: of.waf, lambda n: f"{n:.3f}", "waf_pct"),
        row("IOPS", lambda of: of.iops, lambda n: f"{n:,.1f}", "iops_pct"),
        row("mean response", quantile("mean"), units.latency, ""),
        row("p50", quantile("p50"), units.latency, ""),
        row("p99", quantile("p99"), units.latency, ""),
        row("p99.9", quantile("p99_9"), units.latency, "p99_9_pct"),
        row("p99.9 of reads", lambda of: of.reads_p99_9_ns, units.latency, "reads_p99_9_pct"),
        row("p99.9 of writes", lambda of: of.writes_p99_9_ns, units.latency, "writes_p99_9_pct"),
    ]
