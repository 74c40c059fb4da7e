"""Results in fio's JSON output format, as read by other tools.

Keys, key order and units follow `fio --output-format=json+` 3.41 (stat.c): sizes are in bytes, `bw`
in KiB/s, `runtime` in ms, and latencies in ns. fio 3.33 does not write `job_start`, disk sectors,
or options that have no value. Quantities that a simulated drive does not have (CPU time, context
switches, submission latency, kernel counters) are 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff import version as own_version
from writecliff.engines.base import OPERATIONS, Operation, OperationResult, StepResult
from writecliff.engines.fiojson_stats import (
    Json,
    Member,
    latency_block,
    latency_distribution,
    sample_block,
    samples,
)
from writecliff.latency_basis import merged
from writecliff.workload.fiojob import FioJobFile, FioSection, FioStep
from writecliff.workload.fiojob.options import FioOptions
from writecliff.workload.model import BlockSize, Job, Workload

if TYPE_CHECKING:
    import numpy as np

FIO_FORMAT = "fio-3.41"  # fio version whose format is written. Parsers check the prefix.

_SECTOR_BYTES = 512
_EIO = 5  # fio's error code for a job that fell below its minimum rate.
_DEPTHS = (1, 2, 4, 8, 16, 32, 64)
_BATCHES = ("0", "4", "8", "16", "32", "64", ">=64")


@dataclass
class _Entry:
    """An object in `jobs`, which represents a thread, a job, or a reporting group."""

    section: FioSection  # Section of the first member: name and reporting.
    options: Mapping[str, str]  # Options of the last member, as in fio.
    started_ms: int  # Start time of the first member, in ms since 1970.
    members: list[Member] = field(default_factory=list)

    @property
    def jobs(self) -> list[Job]:
        """Jobs of all members in the entry."""
        return [member.job for member in self.members]

    def measured(self, *operations: Operation) -> list[OperationResult]:
        """Return the members' results for the given operations."""
        every = (member.operations.get(op) for op in operations for member in self.members)
        return [result for result in every if result is not None]

    def runtime_ms(self, *operations: Operation) -> int:
        """Return the longest run time of the members that issued any of the operations."""
        times = [
            member.result.elapsed_ns
            for member in self.members
            if any(op in operations and result.ios for op, result in member.operations.items())
        ]
        return _ms(max(times, default=0))


