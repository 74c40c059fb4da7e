"""IOPS test report with the standard's plots, and the summary "writecliff/iops/1"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from writecliff import units
from writecliff.procedures.cells import Cell
from writecliff.procedures.model import StepRow
from writecliff.procedures.pts import block_text, mix_text
from writecliff.report import kinds, steady_stages
from writecliff.report.axes import Axis, block_size_axis
from writecliff.report.cells import CellReport
from writecliff.report.compared import Curve, Grid
from writecliff.report.csvs import lines_csv
from writecliff.report.headline import Headline, mean_headline
from writecliff.report.model import KeyFigure, Section, section
from writecliff.report.power import PowerSeries, power_figure, power_of
from writecliff.report.sequence import block_size_sequence
from writecliff.report.table import DataFile
from writecliff.units import KIB

HIGHLIGHTS: tuple[Cell, ...] = ((4 * KIB, 0.0), (8 * KIB, 65.0), (4 * KIB, 100.0))
# Cells in the SNIA primer's table (2013, figure 3).
QUOTED: tuple[Cell, ...] = ((4 * KIB, 0.0), (8 * KIB, 65.0), (4 * KIB, 65.0), (4 * KIB, 100.0))
LOG_IOPS = Axis("IOPS", log=True)


class IopsReport(CellReport):
    """Report for an IOPS test run."""

    lead = "iops-2d"
    sentence = "It sustains {0} of random 4 KiB writes and {2} of random 4 KiB reads."

    @classmethod
    def figure_units(cls, procedure: Any) -> Mapping[str, str]:
        """Return the units of the tracked cells."""
        return {_key(cell): "IOPS" for cell in QUOTED}

    def headlines(self) -> list[Headline]:
        """Return the main cells' IOPS with intervals."""
        view = self.view
        return [
            item
            for cell in QUOTED
            for item in mean_headline(
                _key(cell),
                f"RND {block_text(cell[0])} {mix_text(cell[1])}",
                view.samples(cell, lambda row: row.iops),
                "IOPS",
                steady=view.reached,
            )
        ]

    def curves(self) -> list[Curve]:
        """Return IOPS over block size for the mixes in the SNIA primer's table."""
        x = block_size_axis(self.sizes)
        curves = []
        for mix in (mix for mix in dict.fromkeys(read for _, read in QUOTED) if mix in self.mixes):
            values = [(float(size), self.iops((size, mix))) for size in self.sizes]
            points = [(size, iops) for size, iops in values if iops is not None]
            name, text = f"iops-by-size-{mix:g}", mix_text(mix)
            curves.append(Curve(name, f"IOPS v block size, {text}", x, LOG_IOPS, points))
        return curves

    def grids(self) -> list[Grid]:
        """Return IOPS by block size and mix."""
        return [self.side("iops", "IOPS by block size and mix", self.iops)]

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield the main cells' IOPS."""
        for cell in HIGHLIGHTS:
            if cell in self.view.cells:
                label = f"RND {block_text(cell[0])} {mix_text(cell[1])}"
                yield self.view.key_figure(label, self.iops(cell), "IOPS", digits=0)

    def sections(self) -> Iterable[Section]:
        """Return the sections on convergence, window, tables, plots, power and sequence."""
        view = self.view
        if not view.rounds:
            return ()
        client = self.data.options["edition"] == "pts-c"
        title = f"{'Client' if client else 'Enterprise'} IOPS - ALL RW Mix & BS - Tabular Data"
        by_size = lines_csv(self.size_lines(self.iops), "rw_mix", "block_bytes", "iops")
        tracked = "Steady-state convergence, tracking variables"
        return (
            section(
                "Steady-state convergence",
                view.intro,
                self.by_round(
                    "convergence", "Steady-state convergence", lambda row: row.iops, "iops_{}",
                    LOG_IOPS,
                ),
                view.convergence(tracked, log=True) if len(view.values) > 1 else None,
            ),
            self.window_section(),
            section(
                "Tabular data",
                view.source,
                self.grid(title, self.iops, kinds.decimals(1), "iops", file="iops.csv"),
            ),
            section(
                "2-D and 3-D plot",
                view.source,
                self.by_size(
                    "iops-2d", "IOPS v block size, all R/W mixes", self.iops, LOG_IOPS,
                    DataFile("iops-by-size.csv", by_size),
                ),
                self.columns(
                    "iops-3d", "IOPS - block size x R/W mix", self.iops, Axis("IOPS"), "iops.csv"
                ),
            ),
            self._sequence(),
            self._power_section(),
        )  # fmt: skip

    @cached_property
    def power_rows(self) -> Sequence[StepRow]:
        """Steps in the window's last round, whose power is shown."""
        last = self.view.window[-1:]
        return [row for row in self.data.stage_rows("rounds") if row.round in last]

    @cached_property
    def power(self) -> PowerSeries | None:
        """Power during the last round, or None if power was not measured."""
        return power_of(self.data, self.power_rows)

    def _power_section(self) -> Section:
        """Return the section about the loop's power, which is empty if power was not measured."""
        power, rows = self.power, self.power_rows
        if power is None:
            return section("Power", "")
        by_cell = {(row.block_bytes, row.read_pct): power.mean_of(row) for row in rows}
        joules = {
            (row.block_bytes, row.read_pct): row.iops / watts
            for row in rows
            if (watts := power.mean_of(row))
        }
        number = rows[-1].round
        return section(
            "Power",
            f"Power under the IOPS loop, round {number}: reads, writes, mixes, and the "
            "block size of each minute. Lines are means of a twelfth of a step. The standard has "
            f"no test of power; this is an addition.{self._rated}",
            power_figure(power, rows),
            self.grid(
                f"Average power (W), round {number}", by_cell.get, kinds.decimals(2), "watts",
                file="power-by-cell.csv",
            ),
            self.grid(
                f"IOPS per watt, round {number}", joules.get, kinds.NUMBER, "iops_per_watt",
                file="iops-per-watt.csv",
            ),
        )  # fmt: skip

    @property
    def _rated(self) -> str:
        """Sentence about an NVMe drive's power state, or an empty text if it is unknown."""
        power = self.data.manifest.power
        if power is None:
            return ""
        if self.data.manifest.device.simulated:
            return f" Power state {power.text}."
        return f" NVMe power state {power.text}, as reported by the drive."

    def _sequence(self) -> Section:
        """Return the steps in the window's last round in sequence."""
        number = self.view.window[-1]
        rows = [row for row in self.data.stage_rows("rounds") if row.round == number]
        time = units.duration(rows[-1].ended_ns - rows[0].started_ns)
        return section(
            "Block-size sequencing",
            f"Round {number}, {len(rows)} steps in {time}: each mix of reads and writes in turn, "
            "from large blocks to small.",
            block_size_sequence(self.data, rows, f"IOPS of round {number} v time"),
        )

    def results(self) -> dict[str, Any]:
        """Return the steady state and each cell's IOPS."""
        return {
            "steady_state": steady_stages.views_mapping(self.views),
            "results": [
                {"block_bytes": cell[0], "read_pct": cell[1], "iops": self.iops(cell)}
                for cell in self.cells
            ],
        }


def _key(cell: Cell) -> str:
    return f"iops_{cell[0] // KIB}k_{mix_text(cell[1]).replace('/', '_')}"
