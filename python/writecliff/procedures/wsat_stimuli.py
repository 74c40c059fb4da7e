"""The loads of WSAT: the standard's random 4 KiB writes, and the optional stimuli of PTS 2.0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from writecliff.procedures import ecw_load
from writecliff.procedures.cells import LETTERS
from writecliff.procedures.pts import block_text, mix_text
from writecliff.workload.model import KIB, Pattern

DEFAULT = "rnd-4k-w"


@dataclass(frozen=True)
class Stimulus:
    """One kind of access at one read/write mix."""

    use: str  # the application that it stands for; "" for the standard's own load
    pattern: Pattern
    block_bytes: int | None  # None: the composite of `ecw_load`
    read_pct: float

    @property
    def load(self) -> str:
        """The access as the standard writes it: "RND 4KiB"."""
        if self.block_bytes is None:
            return ecw_load.NAME
        return f"{LETTERS[self.pattern]} {block_text(self.block_bytes)}"

    @property
    def text(self) -> str:
        """The access with its mix: "RND 4KiB W", "RND 8KiB 65/35"."""
        return f"{self.load} {mix_text(self.read_pct) if self.read_pct else 'W'}"

    @property
    def subtitle(self) -> str:
        if not self.use:
            return f"WSAT - {self.load} 100% W"
        mix = mix_text(self.read_pct).replace("/", ":")
        return f"WSAT - {self.use} - {self.load} RW = {mix}"

    @property
    def words(self) -> str:
        """The access in a sentence: "random 4 KiB writes"."""
        if self.block_bytes is None:
            return f"the composite workload ({mix_text(self.read_pct)} reads/writes)"
        size = f"{self.block_bytes / KIB:g} KiB"
        if not self.read_pct:
            return f"{self.pattern} {size} writes"
        return f"{self.pattern} {size} I/Os ({mix_text(self.read_pct)} reads/writes)"

    @property
    def disclosure(self) -> str:
        """What readers of the figures must know; "" if the name says it all."""
        if self.block_bytes is None:
            return ecw_load.DISCLOSURE
        if self.pattern == "sequential":
            return "each thread begins at its own part of the range"
        return ""


STIMULI: Mapping[str, Stimulus] = {
    DEFAULT: Stimulus("", "random", 4 * KIB, 0.0),
    "rnd-8k-65": Stimulus("OLTP", "random", 8 * KIB, 65.0),
    "seq-128k-90": Stimulus("VOD", "sequential", 128 * KIB, 90.0),
    "seq-0.5k-50": Stimulus("Metadata", "sequential", 512, 50.0),
    "composite": Stimulus("CBW", "random", None, ecw_load.READ_PCT),
}
