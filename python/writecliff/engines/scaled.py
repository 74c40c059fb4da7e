"""Engine that simulates a drive at a fraction of its capacity, for estimates and quick tests.

`crates/ssd/src/device_file/scaled.rs` scales down the device file. This module scales down the load
and scales up the measurements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from writecliff.engines.base import (
    CacheReport,
    DeviceIdentity,
    JobResult,
    Operation,
    OperationResult,
    PowerStates,
    Progress,
    ProgressHook,
    PurgeHook,
    PurgeReport,
    StepResult,
    unseen,
)
from writecliff.engines.counters import Counters
from writecliff.engines.sim import SimEngine
from writecliff.native_errors import as_user_errors
from writecliff.workload.model import Addresses, Job, Segments, Workload

SECTOR_BYTES = 512
SLOT_BYTES = 4096
# Job times and volumes that shrink with the drive.
_SHRUNK = (
    "burst_ns",
    "pause_ns",
    "start_delay_ns",
    "ramp_ns",
    "duration_ns",
    "volume_bytes",
    "ios",
)


class ScaledEngine:
    """A new drive like that of `full`, at 1/`scale` of the capacity and time.

    Volumes and times in results are scaled up. Histograms contain the I/Os of the small drive.
    """

    kind: Literal["sim", "fio"] = "sim"
    write_refusal = None

    def __init__(
        self, full: SimEngine, scale: float, *, largest_io_bytes: int = SLOT_BYTES
    ) -> None:
        """Create the small drive.

        Raises:
            ConfigError: If the drive cannot be simulated at this scale.
        """
        self.scale = scale
        self._full = full
        self._identity = replace(full.identify(), scale=scale)
        with as_user_errors():
            device = full.device.scaled(scale, largest_io_bytes)
        self.small = SimEngine.from_device(
            device,
            seed=full.seed,
            attribute_latency=full.attribute_latency,
            power_state=full.power_state,
        )
        self._capacity_bytes = self.small.identify().capacity_bytes

    def identify(self) -> DeviceIdentity:
        """Return the full drive's identity, including the scale."""
        return self._identity

    def purge(self, on_progress: PurgeHook = unseen) -> PurgeReport:
        """Purge the small drive."""
        return self.small.purge(on_progress)

    def set_write_cache(self, enabled: bool) -> CacheReport:
        """Enable or disable the write cache of the small drive."""
        return self.small.set_write_cache(enabled)

    def run(
        self,
        workload: Workload,
        on_progress: ProgressHook | None = None,
        *,
        keep_running: bool = False,
    ) -> StepResult:
        """Run the scaled workload, and scale the result up."""
        result = self.small.run(self.shrunk(workload), self.hook(on_progress))
        return self._grown(result, workload)

    def speed_limit(self, workload: Workload) -> float | None:
        """Return None, because pilot runs provide a better estimate."""
        return None

    def stop_load(self) -> None:
        """Do nothing, because no load runs between the steps of a simulated drive."""
        self.small.stop_load()

    def precondition(
        self, workload: Workload, on_progress: ProgressHook | None = None
    ) -> StepResult:
        """Precondition with the scaled workload, and scale up the result."""
        result = self.small.precondition(self.shrunk(workload), self.hook(on_progress))
        return self._grown(result, workload)

    def counters(self) -> Counters:
        """Return the counters, scaled up to the full drive."""
        return self.small.counters().scaled(self.scale)

    def health(self) -> Mapping[str, object] | None:
        """Return the counters, scaled up to the full drive."""
        return {"source": f"drive simulated at 1/{self.scale:g} of its capacity", **self.counters()}

    def power_states(self, *, settle: bool = False) -> PowerStates | None:
        """Return the device file's power states, or None if it has none."""
        return self.small.power_states()

    def log_events(self) -> None:
        """Enable all FDP events of the small drive."""
        self.small.log_events()

    def save(self, path: Path) -> bool:
        """Write the small drive's state, which only a drive of the same scale can load."""
        return self.small.save(path)

    def restore(self, path: Path) -> None:
        """Load a state that was saved by the same drive at the same scale.

        Raises:
            ConfigError: If the state belongs to another drive or scale.
        """
        self.small.restore(path)

    def least_scale(self) -> float:
        """Return 1, because the small drive can be simulated at its current scale."""
        return 1.0

    def scales(self) -> Sequence[float]:
        """Return the scales of the full drive that are larger than the current scale."""
        return [scale for scale in self._full.scales() if scale > self.scale]

    def scaled(self, scale: float, *, largest_io_bytes: int) -> ScaledEngine:
        """Return an engine for the full drive at `scale`.

        Raises:
            ConfigError: If the drive cannot be simulated at this scale.
        """
        return ScaledEngine(self._full, scale, largest_io_bytes=largest_io_bytes)

    def close(self) -> None:
        """Release the small drive."""
        self.small.close()

    # -- workload scaling ---------------------------------------------------------------------

    def shrunk(self, workload: Workload) -> Workload:
        """Return the workload for the small drive."""
        zones = SmallZones.of(workload.jobs, self.scale, self._capacity_bytes)
        return replace(
            workload,
            jobs=tuple(self._shrunk_job(job, zones) for job in workload.jobs),
            interval_ns=max(1, round(workload.interval_ns / self.scale)),
        )

    def _shrunk_job(self, job: Job, zones: SmallZones | None) -> Job:
        steps = [direction.align_bytes or 0 for direction in (job.writes, job.trims) if direction]
        aligns = [job.align_bytes or 0, *steps]
        largest = max([size.bytes for size in job.all_block_sizes] + aligns)
        offset = self._size(job.offset_bytes, SLOT_BYTES)
        length = job.range_bytes
        if length is not None:
            least = largest * (1 + max(job.addresses.blocks, default=0))
            length = max(least, self._size(length, SLOT_BYTES))
            length = min(length, self._capacity_bytes - offset)
        small = replace(
            job,
            offset_bytes=offset,
            range_bytes=length,
            segments=self._segments(job.segments, largest),
            addresses=self._addresses(job),
            thread_stride_bytes=self._size(job.thread_stride_bytes, SLOT_BYTES),
            start_bytes=self._start(job.start_bytes, largest),
            write_start_bytes=(
                None
                if job.write_start_bytes is None
                else self._start(job.write_start_bytes, largest)
            ),
            **{name: self._count(getattr(job, name)) for name in _SHRUNK},
        )
        return zones.job(job, small) if zones else small

    def _addresses(self, job: Job) -> Addresses:
        """Return the addresses of a scaled job.

        Zipf distributions retain the full drive's rank count, because fewer ranks would reduce the
        skew.
        """
        addresses = job.addresses
        if addresses.kind != "zipf" or addresses.generator != "exact" or addresses.ranks:
            return addresses
        whole = job.range_bytes or self._identity.capacity_bytes - job.offset_bytes
        active = job.segments.amount_bytes if job.segments else whole
        unit = job.align_bytes or min(size.bytes for size in job.all_block_sizes)
        return replace(addresses, ranks=max(1, active // unit))

    def _segments(self, segments: Segments | None, largest: int) -> Segments | None:
        """Return fewer segments of the same length, so that each holds the same block count."""
        if segments is None:
            return None
        length = segments.amount_bytes / segments.count
        count = max(1, round(segments.count / self.scale))
        amount = max(largest, round(length * count / SECTOR_BYTES) * SECTOR_BYTES)
        return Segments(count, amount, segments.seed)

    def _count(self, value: int | None) -> Any:
        """Scale a count or time to at least 1, and leave 0 and None unchanged."""
        return max(1, round(value / self.scale)) if value else value

    def _start(self, value: int, block: int) -> int:
        """Scale a start address to whole blocks, because sequential I/Os are block-aligned."""
        return int(value / self.scale) // block * block

    def _size(self, value: int, unit: int) -> int:
        """Scale a size to whole units plus the original remainder, which preserves alignment."""
        return round(value / self.scale / unit) * unit + value % unit

    # -- result scaling -----------------------------------------------------------------------

    def hook(self, on_progress: ProgressHook | None) -> ProgressHook | None:
        """Wrap a hook so that it receives the progress scaled up to the full drive."""
        if on_progress is None:
            return None

        def look(small: Progress) -> None:
            on_progress(
                replace(
                    small,
                    elapsed_ns=round(small.elapsed_ns * self.scale),
                    ios=round(small.ios * self.scale),
                    counters=small.counters and small.counters.scaled(self.scale),
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
            counters_before=result.counters_before.scaled(self.scale),
            counters_after=result.counters_after.scaled(self.scale),
        )

    def _elapsed_ns(self, result: StepResult, workload: Workload) -> int:
        """Return the scaled step time.

        I/Os outstanding at the end of a duration take the same time on the full drive as on the
        small drive, so this time is not scaled.
        """
        if any(job.duration_ns is None for job in workload.jobs) or not result.elapsed_ns:
            return round(result.elapsed_ns * self.scale)
        after_ns = result.elapsed_ns - _asked_ns(self.shrunk(workload))
        if after_ns < 0:  # Another condition ended the step.
            return round(result.elapsed_ns * self.scale)
        return _asked_ns(workload) + after_ns


def _asked_ns(workload: Workload) -> int:
    """Return the time at which the last job stops issuing because of its duration."""
    return max(job.start_delay_ns + job.ramp_ns + (job.duration_ns or 0) for job in workload.jobs)


def _grown_job(job: JobResult, grows: float) -> JobResult:
    def grown(result: OperationResult) -> OperationResult:
        return replace(result, ios=round(result.ios * grows), bytes=round(result.bytes * grows))

    operations: dict[Operation, OperationResult] = {
        name: grown(result) for name, result in job.operations.items()
    }
    return replace(
        job,
        began_ns=round(job.began_ns * grows),
        elapsed_ns=round(job.elapsed_ns * grows),
        operations=operations,
        flush=None if job.flush is None else grown(job.flush),
        thread_ios=tuple(round(ios * grows) for ios in job.thread_ios),
    )


# -- host zones ------------------------------------------------------------------------------------

# The zones of a scaled drive shrink with the drive down to one block. Below that size, the zone
# count shrinks.

_SECTOR_BYTES = 512
_SLOT_BYTES = 4096


@dataclass(frozen=True)
class SmallZones:
    """A workload's zones on the small drive."""

    scale: float
    drive_bytes: int
    size_bytes: int
    capacity_bytes: int | None

    @classmethod
    def of(cls, jobs: Iterable[Job], scale: float, drive_bytes: int) -> SmallZones | None:
        """Return the zones for a small drive of `drive_bytes`, or None if no job has zones."""
        zoned = [job for job in jobs if job.host_zones is not None]
        if not zoned or (whole := zoned[0].host_zones) is None:
            return None
        size = max(_slots(_largest(zoned)), _slots(whole.size_bytes / scale))
        capacity = whole.capacity_bytes
        if capacity is not None:
            sectors = round(capacity * size / whole.size_bytes / _SECTOR_BYTES)
            least = _largest([job for job in zoned if job.trim_pct < 100])
            capacity = min(size, max(least, sectors * _SECTOR_BYTES))
        return cls(scale, drive_bytes, size, capacity)

    def job(self, whole: Job, small: Job) -> Job:
        """Align `small`, the scaled version of the job `whole`, to the small drive's zones."""
        if small.host_zones is None:
            return small
        size = self.size_bytes
        every = self.drive_bytes // size
        first = min(int(whole.offset_bytes / self.scale) // size, every - 1)
        count = every - first
        if whole.range_bytes is not None:
            count = min(count, max(1, round(whole.range_bytes / self.scale / size)))
        zones = replace(small.host_zones, size_bytes=size, capacity_bytes=self.capacity_bytes)
        return replace(small, offset_bytes=first * size, range_bytes=count * size, host_zones=zones)


def _largest(jobs: Iterable[Job]) -> int:
    return max((size.bytes for job in jobs for size in job.all_block_sizes), default=0)


def _slots(size: float) -> int:
    return -int(-size // _SLOT_BYTES) * _SLOT_BYTES
