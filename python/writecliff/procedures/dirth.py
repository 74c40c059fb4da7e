"""DIRTH, demand intensity and response-time histogram (PTS-E 1.1).

The load has a single block size and read/write mix, by default the standard's OLTP load of random 8
KiB I/Os with 65 % reads. The load runs at each thread count and queue depth, and response times are
then measured at the operating points. `demand_intensity.py` describes the order of steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures import cells
from writecliff.procedures.demand_intensity import DemandOptions, DemandProcedure
from writecliff.procedures.model import Stage
from writecliff.procedures.options import BLOCK_KIB, PERCENT, option
from writecliff.procedures.pts import block_text, mix_text

OLTP = (8.0, 65.0)  # Block size in KiB, and read percentage.


@dataclass(frozen=True, kw_only=True)
class DirthOptions(DemandOptions):
    """Options of DIRTH. The standard recommends OLTP, but allows other sizes and mixes."""

    block_kib: float = option(OLTP[0], "block size in KiB", within=BLOCK_KIB)
    read_pct: float = option(OLTP[1], "percentage of reads", within=PERCENT)


class Dirth(DemandProcedure[DirthOptions]):
    """The demand intensity test. Raises ConfigError if an option is invalid."""

    name = "dirth"
    subtitle = "DIRTH - OLTP - RND 8KiB RW = 65:35"
    options_type = DirthOptions

    def check(self) -> None:
        """Raise ConfigError also if the block size is not a multiple of the sector size."""
        super().check()
        cells.sizes_bytes([self.options.block_kib])

    @property
    def load(self) -> str:
        """Name of the accesses, such as "RND 8KiB"."""
        return f"RND {block_text(self.block_bytes)}"

    @property
    def block_bytes(self) -> int:
        """Block size of the accesses."""
        return cells.sizes_bytes([self.options.block_kib])[0]

    @property
    def read_pct(self) -> float:
        """Percentage of reads in the cells."""
        return self.options.read_pct

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Add the subtitle and the block size to the disclosed parameters."""
        o = self.options
        oltp = "OLTP - " if (o.block_kib, o.read_pct) == OLTP else ""
        mix = mix_text(o.read_pct).replace("/", ":")
        return {
            **super().setup(identity),
            "subtitle": f"DIRTH - {oltp}{self.load} RW = {mix}",
            "block_sizes": block_text(self.block_bytes),
        }

    def stages(self, identity: DeviceIdentity) -> tuple[Stage, ...]:
        """Return the stages, or raise ConfigError if the drive does not support the block size."""
        cells.need_supported([(self.block_bytes, self.read_pct)], identity)
        return tuple(super().stages(identity))
