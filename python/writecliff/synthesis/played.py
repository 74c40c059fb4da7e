"""A trace and what was made after it, played on the same simulated drives.

The drive is cut down to the range that the trace uses, but not to less than 1 GiB; it is filled
and written once more at random. Then each is played on copies of it, over and over: without time
until it has settled and for some drive fills more, over which write amplification is measured; at
its own times, as an open loop, until it has settled again, and for many I/Os more. Response times
count from the intended arrival.

What a loop does to a small drive depends on where its reclaim units happen to begin. So there are
several drives, which differ in the random writes that they got: as many as it takes until the means
are known well, within limits. The figures are those of all of them, and how far the drives differ
under the trace itself is said: no difference below that means anything.
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

FILL_PCT = 85.0  # of the drive, by the range of the trace
DRIVES_MIN, DRIVES_MAX = 3, 16  # with other random data each
# Standard errors of the means over the drives from which on more drives are not needed: a fifth of
# the bounds.
_WAF_ERROR_PCT, _LATENCY_ERROR_PCT = 1.0, 4.0
SETTLE_FILLS, MEASURED_FILLS = 4.0, 8.0  # drive fills written without time
TIMED_SETTLE_FILLS = 4.0  # and at the loads' own times, before response times are measured
CAPACITY_MIN_BYTES = 1 << 30  # smaller drives have few dies, and answer as no drive does
# At least, of whole passes. What a burst finds depends on how far the drive is in collecting
# garbage, and that differs from pass to pass: p99.9 of a few passes is that of the worst of them.
TIMED_IOS = 500_000
_PASSES_MAX, _PASSES_IOS_MAX = 1000, 30_000_000  # of each part of what is played
_PAGE = BlockSize(4096)
_QUEUE_DEPTH = 4096  # an open loop waits for nothing below it
WAF_BOUND_PCT, LATENCY_BOUND_PCT = 5.0, 20.0
_TIMED = ("read", "write", "trim")


@dataclass(frozen=True)
class Figures:
    """What one of them did to the drives: over all of them, and to each."""

    waf: float | None  # mean; None: nothing was written
    iops: float
    response_ns: Mapping[str, float]  # of all I/Os: mean, p50, p99, p99_9, max
    reads_p99_9_ns: float | None
    writes_p99_9_ns: float | None
    waf_of_drives: tuple[float, ...]
    p99_9_ns_of_drives: tuple[float, ...]


@dataclass(frozen=True)
class Passes:
    """How often each load is played on a drive."""

    settling: int  # without time, before write amplification is measured
    measured: int  # without time, while it is
    timed_settling: int  # at its own times, before response times are measured
    timed: int  # while they are


@dataclass(frozen=True)
class Played:
    """Both on the same drives."""

    target: str
    capacity_bytes: int
    overprovision_pct: float | None
    passes: Passes
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
    def spread(self) -> dict[str, float | None]:
        """Percent by which the drives differ under the trace alone: from the least to the most,
        of their mean.
        """

        def pct(each: tuple[float, ...]) -> float | None:
            mean = sum(each) / len(each) if each else 0.0
            return 100.0 * (max(each) - min(each)) / mean if mean else None

        return {
            "waf_pct": pct(self.trace.waf_of_drives),
            "p99_9_pct": pct(self.trace.p99_9_ns_of_drives),
        }

    @property
    def drives(self) -> int:
        """On how many drives each was played."""
        return len(self.trace.p99_9_ns_of_drives)

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
            "drives": self.drives,
            "differences": self.differences(),
            "spread": self.spread,
            "fio_job_differences": None if job is None else self.differences(job),
            "bounds": {"waf_pct": WAF_BOUND_PCT, "p99_9_pct": LATENCY_BOUND_PCT},
            "within": self.within,
        }


def trace_job(trace: LaidOut) -> Job:
    """The trace as a job that repeats it at its times."""
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
    """Play both on the simulated drive `on`, and the text of a fio job file. Raises
    ConfigError.
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
        if number >= DRIVES_MIN and _known(done["the trace"]) and _known(done["the workload"]):
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


def _known(done: list[_Done]) -> bool:
    """Whether the means of write amplification and p99.9 are known well enough."""
    wafs = [one.waf for one in done if one.waf is not None]
    tails = [_at(_responses([one.result], _TIMED), 0.999) or 0.0 for one in done]
    return _error_pct(wafs) <= _WAF_ERROR_PCT and _error_pct(tails) <= _LATENCY_ERROR_PCT


def _error_pct(values: list[float]) -> float:
    """The standard error of their mean, in percent of it."""
    mean = statistics.fmean(values) if values else 0.0
    return 100 * statistics.stdev(values) / math.sqrt(len(values)) / mean if mean else 0.0


def _full(device: Any, capacity_bytes: int, seed: int) -> SimEngine:
    """A drive that was filled, and written once more at random."""
    engine = SimEngine.from_device(device, seed=seed)
    fill = Job(pattern="sequential", block_size=1 << 17, queue_depth=32,
               volume_bytes=capacity_bytes)  # fmt: skip
    again = replace(fill, pattern="random", block_sizes=(_PAGE,))
    engine.precondition(Workload("fill", (fill,), seed=seed))
    engine.precondition(Workload("random", (again,), seed=seed))
    return engine


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
    """What a load did to one drive."""

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
    results = [one.result for one in done]
    times = _responses(results, _TIMED)
    assert times is not None, "a trace has reads or writes"
    each = [_at(_responses([one], _TIMED), 0.999) for one in results]
    wafs = tuple(one.waf for one in done if one.waf is not None)
    quantile = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999}
    return Figures(
        waf=sum(wafs) / len(wafs) if wafs else None,
        iops=sum(one.iops() for one in results) / len(results),
        response_ns={
            "mean": times.mean_ns or 0.0,
            **{name: _at(times, q) or 0.0 for name, q in quantile.items()},
            "max": float(times.max_ns or 0),
        },
        reads_p99_9_ns=_at(_responses(results, ("read",)), 0.999),
        writes_p99_9_ns=_at(_responses(results, ("write",)), 0.999),
        waf_of_drives=wafs,
        p99_9_ns_of_drives=tuple(one or 0.0 for one in each),
    )


def _responses(results: list[StepResult], operations: tuple[str, ...]) -> Histogram | None:
    """Response times from intended arrivals."""
    found = (
        done.response
        for result in results
        for one in result.jobs
        for name, done in one.operations.items()
        if name in operations and done.response is not None
    )
    return merged(found)


def _at(of: Histogram | None, q: float) -> float | None:
    found = None if of is None else of.quantile(q).value_ns
    return None if found is None else float(found)


class PlayedRow(NamedTuple):
    """A figure of the trace, the workload and the fio job; None is unknown."""

    name: str
    text: Callable[[float | None], str]
    unit: str
    trace: float | None
    workload: float | None
    difference_pct: float | None
    job: float | None
    job_difference_pct: float | None


def rows_of(played: Played) -> list[PlayedRow]:
    """Figures of the trace, the workload and the fio job, with differences, for tables."""
    job, of_job = played.fio_job, played.differences(played.fio_job)
    found = played.differences()
    latency: tuple[Callable[[float | None], str], str] = units.latency, "ns"

    def row(
        name: str,
        value: Callable[[Figures], float | None],
        shown: tuple[Callable[[float | None], str], str],
        key: str,
    ) -> PlayedRow:
        return PlayedRow(
            name, *shown, value(played.trace), value(played.synthetic), found.get(key),
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
