"""Conversion of a job file section to jobs of the model.

A section with `numjobs` becomes a single job with several threads if the threads are equal and
reported together (`group_reporting`). Otherwise each thread becomes a separate job, because fio
gives each thread its own range, end condition and result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from writecliff.workload.fiojob.blocks import (
    SECTOR_BYTES,
    Blocks,
    Operations,
    blocks,
    operations,
    pick,
)
from writecliff.workload.fiojob.iolog import read_io_log
from writecliff.workload.fiojob.settings import Settings
from writecliff.workload.fiojob.splits import Distribution
from writecliff.workload.fiojob.steadiness import ends_by_result
from writecliff.workload.fiojob.target import (
    compressible_pct,
    drive_engine,
    dsync,
    flush_every_writes,
    queue_depth,
    streams,
)
from writecliff.workload.fiojob.values import LARGEST, Size
from writecliff.workload.fiojob.zones import host_zones, resolve, whole_zones
from writecliff.workload.model import Addresses, Arrival, Job, Zone

_US = 1000
_RATE_MIN, _RATE_MAX = (
    1e-3,
    10**12,
)  # Maximum of the simulated drive's load generator, in bytes or I/Os per second.


def section_jobs(settings: Settings, capacity_bytes: int) -> tuple[Job, ...]:
    """Return a section's jobs, adding differences from fio to the notes of the settings.

    Unsupported features are added to the settings' problems with file and line, and the result is
    then empty.
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
    # Threads with several block sizes finish at different times, because their sizes are random.
    if threads > 1 and (shifted or not settings.group_reporting or sizes.is_mix):
        return tuple(
            of_thread(replace(common, name=f"{common.name}.{thread}"), thread)
            for thread in range(threads)
        )
    return (_shared_job(of_thread(common, 0), threads),)


