"""Results of fio runs that writecliff did not start, read from fio's JSON output.

Latencies require the histograms of `--output-format=json+`. Total latencies (`lat_ns`) are used if
fio wrote their bins (`lat_percentiles=1`). Otherwise, completion latencies (`clat_ns`) are used.
Output that contains no bins yields no latencies, because percentiles do not determine a
distribution.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from writecliff.engines.base import JobResult, OperationResult, StepResult
from writecliff.engines.counters import Counters
from writecliff.engines.fio.document import Entry, Fields, entries_of, job_fields, together
from writecliff.engines.fio.parse import MS, Document, OperationStats, flush_result, histogram_of
from writecliff.errors import ConfigError, WritecliffError
from writecliff.units import parse_size
from writecliff.workload.model import Job, Workload

if TYPE_CHECKING:
    from writecliff._native import Histogram

COMPLETION = "latencies are completion latencies (clat): fio's output has no bins of others"
NO_BINS = (
    "no latencies: fio's output has no histograms, which --output-format=json+ writes; "
    "percentiles do not suffice"
)
_MIXES = {"read": 100.0, "randread": 100.0, "write": 0.0, "randwrite": 0.0}


@dataclass(frozen=True)
class FinishedStep:
    """Jobs that ran at the same time, and their measurements."""

    workload: Workload
    result: StepResult


def finished_steps(document: Document, name: str) -> list[FinishedStep]:
    """Return the steps in fio's JSON output, each consisting of jobs that ran simultaneously.

    Raises:
        ConfigError: If the document is not in fio's format, or no I/O completed.
    """
    groups = together(entries_of(document, name))
    steps, started_ns = [], 0
    for number, group in enumerate(groups, 1):
        step = _step(group, f"{name}-{number}" if len(groups) > 1 else name, started_ns)
        started_ns += step.result.elapsed_ns
        steps.append(step)
    if not any(step.result.total()[0] for step in steps):
        raise ConfigError(f"{name}: none of its jobs completed an I/O")
    return steps


def _step(group: Sequence[Entry], name: str, started_ns: int) -> FinishedStep:
    jobs, results, notes = [], [], []
    begin_ms = min(entry.start_ms for entry in group)
    for entry in group:
        measured = {}
        for operation, fields in entry.operations.items():
            stats, note = _stats(fields)
            notes += [note] if note else []
            measured[operation] = OperationResult(stats.ios, stats.bytes, _histogram(stats, fields))
        result_of_job = JobResult(
            entry.name,
            round(entry.runtime_ms * MS),
            measured,
            began_ns=round((entry.start_ms - begin_ms) * MS),
            flush=_flushes(entry.sync),
        )
        jobs.append(_job(entry.name, entry.options, result_of_job))
        results.append(result_of_job.following(jobs[-1]))
        if entry.error:
            notes.append(f"job {entry.name} ended with error {entry.error}")
    unknown = Counters()
    result = StepResult(
        started_ns=started_ns,
        elapsed_ns=max((result.began_ns + result.elapsed_ns for result in results), default=0),
        jobs=tuple(results),
        intervals={},
        counters_before=unknown,
        counters_after=unknown,
        warnings=tuple(dict.fromkeys(notes)),
    )
    return FinishedStep(Workload(name, tuple(jobs)), result)


def _stats(fields: Fields) -> tuple[OperationStats, str]:
    """Return an operation's statistics, and a note on the operation's latencies.

    Raises:
        ConfigError: If a field is missing or invalid.
    """
    bare = Fields({"min": 0, "max": 0, "mean": 0, "stddev": 0}, fields.where)
    latency, bins, note = bare, dict[int, int](), NO_BINS
    for key, remark in (("clat_ns", COMPLETION), ("lat_ns", "")):
        if counted := _bins(fields.part(key).part("bins")):
            latency, bins, note = fields.part(key), counted, remark
    ios = sum(bins.values()) or fields.whole("total_ios")
    size, runtime_ms = fields.whole("io_bytes"), fields.whole("runtime")
    return _stats_of(ios, size, runtime_ms, latency, bins), note


def _stats_of(
    ios: int, size: int, runtime_ms: int, latency: Fields, bins: Mapping[int, int]
) -> OperationStats:
    return OperationStats(
        ios=ios,
        bytes=size,
        runtime_ms=runtime_ms,
        min_ns=latency.whole("min"),
        max_ns=latency.whole("max"),
        mean_ns=latency.number("mean"),
        sd_ns=latency.number("stddev"),
        bins=bins,
    )


def _flushes(sync: Fields) -> OperationResult | None:
    """Return a job's flushes, or None if there are no bins.

    Raises:
        ConfigError: If a field is missing or invalid.
    """
    latency = sync.part("lat_ns")
    if not (bins := _bins(latency.part("bins"))):
        return None
    stats = _stats_of(sum(bins.values()), 0, 0, latency, bins)
    with _possible(sync):
        return flush_result(stats)


def _bins(fields: Fields) -> dict[int, int]:
    """Return I/O counts by bin midpoint in ns.

    Raises:
        ConfigError: If a bin is not a latency, or its count is invalid.
    """
    counts = {}
    for middle in fields.raw:
        if not re.fullmatch(r"\d{1,18}", middle):
            raise ConfigError(f"{fields.where}: '{middle}' is not a latency in ns")
        if count := fields.whole(middle):
            counts[int(middle)] = count
    return counts


def _histogram(stats: OperationStats, fields: Fields) -> Histogram:
    with _possible(fields):
        return histogram_of(stats)


@contextmanager
def _possible(fields: Fields) -> Iterator[None]:
    try:
        yield
    except (WritecliffError, ValueError, OverflowError) as error:
        raise ConfigError(f"{fields.where}: the latencies are inconsistent: {error}") from None


def _job(name: str, options: Mapping[str, str], result: JobResult) -> Job:
    """Reconstruct a job from the job's fio options and results."""
    direction = options.get("rw", options.get("readwrite", "read")).partition(":")[0]
    ios = {name: done.ios for name, done in result.operations.items()}
    total = sum(ios.values()) or 1
    read_pct = _MIXES.get(direction, 100 * ios.get("read", 0) / total)
    return Job(
        name=name,
        pattern="random" if direction.startswith("rand") else "sequential",
        read_pct=read_pct,
        trim_pct=100 * ios.get("trim", 0) / total,
        block_size=_block_bytes(options, result),
        threads=_whole(options.get("numjobs")),
        queue_depth=_whole(options.get("iodepth")),
        duration_ns=result.elapsed_ns or MS,
    )


def _block_bytes(options: Mapping[str, str], result: JobResult) -> int:
    """Return the block size in the options, or the mean I/O size."""
    text = options.get("bs", options.get("blocksize", "")).partition(",")[0]
    if re.fullmatch(r"\d+", text):
        return int(text) or 4096
    if re.fullmatch(r"\d+[kKmMgG]", text):
        return parse_size(f"{text[:-1]} {text[-1].upper()}iB")
    ios = sum(done.ios for done in result.operations.values())
    return max(1, round(sum(done.bytes for done in result.operations.values()) / max(1, ios)))


def _whole(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() and int(text) else 1


def range_bytes(document: Document) -> int | None:
    """Return the jobs' largest `size` option, or None if no job has a size in bytes."""
    sizes = []
    common = Fields(document, "fio").options("global options")
    for job in job_fields(document, "fio"):
        text = {**common, **job.options("job options")}.get("size", "")
        if (match := re.fullmatch(r"(\d+)([kmgt]?)(?:i?b)?", text.lower())) is not None:
            sizes.append(int(match[1]) << 10 * " kmgt".index(match[2] or " "))
    return max(sizes, default=0) or None
