"""Report for twin measurements, with each load and the rates over the volume written.

The summary schema is "writecliff/twin/1".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff import units
from writecliff.procedures.twin import (
    FILL_PHASE,
    FRESH_PHASE,
    OVERWRITE_PHASE,
    READS_PHASE,
    REST_PHASE,
    WRITES_PHASE,
    Twin,
)
from writecliff.procedures.twin_loads import HELD_OUT_RULE
from writecliff.report import kinds, plots
from writecliff.report.axes import Axis, Line
from writecliff.report.base import TestReport
from writecliff.report.csvs import data_file
from writecliff.report.headline import Headline, headline, ms
from writecliff.report.model import Figure, KeyFigure, Section, Verdict, section
from writecliff.report.series import series
from writecliff.report.table import Column, Table, table
from writecliff.units import MB_S

if TYPE_CHECKING:
    from writecliff.procedures.model import StepRow

_LOADS = (FRESH_PHASE, READS_PHASE, WRITES_PHASE)
_CURVES = (
    (FILL_PHASE, "Fill in order", "the rate falls when a cache is full"),
    (OVERWRITE_PHASE, "Random overwrites", "the rate falls when the spare flash is used up"),
    (REST_PHASE, "After a rest", "as fast as the first writes if the rest has emptied a cache"),
)


class TwinReport(TestReport):
    """Report for the measurements made by `writecliff twin`."""

    procedure: Twin

    @cached_property
    def measured(self) -> Sequence[tuple[StepRow, bool]]:
        """Loads, each with `True` if the load is held out from the fit."""
        held_out = {
            load.label: load.held_out for load in self.procedure.loads(self.data.manifest.device)
        }
        rows = [row for phase in _LOADS for row in self.data.stage_rows(phase)]
        return [(row, held_out[row.label]) for row in rows if row.label in held_out]

    def loaded(self) -> str:
        """Return "measured"."""
        return "measured"

    def verdict(self) -> Verdict:
        """Return the number of measured and held-out loads, and the hold-out rule."""
        aside = sum(held_out for _, held_out in self.measured)
        sentences = (
            self.began(),
            f"Held out by a rule fixed in advance: {HELD_OUT_RULE}.",
            "The twin, its errors and ambiguous parameters are in twin.html.",
        )
        head = f"{len(self.measured)} loads were measured, {aside} of them held out"
        return Verdict("good", head, sentences)

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield the number of measured and held-out loads."""
        yield KeyFigure("Loads", str(len(self.measured)), "", "measured")
        aside = sum(held_out for _, held_out in self.measured)
        yield KeyFigure("Held out", str(aside), "", "by a rule fixed in advance")

    def headlines(self) -> list[Headline]:
        """Return the loads' rates and latencies."""
        headlines: list[Headline] = []
        for row, _ in self.measured:
            if row.block_bytes is None or row.read_pct is None:
                continue
            key = f"{row.pattern}_{row.block_bytes // 1024}k_{row.read_pct:g}_qd{row.queue_depth}"
            key = f"{row.phase}_{key}"
            if row.queue_depth == 1:
                slow = {"higher_is_better": False}
                mean = ms(row.latency_mean_ns)
                headlines += headline(f"{key}_mean", f"{row.label}, mean", mean, "ms", **slow)
            else:
                headlines += headline(key, row.label, row.iops, "IOPS")
        return headlines

    def results(self) -> Mapping[str, Any]:
        """Return the loads with their figures."""
        return {
            "gentle": self.procedure.gentle,
            "rule": HELD_OUT_RULE,
            "loads": [
                {
                    "phase": row.phase,
                    "load": row.label,
                    "kept": held_out,
                    "iops": row.iops,
                    "bytes_per_s": row.bytes_per_s,
                    "latency_mean_ns": row.latency_mean_ns,
                    "latency_p99_ns": self._p99(row),
                    "waf": row.waf,
                }
                for row, held_out in self.measured
            ],
        }

    def _p99(self, row: StepRow) -> int | None:
        histogram = self.data.histogram([row])
        return None if histogram is None else histogram.quantile(0.99).value_ns

    def sections(self) -> Iterator[Section]:
        """Yield the loads, followed by the write rates over volume."""
        yield section("Loads", f"Held out: {HELD_OUT_RULE}.", self._loads())
        figures = [self._curve(*words) for words in _CURVES]
        yield section("Writes over the volume written", "", *figures)

    def _loads(self) -> Table:
        rows = [
            (
                row.phase,
                row.label,
                "held out" if held_out else "",
                row.iops,
                row.bytes_per_s,
                row.latency_mean_ns,
                self._p99(row),
                row.waf,
            )
            for row, held_out in self.measured
        ]
        head = (
            "Part",
            Column("Load", kinds.WHOLE),
            Column(""),
            Column("IOPS", kinds.NUMBER),
            Column("Throughput", kinds.THROUGHPUT),
            Column("Mean", kinds.LATENCY),
            Column("99 %", kinds.LATENCY),
            Column("WAF", kinds.digits()),
        )
        return table("", head, rows)

    def _curve(self, phase: str, title: str, meaning: str) -> Figure | None:
        rows = self.data.stage_rows(phase)
        if not rows:
            return None
        intervals = series(self.data, rows)
        whole = intervals.width_ns > 0
        volume = np.cumsum(intervals.bytes)[whole]
        rate = intervals.bytes[whole] / (intervals.width_ns[whole] / 1e9)
        head = ("volume_bytes", "bytes_per_s")
        data = data_file(f"{phase}.csv", head, zip(volume.tolist(), rate.tolist(), strict=True))
        x = Axis("Written", units=units.BYTE_UNITS)
        y = Axis("Throughput", units=(MB_S,))
        line = Line(title, volume.tolist(), rate.tolist())
        alt = f"Throughput over the volume written: {meaning}"
        return plots.lines(f"{phase}-volume", f"{title}: {meaning}", data, [line], x, y, alt=alt)