def _host_fields(settings: Settings, ops: Operations) -> dict[str, Any]:
    """Return the job fields that depend only on the options, or `None` for invalid options."""
    readers: dict[str, Callable[[Settings, Operations], Any]] = {
        "queue_depth": queue_depth,
        "streams": streams,
        "flush_every_writes": flush_every_writes,
        "dsync": dsync,
        "ends": lambda settings, ops: ends_by_result(settings, ops.used),
    }
    host = {name: settings.attempt(read, settings, ops) for name, read in readers.items()}
    chosen = host.pop("streams") or (0,)
    several = len(chosen) > 1
    return (
        host
        | (host.pop("ends") or {})
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
    """Return the jobs that replay a log, with one job per thread."""
    log = read_io_log(settings)
    end = max(map(sum, zip(log.offsets, log.lengths, strict=True)))
    if end > capacity_bytes:
        raise settings.error(
            "read_iolog",
            f"{settings.read_iolog} extends to byte {end}, but the drive has {capacity_bytes} "
            f"bytes",
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
                f"job {name} is too large: it exceeds {LARGEST} bytes or I/Os",
            )
        if max(job.rate_iops or 0, job.rate_bytes_per_s or 0) > _RATE_MAX:
            raise settings.error(
                "rate_iops rate",
                f"job {name} is too fast: its threads exceed {_RATE_MAX} per second",
            )
        if min(job.rate_iops or 1, job.rate_bytes_per_s or 1) < _RATE_MIN:
            raise settings.error(
                "rate_iops rate",
                f"job {name} is too slow: it issues less than {_RATE_MIN} I/Os per second",
            )


def _common_job(
    settings: Settings, ops: Operations, sizes: Blocks, rate: Pace, host: dict[str, Any]
) -> Job:
    """Return a job with the fields shared by a section's threads."""
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
    """Return the job for several threads, with rates, volumes and counts as totals."""

    def total(value: Any) -> Any:
        return None if value is None else value * threads

    totals = ("rate_iops", "rate_bytes_per_s", "volume_bytes", "ios")
    least = (
        replace(rate, iops=total(rate.iops), bytes_per_s=total(rate.bytes_per_s))
        for rate in job.least_rates
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
        settings.note(
            "randrepeat=0: runs are still repeatable; change randseed for another sequence"
        )
    if settings.given("directory"):
        settings.note(f"directory={settings.directory}: replaced by the drive of the run")


# -- addresses -------------------------------------------------------------------------------------

# Address distribution of a job: `random_distribution` and `sprandom`.


def addresses(
    settings: Settings, ops: Operations, blocks: Blocks, length: int
) -> tuple[Addresses, int]:
    """Return the distribution, and the part of the range covered by zones."""
    if settings.sprandom:
        return _sprandom(settings, ops), length
    if _has_map(settings, ops, blocks):
        return Addresses("once"), length
    chosen: Distribution = settings.random_distribution
    if ops.pattern == "sequential" or chosen.kind == "random":
        return Addresses(), length
    if chosen.kind == "zipf":
        return Addresses("zipf", theta=chosen.parameter, generator="fio"), length
    if chosen.kind == "pareto":
        return Addresses("pareto", hot_pct=100 * (chosen.parameter or 0)), length
    if chosen.kind == "normal":
        return Addresses("normal", deviation_pct=_deviation_pct(chosen.parameter or 0)), length
    if chosen.kind == "sequence":
        stride = settings.random_sequence_stride
        return Addresses("sequence", blocks=chosen.blocks, advancing=stride), length
    assert chosen.zones is not None
    splits = {chosen.zones.of(operation) for operation in ops.used}
    if len(splits) > 1:
        raise settings.error(
            "random_distribution",
            f"a job cannot use different zones for {' and '.join(ops.used)}",
            "use a separate job for each operation",
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


def _has_map(settings: Settings, ops: Operations, blocks: Blocks) -> bool:
    """Return `True` if the job requires fio's random map, which splits I/Os with several sizes.

    I/Os of a single size have the same number and length without the map.
    """
    return (
        ops.pattern == "random"
        and settings.random_distribution.kind == "random"
        and not settings.norandommap
        and settings.zonemode != "zbd"
        and not settings.given("blockalign")
        and blocks.is_mix
        and blocks.writes is None
        and ops.run_ios == 1
        and not ops.sequential_read_pct
        and not ops.sequential_write_pct
    )


def _deviation_pct(spread_pct: float) -> float:
    """Return the standard deviation of fio's normal distribution, in percent of the range.

    fio adds a uniform random number with this spread to the mean of twelve numbers over the whole
    range, whose deviation is a twelfth of the range (lib/gauss.c).
    """
    return math.sqrt((100 / 12) ** 2 + spread_pct**2 / 12)


def _sprandom(settings: Settings, ops: Operations) -> Addresses:
    """Return the addresses for sprandom, with one thread of single-unit random writes."""
    if (ops.pattern, ops.used, settings.numjobs) != ("random", ("write",), 1):
        raise settings.error(
            "sprandom",
            "sprandom requires rw=randwrite and numjobs=1",
            "set rw=randwrite and numjobs=1",
        )
    share = settings.spr_op
    if len(share) != 1 or not 0 < share[0] < 1:
        raise settings.error(
            "spr_op",
            "spr_op must be above 0 and below 1",
            "specify a fraction, for example spr_op=0.15",
        )
    return Addresses("sprandom", spare_pct=100 * share[0], regions=settings.spr_num_regions)


def add_notes_on_addresses(settings: Settings, ops: Operations, blocks: Blocks) -> None:
    """Add notes about addresses that differ from fio's addresses."""
    if settings.sprandom:
        if settings.spr_cs:
            settings.note("spr_cs: repeated writes are not delayed by a region")
        return
    chosen = settings.random_distribution
    repeats = chosen.kind == "random" and not settings.norandommap and settings.zonemode != "zbd"
    if ops.pattern == "random" and repeats and not _has_map(settings, ops, blocks):
        of_fio = "fio would write or read each once in a pass"
        if blocks.writes is not None:
            of_fio = "fio's map mixes the block sizes of reads and writes up and ends passes early"
        settings.note(f"blocks may repeat within a pass, as with norandommap; {of_fio}")
    if ops.pattern == "random" and chosen.centre is not None:
        settings.note(
            f"the centre of {chosen.kind} is not preserved: hot blocks are scattered over the range"
        )
    if settings.nrfiles > 1 and ops.pattern == "sequential":
        kind = settings.file_service_type.partition(":")
        if (kind[0], kind[2]) not in (("roundrobin", ""), ("roundrobin", "1"), ("sequential", "")):
            settings.note(f"file_service_type={settings.file_service_type}: files take turns")
    if ops.trim_first:
        settings.note("trims are queued like writes, whereas fio waits for each trim")


# -- extent ----------------------------------------------------------------------------------------

# Range and end condition of a job's thread: size, offset, loops and runtime.
#
# Based on fio 3.33: filesetup.c (`get_start_offset`, `setup_files`), backend.c
# (`io_bytes_exceeded`, `keep_running`). The drive replaces fio's file, so a job that would extend a
# file is rejected.


@dataclass(frozen=True)
class Extent:
    """Range and end conditions of a thread, of which at least one end condition is given."""

    offset_bytes: int
    range_bytes: int
    duration_ns: int | None
    volume_bytes: int | None
    ios: int | None


def offset(settings: Settings, blocks: Blocks, capacity: int, thread: int) -> int:
    """Return the start of a thread's range, rounding percentages up to whole blocks."""
    increment = _bytes(settings.offset_increment, capacity)
    start: Size = settings.offset
    value = _bytes(start, capacity) + thread * increment
    if start.percent or settings.offset_increment.percent:
        align = settings.offset_align or blocks.unit
        value = -(-value // align) * align
    return value


def _bytes(size: Size, capacity: int) -> int:
    return size.bytes if size.percent is None else int(capacity * size.percent // 100)


def extent(
    settings: Settings, ops: Operations, blocks: Blocks, capacity: int, thread: int
) -> Extent:
    """Return a thread's range and end; raise ConfigError if the range is empty or too large."""
    start = offset(settings, blocks, capacity, thread)
    if start >= capacity:
        raise settings.error(
            "offset offset_increment",
            f"thread {thread} starts at {start}, beyond the drive's {capacity} bytes",
            "use a smaller offset or offset_increment",
        )
    if start % SECTOR_BYTES:
        raise settings.error(
            "offset offset_increment",
            f"offset {start} is not a multiple of the drive's sector size of {SECTOR_BYTES}",
            "use a multiple of 512",
        )
    length, one_pass = _sizes(settings, ops, blocks, capacity, start)
    if settings.zonemode == "zbd":
        start, length, one_pass = whole_zones(settings, ops, blocks, start, length)
        whole = length
    else:
        whole = _whole(ops, blocks, length, capacity - start)
    if length < blocks.largest or one_pass < blocks.unit:
        raise settings.error(
            "size filesize",
            f"{min(length, one_pass)} bytes are less than one block of {blocks.largest} bytes",
            "use a larger size or a smaller bs",
        )
    if whole // settings.nrfiles < blocks.largest:
        raise settings.error(
            "nrfiles",
            f"{whole} bytes in {settings.nrfiles} files are less than a block of"
            f" {blocks.largest} each",
            "use fewer files or a larger size",
        )
    duration_us = settings.runtime
    if settings.time_based and duration_us:
        return Extent(start, whole, duration_us * _US, None, None)
    volume = _volume(settings, ops, blocks, one_pass=one_pass, length=length, whole=whole)
    ios = settings.number_ios * max(1, settings.loops) or None
    return Extent(start, whole, duration_us * _US if duration_us else None, volume, ios)


def _sizes(
    settings: Settings, ops: Operations, blocks: Blocks, capacity: int, start: int
) -> tuple[int, int]:
    """Return (range length, bytes per pass) for a thread."""
    size: Size | None = settings.size
    length = size.bytes if size is not None and size.percent is None else 0
    if settings.filesize is not None:
        low, high = settings.filesize
        if low != high:
            raise settings.error(
                "size filesize offset",
                "filesize: random file sizes are not supported",
                f"filesize={high}",
            )
        low *= settings.nrfiles
        if low <= start:
            raise settings.error(
                "size filesize offset",
                f"offset {start} is beyond filesize {low}",
                "use a larger filesize",
            )
        asked, length = length, low - start
        one_pass = min(asked, length) or length
    else:
        _check_fill(settings, ops)
        length = length or capacity - start
        one_pass = length
    if start + length > capacity:
        raise settings.error(
            "size filesize offset",
            f"{length} bytes from offset {start} are more than the drive's {capacity} bytes",
            "use size=100% for all of the drive, or a larger drive",
        )
    if size is not None and size.percent is not None and size.percent != 100:
        length = min(int((start + length) * size.percent // 100), length)
        length -= length % blocks.unit
        one_pass = length
    return length, one_pass


def _check_fill(settings: Settings, ops: Operations) -> None:
    if settings.fill_device and (ops.pattern, ops.used) != ("sequential", ("write",)):
        raise settings.error(
            "fill_device",
            "fill_device requires sequential writes",
            "use rw=write, or size=100%",
        )


def _whole(ops: Operations, blocks: Blocks, length: int, room: int) -> int:
    """Return the range used by fio; sequential I/O completes its last block if it fits."""
    if len(blocks.sizes) > 1 or (ops.pattern == "random" and blocks.is_aligned):
        return length - length % SECTOR_BYTES
    block = blocks.sizes[0].bytes
    up = -(-length // block) * block
    return up if ops.pattern == "sequential" and up <= room else length - length % block


def _volume(
    settings: Settings, ops: Operations, blocks: Blocks, *, one_pass: int, length: int, whole: int
) -> int:
    """Return the total bytes of all passes in whole blocks, as fio issues I/Os until the limit.

    fio makes `loops` passes, continues while the total is below `io_size`, and stops at `io_size *
    loops`.
    """
    loops = max(1, settings.loops)
    io_size: Size | None = settings.io_size
    limit = one_pass
    if io_size is not None and io_size.percent is not None:
        limit = min(one_pass, int(length * io_size.percent // 100) or length)
    elif io_size is not None and io_size.bytes:
        limit = io_size.bytes
    if settings.sprandom:  # The range must be as large as the drive's flash.
        return one_pass + math.ceil(one_pass * settings.spr_op[0]) // blocks.unit * blocks.unit
    total = limit * loops
    if not _endless(settings, ops):
        if limit <= length:
            total = min(total, whole * loops)
        else:
            total = min(total, max(whole * loops, limit))
    if ops.trim_first:
        total *= 2  # Each block is trimmed and written.
    if len(blocks.sizes) > 1:
        return total
    block = blocks.sizes[0].bytes
    return -(-total // block) * block


def _endless(settings: Settings, ops: Operations) -> bool:
    """Return `True` if a fio pass never ends, as for random I/O without a random map."""
    return ops.pattern == "random" and (
        settings.norandommap
        or settings.random_distribution.kind != "random"
        or settings.given("blockalign")
    )


# -- pace ------------------------------------------------------------------------------------------

# Arrival rate of a job: the rates of its threads and operations, and its pauses.
#
# fio paces every thread and every operation separately (init.c `__setup_rate`, backend.c
# `usec_for_io`, io_u.c `rate_ddir`). If both reads and writes have rates, these rates determine the
# mix, and rwmixread is ignored.


@dataclass(frozen=True)
class Pace:
    """Rate limits of a single thread."""

    rate_iops: float | None = None
    rate_bytes_per_s: float | None = None
    arrival: Arrival = "linear"
    rate_read_pct: float | None = None  # Percentage of reads; `None` for a single operation.
    ignores_think: bool = False


def pace(settings: Settings, ops: Operations, blocks: Blocks) -> Pace:
    """Return a thread's rate; raise ConfigError if only one of two operations is limited."""
    by_bytes = pick(settings.rate, ops.used)
    by_ios = pick(settings.rate_iops, ops.used)
    if any(settings.rate.items()) and any(settings.rate_iops.items()):
        raise settings.error(
            "rate_iops",
            "rate and rate_iops are mutually exclusive",
            "remove one of the two options",
        )
    option, rates = ("rate_iops", by_ios) if any(by_ios) else ("rate", by_bytes)
    if not any(rates):
        return Pace()
    if not all(rates):
        raise settings.error(
            option,
            f"{option}: a limit must apply to both {' and '.join(ops.used)}",
            "limit both operations, or use a separate job for each",
        )
    if settings.flow:
        raise settings.error(
            "flow",
            "flow cannot be combined with rates, which already determine each job's portion",
            "remove either flow or the rates",
        )
    arrival: Arrival = settings.rate_process
    is_mix = ops.used == ("read", "write")
    if is_mix:
        _note_shares(settings, ops, blocks, option, rates)
    in_ios = option == "rate_iops"
    amounts = [float(rate) for rate in rates]
    if not in_ios and arrival == "poisson":
        # fio draws gaps for I/Os of the smallest size, regardless of the actual size.
        amounts = [rate / _smallest(blocks, op) for rate, op in zip(rates, ops.used, strict=False)]
        in_ios = True
    elif in_ios and blocks.is_mix and arrival == "linear":
        settings.note("rate_iops counts I/Os of the smallest block size, as in fio")
        amounts = [
            float(rate * _smallest(blocks, op)) for rate, op in zip(rates, ops.used, strict=False)
        ]
        in_ios = False
    total = sum(amounts)
    return Pace(
        total if in_ios else None,
        None if in_ios else total,
        arrival,
        rate_read_pct=100 * amounts[0] / total if is_mix else None,
        ignores_think=bool(settings.thinktime and settings.rate_ignore_thinktime),
    )


def _note_shares(
    settings: Settings, ops: Operations, blocks: Blocks, option: str, rates: list[int]
) -> None:
    """Add a note if the read and write rates result in a mix that differs from rwmixread."""
    ios = [
        rate / blocks.mean(op) if option == "rate" else rate
        for rate, op in zip(rates, ops.used, strict=True)
    ]
    read_pct = 100 * ios[0] / sum(ios)
    if abs(read_pct - ops.read_pct) > 0.5:
        settings.note(
            f"{option} makes {read_pct:.3g} % reads; rwmixread={ops.read_pct:g} decides only"
            " while both are behind their rates, as in fio"
        )


def _smallest(blocks: Blocks, operation: str) -> int:
    mix = blocks.by_operation.get(operation, blocks.common)
    return min(size.bytes for size in mix.block_sizes)


def with_pauses(job: Job, settings: Settings) -> Job:
    """Add pauses to a thread's job, after a number of I/Os or after a time spent on I/O.

    Raises:
        ConfigError: A `Job` cannot combine a pause after a time spent on I/O with the other pause
            option.
    """
    pause_ns, burst_ns = settings.thinktime * _US, settings.thinktime_iotime * _US
    if not pause_ns or not burst_ns:
        return replace(job, think_ns=pause_ns, think_after_ios=settings.thinktime_blocks)
    for other in ("thinktime_blocks", "rate", "rate_iops"):
        if settings.given(other):
            message = f"thinktime_iotime and {other} are mutually exclusive"
            raise settings.error("thinktime_iotime", message, "remove one of the two options")
    return replace(job, burst_ns=burst_ns, pause_ns=pause_ns)
