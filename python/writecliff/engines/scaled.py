"""A simulated drive at a fraction of its size that answers as the whole drive would.

For estimates before a run. Time and volume shrink by the same factor, so every rate stays what it
is. What has to stay alike for that:

* the number of reclaim units and every pool counted in them, hence over-provisioning, write
  amplification and wear per drive fill: blocks get fewer word lines, never fewer blocks;
* dies, planes, channels, pages and their times, hence the work that one I/O causes;
* the share of time that erases take: their time shrinks with the block;
* idle time against the drive's patience: `idle_delay` shrinks too;
* the share of time that checkpoints stop the firmware for: their interval and time shrink;
* how warm it gets and how its life is planned: heat capacity and life shrink;
* when its SLC cache is full: that shrinks like the capacity, to a page of every die at least.

The write buffer cannot shrink as far: it has to keep all dies busy beside the largest command, and
to hold the open units of all streams. Where it empties (pauses, a change to reads) a small drive
takes in too much; that error is about proportional to the scale, so that two scales can be
extrapolated.

A hard disk shrinks by its capacity alone: seeks take the share of the stroke that they span, so a
small disk answers as the large one does.

Measured on the shipped SATA drive, WSAT to four drive fills: device time and volume within 0.1 % at
1/32. With fewer blocks instead of smaller ones they are 7 % off at 1/4 already, because the reserve
of collection cannot shrink.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from writecliff import _native
from writecliff.engines.base import (
    CacheReport,
    Counters,
    DeviceIdentity,
    JobResult,
    Operation,
    OperationResult,
    Progress,
    ProgressHook,
    PurgeReport,
    StepResult,
)
from writecliff.engines.sim import SimEngine
from writecliff.errors import EngineError
from writecliff.workload.model import Job, Segments, Workload

SECTOR_BYTES = 512
SLOT_BYTES = 4096
UNITS_A_DIE = 2  # program units in the buffer: one is programmed while the next one fills
DISK_SCALES = (64.0, 32.0, 16.0, 8.0, 4.0, 2.0)
_BITS = {"SLC": 1, "MLC": 2, "TLC": 3, "QLC": 4}


def scales(full: SimEngine) -> list[float]:
    """Factors by which the drive can be made smaller, the largest first; 1 is not among them."""
    if full.description.kind == "disk":
        return list(DISK_SCALES)
    lines = _word_lines(full)
    counts = []
    count = 1
    while count < lines:
        counts.append(count)
        count *= 2
    return [lines / count for count in counts]


def _word_lines(full: SimEngine) -> int:
    flash = tomllib.loads(full.device_text)["flash"]
    return int(flash["pages_per_block"]) // _BITS[flash["cell"]]


def scaled_device(text: str, scale: float, *, largest_io_bytes: int = SLOT_BYTES) -> str:
    """The device file `text` for a drive that is `scale` times smaller; see the module text.

    `largest_io_bytes` of the load: a command waits until the buffer has room for all of it.
    """
    device = tomllib.loads(text)
    if "disk" in device:
        return _scaled_disk(device, scale)
    flash, controller = device["flash"], device["controller"]
    bits = _BITS[flash["cell"]]
    flash["pages_per_block"] = max(1, round(flash["pages_per_block"] / bits / scale)) * bits
    capacity = _native.parse_size(device["user_capacity"])
    controller["write_buffer"] = f"{_buffer_bytes(device, scale, largest_io_bytes)} B"
    device["user_capacity"] = f"{max(1, round(capacity / scale / SLOT_BYTES)) * SLOT_BYTES} B"
    for table, key in ((flash, "erase"), (controller, "idle_delay")):
        time_ns = _native.parse_time(table[key])
        table[key] = f"{max(1, round(time_ns / scale))} ns" if time_ns else "0 ns"
    _shrink_checkpoints(device, scale)
    _shrink_life(device, scale)
    resize_slc_cache(device, 1 / scale)
    return device_toml(device)


def _shrink_checkpoints(device: Mapping[str, Any], scale: float) -> None:
    housekeeping = device.get("housekeeping", {})
    if "checkpoint_interval" not in housekeeping:
        return
    whole: int = _native.parse_size(housekeeping["checkpoint_interval"])
    shrunk = max(round(whole / scale), _unit_bytes(device))
    time_ns = round(_native.parse_time(housekeeping["checkpoint_time"]) * shrunk / whole)
    housekeeping["checkpoint_interval"] = f"{shrunk} B"
    housekeeping["checkpoint_time"] = f"{max(1, time_ns)} ns"


def _shrink_life(device: Mapping[str, Any], scale: float) -> None:
    if (thermal := device.get("thermal")) is not None:
        joules = float(str(thermal["capacity"]).strip().removesuffix("J/C"))
        thermal["capacity"] = f"{joules / scale} J/C"
    if (endurance := device.get("endurance")) is not None:
        time_ns = _native.parse_time(endurance["life"])
        endurance["life"] = f"{max(1, round(time_ns / scale))} ns"


def resize_slc_cache(device: Mapping[str, Any], factor: float) -> None:
    """Let the SLC cache follow the capacity of its drive, if it has one."""
    if (cache := device.get("slc_cache")) is None:
        return
    flash = device["flash"]
    least = flash["channels"] * flash["dies_per_channel"] * slc_unit_bytes(device)
    wanted = round(_native.parse_size(cache["size"]) * factor / SLOT_BYTES) * SLOT_BYTES
    most: int = _native.parse_size(device["user_capacity"])
    cache["size"] = f"{min(most, max(least, wanted))} B"


def slc_unit_bytes(device: Mapping[str, Any]) -> int:
    """What the SLC cache programs at once on a die: part of the write buffer; 0 without one."""
    if "slc_cache" not in device:
        return 0
    flash = device["flash"]
    page: int = _native.parse_size(flash["page"])
    return page * (int(flash["planes_per_die"]) if flash["multi_plane"] else 1)


def pieces_per_slot(device: Mapping[str, Any]) -> int:
    """Slots of host data that may end up in one slot of flash, and are all in the buffer before."""
    least = device.get("reduction", {}).get("least")
    return 1 if least is None else SLOT_BYTES // int(_native.parse_size(least))


def _unit_bytes(device: Mapping[str, Any]) -> int:
    flash = device["flash"]
    page: int = _native.parse_size(flash["page"])
    return page * int(flash["planes_per_die"]) * _BITS[flash["cell"]]


def _scaled_disk(device: dict[str, Any], scale: float) -> str:
    """Fewer tracks of the same kind; the flash of a hybrid keeps its share of them."""
    for table in (device, device.get("flash_cache", {})):
        for key in {"user_capacity", "size"} & table.keys():
            size_bytes = _native.parse_size(table[key])
            table[key] = f"{max(1, round(size_bytes / scale / SLOT_BYTES)) * SLOT_BYTES} B"
    return device_toml(device)


def _buffer_bytes(device: Mapping[str, Any], scale: float, largest_io_bytes: int) -> int:
    flash = device["flash"]
    unit = _unit_bytes(device)
    dies = flash["channels"] * flash["dies_per_channel"]
    needed: int = max(UNITS_A_DIE * dies, device["ftl"]["streams"] + 1) * unit
    needed *= pieces_per_slot(device)
    needed += slc_unit_bytes(device) + largest_io_bytes
    whole = _native.parse_size(device["controller"]["write_buffer"])
    return max(min(needed, whole), round(whole / scale / SLOT_BYTES) * SLOT_BYTES)


def device_toml(device: Mapping[str, Any]) -> str:
    """Device files are keys and one level of tables; their values read the same in JSON."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in device.items() if _is_value(value)]
    for name, table in device.items():
        if not _is_value(table):
            lines.append(f"[{name}]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def _is_value(value: Any) -> bool:
    return not isinstance(value, dict)


class ScaledEngine:
    """The drive of `full`, simulated `scale` times smaller and shorter. Knows nothing of the state
    that `full` is in; histograms are those of the fewer I/Os that the small drive served."""

    kind: Literal["sim", "fio"] = "sim"

    def __init__(
        self, full: SimEngine, scale: float, *, largest_io_bytes: int = SLOT_BYTES
    ) -> None:
        self.scale = scale
        self._identity = full.identify()
        text = scaled_device(full.device_text, scale, largest_io_bytes=largest_io_bytes)
        self._small = SimEngine.from_text(text, f"{full.description.path}, scaled", seed=full.seed)
        self._capacity_bytes = self._small.identify().capacity_bytes

    def identify(self) -> DeviceIdentity:
        """The whole drive."""
        return self._identity

    def purge(self) -> PurgeReport:
        return self._small.purge()

    def set_write_cache(self, enabled: bool) -> CacheReport:
        return self._small.set_write_cache(enabled)

    def run(self, workload: Workload, on_progress: ProgressHook | None = None) -> StepResult:
        result = self._small.run(self._shrunk(workload), self._hook(on_progress))
        return self._grown(result, workload)

    def precondition(
        self, workload: Workload, on_progress: ProgressHook | None = None
    ) -> StepResult:
        result = self._small.precondition(self._shrunk(workload), self._hook(on_progress))
        return self._grown(result, workload)

    def counters(self) -> Counters:
        return self._counters(self._small.counters())

    def health(self) -> Mapping[str, object] | None:
        return None

    def save(self, path: Path) -> bool:
        """Its states would be taken for states of the whole drive: none are written."""
        return False

    def restore(self, path: Path) -> None:
        raise EngineError("a scaled drive has no saved states")

    def close(self) -> None:
        self._small.close()

    # -- the way in -------------------------------------------------------------------------

    def _shrunk(self, workload: Workload) -> Workload:
        return replace(
            workload,
            jobs=tuple(self._shrunk_job(job) for job in workload.jobs),
            interval_ns=max(1, round(workload.interval_ns / self.scale)),
        )

    def _shrunk_job(self, job: Job) -> Job:
        largest = max([size.bytes for size in job.block_sizes] + [job.align_bytes or 0])
        offset = self._size(job.offset_bytes, SLOT_BYTES)
        length = job.range_bytes
        if length is not None:
            length = max(largest, self._size(length, SLOT_BYTES))
            length = min(length, self._capacity_bytes - offset)
        return replace(
            job,
            offset_bytes=offset,
            range_bytes=length,
            segments=self._segments(job.segments, largest),
            thread_stride_bytes=self._size(job.thread_stride_bytes, SLOT_BYTES),
            burst_ns=self._count(job.burst_ns),
            pause_ns=self._count(job.pause_ns),
            start_delay_ns=self._count(job.start_delay_ns),
            duration_ns=_optional(job.duration_ns, self._count),
            volume_bytes=_optional(job.volume_bytes, self._count),
            ios=_optional(job.ios, self._count),
        )

    def _segments(self, segments: Segments | None, largest: int) -> Segments | None:
        """Fewer ones of the same length, so that blocks fit into them as often."""
        if segments is None:
            return None
        length = segments.amount_bytes / segments.count
        count = max(1, round(segments.count / self.scale))
        amount = max(largest, round(length * count / SECTOR_BYTES) * SECTOR_BYTES)
        return Segments(count, amount, segments.seed)

    def _count(self, value: int) -> int:
        """Zero stays zero, all else at least one."""
        return max(1, round(value / self.scale)) if value else 0

    def _size(self, value: int, unit: int) -> int:
        """In whole units, with what is left over, so that I/Os are aligned as they were."""
        return round(value / self.scale / unit) * unit + value % unit

    # -- the way out ------------------------------------------------------------------------

    def _hook(self, on_progress: ProgressHook | None) -> ProgressHook | None:
        if on_progress is None:
            return None

        def look(small: Progress) -> None:
            on_progress(
                replace(
                    small,
                    elapsed_ns=round(small.elapsed_ns * self.scale),
                    ios=round(small.ios * self.scale),
                    counters=None if small.counters is None else self._counters(small.counters),
                )
            )

        return look

    def _grown(self, result: StepResult, workload: Workload) -> StepResult:
        elapsed_ns = self._elapsed_ns(result, workload)
        grows = elapsed_ns / result.elapsed_ns if result.elapsed_ns else self.scale
        columns = dict(result.intervals)
        for name in ("end_ns", "ios", "bytes"):
            if name in columns:
                columns[name] = np.rint(columns[name] * self.scale).astype(columns[name].dtype)
        return replace(
            result,
            started_ns=round(result.started_ns * self.scale),
            elapsed_ns=elapsed_ns,
            jobs=tuple(_grown_job(job, grows) for job in result.jobs),
            intervals=columns,
            counters_before=self._counters(result.counters_before),
            counters_after=self._counters(result.counters_after),
        )

    def _elapsed_ns(self, result: StepResult, workload: Workload) -> int:
        """What is outstanding when a duration ends takes as long on the whole drive as on the small
        one: that part is not scaled."""
        if any(job.duration_ns is None for job in workload.jobs) or not result.elapsed_ns:
            return round(result.elapsed_ns * self.scale)
        after_ns = result.elapsed_ns - _asked_ns(self._shrunk(workload))
        if after_ns < 0:  # another end came first
            return round(result.elapsed_ns * self.scale)
        return _asked_ns(workload) + after_ns

    def _counters(self, small: Counters) -> Counters:
        def grown(value: int | None) -> int | None:
            return None if value is None else round(value * self.scale)

        return replace(
            small,
            host_write_bytes=grown(small.host_write_bytes),
            host_read_bytes=grown(small.host_read_bytes),
            nand_write_bytes=grown(small.nand_write_bytes),
            gc_moved_bytes=grown(small.gc_moved_bytes),
            energy_j=None if small.energy_j is None else small.energy_j * self.scale,
            throttled_ns=grown(small.throttled_ns),
            read_retries=grown(small.read_retries),
            uncorrectable_reads=grown(small.uncorrectable_reads),
            stored_bytes=grown(small.stored_bytes),
            duplicate_bytes=grown(small.duplicate_bytes),
            slc_write_bytes=grown(small.slc_write_bytes),
            slc_fold_bytes=grown(small.slc_fold_bytes),
            slc_coalesced_bytes=grown(small.slc_coalesced_bytes),
            slc_held_bytes=grown(small.slc_held_bytes),
        )


def _asked_ns(workload: Workload) -> int:
    """When the last job stops issuing, by its duration."""
    return max(job.start_delay_ns + (job.duration_ns or 0) for job in workload.jobs)


def _optional(value: int | None, change: Any) -> int | None:
    return None if value is None else change(value)


def _grown_job(job: JobResult, grows: float) -> JobResult:
    def grown(result: OperationResult) -> OperationResult:
        return replace(result, ios=round(result.ios * grows), bytes=round(result.bytes * grows))

    operations: dict[Operation, OperationResult] = {
        name: grown(result) for name, result in job.operations.items()
    }
    return replace(
        job,
        elapsed_ns=round(job.elapsed_ns * grows),
        operations=operations,
        thread_ios=tuple(round(ios * grows) for ios in job.thread_ios),
    )
