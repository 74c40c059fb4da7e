"""The report of the IOPS test: the six pages of the standard; summary "writecliff/iops/1"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from writecliff import units
from writecliff.procedures.cells import Cell
from writecliff.procedures.pts import block_text, mix_text
from writecliff.report import steady
from writecliff.report.axes import Axis
from writecliff.report.base import ComparedFigure
from writecliff.report.cells import CellReport
from writecliff.report.csvs import lines_csv
from writecliff.report.model import DataFile, KeyFigure, Section, section
from writecliff.report.steady import SteadyView
from writecliff.units import KIB

HIGHLIGHTS: tuple[Cell, ...] = ((4 * KIB, 0.0), (8 * KIB, 65.0), (4 * KIB, 100.0))
LOG_IOPS = Axis("IOPS", log=True)


class IopsReport(CellReport):
    """The report of a run of the IOPS test."""

    COMPARED = (
        ComparedFigure("iops_4k_0_100", "RND 4KiB 100% W", "IOPS"),
        ComparedFigure("iops_8k_65_35", "RND 8KiB 65:35", "IOPS"),
        ComparedFigure("iops_4k_65_35", "RND 4KiB 65:35", "IOPS"),
        ComparedFigure("iops_4k_100_0", "RND 4KiB 100% R", "IOPS"),
    )

    def compared(self) -> Mapping[str, tuple[float | None, SteadyView | None]]:
        cells = ((4 * KIB, 0.0), (8 * KIB, 65.0), (4 * KIB, 65.0), (4 * KIB, 100.0))
        figures = zip(self.COMPARED, cells, strict=True)
        return {figure.key: (self.iops(cell), self.view) for figure, cell in figures}

    def key_figures(self) -> Iterator[KeyFigure]:
        for cell in HIGHLIGHTS:
            if cell in self.view.cells:
                label = f"RND {block_text(cell[0])} {mix_text(cell[1])}"
                yield self.view.key_figure(label, self.iops(cell), "IOPS", digits=0)

    def sections(self) -> Iterable[Section]:
        view = self.view
        if not view.rounds:
            return ()
        client = self.data.options["edition"] == "pts-c"
        title = f"{'Client' if client else 'Enterprise'} IOPS - ALL RW Mix & BS - Tabular Data"
        results = self.grid_file("iops.csv", "iops", self.iops)
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
            self.window_section(tables=False),
            section("Steady-state determination", view.intro, *view.tables()),
            section(
                "Tabular data",
                view.source,
                self.grid(title, self.iops, lambda value: units.number(value, 1), results),
            ),
            section(
                "2-D plot",
                view.source,
                self.by_size(
                    "iops-2d", "IOPS v block size, all R/W mixes", self.iops, LOG_IOPS,
                    DataFile("iops-by-size.csv", by_size),
                ),
            ),
            section(
                "3-D columns",
                view.source,
                self.columns(
                    "iops-3d", "IOPS - block size x R/W mix", self.iops, Axis("IOPS"), results
                ),
            ),
        )  # fmt: skip

    def results(self) -> dict[str, Any]:
        return {
            "steady_state": steady.views_mapping(self.views),
            "results": [
                {"block_bytes": cell[0], "read_pct": cell[1], "iops": self.iops(cell)}
                for cell in self.cells
            ],
        }
