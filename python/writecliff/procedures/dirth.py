"""DIRTH, demand intensity and response-time histogram (PTS-E 1.1).

One block size at one read/write mix, by default the standard's OLTP load of random 8 KiB at 65 %
reads, over threads x queue depth; then response times at the operating points. See
`demand_intensity.py` for the order of steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures import cells
from writecliff.procedures.demand_intensity import Access, DemandOptions, DemandProcedure
from writecliff.procedures.model import Stage, Step
from writecliff.procedures.options import PERCENT, Within, option
from writecliff.procedures.pts import block_text, mix_text

OLTP = (8.0, 65.0)  # KiB, percent of reads


@dataclass(frozen=True, kw_only=True)
class DirthOptions(DemandOptions):
    """Options of DIRTH. The standard leaves block size and mix to the operator, and names OLTP."""

    block_kib: float = option(OLTP[0], "block size in KiB", within=Within(0.5, 65536))
    read_pct: float = option(OLTP[1], "share of reads, in percent", within=PERCENT)


class Dirth(DemandProcedure):
    """The demand intensity test, its options settled and checked (else ConfigError)."""

    name = "dirth"
    subtitle = "DIRTH - OLTP - RND 8KiB RW = 65:35"
    options_type = DirthOptions

    def __init__(self, options: DirthOptions | None = None) -> None:
        super().__init__(options)
        self.load = f"RND {block_text(self.block_bytes)}"

    def check(self) -> None:
        super().check()
        cells.sizes_bytes([self.options.block_kib])

    @property
    def block_bytes(self) -> int:
        return cells.sizes_bytes([self.options.block_kib])[0]

    @property
    def read_pct(self) -> float:
        return float(self.options.read_pct)

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        o = self.options
        oltp = "OLTP - " if (o.block_kib, o.read_pct) == OLTP else ""
        mix = mix_text(o.read_pct).replace("/", ":")
        return {
            **super().setup(identity),
            "subtitle": f"DIRTH - {oltp}{self.load} RW = {mix}",
            "block_sizes": block_text(self.block_bytes),
        }

    def stages(self, identity: DeviceIdentity) -> tuple[Stage, ...]:
        cells.need_supported([(self.block_bytes, self.read_pct)], identity, "random")
        return tuple(super().stages(identity))

    def step(
        self,
        identity: DeviceIdentity,
        name: str,
        access: Access,
        *place: object,
        sample: bool = False,
    ) -> Step:
        return self.cell(
            identity,
            name,
            *place,
            block_bytes=self.block_bytes,
            sample=sample,
            **vars(access),
        )
