"""Report for the reviewer's consistency test, with three plots and a summary per range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from writecliff import units
from writecliff.procedures.campaigns.consistency import phase_of
from writecliff.report import kinds, plots
from writecliff.report.axes import Axis, Line, time_axis
from writecliff.report.campaigns.results import CampaignReport, Result, known_results
from writecliff.report.campaigns.seconds import SECOND_NS, Seconds, seconds_of
from writecliff.report.compared import Curve
from writecliff.report.csvs import data_file
from writecliff.report.model import Figure, KeyFigure, Section, Verdict, section, views
from writecliff.report.table import Column, DataFile, Head, Table, table

AVERAGE, WORST = "average", "worst case"
ARRAY_DRIVES = 12
DEVIATION = Axis("Standard deviation", units=units.LATENCY_UNITS, log=True)
BLOCK_BYTES = 4 * units.KIB

_LOWEST = ("Lowest second", "Lowest worst case")


@dataclass(frozen=True)
class Range:
    """Writes to a fraction of the drive's addresses."""

    share_pct: float
    whole: Seconds
    steady: Seconds

    @property
    def name(self) -> str:
        """Address fraction as text, such as "75 %"."""
        return f"{self.share_pct:g} %"

    @property
    def stem(self) -> str:
        """Address fraction for element and file names."""
        return f"{self.share_pct:g}".replace(".", "-")

    def file(self) -> DataFile:
        """Return the whole run as CSV, with a row per second."""
        part = self.whole
        numbers = (part.time_ns, part.iops, part.worst_iops, part.sd_ns)
        columns = [column.tolist() for column in numbers]
        head = ("middle_ns", "iops", "worst_case_iops", "latency_sd_ns")
        return data_file(f"seconds-{self.stem}.csv", head, zip(*columns, strict=True))


