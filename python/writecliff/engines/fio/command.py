"""Writes a workload as a fio job file: one section per job, in the order of the jobs.

What has no exact form in fio is refused with an `EngineError`; what fio does slightly differently,
and what a user would still want to run, is named in `FioPlan.warnings` and so in the results.

Facts of fio that the code relies on (HOWTO and source of fio 3.33): percentages of mixes and zones
are whole numbers; `rate_iops` and `fsync` count for each thread, and a rate counts for each
direction; rates are kept in bytes of the smallest block; `io_size` beyond `size` starts over;
trims are ioctls, one at a time in each thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from writecliff.engines.fio.addresses import add_addresses, raise_to_sectors
from writecliff.engines.fio.capability import DSYNC_SINCE, DataPlacement, Fio
from writecliff.engines.fio.course import (
    add_block_sizes,
    add_direction,
    add_streams,
    refuse_what_only_simulation_has,
)
from writecliff.engines.fio.data import add_data
from writecliff.engines.fio.rates import add_ends, add_rates
from writecliff.engines.fio.section import Section, refuse
from writecliff.engines.fio.segments import add_segments, place_segments
from writecliff.workload.model import Workload

Option = tuple[str, str]

_WHAT = {
    "fdp": "placement handles 0 to ",
    "streams": "streams up to ",
    "hint": "write streams by hints up to ",
}
# How streams reach the drive, for reports.
_SAID = {
    "fdp": "streams are placement handles of the drive, by NVMe passthrough on {node}",
    "streams": "streams are those of the drive's Streams directive, by NVMe passthrough on {node}",
    "hint": "streams are write hints, which the kernel passes on to the drive as its streams",
}
_PERCENTILES = "50:99:99.9:99.99:99.999"


@dataclass(frozen=True)
class Target:
    """What the jobs run on."""

    filename: str
    capacity_bytes: int
    sector_bytes: int
    is_file: bool
    data_placement: DataPlacement | str  # a string: why writes cannot be placed
    fast: bool = False  # its link carries more than a thread of fio's can generate


@dataclass(frozen=True)
class FioPlan:
    """A job file, and what of the workload it does not do exactly."""

    text: str
    warnings: tuple[str, ...]
    writes: bool  # whether it changes the target
    counted: bool  # whether its I/Os go through the block layer, which counts them


def plan(workload: Workload, target: Target, fio: Fio) -> FioPlan:
    """The job file of a workload, without its pauses (see `bursts`). Raises `EngineError` for what
    fio cannot express."""
    if not workload.jobs:
        refuse(workload.name, "has no jobs")
    warnings: list[str] = []
    found = _data_placement(workload, target)
    hints = found is not None and found.kind == "hint"
    passthrough = None if hints else found
    if found is not None:
        warnings.append(_SAID[found.kind].format(node=found.generic_device))
    options = _global_options(workload, target, fio, passthrough)
    if hints:  # jobs have nodes of their own; fio would add them to a file of all
        options = [option for option in options if option[0] != "filename"]
    lines = ["[global]", *_render(options)]
    for index, job in enumerate(workload.jobs):
        section = Section(job, warnings)
        raise_to_sectors(section, target.sector_bytes)
        add_job(section, target, fio)
        if found is not None:
            _add_data_placement(section, found)
        lines += ["", f"[{section_name(index, job.name)}]", *_render(section.options)]
    writes = any(job.read_pct < 100 for job in workload.jobs)
    text = "\n".join(lines) + "\n"
    return FioPlan(text, tuple(dict.fromkeys(warnings)), writes, passthrough is None)


def section_name(index: int, name: str) -> str:
    """Unique, and free of what a job file gives a meaning to ("global", brackets, ${})."""
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
        ("allow_file_create", "0"),  # a node that vanished must not become a file
        ("thread", ""),
        ("group_reporting", ""),
        ("exitall_on_error", ""),
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
        refuse(path, "fio's job files cannot name such a path", "rename it")
    return path.replace(":", "\\:")


def _add_data_placement(section: Section, found: DataPlacement) -> None:
    """Hints are those of the node that a job opens, so that a job without a stream has one too."""
    if found.kind != "hint":
        add_streams(section, found.kind)
    elif section.job.streams:
        section.refuse("a write hint is of a whole job", "use a job for each stream")
    else:
        section.add("filename", _escaped(found.nodes[section.job.stream]))


def _data_placement(workload: Workload, target: Target) -> DataPlacement | None:
    """How to place writes if any job asks for a stream. Refuses what the drive does not have."""
    asked = {stream for job in workload.jobs for stream in (*job.streams, job.stream)}
    streams = sorted(asked - {0})
    if not streams:
        return None
    found = target.data_placement
    if isinstance(found, str):
        named = ", ".join(map(str, streams))
        refuse(
            workload.name,
            f"writes cannot be given to stream {named}: {found}",
            "stream = 0 runs it without; `writecliff device probe` shows what arrives",
        )
    if streams[-1] >= found.handles:
        refuse(
            workload.name,
            f"stream {streams[-1]}: the drive has {_WHAT[found.kind]}{found.handles - 1}",
            f"streams 1 to {found.handles - 1} are possible",
        )
    return found


def add_job(section: Section, target: Target, fio: Fio) -> None:
    """Add all options of a job except its data placement."""
    _check_counts(section, target)
    zones = place_segments(section, target.capacity_bytes)
    job = section.job
    refuse_what_only_simulation_has(section)
    trims = job.trim_pct > 0 or job.trim_first
    if trims and target.is_file:
        section.refuse("fio cannot trim regular files", "run it on a block device")
    if trims and job.queue_depth > 1:
        section.warn(f"fio trims one at a time in each thread, not {job.queue_depth} deep")
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
                f"{fio.version_text} cannot open with O_DSYNC: a flush follows each write instead"
            )
    if job.flush_every_writes:
        section.add("fsync", job.flush_every_writes)


def _check_counts(section: Section, target: Target) -> None:
    job = section.job
    if job.threads < 1 or job.queue_depth < 1:
        section.refuse(
            f"threads {job.threads} x queue depth {job.queue_depth}: each must be at least 1"
        )
    if not job.block_sizes:
        section.refuse("has no block size")
    for size in job.all_block_sizes:
        if size.bytes <= 0 or size.bytes % target.sector_bytes:
            section.refuse(
                f"block size {size.bytes}: the target's sector is {target.sector_bytes} bytes",
                f"use a multiple of {target.sector_bytes} bytes",
            )
