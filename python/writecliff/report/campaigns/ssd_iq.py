"""SSD-iq test report: rates relative to uniform writes, and open-loop tail latencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from writecliff import units
from writecliff.procedures.campaigns.ssd_iq import (
    MEASURED,
    OPEN,
    QUANTILES,
    UNIFORM,
    SsdIq,
    zone_phase,
)
from writecliff.procedures.model import StepRow
from writecliff.report import kinds, plots
from writecliff.report.axes import Axis, Line
from writecliff.report.campaigns.results import MS, CampaignReport, Result, known_results
from writecliff.report.interaction import Label
from writecliff.report.model import Figure, KeyFigure, Section, Verdict, section
from writecliff.report.table import Column, Table, table

_CURVES = {
    "zipf": Label("Theta of zipfian writes"),
    "static": Label("Static pages", "%"),
    "cold": Label("Cold pages", "%"),
}
_LATENCY = Axis("Latency of the probe", units=units.LATENCY_UNITS, log=True)
_OPERATIONS = ("read", "write")


@dataclass(frozen=True)
class Loop:
    """A measured closed loop."""

    name: str
    curve: str
    x: float
    row: StepRow
    # Rate relative to uniform writes; `None` if uniform writes were not measured.
    relative: float | None


class SsdIqReport(CampaignReport):
    """Report of an SSD-iq test run."""

    @cached_property
    def loops(self) -> Sequence[Loop]:
        """Measured closed loops of random writes."""
        test = SsdIq.from_mapping(self.data.options)
        rows = {closed.phase: self._measured(closed.phase) for closed in test.closed}
        uniform = rows.get(UNIFORM)
        loops = []
        for closed in test.closed:
            row = rows[closed.phase]
            if row is not None:
                relative = row.iops / uniform.iops if uniform and uniform.iops else None
                loops.append(Loop(closed.text, closed.curve, closed.x, row, relative))
        return loops

    @cached_property
    def zones(self) -> Sequence[tuple[float, StepRow]]:
        """Zone size in GiB, and the step of each measured zone loop."""
        rows = ((size, self._measured(zone_phase(size))) for size in self.data.options["zone_gib"])
        return [(size, row) for size, row in rows if row is not None]

    def _measured(self, phase: str) -> StepRow | None:
        """Return a closed loop's timed step, or None if the loop was not measured."""
        rows = [row for row in self.data.stage_rows(phase) if row.role == MEASURED]
        return rows[-1] if rows else None

    @cached_property
    def opened(self) -> Sequence[tuple[float, StepRow]]:
        """Arrival rate per second, and the step of each measured open loop."""
        rows = self.data.stage_rows(OPEN)
        return list(zip(self.data.options["rates_iops"], rows, strict=False))

    @cached_property
    def measurements(self) -> Sequence[Result]:
        """Rates, write amplification and latencies under all measured loads."""
        options = self.data.options
        oio = options["threads"] * options["queue_depth"]
        results: list[Result] = []
        for loop in self.loops:
            results += known_results(
                (
                    ("iops", loop.row.iops, "IOPS", True),
                    ("relative_to_uniform", loop.relative, "x", True),
                    ("waf", loop.row.waf, "", False),
                ),
                item=loop.name, access="random", block_kib=4.0, read_pct=0.0, oio=oio,
            )  # fmt: skip
        for size, row in self.zones:
            results += known_results(
                (
                    ("throughput", row.bytes_per_s / 1e6, "MB/s", True),
                    ("waf", row.waf, "", False),
                ),
                item=f"zones of {size:g} GiB", access="zones", block_kib=512.0, read_pct=0.0, oio=1,
            )  # fmt: skip
        for rate, row in self.opened:
            figures: list[tuple[str, float | None, str, bool]] = [
                ("write_iops", row.figures.get("write_iops"), "IOPS", True)
            ]
            for operation in _OPERATIONS:
                for name in QUANTILES:
                    value = row.figures.get(f"{operation}_{name}_ns")
                    scaled = None if value is None else value / MS
                    figures.append((f"{operation}_latency_{name}", scaled, "ms", False))
            item = f"{rate:,.0f} arrivals a second"
            results += known_results(figures, item=item, access="open loop", block_kib=4.0)
        return results

    def verdict(self) -> Verdict:
        """Return the effect of skew on the write rate."""
        test = SsdIq.from_mapping(self.data.options)
        worst = min((loop for loop in self.loops if loop.relative), default=None,
                    key=lambda loop: loop.relative or 0.0)  # fmt: skip
        meaning = [
            "Rates relative to uniform writes show the effect of skew on garbage collection."
        ]
        if worst is not None and worst.curve != UNIFORM:
            meaning.append(
                f"The slowest of the skewed loads, {worst.name}, reaches "
                f"{units.percent(worst.relative)} of the rate of uniform writes."
            )
        complete = len(self.loops) == len(test.closed)
        complete &= len(self.opened) == len(self.data.options["rates_iops"])
        if complete:
            return Verdict("good", "All loads were measured", tuple(meaning))
        return Verdict("warning", "Some loads were not measured", tuple(meaning))

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield the rates under uniform writes and open loops."""
        for loop in self.loops:
            if loop.curve == UNIFORM:
                yield KeyFigure("Uniform writes", units.number(loop.row.iops), "IOPS")
        reached = [row.figures.get("write_iops", 0.0) for _, row in self.opened]
        if reached:
            yield KeyFigure(
                "Largest write rate of an open loop", units.number(max(reached)), "IOPS"
            )

    def sections(self) -> Iterator[Section]:
        """Yield the sections about closed loops, zones and open loops."""
        if self.loops:
            yield section("Skewed and static data", "", self._loops_table(), *self._curves())
        if self.zones:
            rows = [(f"{size:g} GiB", row.bytes_per_s / 1e6, row.waf) for size, row in self.zones]
            head = (
                "Zone size",
                Column("MB/s", kinds.NUMBER),
                Column("Write amplification", kinds.digits()),
            )
            shown = table("Sequential writes in zones", head, rows, data=self.results_file)
            yield section("Zones", "The host writes one zone at a time, in random order.", shown)
        if self.opened:
            figures = (self._tails(operation) for operation in _OPERATIONS)
            yield section("Open loops", _OPEN, self._open_table(), *figures)

    def _loops_table(self) -> Table:
        rows = [
            (
                loop.name,
                loop.row.iops,
                "" if loop.relative is None else loop.relative,
                loop.row.waf,
            )
            for loop in self.loops
        ]
        head = (
            "Load",
            Column("IOPS", kinds.NUMBER),
            Column("Relative to uniform", kinds.decimals(3)),
            Column("Write amplification", kinds.digits()),
        )
        return table("Random 4 KiB writes", head, rows, data=self.results_file)

    def _curves(self) -> Iterator[Figure | None]:
        for curve, label in _CURVES.items():
            points = sorted((loop.x, loop.relative) for loop in self.loops
                            if loop.curve == curve and loop.relative is not None)  # fmt: skip
            yield plots.lines(
                f"curve-{curve}",
                f"Rate relative to uniform: {label.name.lower()}",
                self.results_file,
                [Line(curve, [x for x, _ in points], [value for _, value in points])],
                Axis(label, from_zero=False),
                Axis("Rate relative to uniform writes"),
                alt=f"Rates relative to uniform writes, {len(points)} loads",
            )

    def _open_table(self) -> Table:
        rows = []
        for rate, row in self.opened:
            values = [
                row.figures.get(f"{operation}_{name}_ns")
                for operation in _OPERATIONS
                for name in QUANTILES
            ]
            rows.append((rate, row.figures.get("write_iops"), *values))
        head = (
            Column("Arrivals/s", kinds.NUMBER),
            Column("Writes/s", kinds.NUMBER),
            *(Column(name, kinds.LATENCY) for _ in _OPERATIONS for name in QUANTILES),
        )
        groups = [("", 2), ("Reads of the probe", 5), ("Writes of the probe", 5)]
        title = "Latency in open loops"
        return table(title, head, rows, data=self.results_file, groups=groups)

    def _tails(self, operation: str) -> Figure | None:
        lines = []
        for name in QUANTILES:
            key = f"{operation}_{name}_ns"
            points = [(rate, value) for rate, row in self.opened
                      if (value := row.figures.get(key)) is not None]  # fmt: skip
            lines.append(Line(name, [rate for rate, _ in points], [value for _, value in points]))
        return plots.lines(
            f"open-{operation}",
            f"Latency of the probe's {operation}s by arrival rate",
            self.results_file,
            lines,
            Axis("Arrivals per second"),
            _LATENCY,
            alt=f"Percentiles of the latency of {operation}s, {len(self.opened)} rates",
        )


_OPEN = (
    "Poisson arrivals of 99 % writes load the drive. A fixed-rate probe of reads and writes "
    "measures the service times."
)
