"""Bounds on a run's steps, device time and bytes written, determined before the run.

The figures are bounds, not predictions (`estimate.py` makes predictions). A timed step takes
exactly its duration, and a step with a given volume takes at least as long as the host link needs
to transfer the volume. Within its duration, a step writes at most as much as the drive, the link
and the rates of its jobs allow. A stage that may stop early counts its minimum number of rounds in
the lower bound, and its maximum in the upper bound.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures.model import Bounds, History, Plan, Procedure, Stage, Step
from writecliff.procedures.steady import WINDOW_ROUNDS
from writecliff.workload.model import SECOND_NS, Job, Workload

# Assumed rate of a link with unknown speed: that of the fastest link of its type.
SATA_BYTES_PER_S = 600e6  # Link rate of 6 Gb/s with 8b/10b encoding.
SAS_BYTES_PER_S = 2400e6  # Link rate of one 22.5 Gb/s lane with 128b/150b encoding.
NVME_BYTES_PER_S = 16e9  # Rate of four PCIe 5.0 lanes.
# The fraction of writes is an average over all I/Os, so a short step may have slightly more writes.
MIX_SLACK = 1.05

_SERIAL = re.compile(r"(\d+(?:\.\d+)?)\s*Gb/s")
_PCIE = re.compile(r"(\d+(?:\.\d+)?)\s*GT/s x(\d+)|PCIe (\d)\.\d x(\d+)")
_PCIE_GT_PER_S = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}


def interface_bytes_per_s(interface: str | None) -> float:
    """Return the maximum throughput of the host link; unknown links count as the fastest."""
    text = interface or ""
    if match := _PCIE.search(text):
        transfers = float(match[1]) if match[1] else _PCIE_GT_PER_S.get(int(match[3]), 64.0)
        lanes = int(match[2] or match[4])
        coding = 0.8 if transfers < 8 else 128 / 130
        return transfers * 1e9 * lanes * coding / 8
    if "sata" in text.lower() or "sas" in text.lower():
        if match := _SERIAL.search(text):
            # The link uses 8b/10b encoding. Lanes at 22.5 Gb/s report 12 or 24.
            return float(match[1]) * 1e9 / 10
        return SATA_BYTES_PER_S if "sata" in text.lower() else SAS_BYTES_PER_S
    return NVME_BYTES_PER_S


class Speeds:
    """Maximum throughput of loads on a drive. `limit` returns the engine's estimate in bytes/s."""

    def __init__(
        self, interface: str | None, limit: Callable[[Workload], float | None] | None = None
    ) -> None:
        """Set the limits, where `limit` returns `None` if the drive's limit is unknown."""
        self.link = interface_bytes_per_s(interface)
        self._limit = limit
        self.measured = False

    def of(self, workload: Workload) -> float:
        """Return the maximum combined throughput of all jobs, ignoring their rates."""
        limit = None if self._limit is None else self._limit(workload)
        self.measured = self.measured or limit is not None
        return self.link if limit is None else min(limit, self.link)

    def writes(self, workload: Workload) -> float:
        """Return the maximum write throughput; for jobs with pauses, the maximum during bursts."""
        shares = [(job, _write_share(job)) for job in workload.jobs]
        if not any(share for _, share in shares):
            return 0.0
        speed = self.of(workload)
        each = (share * min(speed, _rate_bytes_per_s(job)) for job, share in shares)
        return min(speed, sum(each))


def _write_share(job: Job) -> float:
    share = max(0.0, 100 - job.read_pct - job.trim_pct) / 100
    return min(1.0, share * MIX_SLACK)


def _rate_bytes_per_s(job: Job) -> float:
    """Return the throughput allowed by a job's rate. A Poisson process may briefly exceed it."""
    rate = math.inf
    if job.rate_bytes_per_s is not None:
        rate = job.rate_bytes_per_s
    elif job.rate_iops is not None:
        total = sum(size.weight for size in job.block_sizes)
        rate = job.rate_iops * sum(size.bytes * size.weight for size in job.block_sizes) / total
    return rate * (1.1 if job.arrival == "poisson" else 1.01)


