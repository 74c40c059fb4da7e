"""Report for the tests in the data-centre white paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

from writecliff import units
from writecliff.procedures.model import StepRow
from writecliff.report import kinds, plots
from writecliff.report.axes import Axis, Line, depth_axis, time_axis
from writecliff.report.campaigns import datacentre_results as found_in
from writecliff.report.campaigns.datacentre_results import (
    OPERATIONS,
    consistency_grid,
    datacentre_grids,
    mix_cells,
)
from writecliff.report.campaigns.results import STATISTICS, CampaignReport, Result, Steps
from writecliff.report.campaigns.seconds import SECONDS_NEEDED
from writecliff.report.compared import Grid
from writecliff.report.kinds import Span
from writecliff.report.model import Figure, KeyFigure, Section, Verdict, section
from writecliff.report.steady import or_nan
from writecliff.report.table import Column, Head, Quantity, Table, table

IOPS = Axis("IOPS")
RESPONSE = Axis("Response time", units=units.LATENCY_UNITS, log=True)
LATENCY_HEAD = tuple(Column(t, kinds.LATENCY) for t in ("Average", "99.9 %", "99.99 %", "Maximum"))
Value = Callable[[StepRow], float | None]


class DatacentreReport(CampaignReport):
    """Report for a run of the data-centre tests."""

    sentence = "It sustains {2} of random reads and {3} of random writes."

    @cached_property
    def steps(self) -> Steps:
        """Steps in the run, also split by operation."""
        return Steps(self.data)

    @cached_property
    def measurements(self) -> Sequence[Result]:
        """All figures of the test parts that ran."""
        return found_in.results(self.steps)

    def grids(self) -> list[Grid]:
        """Return the white paper's result grids."""
        return datacentre_grids(self.steps)

    def verdict(self) -> Verdict:
        """Return a statement on the drive state in which the figures were measured."""
        state = str(self.data.options.get("state"))
        done = ", ".join(self.data.history.stages)
        meaning = [f"Parts: {done}. Each figure covers all I/Os of one step."]
        if state == "sustained":
            meaning.append(
                "The drive was preconditioned by one sequential and two random overwrites of its "
                "user capacity, so the figures are its performance after long use."
            )
            return Verdict("good", "Measured in the sustained state", tuple(meaning))
        meaning.append("The published figures were measured in the sustained state.")
        return Verdict("warning", f"Measured in the state '{state}', not sustained", tuple(meaning))

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield the throughput of sequential accesses, and the IOPS of random accesses."""
        for label, *key in (
            ("Sequential read", "sequential", 128.0, 100.0, "throughput"),
            ("Sequential write", "sequential", 128.0, 0.0, "throughput"),
            ("Random read", "random", 4.0, 100.0, "iops"),
            ("Random write", "random", 4.0, 0.0, "iops"),
        ):
            for result in self.measurements:
                of = [result.access, result.block_kib, result.read_pct, result.metric]
                if result.item == "basic" and result.oio != 1 and of == key:
                    note = f"{result.block_kib:g} KiB, QD {result.oio}"
                    yield KeyFigure(label, units.number(result.value), result.unit, note)

    def sections(self) -> Iterator[Section]:
        """Yield a section for each test part that ran."""
        rows = [*self.data.stage_rows("sequential"), *self.data.stage_rows("basic")]
        if rows:
            yield section("Basic figures", "", self._speeds("Basic figures", "Access", rows))
        if mixes := self.data.stage_rows("mixes"):
            yield from self._mixes(mixes)
            yield self._mix_consistency()
        if loads := found_in.loads(self.steps):
            yield self._consistency(loads)
        if (messenger := found_in.messenger(self.steps)) is not None:
            yield self._messenger(messenger)
        if servers := self.data.stage_rows("servers"):
            yield self._servers(servers)

    def _latencies(self, row: StepRow) -> list[float | None]:
        return [self.steps.latency_ns(row, q) for _, q in STATISTICS]

    def _speeds(self, title: str, what: str, rows: Iterable[StepRow]) -> Table:
        """Return the name, IOPS, MB/s and latencies of each step."""
        cells = [
            (row.label, row.iops, row.bytes_per_s / 1e6, *self._latencies(row)) for row in rows
        ]
        head: Head = (
            what,
            Column("IOPS", kinds.NUMBER),
            Column("MB/s", kinds.decimals(1)),
            *LATENCY_HEAD,
        )
        return table(title, head, cells, data=self.data.steps_file)

    def _mixes(self, rows: Sequence[StepRow]) -> Iterator[Section]:
        steps, first = self.steps, rows[0].block_bytes or 0
        cells = mix_cells(steps)
        depths = sorted({row.queue_depth or 1 for row in cells})
        speed = (
            self._by_mix("iops", "IOPS, reads and writes", cells, lambda row: row.iops),
            *(
                self._by_mix(
                    f"{operation}-iops",
                    f"{operation.capitalize()} IOPS",
                    [row for row in cells if row.read_pct != without],
                    partial(steps.iops, operation=operation),
                )
                for operation, without in (("read", 0.0), ("write", 100.0))
            ),
        )
        yield section(
            "Mixed reads and writes",
            f"Random {units.block(first)}, a line per mix (percent of reads), queue depths "
            f"{depths[0]} to {depths[-1]}.",
            *speed,
            self._mix_table(rows),
        )
        slow = (("p999", "99.9 %", 0.999), ("p9999", "99.99 %", 0.9999), ("max", "Maximum", 1.0))
        yield section(
            "Response times of mixed reads and writes",
            "All I/Os, reads and writes. Percentiles without enough I/Os are omitted.",
            *(
                self._by_mix(
                    f"latency-{name}",
                    f"{title} response time",
                    cells,
                    partial(steps.latency_ns, q=q),
                    RESPONSE,
                )
                for name, title, q in slow
            ),
        )

    def _by_mix(
        self, name: str, title: str, rows: Sequence[StepRow], value: Value, y: Axis = IOPS
    ) -> Figure | None:
        """Return a figure against queue depth, with a line per mix."""
        mixes: dict[str, list[StepRow]] = {}
        for row in sorted(rows, key=lambda row: row.queue_depth or 0):
            mixes.setdefault(f"{row.read_pct or 0:g} %", []).append(row)
        order = dict.fromkeys(f"{row.read_pct or 0:g} %" for row in rows)
        groups = {mix: [(row.queue_depth or 1, row) for row in mixes[mix]] for mix in order}
        return self._by_depth(f"mixes-{name}", title, groups, value, y, "share of reads")

    def _by_depth(
        self,
        name: str,
        title: str,
        groups: dict[str, list[tuple[int, StepRow]]],
        value: Value,
        y: Axis,
        what: str,
    ) -> Figure | None:
        """Return a figure against queue depth, with a line per group."""
        series = [
            Line(label, [float(d) for d, _ in group], [or_nan(value(row)) for _, row in group])
            for label, group in groups.items()
        ]
        depths = depth_axis(depth for group in groups.values() for depth, _ in group)
        alt = f"{title} over queue depth, a line per {what}"
        return plots.lines(name, title, self.results_file, series, depths, y, alt=alt)

    def _mix_table(self, rows: Iterable[StepRow]) -> Table:
        cells = [
            (row.label, *(self.steps.iops(row, operation) or None for operation in OPERATIONS),
             *self._latencies(row))
            for row in rows
        ]  # fmt: skip
        head: Head = (
            "Access",
            Column("Read IOPS", kinds.NUMBER),
            Column("Write IOPS", kinds.NUMBER),
            *LATENCY_HEAD,
        )
        return table("Mixed reads and writes", head, cells, data=self.results_file)

    def _mix_consistency(self) -> Section:
        """Return the IOPS consistency of each mix's reads and writes by queue depth."""
        tables = []
        for grid in (consistency_grid(self.steps, operation) for operation in OPERATIONS):
            cells = [
                (row, *(grid.values.get((row, column)) for column in grid.columns))
                for row in grid.rows
            ]
            if grid.values:
                title = f"{grid.title} (%)"
                head: Head = (
                    grid.corner,
                    *(Column(name, kinds.decimals(1)) for name in grid.columns),
                )
                tables.append(table(title, head, cells, data=self.results_file))
        return section(
            "Consistency of mixed reads and writes",
            "The slow end of the seconds of a step (the 99.9th percentile; the slowest second of a "
            "step below 1,000 s) over their average, of reads and of writes.",
            *tables,
        )

    def _over_time(self, row: StepRow, of: Sequence[found_in.Load]) -> Figure | None:
        """Return a load's read and write IOPS by second, with mean and standard deviation."""
        series, references = [], []
        for item in of:
            what = f" of {item.operation}s" if item.operation else ""
            iops = item.seconds.iops.tolist()
            series.append(Line(f"IOPS{what}", item.seconds.time_ns.tolist(), iops))
            mean, sigma = item.seconds.average or 0.0, item.seconds.deviation or 0.0
            references.append(plots.Reference(f"mean{what}", mean, dashed=False))
            # A name that starts with "_" has no legend entry.
            references.append(plots.Reference(f"mean ± σ{what}", mean + sigma))
            references.append(plots.Reference("_", mean - sigma))
        return plots.lines(
            f"consistency-{row.read_pct:g}",
            f"{row.label}, by second",
            self.data.steps_file if len(of) == 1 else self.results_file,
            series,
            time_axis(float(row.elapsed_ns)),
            IOPS,
            alt=f"IOPS of {row.label} second by second, with mean and standard deviation",
            references=references,
        )

    def _consistency(self, loads: Sequence[found_in.Load]) -> Section:
        figures = [
            self._over_time(row, [item for item in loads if item.row is row])
            for row in self.data.stage_rows("consistency")
        ]
        rows = [
            (
                item.label,
                len(item.seconds),
                item.seconds.average,
                item.seconds.deviation,
                item.seconds.slow,
                item.seconds.consistency_pct,
            )
            for item in loads
        ]
        short = any(len(item.seconds) < SECONDS_NEEDED for item in loads)
        note = f"If there are fewer than {SECONDS_NEEDED:,} seconds, the 99.9th percentile is the "
        "slowest second."
        counts = ("Seconds", "Average", "Standard deviation", "99.9 % of seconds")
        head: Head = ("Load", *(Column(name, kinds.NUMBER) for name in counts),
                Column("Consistency", kinds.decimals(1, "%")))  # fmt: skip
        return section(
            "Consistency",
            "IOPS of each second. Consistency is the IOPS of the 99.9th percentile of the seconds "
            "over the average.",
            *figures,
            table(
                "IOPS consistency", head, rows, note=note if short else "", data=self.results_file
            ),
        )

    def _messenger(self, messenger: found_in.Messenger) -> Section:
        per_thread = [messenger.iops(reader) for reader in messenger.readers]
        rows: list[Sequence[Any]] = [
            (
                f"Readers, of {len(messenger.readers)} threads",
                messenger.reader_iops,
                Span(min(per_thread), max(per_thread)),
                *(messenger.readers_ns(q) for _, q in STATISTICS),
            )
        ]
        if messenger.writer is not None:
            times = (messenger.writer_ns(q) for _, q in STATISTICS)
            iops = Quantity(messenger.iops(messenger.writer), kinds.decimals(1))
            rows.insert(0, ("Writer", iops, None, *times))
        return section(
            "Messenger service",
            "One thread of 512 KiB random writes, 32 per second at most, beside threads of 4 KiB "
            "random reads.",
            table(
                "Messenger service",
                (
                    "Thread",
                    Column("IOPS", kinds.NUMBER),
                    Column("of the threads", kinds.ranges(kinds.NUMBER)),
                    *LATENCY_HEAD,
                ),
                rows,
                note="The readers' figures are averages over the threads.",
                data=self.results_file,
            ),
        )

    def _servers(self, rows: Sequence[StepRow]) -> Section:
        profiles: dict[str, list[tuple[int, StepRow]]] = {}
        for row in rows:
            profile, depth = found_in.profile_and_depth(self.steps, row)
            profiles.setdefault(profile, []).append((depth, row))
        figures = [
            self._by_depth(f"servers-{name}", title, profiles, value, axis, "profile")
            for name, title, axis, value in (
                ("iops", "IOPS of servers", Axis("IOPS"), lambda row: row.iops),
                ("latency", "Average response time of servers", RESPONSE,
                 partial(self.steps.latency_ns, q=None)),
            )
        ]  # fmt: skip
        speeds = self._speeds("Servers", "Profile", rows)
        return section("Servers", "Server profiles over the queue depth.", *figures, speeds)
