"""Translation of a workload to a fio job file, which has one section per job, in job order.

Features that fio cannot reproduce raise an `EngineError`. Small differences are listed in
`FioPlan.warnings`, and therefore also in the results.

The code relies on the following fio properties (HOWTO and source of fio 3.33). Percentages in mixes
and zones are whole numbers. `rate_iops` and `fsync` apply per thread, and a rate also applies per
direction. fio stores I/O rates as byte rates, based on the smallest block. If `io_size` exceeds
`size`, fio restarts at the beginning of the range. Trims are ioctls, which each thread issues one
at a time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from writecliff.engines.fio.capability import DSYNC_SINCE, DataPlacement, Fio
from writecliff.engines.fio.rates import add_ends, add_rates
from writecliff.engines.fio.section import Section, refuse
from writecliff.workload.model import KIB, BlockSize, Workload, Zone

Option = tuple[str, str]

_STREAMS_SHOWN = {
    "fdp": "placement handles 0 to ",
    "streams": "streams up to ",
    "hint": "write streams by hints up to ",
}
# Report names of the methods that pass streams to the drive.
_STREAM_NOTES = {
    "fdp": "streams are placement handles of the drive, by NVMe passthrough on {node}",
    "streams": "streams are those of the drive's Streams directive, by NVMe passthrough on {node}",
    "hint": "streams are write hints, which the kernel passes on to the drive as its streams",
}
_PERCENTILES = "50:99:99.9:99.99:99.999"


@dataclass(frozen=True)
class Target:
    """Properties of the block device or file that the jobs access."""

    filename: str
    capacity_bytes: int
    sector_bytes: int
    is_file: bool
    # Placement method, or the reason why writes cannot be placed.
    data_placement: DataPlacement | str
    # `True` if the drive link is faster than the data generation in a fio thread.
    fast: bool = False


@dataclass(frozen=True)
class FioPlan:
    """A job file, and the differences between the job file and the workload."""

    text: str
    warnings: tuple[str, ...]
    writes: bool  # `True` if the jobs change the target's data.
    counted: bool  # `True` if the I/Os pass through the block layer, which counts them.


def plan(workload: Workload, target: Target, fio: Fio) -> FioPlan:
    """Translate a workload to a job file, excluding its pauses (see `bursts`).

    Raises:
        EngineError: If fio cannot run the workload.
    """
    if not workload.jobs:
        refuse(workload.name, "the workload has no jobs")
    warnings: list[str] = []
    placement = _data_placement(workload, target)
    hints = placement is not None and placement.kind == "hint"
    passthrough = None if hints else placement
    if placement is not None:
        warnings.append(_STREAM_NOTES[placement.kind].format(node=placement.generic_device))
    options = _global_options(workload, target, fio, passthrough)
    if hints:  # Each job has its own node. fio would add a global file name to it.
        options = [option for option in options if option[0] != "filename"]
    lines = ["[global]", *_render(options)]
    for index, job in enumerate(workload.jobs):
        section = Section(job, warnings)
        raise_to_sectors(section, target.sector_bytes)
        add_job(section, target, fio)
        if placement is not None:
            _add_data_placement(section, placement)
        lines += ["", f"[{section_name(index, job.name)}]", *_render(section.options)]
    writes = any(job.read_pct < 100 for job in workload.jobs)
    text = "\n".join(lines) + "\n"
    return FioPlan(text, tuple(dict.fromkeys(warnings)), writes, passthrough is None)


def section_name(index: int, name: str) -> str:
    """Return a unique section name that contains no special words or characters of fio."""
    return f"{index}-{re.sub(r'[^A-Za-z0-9_.-]+', '-', name)}"


def _render(options: list[Option]) -> Iterator[str]:
    for key, value in options:
        yield f"{key}={value}" if value else key


def _global_options(
    workload: Workload, target: Target, fio: Fio, passthrough: DataPlacement | None
) -> list[Option]:
    filename = passthrough.generic_device if passthrough else target.filename
    engine = (
        [("ioengine", "io_uring_cmd"), ("cmd_type", "nvme")]
        if passthrough
        else [("ioengine", fio.ioengine), ("direct", "1")]
    )
    return [
        ("filename", _escaped(filename)),
        *engine,
        ("allow_file_create", "0"),  # fio must not create a file in place of a vanished node.
        ("thread", ""),
        ("group_reporting", ""),
        ("exitall_on_error", ""),
        ("random_generator", "tausworthe64"),
        ("randrepeat", "0"),
        ("randseed", str(workload.seed)),
        # Report the histogram of total latency, which covers submission to completion.
        ("lat_percentiles", "1"),
        ("clat_percentiles", "0"),
        ("slat_percentiles", "0"),
        ("percentile_list", _PERCENTILES),
    ]


def _escaped(path: str) -> str:
    """Escape colons, which separate names in fio, and reject characters special to job files."""
    if re.search(r"[$`;#\\\n\r]", path) or path != path.strip():
        refuse(
            path,
            "the path contains characters that fio's job files do not allow",
            "rename the file",
        )
    return path.replace(":", "\\:")


def _add_data_placement(section: Section, placement: DataPlacement) -> None:
    """Add a job's streams, or the device node that selects the stream's hint."""
    if placement.kind != "hint":
        add_streams(section, placement.kind)
    elif section.job.streams:
        section.refuse(
            "a write hint applies to all writes of a job", "use a separate job for each stream"
        )
    else:
        section.add("filename", _escaped(placement.nodes[section.job.stream]))


def _data_placement(workload: Workload, target: Target) -> DataPlacement | None:
    """Return the placement method of a job's streams, and reject streams that the drive lacks."""
    asked = {stream for job in workload.jobs for stream in (*job.streams, job.stream)}
    streams = sorted(asked - {0})
    if not streams:
        return None
    placement = target.data_placement
    if isinstance(placement, str):
        named = ", ".join(map(str, streams))
        refuse(
            workload.name,
            f"cannot direct writes to stream {named}: {placement}",
            "set stream = 0 to run the job without streams; `writecliff device probe` tests the "
            "drive",
        )
    if streams[-1] >= placement.handles:
        refuse(
            workload.name,
            f"stream {streams[-1]} does not exist: the drive has {_STREAMS_SHOWN[placement.kind]}"
            f"{placement.handles - 1}",
            f"use a stream from 1 to {placement.handles - 1}",
        )
    return placement


