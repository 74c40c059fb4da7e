"""The ECW/CBW report, whose summary schema is "writecliff/ecw/1"."""

from __future__ import annotations

from collections.abc import Iterator

from writecliff import units
from writecliff.procedures import ecw_load
from writecliff.report import kinds
from writecliff.report.demand_intensity import DemandIntensityReport
from writecliff.report.header import setup
from writecliff.report.model import Section, section
from writecliff.report.table import Column, Table, table


class EcwReport(DemandIntensityReport):
    """Report for an ECW/CBW run, including the composite workload definition."""

    def sections(self) -> Iterator[Section]:
        """Yield the demand intensity sections, followed by the composite workload."""
        yield from super().sections()
        intro = f"Block sizes and address zones of JESD219; {setup(self.data, 'alignment')}."
        yield section("The composite workload", intro, _sizes(), _zones())


def _sizes() -> Table:
    total = sum(share for _, share in ecw_load.SIZES)
    rows = [
        (size, 100 * share / total, size * share / total / ecw_load.MEAN_BYTES)
        for size, share in ecw_load.SIZES
    ]
    head = (
        Column("Block size", kinds.BLOCK),
        Column("Share of accesses", kinds.plain("%")),
        Column("Share of bytes", kinds.shares()),
    )
    note = f"Mean transfer {ecw_load.MEAN_BYTES / units.KIB:.3f} KiB."
    return table("Block sizes", head, rows, note=note)


def _zones() -> Table:
    rows, first = [], 0.0
    for zone in ecw_load.ZONES:
        last = first + zone.size_pct
        rows.append((f"{first:g} to {last:g} %", zone.access_pct))
        first = last
    return table(
        "Address zones", ("Addresses", Column("Share of accesses", kinds.plain("%"))), rows
    )
