"""The report of the IOPS test: its six pages and its summary ("writecliff/iops/1")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.procedures.cells import Cell
from writecliff.procedures.iops import Iops
from writecliff.procedures.pts import block_text, mix_text
from writecliff.report import figures, figures3d, loops, plots
from writecliff.report.axes import Axis, Line, block_size_axis
from writecliff.report.csvs import csv_text, grid_csv, lines_csv
from writecliff.report.loops import Loop
from writecliff.report.model import DataFile, KeyFigure, ReportModel, Section, Table, drawn
from writecliff.report.style import house_style
from writecliff.report.summary import described, files
from writecliff.report.testdata import TestData, load
from writecliff.workload.model import KIB

if TYPE_CHECKING:
    from writecliff.store.rundir import RunDirectory

SCHEMA = "writecliff/iops/1"
RESULTS_CSV, CONVERGENCE_CSV, SERIES_CSV = "iops.csv", "convergence.csv", "iops-by-size.csv"
HIGHLIGHTS: tuple[Cell, ...] = ((4 * KIB, 0.0), (8 * KIB, 65.0), (4 * KIB, 100.0))
IOPS, LOG_IOPS = Axis("IOPS"), Axis("IOPS", log=True)


def report(run: RunDirectory) -> ReportModel:
    """The report of an IOPS run. Raises StoreError: nothing measured yet, or damaged."""
    test = _Test(load(run))
    with house_style():
        sections = test.sections()
    return loops.model(
        test.data,
        (test.loop,),
        key_figures=test.key_figures(),
        sections=sections,
        files=test.files(),
        summary=test.summary(),
    )


def summary_of(run: RunDirectory) -> dict[str, Any]:
    """What `report(run)` holds as its summary, without drawing anything."""
    return _Test(load(run)).summary()


class _Test:
    def __init__(self, data: TestData) -> None:
        self.data = data
        procedure = data.procedure
        assert isinstance(procedure, Iops)
        self.procedure = procedure
        self.loop = Loop(data.stage("rounds"))
        seen = {cell[0] for cell in self.loop.cells}
        # Rising IOPS: small blocks last, reads last.
        self.sizes = sorted(seen or procedure.sizes)
        self.mixes = sorted(procedure.options.read_pcts)

    def value(self, size: int, read_pct: float) -> float | None:
        """The result of a cell: mean IOPS over the rounds of the window."""
        return self.loop.mean((size, read_pct), lambda row: row.iops)

    def key_figures(self) -> tuple[KeyFigure, ...]:
        return tuple(
            loops.key_figure(
                f"RND {block_text(cell[0])} {mix_text(cell[1])}",
                self.value(*cell),
                "IOPS",
                self.loop,
                digits=0,
            )
            for cell in HIGHLIGHTS
            if cell in self.loop.cells
        )

    def sections(self) -> tuple[Section, ...]:
        if not self.loop.rounds:
            return ()
        return (
            self._convergence(),
            Section(
                "Steady-state measurement window",
                loops.window_intro(self.loop),
                loops.window_figures(self.loop),
            ),
            Section(
                "Steady-state determination",
                loops.window_intro(self.loop),
                tables=loops.determinations(self.loop),
            ),
            Section("Tabular data", self.loop.source, tables=(self._table(),)),
            self._by_size(),
            self._columns(),
        )

    def _writes(self) -> dict[str, list[float]]:
        """IOPS of the mix of most writes in every round, by block size."""
        mix = self.mixes[0]
        return {
            block_text(size): list(self.loop.over_rounds((size, mix), lambda row: row.iops))
            for size in reversed(self.sizes)
        }

    def _convergence(self) -> Section:
        mix = mix_text(self.mixes[0])
        window = self.loop.window if self.loop.judged else ()
        rounds = self.loop.rounds
        plots_ = drawn(
            "convergence",
            loops.flagged(f"Steady-state convergence, RND {mix}, all block sizes", self.loop),
            figures.convergence("convergence", rounds, self._writes(), window, LOG_IOPS),
            CONVERGENCE_CSV,
            f"IOPS of each round at R/W {mix}, a line a block size",
        )
        stage = self.loop.stage
        if stage is not None and stage.tracker is not None and len(stage.tracking) > 1:
            values = {name.removesuffix(" IOPS"): v for name, v in stage.tracker.values.items()}
            plots_ += drawn(
                "convergence-tracked",
                loops.flagged("Steady-state convergence, tracking variables", self.loop),
                figures.convergence("convergence-tracked", rounds, values, window, LOG_IOPS),
                loops.tracking_csv_name(self.loop),
                "IOPS of each round, a line a tracking variable",
            )
        return Section("Steady-state convergence", loops.window_intro(self.loop), plots_)

    def _table(self) -> Table:
        client = self.procedure.options.edition == "pts-c"
        title = f"{'Client' if client else 'Enterprise'} IOPS - ALL RW Mix & BS - Tabular Data"
        rows = tuple(
            (block_text(size), *(units.number(self.value(size, mix), 1) for mix in self.mixes))
            for size in self.sizes
        )
        return Table(
            loops.flagged(title, self.loop),
            ("Block size, R/W", *map(mix_text, self.mixes)),
            rows,
            loops.aligned(len(self.mixes)),
            data=RESULTS_CSV,
        )

    def _lines(self) -> list[Line]:
        return [
            Line(
                mix_text(mix),
                self.sizes,
                [loops.known(self.value(size, mix)) for size in self.sizes],
            )
            for mix in reversed(self.mixes)
        ]

    def _by_size(self) -> Section:
        svg = plots.lines(
            "iops-2d",
            self._lines(),
            block_size_axis(self.sizes),
            LOG_IOPS,
            description="IOPS over block size, a line a read/write mix, both axes logarithmic",
        )
        title = loops.flagged("IOPS v block size, all R/W mixes", self.loop)
        text = "IOPS over block size, a line a mix"
        return Section("2-D plot", self.loop.source, drawn("iops-2d", title, svg, SERIES_CSV, text))

    def _columns(self) -> Section:
        sizes = list(reversed(self.sizes))
        svg = figures3d.columns_3d(
            "iops-3d",
            [f"{size / KIB:g}" for size in sizes],
            list(map(mix_text, self.mixes)),
            [[loops.known(self.value(size, mix)) for size in sizes] for mix in self.mixes],
            "Block size (KiB)",
            "R/W mix",
            IOPS,
            description="IOPS as columns over block size and read/write mix",
        )
        title = loops.flagged("IOPS - block size x R/W mix", self.loop)
        text = "IOPS as columns over block size and read/write mix"
        return Section(
            "3-D columns",
            self.loop.source,
            drawn("iops-3d", title, svg, RESULTS_CSV, text, wide=True),
        )

    def files(self) -> tuple[DataFile, ...]:
        if not self.loop.rounds:
            return ()
        names = [f"iops_{mix_text(mix).replace('/', '_')}" for mix in self.mixes]
        values = [[self.value(size, mix) for mix in self.mixes] for size in self.sizes]
        writes = self._writes()
        by_round = zip(self.loop.rounds, *writes.values(), strict=True)
        return (
            DataFile(RESULTS_CSV, grid_csv("block_bytes", self.sizes, names, values)),
            DataFile(SERIES_CSV, lines_csv(self._lines(), "rw_mix", "block_bytes", "iops")),
            DataFile(
                CONVERGENCE_CSV,
                csv_text(("round", *(f"iops_{size}" for size in writes)), by_round),
            ),
        )

    def summary(self) -> dict[str, Any]:
        cells = [
            {"block_bytes": size, "read_pct": mix, "iops": self.value(size, mix)}
            for mix in reversed(self.mixes)
            for size in reversed(self.sizes)
            if (size, mix) in self.loop.cells
        ]
        return {
            "schema": SCHEMA,
            **described(self.data),
            "steady_state": loops.steady_mapping((self.loop,)),
            "results": cells,
            **files(self.data),
        }