def add_job(section: Section, target: Target, fio: Fio) -> None:
    """Add all options of a job except its data placement."""
    _check_counts(section, target)
    zones = place_segments(section, target.capacity_bytes)
    job = section.job
    refuse_what_only_simulation_has(section)
    trims = job.trim_pct > 0 or job.trim_first
    if trims and target.is_file:
        section.refuse("fio cannot trim regular files", "run the trims on a block device")
    if trims and job.queue_depth > 1:
        section.warn(f"each fio thread issues one trim at a time, not {job.queue_depth}")
    section.add("new_group")
    add_direction(section)
    add_block_sizes(section)
    section.add("numjobs", job.threads)
    section.add("iodepth", job.queue_depth)
    add_addresses(section, target.capacity_bytes, target.sector_bytes)
    add_segments(section, zones)
    if job.trim_pct == 0 and job.read_pct < 100:
        add_data(section, fast=target.fast)
    add_rates(section)
    _add_flushes(section, fio)
    add_ends(section)


def _add_flushes(section: Section, fio: Fio) -> None:
    job = section.job
    if job.dsync and job.read_pct + job.trim_pct < 100:
        if fio.version >= DSYNC_SINCE:
            section.add("sync", "dsync")
        else:
            section.add("fdatasync", 1)
            section.warn(
                f"{fio.version_text} cannot open files with O_DSYNC, so a flush follows each "
                f"write instead"
            )
    if job.flush_every_writes:
        section.add("fsync", job.flush_every_writes)


