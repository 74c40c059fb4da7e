"""Report for individual streams, with the summary "writecliff/is-wsat/1"."""

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
_NARROW_BARS = 4  # Maximum number of bars in half the page width.


@dataclass(frozen=True)
class Alone:
    """Result of a stream that ran alone, as far as it was measured."""

    share: StreamShare
    view: SteadyView
    rows: Sequence[StepRow]  # Rows for the stream's rounds.
    histogram: Histogram | None  # Histogram of the steady-state window.

    @property
    def text(self) -> str:
        """Name of the stream."""
        return self.share.stream.text

    @property
    def samples(self) -> Sequence[float]:
        """Mean IOPS over the window or, without a window, over all samples."""
        samples = self.view.determination
        if samples is not None:
            return samples.values
        return [value for values in self.view.values.values() for value in values]

    @property
    def iops(self) -> float | None:
        """Mean IOPS over the window or, without a window, over all samples or the last step."""
        if self.samples:
            return sum(self.samples) / len(self.samples)
        return self.rows[-1].iops if self.rows else None

    @property
    def bytes_per_s(self) -> float | None:
        """Throughput in bytes per second, or None if unknown."""
        return None if self.iops is None else self.iops * self.share.stream.size_bytes

    @property
    def waf(self) -> float | None:
        """Write amplification over the window's rounds, or None if unknown."""
        rows = [row for row in self.rows if row.round in self.view.window]
        host = sum(row.host_write_bytes for row in rows)
        if not host or any(row.waf is None for row in rows):
            return None
        return sum((row.waf or 0.0) * row.host_write_bytes for row in rows) / host

    @property
    def five_nines_ns(self) -> float | None:
        """99.999th percentile response time in ns, or None if there are too few I/Os."""
        return None if self.histogram is None else self.histogram.quantile(FIVE_NINES).value_ns


class IsWsatReport(CaptureReport):
    """Report for an individual streams run."""

    procedure: IsWsat

    @cached_property
    def streams(self) -> Sequence[Alone]:
        """Measured streams, in the order of the run."""
        streams = []
        for number, share in enumerate(self.procedure.applied):
            phase = phase_of(number)
            rows = self.data.stage_rows(phase)
            if rows:
                view = self.data.view(phase, share.stream.text, f"-{number + 1}")
                window = [row for row in rows if row.round in view.window] or rows[-1:]
                streams.append(Alone(share, view, rows, self.data.histogram(window)))
        return streams

    @cached_property
    def views(self) -> Sequence[SteadyView]:
        """Saturation result of each stream."""
        return [stream.view for stream in self.streams]

    def loaded(self) -> str:
        """Return a participle for the treatment of the individually tested streams."""
        return "loaded with each stream alone"

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield the IOPS of the main streams, followed by the capture's IOPS."""
        for stream in self.streams[:4]:
            yield stream.view.key_figure(stream.text, stream.iops, "IOPS")
        yield from self.capture_figures()

    def headlines(self) -> list[Headline]:
        """Return each stream's steady-state IOPS."""
        headlines: list[Headline] = []
        for stream in self.streams:
            key = stream.text.lower().replace(" kib", "k").replace(" ", "_")
            headlines += mean_headline(
                f"iops_{key}", f"{stream.text} alone", stream.samples, "IOPS", value=stream.iops,
                steady=stream.view.reached,
            )  # fmt: skip
        return headlines

    def sections(self) -> Iterator[Section]:
        """Yield the sections about the capture, all streams side by side, and each stream."""
        yield from self.capture_sections()
        yield section(
            "Each stream alone",
            "Means over the measurement window of each stream, from a purged and preconditioned "
            f"drive, at {self.procedure.toio}. The Multi-WSAT Test runs all streams at once and "
            "shows their interaction.",
            self._table(),
            *self._figures(),
        )
        for stream in self.streams:
            view = stream.view
            yield section(f"Steady state of {stream.text}", view.intro, *view.tables(),
                          view.convergence(f"{stream.text}: convergence"))  # fmt: skip

    def _table(self) -> Table:
        return Table.of(
            "Streams alone",
            self.streams,
            ("I/O stream", kinds.WHOLE, lambda stream: stream.text),
            ("Share", kinds.percents(1), lambda stream: stream.share.share_pct),
            ("IOPS", kinds.NUMBER, lambda stream: stream.iops),
            ("Throughput", kinds.THROUGHPUT, lambda stream: stream.bytes_per_s or 0.0),
            ("ART", kinds.LATENCY, _mean_ns),
            ("99.999 %", kinds.LATENCY, lambda stream: stream.five_nines_ns),
            ("MRT", kinds.LATENCY, _max_ns),
            ("WAF", kinds.decimals(2), lambda stream: stream.waf),
            ("Steady state", kinds.TEXT, lambda stream: stream.view.text),
        )

    def _figures(self) -> Iterator[Figure | None]:
        names = [stream.text.replace(" ", "\n", 1) for stream in self.streams]
        values = [Bars("IOPS", [unknown(stream.iops) for stream in self.streams])]
        yield bars("streams-iops", "IOPS of each stream alone", "steps.csv", names, values,
                   Axis("IOPS"), wide=len(names) > _NARROW_BARS)  # fmt: skip
        series, longest = [], 0
        for stream in self.streams:
            begin = stream.rows[0].started_ns
            ends = [(row.started_ns + row.ended_ns) / 2 - begin for row in stream.rows]
            series.append(Line(stream.text, ends, [row.iops for row in stream.rows]))
            longest = max(longest, stream.rows[-1].ended_ns - begin)
        yield lines("streams-time", "IOPS of each stream v time", self.data.steps_file, series,
                    time_axis(longest, "Time since it began"), Axis("IOPS", log=True))  # fmt: skip

    def results(self) -> dict[str, Any]:
        """Return the capture and each stream's result."""
        return {
            **self.capture_results(),
            "streams": [
                {
                    **stream_mapping(stream.share),
                    "iops": stream.iops,
                    "bytes_per_s": stream.bytes_per_s,
                    "waf": stream.waf,
                    "steady_state": stream.view.mapping(),
                    "latency": None
                    if stream.histogram is None
                    else latency_mapping(stream.histogram),
                }
                for stream in self.streams
            ],
        }


def _mean_ns(alone: Alone) -> float | None:
    return None if alone.histogram is None else alone.histogram.mean_ns


def _max_ns(alone: Alone) -> float | None:
    return None if alone.histogram is None else alone.histogram.max_ns
