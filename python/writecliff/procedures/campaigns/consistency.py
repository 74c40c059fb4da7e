"""A reviewer's test of performance consistency (AnandTech, since 2012).

The test fills the drive sequentially, writes random 4 KiB blocks at queue depth 32 for 2,000
seconds, and evaluates every second by its average IOPS, its worst case (queue depth divided by the
second's longest latency, which is the IOPS if every I/O were as slow), and the spread. The test is
then repeated on part of the addresses, as if the user left the rest of the drive as spare space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError
from writecliff.procedures.campaigns.base import PRICE, CampaignOptions, CampaignProcedure
from writecliff.procedures.model import Stage, Step
from writecliff.procedures.options import (
    QUEUE_DEPTH,
    SECONDS,
    SOME_PERCENT,
    Within,
    campaign_option,
    option,
)
from writecliff.procedures.periods import numbered, whole_steps
from writecliff.workload.model import KIB, Workload

FILL_BYTES = 128 * KIB


@dataclass(frozen=True, kw_only=True)
class ConsistencyOptions(CampaignOptions):
    """Options of the consistency test. Omitted options have the campaign's values."""

    range_pcts: tuple[float, ...] = option(
        (100.0, 75.0),
        "percentages of the drive's address space to fill and then overwrite, in this order",
        within=SOME_PERCENT,
    )
    queue_depth: int = campaign_option(32, "number of outstanding I/Os", within=QUEUE_DEPTH)
    seconds: float = campaign_option(
        2000.0, "duration of the writes, in seconds", within=SECONDS, quick=20.0
    )
    steady_from_seconds: float = campaign_option(
        1400.0,
        "time at which the steady phase starts in the plots, in seconds",
        within=SECONDS,
        quick=10.0,
    )
    step_seconds: float | None = option(
        None,
        "duration of each step, in seconds; an interrupted run resumes at the last complete step",
        within=SECONDS,
        unset="a 20th of the writes",
    )
    array_drives: int = option(
        12, "number of drives in the array whose worst case is reported", within=Within(2, 10_000)
    )
    price: float | None = option(None, "drive price in dollars, for IOPS per dollar", within=PRICE)


class Consistency(CampaignProcedure[ConsistencyOptions]):
    """The consistency test. Raises ConfigError if an option is invalid."""

    name = "consistency"
    options_type = ConsistencyOptions

    def check(self) -> None:
        """Raise ConfigError if there is no range, no steady phase or no whole number of steps."""
        o = self.options
        if not o.range_pcts:
            raise ConfigError("--range-pcts contains no value", hint="specify --range-pcts 100")
        if o.steady_from_seconds >= o.seconds:
            raise ConfigError(
                f"the steady part starts at {o.steady_from_seconds:g} s, but the run ends at "
                f"{o.seconds:g} s",
                hint="reduce --steady-from-seconds, or increase --seconds",
            )
        whole_steps("a run", o.seconds, self.step_seconds)

    @property
    def step_seconds(self) -> float:
        """Step duration, by default a twentieth of the run."""
        return self.options.step_seconds or self.options.seconds / 20

    @property
    def active_range_pct(self) -> float | None:
        """The written range in percent of the addresses, or `None` if there are several."""
        ranges = self.options.range_pcts
        return ranges[0] if len(ranges) == 1 else None

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Return the disclosed parameters (ranges, load, duration and price)."""
        o = self.options
        return {
            **super().setup(identity),
            "active_range": ", ".join(f"{share:g}%" for share in o.range_pcts),
            "precondition": "SEQ 128KiB W of the range",
            "precondition_toio": f"TC 1/QD {o.queue_depth}",
            "precondition_duration": "Once",
            "test: Load": f"RND 4KiB W, TC 1/QD {o.queue_depth}",
            "test: Duration": f"{o.seconds:g} s",
            "test: Steady part": f"from {o.steady_from_seconds:g} s",
            "test: Price": f"${o.price:,.2f}" if o.price else "not given",
        }

    def range_bytes(self, identity: DeviceIdentity, share_pct: float) -> int:
        """Return the size of a range, rounded to whole blocks of the fill."""
        exact = round(identity.capacity_bytes * share_pct / 100)
        return max(FILL_BYTES, exact // FILL_BYTES * FILL_BYTES)

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return a stage for each range, each of which starts by purging and filling the drive."""
        return [
            Stage.once(
                phase_of(share),
                f"random writes to {share:g} % of the addresses",
                self._writes(identity, share),
                purge=True,
                state=self._filled(identity, share),
                continuous=True,
            )
            for share in self.options.range_pcts
        ]

    def _filled(self, identity: DeviceIdentity, share_pct: float) -> Sequence[Workload]:
        size = self.range_bytes(identity, share_pct)
        if size >= identity.capacity_bytes - FILL_BYTES:
            return self.state(identity, "fill")
        return [
            replace(load, jobs=(replace(load.jobs[0], range_bytes=size, volume_bytes=size),))
            for load in self.state(identity, "fill")
        ]

    def _writes(self, identity: DeviceIdentity, share_pct: float) -> Sequence[Step]:
        o, seconds = self.options, self.step_seconds
        size = self.range_bytes(identity, share_pct)

        def part(number: int) -> Step:
            return self.access(
                f"RND 4KiB W, to {number * seconds:g} s",
                share_pct,
                number,
                seconds=seconds,
                queue_depth=o.queue_depth,
                range_bytes=size,
            )

        return numbered(whole_steps("a run", o.seconds, seconds), part)

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        """Describe the parts of the run, in order."""
        o = self.options
        return tuple(
            text
            for share in o.range_pcts
            for text in (
                f"purge the drive, then fill {share:g} % of the addresses in order",
                f"write random 4 KiB blocks to them for {o.seconds:g} s, QD {o.queue_depth}",
            )
        )


def phase_of(share_pct: float) -> str:
    """Return the stored name of the writes to a range, such as "range-100"."""
    return f"range-{share_pct:g}"
