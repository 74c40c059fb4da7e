"""Bounds on what a run will cost, before it starts: steps, device time and bytes written.

Bounds, not predictions (see `estimate.py` for those). Steps with a duration take it; steps with a
volume take at least as long as the host link needs. A stage that may end early counts its fewest
rounds below and its most rounds above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures.model import Bounds, History, Plan, Procedure, Stage, Step
from writecliff.procedures.steady import WINDOW_ROUNDS
from writecliff.workload.model import SECOND_NS

SATA_BYTES_PER_S = 600e6  # 6 Gb/s with 8b/10b coding
SAS_BYTES_PER_S = 1200e6  # 12 Gb/s with 8b/10b coding, one lane
NVME_BYTES_PER_S = 16e9  # four PCIe 5.0 lanes


def interface_bytes_per_s(interface: str | None) -> float:
    """The most that the host link can carry; the fastest known link for an unknown interface."""
    text = (interface or "").lower()
    if "sata" in text:
        return SATA_BYTES_PER_S
    if "sas" in text:
        return SAS_BYTES_PER_S
    return NVME_BYTES_PER_S


def plan_of(procedure: Procedure, identity: DeviceIdentity) -> Plan:
    """Bounds of the run of `procedure` on the drive `identity`."""
    rate = interface_bytes_per_s(identity.interface)
    low = high = Bounds()
    for stage in procedure.stages(identity):
        prepare = stage.preparation(simulated=identity.simulated)
        least, most = _of_stage(stage, rate)
        low, high = low + _of(prepare, rate) + least, high + _of(prepare, rate) + most
        if any(job.duration_ns is None for step in prepare for job in step.workload.jobs):
            high += Bounds(seconds=None)  # only the drive knows how long a volume takes
    written = high.write_bytes
    return Plan(
        title=f"{procedure.title}, {procedure.edition}",
        phases=tuple(procedure.phases(identity)),
        steps_min=low.steps or 0,
        steps_max=high.steps,
        device_time_min_ns=round((low.seconds or 0.0) * SECOND_NS),
        device_time_max_ns=None if high.seconds is None else round(high.seconds * SECOND_NS),
        write_bytes_min=0,
        write_bytes_max=None if written is None else math.ceil(written),
        drive_fills_max=None if written is None else written / identity.capacity_bytes,
        deviations=procedure.deviations(),
    )


def _of_stage(stage: Stage, rate: float) -> tuple[Bounds, Bounds]:
    """Least and most of the rounds, or of the one pass, of a stage."""
    if stage.bounds is not None:
        return stage.bounds(rate)
    once = _of(stage.steps(History(), 1 if stage.ends else 0), rate)
    if not stage.ends:
        return once, once
    return once * (WINDOW_ROUNDS if stage.tracking else 1), once * stage.rounds_max


def _of(steps: Sequence[Step], rate: float) -> Bounds:
    """Seconds, and the most bytes written, of steps on a link of `rate` bytes a second."""
    seconds_in_all = written = 0.0
    for step in steps:
        seconds = 0.0
        for job in step.workload.jobs:
            if job.duration_ns is not None:
                took = job.duration_ns / SECOND_NS
                busy = job.burst_ns / (job.burst_ns + job.pause_ns) if job.pause_ns else 1.0
                most = took * busy * rate
            else:
                most = float(job.volume_bytes or 0)
                took = most / rate
            seconds = max(seconds, took)
            written += most if job.read_pct + job.trim_pct < 100 else 0.0
        seconds_in_all += seconds
    return Bounds(len(steps), seconds_in_all, written)
