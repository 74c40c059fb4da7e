"""ECW, the enterprise composite workload (PTS-E 1.1), and CBW, the composite block workload.

The JESD219 composite load (`ecw_load.py`), with 40 % reads and 60 % writes, runs at each thread
count and queue depth. `demand_intensity.py` describes the order of steps. Sources disagree about
the later edition:

    7x7   seven thread counts and depths, pre-writes of 5 minutes (PTS-E 1.1; the default)
    6x6   the same without 6, pre-writes of 10 minutes (an implementation of PTS 2.0)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from writecliff import units
from writecliff.engines.base import DeviceIdentity
from writecliff.procedures import ecw_load
from writecliff.procedures.demand_intensity import CLAUSE, DemandOptions, DemandProcedure
from writecliff.procedures.options import PERCENT, option, required_option
from writecliff.procedures.pts import mix_text
from writecliff.procedures.sources import Choice

READINGS = ("7x7", "6x6")


@dataclass(frozen=True, kw_only=True)
class EcwOptions(DemandOptions):
    """Options of ECW and CBW. Omitted options have the edition's values."""

    reading: str = option(
        "7x7",
        "grid of thread counts and queue depths, on which descriptions of the standard disagree: "
        "7x7 with 5 minutes of pre-writes, or 6x6 with 10 minutes",
        choices=READINGS,
    )
    read_pct: float = required_option(
        CLAUSE, ecw_load.READ_PCT, "percentage of reads", within=PERCENT
    )


class Ecw(DemandProcedure[EcwOptions]):
    """The composite workload test. Raises ConfigError if an option is invalid."""

    name = "ecw"
    subtitle = "ECW - Composite Workload"
    options_type = EcwOptions
    load = ecw_load.NAME
    block_bytes = None

    @property
    def title(self) -> str:
        """Test name used by the edition."""
        if self.options.revision == "2.0":
            return "Composite Block Workload Test"
        return super().title

    @property
    def letters(self) -> str:
        """Test abbreviation used by the edition: ECW or CBW."""
        return "CBW" if self.options.revision == "2.0" else "ECW"

    @property
    def read_pct(self) -> float:
        """Percentage of reads in the cells."""
        return self.options.read_pct

    def choices(self) -> tuple[Choice, ...]:
        """Add the choice of the loop, which sources disagree about."""
        o = self.options
        loads = Choice(
            "loads and pre-writes between rounds",
            "7 thread counts x 7 depths, 5 minutes; 6 x 6, 10 minutes",
            f"{len(o.threads)} x {len(o.queue_depths)}, {units.minutes(o.prewrite_minutes)}",
            "--reading",
        )
        return (loads, *super().choices())

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Add the subtitle, block sizes, alignment and reading to the disclosed parameters."""
        mix = mix_text(self.read_pct).replace("/", ":")
        return {
            **super().setup(identity),
            "subtitle": f"{self.letters} - Composite RW = {mix}",
            "block_sizes": "0.5-64KiB, shares of JESD219",
            "alignment": ecw_load.DISCLOSURE,
            "reading": self.options.reading,
        }
