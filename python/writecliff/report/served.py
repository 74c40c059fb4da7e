"""The report of a session of a served drive: what clients did to it, what that costs its flash, and
how late the server was; summary "writecliff/served/1", whose `session` is the answer of `writecliff
serve --json`.
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

POINTS = 400  # of a series over time
_STREAM_BARS = 16
_OPERATIONS = ("read", "write", "trim")  # by their numbers in `intervals`
# Parts of equal length: rates are means, percentiles and lateness those of the worst second.
_APART = ", ".join(
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
    select part, {_APART},
           max(lateness_p50_ns) as lateness_p50_ns, max(lateness_p99_ns) as lateness_p99_ns,
           min(free_units) as free_units, max(temperature_c) as temperature_c
    from parts group by part
)
select * from whole left join writes using (part) order by part
"""


class ServedReport(TestReport):
    """The report of a run of `writecliff serve --output`."""

    procedure: Served

    @property
    def session(self) -> Mapping[str, Any]:
        """The figures of the whole session."""
        return self.procedure.session

    @cached_property
    def histograms_by_operation(self) -> Mapping[str, Histogram]:
        rows = self.data.stage_rows(PHASE)
        each = {op: self.data.histogram(rows, operation=op) for op in _OPERATIONS}
        each["flush"] = histogram_of(self.session["histograms"]["flush"])
        return {op: h for op, h in each.items() if h is not None and h.count}

    @cached_property
    def lateness(self) -> Histogram | None:
        """By the wall clock."""
        return histogram_of(self.session["histograms"]["lateness"])

    @property
    def latency_note(self) -> str:
        if not self.procedure.is_timed:
            return "No response times: the drive was served without its time (--fast)."
        return "Latency of requests in the drive, by the drive's clock."

    # -- what is said -------------------------------------------------------------------------

    @property
    def _is_late(self) -> bool:
        share = self.session["lateness_share"]
        return share is not None and share > LATENESS_SHARE_MAX

    def verdict(self) -> Verdict:
        session = self.session
        clock = units.duration(self.data.elapsed_ns)
        if not self.procedure.is_timed:
            time = f"Clients were served for {clock} without the drive's time (--fast): its state "
            time += "is that of a drive that was so used, and there are no latencies."
        else:
            slow = session["slow_down"]
            by = "" if slow == 1 else f", stretched to {slow:g} times as long for the clients"
            time = f"Clients were served for {clock} of the drive's time{by}."
        said = [time, self._lateness_text()]
        if self.data.status != "complete":
            said.append(
                "The session was cut off: what was done after the last stored part is not here, "
                "and there is no trace."
            )
        meaning = tuple(filter(None, said))
        return Verdict("warning" if self._is_late else "good", self.answer(), meaning)

    def _lateness_text(self) -> str:
        share = self.session["lateness_share"]
        if share is None or not self.procedure.is_timed:
            return ""
        late = f"Replies were late by {units.percent(share)} of the drive's own latency"
        if not self._is_late:
            return f"{late}: the clients measured the drive."
        return (
            f"{late}, more than {units.percent(LATENESS_SHARE_MAX, 0)}: what clients measured is "
            "this machine too. Latencies on this page are the drive's own; serve it with a larger "
            "--slow-down if clients have to see them."
        )

    def answer(self) -> str:
        text = answer_text(self.session)
        return text[:1].upper() + text[1:]

    def key_figures(self) -> Iterator[KeyFigure]:
        session = self.session
        for name, one in session["operations"].items():
            if one["requests"] and one["bytes"]:
                rate = units.throughput(self._per_second(one["bytes"]))
                iops = units.number(self._per_second(one["requests"]))
                yield KeyFigure(f"{name.capitalize()}s", iops, "IOPS", f"{rate}, mean")
        yield KeyFigure(
            "Write amplification", units.number(session["waf"], 2), "", "of the session"
        )
        if (lifetime := session["lifetime"]) is not None and lifetime["years"] is not None:
            years = units.significant(lifetime["years"])
            yield KeyFigure("Lifetime", years, "years", "written at this rate all the time")

    def _per_second(self, value: float) -> float | None:
        seconds = self.data.elapsed_ns / 1e9
        return value / seconds if seconds else None

    def headlines(self) -> Sequence[Headline]:
        session, slow = self.session, {"higher_is_better": False}
        lifetime = session["lifetime"] or {}
        found = [*headline("waf", "Write amplification", session["waf"], "", **slow)]
        for name, h in self.histograms_by_operation.items():
            word = f"{name.capitalize()}{'es' if name == 'flush' else 's'}"
            found += headline(f"{name}_mean", f"{word}, average", ms(h.mean_ns), "ms", **slow)
            p99 = ms(h.quantile(0.99).value_ns)
            found += headline(f"{name}_p99", f"{word}, p99", p99, "ms", **slow)
        found += headline("years", "Lifetime at this rate", lifetime.get("years"), "years")
        for name, one in session["operations"].items():
            if one["bytes"]:
                rate = self._per_second(one["bytes"])
                mb_s = None if rate is None else rate / MB_S.size
                found += headline(f"{name}_mb_per_s", f"{name.capitalize()}s", mb_s, "MB/s")
        return found

    def results(self) -> Mapping[str, Any]:
        return {"session": self.session}

    # -- pages --------------------------------------------------------------------------------

    def sections(self) -> Iterator[Section]:
        yield section("Requests", "Rates are over the whole session, pauses included.",
                      self._operations())  # fmt: skip
        yield self._over_time()
        yield section("Response times", self.latency_note, *self._latencies())
        yield self._lateness_section()
        yield section("Flash", self._flash_text(), self._lifetime(), self._streams(),
                      self._stream_bars(), *self._wear_over_time())  # fmt: skip
        yield section("Trace", "", self._trace())

    def _operations(self) -> Table:
        rows = []
        for name, one in self.session["operations"].items():
            if one["requests"]:
                iops, rate = self._per_second(one["requests"]), self._per_second(one["bytes"])
                mb_s = None if rate is None else rate / MB_S.size
                mean = one["bytes"] / one["requests"] if one["bytes"] else ""
                rows.append((name, one["requests"], iops, mb_s, one["bytes"] or "", mean))
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
        """Columns of `_SERIES`, and the middle of each part."""
        length = self._part_ns
        found = self.data.run.query(_SERIES, [length] * (1 + 2 * len(_OPERATIONS)))
        columns: dict[str, Any] = {name: found[name].to_pylist() for name in found.column_names}
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
        def of(column: str, text: str = "") -> dict[str, str]:
            return {f"{name}_{column}": f"{name}s{text}" for name in _OPERATIONS}

        slow = {**of("latency_p50_ns", ", median"), **of("latency_p99_ns", ", p99")}
        return section(
            "Over time",
            f"A point for every {units.duration(self._part_ns)}: rates are means, percentiles "
            "those of the worst second.",
            self._drawn("time-iops", "IOPS over time", Axis("IOPS"), of("ios")),
            self._drawn("time-mb", "Throughput over time", Axis("Throughput", units=(MB_S,)),
                        of("bytes")),
            self._drawn("time-latency", "Response time over time", RESPONSE, slow),
        )  # fmt: skip

    def _latencies(self) -> Iterator[Figure | Table | None]:
        apart = self.histograms_by_operation
        yield percentile_figure("percentiles", "Response time by percentile", apart)
        for name, h in apart.items():
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
        for name, one in self.histograms_by_operation.items():
            line = percentile_line(f"{name}{'es' if name == 'flush' else 's'}", one)
            lines.append(Line(line.label, line.x, [y * slow for y in line.y]))
        head = ("series", "one_in", "wall_ns")
        file = data_file("lateness.csv", head, (
            (line.label, x, y) for line in lines for x, y in zip(line.x, line.y, strict=True)
        ))  # fmt: skip
        text = (
            "From the moment at which a client should have learnt of a completion until its reply "
            "was with the kernel, and what the drive itself took, both by the wall clock."
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
            return "Nothing was written, or the drive has no flash."
        return (
            "Lifetimes assume that the drive is written all the time at the mean rate of this "
            "session, with the write amplification of this session, until its flash has its rated "
            "program and erase cycles. The lifetime of a stream is that of a drive of which all is "
            "written like it."
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
        found = self.session["streams"]
        if not found:
            return None
        total = sum(row["written_bytes"] for row in found)
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
            for row in found
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
        note = "of streams and placement identifiers by which clients wrote"
        if mixed is None:
            note += "; this drive cannot tell by stream what it moved"
        elif mixed:
            note += f"; {units.size(mixed)} more were moved of data of several streams together"
        return table("Writes by stream", head, rows, note=note, file="streams.csv")

    def _stream_bars(self) -> Figure | None:
        """What each stream wrote; nothing to compare for a single one."""
        found = self.session["streams"][:_STREAM_BARS]
        if len(found) < 2:
            return None
        values = [
            plots.Bars("written", [row["written_bytes"] / 1e6 for row in found]),
            plots.Bars("moved by GC", [(row["moved_bytes"] or 0) / 1e6 for row in found]),
        ]
        head = ("stream", "written_bytes", "moved_bytes")
        rows = ((_numbers(row), row["written_bytes"], row["moved_bytes"]) for row in found)
        names = [_numbers(row) for row in found]
        return plots.bars("streams", "Written and moved by stream",
                          data_file("bars.csv", head, rows), names, values, Axis("MB"),
                          wide=len(found) > 4)  # fmt: skip

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
            ("Which streams it should use", f"writecliff advise-streams {file} --on {target}"),
        ]
        return table("Trace of the requests", ("", ""), rows, "ll")


def _numbers(row: Mapping[str, Any]) -> str:
    return ", ".join(map(str, row["numbers"]))