def _check_counts(section: Section, target: Target) -> None:
    job = section.job
    if job.threads < 1 or job.queue_depth < 1:
        section.refuse(
            f"the thread count ({job.threads}) and the queue depth ({job.queue_depth}) must "
            f"each be at least 1"
        )
    if not job.block_sizes:
        section.refuse("the job has no block size")
    for size in job.all_block_sizes:
        if size.bytes <= 0 or size.bytes % target.sector_bytes:
            section.refuse(
                f"the block size of {size.bytes} bytes is not a multiple of the target's "
                f"{target.sector_bytes}-byte sectors",
                f"use a multiple of {target.sector_bytes} bytes",
            )


# -- direction, sizes and streams ------------------------------------------------------------------


_LISTED = ("read", "write", "trim")  # Order of the values in fio's lists.


def refuse_what_only_simulation_has(section: Section) -> None:
    """Reject job features that only simulated drives support."""
    job = section.job
    for name, given, instead in (
        ("host_zones", job.host_zones, "fio itself, with zonemode=zbd"),
        ("log", job.log, "fio itself, which can replay the log"),
        (
            "model",
            job.model,
            "the fio job file that `writecliff trace synthesise` writes",
        ),
        ("files", job.files > 1, "one job for each part of the range"),
        ("one_position", job.one_position, "a job for each operation"),
        ("start_bytes", job.start_bytes or job.write_start_bytes, "an offset"),
        ("until_steady", job.until_steady, "a duration, or `writecliff test`"),
        ("latency_target", job.latency_target, "a sweep over queue depths"),
        ("least_rates", job.least_rates, "a duration, and compare the rates after the run"),
    ):
        if given:
            section.refuse(f"{name} is supported only on simulated drives", f"use {instead}")


def add_direction(section: Section) -> None:
    """Add `rw`, where a colon precedes the I/O count of a run or the size of a hole."""
    job = section.job
    modifier = ""
    if job.run_ios > 1:
        modifier = f":{job.run_ios}"
    elif job.hole_bytes and not job.hole_after_bytes:
        modifier = f":{job.hole_bytes}"
    section.add("rw", _direction(section) + modifier)
    if job.sequential_read_pct or job.sequential_write_pct:
        shares = (job.sequential_read_pct, job.sequential_write_pct)
        section.add("percentage_random", ",".join(_random_percent(section, pct) for pct in shares))
    if job.hole_after_bytes:
        section.add("zonemode", "strided")
        section.add("zonesize", job.hole_after_bytes)
        section.add("zoneskip", job.hole_bytes)
    if job.trim_pct == 0 and 0 < job.read_pct < 100:
        section.add("rwmixread", section.whole_percent("read_pct", job.read_pct))
        if job.pattern == "sequential":
            section.warn("in fio, reads and writes follow separate sequences")


def _random_percent(section: Section, sequential_pct: float) -> str:
    """Return the random percentage of an operation's I/Os, as a whole number for fio."""
    nearest = round(sequential_pct)
    if abs(nearest - sequential_pct) > 1e-6:
        section.warn(
            f"fio accepts whole percentages only: {nearest} % of an operation's I/Os are "
            f"sequential, not {sequential_pct:.4g} %"
        )
    return str(100 - nearest)


def _direction(section: Section) -> str:
    job = section.job
    prefix = "rand" if job.pattern == "random" else ""
    if job.trim_first:
        return f"{prefix}trimwrite"
    if job.trim_pct == 100 and job.read_pct == 0:
        return f"{prefix}trim"
    if job.trim_pct != 0:
        section.refuse(
            f"trim_pct {job.trim_pct:g}: fio cannot mix trims with reads and writes in one job",
            "put the trims into a separate job (trim_pct 100)",
        )
    return prefix + ("rw" if 0 < job.read_pct < 100 else "read" if job.read_pct else "write")


def add_block_sizes(section: Section) -> None:
    """Add `bs`, or `bssplit` for a mix, with a list of values if operations differ."""
    job = section.job
    listed = [job.block_sizes_of(operation) for operation in _LISTED]
    single = all(len(sizes) == 1 for sizes in listed)
    parts = [str(sizes[0].bytes) if single else _split(section, sizes) for sizes in listed]
    same = len(set(parts)) == 1
    section.add("bs" if single else "bssplit", parts[0] if same else ",".join(parts))


