"""What a run will cost, before it starts: bounds on steps, device time and bytes written.

Bounds, not predictions (see `estimate.py` for those). Steps with a duration take it; steps with a
volume take at least as long as the host link needs. A stage that may end early counts its fewest
rounds below and its most rounds above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures.model import History, Plan, Procedure, Stage, Step
from writecliff.procedures.steady import WINDOW_ROUNDS
from writecliff.workload.model import SECOND_NS

SATA_BYTES_PER_S = 600e6  # 6 Gb/s with 8b/10b coding
SAS_BYTES_PER_S = 1200e6  # 12 Gb/s with 8b/10b coding, one lane
NVME_BYTES_PER_S = 16e9  # four PCIe 5.0 lanes


def interface_bytes_per_s(interface: str | None) -> float:
    """What the host link can carry at most; the fastest known one if the interface is unknown."""
    text = (interface or "").lower()
    if "sata" in text:
        return SATA_BYTES_PER_S
    if "sas" in text:
        return SAS_BYTES_PER_S
    return NVME_BYTES_PER_S


@dataclass
class _Bounds:
    """Sums over steps."""

    steps: int = 0
    seconds: float = 0.0
    write_bytes: float = 0.0

    def add(self, steps: Sequence[Step], rate: float, times: int = 1) -> None:
        self.steps += times * len(steps)
        for step in steps:
            seconds, size = _step(step, rate)
            self.seconds += times * seconds
            self.write_bytes += times * size


def _step(step: Step, rate: float) -> tuple[float, float]:
    """(seconds, most bytes written) of a step on a link of `rate` bytes a second."""
    seconds = 0.0
    volume = 0.0
    for job in step.workload.jobs:
        if job.duration_ns is not None:
            took = job.duration_ns / SECOND_NS
            busy = job.burst_ns / (job.burst_ns + job.pause_ns) if job.pause_ns else 1.0
            most = took * busy * rate
        else:
            most = float(job.volume_bytes or 0)
            took = most / rate
        seconds = max(seconds, took)
        if job.read_pct + job.trim_pct < 100:
            volume += most
    return seconds, volume


def plan_of(procedure: Procedure, identity: DeviceIdentity) -> Plan:
    """Bounds of the run of `procedure` on the drive `identity`."""
    rate = interface_bytes_per_s(identity.interface)
    low, high, bounded = _Bounds(), _Bounds(), True
    for stage in procedure.stages(identity):
        for bounds in (low, high):
            bounds.add(stage.preparation(simulated=identity.simulated), rate)
        fewest, most = _rounds(stage)
        steps = stage.steps(History(), 1 if stage.ends else 0)
        low.add(steps, rate, fewest)
        high.add(steps, rate, most or 0)
        bounded = bounded and most is not None
    return Plan(
        title=f"{procedure.title}, {procedure.edition}",
        phases=tuple(procedure.phases(identity)),
        steps_min=low.steps,
        steps_max=high.steps if bounded else None,
        device_time_min_ns=round(low.seconds * SECOND_NS),
        device_time_max_ns=None if _open_ended(procedure, identity) else _ns(high.seconds),
        write_bytes_min=0,
        write_bytes_max=math.ceil(high.write_bytes) if bounded else None,
        drive_fills_max=high.write_bytes / identity.capacity_bytes if bounded else None,
        deviations=procedure.deviations(),
    )


def _ns(seconds: float) -> int:
    return round(seconds * SECOND_NS)


def _open_ended(procedure: Procedure, identity: DeviceIdentity) -> bool:
    """Something is bounded by its volume alone: how long that takes only the drive knows."""
    stages = procedure.stages(identity)
    simulated = identity.simulated
    steps = [step for stage in stages for step in stage.preparation(simulated=simulated)]
    return any(job.duration_ns is None for step in steps for job in step.workload.jobs)


def _rounds(stage: Stage) -> tuple[int, int | None]:
    """The fewest and the most rounds of a stage."""
    if not stage.ends:
        return 1, 1
    return WINDOW_ROUNDS if stage.tracking else 1, stage.rounds_max
