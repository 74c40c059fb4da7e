"""What `fms-fio` measured, as JSON, as tables and as a page with pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from writecliff.experiments.fms_fio import (
    CLAIM,
    DEVICE,
    DRIVES,
    OVERPROVISIONS,
    REQUEST_BYTES,
    SLOTS_PER_UNIT,
    UNITS,
    Amplification,
    Result,
    Speed,
)
from writecliff.experiments.lifetimes import READINGS, Reading, describe
from writecliff.parallel import SLOT_BYTES
from writecliff.report.axes import Axis, Line
from writecliff.report.csvs import csv_text
from writecliff.report.model import DataFile, Figure, Section, Table, drawn
from writecliff.report.pages import Page
from writecliff.report.plots import lines
from writecliff.report.style import house_style
from writecliff.units import LATENCY_UNITS, MB_S, latency

SCHEMA = "writecliff/experiment-fms-fio/2"
WAF_CSV, FIFO_CSV, SPEED_CSV = "write-amplification.csv", "fifo.csv", "throughput.csv"
METASTABLE = (
    "Write amplification without streams depends on how the drive was preconditioned: under FIFO "
    "collection several values hold themselves for one and the same configuration (all are "
    "listed). A figure without its precondition cannot be repeated."
)
FOUND = (
    "The other simulator's figures come without a word on how it collects. That it moves whole "
    "victims, and that a request goes on at the start of its range, was found by search."
)


def mapping(result: Result) -> dict[str, Any]:
    """For programs; `precondition` belongs to every figure."""
    return {
        "schema": SCHEMA,
        "claim": CLAIM,
        "precondition": result.precondition,
        "readings": {reading: describe(reading) for reading in READINGS},
        "amplification": [
            asdict(row)
            | {
                "lifetime_ratio": row.lifetime_ratio,
                "reference_error_pct": row.reference_error_pct,
            }
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


def pairs(result: Result) -> list[tuple[Speed, Speed]]:
    """The timed drive (without, with streams) for each reading and over-provisioning."""
    by_key = {(row.reading, row.overprovision, row.streams): row for row in result.speed}
    return [
        (row, by_key[row.reading, row.overprovision, True])
        for row in result.speed
        if not row.streams
    ]


def tables(result: Result) -> tuple[Table, ...]:
    """Write amplification; beside another simulator's, where there is one; what FIFO could stay
    at; throughput and latency."""
    keys = dict.fromkeys((row.reading, row.overprovision) for row in result.amplification)
    compared = [row for row in result.amplification if row.reference is not None]
    beside = _table(
        "Beside another simulator: whole victims, without streams",
        _REFERENCE_HEADER,
        WAF_CSV,
        [_reference_cells(row) for row in compared],
    )
    return (
        _table(
            "Write amplification without streams, by way of collection and size of requests; and "
            "with a stream a writer",
            _WAF_HEADER,
            WAF_CSV,
            [_waf_cells(result, *key) for key in keys],
        ),
        *((beside,) if compared else ()),
        _table(
            "Write amplifications that a FIFO log can stay at",
            _FIFO_HEADER,
            FIFO_CSV,
            [_fifo_cells(row) for row in result.amplification if row.policy == "fifo"],
        ),
        _table(
            "Throughput and read latency",
            _SPEED_HEADER,
            SPEED_CSV,
            [_speed_cells(off, on) for off, on in pairs(result)],
        ),
    )


_NAMES = {
    ("greedy", "rejoin", "whole"): "whole",
    ("greedy", "rejoin", "even"): "evenly",
    ("greedy", "own", "even"): "apart",
    ("fifo", "rejoin", "whole"): "FIFO",
}
# Columns of the first table: how the drive collects, bytes of a request.
_VARIANTS = tuple(
    (drive, size)
    for drive in DRIVES
    for size in (SLOT_BYTES, REQUEST_BYTES)
    if drive[0] == "greedy" or size == REQUEST_BYTES
)
_WAF_HEADER = (
    "reading",
    "OP",
    *(f"{_NAMES[drive]}, {size // 1024} KiB" for drive, size in _VARIANTS),
    "with streams",
    "lifetime ratio",
)
_REFERENCE_HEADER = ("reading", "OP", "collection", "requests", "here", "there", "difference")
_FIFO_HEADER = ("reading", "OP", "measured", "with streams", "can stay at")
_SPEED_HEADER = (
    "reading", "OP", "WAF off", "WAF on", "reads off", "reads on", "gain", "mean off", "mean on",
    "p99 off", "p99 on",
)  # fmt: skip
_SHOWN_POINTS = 6


def _waf_cells(result: Result, reading: Reading, op: float) -> tuple[str, ...]:
    by_variant = {
        (_drive(row), row.request_bytes): row
        for row in result.amplification
        if (row.reading, row.overprovision) == (reading, op)
    }
    greedy = [row for row in by_variant.values() if row.policy == "greedy"]
    ratios = [row.lifetime_ratio for row in greedy]
    return (
        reading,
        f"{100 * op:g} %",
        *(f"{by_variant[key].waf_off:.3f}" for key in _VARIANTS),
        f"{max(row.waf_on for row in greedy):.3f}",
        f"{min(ratios):.2f} - {max(ratios):.2f}",
    )


def _drive(row: Amplification) -> tuple[str, str, str]:
    return row.policy, row.collected, row.pacing


def _reference_cells(row: Amplification) -> tuple[str, ...]:
    return (
        row.reading,
        f"{100 * row.overprovision:g} %",
        "FIFO" if row.policy == "fifo" else row.policy,
        f"{row.request_bytes // 1024} KiB",
        f"{row.waf_off:.3f}",
        f"{row.reference:.2f}",
        f"{row.reference_error_pct:+.1f} %",
    )


def _fifo_cells(row: Amplification) -> tuple[str, ...]:
    points = [f"{value:.2f}" for value in row.fifo_fixed_points]
    more = len(points) - _SHOWN_POINTS
    return (
        row.reading,
        f"{100 * row.overprovision:g} %",
        f"{row.waf_off:.3f}",
        f"{row.waf_on:.3f}",
        ", ".join(points[:_SHOWN_POINTS]) + (f" and {more} more" if more > 0 else ""),
    )


def _speed_cells(off: Speed, on: Speed) -> tuple[str, ...]:
    return (
        off.reading,
        f"{100 * off.overprovision:g} %",
        f"{off.waf_preconditioned:.3f}",
        f"{on.waf_preconditioned:.3f}",
        f"{off.read_bytes_per_s / 1e6:,.0f} MB/s",
        f"{on.read_bytes_per_s / 1e6:,.0f} MB/s",
        f"{on.read_bytes_per_s / off.read_bytes_per_s:.2f} x",
        latency(off.read_mean_ns),
        latency(on.read_mean_ns),
        latency(off.read_p99_ns),
        latency(on.read_p99_ns),
    )


def page(result: Result) -> Page:
    with house_style():
        amplification, speed = _waf_figures(result), _speed_figures(result)
    *waf_tables, speed_table = tables(result)
    return Page(
        title="FMS 2016, FIO: four sequential writers, streams off and on",
        intro=f"Four sequential writers whose data live 1x, 10x, 33x and 55x as long, six random "
        f"readers. Precondition of every figure: {result.precondition}.",
        sections=(
            Section(
                "Write amplification",
                f"A flat drive of {UNITS} units of {SLOTS_PER_UNIT} slots. With a stream a writer "
                "every unit dies whole, so that greedy collection copies nothing; a cyclic (FIFO) "
                "log takes the oldest unit whatever its stream, and gains nothing. Collection "
                "moves whole victims, or evenly: a little with every write. What it moves goes on "
                "in the unit that the host fills, or (evenly) apart, in units of its own. Writers "
                "take turns by smooth weighted round-robin; a request that reaches the end of its "
                "range goes on at the start. Over-provisioning counts what collection circulates "
                "through.",
                amplification,
                tuple(waf_tables),
            ),
            Section(
                "Throughput and latency",
                f"{DEVICE}, {result.scale:g} times smaller, 70 % random reads and 30 % sequential "
                f"writes by volume, {REQUEST_BYTES // 1024} KiB each, at the highest load that the "
                "drive carries. Over-provisioning is (flash - user) / user.",
                speed,
                (speed_table,),
            ),
        ),
        data=_data(result),
        summary=mapping(result),
        disclosures=(
            METASTABLE,
            FOUND,
            f"Claimed: {CLAIM}. The slide's bars are not in any text; nothing else of it is "
            "compared. Ranges, rates and block sizes are readings of the slide, named as such.",
        ),
    )


def _table(title: str, header: Sequence[str], data: str, rows: Sequence[tuple[str, ...]]) -> Table:
    align = ("left", *("right" for _ in header[1:]))
    return Table(title, tuple(header), tuple(rows), align, data=data)  # type: ignore[arg-type]


def _op_axis() -> Axis:
    # 12.7 and 14.5 % stand too near each other for two labels.
    ticks = tuple((op, f"{100 * op:g} %") for op in OVERPROVISIONS if op != 0.127)
    return Axis("Over-provisioning", ticks=ticks)


def _waf_figures(result: Result) -> tuple[Figure, ...]:
    found: tuple[Figure, ...] = ()
    for reading in READINGS:
        drawn_lines = [_waf_line(_NAMES[drive], _rows(result, reading, drive)) for drive in DRIVES]
        on = _rows(result, reading, DRIVES[0])
        ops = [row.overprovision for row in on]
        drawn_lines.append(Line("with streams", ops, [row.waf_on for row in on]))
        name, about = f"waf-{reading}", f"Write amplification v over-provisioning, {reading}"
        svg = lines(name, drawn_lines, _op_axis(), Axis("Write amplification"), description=about)
        found += drawn(name, f"{about}: {describe(reading)}", svg, WAF_CSV, about)
    return found


def _rows(result: Result, reading: Reading, drive: tuple[str, str, str]) -> list[Amplification]:
    return [
        row
        for row in result.amplification
        if (row.reading, _drive(row), row.request_bytes) == (reading, drive, REQUEST_BYTES)
    ]


def _waf_line(label: str, rows: Sequence[Amplification]) -> Line:
    return Line(label, [row.overprovision for row in rows], [row.waf_off for row in rows])


def _speed_figures(result: Result) -> tuple[Figure, ...]:
    throughput, waits = [], []
    for reading in READINGS:
        for streams in (False, True):
            rows = [r for r in result.speed if (r.reading, r.streams) == (reading, streams)]
            label = f"{reading}, streams {'on' if streams else 'off'}"
            ops = [r.overprovision for r in rows]
            throughput.append(Line(label, ops, [r.read_bytes_per_s for r in rows]))
            waits.append(Line(label, ops, [r.read_mean_ns or float("nan") for r in rows]))
    drawings = (
        ("read-throughput", "Read throughput v over-provisioning", throughput,
         Axis("Read throughput", units=(MB_S,))),
        ("read-latency", "Mean read latency v over-provisioning", waits,
         Axis("Mean read latency", units=LATENCY_UNITS)),
    )  # fmt: skip
    found: tuple[Figure, ...] = ()
    for name, title, series, y in drawings:
        svg = lines(name, series, _op_axis(), y, description=title)
        found += drawn(name, title, svg, SPEED_CSV, title)
    return found


def _data(result: Result) -> tuple[DataFile, ...]:
    waf = (
        "reading", "overprovision", "request_bytes", "policy", "collected", "pacing", "waf_off",
        "waf_on", "reference",
    )  # fmt: skip
    speed = (
        "reading", "overprovision", "streams", "waf", "waf_preconditioned", "read_bytes_per_s",
        "write_bytes_per_s", "read_mean_ns", "read_p99_ns", "read_p9999_ns",
    )  # fmt: skip
    fifo = [
        (row.reading, row.overprovision, point)
        for row in result.amplification
        if row.policy == "fifo"
        for point in row.fifo_fixed_points
    ]
    waf_rows = [[getattr(row, key) for key in waf] for row in result.amplification]
    speed_rows = [[getattr(row, key) for key in speed] for row in result.speed]
    return (
        DataFile(WAF_CSV, csv_text(waf, waf_rows)),
        DataFile(FIFO_CSV, csv_text(("reading", "overprovision", "waf"), fifo)),
        DataFile(SPEED_CSV, csv_text(speed, speed_rows)),
    )
