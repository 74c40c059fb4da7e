"""WSAT, the write saturation test: random 4 KiB writes from purge until the drive is saturated.

Editions PTS-C (client) and PTS-E (enterprise) of the SNIA Solid State Storage Performance Test
Specification. There is no preconditioning: the saturation is the result. One framework round is a
group of one-minute steps whose last one is the steady-state sample, so that samples are 30 minutes
apart. A run ends at the first of the enabled ends:

    steady     five consecutive samples meet the steady-state rule (PTS 2.0.2 section 2.1.24)
    capacity   four times the user capacity has been written
    time       24 h of device time (revision 1.x), 6 h (revision 2.0)

All three are on in both editions; the standard lets the operator choose and wants the choice
reported. The steady-state figures are computed at every sample even when `steady` is off.

Revision 2.0 has optional stimuli in place of the random 4 KiB writes; see `wsat_stimuli.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError
from writecliff.procedures import wsat_plan
from writecliff.procedures.model import End, History, Plan, Stage, Step, StepRow, TrackingVariable
from writecliff.procedures.options import (
    HOURS,
    MINUTES,
    QD_BY_EDITION,
    SECONDS,
    TC_BY_EDITION,
    Rule,
    Within,
    option,
    queue_depth_option,
    required_option,
    step_option,
    threads_option,
)
from writecliff.procedures.periods import round_steps
from writecliff.procedures.pts import (
    PtsOptions,
    PtsProcedure,
    max_rounds_option,
    mix_text,
    toio_text,
)
from writecliff.procedures.steady import WINDOW_ROUNDS
from writecliff.procedures.wsat_stimuli import DEFAULT, STIMULI, Stimulus, job_of
from writecliff.workload.model import SECOND_NS

END_NAMES = ("steady", "capacity", "time")
CLAUSE = "PTS WSAT"
FOB_DRIVE_FILLS = (
    2.0  # fresh-out-of-box behaviour lasts until about here (SNIA primer, 2013, fn. 3)
)


@dataclass(frozen=True, kw_only=True)
class WsatOptions(PtsOptions):
    """Options of WSAT. None stands for the value of the edition."""

    end: tuple[str, ...] = option(
        END_NAMES, "what may end the run; the first one reached does", choices=END_NAMES
    )
    stimulus: str = option(
        DEFAULT,
        "the load; revision 2.0 has all but the first as options",
        rule=Rule({"1.x": DEFAULT}, "required", CLAUSE),
        choices=tuple(STIMULI),
    )
    threads: int | None = threads_option(CLAUSE, TC_BY_EDITION)
    queue_depth: int | None = queue_depth_option(CLAUSE, QD_BY_EDITION)
    sample_seconds: float | None = step_option(CLAUSE)
    round_minutes: float | None = required_option(
        CLAUSE, {"*": 31.0}, "minutes from sample to sample", within=MINUTES, quick=0.1
    )
    time_hours: float | None = required_option(
        CLAUSE, {"1.x": 24.0, "2.0": 6.0}, "device time of the end 'time'", within=HOURS
    )
    drive_fills: float | None = required_option(
        CLAUSE,
        {"*": 4.0},
        "user capacities of the end 'capacity'",
        within=Within(0, 1e5, open_low=True),  # no more than wears any drive out
    )
    max_rounds: int | None = max_rounds_option(
        "rounds after which a run that only 'steady' may end gives up"
    )
    histogram: bool | None = required_option(
        CLAUSE, {"2.0": True}, "response-time histogram of 20 minutes at the end"
    )
    histogram_seconds: float | None = required_option(
        CLAUSE, {"*": 1200.0}, "length of the histogram step", within=SECONDS, quick=10.0
    )


class Wsat(PtsProcedure):
    """The write saturation test, its options settled and checked (else ConfigError)."""

    name = "wsat"
    subtitle = STIMULI[DEFAULT].subtitle
    options_type = WsatOptions

    def check(self) -> None:
        o = self.options
        if not o.end:
            raise ConfigError("nothing ends the run", hint="give --end steady, capacity or time")
        steps = o.round_minutes * 60 / o.sample_seconds
        if abs(steps - round(steps)) > 1e-9 or steps < 1:
            nearest = max(1, round(steps)) * o.sample_seconds / 60
            raise ConfigError(
                f"a round of {o.round_minutes:g} min is no whole number of samples "
                f"of {o.sample_seconds:g} s",
                hint=f"the nearest round is {nearest:g} min",
            )

    @property
    def stimulus(self) -> Stimulus:
        return STIMULI[self.options.stimulus]

    @property
    def steps_per_round(self) -> int:
        steps: float = self.options.round_minutes * 60 / self.options.sample_seconds
        return round(steps)

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        o = self.options
        ends = {end.name: end.text for end in self.ends(identity)}
        found = {
            **super().setup(identity),
            "subtitle": self.stimulus.subtitle,
            "test_stimulus": self.stimulus.text,
            "load": self.stimulus.words,
            "rw_mix": mix_text(self.stimulus.read_pct),
            "toio": toio_text(o.threads, o.queue_depth),
            "round": f"{o.round_minutes:g} min, last {o.sample_seconds:g} s is the sample",
            "ends": "; ".join(ends.values()),
        }
        return {**found, **({"load_note": note} if (note := self.stimulus.disclosure) else {})}

    def _step(
        self,
        identity: DeviceIdentity,
        name: str,
        seconds: float,
        *place: object,
        sample: bool = False,
    ) -> Step:
        o = self.options
        job = job_of(
            self.stimulus,
            self,
            identity,
            threads=o.threads,
            queue_depth=o.queue_depth,
            seconds=seconds,
        )
        return Step(name, self.workload(name, job, *place), sample)

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        rounds = Stage(
            phase="rounds",
            title="rounds",
            steps=lambda history, number: self._round(identity, number),
            tracking=(TrackingVariable(f"{self.stimulus.text} IOPS", "IOPS", _last_iops),),
            ends=self.ends(identity),
            rounds_max=self.options.max_rounds,
            purge=True,
        )
        if not self.options.histogram:
            return (rounds,)
        histogram = Stage(
            phase="rth",
            title="response-time histogram",
            steps=lambda history, number: self._histogram(identity),
        )
        return (rounds, histogram)

    def _round(self, identity: DeviceIdentity, round_number: int) -> Sequence[Step]:
        seconds, count = self.options.sample_seconds, self.steps_per_round

        def step(name: str, number: int) -> Step:
            return self._step(identity, name, seconds, round_number, number, sample=number == count)

        return round_steps(round_number, count, seconds, step)

    def ends(self, identity: DeviceIdentity) -> Sequence[End]:
        o = self.options
        # Half a sample of slack: steps of a real drive last a few ms more or less than asked for.
        whole_s = wsat_plan.whole_steps_s(o.time_hours * 3600, o.sample_seconds)
        limit_ns = round((whole_s - o.sample_seconds / 2) * SECOND_NS)
        limit_bytes = o.drive_fills * identity.capacity_bytes
        possible = {
            "steady": End(
                "steady",
                f"steady state over {WINDOW_ROUNDS} rounds",
                lambda h: h.steady_at_round is not None,
                per_round=True,
            ),
            "capacity": End(
                "capacity",
                f"{o.drive_fills:g} x user capacity written",
                lambda h: h.host_write_bytes_total >= limit_bytes,
                fraction=lambda h: h.host_write_bytes_total / limit_bytes,
            ),
            "time": End(
                "time",
                f"{o.time_hours:g} h of writes",
                lambda h: h.elapsed_ns >= limit_ns,
                fraction=lambda h: h.elapsed_ns / limit_ns,
            ),
        }
        chosen = [possible[name] for name in END_NAMES if name in o.end]
        if o.end == ("steady",):
            # Nothing else bounds the run, so the standard's 25 rounds do.
            chosen.append(
                End(
                    "rounds",
                    f"{o.max_rounds} rounds without steady state",
                    lambda h: h.rounds_done >= o.max_rounds,
                    per_round=True,
                    fraction=lambda h: len(h.rows) / (o.max_rounds * self.steps_per_round),
                )
            )
        return chosen

    def _histogram(self, identity: DeviceIdentity) -> Sequence[Step]:
        return (
            self._step(
                identity, "response-time histogram", self.options.histogram_seconds, "histogram"
            ),
        )

    def warnings(self, history: History) -> tuple[str, ...]:
        rounds = history.stages["rounds"]
        if rounds.steady_at_round is None:
            return ("steady state was not reached",) if "steady" in self.options.end else ()
        rows = rounds.round_rows(rounds.steady_at_round - WINDOW_ROUNDS + 1)
        fills = rows[-1].drive_fills if rows else 0.0
        if fills < FOB_DRIVE_FILLS:
            return (
                f"the measurement window begins after {fills:.2f} drive fills: a drive is seldom "
                f"past its fresh-out-of-box state before {FOB_DRIVE_FILLS:g}; "
                "see `--end capacity`",
            )
        return ()

    def plan(self, identity: DeviceIdentity) -> Plan:
        return wsat_plan.plan(self, identity)

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        return wsat_plan.phases(self, identity)


def _last_iops(rows: Sequence[StepRow]) -> float:
    return rows[-1].iops