def plan_of(
    procedure: Procedure,
    identity: DeviceIdentity,
    limit: Callable[[Workload], float | None] | None = None,
) -> Plan:
    """Return bounds for a run of `procedure` on the drive; `limit` is as in `Speeds`."""
    low, high = _of_procedure(procedure, identity, Speeds(identity.interface))
    written, likely = high.write_bytes, None
    if limit is not None:
        speeds = Speeds(identity.interface, limit)
        _, most = _of_procedure(procedure, identity, speeds)
        likely = most.write_bytes if speeds.measured else None
    return Plan(
        title=", ".join(filter(None, (procedure.title, procedure.edition))),
        phases=tuple(procedure.phases(identity)),
        steps_min=low.steps or 0,
        steps_max=high.steps,
        device_time_min_ns=round((low.seconds or 0.0) * SECOND_NS),
        device_time_max_ns=None if high.seconds is None else round(high.seconds * SECOND_NS),
        write_bytes_min=0,
        write_bytes_max=None if written is None else math.ceil(written),
        drive_fills_max=None if written is None else written / identity.capacity_bytes,
        deviations=procedure.deviations(),
        write_bytes_likely=None if likely is None else math.ceil(likely),
    )


def _of_procedure(
    procedure: Procedure, identity: DeviceIdentity, speeds: Speeds
) -> tuple[Bounds, Bounds]:
    """Return the lower and upper bounds of all stages."""
    low = high = Bounds()
    for stage in procedure.stages(identity):
        prepare = stage.preparation(simulated=identity.simulated)
        least, most = _of_stage(stage, speeds)
        before = _of(prepare, speeds)
        low, high = low + before + least, high + before + most
        if any(job.duration_ns is None for step in prepare for job in step.workload.jobs):
            # Only the drive determines the time to write a given volume.
            high += Bounds(seconds=None)
    return low, high


def _of_stage(stage: Stage, speeds: Speeds) -> tuple[Bounds, Bounds]:
    """Return the lower and upper bounds of a stage's rounds, or of its single pass."""
    if stage.bounds is not None:
        return stage.bounds(speeds)
    steps = stage.steps(History(), 1 if stage.ends else 0)
    once = most = _of(steps, speeds)
    if any(_open_ended(job) for s in steps if not s.untimed for job in s.workload.jobs):
        most = once + Bounds(seconds=None)
    if not stage.ends:
        return once, most
    return once * (WINDOW_ROUNDS if stage.tracking else 1), most * stage.rounds_max


def _open_ended(job: Job) -> bool:
    """Return `True` if the drive determines a job's duration (single I/Os are negligible)."""
    return job.duration_ns is None and job.ios != 1


def _of(steps: Sequence[Step], speeds: Speeds) -> Bounds:
    """Return the duration of the steps, and the maximum bytes that they can write."""
    seconds_in_all = written = 0.0
    for step in steps:
        seconds, volume = _of_volumes(step.workload, speeds)
        timed = tuple(job for job in step.workload.jobs if job.duration_ns is not None)
        took = max((job.duration_ns or 0 for job in timed), default=0) / SECOND_NS
        delay = max(job.start_delay_ns + job.ramp_ns for job in step.workload.jobs) / SECOND_NS
        busy = max((_busy(job) for job in timed), default=0.0)
        rate = speeds.writes(replace(step.workload, jobs=timed)) if timed else 0.0
        written += volume + min(took * busy * rate, _most_written(timed))
        seconds_in_all += delay + max(seconds, took)
    return Bounds(len(steps), seconds_in_all, written)


def _most_written(jobs: Sequence[Job]) -> float:
    """Return the maximum bytes that jobs write before reaching their volumes."""
    volumes = [math.inf if job.volume_bytes is None else float(job.volume_bytes) for job in jobs]
    return sum(volumes)


def _of_volumes(workload: Workload, speeds: Speeds) -> tuple[float, float]:
    """Return (seconds, bytes written) for the jobs that stop after a volume."""
    seconds = written = 0.0
    for job in workload.jobs:
        if job.duration_ns is None:
            volume = float(_volume(job))
            seconds = max(seconds, volume / speeds.link)
            written += _write_share(job) * volume
    return seconds, written


def _volume(job: Job) -> int:
    """Return the maximum bytes transferred by a job without a duration."""
    if job.log is not None:
        return sum(job.log.lengths)
    if job.model is not None:
        return job.model.bytes * -(-(job.ios or job.model.ios) // job.model.ios)
    largest = max(size.bytes for size in job.all_block_sizes)
    ends = (job.volume_bytes, None if job.ios is None else job.ios * largest)
    return min((end for end in ends if end is not None), default=0)


def _busy(job: Job) -> float:
    return job.burst_ns / (job.burst_ns + job.pause_ns) if job.pause_ns else 1.0
