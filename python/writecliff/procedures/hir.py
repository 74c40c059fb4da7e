"""HIR, host idle recovery: how a saturated drive recovers during host pauses (PTS-E 1.1).

The drive is purged, and then written with random 4 KiB blocks in 30-minute rounds until steady.
Five wait states follow. Each consists of 30 minutes of writes in 5 s bursts that are each followed
by a pause, and then 30 minutes of writes without pauses, during which the drive returns to its
baseline. (A published implementation mistakenly pauses during the baseline as well.)

The engine generates bursts and pauses (`Job.burst_ns`), with many bursts per step. Sources disagree
about the preconditioning:

    steady: rounds until steady; an option selects the minute of a round that is the sample 36-min:
        36 minutes of writes, without a tracking variable
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from writecliff import units
from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError
from writecliff.procedures.model import Stage, Step, StepRow, TrackingVariable
from writecliff.procedures.options import MINUTES, Within, option, required_option
from writecliff.procedures.periods import numbered, round_steps, unit_name, whole_steps
from writecliff.procedures.pts import (
    QD_BY_EDITION,
    TC_BY_EDITION,
    LoadOptions,
    LoadProcedure,
    max_rounds_option,
    queue_depth_option,
    rounds_until_steady,
    step_option,
    threads_option,
)
from writecliff.procedures.sources import Choice
from writecliff.workload.model import SECOND_NS

CLAUSE = "PTS-E HIR"
PRECONDITION = "precondition"
WAITS_S = (5.0, 10.0, 15.0, 25.0, 50.0)


@dataclass(frozen=True, kw_only=True)
class HirOptions(LoadOptions):
    """Options of the HIR test. Omitted options have the edition's values."""

    threads: int = threads_option(CLAUSE, TC_BY_EDITION)
    queue_depth: int = queue_depth_option(CLAUSE, QD_BY_EDITION)
    reading: str = option(
        "steady",
        "preconditioning length, on which descriptions of the standard disagree: until steady "
        "state, or 36 minutes",
        choices=("steady", "36-min"),
    )
    step_seconds: float = step_option(
        CLAUSE, "duration of each step of continuous writes, in seconds"
    )
    precondition_minutes: float = required_option(
        CLAUSE,
        {"36-min": 36.0, "*": 30.0},
        "duration of each preconditioning round, in minutes",
        within=MINUTES,
        quick=0.1,
    )
    sample: str = option(
        "last",
        "step of each preconditioning round that is checked for steady state",
        choices=("last", "first"),
    )
    max_rounds: int = max_rounds_option(
        "maximum number of preconditioning rounds to reach steady state"
    )
    waits_seconds: tuple[float, ...] = required_option(
        CLAUSE,
        WAITS_S,
        "pause after each burst in the successive wait states, in seconds",
        within=Within(0.001, 2000.0),
    )
    burst_seconds: float = required_option(
        CLAUSE, 5.0, "duration of each write burst, in seconds", within=Within(0.001, 2000.0)
    )
    write_minutes: float = required_option(
        CLAUSE,
        30.0,
        "total write time in each wait state, and in the baseline that follows it, in minutes",
        within=MINUTES,
        quick=0.5,
    )
    bursts_per_step: int = option(
        36,
        "number of bursts per step; an interrupted run resumes at the last complete step",
        within=Within(1, 1e6),
    )


@dataclass(frozen=True)
class BurstStep:
    """Bursts `first` to `last` (counted from 1) of a wait state, which run in one step."""

    first: int
    last: int

    @property
    def count(self) -> int:
        """Number of bursts."""
        return self.last - self.first + 1


