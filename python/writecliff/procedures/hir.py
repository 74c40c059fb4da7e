"""HIR, host idle recovery: what a saturated drive gains from pauses of the host (PTS-E 1.1).

Purge, then rounds of 30 minutes of random 4 KiB writes until steady. Then for each of five waits:
30 minutes of writes in bursts of 5 s with the wait after each of them, and 30 minutes of writes
without any pause, in which the drive returns to its baseline. (In one published implementation the
baseline keeps the pauses; that is a mistake there.)

Bursts and pauses are the load generator's (`Job.burst_ns`): one step has many of them, so that
starting the generator does not lengthen the pauses. Sources disagree about the preconditioning:

    steady   rounds until steady; which minute of a round is the sample is an option
    36-min   36 minutes of writes, nothing tracked
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError
from writecliff.procedures.model import History, Stage, Step, StepRow, TrackingVariable
from writecliff.procedures.options import (
    MINUTES,
    QD_BY_EDITION,
    TC_BY_EDITION,
    Within,
    option,
    queue_depth_option,
    required_option,
    step_option,
    threads_option,
)
from writecliff.procedures.periods import numbered, round_steps, unit_name, whole_steps
from writecliff.procedures.pts import (
    PtsOptions,
    PtsProcedure,
    beginning,
    max_rounds_option,
    toio_text,
)
from writecliff.workload.model import SECOND_NS

CLAUSE = "PTS-E HIR"
PRECONDITION = "precondition"
WAITS_S = (5.0, 10.0, 15.0, 25.0, 50.0)


@dataclass(frozen=True, kw_only=True)
class HirOptions(PtsOptions):
    """Options of HIR. None stands for the value of the edition."""

    threads: int | None = threads_option(CLAUSE, TC_BY_EDITION)
    queue_depth: int | None = queue_depth_option(CLAUSE, QD_BY_EDITION)
    reading: str = option(
        "steady",
        "preconditioning, where sources disagree: until steady, or 36 minutes",
        choices=("steady", "36-min"),
    )
    step_seconds: float | None = step_option(CLAUSE, "length of a step of continuous writes")
    precondition_minutes: float | None = required_option(
        CLAUSE,
        {"36-min": 36.0, "*": 30.0},
        "minutes of a preconditioning round",
        within=MINUTES,
        quick=0.1,
    )
    sample: str = option(
        "last", "which step of a preconditioning round is tracked", choices=("last", "first")
    )
    max_rounds: int | None = max_rounds_option(
        "preconditioning rounds after which the test gives up reaching steady state"
    )
    waits_seconds: tuple[float, ...] | None = required_option(
        CLAUSE,
        {"*": WAITS_S},
        "pauses after each burst, in seconds, one wait state after the other",
        within=Within(0.001, 2000.0),
    )
    burst_seconds: float | None = required_option(
        CLAUSE, {"*": 5.0}, "length of a burst of writes", within=Within(0.001, 2000.0)
    )
    write_minutes: float | None = required_option(
        CLAUSE,
        {"*": 30.0},
        "minutes of writes in a wait state, and of the baseline after it",
        within=MINUTES,
        quick=0.5,
    )
    bursts_per_step: int = option(
        36, "bursts that are run without a chance to stop in between", within=Within(1, 1e6)
    )


@dataclass(frozen=True)
class BurstStep:
    """Bursts `first` to `last` (from 1) of a wait state, in one step."""

    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1


class Hir(PtsProcedure):
    """The host idle recovery test, its options settled and checked (else ConfigError)."""

    name = "hir"
    subtitle = "HIR - RND 4KiB 5s Ws / Variable Wait States"
    options_type = HirOptions

    def check(self) -> None:
        o = self.options
        if not o.waits_seconds:
            raise ConfigError("there is no wait state", hint="give --waits-seconds 5,10,15,25,50")
        whole_steps("a preconditioning round", o.precondition_minutes * 60, o.step_seconds)
        whole_steps("the baseline", o.write_minutes * 60, o.step_seconds)
        whole_steps("a wait state", o.write_minutes * 60, o.burst_seconds)

    @property
    def bursts(self) -> int:
        """Of a wait state."""
        o = self.options
        return whole_steps("a wait state", o.write_minutes * 60, o.burst_seconds)

    @property
    def burst_steps(self) -> Sequence[BurstStep]:
        size = self.options.bursts_per_step
        return [
            BurstStep(first, min(first + size - 1, self.bursts))
            for first in range(1, self.bursts + 1, size)
        ]

    def wait_state(self, wait_s: float) -> float:
        """The standard's number of a wait state: the wait in bursts."""
        return wait_s / float(self.options.burst_seconds)

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        o = self.options
        toio = toio_text(o.threads, o.queue_depth)
        rounds = f"rounds of {o.precondition_minutes:g} min until steady, {o.sample} is the sample"
        fixed = f"{o.precondition_minutes:g} min"
        waits = ",".join(f"{wait:g}" for wait in o.waits_seconds)
        return {
            **super().setup(identity),
            "subtitle": f"HIR - RND 4KiB {o.burst_seconds:g}s Ws / Variable Wait States",
            "precondition": "RND 4KiB W",
            "precondition_toio": toio,
            "precondition_duration": rounds if o.reading == "steady" else fixed,
            "test_stimulus": "RND 4KiB W",
            "rw_mix": "0/100",
            "block_sizes": "4KiB",
            "toio": toio,
            "write_duration": f"{o.burst_seconds:g} s",
            "idle_state": "Host Idle",
            "idle_durations": f"{waits} s",
            "wait_states": ",".join(f"{self.wait_state(wait):g}" for wait in o.waits_seconds),
        }

    # -- the parts of the test --------------------------------------------------------------

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        parts = [self._precondition_stage(identity)]
        for wait_s in self.options.waits_seconds:
            parts += [self._wait_stage(identity, wait_s), self._baseline_stage(identity, wait_s)]
        return parts

    def _precondition_stage(self, identity: DeviceIdentity) -> Stage:
        steady = self.options.reading == "steady"
        return Stage(
            phase=PRECONDITION,
            title="preconditioning rounds" if steady else "preconditioning by time",
            steps=lambda history, number: self._precondition(identity, max(number, 1)),
            tracking=(
                (TrackingVariable("RND 4KiB W IOPS", "IOPS", self._sample_iops),) if steady else ()
            ),
            ends=self.round_ends() if steady else (),
            rounds_max=self.options.max_rounds if steady else None,
            purge=True,
        )

    def _sample_iops(self, rows: Sequence[StepRow]) -> float:
        return rows[-1 if self.options.sample == "last" else 0].iops

    def _write(
        self, identity: DeviceIdentity, name: str, *place: object, sample: bool = False
    ) -> Step:
        o = self.options
        return self.cell(
            identity,
            name,
            *place,
            seconds=o.step_seconds,
            threads=o.threads,
            queue_depth=o.queue_depth,
            sample=sample,
        )

    def _precondition(self, identity: DeviceIdentity, round_number: int) -> Sequence[Step]:
        o = self.options
        count = whole_steps("a round", o.precondition_minutes * 60, o.step_seconds)
        sample = count if o.sample == "last" else 1

        def step(name: str, number: int) -> Step:
            place = (PRECONDITION, round_number, number)
            return self._write(identity, name, *place, sample=number == sample)

        return round_steps(round_number, count, o.step_seconds, step)

    def _wait_stage(self, identity: DeviceIdentity, wait_s: float) -> Stage:
        return Stage(
            phase=wait_phase(wait_s),
            title=f"bursts with pauses of {wait_s:g} s",
            steps=lambda history, number: [
                self._bursts(identity, wait_s, part) for part in self.burst_steps
            ],
        )

    def _bursts(self, identity: DeviceIdentity, wait_s: float, part: BurstStep) -> Step:
        o = self.options
        step = self.cell(
            identity,
            f"bursts {part.first}-{part.last}",
            wait_phase(wait_s),
            part.first,
            seconds=part.count * (o.burst_seconds + wait_s),
            threads=o.threads,
            queue_depth=o.queue_depth,
        )
        (job,) = step.workload.jobs
        paused = replace(
            job,
            burst_ns=round(o.burst_seconds * SECOND_NS),
            pause_ns=round(wait_s * SECOND_NS),
        )
        return replace(step, workload=replace(step.workload, jobs=(paused,)))

    def _baseline_stage(self, identity: DeviceIdentity, wait_s: float) -> Stage:
        o, phase = self.options, baseline_phase(wait_s)
        count = whole_steps("the baseline", o.write_minutes * 60, o.step_seconds)
        unit = unit_name(o.step_seconds)
        return Stage(
            phase=phase,
            title=f"return to baseline after pauses of {wait_s:g} s",
            steps=lambda history, number: numbered(
                count, lambda n: self._write(identity, f"{unit} {n}", phase, n)
            ),
        )

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        o = self.options
        toio = toio_text(o.threads, o.queue_depth)
        waits = ", ".join(f"{wait:g}" for wait in o.waits_seconds)
        until = (
            f"in rounds of {o.precondition_minutes:g} min until steady state, "
            f"{o.max_rounds} at most"
            if o.reading == "steady"
            else f"for {o.precondition_minutes:g} min"
        )
        return (
            *beginning(o),
            f"preconditioning: RND 4KiB writes at {toio} {until}",
            f"for each wait of {waits} s: {self.bursts} bursts of {o.burst_seconds:g} s, the wait "
            f"after each of them, then {o.write_minutes:g} min of writes without a pause",
        )

    def warnings(self, history: History) -> tuple[str, ...]:
        return super().warnings(history) if self.options.reading == "steady" else ()


def wait_phase(wait_s: float) -> str:
    """As the store names the bursts of a wait: "wait-5"."""
    return f"wait-{wait_s:g}"


def baseline_phase(wait_s: float) -> str:
    """As the store names the writes after a wait: "baseline-5"."""
    return f"baseline-{wait_s:g}"
