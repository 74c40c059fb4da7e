"""One section of a job file as jobs of the model.

A section with `numjobs` is one job of several threads where its threads do the same and are
reported together (`group_reporting`); otherwise each of its threads is a separate job, since fio
gives each thread its own range, end and result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from writecliff.workload.fiojob.addresses import add_notes_on_addresses, addresses
from writecliff.workload.fiojob.blocks import Blocks, Operations, blocks, operations
from writecliff.workload.fiojob.extent import extent
from writecliff.workload.fiojob.iolog import read_io_log
from writecliff.workload.fiojob.pace import Pace, pace, with_pauses
from writecliff.workload.fiojob.settings import Settings
from writecliff.workload.fiojob.steadiness import ends_by_result
from writecliff.workload.fiojob.target import (
    compressible_pct,
    drive_engine,
    dsync,
    flush_every_writes,
    queue_depth,
    streams,
)
from writecliff.workload.fiojob.values import LARGEST
from writecliff.workload.fiojob.zones import host_zones, resolve
from writecliff.workload.model import Job

_US = 1000
_RATE_MIN, _RATE_MAX = (
    1e-3,
    10**12,
)  # of the generator of the simulated drive, in bytes or I/Os a second


def section_jobs(settings: Settings, capacity_bytes: int) -> tuple[Job, ...]:
    """The jobs of one section; what differs from fio becomes notes of the settings.

    What is not available joins the problems of the settings, with file and line; there are no jobs
    then.
    """
    if settings.attempt(drive_engine, settings) is None:
        return ()
    _add_general_notes(settings)
    if not settings.attempt(resolve, settings):
        return ()
    if settings.read_iolog is not None:
        return settings.attempt(_log_jobs, settings, capacity_bytes) or ()
    before = len(settings.problems)
    if (ops := settings.attempt(operations, settings)) is None:
        return ()
    sizes = settings.attempt(blocks, settings, ops)
    rate = None if sizes is None else settings.attempt(pace, settings, ops, sizes)
    host = _host_fields(settings, ops)
    if sizes is not None:
        host["host_zones"] = settings.attempt(host_zones, settings, ops, sizes, capacity_bytes)
    if sizes is None or rate is None or len(settings.problems) > before:
        return ()
    common = with_pauses(_common_job(settings, ops, sizes, rate, host), settings)
    jobs = _jobs_of_threads(settings, common, ops, sizes, capacity_bytes)
    _check_totals(jobs, settings)
    add_notes_on_addresses(settings, ops, sizes)
    return jobs


def _jobs_of_threads(
    settings: Settings, common: Job, ops: Operations, sizes: Blocks, capacity_bytes: int
) -> tuple[Job, ...]:
    threads = settings.numjobs

    def of_thread(job: Job, thread: int) -> Job:
        return _thread_job(settings, job, ops, sizes, capacity=capacity_bytes, thread=thread)

    shifted = settings.offset_increment.bytes or settings.offset_increment.percent
    # Threads of several sizes end at different times, as their sizes are drawn.
    if threads > 1 and (shifted or not settings.group_reporting or sizes.is_mix):
        return tuple(
            of_thread(replace(common, name=f"{common.name}.{thread}"), thread)
            for thread in range(threads)
        )
    return (_shared_job(of_thread(common, 0), threads),)


def _host_fields(settings: Settings, ops: Operations) -> dict[str, Any]:
    """The fields of a job that depend on nothing but its options; None for those with a problem."""
    readers: dict[str, Callable[[Settings, Operations], Any]] = {
        "queue_depth": queue_depth,
        "streams": streams,
        "flush_every_writes": flush_every_writes,
        "dsync": dsync,
        "ends": lambda settings, ops: ends_by_result(settings, ops.used),
    }
    found = {name: settings.attempt(read, settings, ops) for name, read in readers.items()}
    chosen = found.pop("streams") or (0,)
    several = len(chosen) > 1
    return (
        found
        | (found.pop("ends") or {})
        | {
            "name": settings.job_name,
            "stream": 0 if several else chosen[0],
            "streams": chosen if several else (),
            "stream_order": "random" if settings.plid_select == "random" else "in_turn",
            "compressible_pct": compressible_pct(settings),
            "duplicate_pct": float(settings.dedupe_percentage),
            "start_delay_ns": settings.startdelay * _US,
            "ramp_ns": settings.ramp_time * _US,
        }
    )


def _log_jobs(settings: Settings, capacity_bytes: int) -> tuple[Job, ...]:
    """The jobs of a log, one for each thread."""
    log = read_io_log(settings)
    end = max(map(sum, zip(log.offsets, log.lengths, strict=True)))
    if end > capacity_bytes:
        raise settings.error(
            "read_iolog",
            f"{settings.read_iolog} reaches to byte {end}, the drive has {capacity_bytes} bytes",
            "use a larger drive, or replay_scale",
        )
    before = len(settings.problems)
    host = _host_fields(settings, Operations("sequential", ("read", "write"), 50.0, 0.0))
    if len(settings.problems) > before:
        return ()
    duration_ns = settings.runtime * _US or None
    job = Job(
        **host,
        log=log,
        duration_ns=duration_ns,
        ios=None if settings.time_based and duration_ns else log.ios * max(1, settings.loops),
    )
    names = [job.name]
    if settings.numjobs > 1:
        names = [f"{job.name}.{thread}" for thread in range(settings.numjobs)]
    return tuple(replace(job, name=name) for name in names)


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
        if min(job.rate_iops or 1, job.rate_bytes_per_s or 1) < _RATE_MIN:
            raise settings.error(
                "rate_iops rate", f"job {name} is too slow: less than {_RATE_MIN} I/Os a second"
            )


def _common_job(
    settings: Settings, ops: Operations, sizes: Blocks, rate: Pace, host: dict[str, Any]
) -> Job:
    """Everything that the threads of a section have in common, for one thread."""
    in_turn = not settings.file_service_type.startswith("sequential")
    return Job(
        **host,
        pattern=ops.pattern,
        read_pct=ops.read_pct,
        trim_pct=ops.trim_pct,
        trim_first=ops.trim_first,
        run_ios=ops.run_ios,
        hole_bytes=ops.hole_bytes,
        hole_after_bytes=ops.hole_after_bytes,
        one_position=ops.one_position,
        sequential_read_pct=ops.sequential_read_pct,
        sequential_write_pct=ops.sequential_write_pct,
        files=settings.nrfiles if ops.pattern == "sequential" and in_turn else 1,
        block_sizes=sizes.common.block_sizes,
        align_bytes=sizes.common.align_bytes,
        writes=sizes.writes,
        rate_iops=rate.rate_iops,
        rate_bytes_per_s=rate.rate_bytes_per_s,
        rate_read_pct=rate.rate_read_pct,
        arrival=rate.arrival,
        rate_ignores_think=rate.ignores_think,
        flow_weight=settings.flow,
        flow_group=settings.flow_id if settings.flow else 0,
    )


def _thread_job(
    settings: Settings, common: Job, ops: Operations, sizes: Blocks, *, capacity: int, thread: int
) -> Job:
    whole = extent(settings, ops, sizes, capacity, thread)
    spread, length = addresses(settings, ops, sizes, whole.range_bytes)
    return replace(common, **{**vars(whole), "range_bytes": length}, addresses=spread)


def _shared_job(job: Job, threads: int) -> Job:
    """The same load by several threads: rates, volumes and counts of a job are totals."""

    def total(value: Any) -> Any:
        return None if value is None else value * threads

    totals = ("rate_iops", "rate_bytes_per_s", "volume_bytes", "ios")
    least = (
        replace(one, iops=total(one.iops), bytes_per_s=total(one.bytes_per_s))
        for one in job.least_rates
    )
    return replace(
        job,
        threads=threads,
        least_rates=tuple(least),
        **{name: total(getattr(job, name)) for name in totals},
    )


def _add_general_notes(settings: Settings) -> None:
    if settings.given("direct") and not settings.direct:
        settings.note("direct=0: there is no page cache above a simulated drive")
    if settings.time_based and not settings.runtime:
        settings.note("time_based has no effect without runtime, as in fio")
    if not settings.randrepeat and not settings.given("randseed"):
        settings.note("randrepeat=0: runs still repeat; change randseed for another course")
    if settings.given("directory"):
        settings.note(f"directory={settings.directory}: replaced by the drive of the run")
