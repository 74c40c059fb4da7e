"""Writes a workload as a fio job file: one section per job, in the order of the jobs.

Owns: the mapping from `workload.model` to fio's options, and the list of what fio cannot do. What
has no exact form in fio is refused with an `EngineError`; what fio does slightly differently, and
what a user would still want to run, is named in `FioPlan.warnings` and so in the results.

Facts of fio that the code relies on (HOWTO and source of fio 3.33): percentages of mixes and zones
are whole numbers; `rate_iops` and `fsync` count for each thread, and a rate counts for each
direction; rates are kept in bytes of the smallest block; `io_size` beyond `size` starts over;
trims are ioctls, one at a time in each thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from writecliff.engines.fio import addresses, duty, ends, rates, sectors
from writecliff.engines.fio.capability import Fio, Placement
from writecliff.engines.fio.refuse import refuse, whole_percent
from writecliff.workload.model import Job, Workload

Option = tuple[str, str]

_HINTS = {1: "none", 2: "short", 3: "medium", 4: "long", 5: "extreme"}
_WHAT = {
    "fdp": "placement handles 0 to ",
    "streams": "streams up to ",
    "hint": "write streams by hints up to ",
}
_PERCENTILES = "50:99:99.9:99.99:99.999"


@dataclass(frozen=True)
class Target:
    """What the jobs run on."""

    filename: str
    capacity_bytes: int
    sector_bytes: int
    is_file: bool
    placement: Placement | str  # a string: why writes cannot be placed


@dataclass(frozen=True)
class FioPlan:
    """A job file, and what of the workload it does not do exactly."""

    text: str
    warnings: tuple[str, ...]
    writes: bool  # whether it changes the target
    duty_ns: tuple[int, int]  # burst and pause of all its jobs; zeros: they do not pause
    counted: bool  # whether its I/Os go through the block layer, which counts them


def plan(workload: Workload, target: Target, fio: Fio) -> FioPlan:
    """The job file of a workload. Raises `EngineError` for what fio cannot express."""
    if not workload.jobs:
        refuse(workload.name, "has no jobs")
    warnings: list[str] = []
    placement = _placement(workload, target)
    passthrough = None if placement is None or placement.kind == "hint" else placement
    lines = ["[global]", *_render(_global_options(workload, target, fio, passthrough))]
    duty_ns = duty.duty_of(workload)
    for index, asked in enumerate(workload.jobs):
        job = sectors.on_sectors(asked, target.sector_bytes, warnings)
        options = job_options(job, target, warnings) + duty.options(job, fio, warnings)
        if placement is not None and job.stream:
            options += _placed(placement, job.stream)
        lines += ["", f"[{section_name(index, job.name)}]", *_render(options)]
    writes = any(job.read_pct < 100 for job in workload.jobs)
    text = "\n".join(lines) + "\n"
    return FioPlan(text, tuple(dict.fromkeys(warnings)), writes, duty_ns, passthrough is None)


def section_name(index: int, name: str) -> str:
    """Unique, and free of what a job file gives a meaning to ("global", brackets, ${})."""
    return f"{index}-{re.sub(r'[^A-Za-z0-9_.-]+', '-', name)}"


def _render(options: list[Option]) -> Iterator[str]:
    for key, value in options:
        yield f"{key}={value}" if value else key


def _global_options(
    workload: Workload, target: Target, fio: Fio, passthrough: Placement | None
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
        ("allow_file_create", "0"),  # a node that vanished must not become a file
        ("thread", ""),
        ("group_reporting", ""),
        ("exitall_on_error", ""),
        ("norandommap", ""),
        ("random_generator", "tausworthe64"),
        ("randrepeat", "0"),
        ("randseed", str(workload.seed)),
        # Total latency, from issue to completion, is what carries the histogram.
        ("lat_percentiles", "1"),
        ("clat_percentiles", "0"),
        ("slat_percentiles", "0"),
        ("percentile_list", _PERCENTILES),
    ]


def _escaped(path: str) -> str:
    """fio splits names at colons, and expands or cuts off what its job files give a meaning to."""
    if re.search(r"[$`;#\\\n\r]", path) or path != path.strip():
        refuse(path, "fio's job files cannot name such a path", hint="rename it")
    return path.replace(":", "\\:")


def _placed(placement: Placement, stream: int) -> list[Option]:
    if placement.kind == "hint":
        return [("write_hint", _HINTS[stream])]
    return [("dataplacement", placement.kind), ("plids", str(stream))]


def _placement(workload: Workload, target: Target) -> Placement | None:
    """The placement to use if any job asks for a stream. Refuses what the drive does not have."""
    streams = sorted({job.stream for job in workload.jobs if job.stream})
    if not streams:
        return None
    if isinstance(target.placement, str):
        named = ", ".join(map(str, streams))
        refuse(
            workload.name,
            f"writes cannot be given to stream {named}: {target.placement}",
            hint="stream = 0 runs it without; `writecliff device probe` says what arrives",
        )
    if streams[-1] >= target.placement.handles:
        refuse(
            workload.name,
            f"stream {streams[-1]}: the drive has {_WHAT[target.placement.kind]}"
            f"{target.placement.handles - 1}",
            hint=f"streams 1 to {target.placement.handles - 1} are possible",
        )
    return target.placement


def job_options(job: Job, target: Target, warnings: list[str]) -> list[Option]:
    """All options of one section except its placement."""
    _check_counts(job, target)
    trims = job.trim_pct > 0
    if trims and target.is_file:
        refuse(job.name, "fio cannot trim regular files", hint="run it on a block device")
    if trims and job.queue_depth > 1:
        warnings.append(
            f"job {job.name}: fio trims one at a time in each thread, not {job.queue_depth} deep"
        )
    options: list[Option] = [("new_group", ""), ("rw", _direction(job))]
    if job.trim_pct == 0 and 0 < job.read_pct < 100:
        options.append(("rwmixread", str(whole_percent(job.name, "read_pct", job.read_pct))))
        if job.pattern == "sequential":
            warnings.append(
                f"job {job.name}: in fio reads and writes each follow their own sequence"
            )
    options += _block_sizes(job)
    options += [("numjobs", str(job.threads)), ("iodepth", str(job.queue_depth))]
    options += addresses.options(job, target.capacity_bytes, target.sector_bytes, warnings)
    if job.trim_pct == 0 and job.read_pct < 100:
        options += _data(job)
    options += rates.options(job, warnings)
    if job.flush_every_writes:
        options.append(("fsync", str(job.flush_every_writes)))
    options += ends.options(job)
    return options


def _check_counts(job: Job, target: Target) -> None:
    if job.threads < 1 or job.queue_depth < 1:
        refuse(job.name, f"threads {job.threads} x queue depth {job.queue_depth}: at least 1 each")
    if job.segments is not None:
        refuse(
            job.name,
            f"active-range segments ({job.segments.count}): fio would need a job for each",
            hint="use a contiguous range (range_bytes), or the simulated drive",
        )
    if not job.block_sizes:
        refuse(job.name, "has no block size")
    for size in job.block_sizes:
        if size.bytes <= 0 or size.bytes % target.sector_bytes:
            refuse(
                job.name,
                f"block size {size.bytes}: the target's sector is {target.sector_bytes} bytes",
                hint=f"use a multiple of {target.sector_bytes} bytes",
            )


def _direction(job: Job) -> str:
    prefix = "rand" if job.pattern == "random" else ""
    if job.trim_pct == 100 and job.read_pct == 0:
        return f"{prefix}trim"
    if job.trim_pct != 0:
        refuse(
            job.name,
            f"trim_pct {job.trim_pct:g}: fio cannot mix trims with reads and writes in one job",
            hint="put the trims into a job of their own (trim_pct 100)",
        )
    if job.read_pct == 100:
        return f"{prefix}read"
    if job.read_pct == 0:
        return f"{prefix}write"
    return f"{prefix}rw"


def _block_sizes(job: Job) -> list[Option]:
    if len(job.block_sizes) == 1:
        return [("bs", str(job.block_sizes[0].bytes))]
    total = sum(size.weight for size in job.block_sizes)
    if total <= 0 or any(size.weight < 0 for size in job.block_sizes):
        refuse(job.name, "the weights of its block sizes are not positive")
    parts = []
    for size in job.block_sizes:
        if size.weight == 0:
            continue
        what = f"share of block size {size.bytes}"
        percent = whole_percent(job.name, what, 100 * size.weight / total)
        parts.append(f"{size.bytes}/{percent}")
    return [("bssplit", ":".join(parts))]


def _data(job: Job) -> list[Option]:
    options: list[Option] = [("refill_buffers", "")]
    if job.compressible_pct:
        percent = whole_percent(job.name, "compressible_pct", job.compressible_pct)
        options.append(("buffer_compress_percentage", str(percent)))
    if job.duplicate_pct:
        percent = whole_percent(job.name, "duplicate_pct", job.duplicate_pct)
        options.append(("dedupe_percentage", str(percent)))
    return options
