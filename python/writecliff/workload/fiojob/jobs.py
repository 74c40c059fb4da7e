"""One section of a job file as jobs of the model.

A section with `numjobs` is one job of several threads where its threads do the same and are
reported together (`group_reporting`); otherwise each of its threads is a separate job, since fio
gives each thread its own range, end and result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from writecliff.workload.fiojob.blocks import SECTOR_BYTES, Blocks, Operations, blocks, operations
from writecliff.workload.fiojob.extent import extent
from writecliff.workload.fiojob.pace import Pace, pace, with_pauses
from writecliff.workload.fiojob.settings import Settings
from writecliff.workload.fiojob.splits import Distribution
from writecliff.workload.fiojob.target import (
    compressible_pct,
    dsync,
    flush_every_writes,
    queue_depth,
    stream,
)
from writecliff.workload.fiojob.values import LARGEST
from writecliff.workload.model import Addresses, Job, Zone

_US = 1000
LOG_FILES = ("write_bw_log", "write_iops_log", "write_lat_log", "write_hist_log")
_RATE_MAX = 10**12  # of the generator of the simulated drive, in bytes or I/Os a second


def section_jobs(settings: Settings, capacity_bytes: int) -> tuple[Job, ...]:
    """The jobs of one section; what differs from fio becomes notes of the settings.

    Raises `ConfigError` with file and line for what is not available.
    """
    ops = operations(settings)
    sizes = blocks(settings, ops)
    rate = pace(settings, ops, sizes)
    common = _common_job(settings, ops, sizes, rate)
    threads = settings.numjobs

    def of_thread(job: Job, thread: int) -> Job:
        return _thread_job(settings, job, ops, sizes, capacity=capacity_bytes, thread=thread)

    shifted = settings.offset_increment.bytes or settings.offset_increment.percent
    if threads > 1 and (shifted or not settings.group_reporting):
        jobs = tuple(
            of_thread(replace(common, name=f"{common.name}.{thread}"), thread)
            for thread in range(threads)
        )
    else:
        jobs = (_shared_job(of_thread(common, 0), threads),)
    _check_totals(jobs, settings)
    _add_general_notes(settings, ops)
    return jobs


def _check_totals(jobs: tuple[Job, ...], settings: Settings) -> None:
    name = settings.job_name
    for job in jobs:
        if max(job.volume_bytes or 0, job.ios or 0) > LARGEST:
            raise settings.error(
                "io_size number_ios loops numjobs",
                f"job {name} is too large: more than {LARGEST} bytes or I/Os",
            )
        if max(job.rate_iops or 0, job.rate_bytes_per_s or 0) > _RATE_MAX:
            raise settings.error(
                "rate_iops rate", f"job {name} is too fast: its threads exceed {_RATE_MAX} a second"
            )


def _common_job(settings: Settings, ops: Operations, sizes: Blocks, rate: Pace) -> Job:
    """Everything that the threads of a section have in common, for one thread."""
    job = Job(
        name=settings.job_name,
        pattern=ops.pattern,
        read_pct=ops.read_pct if rate.read_pct is None else rate.read_pct,
        trim_pct=ops.trim_pct,
        block_sizes=sizes.sizes,
        queue_depth=queue_depth(settings, ops),
        align_bytes=sizes.align_bytes,
        compressible_pct=compressible_pct(settings),
        duplicate_pct=float(settings.dedupe_percentage),
        stream=stream(settings, ops),
        rate_iops=rate.rate_iops,
        rate_bytes_per_s=rate.rate_bytes_per_s,
        arrival=rate.arrival,
        start_delay_ns=settings.startdelay * _US,
        flush_every_writes=flush_every_writes(settings, ops),
        dsync=dsync(settings, ops),
    )
    return with_pauses(job, settings)


def _thread_job(
    settings: Settings, common: Job, ops: Operations, sizes: Blocks, *, capacity: int, thread: int
) -> Job:
    whole = extent(settings, ops, sizes, capacity, thread)
    addresses, length = _addresses(settings, ops, whole.range_bytes)
    return replace(common, **{**vars(whole), "range_bytes": length}, addresses=addresses)


def _shared_job(job: Job, threads: int) -> Job:
    """The same load by several threads: rates, volumes and counts of a job are totals."""

    def total(value: Any) -> Any:
        return None if value is None else value * threads

    totals = ("rate_iops", "rate_bytes_per_s", "volume_bytes", "ios")
    return replace(job, threads=threads, **{name: total(getattr(job, name)) for name in totals})


def _addresses(settings: Settings, ops: Operations, length: int) -> tuple[Addresses, int]:
    """The distribution, and the range without what no zone covers."""
    chosen: Distribution = settings.random_distribution
    if ops.pattern == "sequential" or chosen.kind == "random":
        return Addresses(), length
    if chosen.kind == "zipf":
        return Addresses("zipf", theta=chosen.theta), length
    assert chosen.zones is not None
    splits = {chosen.zones.of(operation) for operation in ops.used}
    if len(splits) > 1:
        raise settings.error(
            "random_distribution",
            f"{' and '.join(ops.used)} with different zones in one job are not available",
            "use two jobs",
        )
    split = splits.pop()
    covered = sum(size for _, size in split)
    if chosen.absolute:
        if covered > length:
            raise settings.error(
                "random_distribution",
                f"zones of {covered} bytes exceed the range of {length}",
                "use a larger size",
            )
        length = covered
    elif covered < 100:
        length = length * covered // 100
        length -= length % SECTOR_BYTES
    zones = tuple(Zone(float(access), 100 * size / covered) for access, size in split)
    return Addresses("zoned", zones=zones), length


def _add_general_notes(settings: Settings, ops: Operations) -> None:
    kind = settings.random_distribution.kind
    if ops.pattern == "random" and kind == "random" and not settings.norandommap:
        settings.note(
            "blocks are drawn with repetition, as with norandommap; fio would write or read each"
            " once in a pass"
        )
    if kind == "zipf" and settings.random_distribution.centre is not None:
        settings.note("the centre of zipf is not kept: hot blocks are scattered over the range")
    if settings.given("direct") and not settings.direct:
        settings.note("direct=0: there is no page cache above a simulated drive")
    if settings.time_based and not settings.runtime:
        settings.note("time_based has no effect without runtime, as in fio")
    if not settings.randrepeat and not settings.given("randseed"):
        settings.note("randrepeat=0: runs still repeat; change randseed for another course")
    logs = [name for name in LOG_FILES if settings.given(name)]
    if logs:
        settings.note(f"{', '.join(logs)}: no log files are written")
    if settings.given("directory"):
        settings.note(f"directory={settings.directory}: replaced by the drive of the run")
