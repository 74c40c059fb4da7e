"""One section of a job file as jobs of the model.

A section with `numjobs` is one job of several threads where its threads do the same and are
reported together (`group_reporting`); otherwise each of its threads is a job of its own, since fio
lets each thread have its own range, end and result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from writecliff.workload.fiojob.blocks import SECTOR_BYTES, Blocks, Operations, blocks, operations
from writecliff.workload.fiojob.extent import Extent, extent
from writecliff.workload.fiojob.pace import Pace, pace
from writecliff.workload.fiojob.settings import Settings
from writecliff.workload.fiojob.splits import Distribution
from writecliff.workload.fiojob.syntax import fail
from writecliff.workload.fiojob.target import (
    compressible_pct,
    flush_every_writes,
    named_file,
    queue_depth,
    stream,
)
from writecliff.workload.fiojob.values import LARGEST
from writecliff.workload.model import Addresses, Job, Zone

_US = 1000
LOG_FILES = ("write_bw_log", "write_iops_log", "write_lat_log", "write_hist_log")
_RATE_MAX = 10**12  # of the generator of the simulated drive, in bytes or I/Os a second


@dataclass(frozen=True)
class SectionJobs:
    """The jobs of a section, what to know of them, and the drive that the section names."""

    name: str
    jobs: tuple[Job, ...]
    ramp_ns: int
    seed: int | None  # None: not given
    filename: str | None
    notes: tuple[str, ...]


def section_jobs(settings: Settings, capacity_bytes: int) -> SectionJobs:
    """The jobs of one section. Raises `ConfigError` for what cannot be had, with file and line."""
    notes: list[str] = []
    ops = operations(settings)
    sizes = blocks(settings, ops)
    rate = pace(settings, ops, sizes)
    notes += rate.notes
    name = str(settings.name or settings.section)
    common = _common_job(name, settings, ops, sizes, rate=rate, notes=notes)
    threads = settings.numjobs
    shifted = settings.offset_increment.bytes or settings.offset_increment.percent
    if threads > 1 and (shifted or not settings.group_reporting):
        jobs = tuple(
            _thread_job(settings, replace(common, name=f"{name}.{thread}"), ops, sizes,
                        capacity=capacity_bytes, thread=thread)
            for thread in range(threads)
        )  # fmt: skip
    else:
        jobs = (
            _shared_job(
                _thread_job(settings, common, ops, sizes, capacity=capacity_bytes, thread=0),
                threads,
            ),
        )
    _check_totals(name, jobs, settings)
    _general_notes(settings, ops, notes)
    filename = named_file(settings)
    seed = settings.randseed if settings.given("randseed") else None
    prefix = f"job {name}: "
    return SectionJobs(
        name, jobs, settings.ramp_time * _US, seed,
        filename, (*settings.notes, *(prefix + note for note in notes)),
    )  # fmt: skip


def _check_totals(name: str, jobs: tuple[Job, ...], settings: Settings) -> None:
    for job in jobs:
        if max(job.volume_bytes or 0, job.ios or 0) > LARGEST:
            location = settings.location_of("io_size", "number_ios", "loops", "numjobs")
            raise fail(location, f"job {name} is too large: more than {LARGEST} bytes or I/Os")
        if max(job.rate_iops or 0, job.rate_bytes_per_s or 0) > _RATE_MAX:
            location = settings.location_of("rate_iops", "rate")
            raise fail(location, f"job {name} is too fast: its threads exceed {_RATE_MAX} a second")


def _common_job(
    name: str,
    settings: Settings,
    ops: Operations,
    sizes: Blocks,
    *,
    rate: Pace,
    notes: list[str],
) -> Job:
    """Everything that the threads of a section have in common, for one thread."""
    return Job(
        name=name,
        pattern=ops.pattern,
        read_pct=ops.read_pct if rate.read_pct is None else rate.read_pct,
        trim_pct=ops.trim_pct,
        block_sizes=sizes.sizes,
        queue_depth=queue_depth(settings, ops, notes),
        align_bytes=sizes.align_bytes,
        compressible_pct=compressible_pct(settings, notes),
        duplicate_pct=float(settings.dedupe_percentage),
        stream=stream(settings, ops),
        rate_iops=rate.rate_iops,
        rate_bytes_per_s=rate.rate_bytes_per_s,
        arrival=rate.arrival,
        think_ns=settings.thinktime * _US,
        think_after_ios=settings.thinktime_blocks,
        start_delay_ns=settings.startdelay * _US,
        flush_every_writes=flush_every_writes(settings, ops, notes),
    )


def _thread_job(
    settings: Settings, common: Job, ops: Operations, sizes: Blocks, *, capacity: int, thread: int
) -> Job:
    place: Extent = extent(settings, ops, sizes, capacity, thread)
    addresses, length = _addresses(settings, ops, place.range_bytes)
    return replace(
        common,
        offset_bytes=place.offset_bytes,
        range_bytes=length,
        addresses=addresses,
        duration_ns=place.duration_ns,
        volume_bytes=place.volume_bytes,
        ios=place.ios,
    )


def _shared_job(job: Job, threads: int) -> Job:
    """The same load by several threads: rates, volumes and counts of a job are totals."""

    def total(value: float | None) -> float | None:
        return None if value is None else value * threads

    return replace(
        job,
        threads=threads,
        rate_iops=total(job.rate_iops),
        rate_bytes_per_s=total(job.rate_bytes_per_s),
        volume_bytes=None if job.volume_bytes is None else job.volume_bytes * threads,
        ios=None if job.ios is None else job.ios * threads,
    )


def _addresses(settings: Settings, ops: Operations, length: int) -> tuple[Addresses, int]:
    """The distribution, and the range without what no zone covers."""
    chosen: Distribution = settings.random_distribution
    if ops.pattern == "sequential" or chosen.kind == "random":
        return Addresses(), length
    if chosen.kind == "zipf":
        return Addresses("zipf", theta=chosen.theta), length
    assert chosen.zones is not None
    location = settings.location_of("random_distribution")
    splits = {chosen.zones.of(operation) for operation in ops.used}
    if len(splits) > 1:
        raise fail(
            location,
            f"{' and '.join(ops.used)} with different zones in one job are not available",
            "use two jobs",
        )
    split = splits.pop()
    covered = sum(size for _, size in split)
    if chosen.absolute:
        if covered > length:
            raise fail(
                location,
                f"zones of {covered} bytes exceed the range of {length}",
                "use a larger size",
            )
        length = covered
    elif covered < 100:
        length = length * covered // 100
        length -= length % SECTOR_BYTES
    zones = tuple(Zone(float(access), 100 * size / covered) for access, size in split)
    return Addresses("zoned", zones=zones), length


def _general_notes(settings: Settings, ops: Operations, notes: list[str]) -> None:
    """What of a job is done in a slightly different way."""
    kind = settings.random_distribution.kind
    if ops.pattern == "random" and kind == "random" and not settings.norandommap:
        notes.append(
            "blocks are drawn with repetition, as with norandommap; fio would write or read each"
            " once in a pass"
        )
    if kind == "zipf" and settings.random_distribution.centre is not None:
        notes.append("the centre of zipf is not kept: hot blocks are scattered over the range")
    if settings.given("direct") and not settings.direct:
        notes.append("direct=0: there is no page cache above a simulated drive")
    if settings.time_based and not settings.runtime:
        notes.append("time_based has no effect without runtime, as in fio")
    if not settings.randrepeat and not settings.given("randseed"):
        notes.append("randrepeat=0: runs still repeat; change randseed for another course")
    logs = [name for name in LOG_FILES if settings.given(name)]
    if logs:
        notes.append(f"{', '.join(logs)}: no log files are written")
    if settings.given("directory"):
        notes.append(f"directory={settings.directory}: replaced by the drive of the run")
