"""Rendering of `fms-fio` results as JSON, tables and a page with plots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from operator import attrgetter
from typing import Any

from writecliff.lab.experiments.fms_fio import (
    CLAIM,
    DEVICE,
    DRIVES,
    MEASURED,
    OVERPROVISIONS,
    REQUEST_BYTES,
    SLOTS_PER_RECLAIM_UNIT,
    UNITS,
    WARM_UP,
    Amplification,
    Drive,
    Result,
    Speed,
)
from writecliff.lab.experiments.lifetimes import READINGS, Reading, describe
from writecliff.report import kinds
from writecliff.report.axes import Axis, Line
from writecliff.report.colours import one_page
from writecliff.report.csvs import csv_text
from writecliff.report.kinds import Kind
from writecliff.report.model import Figure, Section
from writecliff.report.pages import Page
from writecliff.report.plots import lines
from writecliff.report.table import DataFile, Table
from writecliff.units import LATENCY_UNITS, MB_S, block

SCHEMA = "writecliff/experiment-fms-fio/2"
WAF_CSV, FIFO_CSV, SPEED_CSV = "write-amplification.csv", "fifo.csv", "throughput.csv"
METASTABLE = (
    "Write amplification without streams depends on the preconditioning: under FIFO collection "
    "several values are stable for the same configuration (all are listed). A figure without its "
    "precondition cannot be repeated."
)
SEARCHED = (
    "The garbage collection of the other simulator is not documented. A search over variants "
    "showed that it moves whole victims, and that a request wraps at the end of its range."
)


def mapping(result: Result) -> dict[str, Any]:
    """Return all results as plain data; `precondition` applies to every figure."""
    return {
        "schema": SCHEMA,
        "claim": CLAIM,
        "precondition": result.precondition,
        "shortened": shortened(result) or None,
        "readings": {reading: describe(reading) for reading in READINGS},
        "amplification": [
            asdict(row)
            | {name: getattr(row, name) for name in ("lifetime_ratio", "reference_error_pct")}
            for row in result.amplification
        ],
        "speed": {
            "device": DEVICE,
            "scale": result.scale,
            "rows": [asdict(row) for row in result.speed],
            "gains": [
                {
                    "reading": off.reading,
                    "overprovision": off.overprovision,
                    "read_throughput_ratio": on.read_bytes_per_s / off.read_bytes_per_s,
                    "lifetime_ratio": off.waf_preconditioned / on.waf_preconditioned,
                }
                for off, on in pairs(result)
            ],
        },
    }


def shortened(result: Result) -> str:
    """Return the note of a shortened run, or "" for a complete run."""
    if result.passes == (WARM_UP, MEASURED):
        return ""
    warm_up, measured = result.passes
    return (
        f"Shortened: {warm_up} + {measured} capacities were written instead of {WARM_UP} + "
        f"{MEASURED}. Write amplification may not have settled, so these figures are preliminary."
    )


def pairs(result: Result) -> list[tuple[Speed, Speed]]:
    """Return the timed drives (without and with streams) by reading and over-provisioning."""
    by_key = {(row.reading, row.overprovision, row.streams): row for row in result.speed}
    return [
        (row, by_key[row.reading, row.overprovision, True])
        for row in result.speed
        if not row.streams
    ]


_NAMES: dict[Drive, str] = {
    ("greedy", "host-unit", "per-victim"): "whole",
    ("greedy", "host-unit", "incremental"): "evenly",
    ("greedy", "per-stream", "incremental"): "apart",
    ("fifo", "host-unit", "per-victim"): "FIFO",
}
_SHOWN_POINTS = 6
Variants = dict[tuple[Drive, int], Amplification]  # Write amplification by drive and request size.


def tables(result: Result) -> tuple[Table, ...]:
    """Return the tables.

    The tables cover write amplification, the comparison with another simulator if available, the
    stable FIFO values, and throughput and latency.
    """
    compared = [row for row in result.amplification if row.reference is not None]
    beside = Table.of(
        "Comparison with another simulator: whole victims, without streams",
        compared,
        ("reading", kinds.WHOLE, lambda row: row.reading),
        ("OP", kinds.RIGHT, _op),
        ("collection", kinds.RIGHT, lambda row: "FIFO" if row.policy == "fifo" else row.policy),
        ("requests", Kind(block, "bytes"), lambda row: row.request_bytes),
        ("here", kinds.decimals(3), lambda row: row.waf_off),
        ("there", kinds.decimals(2), lambda row: row.reference),
        ("difference", kinds.signed(), lambda row: row.reference_error_pct),
        data=WAF_CSV,
    )
    fifo = Table.of(
        "Write amplifications that are stable in a FIFO log",
        [row for row in result.amplification if row.policy == "fifo"],
        ("reading", kinds.WHOLE, lambda row: row.reading),
        ("OP", kinds.RIGHT, _op),
        ("measured", kinds.decimals(3), lambda row: row.waf_off),
        ("with streams", kinds.decimals(3), lambda row: row.waf_on),
        ("stable at", kinds.RIGHT, _stable),
        data=FIFO_CSV,
    )
    return (_waf_table(result), *((beside,) if compared else ()), fifo, _speed_table(result))


def _op(row: Amplification | Speed) -> str:
    return f"{100 * row.overprovision:g} %"


def _stable(row: Amplification) -> str:
    points = [f"{value:.2f}" for value in row.fifo_fixed_points]
    more = len(points) - _SHOWN_POINTS
    return ", ".join(points[:_SHOWN_POINTS]) + (f" and {more} more" if more > 0 else "")


def _waf_table(result: Result) -> Table:
    """Table with a row per reading and over-provisioning, and a column per drive and size."""
    groups: dict[tuple[Reading, float], Variants] = {}
    for row in result.amplification:
        group = groups.setdefault((row.reading, row.overprovision), {})
        group[_drive(row), row.request_bytes] = row
    variants = dict.fromkeys(key for group in groups.values() for key in group)

    def off(key: tuple[Drive, int]) -> tuple[str, Kind, Callable[[Variants], str]]:
        title = f"{_NAMES[key[0]]}, {block(key[1])}"
        return title, kinds.decimals(3), lambda group: group[key].waf_off

    def greedy(group: Variants) -> list[Amplification]:
        return [row for row in group.values() if row.policy == "greedy"]

    def ratios(group: Variants) -> str:
        ratios = [row.lifetime_ratio for row in greedy(group)]
        return f"{min(ratios):.2f} - {max(ratios):.2f}"

    def first(group: Variants) -> Amplification:
        return next(iter(group.values()))

    return Table.of(
        "Write amplification without streams, by collection and request size; and with a stream "
        "per writer",
        groups.values(),
        ("reading", kinds.WHOLE, lambda group: first(group).reading),
        ("OP", kinds.RIGHT, lambda group: _op(first(group))),
        *(off(key) for key in variants),
        ("with streams", kinds.decimals(3), lambda group: max(r.waf_on for r in greedy(group))),
        ("lifetime ratio", kinds.RIGHT, ratios),
        data=WAF_CSV,
    )


def _drive(row: Amplification) -> Drive:
    return row.policy, row.gc_destination, row.gc_pacing


def _speed_table(result: Result) -> Table:
    def rate(value: float) -> str:
        return f"{value / 1e6:,.0f} MB/s"

    return Table.of(
        "Throughput and read latency, streams off and on",
        pairs(result),
        ("reading", kinds.WHOLE, lambda pair: pair[0].reading),
        ("OP", kinds.RIGHT, lambda pair: _op(pair[0])),
        ("WAF off", kinds.decimals(3), lambda pair: pair[0].waf_preconditioned),
        ("WAF on", kinds.decimals(3), lambda pair: pair[1].waf_preconditioned),
        ("reads off", kinds.RIGHT, lambda pair: rate(pair[0].read_bytes_per_s)),
        ("reads on", kinds.RIGHT, lambda pair: rate(pair[1].read_bytes_per_s)),
        ("gain", kinds.decimals(2, "x"), lambda p: p[1].read_bytes_per_s / p[0].read_bytes_per_s),
        ("mean off", kinds.LATENCY, lambda pair: pair[0].read_mean_ns),
        ("mean on", kinds.LATENCY, lambda pair: pair[1].read_mean_ns),
        ("p99 off", kinds.LATENCY, lambda pair: pair[0].read_p99_ns),
        ("p99 on", kinds.LATENCY, lambda pair: pair[1].read_p99_ns),
        data=SPEED_CSV,
    )


@one_page()
def page(result: Result) -> Page:
    """Return the page of results."""
    *waf_tables, speed_table = tables(result)
    return Page(
        title="FMS 2016, FIO: four sequential writers, streams off and on",
        intro=f"Four sequential writers with relative data lifetimes of 1, 10, 33 and 55, and six "
        f"random readers. Precondition of every figure: {result.precondition}.",
        sections=(
            Section(
                "Write amplification",
                f"A flat drive of {UNITS} reclaim units of {SLOTS_PER_RECLAIM_UNIT} slots. With a "
                "stream per writer, all data of a unit become invalid together, so greedy "
                "collection copies nothing. A cyclic (FIFO) log takes the oldest unit of any "
                "stream, so streams gain nothing. Collection moves whole victims, or evenly: a "
                "little with every write. Relocated data go to the unit that the host fills, or "
                "(apart) to separate units. Writers take turns by smooth weighted round-robin; a "
                "request that reaches the end of its range wraps to the start. Over-provisioning "
                "counts the circulating units.",
                tuple(filter(None, _waf_figures(result))),
                tuple(waf_tables),
            ),
            Section(
                "Throughput and latency",
                f"{DEVICE}, {result.scale:g} times smaller, 70 % random reads and 30 % sequential "
                f"writes by volume, {block(REQUEST_BYTES)} each, at the highest load that the "
                "drive sustains. Over-provisioning is (flash - user) / user.",
                tuple(filter(None, _speed_figures(result))),
                (speed_table,),
            ),
        ),
        data=_data(result),
        summary=mapping(result),
        disclosures=(
            *filter(None, (shortened(result),)),
            METASTABLE,
            *(
                (SEARCHED,)
                if any(row.reference is not None for row in result.amplification)
                else ()
            ),
            f"Claimed: {CLAIM}. The values of the slide's bars are not in any text, so nothing "
            "else is compared. Ranges, rates and block sizes are named readings of the slide.",
        ),
    )


def _op_axis() -> Axis:
    # The labels for 12.7 and 14.5 % would overlap.
    ticks = tuple((op, f"{100 * op:g} %") for op in OVERPROVISIONS if op != 0.127)
    return Axis("Over-provisioning", ticks=ticks)


def _waf_figures(result: Result) -> Iterator[Figure | None]:
    for reading in READINGS:
        by_drive: dict[Drive, list[Amplification]] = {drive: [] for drive in DRIVES}
        for row in result.amplification:
            if (row.reading, row.request_bytes) == (reading, REQUEST_BYTES):
                by_drive[_drive(row)].append(row)
        series = [
            Line(_NAMES[drive], [r.overprovision for r in rows], [r.waf_off for r in rows])
            for drive, rows in by_drive.items()
        ]
        on = by_drive[DRIVES[0]]
        series.append(Line("with streams", [r.overprovision for r in on], [r.waf_on for r in on]))
        name, about = f"waf-{reading}", f"Write amplification v over-provisioning, {reading}"
        title, y = f"{about}: {describe(reading)}", Axis("Write amplification")
        yield lines(name, title, WAF_CSV, series, _op_axis(), y, alt=about)


def _speed_figures(result: Result) -> Iterator[Figure | None]:
    throughput, waits = [], []
    for reading in READINGS:
        for streams in (False, True):
            rows = [r for r in result.speed if (r.reading, r.streams) == (reading, streams)]
            label = f"{reading}, streams {'on' if streams else 'off'}"
            ops = [r.overprovision for r in rows]
            throughput.append(Line(label, ops, [r.read_bytes_per_s for r in rows]))
            waits.append(Line(label, ops, [r.read_mean_ns or float("nan") for r in rows]))
    for name, what, series, unit in (
        ("read-throughput", "Read throughput", throughput, (MB_S,)),
        ("read-latency", "Mean read latency", waits, LATENCY_UNITS),
    ):
        title = f"{what} v over-provisioning"
        yield lines(name, title, SPEED_CSV, series, _op_axis(), Axis(what, units=unit))


def _data(result: Result) -> tuple[DataFile, ...]:
    waf = (
        "reading", "overprovision", "request_bytes", "policy", "gc_destination", "gc_pacing",
        "waf_off", "waf_on", "reference",
    )  # fmt: skip
    speed = [field.name for field in fields(Speed) if field.name != "data_placement"]
    fifo = [
        (row.reading, row.overprovision, point)
        for row in result.amplification
        if row.policy == "fifo"
        for point in row.fifo_fixed_points
    ]
    return (
        DataFile(WAF_CSV, csv_text(waf, map(attrgetter(*waf), result.amplification))),
        DataFile(FIFO_CSV, csv_text(("reading", "overprovision", "waf"), fifo)),
        DataFile(SPEED_CSV, csv_text(speed, map(attrgetter(*speed), result.speed))),
    )
