"""Two generations of a drive by block size: IOPS, latency and power (Samsung 840 v 850).

As Calypso Systems measured them for The SSD Guy (2014): the client edition of the PTS, with eight
block sizes at three mixes. Preconditioning and steady state are those of the IOPS test, whose
rounds these are; average and maximum latency come from the same rounds. After them a pass shows
power: 128 KiB sequential reads, then random writes and random reads of every block size, large ones
first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures import cells
from writecliff.procedures.iops import Iops, IopsOptions
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
    """Options of the IOPS test, at the campaign's values."""

    edition: str = option("pts-c", "pts-e (enterprise) or pts-c (client)", choices=EDITIONS)
    read_pcts: tuple[float, ...] = cells.mixes_option(CAMPAIGN, READ_PCTS)
    block_sizes_kib: tuple[float, ...] = cells.block_sizes_option(CAMPAIGN, SIZES_KIB)
    power: bool = option(True, "a pass over the block sizes after the rounds, for power over time")


class BlockSizes(Iops):
    """The comparison by block size, its options settled and checked (else ConfigError)."""

    name = "blocksizes"
    subtitle = "Block Size x RW Mix, IOPS, latency and power"
    options_type = BlockSizesOptions

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        rounds = super().stages(identity)
        if not self.options.power:
            return rounds
        power = Stage(
            phase=POWER,
            title="power over time",
            steps=lambda history, number: self._power(identity),
        )
        return (*rounds, power)

    def _power(self, identity: DeviceIdentity) -> Sequence[Step]:
        o = self.options
        sizes = sorted(cells.supported(self.sizes, identity), reverse=True)
        loads: list[tuple[Pattern, int, float]] = [("sequential", SEQUENTIAL, 100.0)]
        loads += [("random", size, read) for read in (0.0, 100.0) for size in sizes]
        return [
            self.cell(
                identity,
                cells.cell_text((size, read), pattern),
                POWER,
                pattern,
                size,
                read,
                seconds=o.step_seconds,
                threads=o.threads,
                queue_depth=o.queue_depth,
                pattern=pattern,
                block_bytes=size,
                read_pct=read,
            )
            for pattern, size, read in loads
        ]

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        sizes = len(cells.supported(self.sizes, identity))
        power = f"power: sequential reads, random writes and reads of {sizes} block sizes"
        return (*super().phases(identity), *((power,) if self.options.power else ()))
