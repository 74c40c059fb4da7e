"""Endurance: write amplification of a workload once it is steady, and the lifetime that follows.

JESD218 rates a drive by TBW, the terabytes that may be written to it under a workload of JESD219;
that depends on write amplification, which is measured here:

    rounds   writes of the workload, half a capacity a round, from the sustained state until the
             write amplification is steady by the rule of the PTS; a simulated drive does not
             simulate time for it, because neither clock changes what is moved
    speed    the workload as fast as it goes, for the time to wear the drive out

    TBW = user capacity x rated cycles / (write amplification x wear-levelling factor)
    DWPD = TBW / (user capacity x 365 x years)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from writecliff.engines.base import DeviceIdentity
from writecliff.engines.preconditioned import RECIPES
from writecliff.errors import ConfigError, EngineError
from writecliff.procedures.campaigns.base import (
    PRICE,
    CampaignOptions,
    CampaignProcedure,
    campaign_rule,
)
from writecliff.procedures.model import End, History, Stage, Step, StepRow, TrackingVariable
from writecliff.procedures.options import QUEUE_DEPTH, SECONDS, Within, option
from writecliff.procedures.pts import ROUNDS, steady_or_rounds
from writecliff.procedures.steady import MAX_ROUNDS, WINDOW_ROUNDS
from writecliff.profiles import profile, profile_workload, volume_workload

JESD219 = "jesd219-enterprise"
SPEED = "speed"


@dataclass(frozen=True, kw_only=True)
class EnduranceOptions(CampaignOptions):
    """Options of the endurance test. None stands for the campaign's value, or for unknown."""

    profile: str = option(JESD219, "the workload (see `writecliff profile list`)")
    state: str = option("sustained", "the state that it begins in", choices=tuple(RECIPES))
    round_capacities: float | None = option(
        None,
        "user capacities written in a round",
        rule=campaign_rule(0.5),
        within=Within(0, 1000, open_low=True),
        quick=0.1,
    )
    max_rounds: int | None = option(
        None,
        "rounds after which the test gives up reaching steady state",
        rule=campaign_rule(MAX_ROUNDS),
        within=ROUNDS,
    )
    speed_seconds: float | None = option(
        None, "length of the step for the speed", rule=campaign_rule(60.0), within=SECONDS,
        quick=1.0,
    )  # fmt: skip
    queue_depth: int = option(32, "outstanding I/Os", within=QUEUE_DEPTH)
    rated_cycles: int | None = option(
        None, "rated erase cycles of the flash (default: the drive's)", within=Within(1, 1e9)
    )
    wear_levelling_factor: float = option(
        1.0, "erases of the most worn block over the average", within=Within(1, 100)
    )
    waf: float | None = option(
        None,
        "write amplification to assume where the drive does not tell what it wrote to flash",
        within=Within(0, 1e6, open_low=True),
    )
    years: float = option(5.0, "warranty, for DWPD", within=Within(0, 100, open_low=True))
    gb_per_day: float | None = option(
        None, "data written a day, for the lifetime (default: the user capacity)", within=PRICE
    )
    price: float | None = option(None, "price of the drive in dollars, for $/TBW", within=PRICE)


class Endurance(CampaignProcedure):
    """The endurance test, its options settled and checked (else ConfigError)."""

    name = "endurance"
    options_type = EnduranceOptions

    def check(self) -> None:
        found = profile(self.options.profile)
        if len(found.jobs) != 1 or found.jobs[0].read_pct == 100:
            raise ConfigError(
                f"the profile '{found.name}' wears nothing out by itself",
                hint="choose one with a single job that writes",
            )

    @property
    def read_pct(self) -> float:
        return profile(self.options.profile).jobs[0].read_pct

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        o = self.options
        cycles = o.rated_cycles or identity.rated_cycles
        return {
            **super().setup(identity),
            "precondition": RECIPES[o.state],
            "test: Workload": o.profile,
            "test: Round": f"{o.round_capacities:g} x user capacity of writes",
            "test: Rated cycles": str(cycles) if cycles else "not known",
            "test: Wear-levelling factor": f"{o.wear_levelling_factor:g}",
            "test: Warranty": f"{o.years:g} years",
            "test: Data a day": f"{o.gb_per_day:g} GB" if o.gb_per_day else "user capacity",
            "test: Price": f"${o.price:,.2f}" if o.price else "not given",
        }

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        o = self.options
        rounds = Stage(
            phase="rounds",
            title="rounds",
            steps=lambda history, number: self._round(identity, number),
            tracking=(TrackingVariable("write amplification", "WAF", self._waf),),
            ends=self._ends(),
            rounds_max=o.max_rounds,
            purge=True,
            state=self.state(identity, o.state),
        )
        speed = Stage(
            phase=SPEED,
            title="speed of the workload",
            steps=lambda history, number: self._speed(identity),
        )
        return (rounds, speed)

    def _round(self, identity: DeviceIdentity, number: int) -> Sequence[Step]:
        o = self.options
        written = o.round_capacities * identity.capacity_bytes
        load = volume_workload(
            o.profile,
            identity.capacity_bytes,
            round(written / (1 - self.read_pct / 100)),
            sector_bytes=identity.sector_bytes,
        )
        load = replace(load, jobs=(replace(load.jobs[0], queue_depth=o.queue_depth),))
        step = self.step(f"{o.profile}, round {number}", load, "rounds", number)
        return (replace(step, sample=True, untimed=True),)

    def _speed(self, identity: DeviceIdentity) -> Sequence[Step]:
        o = self.options
        load = profile_workload(
            o.profile,
            identity.capacity_bytes,
            queue_depth=o.queue_depth,
            seconds=o.speed_seconds,
            sector_bytes=identity.sector_bytes,
        )
        return (self.step(f"{o.profile} QD{o.queue_depth}", load, SPEED),)

    def _waf(self, rows: Sequence[StepRow]) -> float:
        value = rows[-1].waf if rows[-1].waf is not None else self.options.waf
        if value is None:
            raise EngineError(
                "the drive does not tell what it wrote to flash, so its write amplification "
                "cannot be measured",
                hint="give what is known of it with --waf",
            )
        return float(value)

    def _ends(self) -> tuple[End, ...]:
        return steady_or_rounds("steady write amplification", self.options.max_rounds)

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        o = self.options
        return (
            "purge the drive",
            f"prepare: {RECIPES[o.state]}",
            f"rounds of {o.round_capacities:g} x user capacity of writes of {o.profile} until the "
            f"write amplification is steady over {WINDOW_ROUNDS} of them, {o.max_rounds} at most",
            f"{o.profile} for {o.speed_seconds:g} s, for its speed",
        )

    def warnings(self, history: History) -> Sequence[str]:
        rounds = history.stages.get("rounds")
        if rounds is None or rounds.steady_at_round is not None:
            return ()
        return (f"write amplification was not steady in {rounds.rounds_done} rounds",)
