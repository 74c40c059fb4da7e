"""What `fms-cassandra` measured, as JSON, as tables and as a page with a picture."""

from __future__ import annotations

from typing import Any

from writecliff.experiments.fms_cassandra import (
    CLAIM,
    CLAIMED_IO,
    CLAIMED_LIFETIME,
    DEVICE,
    RULES,
    Fill,
    Result,
)
from writecliff.replay.summary import (
    device_mapping,
    result_mapping,
    stream_rows,
    trace_mapping,
)
from writecliff.report.axes import Axis
from writecliff.report.csvs import csv_text
from writecliff.report.model import Align, DataFile, Section, Table, drawn
from writecliff.report.pages import Page
from writecliff.report.plots import Bars, bars
from writecliff.report.style import house_style
from writecliff.report.units import latency, number, size

SCHEMA = "writecliff/experiment-fms-cassandra/1"
WAF_CSV, STREAMS_CSV = "fills.csv", "streams.csv"


def mapping(result: Result) -> dict[str, Any]:
    """For programs; `precondition` belongs to every figure."""
    return {
        "schema": SCHEMA,
        "claim": CLAIM,
        "claimed": {"lifetime_ratio": CLAIMED_LIFETIME, "io_ratio": CLAIMED_IO},
        "precondition": result.precondition,
        "device": DEVICE,
        "rules": RULES,
        "captured_now": result.captured_now,
        "capture": result.metadata,
        "rows": [_row(result, row) for row in result.rows],
    }


def _row(result: Result, row: Fill) -> dict[str, Any]:
    return {
        "fill_pct": row.fill_pct,
        "trace": trace_mapping(result.trace, row.laid),
        "device": device_mapping(row.laid),
        "off": result_mapping(row.laid, row.off),
        "on": {**result_mapping(row.laid, row.on), "by_stream": stream_rows(row.laid, row.on)},
        "lifetime_ratio": row.lifetime_ratio,
        "io_ratio": row.io_ratio,
    }


def tables(result: Result) -> tuple[Table, Table]:
    header = (
        "files fill", "WAF off", "WAF on", "lifetime ratio", "I/O ratio", "read p99.99 off",
        "read p99.99 on",
    )  # fmt: skip
    align: tuple[Align, ...] = tuple("right" for _ in header)
    rows = tuple(
        (
            f"{row.fill_pct:g} %",
            f"{row.off.waf:.3f}",
            f"{row.on.waf:.3f}",
            f"{row.lifetime_ratio:.2f}",
            number(row.io_ratio, 2),
            latency(row.off.read_p9999_ns),
            latency(row.on.read_p9999_ns),
        )
        for row in result.rows
    )
    note = f"the deck: lifetime {CLAIMED_LIFETIME:g} x, I/O {CLAIMED_IO:g} x"
    return (
        Table("Streams off and on", header, rows, align, note, data=WAF_CSV),
        _streams(result),
    )


def _streams(result: Result) -> Table:
    last = result.rows[-1]
    header = ("stream", "class", "written", "median lifetime")
    rows = tuple(
        (
            str(found["stream"]),
            str(found["name"]),
            size(float(found["written_bytes"])),
            "outlives the trace"
            if found["median_lifetime_bytes"] is None
            else size(float(found["median_lifetime_bytes"])),
        )
        for found in stream_rows(last.laid, last.on)
    )
    title = f"What each stream wrote, and how long it lived (files fill {last.fill_pct:g} %)"
    return Table(title, header, rows, ("right", "left", "right", "right"), data=STREAMS_CSV)


def page(result: Result) -> Page:
    shown = tables(result)
    groups = [f"{row.fill_pct:g} %" for row in result.rows]
    with house_style():
        svg = bars(
            "waf",
            groups,
            [
                Bars("one stream", [row.off.waf for row in result.rows]),
                Bars("streams by file and thread", [row.on.waf for row in result.rows]),
            ],
            Axis("Write amplification"),
            description="Write amplification by how full the drive is, without and with streams",
        )
    figures = drawn("waf", "Write amplification by share of the drive in files", svg, WAF_CSV, "")
    return Page(
        title="Cassandra with and without streams",
        intro=f"Published: {CLAIM}. Measured here on a simulated {DEVICE}, {result.precondition}.",
        sections=(
            Section("Write amplification", "", figures, shown[:1]),
            Section("Streams", "", tables=shown[1:]),
        ),
        data=_data(result),
        summary=mapping(result),
        disclosures=(
            "Files fill the drive to the stated share at the peak of the trace only, when the "
            "inputs and outputs of a compaction exist side by side; between rounds all of them are "
            "deleted, because the capture ends there. Both leave trimmed space, so write "
            "amplification is lower than on a drive that stays as full.",
            "The drive is cut down so that the files of this small load fill it; the deck's load "
            "and drive were larger, and Cassandra was 3.5.",
            "I/O is what the drive can do with random reads of live data beside the trace's "
            "writes, not what a host and its page cache would ask for.",
        ),
    )


def _data(result: Result) -> tuple[DataFile, ...]:
    head = ("fill_pct", "waf_off", "waf_on", "lifetime_ratio", "io_ratio")
    rows = (
        (row.fill_pct, row.off.waf, row.on.waf, row.lifetime_ratio, row.io_ratio)
        for row in result.rows
    )
    last = result.rows[-1]
    streams = (
        (s["stream"], s["name"], s["written_bytes"], s["median_lifetime_bytes"])
        for s in stream_rows(last.laid, last.on)
    )
    columns = ("stream", "class", "written_bytes", "median_lifetime_bytes")
    return (
        DataFile(WAF_CSV, csv_text(head, rows)),
        DataFile(STREAMS_CSV, csv_text(columns, streams)),
    )
