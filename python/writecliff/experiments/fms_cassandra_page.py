"""What `fms-cassandra` measured, as JSON, as tables and as a page with pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from writecliff.experiments.fms_cassandra import (
    CLAIM,
    CLAIMED_IO,
    CLAIMED_LIFETIME,
    DEVICE,
    RULES,
    UNIT_FILL_PCT,
    Case,
    Result,
    Row,
    Side,
)
from writecliff.experiments.fms_cassandra_findings import describe, factors, findings
from writecliff.report.axes import Axis, Line
from writecliff.report.csvs import csv_text
from writecliff.report.model import Align, DataFile, Figure, Section, Table, drawn
from writecliff.report.pages import Page
from writecliff.report.plots import Reference, lines
from writecliff.report.style import house_style
from writecliff.units import latency, size

SCHEMA = "writecliff/experiment-fms-cassandra/2"
CELLS_CSV, STREAMS_CSV = "conditions.csv", "streams.csv"
RIGHT: Align = "right"
_TABLES = "reclaim unit, in flushed tables"


def mapping(result: Result) -> dict[str, Any]:
    """For programs; `precondition` belongs to every figure."""
    load = result.load
    return {
        "schema": SCHEMA,
        "claim": CLAIM,
        "claimed": {"lifetime_ratio": CLAIMED_LIFETIME, "io_ratio": CLAIMED_IO},
        "precondition": result.precondition,
        "device": DEVICE,
        "rules": RULES,
        "captured_now": result.captured_now,
        "capture": result.metadata,
        "flushed_table_bytes": load.table_bytes,
        "reads_per_4k_written": load.reads_per_block,
        "findings": list(findings(result.rows, result.assigned)),
        "factors": [asdict(factor) for factor in factors(result.rows)],
        "rows": [_row(row) for row in result.rows],
        "assignments": [{**asdict(one.case), "waf": one.waf} for one in result.assigned],
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        **asdict(row.case),
        "simulated_capacity_bytes": row.capacity_bytes,
        "reclaim_units": row.units,
        "reclaim_unit_bytes": row.unit_bytes,
        "rounds": row.rounds,
        "replayed_bytes": row.replayed_bytes,
        "mean_fill_pct": row.mean_fill_pct,
        "off": _side(row, row.off),
        "on": {**_side(row, row.on), "by_stream": list(row.by_stream)},
        "lifetime_ratio": row.lifetime_ratio,
        "io_ratio": row.io_ratio,
        "io_ratio_reads_cached": row.io_ratio_cached,
    }


def _side(row: Row, side: Side) -> dict[str, Any]:
    return {**asdict(side), "mapped_pct": 100 * side.mapped_bytes / row.capacity_bytes}


def tables(result: Result) -> tuple[Table, ...]:
    said = tuple((sentence,) for sentence in findings(result.rows, result.assigned))
    return (
        Table("Findings", ("",), said, ("left",)),
        _factors(result),
        _assigned(result),
        _cells(result),
        _streams(result),
    )


def _factors(result: Result) -> Table:
    header = ("condition", "values", "least", "median", "most", "compared")
    rows = tuple(
        (
            factor.name,
            ", ".join(factor.levels),
            f"{factor.least:.2f}",
            f"{factor.median:.2f}",
            f"{factor.most:.2f}",
            str(factor.groups),
        )
        for factor in factors(result.rows)
    )
    align: tuple[Align, ...] = ("left", "left", "right", "right", "right", "right")
    note = "the largest minus the smallest ratio of lifetimes while all other conditions stay"
    return Table("What each condition changes in the lifetime ratio", header, rows, align, note)


def _assigned(result: Result) -> Table:
    header = ("streams", *(describe(one.case) for one in result.assigned))
    names = result.assigned[0].waf if result.assigned else ()
    rows = tuple((name, *(f"{one.waf[name]:.3f}" for one in result.assigned)) for name in names)
    align: tuple[Align, ...] = ("left", *(RIGHT for _ in result.assigned))
    note = "the oracle knows when data die, has as many streams, and tries several ways to use them"
    return Table("Write amplification by assignment", header, rows, align, note)


_HEADER = (
    "nodes", "TRIM", "allocator", "files, peak", "mean", "drive full", "unit", "WAF off", "WAF on",
    "lifetime", "I/O", "I/O, reads cached", "read p99.99 off", "read p99.99 on",
)  # fmt: skip


def _cells(result: Result) -> Table:
    align: tuple[Align, ...] = ("right", "left", "left", *(RIGHT for _ in _HEADER[3:]))
    note = (
        f"the deck: lifetime {CLAIMED_LIFETIME:g} x, I/O {CLAIMED_IO:g} x. Drive full: what the "
        f"drive takes for valid at the end, without streams. Unit: {_TABLES}"
    )
    rows = tuple(_cell(row) for row in result.rows)
    return Table("Streams off and on", _HEADER, rows, align, note, data=CELLS_CSV)


def _cell(row: Row) -> tuple[str, ...]:
    case = row.case
    return (
        str(case.nodes),
        "on" if case.trim else "off",
        case.allocator,
        f"{case.fill_pct:g} %",
        f"{row.mean_fill_pct:.0f} %",
        f"{100 * row.off.mapped_bytes / row.capacity_bytes:.0f} %",
        f"{case.unit_share:g}",
        f"{row.off.waf:.3f}",
        f"{row.on.waf:.3f}",
        f"{row.lifetime_ratio:.2f}",
        f"{row.io_ratio:.2f}",
        f"{row.io_ratio_cached:.2f}",
        latency(row.off.read_p9999_ns),
        latency(row.on.read_p9999_ns),
    )


def _best(result: Result) -> Row:
    return max(result.rows, key=lambda row: row.lifetime_ratio)


def _streams(result: Result) -> Table:
    best = _best(result)
    rows = tuple(
        (
            str(found["stream"]),
            str(found["name"]),
            size(float(found["written_bytes"])),
            "outlives the trace"
            if found["median_lifetime_bytes"] is None
            else size(float(found["median_lifetime_bytes"])),
        )
        for found in best.by_stream
    )
    title = f"What each stream wrote, and how long it lived: {describe(best.case)}"
    header = ("stream", "class", "written", "median lifetime")
    return Table(title, header, rows, ("right", "left", "right", "right"), data=STREAMS_CSV)


def page(result: Result) -> Page:
    said, conditions, assigned, cells, streams = tables(result)
    with house_style():
        pictures = _pictures(result)
    load = result.load
    return Page(
        title="Cassandra with and without streams",
        intro=f"Published: {CLAIM}. How full that drive was, whether its host trimmed and how "
        "large its tables were against a reclaim unit is not known, so all of it is varied here, "
        f"on a simulated {DEVICE} cut to the files: {result.precondition}.",
        sections=(
            Section("What was found", "", tables=(replace(said, title=""), conditions)),
            Section("Lifetime", "", pictures["life"]),
            Section("Write amplification", "", pictures["waf"]),
            Section("Operations", "", pictures["io"]),
            Section("All conditions", "", tables=(cells,)),
            Section("Streams", "", tables=(assigned, streams)),
        ),
        data=_data(result),
        summary=mapping(result),
        disclosures=(
            f"Scale: a flushed table has {size(load.table_bytes)} here. The drive is cut to the "
            "files and its reclaim units to the tables, as their ratio decides how much data of "
            "different ages share a unit; the drive of 480 GB has units of 302 MB. Cassandra was "
            "3.5 there, and its memtables are not known.",
            "Several nodes are copies of the capture beside each other, out of step by equal parts "
            "of a round, all in the same streams; their peaks do not coincide, so the drive is "
            "fuller on average.",
            "Files fill the drive to the stated share at the peak, when the inputs and outputs of "
            "a compaction exist side by side; the mean stands beside it. Without TRIM the drive "
            "keeps deleted data until their addresses are written again: it fills up with every "
            "address that the file system has ever used.",
            "A round replaces the files of the one before, the oldest first as their room is "
            "needed, as when a node is built up again. Metadata and journal of the file system are "
            "not modelled.",
            "Operations are what the drive alone could carry with "
            f"{load.reads_per_block:.2f} random reads of 4 KiB for 4 KiB written, which is the "
            "client's half-and-half if no cache meets a read, or with writes alone, if caches meet "
            "all. A host's processors bound a real node as well.",
        ),
    )


def _grid(result: Result, nodes: int) -> list[Row]:
    return [row for row in result.rows if row.case.nodes == nodes and row.case.unit_share == 1]


def _series(rows: Sequence[Row], pick: Callable[[Row], float], more: str = "") -> list[Line]:
    """A line for TRIM (its allocators fall together) and one for each allocator without."""
    labels: dict[str, list[Row]] = {}
    for row in rows:
        case = row.case
        if case.trim and case.allocator != rows[0].case.allocator:
            continue
        labels.setdefault("TRIM" if case.trim else f"no TRIM, {case.allocator}", []).append(row)
    return [
        Line(label + more, [row.case.fill_pct for row in some], [pick(row) for row in some])
        for label, some in labels.items()
    ]


def _pictures(result: Result) -> dict[str, tuple[Figure, ...]]:
    found: dict[str, tuple[Figure, ...]] = {"life": (), "waf": (), "io": ()}
    for nodes in dict.fromkeys(row.case.nodes for row in result.rows):
        rows = _grid(result, nodes)
        name = "one node" if nodes == 1 else f"{nodes} nodes"
        fills = Axis("Drive taken by files at their peak (%)", from_zero=False)
        drawings = (
            ("life", "Lifetime with streams / without", "Lifetime ratio", CLAIMED_LIFETIME,
             _series(rows, lambda row: row.lifetime_ratio)),
            ("waf", "Write amplification", "Write amplification", None,
             _series(rows, lambda r: r.off.waf, ", one stream")
             + _series(rows, lambda r: r.on.waf, ", streams")),
            ("io", "Operations with streams / without, reads cached", "Ratio", CLAIMED_IO,
             _series(rows, lambda row: row.io_ratio_cached)),
        )  # fmt: skip
        for key, title, y, claimed, series in drawings:
            claim = () if claimed is None else (Reference("the deck", claimed),)
            about = f"{title}: {name}"
            svg = lines(f"{key}-{nodes}", series, fills, Axis(y), description=about,
                        references=claim)  # fmt: skip
            found[key] += drawn(f"{key}-{nodes}", about, svg, CELLS_CSV, about)
    found["life"] += _unit_picture(result)
    return found


def _unit_picture(result: Result) -> tuple[Figure, ...]:
    """Over the size of reclaim units, at the fill where it was varied."""
    some: dict[str, list[Row]] = {}
    for row in sorted(result.rows, key=lambda row: row.case.unit_share):
        case = row.case
        if case.fill_pct == UNIT_FILL_PCT and case.allocator == result.rows[0].case.allocator:
            nodes = "one node" if case.nodes == 1 else f"{case.nodes} nodes"
            some.setdefault(f"{nodes}, {'TRIM' if case.trim else 'no TRIM'}", []).append(row)
    series = [
        Line(label, [row.case.unit_share for row in rows], [row.lifetime_ratio for row in rows])
        for label, rows in some.items()
    ]
    shares = sorted({row.case.unit_share for rows in some.values() for row in rows})
    x = Axis(_TABLES[0].upper() + _TABLES[1:], log=True, ticks=tuple((s, f"{s:g}") for s in shares))
    about = f"Lifetime ratio v size of reclaim units, {UNIT_FILL_PCT:g} % full, next-fit"
    svg = lines("units", series, x, Axis("Lifetime ratio"), description=about,
                references=(Reference("the deck", CLAIMED_LIFETIME),))  # fmt: skip
    return drawn("units", about, svg, CELLS_CSV, about)


def _data(result: Result) -> tuple[DataFile, ...]:
    case = tuple(Case.__dataclass_fields__)
    side = tuple(Side.__dataclass_fields__)
    head = (
        *case, "reclaim_unit_bytes", "mean_fill_pct", "lifetime_ratio", "io_ratio",
        "io_ratio_reads_cached", *(f"{name}_off" for name in side),
        *(f"{name}_on" for name in side),
    )  # fmt: skip
    rows = (
        (
            *(getattr(row.case, name) for name in case),
            row.unit_bytes,
            row.mean_fill_pct,
            row.lifetime_ratio,
            row.io_ratio,
            row.io_ratio_cached,
            *(getattr(row.off, name) for name in side),
            *(getattr(row.on, name) for name in side),
        )
        for row in result.rows
    )
    streams = (
        (s["stream"], s["name"], s["written_bytes"], s["median_lifetime_bytes"])
        for s in _best(result).by_stream
    )
    columns = ("stream", "class", "written_bytes", "median_lifetime_bytes")
    return (
        DataFile(CELLS_CSV, csv_text(head, rows)),
        DataFile(STREAMS_CSV, csv_text(columns, streams)),
    )
