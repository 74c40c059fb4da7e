"""The report of the latency test: its pages, and its summary ("writecliff/lat/1")."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.procedures.cells import Cell
from writecliff.procedures.lat import TRACKED, Lat
from writecliff.procedures.model import StepRow
from writecliff.procedures.pts import block_text, mix_text
from writecliff.report import figures, figures3d, loops
from writecliff.report.axes import Axis
from writecliff.report.csvs import csv_text, grid_csv, histogram_csv
from writecliff.report.latency import latency_mapping, latency_table, latency_unit
from writecliff.report.loops import Loop
from writecliff.report.model import (
    DataFile,
    Figure,
    KeyFigure,
    ReportModel,
    Section,
    Table,
    drawn,
)
from writecliff.report.style import house_style
from writecliff.report.summary import described, files
from writecliff.report.testdata import TestData, load
from writecliff.workload.model import KIB

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.store.rundir import RunDirectory

SCHEMA = "writecliff/lat/1"
FIVE_NINES = 0.99999
KINDS = {"mean": "Average", "max": "Maximum"}
MAX_TEXT = {
    "window": "the longest of all I/Os of the window",
    "mean": "the mean of the maxima of the window's rounds",
}


def report(run: RunDirectory) -> ReportModel:
    """The report of a latency run. Raises StoreError: nothing measured yet, or damaged."""
    test = _Test(load(run))
    with house_style():
        sections = test.sections()
    first = next(iter(test.histograms.items()), None)
    note = ""
    if first is not None:
        note = f"Response-time histogram of RND 4KiB {mix_text(first[0])}: {first[1].count:,} I/Os."
    return loops.model(
        test.data,
        (test.loop,),
        key_figures=test.key_figures(),
        sections=sections,
        files=test.files(),
        summary=test.summary(),
        histogram=first[1] if first is not None else None,
        latency_note=note,
        more_notes=(f"Maximum latencies in tables and columns are {MAX_TEXT[test.max_kind]}.",),
    )


def summary_of(run: RunDirectory) -> dict[str, Any]:
    """What `report(run)` holds as its summary, without drawing anything."""
    return _Test(load(run)).summary()


def _mean(row: StepRow) -> float | None:
    return row.latency_mean_ns


def _max(row: StepRow) -> float | None:
    return row.latency_max_ns


PICKS: dict[str, Callable[[StepRow], float | None]] = {"mean": _mean, "max": _max}


class _Test:
    def __init__(self, data: TestData) -> None:
        self.data = data
        procedure = data.procedure
        assert isinstance(procedure, Lat)
        self.max_kind = procedure.options.max_latency
        self.revision_2 = procedure.options.revision == "2.0"
        self.loop = Loop(data.stage("rounds"))
        seen = {cell[0] for cell in self.loop.cells}
        self.sizes = sorted(seen or procedure.sizes)
        self.mixes = sorted(procedure.options.read_pcts)

    def value(self, kind: str, cell: Cell) -> float | None:
        """Average or maximum latency of a cell over the window, in ns."""
        if kind == "max" and self.max_kind == "window":
            known = [_max(row) for row in self.loop.in_window(cell)]
            return max((number for number in known if number is not None), default=None)
        return self.loop.mean(cell, PICKS[kind])

    @cached_property
    def nines(self) -> dict[Cell, int | None]:
        """99.999 % of all I/Os of the window, in ns; None where they are too few."""
        found: dict[Cell, int | None] = {}
        for cell in self.loop.cells:
            histogram = self.data.histogram(self.loop.in_window(cell))
            found[cell] = histogram.quantile(FIVE_NINES).value_ns if histogram is not None else None
        return found

    @cached_property
    def histograms(self) -> dict[float, Histogram]:
        """Those after the rounds, by their share of reads."""
        stage = self.data.stage("rth")
        found = {}
        for row in stage.rows if stage is not None else ():
            histogram = self.data.histogram([row])
            if histogram is not None and histogram.count and row.read_pct is not None:
                found[row.read_pct] = histogram
        return found

    def key_figures(self) -> tuple[KeyFigure, ...]:
        found = []
        for kind, cell in (("mean", TRACKED), ("max", TRACKED), ("mean", (TRACKED[0], 100.0))):
            if cell not in self.loop.cells:
                continue
            value, _, unit = units.latency(self.value(kind, cell)).rpartition(" ")
            note = loops.note(self.loop, "" if kind == "mean" else MAX_TEXT[self.max_kind])
            label = f"{KINDS[kind]}, RND {block_text(cell[0])} {mix_text(cell[1])}"
            found.append(KeyFigure(label, value, unit, note))
        return tuple(found)

    def sections(self) -> tuple[Section, ...]:
        found: tuple[Section, ...] = ()
        if self.loop.rounds:
            found = (
                self._convergence("mean"),
                self._convergence("max"),
                Section(
                    "Steady-state measurement window",
                    loops.window_intro(self.loop),
                    loops.window_figures(self.loop),
                    loops.determinations(self.loop),
                ),
                self._tables(),
                self._columns("mean"),
                self._columns("max"),
            )
        return (*found, *(self._histogram(mix, h) for mix, h in self.histograms.items()))

    def _series(self, kind: str) -> dict[str, list[float]]:
        """Latencies of the mix of most writes in every round, by block size."""
        mix = self.mixes[0]
        return {
            block_text(size): list(self.loop.over_rounds((size, mix), PICKS[kind]))
            for size in reversed(self.sizes)
        }

    def _convergence(self, kind: str) -> Section:
        name = f"convergence-{kind}"
        what = f"{KINDS[kind].lower()} latency"
        mix = mix_text(self.mixes[0])
        axis = Axis(f"{KINDS[kind]} latency", units=units.LATENCY_UNITS)
        svg = figures.convergence(
            name,
            self.loop.rounds,
            self._series(kind),
            self.loop.window if self.loop.judged else (),
            axis,
        )
        title = f"Steady-state convergence, {what}, RND {mix}, all block sizes"
        return Section(
            f"Convergence of {what}",
            loops.window_intro(self.loop),
            drawn(
                name,
                loops.flagged(title, self.loop),
                svg,
                f"{name}.csv",
                f"{KINDS[kind]} latency of each round, a line a block size",
            ),
        )

    def _tables(self) -> Section:
        tables = [
            self._table(
                f"{KINDS[kind]} latency (ms)",
                self._ms_of(kind),
                f"latency-{kind}.csv",
                "" if kind == "mean" else MAX_TEXT[self.max_kind],
            )
            for kind in KINDS
        ]
        if self.revision_2:
            tables.append(
                self._table(
                    f"{units.nines(FIVE_NINES)} latency (ms)",
                    lambda cell: _ms(self.nines[cell]),
                    "latency-99999.csv",
                    "of all I/Os of the window",
                )
            )
            tables.append(
                self._table("IOPS", lambda cell: units.number(self._iops(cell), 1), "iops.csv", "")
            )
        return Section("Tabular data", self.loop.source, tables=tuple(tables))

    def _ms_of(self, kind: str) -> Callable[[Cell], str]:
        return lambda cell: _ms(self.value(kind, cell))

    def _iops(self, cell: Cell) -> float | None:
        return self.loop.mean(cell, lambda row: row.iops)

    def _table(self, title: str, text: Callable[[Cell], str], data: str, note: str) -> Table:
        return Table(
            loops.flagged(title, self.loop),
            ("Block size, R/W", *map(mix_text, self.mixes)),
            tuple(
                (block_text(size), *(text((size, mix)) for mix in self.mixes))
                for size in self.sizes
            ),
            loops.aligned(len(self.mixes)),
            note,
            data,
        )

    def _columns(self, kind: str) -> Section:
        mixes = list(reversed(self.mixes))  # writes are slower: at the back
        svg = figures3d.columns_3d(
            f"latency-{kind}-3d",
            [f"{size / KIB:g}" for size in self.sizes],
            list(map(mix_text, mixes)),
            [[loops.known(self.value(kind, (size, mix))) for size in self.sizes] for mix in mixes],
            "Block size (KiB)",
            "R/W mix",
            Axis(f"{KINDS[kind]} latency", units=units.LATENCY_UNITS),
            description=f"{KINDS[kind]} latency as columns over block size and read/write mix",
        )
        title = f"{KINDS[kind]} latency - block size x R/W mix"
        intro = self.loop.source
        if kind == "max":
            intro += f" Each maximum is {MAX_TEXT[self.max_kind]}."
        return Section(
            f"3-D columns, {KINDS[kind].lower()}",
            intro,
            drawn(
                f"latency-{kind}-3d",
                loops.flagged(title, self.loop),
                svg,
                f"latency-{kind}.csv",
                f"{KINDS[kind]} latency over block size and read/write mix",
                wide=True,
            ),
        )

    def _histogram(self, mix: float, histogram: Histogram) -> Section:
        what = f"RND 4KiB {mix_text(mix)}"
        name = f"{mix:g}"
        longest = units.latency(histogram.max_ns, latency_unit(histogram))
        plots: tuple[Figure, ...] = drawn(
            f"histogram-{name}",
            f"Response-time histogram, {what} (maximum {longest})",
            figures.response_time_histogram(f"histogram-{name}", histogram),
            f"histogram-{name}.csv",
            "Number of I/Os by response time with average, nines and maximum",
        ) + drawn(
            f"confidence-{name}",
            f"Confidence level plot, {what}",
            figures.confidence(f"confidence-{name}", histogram),
            f"histogram-{name}.csv",
            "Cumulative share of I/Os over response time",
        )
        return Section(
            f"Response-time histogram, {what}",
            "After the rounds. Percentiles are of all I/Os, as upper bounds of the histogram's "
            "buckets that never exceed the maximum.",
            plots,
            (latency_table(histogram),),
        )

    def files(self) -> tuple[DataFile, ...]:
        found = [
            DataFile(f"histogram-{mix:g}.csv", histogram_csv(h))
            for mix, h in self.histograms.items()
        ]
        if not self.loop.rounds:
            return tuple(found)
        for kind in KINDS:
            found.append(self._grid(f"latency-{kind}.csv", partial(self.value, kind)))
            series = self._series(kind)
            head = ("round", *(f"latency_{kind}_{size}_ns" for size in series))
            rows = zip(self.loop.rounds, *series.values(), strict=True)
            found.append(DataFile(f"convergence-{kind}.csv", csv_text(head, rows)))
        if self.revision_2:
            found.append(self._grid("latency-99999.csv", lambda cell: self.nines[cell]))
            found.append(self._grid("iops.csv", self._iops, "iops"))
        return tuple(found)

    def _grid(
        self, name: str, value: Callable[[Cell], float | None], unit: str = "latency_ns"
    ) -> DataFile:
        names = [f"{unit}_{mix_text(mix).replace('/', '_')}" for mix in self.mixes]
        values = [[value((size, mix)) for mix in self.mixes] for size in self.sizes]
        return DataFile(name, grid_csv("block_bytes", self.sizes, names, values))

    def summary(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            **described(self.data),
            "steady_state": loops.steady_mapping((self.loop,)),
            "max_latency": self.max_kind,
            "results": [
                {
                    "block_bytes": size,
                    "read_pct": mix,
                    "latency_mean_ns": self.value("mean", (size, mix)),
                    "latency_max_ns": self.value("max", (size, mix)),
                    "latency_p99999_ns": self.nines[size, mix],
                    "iops": self._iops((size, mix)),
                }
                for mix in reversed(self.mixes)
                for size in reversed(self.sizes)
                if (size, mix) in self.loop.cells
            ],
            "histograms": [
                {"block_bytes": TRACKED[0], "read_pct": mix, **latency_mapping(histogram)}
                for mix, histogram in self.histograms.items()
            ],
            **files(self.data),
        }


def _ms(value_ns: float | None) -> str:
    return units.UNKNOWN if value_ns is None else units.significant(value_ns / 1e6, 4)
