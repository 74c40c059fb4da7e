"""WSAT, the write saturation test, with random 4 KiB writes from purge to saturation.

The test covers the PTS-C (client) and PTS-E (enterprise) editions of the SNIA Solid State Storage
Performance Test Specification. The drive is not preconditioned, because the test measures
saturation itself. `saturation.py` defines the rounds, samples and end conditions. Revision 2.0 has
optional stimuli in place of the random 4 KiB writes (see `STIMULI`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures import ecw_load
from writecliff.procedures.active_range import SegmentOptions
from writecliff.procedures.cells import LETTERS
from writecliff.procedures.model import Step
from writecliff.procedures.options import Rule, option
from writecliff.procedures.pts import block_text, mix_text
from writecliff.procedures.saturation import CLAUSE, Saturation, SaturationOptions
from writecliff.procedures.sources import Choice
from writecliff.workload.model import KIB, Pattern

# -- stimuli ---------------------------------------------------------------------------------------

# WSAT loads: the standard's random 4 KiB writes, and the optional stimuli in PTS 2.0.

DEFAULT = "rnd-4k-w"


@dataclass(frozen=True)
class Stimulus:
    """A type of access at a read/write mix."""

    use: str  # Application that the stimulus represents; "" for the standard's own load.
    pattern: Pattern
    block_bytes: int | None  # Block size in bytes; `None` for the composite load in `ecw_load`.
    read_pct: float

    @property
    def load(self) -> str:
        """The access in the standard's notation, such as "RND 4KiB"."""
        if self.block_bytes is None:
            return ecw_load.NAME
        return f"{LETTERS[self.pattern]} {block_text(self.block_bytes)}"

    @property
    def text(self) -> str:
        """The access with its mix, such as "RND 4KiB W" or "RND 8KiB 65/35"."""
        return f"{self.load} {mix_text(self.read_pct) if self.read_pct else 'W'}"

    @property
    def subtitle(self) -> str:
        """Subtitle of the report."""
        if not self.use:
            return f"WSAT - {self.load} 100% W"
        mix = mix_text(self.read_pct).replace("/", ":")
        return f"WSAT - {self.use} - {self.load} RW = {mix}"

    @property
    def words(self) -> str:
        """Description of the access, such as "random 4 KiB writes"."""
        if self.block_bytes is None:
            return f"the composite workload ({mix_text(self.read_pct)} reads/writes)"
        size = f"{self.block_bytes / KIB:g} KiB"
        if not self.read_pct:
            return f"{self.pattern} {size} writes"
        return f"{self.pattern} {size} I/Os ({mix_text(self.read_pct)} reads/writes)"

    @property
    def disclosure(self) -> str:
        """A note for readers of the figures, or "" if the name is sufficient."""
        if self.block_bytes is None:
            return ecw_load.DISCLOSURE
        if self.pattern == "sequential":
            return "each thread starts at a separate part of the range"
        return ""


STIMULI: Mapping[str, Stimulus] = {
    DEFAULT: Stimulus("", "random", 4 * KIB, 0.0),
    "rnd-8k-65": Stimulus("OLTP", "random", 8 * KIB, 65.0),
    "seq-128k-90": Stimulus("VOD", "sequential", 128 * KIB, 90.0),
    "seq-0.5k-50": Stimulus("Metadata", "sequential", 512, 50.0),
    "composite": Stimulus("CBW", "random", None, ecw_load.READ_PCT),
}


# -- test ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class WsatOptions(SaturationOptions, SegmentOptions):
    """Options of the WSAT test. Omitted options have the edition's values."""

    stimulus: str = option(
        DEFAULT,
        "workload to run; all workloads except rnd-4k-w are optional in revision 2.0",
        rule=Rule({"1.x": DEFAULT}, "required", CLAUSE),
        choices=tuple(STIMULI),
    )


class Wsat(Saturation[WsatOptions]):
    """The write saturation test. Raises ConfigError if an option is invalid."""

    name = "wsat"
    subtitle = STIMULI[DEFAULT].subtitle
    options_type = WsatOptions

    @property
    def stimulus(self) -> Stimulus:
        """The test's load."""
        return STIMULI[self.options.stimulus]

    def choices(self) -> tuple[Choice, ...]:
        """Add the choices on end conditions and fresh drives that sources disagree about."""
        o = self.options
        ends = Choice(
            "end of the run",
            "steady state over five of at most 25 samples, after which the operator may continue; "
            "4 x user capacity; 24 h (6 h in 2.0); a time or volume that the operator chooses",
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
        """Return a stimulus step, whose sequential threads start at separate addresses."""
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
        # Each thread has its own stream, because threads with a common start would all write every
        # block.
        (job,) = step.workload.jobs
        block = stimulus.block_bytes
        passed = job.range_bytes or 0
        if job.segments is not None:
            passed = job.segments.count * job.segments.length(block)
        stride = passed // threads // block * block
        job = replace(job, thread_stride_bytes=stride)
        return replace(step, workload=replace(step.workload, jobs=(job,)))