def _ms(nanoseconds: int) -> int:
    """Round up to whole milliseconds, as fio does for run times."""
    return max(0, -(-nanoseconds // 1_000_000))


def fio_json(
    job_file: FioJobFile,
    results: Sequence[StepResult],
    *,
    version: str | None = None,
    at: datetime | None = None,
    drive: str = "sim",
) -> Json:
    """Return fio's JSON document for the results of a job file.

    Args:
        job_file: The job file, which determines names, job options, reporting groups and
            reporting options.
        results: Step results, in order, excluding ramps. An interrupted run has fewer results than
            steps, and the document has entries only for the completed steps.
        version: writecliff version (default: the installed version).
        at: Document time (default: the current time).
        drive: Drive name in `disk_util`.
    """
    if len(results) > len(job_file.steps):
        raise ValueError(f"{len(results)} results were given for {len(job_file.steps)} steps")
    when = at if at is not None else datetime.now(UTC)
    elapsed_ns = sum(result.elapsed_ns for result in results)
    begin_ms = when.timestamp() * 1000 - elapsed_ns / 1e6
    entries = _entries(list(zip(results, job_file.steps, strict=False)), begin_ms)
    document: Json = {
        "fio version": f"{FIO_FORMAT} (writecliff {version or own_version()})",
        "timestamp": int(when.timestamp()),
        "timestamp_ms": int(when.timestamp() * 1000),
        "time": when.strftime("%a %b %e %H:%M:%S %Y"),
        "global options": dict(job_file.global_options),
        "jobs": [
            _entry(entry, _group_bytes_per_s(entries, entry), elapsed_ns) for entry in entries
        ],
    }
    sections = [section for step in job_file.steps for section in step.sections]
    if all(section.settings.disk_util for section in sections):
        document["disk_util"] = _disk_util(results, drive)
    return document


def _disk_util(results: Sequence[StepResult], drive: str) -> list[Json]:
    """Return disk counters in the kernel's format, with no merged I/Os.

    `ticks` and `in_queue` are sums of latencies in ms. `util` is computed from these latency sums.
    `util` is exact at one outstanding I/O, and an upper bound otherwise.
    """
    busy = dict.fromkeys(OPERATIONS, 0.0)
    for result in results:
        for job in result.jobs:
            for name, done in job.operations.items():
                busy[name] += (done.service.mean_ns or 0.0) * done.service.count / 1e6
    ios, sizes = (
        {name: sum(result.total(name)[which] for result in results) for name in OPERATIONS}
        for which in (0, 1)
    )
    elapsed_ms = sum(result.elapsed_ns for result in results) / 1e6
    queued = sum(busy.values())
    return [
        {
            "name": drive,
            "read_ios": ios["read"],
            "write_ios": ios["write"],
            "read_sectors": sizes["read"] // _SECTOR_BYTES,
            "write_sectors": sizes["write"] // _SECTOR_BYTES,
            "read_merges": 0,
            "write_merges": 0,
            "read_ticks": round(busy["read"]),
            "write_ticks": round(busy["write"]),
            "in_queue": round(queued),
            "util": round(min(100.0, 100 * queued / elapsed_ms), 6) if elapsed_ms else 0.0,
        }
    ]


def to_fio_json(
    results: Sequence[StepResult], workloads: Sequence[Workload], **options: Any
) -> Json:
    """Return fio's JSON document for workloads without a job file, given a result for each.

    Each job has an entry, and each workload has a group. Job options are taken from `describe_job`,
    and `options` are keyword arguments of `fio_json`.
    """
    steps = tuple(_step_of(workload, index) for index, workload in enumerate(workloads))
    return fio_json(FioJobFile(Path(), {}, steps, ()), results, **options)


def _step_of(workload: Workload, group_id: int) -> FioStep:
    sections = tuple(
        FioSection(job.name, describe_job(job), FioOptions(), group_id, (index,))
        for index, job in enumerate(workload.jobs)
    )
    return FioStep(workload, sections)


def describe_job(job: Job) -> dict[str, str]:
    """Return a job's main fio options as strings, for `job options` in the JSON document."""
    prefix = "rand" if job.pattern == "random" else ""
    if job.trim_first:
        direction = f"{prefix}trimwrite"
    elif job.trim_pct >= 100:
        direction = f"{prefix}trim"
    elif job.read_pct in (0, 100):
        direction = f"{prefix}{'read' if job.read_pct else 'write'}"
    else:
        direction = f"{prefix}rw"
    options = {"rw": direction}
    if direction.endswith("rw"):
        options["rwmixread"] = f"{job.read_pct:g}"
    listed = [job.block_sizes_of(name) for name in OPERATIONS]
    smallest = [_short(min(size.bytes for size in sizes)) for sizes in listed]
    options["bs"] = smallest[0] if len(set(smallest)) == 1 else ",".join(smallest)
    if any(len(sizes) > 1 for sizes in listed):
        splits = [_split(sizes) for sizes in listed]
        options["bssplit"] = splits[0] if len(set(splits)) == 1 else ",".join(splits)
    options |= {"iodepth": str(job.queue_depth), "numjobs": str(job.threads)}
    if job.duration_ns is not None:
        options["runtime"] = f"{job.duration_ns / 1e9:g}"
    return options


def _split(sizes: Sequence[BlockSize]) -> str:
    total = sum(size.weight for size in sizes)
    return ":".join(f"{_short(size.bytes)}/{100 * size.weight / total:.0f}" for size in sizes)


def _short(size_bytes: int) -> str:
    for unit, letter in ((1 << 20, "m"), (1 << 10, "k")):
        if size_bytes % unit == 0:
            return f"{size_bytes // unit}{letter}"
    return str(size_bytes)


def _entries(measured: Sequence[tuple[StepResult, FioStep]], begin_ms: float) -> list[_Entry]:
    """Return the entries in fio's order, merging a reporting group that requests it.

    The first step started `begin_ms` after the Unix epoch.
    """
    entries: list[_Entry] = []
    last_group: int | None = None
    for result, step in measured:
        for section in step.sections:
            if not section.settings.stats:
                continue
            for index in section.jobs:
                joins = section.settings.group_reporting and last_group == section.group_id
                if not entries or not joins:
                    started_ms = int(begin_ms + result.jobs[index].began_ns / 1e6)
                    entries.append(_Entry(section, section.options, started_ms))
                last_group = section.group_id
                entries[-1].options = section.options
                entries[-1].members.append(Member(result, step.workload, index))
        begin_ms += result.elapsed_ns / 1e6
    return entries


def _group_bytes_per_s(entries: Sequence[_Entry], entry: _Entry) -> dict[Operation, float]:
    """Return an entry's group bandwidth for `bw_agg` (bytes over the longest run time)."""
    group = [other for other in entries if other.section.group_id == entry.section.group_id]
    rates: dict[Operation, float] = {}
    for operation in OPERATIONS:
        longest = max(other.runtime_ms(operation) for other in group)
        moved = sum(result.bytes for other in group for result in other.measured(operation))
        rates[operation] = 1000 * moved / longest if longest else 0.0
    return rates


def _entry(entry: _Entry, group: Mapping[Operation, float], elapsed_ns: int) -> Json:
    settings = entry.section.settings
    every = merged(result.service for result in entry.measured(*OPERATIONS))
    document: Json = {
        "jobname": entry.section.name,
        "groupid": entry.section.group_id,
        "job_start": entry.started_ms,
        "error": _EIO
        if any(member.result.ended_by == "least_rate" for member in entry.members)
        else 0,
        "eta": 0,
        "elapsed": -(-elapsed_ns // 1_000_000_000),
        "job options": dict(entry.options),
    }
    if settings.unified_rw_reporting != "mixed":
        for operation in OPERATIONS:
            document[operation] = _direction(entry, (operation,), group)
        document["sync"] = _sync(entry)
    if settings.unified_rw_reporting != "none":
        document["mixed"] = _direction(entry, OPERATIONS, group)
    document |= {
        "job_runtime": sum(
            member.job.threads * _ms(member.result.elapsed_ns) for member in entry.members
        ),
        "usr_cpu": 0.0,
        "sys_cpu": 0.0,
        "ctx": 0,
        "majf": 0,
        "minf": 0,
    }
    document |= _depths(entry)
    document |= latency_distribution(every if settings.shows_lat or settings.shows_clat else None)
    if settings.continue_on_error != "none":
        document |= {"total_err": 0, "first_error": 0}
    document |= {
        "latency_depth": max(
            member.result.queue_depth or member.job.queue_depth for member in entry.members
        ),
        "latency_target": settings.latency_target,
        "latency_percentile": settings.latency_percentile[0],
        "latency_window": settings.latency_window,
    }
    if settings.description:
        document["desc"] = settings.description
    if settings.steadystate is not None and settings.steadystate_duration:
        document["steadystate"] = steady_state(settings, entry.members)
    return document


def _sync(entry: _Entry) -> Json:
    """Return the flush section, including percentiles if clat or lat percentiles are enabled."""
    settings = entry.section.settings
    flushes = [member.result.flush for member in entry.members if member.result.flush is not None]
    percentiles = settings.clat_percentiles or settings.lat_percentiles
    wanted = sorted(settings.percentile_list) if percentiles else None
    return {
        "total_ios": sum(flush.ios for flush in flushes),
        "lat_ns": latency_block(
            merged(flush.service for flush in flushes), wanted, shown=settings.shows_clat
        ),
    }


def _direction(
    entry: _Entry, operations: tuple[Operation, ...], group: Mapping[Operation, float]
) -> Json:
    """Return the `read`, `write` or `trim` section, or the merged section `mixed`."""
    settings = entry.section.settings
    measured = entry.measured(*operations)
    size, ios = sum(result.bytes for result in measured), sum(result.ios for result in measured)
    runtime = entry.runtime_ms(*operations)
    rate = 1000 * size // runtime if runtime else 0
    histogram = merged(result.service for result in measured)
    wanted = sorted(settings.percentile_list)
    block: Json = {
        "io_bytes": size,
        "io_kbytes": size >> 10,
        "bw_bytes": rate,
        "bw": rate // 1024,
        "iops": round(1000 * ios / runtime, 6) if runtime else 0.0,
        "runtime": runtime,
        "total_ios": ios,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": latency_block(None, None),
        "clat_ns": latency_block(
            histogram, wanted if settings.clat_percentiles else None, shown=settings.shows_clat
        ),
        "lat_ns": latency_block(
            histogram, wanted if settings.lat_percentiles else None, shown=settings.shows_lat
        ),
    }
    return block | _samples(entry, operations, sum(group[operation] for operation in operations))


def _samples(entry: _Entry, operations: tuple[Operation, ...], group_rate: float) -> Json:
    """Return `bw_*` and `iops_*` from the measured series, with `bw_agg` relative to the group."""
    bandwidth, ios = _series(entry, operations)
    block = sample_block("bw", bandwidth, "dev")
    aggregate = 0.0
    if block["bw_samples"] and group_rate:
        aggregate = round(min(100.0, 100 * block["bw_mean"] * 1024 / group_rate), 6)
    keys = ("bw_min", "bw_max")
    head = {key: block.pop(key) for key in keys}
    return {**head, "bw_agg": aggregate, **block, **sample_block("iops", ios, "stddev")}


def _series(entry: _Entry, operations: tuple[Operation, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the operations' total (KiB/s, IOPS), or nothing if disabled or not issued."""
    import numpy as np

    issued = any(result.ios for result in entry.measured(*operations))
    settings = entry.section.settings
    if settings.gtod_reduce or settings.disable_bw_measurement or not issued:
        return np.empty(0), np.empty(0)
    pairs = [samples(entry.members, operation) for operation in operations]
    bandwidth, ios = zip(*pairs, strict=True)
    return np.sum(bandwidth, axis=0), np.sum(ios, axis=0)


def _depths(entry: _Entry) -> Json:
    """Return the depth at submission, which is 0 for jobs that have a rate or think time."""
    paced = any(
        job.rate_iops is not None or job.rate_bytes_per_s is not None or job.think_ns
        for job in entry.jobs
    )
    levels = dict.fromkeys((*map(str, _DEPTHS[:-1]), ">=64"), 0)
    for member in entry.members:
        name = str(1 << min(member.job.queue_depth, 64).bit_length() - 1)
        ios = sum(result.ios for result in member.operations.values())
        levels[name if name in levels else ">=64"] += 0 if paced else ios
    total = sum(result.ios for result in entry.measured(*OPERATIONS))
    one_at_a_time = {name: 100.0 if name == "4" and total else 0.0 for name in _BATCHES}
    return {
        "iodepth_level": {
            name: round(100 * ios / total, 6) if ios else 0.0 for name, ios in levels.items()
        },
        "iodepth_submit": one_at_a_time,
        "iodepth_complete": dict(one_at_a_time),
    }


# -- fio's steady state ----------------------------------------------------------------------------

# The `steadystate` section of fio's JSON contains the criterion and its input data.
#
# According to fio 3.33 (steadystate.c, stat.c), each check interval provides one value, and the
# last window of values is padded with zeros. `criterion` is the largest deviation from the mean, or
# the slope of the least-squares line per value. Both criteria are percentages of the mean if the
# limit is a percentage.

_NAMES = {"bandwidth": "bw", "latency": "lat"}
_US = 1000


def steady_state(settings: FioOptions, members: Sequence[Member]) -> Json:
    """Return the section for an entry whose job options set `steadystate`."""
    criterion = settings.steadystate
    assert criterion is not None
    name = _NAMES.get(criterion.metric, criterion.metric)
    sign = "%" if criterion.relative else ""
    interval_ns = settings.steadystate_check_interval * _US
    count = settings.steadystate_duration * _US // interval_ns
    ramp_ns = settings.steadystate_ramp_time * _US
    windows = [_values(member, interval_ns, ramp_ns)[-count:] for member in members]
    full = all(len(window) == count for window in windows)
    rates = _summed(windows, count)
    judged = rates[:, ("iops", "bandwidth", "latency").index(criterion.metric)]
    deviation, slope = _deviation_and_slope(judged) if full else (0.0, 0.0)
    value = slope if criterion.slope else deviation
    mean = float(judged.mean())
    reached = (100 * value / mean if mean else 0.0) if criterion.relative else value
    data = {key: [round(rate) for rate in rates[:, column].tolist()]
            for column, key in enumerate(("iops", "bw"))}  # fmt: skip
    return {
        "ss": f"{name}{'_slope' if criterion.slope else ''}:{criterion.limit:f}{sign}",
        "duration": settings.steadystate_duration // 1_000_000,
        "attained": int(all(member.result.ended_by == "steady_state" for member in members)),
        "criterion": f"{reached:f}{sign}",
        "max_deviation": 0.0 if criterion.slope else round(deviation, 6),
        "slope": round(slope, 6) if criterion.slope else 0.0,
        "data": {
            "bw_mean": sum(data["bw"]) // count,
            "iops_mean": sum(data["iops"]) // count,
            **data,
        },
    }


def _values(member: Member, interval_ns: int, ramp_ns: int) -> np.ndarray:
    """Return one row per whole check interval of a job after `ramp_ns`, in order.

    The columns are I/Os per second, bytes per second and mean latency in ns.
    """
    import numpy as np

    rows = member.step.intervals
    mine = np.flatnonzero(rows["job"] == member.index) if rows else np.empty(0, dtype=np.int64)
    if not len(mine):
        return np.empty((0, 3))
    ends = rows["end_ns"][mine].astype(np.int64) - member.result.began_ns - ramp_ns
    number = -(-ends // interval_ns) - 1
    whole = member.result.elapsed_ns - ramp_ns
    count = max(0, int(whole // interval_ns))
    inside = (number >= 0) & (number < count)
    ios, size = rows["ios"][mine].astype(np.float64), rows["bytes"][mine].astype(np.float64)
    latency = np.nan_to_num(rows["latency_mean_ns"][mine].astype(np.float64)) * ios
    sums = [
        np.bincount(number[inside], weights=column[inside], minlength=count)
        for column in (ios, size, latency)
    ]
    seconds = interval_ns / 1e9
    return np.column_stack((sums[0] / seconds, sums[1] / seconds, sums[2] / np.maximum(sums[0], 1)))


def _summed(windows: Sequence[np.ndarray], count: int) -> np.ndarray:
    """Combine the windows of several jobs, each zero-padded to `count` values.

    Rates are added, and latencies are averaged over I/Os.
    """
    import numpy as np

    total = np.zeros((count, 3))
    for window in windows:
        whole = np.zeros((count, 3))
        whole[: len(window)] = window
        total += np.column_stack((whole[:, :2], whole[:, 2] * whole[:, 0]))
    total[:, 2] /= np.maximum(total[:, 0], 1e-9)
    return total


def _deviation_and_slope(values: np.ndarray) -> tuple[float, float]:
    """Return the largest deviation from the mean, and the least-squares slope per value."""
    import numpy as np

    mean = float(values.mean())
    times = np.arange(len(values)) - (len(values) - 1) / 2
    slope = float((times * (values - mean)).sum() / (times**2).sum()) if len(values) > 1 else 0.0
    return float(np.abs(values - mean).max()), slope
