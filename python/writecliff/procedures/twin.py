"""The measurements that a drive's twin is created from.

The measurements are a purge, bursts on the new drive, a sequential fill, reads, random overwrites
(the write cliff), mixes and writes, and a burst after an idle period. If `gentle` is set, the drive
is only read in its current state. A simulated drive is filled first, because reads of unwritten
addresses would not access the flash.

The overwrite volume is limited by time. The volume is measured, and the fit writes the same volume
to the simulated drive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from writecliff import units
from writecliff.engines.base import DeviceIdentity
from writecliff.engines.preconditioned import recipe
from writecliff.errors import ConfigError
from writecliff.procedures.bounds import interface_bytes_per_s
from writecliff.procedures.model import History, Plan, Stage, Step, step_seed
from writecliff.procedures.twin_loads import (
    FILL_BYTES,
    FILL_DEPTH,
    FRESH,
    HELD_OUT_RULE,
    OVERWRITE_BYTES,
    OVERWRITE_DEPTH,
    MeasuredLoad,
    read_loads,
    write_loads,
)
from writecliff.procedures.user_load import UserLoadProcedure
from writecliff.workload.model import SECOND_NS, BlockSize, Job, Pattern, Workload

FRESH_PHASE, FILL_PHASE, READS_PHASE = "fresh", "fill", "reads"
OVERWRITE_PHASE, WRITES_PHASE, REST_PHASE = "overwrite", "writes", "rest"
PARTS = 16  # Number of overwrite steps.
OVERWRITTEN_SHARE = 2.0  # Maximum overwrite volume, in capacities.
LEAST_FILL_BYTES_PER_S = 200e6  # Sequential speed that fills a drive in the planned time.
BURST_S = 1.0
SETTLING_S = 5.0
_POINTS = 400  # Number of intervals in a series at the link speed.
# Interval lengths on simulated and real drives; fio reports once per second.
_SHORTEST_NS, _REAL_NS = 10_000_000, SECOND_NS


@dataclass(frozen=True, kw_only=True)
class Twin(UserLoadProcedure):
    """The measurements of `writecliff twin`.

    `seconds` is the duration of each load, `overwrite_minutes` the time limit of the overwrites,
    and `rest_s` the idle time before the last burst.
    """

    name = "twin"
    gentle: bool = False
    seconds: float = 10.0
    overwrite_minutes: float = 25.0
    rest_s: float = 60.0
    no_purge: bool = False
    seed: int = 1

    def __post_init__(self) -> None:
        """Raise ConfigError if a duration is out of range."""
        for name, low, high in (
            ("seconds", 0.05, 600.0), ("overwrite_minutes", 0.01, 1440.0), ("rest_s", 0.0, 3600.0)
        ):  # fmt: skip
            if not low <= getattr(self, name) <= high:
                raise ConfigError(
                    f"{name.replace('_', ' ')} must be {low:g} to {high:g}, "
                    f"not {getattr(self, name):g}"
                )

    @property
    def command(self) -> Sequence[str]:
        """The command that measures a drive."""
        return ("writecliff", "twin")

    @property
    def title(self) -> str:
        """The title in reports."""
        return "Measurements for a Twin"

    @property
    def purges(self) -> bool:
        """`False` if --no-purge is set."""
        return not self.no_purge

    @property
    def active_range_pct(self) -> float | None:
        """Percentage of the drive, which is always 100."""
        return 100.0

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Return the disclosed parameters (load count and duration, and held-out loads)."""
        loads = self.loads(identity)
        return {
            "subtitle": "Measurements for a Twin",
            "data_pattern": "RND",
            "active_range": "100%",
            "ar_segments": "N/A",
            "precondition": "None" if self.gentle else "by part",
            "test: Loads": str(len(loads)),
            "test: Kept aside": str(sum(load.held_out for load in loads)),
            "test: Rule": HELD_OUT_RULE,
            "test: Each": f"{self.seconds:g} s",
            "test: Writes": "no" if self.gentle else "yes",
        }

    def loads(self, identity: DeviceIdentity) -> Sequence[MeasuredLoad]:
        """Return all measured loads, in order."""
        reads = read_loads(identity)
        return reads if self.gentle else [*FRESH, *reads, *write_loads()]

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return the measurements in order, or only reads if `gentle` is set."""
        reads = [self._step(load, READS_PHASE) for load in read_loads(identity)]
        if self.gentle:
            more: dict[str, Any] = {}
            if identity.simulated:
                more = {"purge": True, "state": recipe("fill", identity.capacity_bytes)}
            return [Stage.once(READS_PHASE, "reads", reads, **more)]
        capacity = identity.capacity_bytes
        bursts = [self._step(load, FRESH_PHASE, BURST_S) for load in FRESH]
        writes = [self._step(load, WRITES_PHASE) for load in write_loads()]
        return [
            Stage.once(FRESH_PHASE, "bursts on the purged drive", bursts, purge=True),
            Stage.once(FILL_PHASE, "fill in order", [self._fill(identity, capacity)], purge=True),
            Stage.once(READS_PHASE, "reads", [self._settling(), *reads]),
            Stage.once(OVERWRITE_PHASE, "random overwrites", self._overwrites(identity)),
            Stage.once(WRITES_PHASE, "mixes and writes", writes),
            Stage.once(REST_PHASE, "a burst after a rest", [self._rest(identity)]),
        ]

    def _step(self, load: MeasuredLoad, phase: str, seconds: float | None = None) -> Step:
        length = self.seconds if seconds is None else min(seconds, self.seconds)
        seed = step_seed(self.seed, self.name, phase, load.label)
        job = load.job(length)
        return Step(load.label, Workload(load.label, (job,), seed=seed), sample=True)

    def _settling(self) -> Step:
        """Return reads during which the drive completes work left over from the fill."""
        load = Job(name="twin", read_pct=100.0).with_duration_s(min(SETTLING_S, 2 * self.seconds))
        seed = step_seed(self.seed, self.name, READS_PHASE, "settling")
        return Step("settling", Workload("settling", (load,), seed=seed))

    def _fill(self, identity: DeviceIdentity, capacity: int) -> Step:
        job = _written("sequential", FILL_BYTES, FILL_DEPTH, capacity // FILL_BYTES * FILL_BYTES)
        return self._series(identity, "fill", job, FILL_PHASE)

    def _overwrites(self, identity: DeviceIdentity) -> list[Step]:
        part = int(identity.capacity_bytes * OVERWRITTEN_SHARE / PARTS)
        length_ns = round(self.overwrite_minutes * 60 * SECOND_NS / PARTS)
        job = _written("random", OVERWRITE_BYTES, OVERWRITE_DEPTH, part // 4096 * 4096)
        job = replace(job, duration_ns=length_ns)
        return [
            self._series(identity, f"overwrites, part {number}", job, OVERWRITE_PHASE, number)
            for number in range(1, PARTS + 1)
        ]

    def _rest(self, identity: DeviceIdentity) -> Step:
        """Return sequential writes after an idle period, when a drive may fold its cache."""
        job = _written("sequential", FILL_BYTES, FILL_DEPTH, 0).with_duration_s(self.seconds)
        job = replace(job, start_delay_ns=round(self.rest_s * SECOND_NS))
        return self._series(identity, f"burst after {self.rest_s:g} s", job, REST_PHASE)

    def _series(
        self, identity: DeviceIdentity, name: str, job: Job, phase: str, number: int = 1
    ) -> Step:
        """Return a step with a series of intervals short enough to show the end of an SLC cache."""
        interval_ns = _REAL_NS
        if identity.simulated:
            shortest_s = identity.capacity_bytes / interface_bytes_per_s(identity.interface)
            interval_ns = round(shortest_s / _POINTS * SECOND_NS)
            # Series require a multiple of the shortest interval.
            interval_ns = max(_SHORTEST_NS, interval_ns // _SHORTEST_NS * _SHORTEST_NS)
        seed = step_seed(self.seed, self.name, phase, number)
        load = Workload(name, (job,), seed=seed, interval_ns=min(interval_ns, _REAL_NS))
        return Step(name, load, sample=True)

    def plan(
        self,
        identity: DeviceIdentity,
        speed_limit: Callable[[Workload], float | None] | None = None,
    ) -> Plan:
        """Return the bounds of a run.

        The fill time is estimated for a drive that writes `LEAST_FILL_BYTES_PER_S` sequentially.
        """
        plan = super().plan(identity, speed_limit)
        if self.gentle:
            return plan
        fill_s = identity.capacity_bytes / LEAST_FILL_BYTES_PER_S
        least_s = identity.capacity_bytes / interface_bytes_per_s(identity.interface)
        most_s = 0.0
        for stage in self.stages(identity):
            for step in stage.steps(History(), 0):
                (job,) = step.workload.jobs
                seconds = ((job.duration_ns or 0) + job.start_delay_ns) / SECOND_NS
                most_s += fill_s if job.duration_ns is None else seconds
                least_s += 0.0 if job.volume_bytes else seconds
        low, high = (round(seconds * SECOND_NS) for seconds in (least_s, most_s))
        return replace(plan, device_time_min_ns=low, device_time_max_ns=max(low, high))

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        """Describe the parts of the run, in order."""
        reads = f"{len(read_loads(identity))} loads of reads, {self.seconds:g} s each"
        if self.gentle:
            return (f"{reads}, on the drive in its current state; nothing is written",)
        size = units.size(identity.capacity_bytes)
        return (
            "purge the drive" if self.purges else "no purge: the drive starts in its state",
            f"{len(FRESH)} bursts of writes, {min(BURST_S, self.seconds):g} s each",
            f"purge again; fill: {size} sequentially; longer than planned on a drive that writes "
            f"less than {LEAST_FILL_BYTES_PER_S / 1e6:g} MB/s",
            reads,
            f"overwrites, 4 KiB at random: {OVERWRITTEN_SHARE:g} times the capacity or "
            f"{self.overwrite_minutes:g} min, whichever comes first",
            f"{len(write_loads())} loads of mixes and writes, {self.seconds:g} s each",
            f"a rest of {self.rest_s:g} s, then sequential writes for {self.seconds:g} s",
            f"held out: {HELD_OUT_RULE}",
        )


def _written(pattern: Pattern, block_bytes: int, depth: int, volume_bytes: int) -> Job:
    return Job(
        name="twin",
        pattern=pattern,
        block_sizes=(BlockSize(block_bytes),),
        queue_depth=depth,
        volume_bytes=volume_bytes,
    )
