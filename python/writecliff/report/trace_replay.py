"""Report for a trace replay, with lifetime, write amplification, streams and response times.

The summary schema is "writecliff/trace_replay/1", and its `replay` is the output of `writecliff
replay --json`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff import units
from writecliff.procedures.trace_replay import PHASE, TraceReplay
from writecliff.replay.summary import WRITEBACK_TEXT
from writecliff.report import kinds, plots
from writecliff.report.axes import Axis, Line
from writecliff.report.base import TestReport
from writecliff.report.csvs import data_file
from writecliff.report.figures import histogram_figures, percentile_figure
from writecliff.report.headline import Headline, headline, ms
from writecliff.report.latency import latency_table
from writecliff.report.model import Figure, KeyFigure, Section, Verdict, section
from writecliff.report.table import Column, Quantity, Table, table
from writecliff.units import MB_S

if TYPE_CHECKING:
    from writecliff._native import Histogram


FROM_WAF = ("waf", "years", "endurance_tb")  # Headline figures that depend on write amplification.


class TraceReplayReport(TestReport):
    """Report for a `writecliff replay` run."""

    sentence = "It lasts {1} at the assumed rate, with a write amplification of {0}."

    procedure: TraceReplay

    @property
    def outcome(self) -> Mapping[str, Any]:
        """JSON output of the command."""
        return self.procedure.answer

    @cached_property
    def histograms_by_operation(self) -> Mapping[str, Histogram]:
        """Response times of reads and writes during the timed replay."""
        rows = self.data.stage_rows(PHASE)
        each = {op: self.data.histogram(rows, operation=op) for op in ("read", "write")}
        return {op: h for op, h in each.items() if h is not None and h.count}

    @property
    def latency_note(self) -> str:
        """Part of the replay that has response times, or a statement that no part has them."""
        if not self.histograms_by_operation:
            return "No response times: the replay had no timed part."
        return "Service time, from issue to completion, in the timed part at the end of the replay."

    def verdict(self) -> Verdict:
        """Return the command output with the replayed data, the rounds and the drive scale."""
        trace, device = self.outcome["trace"], self.outcome["device"]
        size = units.size(device["simulated_capacity_bytes"])
        meaning = (
            f"{units.size(trace['replayed_bytes'])} of {trace['path']} were replayed in "
            f"{trace['rounds']} rounds on {device['name']}, cut down to {size} so that the files "
            "fill it as assumed; the second half is measured.",
            f"Writes reach the drive {WRITEBACK_TEXT[trace['writeback']]}.",
        )
        good = self.outcome.get("not_quoted") is None
        return Verdict("good" if good else "warning", self.answer(), meaning)

    def answer(self) -> str:
        """Return the command's verdict."""
        return str(self.outcome["verdict"])

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield write amplification, lifetime and endurance, unless they are not quoted."""
        outcome = self.outcome
        if outcome["waf"] is None:
            return
        yield KeyFigure("Write amplification", units.number(outcome["waf"], 3), "", "second half")
        years = units.significant(outcome["years"])
        yield KeyFigure("Lifetime", years, "years", "at the assumed rate")
        size, _, unit = units.size(outcome["endurance_bytes"]).partition(" ")
        yield KeyFigure("Endurance", size, unit, "written to the whole drive")

    def written(self) -> Sequence[KeyFigure]:
        """Return the replayed data and the number of simulated drive fills."""
        trace, device = self.outcome["trace"], self.outcome["device"]
        size, _, unit = units.size(trace["replayed_bytes"]).partition(" ")
        fills = trace["replayed_bytes"] / device["simulated_capacity_bytes"]
        rounds = f"in {trace['rounds']} rounds of the trace"
        return (
            KeyFigure("Written", size, unit, rounds),
            KeyFigure("Drive fills", units.significant(fills), "", "of the simulated drive"),
        )

    def headlines(self) -> Sequence[Headline]:
        """Return the figures from `replay_headlines`."""
        return replay_headlines(self.outcome)

    def limit_figures(
        self, percentiles: Collection[float]
    ) -> tuple[Sequence[Headline], Mapping[str, str]]:
        """Add the reason why figures that depend on write amplification are not quoted."""
        figures, missing = super().limit_figures(percentiles)
        reason = self.outcome.get("not_quoted")
        return figures, {**missing, **(dict.fromkeys(FROM_WAF, reason) if reason else {})}

    def results(self) -> Mapping[str, Any]:
        """Return the command output as `replay`."""
        return {"replay": self.outcome}

    def sections(self) -> Iterator[Section]:
        """Yield sections about lifetime, streams and response times."""
        yield section("Lifetime", "", self._assumed(), self._waf())
        yield section("Streams", "Data written by stream.", self._streams())
        parts: list[Figure | Table | None] = [
            percentile_figure(
                "percentiles", "Response time by percentile", self.histograms_by_operation
            )
        ]
        for operation, h in self.histograms_by_operation.items():
            parts.append(latency_table(h, f"Response times of {operation}s"))
            parts += histogram_figures(h, f"-{operation}", f"{operation.capitalize()}s: ")[:1]
        yield section("Response times", self.latency_note, *parts)

    def _assumed(self) -> Table:
        outcome, trace, device = self.outcome, self.outcome["trace"], self.outcome["device"]
        drift = outcome["waf_drift"]
        rows = (
            ("Write amplification", Quantity(outcome["waf"], kinds.decimals(3))),
            ("Rise from the third quarter to the fourth", Quantity(drift, kinds.shares())),
            ("Endurance of the whole drive", Quantity(outcome["endurance_bytes"], kinds.SIZE)),
            (
                "Written to addresses drawn anew in each further round",
                Quantity(trace.get("redrawn_bytes"), kinds.SIZE),
            ),
            ("Rate of writes", Quantity(trace["write_rate_bytes_per_s"], kinds.THROUGHPUT)),
            ("Where the rate is from", trace["write_rate_from"]),
            ("Lifetime in years", Quantity(outcome["years"], kinds.digits())),
            ("Rated cycles", Quantity(device["rated_cycles"], kinds.NUMBER)),
            (
                "Over-provisioning",
                Quantity(device["simulated_overprovision_pct"], kinds.percents(1)),
            ),
            ("Files at the peak", Quantity(trace["peak_bytes"], kinds.SIZE)),
        )
        return table("Lifetime", ("", ""), rows)

    def _waf(self) -> Figure | None:
        """Write amplification between the points of the series, or None if it is not quoted."""
        if self.outcome["waf"] is None:
            return None
        series = self.outcome["series"]
        host, nand = (np.asarray(series[f"{name}_bytes"], np.float64) for name in ("host", "nand"))
        steps = np.diff(host)
        waf = np.divide(np.diff(nand), steps, out=np.full(len(steps), np.nan), where=steps > 0)
        written = (host[:-1] + host[1:]) / 2
        rows = zip(written.tolist(), waf.tolist(), strict=True)
        file = data_file("waf.csv", ("host_bytes", "waf"), rows)
        line = Line("write amplification", written.tolist(), waf.tolist())
        x = Axis("Written by the host", units=units.BYTE_UNITS)
        return plots.lines("waf", "Write amplification over host writes", file, [line], x,
                           Axis("Write amplification"))  # fmt: skip

    def _streams(self) -> Table:
        rows = [
            (
                str(row["stream"]),
                row["name"] or units.UNKNOWN,
                row["written_bytes"],
                row["median_lifetime_bytes"],
                ", ".join(row["origins"]),
            )
            for row in self.outcome["by_stream"]
        ]
        head = (
            "Stream",
            "Name",
            Column("Written", kinds.SIZE),
            Column("Median lifetime", kinds.SIZE),
            "Main origins",
        )
        return table("Streams", head, rows, "llrrl")


def replay_headlines(answer: Mapping[str, Any]) -> list[Headline]:
    """Return a replay's headline figures, computed from its JSON."""
    rate, endurance = answer["write_bytes_per_s"], answer["endurance_bytes"]
    slow = {"higher_is_better": False}
    return [
        *headline("years", "Lifetime at this rate", answer["years"], "years"),
        *headline("endurance_tb", "Endurance", endurance and endurance / 1e12, "TB"),
        *headline("waf", "Write amplification", answer["waf"], "", **slow),
        *headline(
            "read_p9999",
            "Reads, p99.99, not at the trace's pace",
            ms(answer["read_p9999_ns"]),
            "ms",
            **slow,
        ),
        *headline("read_mean", "Reads, average", ms(answer["read_mean_ns"]), "ms", **slow),
        *headline("write_mb_per_s", "Writes", rate and rate / MB_S.size, "MB/s"),
    ]