def _split(section: Section, sizes: tuple[BlockSize, ...]) -> str:
    total = sum(size.weight for size in sizes)
    if total <= 0 or any(size.weight < 0 for size in sizes):
        section.refuse("the block size weights must be positive")
    shares = (
        f"{size.bytes}/"
        f"{section.whole_percent(f'share of block size {size.bytes}', 100 * size.weight / total)}"
        for size in sizes
        if size.weight
    )
    return ":".join(shares)


def add_streams(section: Section, kind: str) -> None:
    """Add the write streams, if the job has any."""
    job = section.job
    if streams := job.streams or ((job.stream,) if job.stream else ()):
        section.add("dataplacement", kind)
        section.add("plids", ",".join(map(str, streams)))
    if len(streams) > 1:
        section.add("plid_select", "random" if job.stream_order == "random" else "roundrobin")


# -- data to write ---------------------------------------------------------------------------------

# Writes contain random data, which fio regenerates for each write if it is fast enough.
#
# `refill_buffers` generates each write's data in the issuing thread. On a virtual server's
# processor, `refill_buffers` generates 1.7 GB/s in blocks of 128 KiB, which limits a fast drive.
# `scramble_buffers` fills each buffer once and then writes the offset and time into each sector, at
# 32 GB/s. All sectors differ, but a sixth of each sector has low entropy (zlib compresses it by 10
# %), and a buffer that is soon reused produces near duplicates. The engine therefore scrambles
# buffers only for large blocks on fast drives, if there are enough buffers.

LARGE_BYTES = 64 * KIB
BUFFERS_BYTES = 1 << 20  # Buffer bytes per thread; more than controllers compress at once.


def add_data(section: Section, *, fast: bool) -> None:
    """Add the data options for a job that writes."""
    job = section.job
    smallest = min(size.bytes for size in job.block_sizes_of("write"))
    random_data = not job.compressible_pct and not job.duplicate_pct
    enough = smallest >= LARGE_BYTES and smallest * job.queue_depth >= BUFFERS_BYTES
    if fast and random_data and enough:
        section.add("scramble_buffers", 1)
        section.warn(
            "write data is random per buffer and modified in each sector of each write (about 10 "
            "% compressible), because generating all data in fio's threads would limit this drive"
        )
        return
    section.add("refill_buffers")
    for name, option, value in (
        ("compressible_pct", "buffer_compress_percentage", job.compressible_pct),
        ("duplicate_pct", "dedupe_percentage", job.duplicate_pct),
    ):
        if value:
            section.add(option, section.whole_percent(name, value))


# -- active-range segments as fio options: zonemode=strided ----------------------------------------

# fio cannot choose randomly among thousands of segments, because its zoned distribution accepts at
# most 256 zones, in whole percentages of the accesses. fio's strided zones have equal sizes and
# distances. If the zone size is a sector, a thread moves to the next zone after each I/O, and the
# I/O has a random address within the zone. If the zone size is the segment size, a sequential
# stream completes a segment before it moves on. The addresses therefore match those of equal-sized
# segments that span the range. Reports disclose that the segments are evenly spaced and, for random
# addresses, accessed in turn. A job's reads and writes share a zone, so sequential mixes run as one
# job per direction (`mix.py`).
#
# On a block device, fio wraps around only at the device end, regardless of the job size (fio 3.33
# on a loop device). On a regular file, fio respects the size. The range must therefore end at the
# device end.

_SECTOR_BYTES = 512
_LARGEST_STEP = 1 << 20


@dataclass(frozen=True)
class Zones:
    """Strided zones, in bytes, that represent a job's segments."""

    count: int
    size: int
    pitch: int  # Distance between the starts of adjacent zones.


