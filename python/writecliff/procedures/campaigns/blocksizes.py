"""Comparison of two drive generations by block size: IOPS, latency and power (Samsung 840 v 850).

Calypso Systems measured these figures for The SSD Guy (2014) with the client edition of the PTS, at
eight block sizes and three mixes. Preconditioning, rounds and steady state are those of the IOPS
test, and the average and maximum latencies come from the same rounds. A power pass follows: 128 KiB
sequential reads, then random writes and random reads at every block size, largest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures import cells
from writecliff.procedures.iops import IopsLoop, IopsOptions
from writecliff.procedures.model import Stage, Step
from writecliff.procedures.options import CAMPAIGN, option
from writecliff.procedures.pts import EDITIONS
from writecliff.workload.model import KIB, Pattern

READ_PCTS = (100.0, 65.0, 0.0)
SIZES_KIB = (1024.0, 128.0, 64.0, 32.0, 16.0, 8.0, 4.0, 0.5)
POWER = "power"
SEQUENTIAL = 128 * KIB


@dataclass(frozen=True, kw_only=True)
class BlockSizesOptions(IopsOptions):
    """Options of the IOPS test, with the campaign's values."""

    edition: str = option("pts-c", "PTS edition: enterprise or client", choices=EDITIONS)
    read_pcts: tuple[float, ...] = cells.mixes_option(CAMPAIGN, READ_PCTS)
    block_sizes_kib: tuple[float, ...] = cells.block_sizes_option(CAMPAIGN, SIZES_KIB)
    power: bool = option(True, "measure power in a pass over the block sizes after the rounds")


class BlockSizes(IopsLoop[BlockSizesOptions]):
    """The comparison of drives by block size. Raises ConfigError if an option is invalid."""

    name = "blocksizes"
    subtitle = "Block Size x RW Mix, IOPS, latency and power"
    options_type = BlockSizesOptions
    scales = False

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return the rounds of the IOPS test and, unless omitted, the power pass."""
        rounds = super().stages(identity)
        if not self.options.power:
            return rounds
        return (*rounds, Stage.once(POWER, "power over time", self._power(identity)))

    def _power(self, identity: DeviceIdentity) -> Sequence[Step]:
        sizes = sorted(cells.supported(self.sizes, identity), reverse=True)
        accesses: list[tuple[Pattern, int, float]] = [("sequential", SEQUENTIAL, 100.0)]
        accesses += [("random", size, read) for read in (0.0, 100.0) for size in sizes]
        return [
            self.cell(
                identity,
                cells.cell_text((size, read), pattern),
                POWER,
                pattern,
                size,
                read,
                seconds=self.options.step_seconds,
                pattern=pattern,
                block_bytes=size,
                read_pct=read,
            )
            for pattern, size, read in accesses
        ]

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        """Describe the parts of the run, in order."""
        sizes = len(cells.supported(self.sizes, identity))
        power = f"power: sequential reads, random writes and reads of {sizes} block sizes"
        return (*super().phases(identity), *((power,) if self.options.power else ()))
