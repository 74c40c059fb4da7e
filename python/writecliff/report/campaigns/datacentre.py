"""The report of the data-centre white paper's tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from writecliff import units
from writecliff.procedures.model import StepRow
from writecliff.report import plots
from writecliff.report.axes import Axis, Line, depth_axis, time_axis
from writecliff.report.campaigns import datacentre_results as found_in
from writecliff.report.campaigns.common import (
    RESULTS_CSV,
    Result,
    Steps,
    known,
    page,
    results_file,
    summary,
)
from writecliff.report.campaigns.seconds import SECONDS_NEEDED
from writecliff.report.loops import STEPS_CSV, aligned
from writecliff.report.model import (
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
from writecliff.workload.model import KIB

LATENCY = Axis("Response time", units=units.LATENCY_UNITS, log=True)
LATENCY_HEAD = ("Average", "99.9 %", "99.99 %", "Maximum")


def report(run: RunDirectory) -> ReportModel:
    """The report of a run. Raises StoreError: damaged, or nothing measured yet."""
    data = load(run)
    steps = Steps(data)
    results = found_in.results(steps)
    with house_style():
        sections = _sections(steps)
    return page(
        data,
        verdict=_verdict(data),
        key_figures=_key_figures(results),
        sections=sections,
        summary=summary(data, results),
        files=(results_file(results),),
    )


def summary_of(run: RunDirectory) -> dict[str, Any]:
    """What `report(run)` holds as its summary, without drawing anything."""
    data = load(run)
    return summary(data, found_in.results(Steps(data)))


def _verdict(data: TestData) -> Verdict:
    state = str(data.manifest.options.get("state"))
    done = ", ".join(data.history.stages)
    meaning = [f"Parts: {done}. Each figure is that of one step, over all of its I/Os."]
    if state == "sustained":
        meaning.append(
            "The drive was written once in order and twice at random first, each time its whole "
            "user capacity: this is how it performs when it has been in use for long."
        )
        return Verdict("good", "Measured in the sustained state", tuple(meaning))
    meaning.append("The published figures are of the sustained state; these are not.")
    return Verdict("warning", f"Measured in the state '{state}', not sustained", tuple(meaning))


def _key_figures(results: Sequence[Result]) -> tuple[KeyFigure, ...]:
    wanted = (
        ("Sequential read", "sequential", 128.0, 100.0, "throughput"),
        ("Sequential write", "sequential", 128.0, 0.0, "throughput"),
        ("Random read", "random", 4.0, 100.0, "iops"),
        ("Random write", "random", 4.0, 0.0, "iops"),
    )
    figures = []
    for label, *key in wanted:
        for result in results:
            of = [result.access, result.block_kib, result.read_pct, result.metric]
            if result.item == "basic" and result.oio != 1 and of == key:
                unit = result.unit if result.unit != "IOPS" else ""
                text = units.number(result.value)
                note = f"{result.block_kib:g} KiB, QD {result.oio}" + ("" if unit else ", IOPS")
                figures.append(KeyFigure(label, text, unit, note))
    return tuple(figures)


def _sections(steps: Steps) -> tuple[Section, ...]:
    return (
        _basic(steps),
        *_mixes(steps),
        _consistency(steps),
        _messenger(steps),
        _servers(steps),
    )


def _latencies(steps: Steps, row: StepRow, operation: str | None = None) -> tuple[str, ...]:
    return (
        units.latency(steps.mean_ns(row, operation)),
        units.latency(steps.quantile_ns(row, 0.999, operation)),
        units.latency(steps.quantile_ns(row, 0.9999, operation)),
        units.latency(steps.max_ns(row, operation)),
    )


def _cells(steps: Steps, rows: Iterable[StepRow]) -> tuple[tuple[str, ...], ...]:
    """Name, IOPS, MB/s and latencies of each step."""
    return tuple(
        (
            row.label,
            units.number(row.iops),
            units.number(row.bytes_per_s / 1e6, 1),
            *_latencies(steps, row),
        )
        for row in rows
    )


def _basic(steps: Steps) -> Section:
    rows = [*steps.phase("sequential"), *steps.phase("basic")]
    table = Table(
        "Basic figures",
        ("Access", "IOPS", "MB/s", *LATENCY_HEAD),
        _cells(steps, rows),
        aligned(6),
        data=STEPS_CSV,
    )
    return Section("Basic figures", "", tables=(table,) if rows else ())


def _mixes(steps: Steps) -> tuple[Section, ...]:
    rows = steps.phase("mixes")
    if not rows:
        return ()
    first = rows[0].block_bytes
    cells = [row for row in rows if row.block_bytes == first]
    depths = sorted({row.queue_depth or 1 for row in cells})
    size = f"{(first or 0) / KIB:g} KiB"
    speed = [
        _by_mix(steps, cells, "iops", "IOPS", "IOPS, reads and writes"),
        _by_mix(steps, cells, "read-iops", "IOPS", "Read IOPS", "read"),
        _by_mix(steps, cells, "write-iops", "IOPS", "Write IOPS", "write"),
    ]
    slow = [
        _by_mix(steps, cells, f"latency-{name}", "latency", f"{title} response time", q=q)
        for name, title, q in (
            ("p999", "99.9 %", 0.999),
            ("p9999", "99.99 %", 0.9999),
            ("max", "Maximum", 1.0),
        )
    ]
    intro = f"Random {size}, a line a mix (percent of reads), queue depths {depths[0]} to "
    return (
        Section(
            "Mixed reads and writes",
            f"{intro}{depths[-1]}.",
            tuple(figure for found in speed for figure in found),
            (_mix_table(steps, rows),),
        ),
        Section(
            "Response times of mixed reads and writes",
            "Of all I/Os, reads and writes; a percentile that too few I/Os support is left out.",
            tuple(figure for found in slow for figure in found),
        ),
    )


def _by_mix(
    steps: Steps,
    rows: Sequence[StepRow],
    name: str,
    kind: str,
    title: str,
    operation: str | None = None,
    q: float = 0.0,
) -> tuple[Figure, ...]:
    """IOPS or a quantile (1: the maximum) over the queue depth, a line a mix."""

    def value(row: StepRow) -> float:
        if kind == "IOPS":
            return steps.iops(row, operation)
        latency = steps.max_ns(row) if q == 1 else steps.quantile_ns(row, q)
        return known(latency)

    def issued(read_pct: float) -> bool:
        return operation is None or read_pct != {"read": 0.0, "write": 100.0}[operation]

    series = []
    for mix in dict.fromkeys(row.read_pct or 0.0 for row in rows):
        found = sorted((r for r in rows if r.read_pct == mix), key=lambda r: r.queue_depth or 0)
        if issued(mix):
            places = [float(row.queue_depth or 1) for row in found]
            series.append(Line(f"{mix:g} %", places, [value(row) for row in found]))
    depths = sorted({row.queue_depth or 1 for row in rows})
    axis = Axis("IOPS") if kind == "IOPS" else LATENCY
    svg = plots.lines(
        f"mixes-{name}",
        series,
        depth_axis(depths),
        axis,
        description=f"{title} over queue depth, a line a share of reads",
    )
    return drawn(f"mixes-{name}", title, svg, RESULTS_CSV, f"{title} by mix and queue depth")


def _mix_table(steps: Steps, rows: Iterable[StepRow]) -> Table:
    def iops(row: StepRow, operation: str) -> str:
        value = steps.iops(row, operation)
        return units.number(value) if value else units.UNKNOWN

    return Table(
        "Mixed reads and writes",
        ("Access", "Read IOPS", "Write IOPS", *LATENCY_HEAD),
        tuple(
            (row.label, iops(row, "read"), iops(row, "write"), *_latencies(steps, row))
            for row in rows
        ),
        aligned(6),
        data=RESULTS_CSV,
    )


def _consistency(steps: Steps) -> Section:
    loads = found_in.loads(steps)
    figures: tuple[Figure, ...] = ()
    for load_ in loads:
        name = f"consistency-{load_.row.read_pct:g}"
        seconds = load_.seconds
        svg = plots.lines(
            name,
            [Line("IOPS", seconds.time_ns.tolist(), seconds.iops.tolist())],
            time_axis(float(load_.row.elapsed_ns)),
            Axis("IOPS"),
            description=f"IOPS of {load_.row.label} second by second",
            references=[plots.Reference("average", seconds.average or 0.0)],
        )
        figures += drawn(name, f"{load_.row.label}, by second", svg, STEPS_CSV, "IOPS over time")
    rows = tuple(
        (
            item.row.label,
            units.number(len(item.seconds)),
            units.number(item.seconds.average),
            units.number(item.seconds.deviation),
            units.number(item.seconds.slow),
            units.number(item.seconds.consistency_pct, 1) + " %",
        )
        for item in loads
    )
    short = any(len(item.seconds) < SECONDS_NEEDED for item in loads)
    table = Table(
        "IOPS consistency",
        ("Load", "Seconds", "Average", "Standard deviation", "99.9 % of seconds", "Consistency"),
        rows,
        aligned(5),
        f"Below {SECONDS_NEEDED:,} seconds the 99.9th percentile is the slowest one."
        if short
        else "",
        RESULTS_CSV,
    )
    return Section(
        "Consistency",
        "IOPS of each second. Consistency is the IOPS of the 99.9th percentile of the seconds over "
        "the average.",
        figures,
        (table,) if rows else (),
    )


def _messenger(steps: Steps) -> Section:
    found = found_in.messenger(steps)
    if found is None:
        return Section("Messenger service", "")
    per_thread = [found.iops(reader) for reader in found.readers]
    rows = [
        (
            f"Readers, of {len(found.readers)} threads",
            units.number(found.reader_iops),
            f"{units.number(min(per_thread))} to {units.number(max(per_thread))}",
            *(units.latency(found.readers_ns(q)) for _, q in found_in.STATISTICS),
        )
    ]
    if found.writer is not None:
        iops = units.number(found.iops(found.writer), 1)
        texts = (units.latency(found.writer_ns(q)) for _, q in found_in.STATISTICS)
        rows.insert(0, ("Writer", iops, units.UNKNOWN, *texts))
    table = Table(
        "Messenger service",
        ("Thread", "IOPS", "of the threads", *LATENCY_HEAD),
        tuple(rows),
        aligned(6),
        "Figures of readers are those of single threads, averaged over the threads.",
        RESULTS_CSV,
    )
    return Section(
        "Messenger service",
        "One thread of 512 KiB random writes, 32 a second at most, beside threads of 4 KiB random "
        "reads.",
        tables=(table,),
    )


def _servers(steps: Steps) -> Section:
    rows = steps.phase("servers")
    if not rows:
        return Section("Servers", "")
    by_profile: dict[str, list[StepRow]] = {}
    for row in rows:
        by_profile.setdefault(found_in.profile_and_depth(row)[0], []).append(row)
    depths = sorted({found_in.profile_and_depth(row)[1] for row in rows})
    figures: tuple[Figure, ...] = ()
    for name, title, axis, value in (
        ("iops", "IOPS of servers", Axis("IOPS"), lambda row: row.iops),
        ("latency", "Average response time of servers", LATENCY, steps.mean_ns),
    ):
        series = [
            Line(
                profile,
                [float(found_in.profile_and_depth(row)[1]) for row in mine],
                [known(value(row)) for row in mine],
            )
            for profile, mine in by_profile.items()
        ]
        svg = plots.lines(
            f"servers-{name}",
            series,
            depth_axis(depths),
            axis,
            description=f"{title} over queue depth, a line a profile",
        )
        figures += drawn(f"servers-{name}", title, svg, RESULTS_CSV, f"{title} by queue depth")
    table = Table(
        "Servers",
        ("Profile", "IOPS", "MB/s", *LATENCY_HEAD),
        _cells(steps, rows),
        aligned(6),
        data=RESULTS_CSV,
    )
    return Section("Servers", "Profiles of servers over the queue depth.", figures, (table,))