class ConsistencyReport(CampaignReport):
    """Report for a consistency test run."""

    sentence = "It sustains {0} IOPS on average, with a worst case of {1} IOPS."

    @cached_property
    def ranges(self) -> Sequence[Range]:
        """Measured ranges, in test order."""
        options = self.data.options
        begin_ns = float(options["steady_from_seconds"]) * SECOND_NS
        ranges = []
        for share in options["range_pcts"]:
            rows = self.data.stage_rows(phase_of(share))
            if rows:
                whole = seconds_of(self.data, rows, int(options["queue_depth"]))
                ranges.append(Range(share, whole, whole.since(begin_ns)))
        return ranges

    @property
    def array(self) -> int:
        """Number of drives in the array, or the default if the run lacks this option."""
        return int(self.data.options.get("array_drives") or ARRAY_DRIVES)

    def of_array(self, value: float | None) -> float | None:
        """Return the array's rate if each drive waits for a drive that achieves `value`."""
        return None if value is None else self.array * value

    def curves(self) -> list[Curve]:
        """Return the IOPS, worst case and standard deviation of each second."""
        time = time_axis(self.data.options["seconds"] * SECOND_NS)
        log = Axis("IOPS", log=True)
        curves = []
        for item in self.ranges:
            part, times = item.whole, item.whole.time_ns.tolist()
            kinds = (
                ("average", "Average IOPS", log, part.iops),
                ("worst", "Worst-case IOPS", log, part.worst_iops),
                ("deviation", "Standard deviation of response time", DEVIATION, part.sd_ns),
            )
            for name, title, y, values in kinds:
                points = list(zip(times, values.tolist(), strict=True))
                full = f"{title} of every second, {item.name} of the addresses"
                curves.append(Curve(f"range-{item.stem}-{name}", full, time, y, points))
        return curves

    @property
    def price(self) -> float | None:
        """Drive price in dollars, if given."""
        return self.data.options.get("price") or None

    def per_dollar(self, value: float | None) -> float | None:
        """Return a value relative to the price, or None if no price was given."""
        return None if value is None or self.price is None else value / self.price

    @property
    def dollars_per_gb(self) -> float | None:
        """Price per user capacity, in dollars per GB."""
        return None if self.price is None else self.price / (self.data.capacity_bytes / 1e9)

    @cached_property
    def measurements(self) -> Sequence[Result]:
        """Figures for the steady part, or for the whole run if it never became steady."""
        results = []
        for item in self.ranges:
            part = item.steady if len(item.steady) else item.whole
            results += known_results(
                (
                    ("iops_steady", part.average, "IOPS", True),
                    ("iops_stddev", part.deviation, "IOPS", False),
                    ("iops_lowest_second", part.lowest, "IOPS", True),
                    ("iops_worst_case", part.lowest_worst, "IOPS", True),
                    ("array_iops", part.array_iops(self.array), "IOPS", True),
                    ("array_iops_lowest_second", self.of_array(part.lowest), "IOPS", True),
                    ("array_iops_worst_case", self.of_array(part.lowest_worst), "IOPS", True),
                    ("iops_per_dollar", self.per_dollar(part.average), "IOPS/$", True),
                ),
                item=f"consistency {item.name}", access="random", block_kib=4.0, read_pct=0.0,
                oio=int(self.data.options["queue_depth"]),
            )  # fmt: skip
        price = ("dollars_per_gb", self.dollars_per_gb, "$/GB", False)
        return [*results, *known_results((price,), item="price", access="")]

    def verdict(self) -> Verdict:
        """Return the averages for the ranges."""
        options = self.data.options
        meaning = [
            f"{item.name} of the addresses: {units.number(item.steady.average)} IOPS on average "
            f"from {options['steady_from_seconds']:g} s on, standard deviation of the seconds "
            f"{units.number(item.steady.deviation)}, slowest second "
            f"{units.number(item.steady.lowest)}."
            for item in self.ranges
            if len(item.steady)
        ]
        meaning.append(
            "The worst case of a second is the queue depth over its longest latency: the rate if "
            "every I/O were as slow."
        )
        complete = all(len(item.whole) >= options["seconds"] - 1 for item in self.ranges)
        if complete and self.ranges:
            return Verdict("good", "Written second by second", tuple(meaning))
        return Verdict("warning", "The writes were not completed", tuple(meaning))

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield the ranges' averages and worst cases, and the prices."""
        for item in self.ranges:
            note = f"steady part, {item.name} of the addresses"
            yield KeyFigure("Average IOPS", units.number(item.steady.average), "", note)
            yield KeyFigure("Worst-case IOPS", units.number(item.steady.lowest_worst), "", note)
        if self.price and self.ranges:
            rate = units.significant(self.per_dollar(self.ranges[0].steady.average))
            yield KeyFigure("IOPS per dollar", rate, "", f"${self.price:,.2f}")
            per_gb = units.significant(self.dollars_per_gb)
            yield KeyFigure("Dollars per GB", per_gb, "$", "user capacity")

    def sections(self) -> Iterator[Section]:
        """Yield sections about the overview, the array and each range."""
        if self.ranges:
            yield self._overview()
        for item in self.ranges:
            yield self._section(item)

    def _overview(self) -> Section:
        parts = chain.from_iterable(
            ((f"{r.name}, whole run", r.whole), (f"{r.name}, steady part", r.steady))
            for r in self.ranges
        )
        rows = [
            (
                name,
                len(part),
                part.average,
                None if part.average is None else part.average * BLOCK_BYTES / 1e6,
                self._response_ns(part.average),
                part.deviation,
                part.lowest,
                part.lowest_worst,
                self.per_dollar(part.average),
            )
            for name, part in parts
        ]
        head: Head = (
            "Addresses",
            Column("Seconds", kinds.NUMBER),
            Column("Average IOPS", kinds.NUMBER),
            Column("MB/s", kinds.decimals(1)),
            Column("Response time", kinds.LATENCY),
            *(Column(name, kinds.NUMBER) for name in ("Standard deviation", *_LOWEST)),
            Column("IOPS per dollar", kinds.digits()),
        )
        note = "" if self.price else "No price was given (--price), so no IOPS per dollar."
        intro = (
            "MB/s are for 4 KiB blocks. The response time is the average that follows from "
            "queue depth and IOPS (Little's law)."
        )
        shown = table("Consistency", head, rows, note=note, data=self.results_file)
        return section("Consistency", intro, shown, self._array_table())

    def _response_ns(self, iops: float | None) -> float | None:
        """Return the mean response time in ns at a given rate, by Little's law."""
        return int(self.data.options["queue_depth"]) / iops * SECOND_NS if iops else None

    def _array_table(self) -> Table:
        """Return the table for an array of such drives, where every drive waits for the slowest."""
        rows = []
        for item in self.ranges:
            part = item.steady if len(item.steady) else item.whole
            ideal, measured = self.of_array(part.average), part.array_iops(self.array)
            rows.append(
                (
                    item.name,
                    ideal,
                    measured,
                    measured / ideal if measured and ideal else None,
                    self.of_array(part.lowest),
                    self.of_array(part.lowest_worst),
                )
            )
        head: Head = (
            "Addresses",
            Column("IOPS if all were average", kinds.NUMBER),
            Column("IOPS", kinds.NUMBER),
            Column("Share", kinds.shares()),
            *(Column(name, kinds.NUMBER) for name in _LOWEST),
        )
        note = (
            "Requests striped over all drives wait for the slowest drive in each second. The "
            "drives stall independently of each other."
        )
        title = f"Array of {self.array} such drives, steady part"
        return table(title, head, rows, note=note, data=self.results_file)

    def _section(self, item: Range) -> Section:
        begin_s = self.data.options["steady_from_seconds"]
        data = item.file()
        return section(
            f"Random 4 KiB writes to {item.name} of the addresses",
            "One point per second: its average, its worst case, and the standard deviation of the "
            "response times of its I/Os.",
            *views(
                f"range-{item.stem}",
                {
                    view: self._plot(f"range-{item.stem}-{name}", title, part, data, log=log)
                    for view, name, part, log, title in (
                        ("all, log", "whole-log", item.whole, True, "Whole run (logarithmic)"),
                        (
                            "steady, log",
                            "steady-log",
                            item.steady,
                            True,
                            f"From {begin_s:g} s on (logarithmic)",
                        ),
                        (
                            "steady",
                            "steady-linear",
                            item.steady,
                            False,
                            f"From {begin_s:g} s on (linear)",
                        ),
                    )
                },
            ),
            self._deviation_plot(f"range-{item.stem}-deviation", item.whole, data),
        )

    def _deviation_plot(self, name: str, part: Seconds, data: DataFile) -> Figure | None:
        """Return average IOPS (left axis) and response time deviation (right axis)."""
        times = part.time_ns.tolist()
        return plots.two_axes(
            name,
            "IOPS and standard deviation of response time, by second",
            data,
            time_axis(self.data.options["seconds"] * SECOND_NS),
            (Axis("IOPS", log=True), [Line(AVERAGE, times, part.iops.tolist())]),
            (DEVIATION, [Line("σ of response time", times, part.sd_ns.tolist())]),
        )

    def _plot(
        self, name: str, title: str, part: Seconds, data: DataFile, *, log: bool
    ) -> Figure | None:
        times = part.time_ns.tolist()
        axis = time_axis(self.data.options["seconds"] * SECOND_NS)
        return plots.lines(
            name,
            title,
            data,
            [
                Line(AVERAGE, times, part.iops.tolist()),
                Line(WORST, times, part.worst_iops.tolist()),
            ],
            Axis(axis.label, units=axis.units, from_zero=name.endswith("whole-log")),
            Axis("IOPS", log=log),
            alt="Average and worst-case IOPS of every second",
            joined=False,
        )
