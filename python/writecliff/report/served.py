"""Report on a served drive's session, with requests, flash wear and server lateness.

The summary schema is "writecliff/served/1", and its `session` is the output of `writecliff serve
--json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.procedures.served import PHASE, Served
from writecliff.report import kinds, plots
from writecliff.report.axes import Axis, Line, time_axis
from writecliff.report.base import TestReport
from writecliff.report.csvs import data_file
from writecliff.report.figures import PERCENTILE, RESPONSE, percentile_figure, percentile_line
from writecliff.report.headline import Headline, headline, ms
from writecliff.report.interaction import Label
from writecliff.report.latency import latency_table
from writecliff.report.model import Figure, KeyFigure, Section, Verdict, section
from writecliff.report.table import Column, DataFile, Quantity, Table, Value, table
from writecliff.serve.figures import LATENESS_SHARE_MAX, histogram_of
from writecliff.serve.session import answer_text
from writecliff.units import MB_S

if TYPE_CHECKING:
    from writecliff._native import Histogram

POINTS = 400  # Number of points in a time series.
_STREAM_BARS = 16
_OPERATIONS = ("read", "write", "trim")  # Operations in the order of their numbers in `intervals`.
# The segments of a session have equal lengths. The rates of a segment are means, but its
# percentiles and lateness are those of its worst second.
_BY_OPERATION = ", ".join(
    f"sum(ios) filter (operation = {number}) / ? * 1e9 as {name}_ios, "
    f"sum(bytes) filter (operation = {number}) / ? * 1e9 as {name}_bytes, "
    f"max(latency_p50_ns) filter (operation = {number}) as {name}_latency_p50_ns, "
    f"max(latency_p99_ns) filter (operation = {number}) as {name}_latency_p99_ns"
    for number, name in enumerate(_OPERATIONS)
)
_SERIES = f"""
with parts as (
    select *, floor((time_ns - 1) / ?) as part from intervals
), writes as (
    select part, sum(waf * bytes) / sum(bytes) as waf
    from parts where operation = 1 and bytes > 0 and waf is not null group by part
), whole as (
    select part, {_BY_OPERATION},
           max(lateness_p50_ns) as lateness_p50_ns, max(lateness_p99_ns) as lateness_p99_ns,
           min(free_units) as free_units, max(temperature_c) as temperature_c
    from parts group by part
)
select * from whole left join writes using (part) order by part
"""


class ServedReport(TestReport):
    """Report of a `writecliff serve --output` run."""

    procedure: Served

    @property
    def session(self) -> Mapping[str, Any]:
        """Figures for the whole session."""
        return self.procedure.session

    @cached_property
    def histograms_by_operation(self) -> Mapping[str, Histogram]:
        """Latencies by operation, or an empty result if the session was not timed."""
        rows = self.data.stage_rows(PHASE)
        each = {op: self.data.histogram(rows, operation=op) for op in _OPERATIONS}
        each["flush"] = histogram_of(self.session["histograms"]["flush"])
        return {op: h for op, h in each.items() if h is not None and h.count}

    @cached_property
    def lateness(self) -> Histogram | None:
        """Reply lateness in wall clock time, or None if it was not measured."""
        return histogram_of(self.session["histograms"]["lateness"])

    @property
    def latency_note(self) -> str:
        """Clock used for the latencies, or the reason why there are no latencies."""
        if not self.procedure.is_timed:
            return "No response times: the drive was served without its time (--fast)."
        return "Latency of requests in the drive, by the drive's clock."

    # -- verdict and figures--------------------------------------------------------------------

    @property
    def _is_late(self) -> bool:
        share = self.session["lateness_share"]
        return share is not None and share > LATENESS_SHARE_MAX

    def verdict(self) -> Verdict:
        """Return the verdict on the session, including the server's lateness."""
        session = self.session
        clock = units.duration(self.data.elapsed_ns)
        if not self.procedure.is_timed:
            time = f"Clients were served for {clock} without the drive's time (--fast): its state "
            time += "is valid, but latencies are missing."
        else:
            slow = session["slow_down"]
            by = "" if slow == 1 else f", slowed down {slow:g} times for the clients"
            time = f"Clients were served for {clock} of the drive's time{by}."
        sentences = [time, self._lateness_text()]
        if self.data.status != "complete":
            sentences.append(
                "The session was killed: the part after the last stored data is missing, and "
                "so is the trace."
            )
        meaning = tuple(filter(None, sentences))
        return Verdict("warning" if self._is_late else "good", self.answer(), meaning)

    def _lateness_text(self) -> str:
        share = self.session["lateness_share"]
        if share is None or not self.procedure.is_timed:
            return ""
        late = f"Replies were late by {units.percent(share)} of the drive's own latency"
        if not self._is_late:
            return f"{late}: clients measured the drive, not this machine."
        return (
            f"{late}, more than {units.percent(LATENESS_SHARE_MAX, 0)}: clients measured "
            "this machine, too. Latencies on this page are those of the drive; serve it with a "
            "larger --slow-down to show them to clients."
        )

    def answer(self) -> str:
        """Return the verdict and the main figures."""
        text = answer_text(self.session)
        return text[:1].upper() + text[1:]

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield the rates by operation, the write amplification and the lifetime."""
        session = self.session
        for name, figures in session["operations"].items():
            if figures["requests"] and figures["bytes"]:
                rate = units.throughput(self._per_second(figures["bytes"]))
                iops = units.number(self._per_second(figures["requests"]))
                yield KeyFigure(f"{name.capitalize()}s", iops, "IOPS", f"{rate}, mean")
        yield KeyFigure(
            "Write amplification", units.number(session["waf"], 2), "", "of the session"
        )
        if (lifetime := session["lifetime"]) is not None and lifetime["years"] is not None:
            years = units.significant(lifetime["years"])
            yield KeyFigure("Lifetime", years, "years", "at a constant rate of writes")

    def _per_second(self, value: float) -> float | None:
        seconds = self.data.elapsed_ns / 1e9
        return value / seconds if seconds else None

    def headlines(self) -> Sequence[Headline]:
        """Return the write amplification, latencies and lifetime."""
        session, slow = self.session, {"higher_is_better": False}
        lifetime = session["lifetime"] or {}
        headlines = [*headline("waf", "Write amplification", session["waf"], "", **slow)]
        for name, h in self.histograms_by_operation.items():
            word = f"{name.capitalize()}{'es' if name == 'flush' else 's'}"
            headlines += headline(f"{name}_mean", f"{word}, average", ms(h.mean_ns), "ms", **slow)
            p99 = ms(h.quantile(0.99).value_ns)
            headlines += headline(f"{name}_p99", f"{word}, p99", p99, "ms", **slow)
        headlines += headline("years", "Lifetime at this rate", lifetime.get("years"), "years")
        for name, figures in session["operations"].items():
            if figures["bytes"]:
                rate = self._per_second(figures["bytes"])
                mb_s = None if rate is None else rate / MB_S.size
                headlines += headline(f"{name}_mb_per_s", f"{name.capitalize()}s", mb_s, "MB/s")
        return headlines

    def results(self) -> Mapping[str, Any]:
        """Return the command's output as `session`."""
        return {"session": self.session}

    # -- pages --------------------------------------------------------------------------------

    def sections(self) -> Iterator[Section]:
        """Yield the sections about requests, response times, lateness, flash, streams and trace."""
        yield section("Requests", "Rates are over the whole session, including pauses.",
                      self._operations())  # fmt: skip
        yield self._over_time()
        yield section("Response times", self.latency_note, *self._latencies())
        yield self._lateness_section()
        yield section("Flash", self._flash_text(), self._lifetime(), self._streams(),
                      self._stream_bars(), *self._wear_over_time())  # fmt: skip
        yield section("Trace", "", self._trace())

    def _operations(self) -> Table:
        rows = []
        for name, figures in self.session["operations"].items():
            if figures["requests"]:
                iops, rate = (
                    self._per_second(figures["requests"]),
                    self._per_second(figures["bytes"]),
                )
                mb_s = None if rate is None else rate / MB_S.size
                mean = figures["bytes"] / figures["requests"] if figures["bytes"] else ""
                rows.append((name, figures["requests"], iops, mb_s, figures["bytes"] or "", mean))
        head = (
            "",
            Column("Requests", kinds.NUMBER),
            Column("IOPS", kinds.NUMBER),
            Column("MB/s", kinds.decimals(1)),
            Column("Total", kinds.SIZE),
            Column("Mean size", kinds.SIZE),
        )
        return table("Requests by operation", head, rows)

    @cached_property
    def _part_ns(self) -> float:
        return max(float(self.data.elapsed_ns) / POINTS, 1e9 / (self.session["slow_down"] or 1.0))

    @cached_property
    def _series(self) -> Mapping[str, Sequence[float | None]]:
        """Columns of `_SERIES`, with the midpoint of each part."""
        length = self._part_ns
        rows = self.data.run.query(_SERIES, [length] * (1 + 2 * len(_OPERATIONS)))
        columns: dict[str, Any] = {name: rows[name].to_pylist() for name in rows.column_names}
        columns["time_ns"] = [(part + 0.5) * length for part in columns.pop("part")]
        return columns

    @cached_property
    def _series_file(self) -> DataFile:
        names = list(self._series)
        return data_file("series.csv", names, zip(*self._series.values(), strict=True))

    def _line(self, label: str, column: str) -> Line:
        values = [float("nan") if value is None else value for value in self._series[column]]
        times = [float(time) for time in self._series["time_ns"] if time is not None]
        return Line(label, times, values)

    def _drawn(
        self, name: str, title: str, y: Axis, columns: Mapping[str, str], alt: str = ""
    ) -> Figure | None:
        clock = "Device time" if self.procedure.is_timed else "Time"
        lines = [
            self._line(label, column)
            for column, label in columns.items()
            if any(value for value in self._series[column] if value is not None)
        ]
        x = time_axis(float(self.data.elapsed_ns), clock)
        return plots.lines(name, title, self._series_file, lines, x, y, alt=alt)

    def _over_time(self) -> Section:
        def columns(column: str, text: str = "") -> dict[str, str]:
            return {f"{name}_{column}": f"{name}s{text}" for name in _OPERATIONS}

        slow = {**columns("latency_p50_ns", ", median"), **columns("latency_p99_ns", ", p99")}
        return section(
            "Over time",
            f"A point for every {units.duration(self._part_ns)}: rates are means, percentiles "
            "are of the worst second.",
            self._drawn("time-iops", "IOPS over time", Axis("IOPS"), columns("ios")),
            self._drawn("time-mb", "Throughput over time", Axis("Throughput", units=(MB_S,)),
                        columns("bytes")),
            self._drawn("time-latency", "Response time over time", RESPONSE, slow),
        )  # fmt: skip

    def _latencies(self) -> Iterator[Figure | Table | None]:
        by_operation = self.histograms_by_operation
        yield percentile_figure("percentiles", "Response time by percentile", by_operation)
        for name, h in by_operation.items():
            yield latency_table(h, f"Response times of {name}{'es' if name == 'flush' else 's'}")

    def _lateness_section(self) -> Section:
        h = self.lateness
        if h is None or not h.count:
            return section("Lateness", "")
        if not self.procedure.is_timed:
            text = "Without timing, the time that requests spent in the server."
            return section("Time in the server", text, latency_table(h, "Time in the server"))
        slow = self.session["slow_down"]
        lines = [percentile_line("lateness", h)]
        for name, histogram in self.histograms_by_operation.items():
            line = percentile_line(f"{name}{'es' if name == 'flush' else 's'}", histogram)
            lines.append(Line(line.label, line.x, [y * slow for y in line.y]))
        head = ("series", "one_in", "wall_ns")
        file = data_file("lateness.csv", head, (
            (line.label, x, y) for line in lines for x, y in zip(line.x, line.y, strict=True)
        ))  # fmt: skip
        text = (
            "Time from the moment at which a client should receive a completion until the kernel "
            "has the reply, beside the latency of the drive, both by the wall clock."
        )
        return section(
            "Lateness",
            f"{text} {self._lateness_text()}",
            latency_table(h, "Lateness"),
            plots.lines("lateness", "Lateness against latency", file, lines, PERCENTILE, RESPONSE),
            self._drawn("time-lateness", "Lateness over time", Axis("Lateness",
                        units=units.LATENCY_UNITS, log=True),
                        {"lateness_p50_ns": "median", "lateness_p99_ns": "p99"}),
        )  # fmt: skip

    def _flash_text(self) -> str:
        if self.session["waf"] is None:
            return "No data was written, or the drive has no flash."
        return (
            "Lifetimes assume constant writes at the mean rate and the write amplification of this "
            "session, until the flash reaches its rated program and erase cycles. The lifetime of "
            "a stream assumes that all data is written like that stream."
        )

    def _lifetime(self) -> Table | None:
        session, lifetime = self.session, self.session["lifetime"]
        if lifetime is None:
            return None
        rows = (
            ("Write amplification", Quantity(session["waf"], kinds.decimals(3))),
            ("Rated cycles", Quantity(lifetime["rated_cycles"], kinds.NUMBER)),
            ("Endurance of the whole drive", Quantity(lifetime["endurance_bytes"], kinds.SIZE)),
            ("Rate of writes", Quantity(lifetime["write_bytes_per_s"] or None, kinds.THROUGHPUT)),
            ("Lifetime in years", Quantity(lifetime["years"], kinds.digits())),
        )
        return table("Lifetime", ("", ""), rows)

    def _streams(self) -> Table | None:
        streams = self.session["streams"]
        if not streams:
            return None
        total = sum(row["written_bytes"] for row in streams)
        rows = [
            (
                _numbers(row),
                row["requests"],
                row["written_bytes"],
                row["written_bytes"] / total if total else "",
                row["moved_bytes"],
                row["waf"],
                row["years"],
            )
            for row in streams
        ]
        head = (
            Column("Stream", key="stream"),
            Column("Writes", kinds.NUMBER, "requests"),
            Column("Written", kinds.SIZE, "written_bytes"),
            Column("Share", kinds.shares(), "share_pct"),
            Column("Moved by GC", kinds.SIZE, "moved_bytes"),
            Column("WAF", kinds.decimals(3), "waf"),
            Column("Years", kinds.digits(), "years"),
        )
        mixed = self.session["mixed_moved_bytes"]
        note = "streams and placement identifiers that clients used"
        if mixed is None:
            note += "; this drive does not count moved data by stream"
        elif mixed:
            note += f"; {units.size(mixed)} more were moved in blocks with data of several streams"
        return table("Writes by stream", head, rows, note=note, file="streams.csv")

    def _stream_bars(self) -> Figure | None:
        """Return the data written by stream, or None if there is only one stream."""
        stream_bars = self.session["streams"][:_STREAM_BARS]
        if len(stream_bars) < 2:
            return None
        values = [
            plots.Bars("written", [row["written_bytes"] / 1e6 for row in stream_bars]),
            plots.Bars("moved by GC", [(row["moved_bytes"] or 0) / 1e6 for row in stream_bars]),
        ]
        head = ("stream", "written_bytes", "moved_bytes")
        rows = ((_numbers(row), row["written_bytes"], row["moved_bytes"]) for row in stream_bars)
        names = [_numbers(row) for row in stream_bars]
        return plots.bars("streams", "Written and moved by stream",
                          data_file("bars.csv", head, rows), names, values, Axis("MB"),
                          wide=len(stream_bars) > 4)  # fmt: skip

    def _wear_over_time(self) -> Iterator[Figure | None]:
        yield self._drawn("time-waf", "Write amplification over time", Axis("Write amplification"),
                          {"waf": "write amplification"})  # fmt: skip
        yield self._drawn("time-free", "Free reclaim units over time", Axis("Free reclaim units"),
                          {"free_units": "free units"})  # fmt: skip
        yield self._drawn("time-temperature", "Temperature over time",
                          Axis(Label("Temperature", "°C"), from_zero=False),
                          {"temperature_c": "temperature"})  # fmt: skip

    def _trace(self) -> Table | None:
        trace = self.session["trace"]
        if trace is None or self.data.status != "complete":
            return None
        target, file = self.session["target"], f"{self.data.name}/{trace['file']}"
        rows: list[tuple[str, Value]] = [
            ("Requests", Quantity(trace["requests"], kinds.NUMBER)),
            ("Lost", Quantity(trace["lost_requests"], kinds.NUMBER)),
            ("Replay it", f"writecliff replay {file} --on {target}"),
            ("Find its best streams", f"writecliff advise-streams {file} --on {target}"),
        ]
        return table("Trace of the requests", ("", ""), rows, "ll")


def _numbers(row: Mapping[str, Any]) -> str:
    return ", ".join(map(str, row["numbers"]))
