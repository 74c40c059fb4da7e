"""Endurance test, which measures a workload's write amplification and derives a lifetime.

JESD218 rates a drive by TBW, the number of terabytes that may be written to the drive under a
workload of JESD219. TBW depends on the write amplification, which this test measures:

    rounds   writes of the workload, half a capacity per round, from the sustained state until the
             write amplification is steady by the rule of the PTS; simulated without time, which
             does not affect garbage collection
    speed    the workload at full speed, for the time to wear the drive out

    TBW = user capacity x rated cycles / (write amplification x wear-levelling factor)
    DWPD = TBW / (user capacity x 365 x years)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from writecliff.engines.base import DeviceIdentity
from writecliff.engines.preconditioned import RECIPES
from writecliff.errors import ConfigError, EngineError
from writecliff.procedures.campaigns.base import PRICE, CampaignOptions, CampaignProcedure
from writecliff.procedures.model import History, Stage, Step, StepRow, TrackingVariable
from writecliff.procedures.options import (
    QUEUE_DEPTH,
    SECONDS,
    Within,
    campaign_option,
    option,
)
from writecliff.procedures.pts import ROUNDS, rounds_until_steady
from writecliff.procedures.steady import MAX_ROUNDS, WINDOW_ROUNDS
from writecliff.profiles import profile, profile_workload, volume_workload

JESD219 = "jesd219-enterprise"
SPEED = "speed"


@dataclass(frozen=True, kw_only=True)
class EnduranceOptions(CampaignOptions):
    """Options of the endurance test. Omitted options have the campaign's values, if any."""

    profile: str = option(JESD219, "workload (see `writecliff profile list`)")
    state: str = option("sustained", "initial state of the drive", choices=tuple(RECIPES))
    round_capacities: float = campaign_option(
        0.5,
        "write volume per round, in multiples of the user capacity",
        within=Within(0, 1000, open_low=True),
        quick=0.1,
    )
    max_rounds: int = campaign_option(
        MAX_ROUNDS, "maximum number of rounds to reach steady state", within=ROUNDS
    )
    speed_seconds: float = campaign_option(
        60.0, "duration of the performance measurement, in seconds", within=SECONDS, quick=1.0
    )
    queue_depth: int = option(32, "number of outstanding I/Os", within=QUEUE_DEPTH)
    rated_cycles: int | None = option(
        None,
        "rated program/erase cycles of the flash",
        within=Within(1, 1e9),
        unset="the drive's rating",
    )
    wear_levelling_factor: float = option(
        1.0,
        "erase count of the most worn block, divided by the average erase count",
        within=Within(1, 100),
    )
    waf: float | None = option(
        None,
        "write amplification to assume for a drive that does not report its flash writes",
        within=Within(0, 1e6, open_low=True),
    )
    years: float = option(
        5.0, "warranty period in years, for DWPD", within=Within(0, 100, open_low=True)
    )
    gb_per_day: float | None = option(
        None,
        "data written per day in GB, for the lifetime estimate",
        within=PRICE,
        unset="the user capacity",
    )
    price: float | None = option(
        None,
        "drive price in dollars, for $/TBW and the total cost of ownership",
        within=PRICE,
    )
    service_years: float | None = option(
        None,
        "years in service, for the total cost of ownership",
        within=Within(0, 100, open_low=True),
        unset="the warranty",
    )
    watts: float | None = option(
        None,
        "average power in service, in W",
        within=PRICE,
        unset="the power under the workload at full speed",
    )
    kwh_price: float | None = option(
        None, "price per kWh in dollars", within=PRICE, unset="no energy cost"
    )
    pue: float = option(
        1.0,
        "power usage effectiveness (PUE): energy use of the data centre divided by the energy use "
        "of its IT equipment",
        within=Within(1, 10),
    )


class Endurance(CampaignProcedure[EnduranceOptions]):
    """The endurance test. Raises ConfigError if an option is invalid."""

    name = "endurance"
    options_type = EnduranceOptions

    def check(self) -> None:
        """Raise ConfigError if the profile does not write, or has several jobs."""
        load = profile(self.options.profile)
        if len(load.jobs) != 1 or load.jobs[0].read_pct == 100:
            raise ConfigError(
                f"the profile '{load.name}' does not write, or has several jobs",
                hint="choose a profile with a single job that writes",
            )

    @property
    def read_pct(self) -> float:
        """Percentage of reads in the profile's I/Os."""
        return profile(self.options.profile).jobs[0].read_pct

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Return the disclosed parameters (workload, rounds, rated cycles, warranty and price)."""
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
        """Return the rounds until the write amplification is steady, and the performance step."""
        rounds = rounds_until_steady(
            lambda number: self._round(identity, number),
            self.options.max_rounds,
            TrackingVariable("write amplification", "WAF", self._waf),
            what="steady write amplification",
            purge=True,
            state=self.state(identity, self.options.state),
        )
        return (rounds, Stage.once(SPEED, "speed of the workload", self._speed(identity)))

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
        name = f"{o.profile}, round {number}"
        step = self.step(name, load, "rounds", number, sample=True)
        return (replace(step, untimed=True),)

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
                "the drive does not report its flash writes, so its write amplification cannot be "
                "measured",
                hint="if you know the write amplification, specify it with --waf",
            )
        return value

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        """Describe the parts of the run, in order."""
        o = self.options
        return (
            "purge the drive",
            f"prepare: {RECIPES[o.state]}",
            f"rounds of {o.round_capacities:g} x user capacity of writes of {o.profile} until the "
            f"write amplification is steady over {WINDOW_ROUNDS} of them, {o.max_rounds} at most",
            f"{o.profile} for {o.speed_seconds:g} s, for its speed",
        )

    def warnings(self, history: History) -> Sequence[str]:
        """Report a run whose write amplification did not become steady."""
        rounds = history.stages.get("rounds")
        if rounds is None or rounds.steady_at_round is not None:
            return ()
        return (f"write amplification was not steady after {rounds.rounds_done} rounds",)
