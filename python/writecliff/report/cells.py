"""Reports for tests that loop over cells (a block size and read/write mix) until steady state.

This module is the basis of the IOPS test, the latency test and the block size comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from writecliff.procedures.cells import Cell
from writecliff.procedures.model import StepRow
from writecliff.procedures.pts import block_text, mix_text
from writecliff.report.axes import Axis, Line, block_size_axis
from writecliff.report.base import TestReport
from writecliff.report.compared import Grid
from writecliff.report.csvs import data_file
from writecliff.report.figures import convergence
from writecliff.report.figures3d import columns_3d
from writecliff.report.headline import NS_PER_MS
from writecliff.report.kinds import Kind
from writecliff.report.model import Figure, Section, section
from writecliff.report.plots import lines
from writecliff.report.steady import SteadyView, or_nan
from writecliff.report.table import Column, Data, Table, table
from writecliff.units import KIB

Value = Callable[[Cell], float | None]
RowValue = Callable[[StepRow], float | None]
_SIZES = Kind(block_text, "bytes", "left")


class CellReport(TestReport):
    """Report for a cell loop, with results averaged over the window's rounds."""

    @cached_property
    def view(self) -> SteadyView:
        """Cell loop of the test."""
        return self.data.view("rounds")

    @cached_property
    def views(self) -> Sequence[SteadyView]:
        """Cell loop, which is the only stage."""
        return (self.view,)

    @cached_property
    def sizes(self) -> Sequence[int]:
        """Measured block sizes in bytes, in ascending order."""
        planned = (round(size * KIB) for size in self.data.options["block_sizes_kib"])
        return sorted({cell[0] for cell in self.view.cells} or planned)

    @cached_property
    def mixes(self) -> Sequence[float]:
        """Read/write mixes by read percentage, in ascending order."""
        return sorted(self.data.options["read_pcts"])

    @property
    def cells(self) -> Sequence[Cell]:
        """Measured cells, with reads and large blocks first."""
        every = ((size, mix) for mix in reversed(self.mixes) for size in reversed(self.sizes))
        return [cell for cell in every if cell in self.view.cells]

    def iops(self, cell: Cell) -> float | None:
        """Return a cell's mean IOPS."""
        return self.view.mean(cell, lambda row: row.iops)

    # -- cell tables and figures ------------------------------------------------------------

    def grid(self, title: str, value: Value, kind: Kind, key: str, *, note: str = "",
             **where: Any) -> Table:  # fmt: skip
        """Return a table of block sizes and mixes.

        Args:
            title: Table title.
            value: Function that returns a cell's value.
            kind: Value kind.
            key: Column name prefix in files.
            note: Text below the table.
            where: `file` or `data` of `table`.
        """
        rows = [(size, *(value((size, mix)) for mix in self.mixes)) for size in self.sizes]
        head = (
            Column("Block size, R/W", _SIZES, "block_bytes"),
            *(
                Column(mix_text(m), kind, f"{key}_{mix_text(m).replace('/', '_')}")
                for m in self.mixes
            ),
        )
        return table(self.view.flagged(title), head, rows, note=note, **where)

    def side(self, name: str, title: str, value: Value, unit: str = "IOPS") -> Grid:
        """Return a grid of block sizes and mixes, for comparisons.

        For the unit "ms", values are passed in ns, and lower values are better.
        """
        values = {(size, mix): value((size, mix)) for size, mix in self.cells}
        scale = NS_PER_MS if unit == "ms" else 1.0
        return Grid(
            name=name,
            title=title,
            corner="Block size, R/W",
            rows=[block_text(size) for size in self.sizes],
            columns=[mix_text(mix) for mix in self.mixes],
            values={
                (block_text(size), mix_text(mix)): number / scale
                for (size, mix), number in values.items()
                if number is not None
            },
            unit=unit,
            higher_is_better=unit != "ms",
            steady=self.view.reached,
        )

    def columns(
        self, name: str, title: str, value: Value, y: Axis, data: Data, *, slow: bool = False
    ) -> Figure | None:
        """Return a 3-D column chart of block sizes and mixes.

        With `slow`, large values occur at large blocks and writes, so these are drawn at the back.
        """
        sizes = self.sizes if slow else self.sizes[::-1]
        mixes = self.mixes[::-1] if slow else self.mixes
        return columns_3d(
            name,
            self.view.flagged(title),
            data,
            [f"{size / KIB:g}" for size in sizes],
            list(map(mix_text, mixes)),
            [[or_nan(value((size, mix))) for size in sizes] for mix in mixes],
            "Block size (KiB)",
            "R/W mix",
            y,
            alt=f"{y.label} as columns over block size and read/write mix",
        )

    def size_lines(self, value: Value) -> list[Line]:
        """Return a figure against block size with a line per mix, reads first."""
        return [
            Line(mix_text(mix), self.sizes, [or_nan(value((size, mix))) for size in self.sizes])
            for mix in reversed(self.mixes)
        ]

    def by_size(self, name: str, title: str, value: Value, y: Axis, data: Data) -> Figure | None:
        """Return the plot drawn by `size_lines`."""
        axis, alt = block_size_axis(self.sizes), f"{y.label} over block size, a line per mix"
        return lines(name, self.view.flagged(title), data, self.size_lines(value), axis, y, alt=alt)

    def by_round(
        self, name: str, title: str, value: RowValue, column: str, y: Axis
    ) -> Figure | None:
        """Return a per-round figure of the mix with the most writes, with a line per block size.

        `column` is a template for the file's column names, with "{}" in place of the block size.
        """
        view, mix = self.view, self.mixes[0]
        series = [
            Line(block_text(size), view.rounds, view.over_rounds((size, mix), value))
            for size in reversed(self.sizes)
        ]
        head = ("round", *(column.format(line.label) for line in series))
        data = data_file(f"{name}.csv", head, zip(view.rounds, *(s.y for s in series), strict=True))
        window = view.window if view.judged else ()
        full = f"{title}, RND {mix_text(mix)}, all block sizes"
        return convergence(name, view.flagged(full), data, series, window, y)

    def window_section(self) -> Section:
        """Return the measurement window and its determination tables."""
        view = self.view
        title = "Steady-state measurement window"
        return section(title, view.intro, *view.window_figures(), *view.tables())
