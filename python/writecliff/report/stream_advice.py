"""The page of `advise-streams`: the best stream assignment for a trace, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.replay.advice import BOUNDS, NAMES, StreamAdvice, advice_mapping, verdict
from writecliff.replay.summary import WRITEBACK_TEXT, rate_text, redrawn_text, stream_rows
from writecliff.report.axes import Axis, Line
from writecliff.report.colours import one_page
from writecliff.report.csvs import csv_text, lines_csv
from writecliff.report.model import Figure, Section, section
from writecliff.report.pages import Page
from writecliff.report.plots import lines
from writecliff.report.stream_figures import held, lifetime_line, lifetimes
from writecliff.report.table import (
    LATENCY,
    RIGHT,
    SIZE,
    TEXT,
    DataFile,
    Table,
    decimals,
    digits,
    plain,
    signed,
    table,
)

if TYPE_CHECKING:
    from writecliff.replay.model import Replayed

CELLS_CSV = "assignments.csv"
STREAMS_CSV = "streams.csv"
LIFETIMES_CSV = "lifetimes.csv"
ORIGINS_CSV = "origins.csv"
MISTAG_CSV = "mistagged.csv"
TOO_FEW = "too few reads"
FILLS_STEADY = 3.0  # the first half of them brings the drive there


@one_page()
def advice_page(advice: StreamAdvice) -> Page:
    answer, *more = verdict(advice)
    return Page(
        title=f"Stream advice for {advice.trace.name}",
        intro=" ".join(more),
        verdict=answer,
        sections=(
            _comparison(advice),
            _streams(advice),
            _origins(advice),
            *((_mistagged(advice),) if advice.mistagged else ()),
            _conditions(advice),
        ),
        data=_data(advice),
        summary=advice_mapping(advice),
        disclosures=_disclosures(advice),
    )


def _disclosures(advice: StreamAdvice) -> tuple[str, ...]:
    setup = advice.setup
    said = [
        "Simulated: write amplification of the second half of what was written, endurance from "
        f"the {setup.device.rated_cycles:,} rated cycles of {setup.device.name}, years at "
        f"{rate_text(setup)}."
    ]
    said.append(redrawn_text(setup))
    if setup.simulated.capacity_bytes != setup.device.capacity_bytes:
        said.append(
            f"The drive is {setup.device.name} cut down to "
            f"{units.size(setup.simulated.capacity_bytes)}, which the trace fills; endurance "
            "is that of the whole drive if it were as full and as busy for its size."
        )
    fills = setup.drive_fills
    if fills < FILLS_STEADY:
        said.append(
            f"Only {fills:.1f} drive fills were written: the drive may not be in steady state."
        )
    return tuple(said)


def _name(cell: Replayed) -> str:
    return NAMES[cell.scheme] + (f", {cell.streams} streams" if cell.streams > 1 else "")


def _role(advice: StreamAdvice, cell: Replayed) -> str:
    if cell is advice.best:
        return " (best)"
    return " (bound)" if cell.scheme in BOUNDS else ""


def _latency(cell: Replayed) -> float | str | None:
    if not cell.reads.count:
        return None
    value = cell.read_p9999_ns
    return TOO_FEW if value is None else value


def _comparison(advice: StreamAdvice) -> Section:
    setup, none = advice.setup, advice.none
    table = Table.of(
        "",
        advice.cells,
        ("Assignment", TEXT, lambda c: _name(c) + _role(advice, c)),
        ("Write amplification", decimals(3), lambda c: c.waf),
        ("Lifetime", decimals(2, "x"), lambda c: none.waf / c.waf),
        ("TBW", SIZE, lambda c: setup.endurance_bytes(c.waf)),
        ("Years", digits(), lambda c: setup.years(c.waf)),
        ("Read p99.99", LATENCY, _latency),
        data=CELLS_CSV,
    )
    return section("Assignments", "", *_by_count(advice), table)


def _by_count(advice: StreamAdvice) -> Iterator[Figure | None]:
    counts = sorted({cell.streams for cell in advice.cells})
    x = Axis("Streams", log=True, ticks=tuple((float(count), str(count)) for count in counts))

    def series(value: Callable[[Replayed], float | None]) -> list[Line]:
        """A line for each assignment, from no streams on."""
        found = []
        for scheme in dict.fromkeys(cell.scheme for cell in advice.cells[1:]):
            cells = [advice.none, *(c for c in advice.cells if c.scheme == scheme)]
            points = [(c.streams, y) for c in cells if (y := value(c)) is not None]
            found.append(Line(NAMES[scheme], [x for x, _ in points], [y for _, y in points]))
        return found

    drawings = (
        ("streams-waf", "Write amplification", lambda c: c.waf, Axis("WAF", from_zero=False)),
        ("streams-latency", "Read latency p99.99", lambda c: c.read_p9999_ns,
         Axis("Read p99.99", units.LATENCY_UNITS)),
    )  # fmt: skip
    for name, what, value, y in drawings:
        about = f"{what} over the number of streams, a line for each assignment"
        yield lines(name, f"{what} v streams", CELLS_CSV, series(value), x, y, alt=about)


def _shown(advice: StreamAdvice) -> Replayed:
    """The assignment shown in detail: the best one with streams."""
    return advice.mistagged_of or advice.best


def _stream_label(advice: StreamAdvice, cell: Replayed, stream: int) -> str:
    name = advice.setup.io.streams.get(stream, "") if cell.scheme == "rules" else ""
    return f"{stream}: {name}" if name else f"stream {stream}"


def _stream_lines(advice: StreamAdvice) -> list[Line]:
    cell = _shown(advice)
    return [
        lifetime_line(_stream_label(advice, cell, stream), cell.blocks[:, stream].sum(axis=0))
        for stream in range(cell.streams)
        if cell.blocks[:, stream].any()
    ]


def _streams(advice: StreamAdvice) -> Section:
    cell, setup = _shown(advice), advice.setup
    rows = stream_rows(setup, cell)
    table = Table.of(
        "",
        rows,
        ("Stream", TEXT, lambda row: _stream_label(advice, cell, row["stream"])),
        ("Written", SIZE, lambda row: row["written_bytes"]),
        ("Median lifetime", RIGHT, lifetime_text),
        ("Mostly by", TEXT, lambda row: ", ".join(row["origins"])),
        data=STREAMS_CSV,
    )
    contents = held(
        "stream-contents",
        "Which stream wrote what",
        STREAMS_CSV,
        [f"stream {row['stream']}" for row in rows],
        setup.io.origins,
        [list(row["by_origin_bytes"].values()) for row in rows],
        alt="What each origin wrote to each stream, in bytes",
    )
    about = "Share of each stream's data that is dead after so many bytes"
    title = "How long each stream's data live"
    life = lifetimes("stream-lifetimes", title, LIFETIMES_CSV, _stream_lines(advice), alt=about)
    intro = (
        "A stream is good when its data die together: a steep line. Lifetimes count the bytes that "
        "the host writes until the data are overwritten or trimmed."
    )
    return section(f"Streams of {_name(cell)}", intro, contents, life, table)


def lifetime_text(row: Mapping[str, Any]) -> str:
    """The median lifetime of a stream, as `stream_rows` gives it."""
    median = row["median_lifetime_bytes"]
    return "outlives the trace" if median is None else units.size(median)


def _origin_lines(advice: StreamAdvice) -> list[Line]:
    blocks = advice.none.blocks
    names = advice.setup.io.origins
    found = [lifetime_line(name, blocks[n].sum(axis=0)) for n, name in enumerate(names)]
    return [line for line in found if line.x][:8]


def _origins(advice: StreamAdvice) -> Section:
    text = "Share of each origin's data that is dead after so many bytes written"
    intro = (
        "By thread and kind of file, whatever their stream. Origins with similar lines can share a "
        "stream; a line that climbs slowly shows data of different lifetimes."
    )
    title = "How long each origin's data live"
    figure = lifetimes("origin-lifetimes", title, ORIGINS_CSV, _origin_lines(advice), alt=text)
    return section("Origins", intro, figure)


def _mistagged(advice: StreamAdvice) -> Section:
    right, setup = _shown(advice), advice.setup
    table = Table.of(
        "",
        [(0.0, right.waf), *((m.mistag_pct, m.waf) for m in advice.mistagged)],
        ("Writes in a wrong stream", plain("%"), lambda point: point[0]),
        ("Write amplification", decimals(3), lambda point: point[1]),
        ("Lifetime", signed(), lambda point: 100 * (right.waf / point[1] - 1)),
        ("TBW", SIZE, lambda point: setup.endurance_bytes(point[1])),
        data=MISTAG_CSV,
    )
    intro = f"{_name(right)}, with random writes tagged for another stream."
    return section("Tagging errors", intro, table)


def _conditions(advice: StreamAdvice) -> Section:
    setup = advice.setup
    simulated = setup.simulated
    rows = (
        ("Trace", f"{units.size(setup.written_bytes)} written; {setup.io.rows:,} rows"),
        ("Write-back", WRITEBACK_TEXT[setup.sizing.writeback]),
        ("Rules", setup.io.rules or "none"),
        ("Files at their peak", units.size(setup.peak_bytes)),
        (
            "Replayed",
            f"{setup.blocks.rounds} rounds, {units.size(setup.blocks.written_bytes)}, "
            f"{setup.drive_fills:.1f} drive fills",
        ),
        (
            "Simulated drive",
            f"{units.size(simulated.capacity_bytes)}, over-provisioning "
            f"{simulated.overprovision_pct:.1f} %, {setup.simulated.streams} streams, kind of "
            f"{setup.device.name}",
        ),
    )
    return Section("Conditions", "", tables=(table("", ("", ""), rows, "ll"),))


def _data(advice: StreamAdvice) -> tuple[DataFile, ...]:
    setup, right = advice.setup, _shown(advice)
    cells = (
        (c.scheme, c.streams, c.waf, setup.endurance_bytes(c.waf), setup.years(c.waf),
         c.read_p9999_ns, c.reads.count)
        for c in advice.cells
    )  # fmt: skip
    held_rows = (
        (row["stream"], origin, size)
        for row in stream_rows(setup, right)
        for origin, size in row["by_origin_bytes"].items()
    )
    head = ("assign", "streams", "waf", "endurance_bytes", "years", "read_p9999_ns", "reads")
    x, y = "written_bytes", "dead_pct"
    tagged = ((m.mistag_pct, m.waf) for m in advice.mistagged)
    return (
        DataFile(CELLS_CSV, csv_text(head, cells)),
        DataFile(STREAMS_CSV, csv_text(("stream", "origin", "written_bytes"), held_rows)),
        DataFile(LIFETIMES_CSV, lines_csv(_stream_lines(advice), "stream", x, y)),
        DataFile(ORIGINS_CSV, lines_csv(_origin_lines(advice), "origin", x, y)),
        DataFile(MISTAG_CSV, csv_text(("share_pct", "waf"), tagged)),
    )
