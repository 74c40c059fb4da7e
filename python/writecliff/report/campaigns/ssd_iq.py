"""The report of SSD-iq's loads: rates relative to uniform writes, and tails of open loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from writecliff import units
from writecliff.procedures.campaigns.ssd_iq import (
    OPEN,
    QUANTILES,
    UNIFORM,
    Closed,
    SsdIq,
    zone_phase,
)
from writecliff.procedures.model import StepRow
from writecliff.report import plots
from writecliff.report.axes import Axis, Line
from writecliff.report.campaigns.results import MS, CampaignReport, Result, known_results
from writecliff.report.model import Figure, KeyFigure, Section, Table, Verdict, section, table

_CURVES = {
    "zipf": "Theta of zipfian writes",
    "static": "Static pages (%)",
    "cold": "Cold pages (%)",
}
_LATENCY = Axis("Latency of the probe", units=units.LATENCY_UNITS, log=True)
_WAYS = ("read", "write")


@dataclass(frozen=True)
class Loop:
    """A closed loop that was measured; `relative` is None without uniform writes."""

    name: str
    curve: str
    x: float
    row: StepRow
    relative: float | None


class SsdIqReport(CampaignReport):
    """The report of a run."""

    @cached_property
    def loops(self) -> Sequence[Loop]:
        """The closed loops of random writes, as far as the run got."""
        test = SsdIq.from_mapping(self.data.options)
        rows = {one.phase: self._measured(one.phase) for one in test.closed}
        uniform = rows.get(UNIFORM)
        found = []
        for one in test.closed:
            row = rows[one.phase]
            if row is not None:
                relative = row.iops / uniform.iops if uniform and uniform.iops else None
                found.append(_loop(one, row, relative))
        return found

    @cached_property
    def zones(self) -> Sequence[tuple[float, StepRow]]:
        """The loops of zones by size in GiB."""
        rows = ((size, self._measured(zone_phase(size))) for size in self.data.options["zone_gib"])
        return [(size, row) for size, row in rows if row is not None]

    def _measured(self, phase: str) -> StepRow | None:
        """The timed step of a closed loop."""
        rows = [row for row in self.data.stage_rows(phase) if row.label.endswith("measured")]
        return rows[-1] if rows else None

    @cached_property
    def opened(self) -> Sequence[tuple[float, StepRow]]:
        """The open loops by their rate."""
        rows = self.data.stage_rows(OPEN)
        return list(zip(self.data.options["rates_iops"], rows, strict=False))

    @cached_property
    def found(self) -> Sequence[Result]:
        options = self.data.options
        oio = options["threads"] * options["queue_depth"]
        found: list[Result] = []
        for loop in self.loops:
            found += known_results(
                (
                    ("iops", loop.row.iops, "IOPS", True),
                    ("relative_to_uniform", loop.relative, "x", True),
                    ("waf", loop.row.waf, "", False),
                ),
                item=loop.name, access="random", block_kib=4.0, read_pct=0.0, oio=oio,
            )  # fmt: skip
        for size, row in self.zones:
            found += known_results(
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
            for way in _WAYS:
                for name in QUANTILES:
                    value = row.figures.get(f"{way}_{name}_ns")
                    scaled = None if value is None else value / MS
                    figures.append((f"{way}_latency_{name}", scaled, "ms", False))
            item = f"{rate:,.0f} arrivals a second"
            found += known_results(figures, item=item, access="open loop", block_kib=4.0)
        return found

    def verdict(self) -> Verdict:
        test = SsdIq.from_mapping(self.data.options)
        worst = min((one for one in self.loops if one.relative), default=None,
                    key=lambda one: one.relative or 0.0)  # fmt: skip
        meaning = ["Rates relative to uniform writes show what garbage collection makes of skew."]
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
        for loop in self.loops:
            if loop.curve == UNIFORM:
                yield KeyFigure("Uniform writes", units.number(loop.row.iops), "IOPS")
        reached = [row.figures.get("write_iops", 0.0) for _, row in self.opened]
        if reached:
            yield KeyFigure(
                "Largest write rate of an open loop", units.number(max(reached)), "IOPS"
            )

    def sections(self) -> Iterator[Section]:
        if self.loops:
            yield section("Skewed and static data", "", self._loops_table(), *self._curves())
        if self.zones:
            rows = [
                (f"{size:g} GiB", units.number(row.bytes_per_s / 1e6), _waf(row))
                for size, row in self.zones
            ]
            head = ("Zones of", "MB/s", "Write amplification")
            shown = table("Zones written in order", head, rows, data=self.results_file)
            yield section("Zones", "One zone at a time, in a random order of zones.", shown)
        if self.opened:
            figures = (self._tails(way) for way in _WAYS)
            yield section("Open loops", _OPEN, self._open_table(), *figures)

    def _loops_table(self) -> Table:
        rows = [
            (
                loop.name,
                units.number(loop.row.iops),
                "" if loop.relative is None else f"{loop.relative:.3f}",
                _waf(loop.row),
            )
            for loop in self.loops
        ]
        head = ("Load", "IOPS", "Relative to uniform", "Write amplification")
        return table("Random 4 KiB writes", head, rows, data=self.results_file)

    def _curves(self) -> Iterator[Figure | None]:
        for curve, label in _CURVES.items():
            own = sorted((one.x, one.relative) for one in self.loops
                         if one.curve == curve and one.relative is not None)  # fmt: skip
            yield plots.lines(
                f"curve-{curve}",
                f"Rate relative to uniform: {label.partition(' (')[0].lower()}",
                self.results_file,
                [Line(curve, [x for x, _ in own], [value for _, value in own])],
                Axis(label, from_zero=False),
                Axis("Rate over that of uniform writes"),
                alt=f"Rates relative to uniform writes, {len(own)} loads",
            )

    def _open_table(self) -> Table:
        rows = []
        for rate, row in self.opened:
            values = [row.figures.get(f"{way}_{name}_ns") for way in _WAYS for name in QUANTILES]
            reached = units.number(row.figures.get("write_iops"))
            rows.append((units.number(rate), reached, *map(units.latency, values)))
        head = ("Arrivals/s", "Writes/s", *(name for _ in _WAYS for name in QUANTILES))
        groups = [("", 2), ("Reads of the probe", 5), ("Writes of the probe", 5)]
        title = "Latency under open loops"
        return table(title, head, rows, "r", data=self.results_file, groups=groups)

    def _tails(self, way: str) -> Figure | None:
        lines = []
        for name in QUANTILES:
            known = [(rate, value) for rate, row in self.opened
                     if (value := row.figures.get(f"{way}_{name}_ns")) is not None]  # fmt: skip
            lines.append(Line(name, [rate for rate, _ in known], [value for _, value in known]))
        return plots.lines(
            f"open-{way}",
            f"Latency of the probe's {way}s over the rate of arrivals",
            self.results_file,
            lines,
            Axis("Arrivals a second"),
            _LATENCY,
            alt=f"Percentiles of the latency of {way}s, {len(self.opened)} rates",
        )


_OPEN = (
    "Poisson arrivals of 99 % writes; a probe of reads and writes at a fixed rate beside them, "
    "whose service times are shown."
)


def _loop(one: Closed, row: StepRow, relative: float | None) -> Loop:
    return Loop(one.text, one.curve, one.x, row, relative)


def _waf(row: StepRow) -> str:
    return units.significant(row.waf)
