"""ECW, the enterprise composite workload (PTS-E 1.1); CBW, composite block workload (PTS 2.0).

The composite is that of JESD219 (`ecw_load.py`), at 40 % reads and 60 % writes over threads x
queue depth; see `demand_intensity.py` for the order of steps. Sources disagree about the later
edition:

    7x7   seven thread counts and depths, pre-writes of 5 minutes (PTS-E 1.1; the default)
    6x6   without 6, pre-writes of 10 minutes (an implementation of PTS 2.0)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures import ecw_load
from writecliff.procedures.demand_intensity import CLAUSE, Access, DemandOptions, DemandProcedure
from writecliff.procedures.model import Step
from writecliff.procedures.options import PERCENT, option, required_option
from writecliff.procedures.pts import mix_text
from writecliff.workload.model import SECOND_NS

READINGS = ("7x7", "6x6")


@dataclass(frozen=True, kw_only=True)
class EcwOptions(DemandOptions):
    """Options of ECW/CBW. None stands for the value of the edition."""

    reading: str = option(
        "7x7",
        "thread counts and depths (7x7 with pre-writes of 5 min, or 6x6 of 10 min), where "
        "sources disagree",
        choices=READINGS,
    )
    read_pct: float | None = required_option(
        CLAUSE, {"*": ecw_load.READ_PCT}, "share of reads, in percent", within=PERCENT
    )


class Ecw(DemandProcedure):
    """The composite workload test, its options settled and checked (else ConfigError)."""

    name = "ecw"
    subtitle = "ECW - Composite Workload"
    options_type = EcwOptions
    load = ecw_load.NAME

    @property
    def title(self) -> str:
        if self.options.revision == "2.0":
            return "Composite Block Workload Test"
        return super().title

    @property
    def letters(self) -> str:
        """As the edition calls the test."""
        return "CBW" if self.options.revision == "2.0" else "ECW"

    @property
    def read_pct(self) -> float:
        return float(self.options.read_pct)

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        found = super().setup(identity)
        return {
            **found,
            "subtitle": f"{self.letters} - Composite RW = {mix_text(self.read_pct)}".replace(
                "/", ":"
            ),
            "block_sizes": "0.5-64KiB, shares of JESD219",
            "alignment": ecw_load.DISCLOSURE,
            "reading": self.options.reading,
        }

    def step(
        self,
        identity: DeviceIdentity,
        name: str,
        access: Access,
        *place: object,
        sample: bool = False,
    ) -> Step:
        job = ecw_load.composite_job(
            self.name,
            read_pct=access.read_pct,
            threads=access.threads,
            queue_depth=access.queue_depth,
            range_bytes=self.range_bytes(identity, ecw_load.LARGEST_BYTES),
            compressible_pct=self.options.compressible_pct,
            duration_ns=round(access.seconds * SECOND_NS),
        )
        return Step(name, self.workload(name, job, *place), sample)
