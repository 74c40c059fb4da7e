"""A simulated drive at a fraction of its size that answers as the whole drive would.

For estimates before a run, and for quick tests. How the device file shrinks is said where it does,
in `crates/ssd/src/device_file/scaled.rs`; here the load shrinks with it, and what was measured
grows again.
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
# Times and amounts of a job that shrink with the drive.
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
    """The drive of `full`, simulated `scale` times smaller and shorter. Knows nothing of the state
    that `full` is in; histograms are those of the fewer I/Os that the small drive served.
    """

    kind: Literal["sim", "fio"] = "sim"
    write_refusal = None

    def __init__(
        self, full: SimEngine, scale: float, *, largest_io_bytes: int = SLOT_BYTES
    ) -> None:
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
        """The whole drive, and how many times smaller it is simulated."""
        return self._identity

    def purge(self, on_progress: PurgeHook = unseen) -> PurgeReport:
        return self.small.purge(on_progress)

    def set_write_cache(self, enabled: bool) -> CacheReport:
        return self.small.set_write_cache(enabled)

    def run(
        self,
        workload: Workload,
        on_progress: ProgressHook | None = None,
        *,
        keep_running: bool = False,
    ) -> StepResult:
        result = self.small.run(self.shrunk(workload), self.hook(on_progress))
        return self._grown(result, workload)

    def speed_limit(self, workload: Workload) -> float | None:
        """Not known: an estimate by pilots says more."""
        return None

    def stop_load(self) -> None:
        self.small.stop_load()

    def precondition(
        self, workload: Workload, on_progress: ProgressHook | None = None
    ) -> StepResult:
        result = self.small.precondition(self.shrunk(workload), self.hook(on_progress))
        return self._grown(result, workload)

    def counters(self) -> Counters:
        return self.small.counters().scaled(self.scale)

    def health(self) -> Mapping[str, object] | None:
        return {"source": f"drive simulated at 1/{self.scale:g} of its capacity", **self.counters()}

    def power_states(self, *, settle: bool = False) -> PowerStates | None:
        return self.small.power_states()

    def log_events(self) -> None:
        self.small.log_events()

    def save(self, path: Path) -> bool:
        """Write the state of the small drive, which no drive of another size takes."""
        return self.small.save(path)

    def restore(self, path: Path) -> None:
        """Go back to a saved state of the same drive at the same scale. Raises ConfigError."""
        self.small.restore(path)

    def least_scale(self) -> float:
        return 1.0

    def scales(self) -> Sequence[float]:
        """The scales of the whole drive that are larger."""
        return [scale for scale in self._full.scales() if scale > self.scale]

    def scaled(self, scale: float, *, largest_io_bytes: int) -> ScaledEngine:
        """The whole drive at `scale`. Raises ConfigError: not possible."""
        return ScaledEngine(self._full, scale, largest_io_bytes=largest_io_bytes)

    def close(self) -> None:
        self.small.close()

    # -- the way in -------------------------------------------------------------------------

    def shrunk(self, workload: Workload) -> Workload:
        """The load as the small drive gets it."""
        zones = SmallZones.of(workload.jobs, self.scale, self._capacity_bytes)
        return replace(
            workload,
            jobs=tuple(self._shrunk_job(job, zones) for job in workload.jobs),
            interval_ns=max(1, round(workload.interval_ns / self.scale)),
        )

    def _shrunk_job(self, job: Job, zones: SmallZones | None) -> Job:
        own = [one.align_bytes or 0 for one in (job.writes, job.trims) if one]
        aligns = [job.align_bytes or 0, *own]
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
        """Return the addresses of a scaled job. Zipf keeps the ranks of the whole drive, because
        fewer ranks would be less skewed.
        """
        addresses = job.addresses
        if addresses.kind != "zipf" or addresses.generator != "exact" or addresses.ranks:
            return addresses
        whole = job.range_bytes or self._identity.capacity_bytes - job.offset_bytes
        active = job.segments.amount_bytes if job.segments else whole
        unit = job.align_bytes or min(size.bytes for size in job.all_block_sizes)
        return replace(addresses, ranks=max(1, active // unit))

    def _segments(self, segments: Segments | None, largest: int) -> Segments | None:
        """Fewer ones of the same length, so that blocks fit into them as often."""
        if segments is None:
            return None
        length = segments.amount_bytes / segments.count
        count = max(1, round(segments.count / self.scale))
        amount = max(largest, round(length * count / SECTOR_BYTES) * SECTOR_BYTES)
        return Segments(count, amount, segments.seed)

    def _count(self, value: int | None) -> Any:
        """Zero and None stay as they are, all else at least one."""
        return max(1, round(value / self.scale)) if value else value

    def _start(self, value: int, block: int) -> int:
        """In whole blocks: sequential I/Os of the small drive are aligned to them too."""
        return int(value / self.scale) // block * block

    def _size(self, value: int, unit: int) -> int:
        """In whole units, with what is left over, so that I/Os are aligned as they were."""
        return round(value / self.scale / unit) * unit + value % unit

    # -- the way out ------------------------------------------------------------------------

    def hook(self, on_progress: ProgressHook | None) -> ProgressHook | None:
        """What shows the progress of the small drive as that of the whole one."""
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
        """What is outstanding when a duration ends takes as long on the whole drive as on the small
        one: that part is not scaled.
        """
        if any(job.duration_ns is None for job in workload.jobs) or not result.elapsed_ns:
            return round(result.elapsed_ns * self.scale)
        after_ns = result.elapsed_ns - _asked_ns(self.shrunk(workload))
        if after_ns < 0:  # another end came first
            return round(result.elapsed_ns * self.scale)
        return _asked_ns(workload) + after_ns


def _asked_ns(workload: Workload) -> int:
    """When the last job stops issuing, by its duration."""
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

# Host zones on a scaled drive: zones shrink with the drive down to one block, then their number
# shrinks.

_SECTOR_BYTES = 512
_SLOT_BYTES = 4096


@dataclass(frozen=True)
class SmallZones:
    """The zones of all jobs of a workload on the small drive."""

    scale: float
    drive_bytes: int
    size_bytes: int
    capacity_bytes: int | None

    @classmethod
    def of(cls, jobs: Iterable[Job], scale: float, drive_bytes: int) -> SmallZones | None:
        """Those of a drive of `drive_bytes`; None if the jobs have no zones."""
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
        """`small`, the job that became of `whole`, in whole zones of the small drive."""
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
