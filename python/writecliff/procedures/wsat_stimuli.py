"""The loads of WSAT: the standard's random 4 KiB writes, and the optional stimuli of PTS 2.0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures import ecw_load
from writecliff.procedures.cells import LETTERS
from writecliff.procedures.pts import PtsProcedure, block_text, mix_text
from writecliff.workload.model import KIB, SECOND_NS, Job, Pattern

DEFAULT = "rnd-4k-w"


@dataclass(frozen=True)
class Stimulus:
    """One kind of access at one mix; `block_bytes` is None for the composite."""

    use: str  # what it stands for; "" for the standard's own
    pattern: Pattern
    block_bytes: int | None
    read_pct: float

    @property
    def load(self) -> str:
        """As the standard names it: "RND 4KiB"."""
        if self.block_bytes is None:
            return ecw_load.NAME
        return f"{LETTERS[self.pattern]} {block_text(self.block_bytes)}"

    @property
    def text(self) -> str:
        """With its mix: "RND 4KiB W", "RND 8KiB 65/35"."""
        return f"{self.load} {mix_text(self.read_pct) if self.read_pct else 'W'}"

    @property
    def subtitle(self) -> str:
        if not self.use:
            return f"WSAT - {self.load} 100% W"
        mix = mix_text(self.read_pct).replace("/", ":")
        return f"WSAT - {self.use} - {self.load} RW = {mix}"

    @property
    def words(self) -> str:
        """In a sentence: "random 4 KiB writes"."""
        if self.block_bytes is None:
            return f"the composite workload ({mix_text(self.read_pct)} reads/writes)"
        size = f"{self.block_bytes / KIB:g} KiB"
        if not self.read_pct:
            return f"{self.pattern} {size} writes"
        return f"{self.pattern} {size} I/Os ({mix_text(self.read_pct)} reads/writes)"

    @property
    def disclosure(self) -> str:
        """What a reader of its figures must know; "" if it is as its name says."""
        if self.block_bytes is None:
            return ecw_load.DISCLOSURE
        if self.pattern == "sequential":
            return (
                "each thread goes through its own part of the range, and begins there again with "
                "each step"
            )
        return ""


STIMULI: Mapping[str, Stimulus] = {
    DEFAULT: Stimulus("", "random", 4 * KIB, 0.0),
    "rnd-8k-65": Stimulus("OLTP", "random", 8 * KIB, 65.0),
    "seq-128k-90": Stimulus("VOD", "sequential", 128 * KIB, 90.0),
    "seq-0.5k-50": Stimulus("Metadata", "sequential", 512, 50.0),
    "composite": Stimulus("CBW", "random", None, ecw_load.READ_PCT),
}


def job_of(
    stimulus: Stimulus,
    procedure: PtsProcedure,
    identity: DeviceIdentity,
    *,
    threads: int,
    queue_depth: int,
    seconds: float,
) -> Job:
    """The load of `stimulus` for one step."""
    duration_ns = round(seconds * SECOND_NS)
    if stimulus.block_bytes is None:
        return ecw_load.composite_job(
            procedure.name,
            read_pct=stimulus.read_pct,
            threads=threads,
            queue_depth=queue_depth,
            range_bytes=procedure.range_bytes(identity, ecw_load.LARGEST_BYTES),
            compressible_pct=procedure.options.compressible_pct,
            duration_ns=duration_ns,
        )
    (job,) = procedure.cell(
        identity,
        stimulus.text,
        seconds=seconds,
        threads=threads,
        queue_depth=queue_depth,
        pattern=stimulus.pattern,
        block_bytes=stimulus.block_bytes,
        read_pct=stimulus.read_pct,
    ).workload.jobs
    if stimulus.pattern == "random" or threads == 1:
        return job
    # One stream a thread: with one start for all, every block would be written once by each.
    block = stimulus.block_bytes
    stride = (job.range_bytes or 0) // threads // block * block
    return replace(job, thread_stride_bytes=stride)
