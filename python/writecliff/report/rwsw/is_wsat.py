"""The report of the individual streams; summary "writecliff/is-wsat/1"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from writecliff.procedures.rwsw.capture_options import stream_mapping
from writecliff.procedures.rwsw.is_wsat import IsWsat, phase_of
from writecliff.report import kinds
from writecliff.report.axes import Axis, Line, time_axis
from writecliff.report.headline import Headline, mean_headline
from writecliff.report.latency import latency_mapping
from writecliff.report.model import Figure, KeyFigure, Section, section
from writecliff.report.plots import Bars, bars, lines
from writecliff.report.rwsw.capture_view import CaptureReport, unknown
from writecliff.report.steady import SteadyView
from writecliff.report.table import Table

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.procedures.model import StepRow
    from writecliff.traces.io_capture import StreamShare

FIVE_NINES = 0.99999
_NARROW_BARS = 4  # so many have room in half the width of the page


@dataclass(frozen=True)
class Alone:
    """A stream that was run alone, as far as the run got."""

    share: StreamShare
    view: SteadyView
    rows: Sequence[StepRow]  # of its rounds
    histogram: Histogram | None  # of the window

    @property
    def text(self) -> str:
        return self.share.stream.text

    @property
    def samples(self) -> Sequence[float]:
        found = self.view.determination
        if found is not None:
            return found.values
        return [value for values in self.view.values.values() for value in values]

    @property
    def iops(self) -> float | None:
        """Average of the window; without one, of the samples or the last step there is."""
        if self.samples:
            return sum(self.samples) / len(self.samples)
        return self.rows[-1].iops if self.rows else None

    @property
    def bytes_per_s(self) -> float | None:
        return None if self.iops is None else self.iops * self.share.stream.size_bytes

    @property
    def waf(self) -> float | None:
        """Over the rounds of the window."""
        rows = [row for row in self.rows if row.round in self.view.window]
        host = sum(row.host_write_bytes for row in rows)
        if not host or any(row.waf is None for row in rows):
            return None
        return sum((row.waf or 0.0) * row.host_write_bytes for row in rows) / host

    @property
    def five_nines_ns(self) -> float | None:
        return None if self.histogram is None else self.histogram.quantile(FIVE_NINES).value_ns


class IsWsatReport(CaptureReport):
    """The report of a run of the individual streams."""

    procedure: IsWsat

    @cached_property
    def streams(self) -> Sequence[Alone]:
        """The streams in the order of the run, as far as it got."""
        found = []
        for number, share in enumerate(self.procedure.applied):
            phase = phase_of(number)
            rows = self.data.stage_rows(phase)
            if rows:
                view = self.data.view(phase, share.stream.text, f"-{number + 1}")
                window = [row for row in rows if row.round in view.window] or rows[-1:]
                found.append(Alone(share, view, rows, self.data.histogram(window)))
        return found

    @cached_property
    def views(self) -> Sequence[SteadyView]:
        return [one.view for one in self.streams]

    def loaded(self) -> str:
        return "loaded with each stream alone"

    def key_figures(self) -> Iterator[KeyFigure]:
        for one in self.streams[:4]:
            yield one.view.key_figure(one.text, one.iops, "IOPS")
        yield from self.capture_figures()

    def headlines(self) -> list[Headline]:
        found: list[Headline] = []
        for one in self.streams:
            key = one.text.lower().replace(" kib", "k").replace(" ", "_")
            found += mean_headline(
                f"iops_{key}", f"{one.text} alone", one.samples, "IOPS", value=one.iops,
                steady=one.view.reached,
            )  # fmt: skip
        return found

    def sections(self) -> Iterator[Section]:
        yield from self.capture_sections()
        yield section(
            "Each stream alone",
            "Means over the measurement window of each stream, from a purged and preconditioned "
            f"drive, at {self.procedure.toio}. What the streams do to each other is what the "
            "Multi-WSAT Test shows, with all of them at once.",
            self._table(),
            *self._figures(),
        )
        for one in self.streams:
            view = one.view
            yield section(f"Steady state of {one.text}", view.intro, *view.tables(),
                          view.convergence(f"{one.text}: convergence"))  # fmt: skip

    def _table(self) -> Table:
        return Table.of(
            "Streams alone",
            self.streams,
            ("I/O stream", kinds.WHOLE, lambda one: one.text),
            ("Share", kinds.percents(1), lambda one: one.share.share_pct),
            ("IOPS", kinds.NUMBER, lambda one: one.iops),
            ("Throughput", kinds.THROUGHPUT, lambda one: one.bytes_per_s or 0.0),
            ("ART", kinds.LATENCY, _mean_ns),
            ("99.999 %", kinds.LATENCY, lambda one: one.five_nines_ns),
            ("MRT", kinds.LATENCY, _max_ns),
            ("WAF", kinds.decimals(2), lambda one: one.waf),
            ("Steady state", kinds.TEXT, lambda one: one.view.text),
        )

    def _figures(self) -> Iterator[Figure | None]:
        names = [one.text.replace(" ", "\n", 1) for one in self.streams]
        values = [Bars("IOPS", [unknown(one.iops) for one in self.streams])]
        yield bars("streams-iops", "IOPS of each stream alone", "steps.csv", names, values,
                   Axis("IOPS"), wide=len(names) > _NARROW_BARS)  # fmt: skip
        series, longest = [], 0
        for one in self.streams:
            begin = one.rows[0].started_ns
            ends = [(row.started_ns + row.ended_ns) / 2 - begin for row in one.rows]
            series.append(Line(one.text, ends, [row.iops for row in one.rows]))
            longest = max(longest, one.rows[-1].ended_ns - begin)
        yield lines("streams-time", "IOPS of each stream v time", self.data.steps_file, series,
                    time_axis(longest, "Time since it began"), Axis("IOPS", log=True))  # fmt: skip

    def results(self) -> dict[str, Any]:
        return {
            **self.capture_results(),
            "streams": [
                {
                    **stream_mapping(one.share),
                    "iops": one.iops,
                    "bytes_per_s": one.bytes_per_s,
                    "waf": one.waf,
                    "steady_state": one.view.mapping(),
                    "latency": None if one.histogram is None else latency_mapping(one.histogram),
                }
                for one in self.streams
            ],
        }


def _mean_ns(one: Alone) -> float | None:
    return None if one.histogram is None else one.histogram.mean_ns


def _max_ns(one: Alone) -> float | None:
    return None if one.histogram is None else one.histogram.max_ns
