"""Rendering of `fms-cassandra` results as JSON, tables and a page with plots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from operator import attrgetter
from statistics import median
from typing import Any

from writecliff.lab.experiments.fms_cassandra import (
    CLAIM,
    CLAIMED_IO,
    CLAIMED_LIFETIME,
    DEVICE,
    ORACLE,
    RULES,
    UNIT_FILL_PCT,
    Assigned,
    Case,
    Result,
    Row,
    Side,
)
from writecliff.report import kinds
from writecliff.report.axes import Axis, Line
from writecliff.report.colours import one_page
from writecliff.report.csvs import csv_text
from writecliff.report.kinds import Kind
from writecliff.report.model import Figure, Section
from writecliff.report.pages import Page
from writecliff.report.plots import Reference, lines
from writecliff.report.stream_advice import lifetime_text
from writecliff.report.table import DataFile, Table
from writecliff.units import size

SCHEMA = "writecliff/experiment-fms-cassandra/2"
CELLS_CSV, STREAMS_CSV = "conditions.csv", "streams.csv"


def mapping(result: Result) -> dict[str, Any]:
    """Return all results as plain data; `precondition` applies to every figure."""
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
        "assignments": [
            {**asdict(assignment.case), "waf": assignment.waf} for assignment in result.assigned
        ],
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


def _side(row: Row, side: Side) -> dict[str, object]:
    return {**asdict(side), "mapped_pct": _mapped_pct(row, side)}


def _mapped_pct(row: Row, side: Side) -> float:
    return 100 * side.mapped_bytes / row.capacity_bytes


def tables(result: Result) -> tuple[Table, ...]:
    """Return the tables of findings, conditions, assignments, all rows and best-row streams."""
    sentences = findings(result.rows, result.assigned)
    conditions = Table.of(
        "Effect of each condition on the lifetime ratio",
        factors(result.rows),
        ("condition", kinds.TEXT, lambda factor: factor.name),
        ("values", kinds.TEXT, lambda factor: ", ".join(factor.levels)),
        ("minimum", kinds.decimals(2), lambda factor: factor.least),
        ("median", kinds.decimals(2), lambda factor: factor.median),
        ("maximum", kinds.decimals(2), lambda factor: factor.most),
        ("groups", kinds.plain(), lambda factor: factor.groups),
        note="difference between the largest and the smallest lifetime ratio when all other "
        "conditions are equal",
    )
    assigned = Table.of(
        "Write amplification by assignment",
        result.assigned[0].waf if result.assigned else (),
        ("streams", kinds.TEXT, str),
        *_by_case(result),
        note="the oracle knows when data become invalid, has the same number of streams, and "
        "tries several ways to use them",
    )
    best = _best(result)
    streams = Table.of(
        f"Written bytes and lifetime of the data by stream: {describe(best.case)}",
        best.by_stream,
        ("stream", kinds.plain(), lambda row: row["stream"]),
        ("class", kinds.TEXT, lambda row: str(row["name"])),
        ("written", kinds.SIZE, lambda row: row["written_bytes"]),
        ("median lifetime", kinds.RIGHT, lifetime_text),
        data=STREAMS_CSV,
    )
    findings_table = Table.of("Findings", sentences, ("", kinds.TEXT, str))
    return findings_table, conditions, assigned, _all_rows(result), streams


def _by_case(result: Result) -> list[tuple[str, Kind, Callable[[str], str]]]:
    """Table with a column per set of conditions."""
    return [
        (describe(assignment.case), kinds.RIGHT, partial(_waf_text, assignment.waf))
        for assignment in result.assigned
    ]


def _waf_text(waf: dict[str, float], name: str) -> str:
    return f"{waf[name]:.3f}"


def _all_rows(result: Result) -> Table:
    return Table.of(
        "Streams off and on",
        result.rows,
        ("nodes", kinds.plain(), lambda row: row.case.nodes),
        ("TRIM", kinds.TEXT, lambda row: on_off(row.case.trim)),
        ("allocator", kinds.TEXT, lambda row: row.case.allocator),
        ("files, peak", kinds.plain("%"), lambda row: row.case.fill_pct),
        ("mean", kinds.decimals(0, "%"), lambda row: row.mean_fill_pct),
        ("drive full", kinds.decimals(0, "%"), lambda row: _mapped_pct(row, row.off)),
        ("unit", kinds.plain(), lambda row: row.case.unit_share),
        ("WAF off", kinds.decimals(3), lambda row: row.off.waf),
        ("WAF on", kinds.decimals(3), lambda row: row.on.waf),
        ("lifetime", kinds.decimals(2), lambda row: row.lifetime_ratio),
        ("I/O", kinds.decimals(2), lambda row: row.io_ratio),
        ("I/O, reads cached", kinds.decimals(2), lambda row: row.io_ratio_cached),
        ("read p99.99 off", kinds.LATENCY, lambda row: row.off.read_p9999_ns),
        ("read p99.99 on", kinds.LATENCY, lambda row: row.on.read_p9999_ns),
        note=f"the deck: lifetime {CLAIMED_LIFETIME:g} x, I/O {CLAIMED_IO:g} x. Drive full: "
        f"percentage of valid data on the drive at the end, without streams. Unit: reclaim unit, "
        f"in flushed tables",
        data=CELLS_CSV,
    )


def _best(result: Result) -> Row:
    return max(result.rows, key=lambda row: row.lifetime_ratio)


@one_page()
def page(result: Result) -> Page:
    """Return the page of results."""
    sentences, conditions, assigned, cells, streams = tables(result)
    lifetime, waf, operations = _plots(result)
    load = result.load
    return Page(
        title="Cassandra with and without streams",
        intro=f"Published: {CLAIM}. The fill of that drive, the use of TRIM and the size of tables "
        "relative to reclaim units are not known, so all of them are varied here, on a simulated "
        f"{DEVICE} sized for the files: {result.precondition}.",
        sections=(
            Section("Findings", "", tables=(replace(sentences, title=""), conditions)),
            Section("Lifetime", "", lifetime),
            Section("Write amplification", "", waf),
            Section("Operations", "", operations),
            Section("All conditions", "", tables=(cells,)),
            Section("Streams", "", tables=(assigned, streams)),
        ),
        data=_data(result),
        summary=mapping(result),
        disclosures=(
            f"Scale: a flushed table has {size(load.table_bytes)} here. The capacity of the drive "
            "is set by the files and the size of its reclaim units by the tables, because their "
            "ratio decides how much data of different ages share a unit. The drive of 480 GB has "
            "units of 302 MB. The deck used Cassandra 3.5 with memtables of unknown size.",
            "Several nodes are copies of the capture side by side, shifted by equal parts of a "
            "round, all in the same streams. Their peaks do not coincide, so the drive is fuller "
            "on average.",
            "Files fill the drive to the stated share at the peak, when the inputs and outputs of "
            "a compaction exist side by side. The table also gives the mean. Without TRIM the "
            "drive keeps deleted data until their addresses are written again, so it fills up with "
            "every address that the file system has ever used.",
            "A round replaces the files of the round before, the oldest first as their space is "
            "needed, as when a node is rebuilt. Metadata and journal of the file system are not "
            "modelled.",
            "Operations are those that the drive alone could sustain with "
            f"{load.reads_per_block:.2f} random reads of 4 KiB per 4 KiB written, which is the "
            "client's half-and-half load if every read misses the caches, or with only writes if "
            "caches serve all reads. The processors of a real host are a further limit.",
        ),
    )


def _series(rows: Sequence[Row], pick: Callable[[Row], float], more: str = "") -> list[Line]:
    """Plot with one line for TRIM (for any allocator), and one line per allocator without TRIM."""
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


def _plots(result: Result) -> tuple[tuple[Figure, ...], ...]:
    """Plots of lifetime, write amplification and operations."""
    figures: dict[str, tuple[Figure, ...]] = {"life": (), "waf": (), "io": ()}
    for nodes in dict.fromkeys(row.case.nodes for row in result.rows):
        rows = [r for r in result.rows if (r.case.nodes, r.case.unit_share) == (nodes, 1)]
        fills = Axis("Drive taken by files at their peak (%)", from_zero=False)
        for key, title, y, claimed, series in (
            ("life", "Lifetime with streams / without", "Lifetime ratio", CLAIMED_LIFETIME,
             _series(rows, lambda row: row.lifetime_ratio)),
            ("waf", "Write amplification", "Write amplification", None,
             _series(rows, lambda r: r.off.waf, ", one stream")
             + _series(rows, lambda r: r.on.waf, ", streams")),
            ("io", "Operations with streams / without, reads cached", "Ratio", CLAIMED_IO,
             _series(rows, lambda row: row.io_ratio_cached)),
        ):  # fmt: skip
            about = f"{title}: {nodes_text(nodes)}"
            figures[key] += _plot(f"{key}-{nodes}", about, series, fills, Axis(y), claimed)
    return figures["life"] + _unit_plot(result), figures["waf"], figures["io"]


def _unit_plot(result: Result) -> tuple[Figure, ...]:
    """Plot of lifetime ratio over reclaim unit size, at a fill of `UNIT_FILL_PCT`."""
    some: dict[str, list[Row]] = {}
    for row in sorted(result.rows, key=lambda row: row.case.unit_share):
        case = row.case
        if case.fill_pct == UNIT_FILL_PCT and case.allocator == result.rows[0].case.allocator:
            label = f"{nodes_text(case.nodes)}, {'TRIM' if case.trim else 'no TRIM'}"
            some.setdefault(label, []).append(row)
    series = [
        Line(label, [row.case.unit_share for row in rows], [row.lifetime_ratio for row in rows])
        for label, rows in some.items()
    ]
    shares = sorted({row.case.unit_share for rows in some.values() for row in rows})
    ticks = tuple((s, f"{s:g}") for s in shares)
    x = Axis("Reclaim unit, in flushed tables", log=True, ticks=ticks)
    about = f"Lifetime ratio v size of reclaim units, {UNIT_FILL_PCT:g} % full, next-fit"
    return _plot("units", about, series, x, Axis("Lifetime ratio"), CLAIMED_LIFETIME)


def _plot(
    name: str, about: str, series: Sequence[Line], x: Axis, y: Axis, claimed: float | None
) -> tuple[Figure, ...]:
    claim = () if claimed is None else (Reference("the deck", claimed),)
    figure = lines(name, about, CELLS_CSV, series, x, y, references=claim)
    return () if figure is None else (figure,)


def _data(result: Result) -> tuple[DataFile, ...]:
    case, side = ([field.name for field in fields(kind)] for kind in (Case, Side))
    columns = {
        **{name: f"case.{name}" for name in case},
        "reclaim_unit_bytes": "unit_bytes",
        **{name: name for name in ("mean_fill_pct", "lifetime_ratio", "io_ratio")},
        "io_ratio_reads_cached": "io_ratio_cached",
        **{f"{name}_{where}": f"{where}.{name}" for where in ("off", "on") for name in side},
    }
    rows = map(attrgetter(*columns.values()), result.rows)
    keys = ("stream", "name", "written_bytes", "median_lifetime_bytes")
    streams = ([row[key] for key in keys] for row in _best(result).by_stream)
    head = ("stream", "class", "written_bytes", "median_lifetime_bytes")
    return (
        DataFile(CELLS_CSV, csv_text(columns, rows)),
        DataFile(STREAMS_CSV, csv_text(head, streams)),
    )


# -- fms cassandra findings ------------------------------------------------------------------------

# `fms-cassandra` findings: the conditions that make streams useful, and a check of the claim.
#
# Every sentence in the findings is derived from the measured rows.

# Minimum change in the lifetime ratio for a condition to matter.
MATTERS = 0.1
# Maximum change in write amplification over the last quarter for a settled drive.
SETTLED = 0.05
# Maximum relative difference for a ratio that counts as equal to the deck's ratio.
NEAR = 0.1


@dataclass(frozen=True)
class Factor:
    """Effect of a condition on the lifetime ratio when all other conditions are equal."""

    name: str
    levels: tuple[str, ...]
    least: float
    median: float
    most: float
    groups: int

    @property
    def matters(self) -> bool:
        """`True` if the median effect is at least `MATTERS`."""
        return self.median >= MATTERS


def on_off(value: bool) -> str:
    """Return "on" or "off"."""
    return "on" if value else "off"


def nodes_text(nodes: int) -> str:
    """Return the number of nodes as text."""
    return "one node" if nodes == 1 else f"{nodes} nodes"


# Case fields: the condition name, and the format of the condition's values.
_CONDITIONS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "trim": ("TRIM", on_off),
    "allocator": ("allocator", str),
    "fill_pct": ("files at their peak", lambda fill: f"{fill:g} %"),
    "nodes": ("nodes", str),
    "unit_share": ("reclaim unit / table", lambda share: f"{share:g}"),
}


def factors(rows: Sequence[Row]) -> tuple[Factor, ...]:
    """Return each condition's effect on the lifetime ratio, over rows that differ only in it.

    The allocator's effect is computed separately for rows with and without TRIM. The allocator
    determines which invalid data are overwritten, but TRIM leaves no such data.
    """
    measured = []
    for key, (name, _) in _CONDITIONS.items():
        if key != "allocator":
            measured.append(_factor(key, name, rows))
            continue
        for trim in (False, True):
            some = [row for row in rows if row.case.trim == trim]
            measured.append(_factor(key, f"{name}, TRIM {on_off(trim)}", some))
    return tuple(factor for factor in measured if factor is not None)


def _factor(key: str, name: str, rows: Sequence[Row]) -> Factor | None:
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[_without(row.case, key)].append(row)
    spreads = [
        max(r.lifetime_ratio for r in group) - min(r.lifetime_ratio for r in group)
        for group in groups.values()
        if len({getattr(r.case, key) for r in group}) > 1
    ]
    if not spreads:
        return None
    text = _CONDITIONS[key][1]
    levels = tuple(dict.fromkeys(text(getattr(row.case, key)) for row in rows))
    return Factor(name, levels, min(spreads), median(spreads), max(spreads), len(spreads))


def _without(case: Case, key: str) -> tuple[object, ...]:
    """All conditions except one."""
    return tuple(value for name, value in vars(case).items() if name != key)


def describe(case: Case) -> str:
    """Describe the conditions as text."""
    trim = "TRIM" if case.trim else f"no TRIM, {case.allocator}"
    share = "" if case.unit_share == 1 else f", units of {case.unit_share:g} tables"
    return f"{nodes_text(case.nodes)}, {case.fill_pct:g} % full, {trim}{share}"


def findings(rows: Sequence[Row], assigned: Sequence[Assigned]) -> tuple[str, ...]:
    """Return the findings as sentences."""
    sentences = [_claim(rows), _trim(rows), *_matter(rows), _assignments(assigned), _io(rows)]
    sentences.append(_settled(rows))
    return tuple(sentence for sentence in sentences if sentence)


def _span(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def _claim(rows: Sequence[Row]) -> str:
    best = max(rows, key=lambda row: row.lifetime_ratio)
    near = [r for r in rows if r.lifetime_ratio >= (1 - NEAR) * CLAIMED_LIFETIME]
    nothing = sum(row.lifetime_ratio < 1 + NEAR / 2 for row in rows)
    count = f"{len(near)} of {len(rows)} sets of conditions" if near else "none of the conditions"
    return (
        f"Streams extend the drive's lifetime {_span([r.lifetime_ratio for r in rows])} times. "
        f"The claimed {CLAIMED_LIFETIME:g} is reached, within 10 %, in {count}. The best is "
        f"{describe(best.case)}: write amplification {best.off.waf:.2f} without streams, "
        f"{best.on.waf:.2f} with streams, {best.lifetime_ratio:.2f} times. In {nothing} the gain "
        "is below 5 %."
    )


def _trim(rows: Sequence[Row]) -> str:
    """TRIM compared with streams, over conditions measured with and without TRIM."""
    with_trim = {_without(row.case, "trim"): row for row in rows if row.case.trim}
    pairs = [
        (with_trim[case], row)
        for row in rows
        if not row.case.trim and (case := _without(row.case, "trim")) in with_trim
    ]
    if not pairs:
        return ""
    better = sum(trimmed.off.waf <= other.on.waf for trimmed, other in pairs)
    trimmed_life = _span([trimmed.lifetime_ratio for trimmed, _ in pairs])
    other_life = _span([other.lifetime_ratio for _, other in pairs])
    columns = (
        ("neither", [other.off.waf for _, other in pairs]),
        ("streams alone", [other.on.waf for _, other in pairs]),
        ("TRIM alone", [trimmed.off.waf for trimmed, _ in pairs]),
        ("both", [trimmed.on.waf for trimmed, _ in pairs]),
    )
    shown = ", ".join(f"{name} {median(values):.2f}" for name, values in columns)
    return (
        f"With TRIM, streams extend the lifetime {trimmed_life} times; without TRIM, "
        f"{other_life} times. Median write amplification: {shown}. TRIM alone is at least as good "
        f"as streams alone in {better} of {len(pairs)} sets of conditions."
    )


def _matter(rows: Sequence[Row]) -> list[str]:
    measured = factors(rows)
    sentences = []
    for matters, words in ((True, "matter"), (False, "hardly matter")):
        some = sorted((f for f in measured if f.matters == matters), key=lambda f: -f.median)
        if some:
            parts = [f"{f.name} ({f.median:.2f}, at most {f.most:.2f})" for f in some]
            sentences.append(
                f"Conditions that {words} (median change of the lifetime ratio, all else equal): "
                f"{'; '.join(parts)}."
            )
    return sentences


def _assignments(assigned: Sequence[Assigned]) -> str:
    """Fraction of the oracle's gain that each assignment achieves."""
    shares: dict[str, list[float]] = defaultdict(list)
    for assignment in assigned:
        names = list(assignment.waf)
        worst, best = assignment.waf[names[0]], assignment.waf[ORACLE]
        if worst - best < MATTERS / 2:
            continue
        for name in names[1:-1]:
            shares[name].append(100 * (worst - assignment.waf[name]) / (worst - best))
    if not shares:
        return ""
    parts = [f"{name} {min(won):.0f} to {max(won):.0f} %" for name, won in shares.items()]
    return (
        "An oracle with as many streams avoids write amplification. These assignments avoid: "
        f"{'; '.join(parts)}."
    )


def _io(rows: Sequence[Row]) -> str:
    reached = sum(row.io_ratio >= CLAIMED_IO for row in rows)
    reached_cached = sum(row.io_ratio_cached >= CLAIMED_IO for row in rows)
    best = max(rows, key=lambda row: row.io_ratio_cached)
    return (
        f"The drive sustains {_span([r.io_ratio for r in rows])} times as many operations if "
        "every read of the client reaches it, "
        f"{_span([r.io_ratio_cached for r in rows])} times if caches serve all reads. The claimed "
        f"{CLAIMED_IO:g} is reached in {reached} and {reached_cached} of {len(rows)} sets of "
        f"conditions; the best is {describe(best.case)}."
    )


def _settled(rows: Sequence[Row]) -> str:
    """A sentence about drives that had not reached steady state, or "" if all drives had."""
    moved = [max(abs(side.waf_drift or 0.0) for side in (row.off, row.on)) for row in rows]
    unsettled = sum(drift > SETTLED for drift in moved)
    if not unsettled:
        return ""
    return (
        f"In {unsettled} of {len(rows)} sets of conditions write amplification still changed by "
        f"more than {100 * SETTLED:.0f} % in the last quarter, at most by {100 * max(moved):.0f} %."
    )
