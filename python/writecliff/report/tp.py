"""The report of the throughput test: five pages a block size, summary "writecliff/tp/1"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.procedures.model import StepRow
from writecliff.procedures.pts import block_text, mix_text
from writecliff.procedures.tp import READ_PCTS, Tp, phase_of
from writecliff.report import figures, loops, plots
from writecliff.report.axes import Axis
from writecliff.report.csvs import csv_text
from writecliff.report.loops import Loop
from writecliff.report.model import DataFile, KeyFigure, ReportModel, Section, Table, drawn
from writecliff.report.style import house_style
from writecliff.report.summary import described, files
from writecliff.report.testdata import TestData, load
from writecliff.units import MB_S
from writecliff.workload.model import KIB

if TYPE_CHECKING:
    from writecliff.store.rundir import RunDirectory

SCHEMA = "writecliff/tp/1"
RESULTS_CSV = "throughput.csv"
RATE = Axis("Throughput", units=(MB_S,))
NAMES = {100.0: "read", 0.0: "write"}


def report(run: RunDirectory) -> ReportModel:
    """The report of a throughput run. Raises StoreError: nothing measured yet, or damaged."""
    test = _Test(load(run))
    with house_style():
        sections = test.sections()
    return loops.model(
        test.data,
        test.loops,
        key_figures=test.key_figures(),
        sections=sections,
        files=test.files(),
        summary=test.summary(),
    )


def summary_of(run: RunDirectory) -> dict[str, Any]:
    """What `report(run)` holds as its summary, without drawing anything."""
    return _Test(load(run)).summary()


def _rate(row: StepRow) -> float:
    return row.bytes_per_s


class _Test:
    def __init__(self, data: TestData) -> None:
        self.data = data
        procedure = data.procedure
        assert isinstance(procedure, Tp)
        self.sizes = procedure.sizes
        self.loops = [
            Loop(
                data.stage(phase_of(size)), block_text(size), f"-{size / KIB:g}k".replace(".", "-")
            )
            for size in self.sizes
        ]

    @property
    def pairs(self) -> Sequence[tuple[int, Loop]]:
        return list(zip(self.sizes, self.loops, strict=True))

    def key_figures(self) -> tuple[KeyFigure, ...]:
        return tuple(
            loops.key_figure(
                f"SEQ {block_text(size)} {NAMES[read]}",
                _mb_s(loop.mean((size, read), _rate)),
                "MB/s",
                loop,
            )
            for size, loop in self.pairs
            for read in reversed(READ_PCTS)
        )

    def sections(self) -> tuple[Section, ...]:
        return tuple(
            section
            for size, loop in self.pairs
            if loop.rounds
            for section in self._pages(size, loop)
        )

    def _pages(self, size: int, loop: Loop) -> tuple[Section, ...]:
        text = f"SEQ {block_text(size)}"
        subtitle = f"TP - {text} R/W"
        return (
            self._convergence(size, loop, 0.0),
            self._convergence(size, loop, 100.0),
            Section(
                f"{text}: steady-state measurement window",
                loops.window_intro(loop),
                loops.window_figures(loop),
                loops.determinations(loop),
                subtitle=subtitle,
            ),
            Section(
                f"{text}: tabular data",
                loop.source,
                tables=(self._table(size, loop),),
                subtitle=subtitle,
            ),
            self._bars(size, loop),
        )

    def _convergence(self, size: int, loop: Loop, read: float) -> Section:
        text = f"SEQ {block_text(size)}"
        name = f"convergence{loop.suffix}-{NAMES[read]}"
        rounds = list(loop.over_rounds((size, read), _rate))
        svg = figures.convergence(
            name, loop.rounds, rounds, loop.window if loop.judged else (), RATE
        )
        title = f"Steady-state convergence, {text} {mix_text(read)}"
        return Section(
            f"{text}: convergence of {NAMES[read]}s",
            loops.window_intro(loop),
            drawn(
                name,
                loops.flagged(title, loop),
                svg,
                _rounds_csv(loop),
                f"Throughput of {NAMES[read]}s in each round",
            ),
            subtitle=f"TP - {text} R/W",
        )

    def _table(self, size: int, loop: Loop) -> Table:
        mixes = sorted(READ_PCTS)
        values = (units.number(_mb_s(loop.mean((size, read), _rate)), 1) for read in mixes)
        return Table(
            loops.flagged(f"Throughput, SEQ {block_text(size)} - Tabular Data", loop),
            ("Block size, R/W", *(f"{mix_text(read)} ({NAMES[read]}), MB/s" for read in mixes)),
            ((block_text(size), *values),),
            ("left", "right", "right"),
            data=RESULTS_CSV,
        )

    def _bars(self, size: int, loop: Loop) -> Section:
        text = f"SEQ {block_text(size)}"
        name = f"throughput{loop.suffix}"
        series = [
            plots.Bars(
                f"{mix_text(read)} ({NAMES[read]})", [loops.known(loop.mean((size, read), _rate))]
            )
            for read in sorted(READ_PCTS)
        ]
        svg = plots.bars(
            name, [text], series, RATE, description=f"Throughput of writes and reads, {text}"
        )
        title = loops.flagged(f"Throughput, {text}, R/W", loop)
        return Section(
            f"{text}: 2-D plot",
            loop.source,
            drawn(name, title, svg, RESULTS_CSV, "Throughput of writes and reads"),
            subtitle=f"TP - {text} R/W",
        )

    def files(self) -> tuple[DataFile, ...]:
        measured = [(size, loop) for size, loop in self.pairs if loop.rounds]
        results = (
            (size, read, loop.mean((size, read), _rate))
            for size, loop in measured
            for read in READ_PCTS
        )
        found = [
            DataFile(RESULTS_CSV, csv_text(("block_bytes", "read_pct", "bytes_per_s"), results))
        ]
        for size, loop in measured:
            columns = [loop.over_rounds((size, read), _rate) for read in READ_PCTS]
            names = [f"{NAMES[read]}_bytes_per_s" for read in READ_PCTS]
            rows = zip(loop.rounds, *columns, strict=True)
            found.append(DataFile(_rounds_csv(loop), csv_text(("round", *names), rows)))
        return tuple(found) if measured else ()

    def summary(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            **described(self.data),
            "steady_state": loops.steady_mapping(self.loops),
            "results": [
                {
                    "block_bytes": size,
                    "read_pct": read,
                    "bytes_per_s": loop.mean((size, read), _rate),
                }
                for size, loop in self.pairs
                for read in READ_PCTS
            ],
            **files(self.data),
        }


def _suffix(size: int) -> str:
    """ "-1024k", for names of figures and files."""
    return f"-{size / KIB:g}k".replace(".", "-")


def _rounds_csv(loop: Loop) -> str:
    return f"rounds{loop.suffix}.csv"


def _mb_s(bytes_per_s: float | None) -> float | None:
    return None if bytes_per_s is None else bytes_per_s / MB_S.size
