"""Throughput test report with three sections per block size, and the summary "writecliff/tp/1"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from writecliff.procedures.cells import tracked_throughput
from writecliff.procedures.model import StepRow
from writecliff.procedures.pts import block_text, mix_text
from writecliff.procedures.steady import SteadyState, judge
from writecliff.procedures.tp import READ_PCTS, Tp, phase_of
from writecliff.report import kinds, plots, steady_stages
from writecliff.report.axes import Axis, Line
from writecliff.report.base import TestReport
from writecliff.report.csvs import data_file
from writecliff.report.figures import convergence, steady_window
from writecliff.report.headline import Headline, mean_headline
from writecliff.report.interaction import Label
from writecliff.report.model import Figure, KeyFigure, Section, section
from writecliff.report.steady import SteadyView, determination_table, or_nan, window_mapping
from writecliff.report.table import Column, DataFile, Table, table
from writecliff.units import KIB, MB_S

RATE = Axis("Throughput", units=(MB_S,))
NAMES = {100.0: "read", 0.0: "write"}


def _rate(row: StepRow) -> float:
    return row.bytes_per_s


class TpReport(TestReport):
    """Report for a throughput test run."""

    sentence = "It sustains {1} of sequential reads and {0} of sequential writes."

    @classmethod
    def figure_units(cls, procedure: Tp) -> Mapping[str, str]:
        """Return the unit MB/s for each block size and direction."""
        return {_key(size, read): "MB/s" for size in procedure.sizes for read in READ_PCTS}

    def headlines(self) -> list[Headline]:
        """Return the mean throughput of each block size and direction."""
        return [
            item
            for size, view in self.loops.items()
            for read in sorted(READ_PCTS)
            for item in mean_headline(
                _key(size, read),
                f"SEQ {block_text(size)} {NAMES[read]}s",
                [rate / MB_S.size for rate in view.samples((size, read), _rate)],
                "MB/s",
                steady=view.reached,
            )
        ]

    @cached_property
    def loops(self) -> Mapping[int, SteadyView]:
        """Round loop for each block size."""
        procedure = self.data.procedure
        assert isinstance(procedure, Tp)
        return {
            size: self.data.view(
                phase_of(size), block_text(size), f"-{size / KIB:g}k".replace(".", "-")
            )
            for size in procedure.sizes
        }

    @cached_property
    def views(self) -> Sequence[SteadyView]:
        """Round loops for all block sizes."""
        return tuple(self.loops.values())

    @cached_property
    def results_file(self) -> DataFile:
        """Mean throughput for every block size and direction."""
        rows = (
            (size, read, view.mean((size, read), _rate))
            for size, view in self.loops.items()
            for read in READ_PCTS
            if view.rounds
        )
        return data_file("throughput.csv", ("block_bytes", "read_pct", "bytes_per_s"), rows)

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield the mean throughput for each block size and direction."""
        for size, view in self.loops.items():
            for read in reversed(READ_PCTS):
                value = _mb_s(view.mean((size, read), _rate))
                yield view.key_figure(f"SEQ {block_text(size)} {NAMES[read]}", value, "MB/s")

    def sections(self) -> Iterator[Section]:
        """Yield the sections for each measured block size."""
        for size, view in self.loops.items():
            if view.rounds:
                yield from self._pages(size, view)

    def _pages(self, size: int, view: SteadyView) -> Iterator[Section]:
        text = f"SEQ {block_text(size)}"
        data = self.results_file

        def page(title: str, intro: str, *parts: Any) -> Section:
            return section(f"{text}: {title}", intro, *parts)

        rounds = [self._convergence(size, view, read) for read in sorted(READ_PCTS)]
        yield page("convergence", view.intro, *rounds)
        window = "steady-state measurement window"
        yield page(window, view.intro, *view.window_figures(), *view.tables())
        yield page(
            f"{window}, reads",
            "The standard requires steady state for writes only. This is the rule for reads.",
            *self._reads(size, view),
        )
        mixes = sorted(READ_PCTS)
        means = {read: view.mean((size, read), _rate) for read in mixes}
        cells = (block_text(size), *(_mb_s(means[read]) for read in mixes))
        names = (f"{mix_text(m)} ({NAMES[m]}), MB/s" for m in mixes)
        head = (Column("Block size, R/W"), *(Column(name, kinds.decimals(1)) for name in names))
        title = view.flagged(f"Throughput, {text} - Tabular Data")
        shown = table(title, head, [cells], data=data)
        bars = [plots.Bars(f"{NAMES[m]}s", [or_nan(means[m])]) for m in mixes]
        name, title = f"throughput{view.suffix}", view.flagged(f"Throughput, {text}, R/W")
        alt = f"Throughput of writes and reads, {text}"
        figure = plots.bars(name, title, data, [text], bars, RATE, alt=alt)
        yield page("tabular data and 2-D plot", view.source, shown, figure)

    def read_window(self, size: int) -> SteadyState | None:
        """Return the rule applied to reads in the reported window, or None without a window."""
        view = self.loops[size]
        rates = [rate / MB_S.size for rate in view.samples((size, 100.0), _rate)]
        if not view.judged or len(rates) != len(view.window):
            return None
        return judge(rates, view.window)

    def _reads(self, size: int, view: SteadyView) -> Iterator[Figure | Table]:
        state = self.read_window(size)
        if state is None:
            return
        variable = tracked_throughput((size, 100.0))
        title = f"Steady-state measurement window, {variable.name}"
        name, axis = f"steady-window{view.suffix}-reads", Axis(Label("Throughput", "MB/s"))
        values = zip(state.rounds, state.values, strict=True)
        data = data_file(f"reads{view.suffix}.csv", ("round", "read_mb_per_s"), values)
        yield steady_window(name, title, data, state, axis, f"{NAMES[100.0]}s")
        yield determination_table(variable, state, "not by the rule, which is for writes")

    def _convergence(self, size: int, view: SteadyView, read: float) -> Figure | None:
        columns = [view.over_rounds((size, mix), _rate) for mix in READ_PCTS]
        head = ("round", *(f"{NAMES[mix]}_bytes_per_s" for mix in READ_PCTS))
        rows = zip(view.rounds, *columns, strict=True)
        return convergence(
            f"convergence{view.suffix}-{NAMES[read]}",
            view.flagged(f"Steady-state convergence, SEQ {block_text(size)} {mix_text(read)}"),
            data_file(f"rounds{view.suffix}.csv", head, rows),
            [Line(f"{NAMES[read]}s", view.rounds, columns[READ_PCTS.index(read)])],
            view.window if view.judged else (),
            RATE,
        )

    def results(self) -> dict[str, Any]:
        """Return the steady state, throughput and read windows."""
        return {
            "steady_state": steady_stages.views_mapping(self.views),
            "results": [
                {"block_bytes": s, "read_pct": read, "bytes_per_s": view.mean((s, read), _rate)}
                for s, view in self.loops.items()
                for read in READ_PCTS
            ],
            "read_windows": [
                {"block_bytes": size, "window": None if state is None else window_mapping(state)}
                for size in self.loops
                for state in [self.read_window(size)]
            ],
        }


def _mb_s(bytes_per_s: float | None) -> float | None:
    return None if bytes_per_s is None else bytes_per_s / MB_S.size


def _key(size: int, read_pct: float) -> str:
    return f"tp_{size // KIB}k_{mix_text(read_pct).replace('/', '_')}"
