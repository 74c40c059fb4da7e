"""Report for the block size comparison.

The report shows IOPS, average and maximum latency, and power.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from writecliff import units
from writecliff.procedures.campaigns.blocksizes import POWER
from writecliff.procedures.cells import Cell
from writecliff.procedures.model import StepRow
from writecliff.report import kinds, steady_stages
from writecliff.report.axes import Axis
from writecliff.report.campaigns.results import MS, CampaignReport, Result, known_results
from writecliff.report.cells import CellReport
from writecliff.report.compared import Grid
from writecliff.report.model import KeyFigure, Section, section
from writecliff.report.power import POWER_CSV, PowerSeries, power_figure, power_of
from writecliff.report.table import Column, DataFile, table
from writecliff.units import KIB

LOOP_CSV = "power-loop.csv"
RESPONSE = Axis("Response time", units=units.LATENCY_UNITS, log=True)


class BlockSizesReport(CampaignReport, CellReport):
    """Report for a block size comparison run."""

    @cached_property
    def mixes(self) -> Sequence[float]:
        """Measured mixes by read percentage."""
        return list(self.data.options["read_pcts"])

    @cached_property
    def power_rows(self) -> Sequence[StepRow]:
        """Steps that measure power."""
        return self.data.stage_rows(POWER)

    @cached_property
    def power(self) -> PowerSeries | None:
        """Power during the power steps, or None if power was not measured."""
        return power_of(self.data, self.power_rows)

    @cached_property
    def loop_rows(self) -> Sequence[StepRow]:
        """Last round of steps in the window, which is the loop of the standard's IOPS test."""
        last = self.view.window[-1:]
        return [row for row in self.data.stage_rows("rounds") if row.round in last]

    @cached_property
    def loop_power(self) -> PowerSeries | None:
        """Power during the last round, or None if power was not measured."""
        return power_of(self.data, self.loop_rows)

    def average_ns(self, cell: Cell) -> float | None:
        """Return the average latency, averaged over the window's rounds."""
        return self.view.mean(cell, lambda row: row.latency_mean_ns)

    def maximum_ns(self, cell: Cell) -> float | None:
        """Return the longest latency in the window's rounds."""
        return self.view.highest(cell, lambda row: row.latency_max_ns)

    @cached_property
    def measurements(self) -> Sequence[Result]:
        """IOPS, latencies and power of all cells."""
        options = self.data.options
        oio = options["threads"] * options["queue_depth"]
        results = []
        for size in self.sizes:
            for mix in self.mixes:
                average, longest = self.average_ns((size, mix)), self.maximum_ns((size, mix))
                results += known_results(
                    (
                        ("iops", self.iops((size, mix)), "IOPS", True),
                        ("latency_avg", None if average is None else average / MS, "ms", False),
                        ("latency_max", None if longest is None else longest / MS, "ms", False),
                    ),
                    item="blocksizes", access="random", block_kib=size / KIB, read_pct=mix, oio=oio,
                )  # fmt: skip
        for row in self.power_rows:
            results += known_results(
                (("watts", self._watts(row), "W", False),),
                item="power", access=row.pattern or "", block_kib=(row.block_bytes or 0) / KIB,
                read_pct=row.read_pct, oio=oio,
            )  # fmt: skip
        return results

    def grids(self) -> list[Grid]:
        """Return IOPS, average and maximum response time by block size and mix."""
        return [
            self.side("iops", "IOPS by block size and mix", self.iops),
            self.side(
                "average", "Average response time by block size and mix", self.average_ns, "ms"
            ),
            self.side(
                "maximum", "Maximum response time by block size and mix", self.maximum_ns, "ms"
            ),
        ]

    def samples_of(self, result: Result) -> Sequence[float | None]:
        """Return a result's values for the window's rounds."""
        cell = (round((result.block_kib or 0) * KIB), result.read_pct or 0.0)
        match result.item, result.metric:
            case "blocksizes", "iops":
                return self.view.samples(cell, lambda row: row.iops)
            case "blocksizes", "latency_avg":
                return [v / MS for v in self.view.samples(cell, lambda row: row.latency_mean_ns)]
        return ()

    def _watts(self, row: StepRow) -> float | None:
        return None if self.power is None else self.power.mean_of(row)

    def more_results(self) -> dict[str, Any]:
        """Return the disclosures on steady state and power."""
        measured = self.power is not None
        return {"steady_state": steady_stages.views_mapping(self.views), "power_measured": measured}

    def files(self) -> tuple[DataFile, ...]:
        """Return the results, and the power during the loop if it was measured."""
        series = ((self.power, POWER_CSV), (self.loop_power, LOOP_CSV))
        power = (
            series_of_run.file(name) for series_of_run, name in series if series_of_run is not None
        )
        return (self.results_file, *power)

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield the IOPS of 4 KiB accesses."""
        for read_pct, label in ((0.0, "write"), (100.0, "read")):
            cell = (4 * KIB, read_pct)
            if cell in self.view.cells:
                yield self.view.key_figure(f"RND 4KiB {label}", self.iops(cell), "IOPS", digits=0)

    def sections(self) -> Iterator[Section]:
        """Yield the figures by block size, the window and the power."""
        if not self.view.rounds:
            return
        for name, title, axis, value, kind in (
            ("iops", "IOPS", Axis("IOPS", log=True), self.iops, kinds.NUMBER),
            ("average", "Average response time", RESPONSE, self.average_ns, kinds.LATENCY),
            ("maximum", "Maximum response time", RESPONSE, self.maximum_ns, kinds.LATENCY),
        ):
            full, data = f"{title} by block size", self.results_file
            figure = self.by_size(f"size-{name}", full, value, axis, data)
            grid = self.grid(full, value, kind, name, data=data)
            yield section(title, self.view.source, figure, grid)
        yield self._loop_section()
        yield self._power_section()
        yield self.window_section()

    def _loop_section(self) -> Section:
        """Return the power during the IOPS loop; omitted if it was not measured."""
        power, rows = self.loop_power, self.loop_rows
        if power is None:
            return section("Power under the IOPS loop", "")
        figure = power_figure(power, rows, "power-loop", "Power and block size v time", LOOP_CSV)
        return section(
            "Power under the IOPS loop",
            f"Round {rows[-1].round}: reads, writes and mixes, and the block size of each step.",
            figure,
        )

    def _power_section(self) -> Section:
        if not self.power_rows:
            return section("Power", "")
        watts = [self._watts(row) for row in self.power_rows]
        rows = [
            (row.label, row.iops, "not measured" if w is None else w)
            for row, w in zip(self.power_rows, watts, strict=True)
        ]
        head = (
            "Load",
            Column("IOPS", kinds.NUMBER),
            Column("Average power", kinds.decimals(2, "W")),
        )
        loads = table("Power by load", head, rows, data=self.results_file)
        if self.power is None:
            return section(
                "Power",
                "Power was not measured: the drive does not report it, and no "
                "meter's log was given (`writecliff report --power`).",
                loads,
            )
        intro = (
            "Power over time, with the block size of the load as bars: first reads, then writes, "
            "after the loop."
        )
        return section("Power", intro, power_figure(self.power, self.power_rows), loads)
