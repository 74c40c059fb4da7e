"""Conversion of fio's json+ output to engine results.

fio reports three latencies. This module uses `lat`, which is measured from an I/O's submission to
its completion (submission plus completion latency), because a caller of the drive waits that long.
The job file requests the latency histogram with lat_percentiles=1. With this option, `lat_ns.bins`
maps each bin's midpoint in nanoseconds to the bin's count.

The bins have the layout of the native `Histogram`, except that fio counts all latencies above 17.2
s in the last bin. Latencies in the last bin are moved to the measured maximum, so that each
quantile is an upper bound, and a warning is added.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from writecliff.engines.base import OPERATIONS, JobResult, Operation, OperationResult
from writecliff.errors import EngineError
from writecliff.operation_names import FLUSH

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.workload.model import Job

MS = 1_000_000
_SUB_BUCKET_BITS = 6
# fio's stat.h defines 29 groups of 64 bins. The last bin starts at 127 * 2^27 ns and has no upper
# end.
LAST_BIN_NS = 127 << 27
CEILING_NS = 1 << 34

Document = Mapping[str, Any]
Measurable = Operation | Literal["flush"]
# Names of fio's JSON sections by operation. The `sync` section has latencies, but neither bytes nor
# a run time. The `total_ios` value in this section is 0 for fdatasync and sync_file_range (fio 3.33
# to 3.41), so the code uses N in the latency object instead.
_SECTIONS: Mapping[Measurable, str] = {
    "read": "read", "write": "write", "trim": "trim", FLUSH: "sync",
}  # fmt: skip


@dataclass(frozen=True)
class OperationStats:
    """Counts, moments and bins for one operation of a job since the job's start."""

    ios: int
    bytes: int
    runtime_ms: int
    min_ns: int
    max_ns: int
    mean_ns: float
    sd_ns: float  # Standard deviation with n - 1 degrees of freedom, as in fio.
    bins: Mapping[int, int]


def bin_upper_ns(value_ns: int) -> int:
    """Return the inclusive upper end of a value's bin, which must not be the open last bin."""
    shift = value_ns.bit_length() - 1 - _SUB_BUCKET_BITS
    return value_ns if shift <= 0 else (((value_ns >> shift) + 1) << shift) - 1


def bin_lower_ns(value_ns: int) -> int:
    """Return the lower end of a value's bin."""
    shift = value_ns.bit_length() - 1 - _SUB_BUCKET_BITS
    return value_ns if shift <= 0 else value_ns >> shift << shift


def stats_since(before: OperationStats | None, after: OperationStats) -> OperationStats | None:
    """Return the difference between two cumulative reports, or None if no I/O completed.

    Counts and bins are differences, and the mean and standard deviation are computed from the
    moments. A maximum or minimum is exact if it is a new extreme of the run. Otherwise, the maximum
    or minimum is the end of the outermost bin that gained I/Os (an error of at most 1/64). fio
    reads its counters while they change, so the figures in a report may differ by a few I/Os.
    """
    if before is None:
        return after if after.ios else None
    ios = after.ios - before.ios
    if ios <= 0:
        return None
    bins = {
        middle: gained
        for middle, count in after.bins.items()
        if (gained := count - before.bins.get(middle, 0)) > 0
    }
    lowest, highest = _extremes(before, after, bins)
    mean = (after.mean_ns * after.ios - before.mean_ns * before.ios) / ios
    # Chan et al. 1979: sums of squared deviations for two sets and for their union.
    squares = after.sd_ns**2 * (after.ios - 1) - before.sd_ns**2 * (before.ios - 1)
    squares -= (mean - before.mean_ns) ** 2 * before.ios * ios / after.ios
    return OperationStats(
        ios=ios,
        bytes=max(0, after.bytes - before.bytes),
        runtime_ms=after.runtime_ms - before.runtime_ms,
        min_ns=lowest,
        max_ns=highest,
        mean_ns=min(max(mean, float(lowest)), float(highest)),
        sd_ns=math.sqrt(max(0.0, squares) / (ios - 1)) if ios > 1 else 0.0,
        bins=bins,
    )


def _extremes(
    before: OperationStats, after: OperationStats, gained: Mapping[int, int]
) -> tuple[int, int]:
    """Return the extreme latencies between two reports, given the bins that gained I/Os."""
    lowest, highest = after.min_ns, after.max_ns
    if gained and after.min_ns >= before.min_ns:
        lowest = max(bin_lower_ns(min(gained)), after.min_ns)
    if gained and after.max_ns <= before.max_ns and max(gained) < LAST_BIN_NS:
        highest = min(bin_upper_ns(max(gained)), after.max_ns)
    return lowest, highest


