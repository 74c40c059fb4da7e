"""The report of the reviewer's consistency test: three plots a range, and what they amount to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from writecliff import units
from writecliff.procedures.campaigns.consistency import phase_of
from writecliff.report import plots
from writecliff.report.axes import Axis, Line, time_axis
from writecliff.report.campaigns.common import (
    RESULTS_CSV,
    Result,
    page,
    results_file,
    summary,
)
from writecliff.report.campaigns.seconds import SECOND_NS, Seconds, seconds_of
from writecliff.report.csvs import csv_text
from writecliff.report.loops import aligned
from writecliff.report.model import (
    DataFile,
    Figure,
    KeyFigure,
    ReportModel,
    Section,
    Table,
    Verdict,
    drawn,
)
from writecliff.report.style import house_style
from writecliff.report.testdata import TestData, load
from writecliff.store.rundir import RunDirectory

AVERAGE, WORST = "average", "worst case"


@dataclass(frozen=True)
class Range:
    """The writes to one share of the addresses."""

    share_pct: float
    whole: Seconds
    steady: Seconds

    @property
    def name(self) -> str:
        return f"{self.share_pct:g} %"

    @property
    def stem(self) -> str:
        return f"{self.share_pct:g}".replace(".", "-")


def ranges(data: TestData) -> list[Range]:
    """What was measured of each range, as far as the run got."""
    options = data.manifest.options
    begin_ns = float(options["steady_from_seconds"]) * SECOND_NS
    found = []
    for share in options["range_pcts"]:
        stage = data.stage(phase_of(share))
        if stage is not None and stage.rows:
            whole = seconds_of(data, stage.rows, int(options["queue_depth"]))
            found.append(Range(share, whole, whole.since(begin_ns)))
    return found


def results(data: TestData, found: Sequence[Range]) -> list[Result]:
    """Of the steady part, or of the whole run if that was not reached."""
    price = data.manifest.options.get("price")
    listed = []
    for item in found:
        part = item.steady if len(item.steady) else item.whole
        place: dict[str, Any] = {
            "item": f"consistency {item.name}",
            "access": "random",
            "block_kib": 4.0,
            "read_pct": 0.0,
            "oio": int(data.manifest.options["queue_depth"]),
        }
        for metric, value, unit, better in (
            ("iops_steady", part.average, "IOPS", True),
            ("iops_stddev", part.deviation, "IOPS", False),
            ("iops_lowest_second", part.lowest, "IOPS", True),
            ("iops_worst_case", part.lowest_worst, "IOPS", True),
            ("iops_per_dollar", _per(part.average, price), "IOPS/$", True),
        ):
            if value is not None:
                listed.append(Result(metric=metric, value=value, unit=unit,
                                     higher_is_better=better, **place))  # fmt: skip
    if price:
        value = price / (data.capacity_bytes / 1e9)
        listed.append(Result("price", "", "dollars_per_gb", value, "$/GB", higher_is_better=False))
    return listed


def _per(value: float | None, price: float | None) -> float | None:
    return None if value is None or not price else value / price


def report(run: RunDirectory) -> ReportModel:
    """The report of a run. Raises StoreError: damaged, or nothing measured yet."""
    data = load(run)
    found = ranges(data)
    listed = results(data, found)
    with house_style():
        sections = [_section(data, item) for item in found]
    return page(
        data,
        verdict=_verdict(data, found),
        key_figures=_key_figures(data, found),
        sections=(_overview(data, found), *sections),
        summary=summary(data, listed),
        files=(results_file(listed), *(_seconds_file(item) for item in found)),
    )


def summary_of(run: RunDirectory) -> dict[str, Any]:
    """What `report(run)` holds as its summary, without drawing anything."""
    data = load(run)
    return summary(data, results(data, ranges(data)))


def _verdict(data: TestData, found: Sequence[Range]) -> Verdict:
    wanted_s = data.manifest.options["seconds"]
    complete = all(len(item.whole) >= wanted_s - 1 for item in found)
    begin_s = data.manifest.options["steady_from_seconds"]
    meaning = [
        f"{item.name} of the addresses: {units.number(item.steady.average)} IOPS on average from "
        f"{begin_s:g} s on, spread by {units.number(item.steady.deviation)} (standard deviation "
        f"of the seconds); the slowest second had {units.number(item.steady.lowest)}."
        for item in found
        if len(item.steady)
    ]
    meaning.append(
        "The worst case of a second is the queue depth over its longest latency: what a host would "
        "see if every I/O were as slow."
    )
    if complete and found:
        return Verdict("good", "Written second by second", tuple(meaning))
    return Verdict("warning", "The writes were not completed", tuple(meaning))


def _key_figures(data: TestData, found: Sequence[Range]) -> tuple[KeyFigure, ...]:
    price = data.manifest.options.get("price")
    figures = []
    for item in found:
        note = f"steady part, {item.name} of the addresses"
        figures.append(KeyFigure("Average IOPS", units.number(item.steady.average), "", note))
        worst = units.number(item.steady.lowest_worst)
        figures.append(KeyFigure("Worst-case IOPS", worst, "", note))
    if price and found:
        rate = _per(found[0].steady.average, price)
        figures.append(KeyFigure("IOPS per dollar", units.significant(rate), "", f"${price:,.2f}"))
        per_gb = price / (data.capacity_bytes / 1e9)
        figures.append(KeyFigure("Dollars per GB", units.significant(per_gb), "$", "user capacity"))
    return tuple(figures)


def _overview(data: TestData, found: Sequence[Range]) -> Section:
    price = data.manifest.options.get("price")
    rows = []
    for item in found:
        for name, part in (("whole run", item.whole), ("steady part", item.steady)):
            cells = (
                units.number(len(part)),
                units.number(part.average),
                units.number(part.deviation),
                units.number(part.lowest),
                units.number(part.lowest_worst),
                units.significant(_per(part.average, price)),
            )
            rows.append((f"{item.name}, {name}", *cells))
    head = ("Addresses", "Seconds", "Average IOPS", "Standard deviation", "Lowest second",
            "Lowest worst case", "IOPS per dollar")  # fmt: skip
    note = "" if price else "No price was given (--price), so there are no IOPS per dollar."
    table = Table("Consistency", head, tuple(rows), aligned(6), note, RESULTS_CSV)
    return Section("Consistency", "", tables=(table,) if rows else ())


def _section(data: TestData, item: Range) -> Section:
    begin_s = data.manifest.options["steady_from_seconds"]
    figures: tuple[Figure, ...] = ()
    for name, part, log, title in (
        ("whole-log", item.whole, True, "Whole run (logarithmic)"),
        ("steady-log", item.steady, True, f"From {begin_s:g} s on (logarithmic)"),
        ("steady-linear", item.steady, False, f"From {begin_s:g} s on (linear)"),
    ):
        full = f"range-{item.stem}-{name}"
        svg = _plot(full, part, log=log, duration_s=data.manifest.options["seconds"])
        figures += drawn(full, title, svg, _csv_name(item), f"IOPS of each second: {title}")
    return Section(
        f"Random 4 KiB writes to {item.name} of the addresses",
        "A point a second: its average and its worst case.",
        figures,
    )


def _plot(name: str, part: Seconds, *, log: bool, duration_s: float) -> str | None:
    times = part.time_ns.tolist()
    axis = time_axis(duration_s * SECOND_NS)
    return plots.lines(
        name,
        [Line(AVERAGE, times, part.iops.tolist()), Line(WORST, times, part.worst_iops.tolist())],
        Axis(axis.label, units=axis.units, from_zero=name.endswith("whole-log")),
        Axis("IOPS", log=log),
        description="Average and worst-case IOPS of every second",
        joined=False,
    )


def _csv_name(item: Range) -> str:
    return f"seconds-{item.stem}.csv"


def _seconds_file(item: Range) -> DataFile:
    part = item.whole
    columns = (part.time_ns.tolist(), part.iops.tolist(), part.worst_iops.tolist())
    head = ("middle_ns", "iops", "worst_case_iops")
    return DataFile(_csv_name(item), csv_text(head, zip(*columns, strict=True)))
