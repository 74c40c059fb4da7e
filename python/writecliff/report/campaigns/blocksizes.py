"""The report of the comparison by block size: IOPS, average and maximum latency, power."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from writecliff import units
from writecliff.procedures.campaigns.blocksizes import POWER
from writecliff.procedures.cells import Cell
from writecliff.procedures.iops import IopsLoop
from writecliff.procedures.model import StepRow
from writecliff.procedures.pts import mix_text
from writecliff.report import loops, plots
from writecliff.report.axes import Axis, Line, block_size_axis
from writecliff.report.campaigns.common import MS, RESULTS_CSV, Result, known, results_file
from writecliff.report.campaigns.common import summary as results_summary
from writecliff.report.campaigns.power import PowerSeries, power_figure, power_of
from writecliff.report.loops import Loop
from writecliff.report.model import Figure, KeyFigure, ReportModel, Section, Table, drawn
from writecliff.report.style import house_style
from writecliff.report.testdata import TestData, load
from writecliff.store.rundir import RunDirectory
from writecliff.workload.model import KIB

LATENCY = Axis("Response time", units=units.LATENCY_UNITS, log=True)
Value = Callable[[Cell], float | None]


def report(run: RunDirectory) -> ReportModel:
    """The report of a run. Raises StoreError: damaged, or nothing measured yet."""
    test = _Test(load(run))
    with house_style():
        sections = test.sections()
    return loops.model(
        test.data,
        (test.loop,),
        key_figures=test.key_figures(),
        sections=sections,
        files=(results_file(test.results()), *test.power_files()),
        summary=test.summary(),
    )


def summary_of(run: RunDirectory) -> dict[str, Any]:
    """What `report(run)` holds as its summary, without drawing anything."""
    return _Test(load(run)).summary()


class _Test:
    def __init__(self, data: TestData) -> None:
        self.data = data
        assert isinstance(data.procedure, IopsLoop)
        self.loop = Loop(data.stage("rounds"))
        self.threads_x_depth = data.procedure.options.threads * data.procedure.options.queue_depth
        seen = {cell[0] for cell in self.loop.cells}
        self.sizes = sorted(seen or data.procedure.sizes)
        self.mixes = list(data.procedure.options.read_pcts)
        stage = data.stage(POWER)
        self.power_rows: Sequence[StepRow] = stage.rows if stage is not None else ()
        self.power: PowerSeries | None = power_of(data, self.power_rows)

    # -- figures of cells, over the rounds of the window ------------------------------------

    def iops(self, cell: Cell) -> float | None:
        return self.loop.mean(cell, lambda row: row.iops)

    def average_ns(self, cell: Cell) -> float | None:
        return self.loop.mean(cell, lambda row: row.latency_mean_ns)

    def maximum_ns(self, cell: Cell) -> float | None:
        found = [row.latency_max_ns for row in self.loop.in_window(cell)]
        return max((value for value in found if value is not None), default=None)

    def results(self) -> list[Result]:
        found = []
        for size in self.sizes:
            for mix in self.mixes:
                place: dict[str, Any] = {
                    "item": "blocksizes",
                    "access": "random",
                    "block_kib": size / KIB,
                    "read_pct": mix,
                    "oio": self.threads_x_depth,
                }
                for metric, value, unit, scale in (
                    ("iops", self.iops((size, mix)), "IOPS", 1.0),
                    ("latency_avg", self.average_ns((size, mix)), "ms", MS),
                    ("latency_max", self.maximum_ns((size, mix)), "ms", MS),
                ):
                    if value is not None:
                        found.append(
                            Result(metric=metric, value=value / scale, unit=unit,
                                   higher_is_better=metric == "iops", **place)
                        )  # fmt: skip
        return [*found, *self._power_results()]

    def _power_results(self) -> list[Result]:
        if self.power is None:
            return []
        found = []
        for row in self.power_rows:
            watts = self.power.mean_of(row)
            if watts is not None:
                found.append(
                    Result("power", row.pattern or "", "watts", watts, "W",
                           block_kib=(row.block_bytes or 0) / KIB, read_pct=row.read_pct,
                           oio=self.threads_x_depth, higher_is_better=False)
                )  # fmt: skip
        return found

    def summary(self) -> dict[str, Any]:
        state = loops.steady_mapping([self.loop])
        measured = self.power is not None
        return results_summary(
            self.data, self.results(), steady_state=state, power_measured=measured
        )

    def power_files(self) -> tuple[Any, ...]:
        return () if self.power is None else (self.power.file(),)

    # -- the page ---------------------------------------------------------------------------

    def key_figures(self) -> tuple[KeyFigure, ...]:
        found = []
        for read_pct, label in ((0.0, "write"), (100.0, "read")):
            cell = (4 * KIB, read_pct)
            if cell in self.loop.cells:
                name = f"RND 4KiB {label}"
                found.append(loops.key_figure(name, self.iops(cell), "IOPS", self.loop, digits=0))
        return tuple(found)

    def sections(self) -> tuple[Section, ...]:
        if not self.loop.rounds:
            return ()
        parts = (
            ("iops", "IOPS", Axis("IOPS", log=True), self.iops, units.number),
            ("average", "Average response time", LATENCY, self.average_ns, units.latency),
            ("maximum", "Maximum response time", LATENCY, self.maximum_ns, units.latency),
        )
        cells = [self._section(*part) for part in parts]
        window = Section(
            "Steady state",
            loops.window_intro(self.loop),
            loops.window_figures(self.loop),
            loops.determinations(self.loop),
        )
        return (*cells, self._power_section(), window)

    def _section(
        self, name: str, title: str, axis: Axis, value: Value, text: Callable[[float | None], str]
    ) -> Section:
        series = [
            Line(
                mix_text(mix),
                [float(size) for size in self.sizes],
                [known(value((size, mix))) for size in self.sizes],
            )
            for mix in self.mixes
        ]
        svg = plots.lines(
            f"size-{name}",
            series,
            block_size_axis(self.sizes),
            axis,
            description=f"{title} over block size, a line a mix",
        )
        full = loops.flagged(f"{title} by block size", self.loop)
        figures: tuple[Figure, ...] = drawn(f"size-{name}", full, svg, RESULTS_CSV, title)
        table = Table(
            full,
            ("Block size", *(mix_text(mix) for mix in self.mixes)),
            tuple(
                (f"{size / KIB:g} KiB", *(text(value((size, mix))) for mix in self.mixes))
                for size in self.sizes
            ),
            loops.aligned(len(self.mixes)),
            data=RESULTS_CSV,
        )
        return Section(title, self.loop.source, figures, (table,))

    def _power_section(self) -> Section:
        if not self.power_rows:
            return Section("Power", "")
        rows = []
        for row in self.power_rows:
            watts = None if self.power is None else self.power.mean_of(row)
            shown = "not measured" if watts is None else f"{watts:.2f} W"
            rows.append((row.label, units.number(row.iops), shown))
        table = Table("Power by load", ("Load", "IOPS", "Average power"), tuple(rows),
                      loops.aligned(2), data=RESULTS_CSV)  # fmt: skip
        if self.power is None:
            return Section("Power", "Power was not measured: the drive does not tell it.",
                           tables=(table,))  # fmt: skip
        return Section(
            "Power",
            "Power over time, with the block size of the load as bars.",
            power_figure(self.power, self.power_rows),
            (table,),
        )
