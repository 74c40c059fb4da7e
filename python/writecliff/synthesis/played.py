"""A trace and its synthetic workload, which run on the same simulated drives.

Each drive is reduced to the range used by the trace, but not below 1 GiB. The drive is filled, and
then overwritten once at random. Each load is then repeated on copies of the drive. The load first
runs without its timing until the drive has settled, then for several drive fills that measure write
amplification. The load then runs with its original timing as an open loop until the drive has
settled again, then for many I/Os that measure response times from the intended arrival.

The effect of a repeated load on a small drive depends on where the load's reclaim units start.
Several drives are therefore used, which differ in their initial random writes. Within limits, the
number of drives depends on the required precision of the means. The figures cover all drives. The
spread between drives under the trace itself is also reported, because differences smaller than this
spread are not significant.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from writecliff import units
from writecliff.devices import describe, open_device, read_device_file
from writecliff.engines.sim import SimEngine
from writecliff.latency_basis import merged
from writecliff.native_errors import as_user_errors
from writecliff.replay.model import simulated_name
from writecliff.synthesis.streams import LETTERS
from writecliff.workload.model import BlockSize, IoLog, Job, Workload

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.engines.base import StepResult
    from writecliff.synthesis.laid_out import LaidOut

FILL_PCT = 85.0  # Percentage of the drive that the trace's range fills.
DRIVES_MIN, DRIVES_MAX = 3, 16  # Number of drives, each with different random data.
# Standard errors of the means over the drives below which no more drives are needed: a fifth of the
# bounds.
_WAF_ERROR_PCT, _LATENCY_ERROR_PCT = 1.0, 4.0
SETTLE_FILLS, MEASURED_FILLS = 4.0, 8.0  # Drive fills that ignore the load's timing.
TIMED_SETTLE_FILLS = 4.0  # Drive fills with the load's timing before response times are measured.
# Minimum capacity, because smaller drives have too few dies to be realistic.
CAPACITY_MIN_BYTES = 1 << 30
# Minimum number of passes. The latency of a burst depends on the progress of garbage collection,
# which differs between passes. The p99.9 over a few passes is therefore the p99.9 of the worst
# pass.
TIMED_IOS = 500_000
_PASSES_MAX, _PASSES_IOS_MAX = 1000, 30_000_000  # Limits for each phase.
_PAGE = BlockSize(4096)
_QUEUE_DEPTH = 4096  # Queue depth above which an open loop waits.
WAF_BOUND_PCT, LATENCY_BOUND_PCT = 5.0, 20.0
_TIMED = ("read", "write", "trim")


@dataclass(frozen=True)
class Figures:
    """Figures of a load on the drives, over all drives and for each drive."""

    waf: float | None  # Mean write amplification; `None` if the load does not write.
    iops: float
    response_ns: Mapping[str, float]  # Response times of all I/Os: mean, p50, p99, p99_9, max.
    reads_p99_9_ns: float | None
    writes_p99_9_ns: float | None
    waf_of_drives: tuple[float, ...]
    p99_9_ns_of_drives: tuple[float, ...]


@dataclass(frozen=True)
class Passes:
    """Number of passes of a load on a drive, by measurement phase."""

    settling: int  # Untimed passes before write amplification is measured.
    measured: int  # Untimed passes while write amplification is measured.
    timed_settling: int  # Passes with the load's timing before response times are measured.
    timed: int  # Passes with the load's timing while response times are measured.


@dataclass(frozen=True)
class Played:
    """Figures of the trace and its synthetic workload on the same drives."""

    target: str
    capacity_bytes: int
    overprovision_pct: float | None
    passes: Passes
    trace: Figures
    synthetic: Figures
    fio_job: Figures | None = None

    def differences(self, of: Figures | None = None) -> dict[str, float | None]:
        """Return the differences from the trace in percent.

        `of` holds the figures to compare with the trace (`None`: the synthetic workload).
        """
        other = of or self.synthetic
        a, b = self.trace, other

        def pct(reference: float | None, value: float | None) -> float | None:
            return None if not reference or value is None else 100.0 * (value / reference - 1)

        return {
            "waf_pct": pct(a.waf, b.waf),
            "iops_pct": pct(a.iops, b.iops),
            "p99_9_pct": pct(a.response_ns["p99_9"], b.response_ns["p99_9"]),
            "reads_p99_9_pct": pct(a.reads_p99_9_ns, b.reads_p99_9_ns),
            "writes_p99_9_pct": pct(a.writes_p99_9_ns, b.writes_p99_9_ns),
        }

    @property
    def spread(self) -> dict[str, float | None]:
        """Spread between the drives under the trace, (maximum - minimum) / mean in percent."""

        def pct(figures: tuple[float, ...]) -> float | None:
            mean = sum(figures) / len(figures) if figures else 0.0
            return 100.0 * (max(figures) - min(figures)) / mean if mean else None

        return {
            "waf_pct": pct(self.trace.waf_of_drives),
            "p99_9_pct": pct(self.trace.p99_9_ns_of_drives),
        }

    @property
    def drives(self) -> int:
        """Number of drives on which each load ran."""
        return len(self.trace.p99_9_ns_of_drives)

    @property
    def within(self) -> bool:
        """`True` if the differences in write amplification and p99.9 are within bounds."""
        differences = self.differences()
        bounds = {"waf_pct": WAF_BOUND_PCT, "p99_9_pct": LATENCY_BOUND_PCT}
        return all(abs(differences[key] or 0.0) <= bound for key, bound in bounds.items())

    def mapping(self) -> dict[str, Any]:
        """Return the figures in the format of `writecliff trace synthesise --json`."""
        job = self.fio_job
        return {
            **asdict(self),
            "drives": self.drives,
            "differences": self.differences(),
            "spread": self.spread,
            "fio_job_differences": None if job is None else self.differences(job),
            "bounds": {"waf_pct": WAF_BOUND_PCT, "p99_9_pct": LATENCY_BOUND_PCT},
            "within": self.within,
        }


def trace_job(trace: LaidOut) -> Job:
    """Return the trace as a job that repeats the trace with its original timing."""
    letters = bytes(LETTERS, "ascii")
    log = IoLog(
        operations=bytes(letters[n] for n in trace.operation.tolist()).decode(),
        offsets=tuple(trace.offset.tolist()),
        lengths=tuple(trace.length.tolist()),
        times_ns=tuple(trace.time_ns.tolist()),
    )
    return Job(name="trace", log=log, ios=log.ios)


def play(
    trace: LaidOut,
    synthetic: Job,
    on: str,
    *,
    fio_job: str = "",
    seed: int = 1,
    on_part: Callable[[str], None] = lambda text: None,
) -> Played:
    """Run a trace and its synthetic workload on the same simulated drives.

    Args:
        trace: Trace to run.
        synthetic: Job of the synthetic workload.
        on: Name or file of the simulated drive.
        fio_job: Text of a fio job file that is also run, if any.
        seed: Seed for the drives' random data.
        on_part: Function that receives a description of each step when it starts.

    Raises:
        ConfigError: If the drive is unknown or is too small for the trace.
    """
    opened = open_device(*read_device_file(simulated_name(on)))
    wanted = max(round(trace.range_bytes * 100 / FILL_PCT), CAPACITY_MIN_BYTES)
    with as_user_errors():
        device = opened.for_streams(1, min(wanted, describe(opened).capacity_bytes))
    simulated = describe(device)
    written = int(trace.length[trace.operation == LETTERS.index("w")].sum())
    passes = _passes(len(trace), written, simulated.capacity_bytes)
    loads = {
        "the trace": [trace_job(trace)],
        "the workload": [synthetic],
        "the fio job": _fio_jobs(fio_job, simulated.capacity_bytes),
    }
    done: dict[str, list[_Done]] = {name: [] for name, jobs in loads.items() if jobs}
    past, parts = 0, DRIVES_MAX * (1 + len(done))

    def begin(what: str, number: int) -> None:
        nonlocal past
        on_part(f"{what} drive {number + 1} of {DRIVES_MAX} at most  {100 * past / parts:.0f} %")
        past += 1

    for number in range(DRIVES_MAX):
        if (
            number >= DRIVES_MIN
            and _is_precise(done["the trace"])
            and _is_precise(done["the workload"])
        ):
            break
        begin("filling", number)
        full = _full(device, simulated.capacity_bytes, seed + number)
        for name, each in done.items():
            begin(f"playing {name} on", number)
            each.append(_on_drive(full, device, loads[name], passes, seed + number))
    of_trace, of_workload, of_fio = (
        _figures(done[name]) if name in done else None for name in loads
    )
    assert of_trace is not None and of_workload is not None, "both have jobs"
    return Played(
        target=on,
        capacity_bytes=simulated.capacity_bytes,
        overprovision_pct=simulated.overprovision_pct,
        passes=passes,
        trace=of_trace,
        synthetic=of_workload,
        fio_job=of_fio,
    )


def _is_precise(done: list[_Done]) -> bool:
    """Return `True` if the means of write amplification and p99.9 are precise enough."""
    wafs = [drive.waf for drive in done if drive.waf is not None]
    tails = [_at(_responses([drive.result], _TIMED), 0.999) or 0.0 for drive in done]
    return _error_pct(wafs) <= _WAF_ERROR_PCT and _error_pct(tails) <= _LATENCY_ERROR_PCT


def _error_pct(values: list[float]) -> float:
    """Return the standard error of the mean, in percent of the mean."""
    mean = statistics.fmean(values) if values else 0.0
    return 100 * statistics.stdev(values) / math.sqrt(len(values)) / mean if mean else 0.0


def _full(device: Any, capacity_bytes: int, seed: int) -> SimEngine:
    """Return a drive that was filled and then overwritten once at random."""
    engine = SimEngine.from_device(device, seed=seed)
    fill = Job(pattern="sequential", block_size=1 << 17, queue_depth=32,
               volume_bytes=capacity_bytes)  # fmt: skip
    again = replace(fill, pattern="random", block_sizes=(_PAGE,))
    engine.precondition(Workload("fill", (fill,), seed=seed))
    engine.precondition(Workload("random", (again,), seed=seed))
    return engine


def _fio_jobs(text: str, capacity_bytes: int) -> list[Job]:
    """Return the jobs from a job file with a single step."""
    import tempfile

    from writecliff.workload.load import load_workload

    if not text:
        return []
    with tempfile.TemporaryDirectory(prefix="writecliff-fio-") as folder:
        file = Path(folder) / "workload.fio"
        file.write_text(text.replace("${DRIVE}", "/dev/drive"), encoding="utf-8")
        loaded = load_workload(file, capacity_bytes=capacity_bytes)
    return list(loaded.workloads[0].jobs)


def _passes(ios: int, written: int, capacity_bytes: int) -> Passes:
    most = max(1, min(_PASSES_MAX, _PASSES_IOS_MAX // ios))

    def of(fills: float) -> int:
        return int(min(max(1, -(-fills * capacity_bytes // max(written, 1))), most))

    return Passes(
        settling=of(SETTLE_FILLS),
        measured=of(MEASURED_FILLS),
        timed_settling=of(TIMED_SETTLE_FILLS),
        timed=max(1, -(-TIMED_IOS // ios)),
    )


@dataclass(frozen=True)
class _Done:
    """Figures for a load on a single drive."""

    waf: float | None
    result: StepResult


def _on_drive(full: SimEngine, device: Any, jobs: list[Job], passes: Passes, seed: int) -> _Done:
    engine = SimEngine.from_device(device, seed=seed)
    engine.copy_from(full)

    def load(times: int, **changes: Any) -> Workload:
        each = (
            replace(job, ios=(job.ios or 1) * times, volume_bytes=None, **changes) for job in jobs
        )
        return Workload("played", tuple(each), seed=seed)

    engine.precondition(load(passes.settling))
    before = engine.counters()
    engine.precondition(load(passes.measured))
    waf = engine.counters().write_amplification_since(before)
    engine.run(load(passes.timed_settling, queue_depth=_QUEUE_DEPTH))
    return _Done(waf, engine.run(load(passes.timed, queue_depth=_QUEUE_DEPTH)))


def _figures(done: list[_Done]) -> Figures:
    results = [drive.result for drive in done]
    times = _responses(results, _TIMED)
    assert times is not None, "a trace has reads or writes"
    each = [_at(_responses([result], _TIMED), 0.999) for result in results]
    wafs = tuple(drive.waf for drive in done if drive.waf is not None)
    quantile = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999}
    return Figures(
        waf=sum(wafs) / len(wafs) if wafs else None,
        iops=sum(result.iops() for result in results) / len(results),
        response_ns={
            "mean": times.mean_ns or 0.0,
            **{name: _at(times, q) or 0.0 for name, q in quantile.items()},
            "max": float(times.max_ns or 0),
        },
        reads_p99_9_ns=_at(_responses(results, ("read",)), 0.999),
        writes_p99_9_ns=_at(_responses(results, ("write",)), 0.999),
        waf_of_drives=wafs,
        p99_9_ns_of_drives=tuple(tail or 0.0 for tail in each),
    )


def _responses(results: list[StepResult], operations: tuple[str, ...]) -> Histogram | None:
    """Return the response times from intended arrivals, for given operations of all jobs."""
    histograms = (
        done.response
        for result in results
        for job in result.jobs
        for name, done in job.operations.items()
        if name in operations and done.response is not None
    )
    return merged(histograms)


def _at(of: Histogram | None, q: float) -> float | None:
    value_ns = None if of is None else of.quantile(q).value_ns
    return None if value_ns is None else float(value_ns)


class PlayedRow(NamedTuple):
    """A figure for the trace, the workload and the fio job; None if unknown."""

    name: str
    text: Callable[[float | None], str]
    unit: str
    trace: float | None
    workload: float | None
    difference_pct: float | None
    job: float | None
    job_difference_pct: float | None


def rows_of(played: Played) -> list[PlayedRow]:
    """Return the rows for a table of the figures, with differences from the trace."""
    job, of_job = played.fio_job, played.differences(played.fio_job)
    differences = played.differences()
    latency: tuple[Callable[[float | None], str], str] = units.latency, "ns"

    def row(
        name: str,
        value: Callable[[Figures], float | None],
        shown: tuple[Callable[[float | None], str], str],
        key: str,
    ) -> PlayedRow:
        return PlayedRow(
            name, *shown, value(played.trace), value(played.synthetic), differences.get(key),
            None if job is None else value(job), None if job is None else of_job.get(key),
        )  # fmt: skip

    def quantile(key: str) -> Callable[[Figures], float | None]:
        return lambda of: of.response_ns[key]

    return [
        row(
            "write amplification", lambda of: of.waf, (lambda n: units.number(n, 3), ""), "waf_pct"
        ),
        row("IOPS", lambda of: of.iops, (lambda n: units.number(n, 1), ""), "iops_pct"),
        row("mean response", quantile("mean"), latency, ""),
        row("p50", quantile("p50"), latency, ""),
        row("p99", quantile("p99"), latency, ""),
        row("p99.9", quantile("p99_9"), latency, "p99_9_pct"),
        row("p99.9 of reads", lambda of: of.reads_p99_9_ns, latency, "reads_p99_9_pct"),
        row("p99.9 of writes", lambda of: of.writes_p99_9_ns, latency, "writes_p99_9_pct"),
    ]