class Hir(LoadProcedure[HirOptions]):
    """The host idle recovery test. Raises ConfigError if an option is invalid."""

    name = "hir"
    subtitle = "HIR - RND 4KiB 5s Ws / Variable Wait States"
    options_type = HirOptions

    def check(self) -> None:
        """Raise ConfigError if there is no wait, or if a period is not a whole number of steps."""
        o = self.options
        if not o.waits_seconds:
            raise ConfigError(
                "--waits-seconds contains no wait state", hint="give --waits-seconds 5,10,15,25,50"
            )
        whole_steps("a preconditioning round", o.precondition_minutes * 60, o.step_seconds)
        whole_steps("the baseline", o.write_minutes * 60, o.step_seconds)
        _ = self.bursts

    @property
    def bursts(self) -> int:
        """Number of bursts in a wait state."""
        o = self.options
        return whole_steps("a wait state", o.write_minutes * 60, o.burst_seconds)

    @property
    def burst_steps(self) -> Sequence[BurstStep]:
        """Steps of a wait state, in execution order."""
        size = self.options.bursts_per_step
        return [
            BurstStep(first, min(first + size - 1, self.bursts))
            for first in range(1, self.bursts + 1, size)
        ]

    def wait_state(self, wait_s: float) -> float:
        """Return the standard's number for a wait state (the ratio of wait time to burst time)."""
        return wait_s / self.options.burst_seconds

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Return the disclosed parameters (preconditioning, bursts and wait states)."""
        o = self.options
        rounds = (
            f"rounds of {units.minutes(o.precondition_minutes)} until steady, "
            f"{o.sample} is the sample"
        )
        fixed = units.minutes(o.precondition_minutes)
        waits = ",".join(f"{wait:g}" for wait in o.waits_seconds)
        return {
            **super().setup(identity),
            "subtitle": f"HIR - RND 4KiB {o.burst_seconds:g}s Ws / Variable Wait States",
            "precondition": "RND 4KiB W",
            "precondition_toio": self.toio,
            "precondition_duration": rounds if o.reading == "steady" else fixed,
            "test_stimulus": "RND 4KiB W",
            "rw_mix": "0/100",
            "block_sizes": "4KiB",
            "toio": self.toio,
            "write_duration": f"{o.burst_seconds:g} s",
            "idle_state": "Host Idle",
            "idle_durations": f"{waits} s",
            "wait_states": ",".join(f"{self.wait_state(wait):g}" for wait in o.waits_seconds),
        }

    def choices(self) -> tuple[Choice, ...]:
        """Add the choices on preconditioning that sources disagree about."""
        o = self.options
        minutes = units.minutes(o.precondition_minutes)
        steady = o.reading == "steady"
        preconditioning = Choice(
            "preconditioning",
            "rounds of 30 minutes until steady; 36 minutes",
            f"rounds of {minutes} until steady" if steady else minutes,
            "--reading",
        )
        sample = Choice(
            "minute of a preconditioning round that is tracked", "the last; the first",
            f"the {o.sample}", "--sample",
        )  # fmt: skip
        return (*super().choices(), preconditioning, *([sample] if steady else []))

    # -- stages -----------------------------------------------------------------------------

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return the preconditioning, then the bursts and baseline for each wait."""
        parts = [self._precondition_stage(identity)]
        for wait_s in self.options.waits_seconds:
            parts += [self._wait_stage(identity, wait_s), self._baseline_stage(identity, wait_s)]
        return parts

    def _precondition_stage(self, identity: DeviceIdentity) -> Stage:
        if self.options.reading != "steady":
            title = "preconditioning by time"
            steps = self._precondition(identity, 1)
            return Stage.once(PRECONDITION, title, steps, purge=True, continuous=True)
        return rounds_until_steady(
            lambda number: self._precondition(identity, number),
            self.options.max_rounds,
            TrackingVariable("RND 4KiB W IOPS", "IOPS", self._sample_iops),
            phase=PRECONDITION,
            title="preconditioning rounds",
            purge=True,
            continuous=True,
        )

    def _sample_iops(self, rows: Sequence[StepRow]) -> float:
        return rows[-1 if self.options.sample == "last" else 0].iops

    def _precondition(self, identity: DeviceIdentity, number: int) -> Sequence[Step]:
        o = self.options

        def step(name: str, position: int) -> Step:
            seed_path = (PRECONDITION, number, position)
            return self.cell(identity, name, *seed_path, seconds=o.step_seconds)

        return round_steps(number, o.precondition_minutes, o.step_seconds, o.sample, step)

    def _wait_stage(self, identity: DeviceIdentity, wait_s: float) -> Stage:
        return Stage.once(
            wait_phase(wait_s),
            f"bursts with pauses of {wait_s:g} s",
            [self._bursts(identity, wait_s, part) for part in self.burst_steps],
        )

    def _bursts(self, identity: DeviceIdentity, wait_s: float, part: BurstStep) -> Step:
        burst_s = self.options.burst_seconds
        step = self.cell(
            identity,
            f"bursts {part.first}-{part.last}",
            wait_phase(wait_s),
            part.first,
            seconds=part.count * (burst_s + wait_s),
        )
        (job,) = step.workload.jobs
        burst_ns, pause_ns = round(burst_s * SECOND_NS), round(wait_s * SECOND_NS)
        job = replace(job, burst_ns=burst_ns, pause_ns=pause_ns)
        return replace(step, workload=replace(step.workload, jobs=(job,)))

    def _baseline_stage(self, identity: DeviceIdentity, wait_s: float) -> Stage:
        o, phase = self.options, baseline_phase(wait_s)
        unit = unit_name(o.step_seconds)
        steps = numbered(
            whole_steps("the baseline", o.write_minutes * 60, o.step_seconds),
            lambda n: self.cell(identity, f"{unit} {n}", phase, n, seconds=o.step_seconds),
        )
        title = f"return to baseline after pauses of {wait_s:g} s"
        return Stage.once(phase, title, steps, continuous=True)

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        """Describe the parts of the run, in order."""
        o = self.options
        waits = ", ".join(f"{wait:g}" for wait in o.waits_seconds)
        until = (
            f"in rounds of {units.minutes(o.precondition_minutes)} until steady state, "
            f"{o.max_rounds} at most"
            if o.reading == "steady"
            else f"for {units.minutes(o.precondition_minutes)}"
        )
        return (
            *self.beginning,
            f"preconditioning: RND 4KiB writes at {self.toio} {until}",
            f"for each wait of {waits} s: {self.bursts} bursts of {o.burst_seconds:g} s, each "
            f"followed by the wait, then {units.minutes(o.write_minutes)} of writes without pauses",
        )


def wait_phase(wait_s: float) -> str:
    """Return the stored name of a wait state's bursts, such as "wait-5"."""
    return f"wait-{wait_s:g}"


def baseline_phase(wait_s: float) -> str:
    """Return the stored name of the writes after a wait state, such as "baseline-5"."""
    return f"baseline-{wait_s:g}"