def place_segments(section: Section, capacity_bytes: int) -> Zones | None:
    """Return the zones of a job's segments, or None if the job has no segments.

    The job's range then starts at the segment that starts at `start_bytes`. Segments that do not
    fit, and block size mixes, are rejected.
    """
    job = section.job
    segments = job.segments
    if segments is None:
        return None
    what = f"active-range segments ({segments.count})"
    if len(job.all_block_sizes) > 1:
        section.refuse(
            f"{what}: in fio, mixed block sizes would cross segment boundaries",
            "use a single block size, or a simulated drive",
        )
    if job.addresses.kind != "uniform":
        section.refuse(f"{what}: fio supports segments only for uniform addresses")
    if job.pattern == "sequential" and job.threads > 1 and job.thread_stride_bytes:
        section.refuse(f"{what}: fio's threads would leave their segments", "use a single thread")
    (block,) = job.block_sizes
    unit = max(block.bytes, job.align_bytes or 0)
    size = segments.length(unit)
    if not size:
        section.refuse(f"{what}: each segment is smaller than a block of {block.bytes} bytes")
    rest = capacity_bytes - job.offset_bytes
    length = rest if job.range_bytes is None else job.range_bytes
    pitch = _pitch(rest, length, segments.count, size)
    if not pitch:
        section.refuse(
            f"{what}: {segments.count} segments of {size} bytes do not fit into the {length} "
            f"bytes from {job.offset_bytes} to the end of the target",
            "end the range at the end of the device, where fio wraps around",
        )
    first, inside = divmod(job.start_bytes, size)
    if not inside and first < segments.count:
        offset, left = first * pitch, length - first * pitch
        section.job = replace(
            job, offset_bytes=job.offset_bytes + offset, range_bytes=left, start_bytes=0
        )
    return Zones(segments.count, size, pitch)


def add_segments(section: Section, zones: Zones | None) -> None:
    """Add the options of `zones`."""
    if zones is None:
        return
    sequential = section.job.pattern == "sequential"
    section.add("zonemode", "strided")
    section.add("zonerange", zones.size)
    section.add("zonesize", zones.size if sequential else _SECTOR_BYTES)
    section.add("zoneskip", zones.pitch - zones.size)
    section.warn(
        f"in fio, the {zones.count} segments are evenly spaced"
        + ("" if sequential else ", and each thread accesses them in turn")
    )