def read_operation(raw: Mapping[str, Any]) -> OperationStats | None:
    """Return the statistics of a "read", "write", "trim" or "sync" object, or None if empty."""
    latency = raw["lat_ns"]
    bins = {int(middle): int(count) for middle, count in latency.get("bins", {}).items()}
    # The report of a running job is inconsistent, because the sum of the bins differs from the
    # other counts.
    ios = sum(bins.values()) or int(latency["N"])
    if ios == 0:
        return None
    return OperationStats(
        ios=ios,
        bytes=int(raw.get("io_bytes", 0)),
        runtime_ms=int(raw.get("runtime", 0)),
        min_ns=int(latency["min"]),
        max_ns=int(latency["max"]),
        mean_ns=float(latency["mean"]),
        sd_ns=float(latency["stddev"]),
        bins=bins,
    )


def read_document(
    document: Document, block_bytes: Mapping[int, int] = MappingProxyType({})
) -> dict[tuple[int, Measurable], OperationStats]:
    """Return statistics by (job index, operation), where a group_reporting group is one job.

    `block_bytes` maps jobs that use a single block size to that size. Such a job's bytes are
    computed from the I/O count, because in reports on a running job, fio counts bytes milliseconds
    before I/Os.
    """
    try:
        read = {
            (int(job["groupid"]), operation): stats
            for job in document["jobs"]
            for operation, section in _SECTIONS.items()
            if operation != FLUSH or section in job
            if (stats := read_operation(job[section])) is not None
        }
    except (KeyError, TypeError, ValueError) as error:
        raise EngineError(f"fio's JSON has an unexpected form: {error!r}") from error
    return {
        key: replace(done, bytes=done.ios * block_bytes[key[0]])
        if key[0] in block_bytes and key[1] != FLUSH
        else done
        for key, done in read.items()
    }


def job_errors(document: Document) -> Iterator[int]:
    """Yield the error numbers (errno) of the failed jobs."""
    for job in document.get("jobs", ()):
        if int(job.get("error", 0)):
            yield int(job["error"])


def histogram_of(stats: OperationStats) -> Histogram:
    """Convert fio's bins to a native histogram with fio's minimum, maximum and moments."""
    import numpy as np

    from writecliff._native import Histogram

    bins = dict(stats.bins)
    if stats.max_ns >= CEILING_NS:
        for middle in [middle for middle in bins if middle >= LAST_BIN_NS]:
            count = bins.pop(middle)
            bins[stats.max_ns] = bins.get(stats.max_ns, 0) + count
    middles = sorted(bins)
    return Histogram.from_buckets(
        np.array(middles, dtype=np.uint64),
        np.array([bins[middle] for middle in middles], dtype=np.uint64),
        stats.min_ns,
        stats.max_ns,
        stats.mean_ns,
        stats.sd_ns,
    )


def flush_result(stats: OperationStats) -> OperationResult:
    """Return the results of a job's flushes."""
    return OperationResult(stats.ios, 0, histogram_of(stats))


def job_results(
    jobs: Sequence[Job], stats: Mapping[tuple[int, Measurable], OperationStats]
) -> tuple[JobResult, ...]:
    """Return each job's result over the run time, which starts after the job's delay and ramp.

    `response` is `None`, because fio does not measure response times.
    """
    results = []
    for index, job in enumerate(jobs):
        mine = {op: stats[index, op] for op in OPERATIONS if (index, op) in stats}
        runtime_ms = max((done.runtime_ms for done in mine.values()), default=0)
        operations = {
            op: OperationResult(done.ios, done.bytes, histogram_of(done))
            for op, done in mine.items()
        }
        flushes = stats.get((index, FLUSH))
        flush = None if flushes is None else flush_result(flushes)
        began_ns = job.start_delay_ns + job.ramp_ns
        results.append(
            JobResult(job.name, runtime_ms * MS, operations, began_ns=began_ns, flush=flush)
        )
    return tuple(results)


def ceiling_warnings(
    names: tuple[str, ...], stats: Mapping[tuple[int, Measurable], OperationStats]
) -> tuple[str, ...]:
    """Return warnings for operations that have I/Os in fio's last bin."""
    return tuple(
        f"job {names[index]}: {operation} latencies above 17.2 s are counted as the maximum"
        for (index, operation), done in stats.items()
        if done.max_ns >= CEILING_NS
    )
