"""WSAT, the write saturation test: random 4 KiB writes from purge until the drive is saturated.

Editions PTS-C (client) and PTS-E (enterprise) of the SNIA Solid State Storage Performance Test
Specification. There is no preconditioning: the saturation is the result. Rounds, samples and ends
are those of `saturation.py`. Revision 2.0 has optional stimuli in place of the random 4 KiB writes;
see `wsat_stimuli.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures.active_range import SegmentOptions
from writecliff.procedures.model import Step
from writecliff.procedures.options import Rule, option
from writecliff.procedures.saturation import CLAUSE, Saturation, SaturationOptions
from writecliff.procedures.sources import Choice
from writecliff.procedures.wsat_stimuli import DEFAULT, STIMULI, Stimulus


@dataclass(frozen=True, kw_only=True)
class WsatOptions(SaturationOptions, SegmentOptions):
    """Options of WSAT. Those left out take the value of the edition."""

    stimulus: str = option(
        DEFAULT,
        "the load; all but the first are options of revision 2.0",
        rule=Rule({"1.x": DEFAULT}, "required", CLAUSE),
        choices=tuple(STIMULI),
    )


class Wsat(Saturation[WsatOptions]):
    """The write saturation test. Raises ConfigError for options that are not allowed."""

    name = "wsat"
    subtitle = STIMULI[DEFAULT].subtitle
    options_type = WsatOptions

    @property
    def stimulus(self) -> Stimulus:
        return STIMULI[self.options.stimulus]

    def choices(self) -> tuple[Choice, ...]:
        o = self.options
        ends = Choice(
            "end of the run",
            "steady state over five of at most 25 samples, after which the operator may go on; 4 x "
            "user capacity; 24 h (6 h in 2.0); a time or volume of the operator's",
            " or ".join(self.end_texts),
            "--end, --time-hours, --drive-fills",
        )
        fresh = Choice(
            "first steady-state window",
            "any five samples; not while the drive is fresh, which lasts for about two user "
            "capacities (primer)",
            f"after {o.fresh_fills:g} x user capacity" if o.fresh_fills else "any",
            "--fresh-fills",
        )
        return (*super().choices(), ends, *([fresh] if "steady" in o.end else []))

    def load_step(
        self, identity: DeviceIdentity, name: str, seconds: float, *seed_path: object
    ) -> Step:
        stimulus, threads = self.stimulus, self.options.threads
        step = self.cell(
            identity,
            name,
            *seed_path,
            seconds=seconds,
            pattern=stimulus.pattern,
            block_bytes=stimulus.block_bytes,
            read_pct=stimulus.read_pct,
        )
        if stimulus.pattern == "random" or threads == 1 or stimulus.block_bytes is None:
            return step
        # A stream per thread: with one start for all, each of them would write every block once.
        (job,) = step.workload.jobs
        block = stimulus.block_bytes
        passed = job.range_bytes or 0
        if job.segments is not None:
            passed = job.segments.count * job.segments.length(block)
        stride = passed // threads // block * block
        job = replace(job, thread_stride_bytes=stride)
        return replace(step, workload=replace(step.workload, jobs=(job,)))