def _pitch(rest: int, length: int, count: int, size: int) -> int:
    """Return the distance between segments, or 0 if the segments do not fit.

    The `count` segments must reach the end of the `rest` of the target, and the last segment must
    end within `length`.
    """
    step = _LARGEST_STEP
    while step >= _SECTOR_BYTES:
        pitch = -(-rest // (count * step)) * step
        if pitch > size and (count - 1) * pitch + size <= length:
            return pitch
        step //= 2
    return 0


# -- addresses -------------------------------------------------------------------------------------

# fio rotates a distribution by a random offset in each thread. With a fixed centre, all threads
# have the same hot blocks, so the job has a single distribution over its range.
_CENTRE = "0.5"
_FIO_ZONES_MAX = 256


def add_addresses(section: Section, capacity_bytes: int, sector_bytes: int) -> None:
    """Add range and addresses, warn about differences, and reject unsupported distributions."""
    job = section.job
    size = _range(section, capacity_bytes, sector_bytes)
    section.add("offset", job.offset_bytes)
    _add_size(section, size)
    _add_alignment(section, sector_bytes)
    if job.pattern == "random":
        _add_distribution(section, size)
    elif job.addresses.kind != "uniform":
        section.refuse(
            f"addresses {job.addresses.kind}: only random jobs can use an address distribution"
        )


def _add_alignment(section: Section, sector_bytes: int) -> None:
    """Add `blockalign`, as a list if operations differ."""
    job = section.job
    overrides = [
        (direction.block_sizes, direction.align_bytes)
        for direction in (job.writes, job.trims)
        if direction
    ]
    given = [(job.block_sizes, job.align_bytes), *overrides]
    for sizes, align in given:
        if align is None and job.pattern == "random" and len(sizes) > 1:
            smallest = min(block.bytes for block in sizes)
            section.refuse(
                "fio aligns all I/Os of a mix to a single size, not each I/O to its own size",
                f"set align_bytes = {smallest}",
            )
        if align is not None and (align % sector_bytes or align <= 0):
            section.refuse(f"align_bytes {align} is not a multiple of {sector_bytes}")
    if not any(align for _, align in given):
        return
    by_operation = {"read": (job.block_sizes, job.align_bytes)}
    for name, direction in (("write", job.writes), ("trim", job.trims)):
        by_operation[name] = (
            by_operation["read"]
            if direction is None
            else (direction.block_sizes, direction.align_bytes)
        )
    aligns = [str(align or sizes[0].bytes) for sizes, align in by_operation.values()]
    section.add("blockalign", aligns[0] if len(set(aligns)) == 1 else ",".join(aligns))


def _range(section: Section, capacity_bytes: int, sector_bytes: int) -> int:
    """Return the job's range size, which must not exceed the device, where fio would wrap."""
    job = section.job
    if job.offset_bytes < 0 or job.offset_bytes % sector_bytes:
        section.refuse(f"offset_bytes {job.offset_bytes} is not a multiple of {sector_bytes}")
    size = capacity_bytes - job.offset_bytes if job.range_bytes is None else job.range_bytes
    end = job.offset_bytes + size
    if size <= 0 or end > capacity_bytes:
        section.refuse(
            f"range {job.offset_bytes} to {end} is not within the target ({capacity_bytes} bytes)"
        )
    largest = max(block.bytes for block in job.all_block_sizes)
    if size < largest:
        section.refuse(f"range of {size} bytes is smaller than its block size {largest}")
    return size


def _add_size(section: Section, size: int) -> None:
    job = section.job
    stride = job.thread_stride_bytes
    if not stride or job.threads == 1 or job.pattern == "random":
        section.add("size", size)  # Random addresses have no start position.
        return
    if stride * job.threads > size:
        section.refuse(
            f"{job.threads} threads at a stride of {stride} bytes exceed the range of {size} bytes",
            f"use a stride of at most {size // job.threads} bytes",
        )
    per_thread = None if job.volume_bytes is None else job.volume_bytes // job.threads
    if per_thread is None or per_thread > stride:
        section.warn(f"in fio, each thread stays within its stride of {stride} bytes")
    section.add("size", stride)
    section.add("offset_increment", stride)


def _add_distribution(section: Section, size: int) -> None:
    addresses = section.job.addresses
    kind, theta, zones = addresses.kind, addresses.theta, addresses.zones
    if kind == "once":  # Random access without repetition is fio's default.
        return
    section.add("norandommap", "")
    if kind == "uniform":
        return
    if kind in ("sequence", "sprandom"):
        section.refuse(
            f"addresses {kind} are supported only on simulated drives",
            "run fio directly, because newer versions support these addresses",
        )
    if addresses.scatter_seed or addresses.scatter_bytes is not None:
        section.refuse(
            f"fio cannot scatter {kind} addresses, because its zones are contiguous",
            "set a rate, so that writecliff issues the I/Os, or use a simulated drive",
        )
    if kind == "zipf":
        if addresses.ranks is not None:
            section.refuse("fio cannot set the number of zipf ranks")
        if addresses.generator == "exact":
            section.warn(
                "fio's zipf is more skewed than the ideal law for the same theta: beyond 10 "
                "million blocks, it accesses its two hottest blocks too often, and its hash maps "
                "several ranks to a block (generator = 'fio' simulates this)"
            )
        if theta is None or theta <= 0:
            section.refuse(f"zipf addresses require a theta above 0, not {theta}")
        if theta == 1.0:
            section.refuse("fio does not support zipf with theta 1", "use 0.99 or 1.01")
        section.add("random_distribution", f"zipf:{theta:g}:{_CENTRE}")
        return
    if kind == "pareto":
        section.add("random_distribution", f"pareto:{(addresses.hot_pct or 0) / 100:g}:{_CENTRE}")
        return
    if kind == "normal":
        section.add("random_distribution", f"normal:{_normal_spread(section):g}:{_CENTRE}")
        return
    if kind == "hot_cold":
        if len(zones) != 1:
            section.refuse(
                f"hot_cold addresses require exactly one zone, the hot zone, not {len(zones)}"
            )
        hot = zones[0]
        zones = (hot, Zone(100 - hot.access_pct, 100 - hot.size_pct))
    section.add("random_distribution", _zoned(section, zones, size))


def _normal_spread(section: Section) -> float:
    """Return the fio parameter that represents a standard deviation.

    fio adds a uniform spread to the mean of twelve uniform numbers, whose standard deviation is a
    twelfth of the range.
    """
    deviation = section.job.addresses.deviation_pct or 0.0
    least = 100 / 12
    if deviation < least:
        section.refuse(
            f"fio requires a standard deviation of at least {least:.2f} % for normal addresses"
        )
    return math.sqrt(12 * (deviation**2 - least**2))


def _zoned(section: Section, zones: tuple[Zone, ...], size: int) -> str:
    for what, total in (
        ("access_pct", sum(zone.access_pct for zone in zones)),
        ("size_pct", sum(zone.size_pct for zone in zones)),
    ):
        if abs(total - 100) > 1e-6:
            section.refuse(f"the {what} of its zones add up to {total:g}, not to 100")
    if len(zones) > _FIO_ZONES_MAX:
        section.refuse(f"{len(zones)} zones exceed fio's limit of {_FIO_ZONES_MAX}")
    accesses = [section.whole_percent("access_pct", zone.access_pct) for zone in zones]
    if 0 in accesses:
        section.refuse(
            "fio does not support zones that receive no accesses",
            "shorten the range instead of adding an unused zone",
        )
    kind, lengths = "zoned", [round(zone.size_pct) for zone in zones]
    if any(abs(zone.size_pct - round(zone.size_pct)) >= 1e-6 for zone in zones):
        kind, lengths = "zoned_abs", _zone_lengths(section, zones, size)
    pairs = zip(accesses, lengths, strict=True)
    return f"{kind}:" + ":".join(f"{access}/{length}" for access, length in pairs)


def _zone_lengths(section: Section, zones: tuple[Zone, ...], size: int) -> list[int]:
    """Return zone sizes, in bytes and as whole blocks, that cover all whole blocks in the range."""
    block = section.job.align_bytes or section.job.block_sizes[0].bytes
    ends, total = [], 0.0
    for zone in zones:
        total += zone.size_pct
        ends.append(round(size // block * min(total, 100.0) / 100) * block)
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def raise_to_sectors(section: Section, sector_bytes: int) -> None:
    """Round a mix's block sizes and alignment up to whole sectors, and add a warning.

    JESD219 composite loads contain sizes of 512 bytes to 3.5 KiB, which a drive with 4 KiB sectors
    cannot execute. Only mixes are rounded up. A job that has a single unsuitable size is rejected,
    because the result would apply to a different block size.
    """
    job = section.job
    # Published loads do not have separate write or trim sizes.
    separate = job.writes is not None or job.trims is not None
    if separate or len(job.block_sizes) < 2 or any(size.bytes <= 0 for size in job.block_sizes):
        return
    if raised := [size for size in job.block_sizes if size.bytes % sector_bytes]:
        weights: dict[int, float] = {}
        for size in job.block_sizes:
            whole = -(-size.bytes // sector_bytes) * sector_bytes
            weights[whole] = weights.get(whole, 0.0) + size.weight
        total = sum(size.weight for size in job.block_sizes) or 1.0
        share = 100 * sum(size.weight for size in raised) / total
        section.warn(
            f"block sizes that are not multiples of the {sector_bytes} B sector were rounded up:"
            f" {', '.join(str(size.bytes) for size in raised)} B ({share:g} % of the I/Os)"
        )
        sizes = tuple(BlockSize(size, weight) for size, weight in sorted(weights.items()))
        section.job = replace(section.job, block_sizes=sizes)
    if job.align_bytes is not None and job.align_bytes > 0 and job.align_bytes % sector_bytes:
        align = -(-job.align_bytes // sector_bytes) * sector_bytes
        section.warn(
            f"addresses are aligned to the {sector_bytes} B sector instead of {job.align_bytes} B"
        )
        section.job = replace(section.job, align_bytes=align)
