"""The page that says which streams a trace's writes should go to, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from writecliff import units
from writecliff.replay.placement import NAMES, Placement, placement_mapping, verdict
from writecliff.replay.summary import stream_rows
from writecliff.report.axes import Axis, Line
from writecliff.report.csvs import csv_text, lines_csv
from writecliff.report.model import DataFile, Figure, Section, Table, drawn
from writecliff.report.pages import Page, render_page
from writecliff.report.placement_figures import Holder, held, lifetime_line, lifetimes
from writecliff.report.plots import lines
from writecliff.report.style import house_style
from writecliff.store.files import write_atomically

if TYPE_CHECKING:
    from writecliff.replay.model import Replayed

CELLS_CSV = "placement.csv"
STREAMS_CSV = "streams.csv"
LIFETIMES_CSV = "lifetimes.csv"
ORIGINS_CSV = "origins.csv"
MISTAG_CSV = "mistagged.csv"
TOO_FEW = "too few reads"
FILLS_STEADY = 3.0  # the first half of them brings the drive there


def write_placement(placement: Placement, path: Path) -> Path:
    """Write the page; an existing file of the same name is replaced as a whole."""
    write_atomically(path, render_page(placement_page(placement)).encode())
    return path


def placement_page(placement: Placement) -> Page:
    setup = placement.setup
    with house_style():
        sections = (
            _comparison(placement),
            _streams(placement),
            _origins(placement),
            _mistagged(placement),
        )
    rate = setup.write_rate_bytes_per_s
    speed = "" if rate is None else f", at {rate / 1e6:,.1f} MB/s"
    return Page(
        title=f"Placement of {placement.trace.name}",
        intro=" ".join(verdict(placement)),
        sections=(*sections, _conditions(placement, speed)),
        data=_data(placement),
        summary=placement_mapping(placement),
        disclosures=_disclosures(placement),
    )


def _disclosures(placement: Placement) -> tuple[str, ...]:
    setup = placement.setup
    said = [
        "Simulated: write amplification of the second half of what was written, endurance from "
        f"the {setup.rated_cycles:,} rated cycles of {setup.device.name}, years at the write rate "
        "of the traced program."
    ]
    if setup.simulated.capacity_bytes != setup.device.capacity_bytes:
        said.append(
            f"The drive is {setup.device.name} cut down to "
            f"{units.size(setup.simulated.capacity_bytes)}, which the trace fills; endurance "
            "is that of the whole drive if it were as full and as busy for its size."
        )
    fills = setup.blocks.written_bytes / setup.simulated.capacity_bytes
    if fills < FILLS_STEADY:
        said.append(
            f"Only {fills:.1f} drive fills were written: the drive may not be in its steady state."
        )
    return tuple(said)


def _name(cell: Replayed) -> str:
    return NAMES[cell.scheme] + (f", {cell.streams} streams" if cell.streams > 1 else "")


def _latency(cell: Replayed) -> str:
    if not cell.reads.count:
        return units.UNKNOWN
    value = cell.read_p9999_ns
    return TOO_FEW if value is None else units.latency(value)


def _comparison(placement: Placement) -> Section:
    setup, none = placement.setup, placement.none
    rows = tuple(
        (
            _name(cell) + (" (best)" if cell is placement.best else ""),
            units.number(cell.waf, 3),
            f"{none.waf / cell.waf:.2f} x",
            units.size(setup.endurance_bytes(cell.waf)),
            units.significant(setup.years(cell.waf)),
            _latency(cell),
        )
        for cell in placement.cells
    )
    header = ("Assignment", "Write amplification", "Lifetime", "TBW", "Years", "Read p99.99")
    table = Table("", header, rows, ("left", *("right",) * 5), data=CELLS_CSV)
    return Section("Assignments", "", _by_count(placement), (table,))


def _by_count(placement: Placement) -> tuple[Figure, ...]:
    schemes = list(dict.fromkeys(cell.scheme for cell in placement.cells[1:]))
    of = {
        scheme: [placement.none] + [c for c in placement.cells if c.scheme == scheme]
        for scheme in schemes
    }
    counts = sorted({cell.streams for cell in placement.cells})
    ticks = tuple((float(count), str(count)) for count in counts)
    x = Axis("Streams", log=True, ticks=ticks)
    waf = [
        Line(NAMES[scheme], [c.streams for c in cells], [c.waf for c in cells])
        for scheme, cells in of.items()
    ]
    slow = [
        Line(
            NAMES[scheme],
            [c.streams for c in cells if c.read_p9999_ns is not None],
            [float(c.read_p9999_ns or 0) for c in cells if c.read_p9999_ns is not None],
        )
        for scheme, cells in of.items()
    ]
    text = "Write amplification over the number of streams, a line an assignment"
    first = lines("placement-waf", waf, x, Axis("WAF", from_zero=False), description=text)
    late = "99.99 % read latency over the number of streams, a line an assignment"
    y = Axis("Read p99.99", units.LATENCY_UNITS)
    second = lines("placement-latency", slow, x, y, description=late)
    return drawn("placement-waf", "Write amplification v streams", first, CELLS_CSV, text) + drawn(
        "placement-latency", "Read latency p99.99 v streams", second, CELLS_CSV, late
    )


def _shown(placement: Placement) -> Replayed:
    """The mapping that is looked into: the best one with streams."""
    return placement.mistagged_of or placement.best


def _stream_label(placement: Placement, cell: Replayed, stream: int) -> str:
    name = placement.setup.io.streams.get(stream, "") if cell.scheme == "rules" else ""
    return f"{stream}: {name}" if name else f"stream {stream}"


def _stream_lines(placement: Placement) -> list[Line]:
    cell = _shown(placement)
    return [
        lifetime_line(_stream_label(placement, cell, stream), cell.blocks[:, stream].sum(axis=0))
        for stream in range(cell.streams)
        if cell.blocks[:, stream].any()
    ]


def _streams(placement: Placement) -> Section:
    cell, setup = _shown(placement), placement.setup
    found = stream_rows(setup, cell)
    rows = tuple(
        (
            _stream_label(placement, cell, row["stream"]),
            units.size(row["written_bytes"]),
            "outlives the trace"
            if row["median_lifetime_bytes"] is None
            else units.size(row["median_lifetime_bytes"]),
            ", ".join(row["origins"]),
        )
        for row in found
    )
    table = Table(
        "",
        ("Stream", "Written", "Median lifetime", "Mostly by"),
        rows,
        ("left", "right", "right", "left"),
        data=STREAMS_CSV,
    )
    holders = [
        Holder(f"stream {row['stream']}", list(row["by_origin_bytes"].values())) for row in found
    ]
    who = "What each origin wrote to each stream, in bytes"
    life = "Share of each stream's data that is dead after so many bytes written"
    figures = drawn(
        "placement-held",
        "Which stream wrote what",
        held("placement-held", holders, setup.io.origins, description=who),
        STREAMS_CSV,
        who,
    ) + drawn(
        "placement-lifetimes",
        "How long each stream's data live",
        lifetimes("placement-lifetimes", _stream_lines(placement), description=life),
        LIFETIMES_CSV,
        life,
    )
    intro = (
        "A stream is good when its data die together: a steep line. Lifetimes count bytes that the "
        "host writes until the data are overwritten or trimmed."
    )
    return Section(f"Streams of {_name(cell)}", intro, figures, (table,))


def _origin_lines(placement: Placement) -> list[Line]:
    blocks = placement.none.blocks
    names = placement.setup.io.origins
    found = [lifetime_line(name, blocks[n].sum(axis=0)) for n, name in enumerate(names)]
    return [line for line in found if line.x][:8]


def _origins(placement: Placement) -> Section:
    text = "Share of each origin's data that is dead after so many bytes written"
    figure = lifetimes("origin-lifetimes", _origin_lines(placement), description=text)
    intro = (
        "By thread and kind of file, whatever stream they go to. Origins whose lines lie together "
        "can share a stream; one whose line climbs slowly holds data of different lifetimes."
    )
    title = "How long each origin's data live"
    return Section("Origins", intro, drawn("origin-lifetimes", title, figure, ORIGINS_CSV, text))


def _mistagged(placement: Placement) -> Section:
    right = _shown(placement)
    points = [(0.0, right.waf), *((m.share_pct, m.waf) for m in placement.mistagged)]
    rows = tuple(
        (
            f"{share:g} %",
            units.number(waf, 3),
            f"{100 * (right.waf / waf - 1):+.1f} %",
            units.size(placement.setup.endurance_bytes(waf)),
        )
        for share, waf in points
    )
    table = Table(
        "",
        ("Writes in a wrong stream", "Write amplification", "Lifetime", "TBW"),
        rows,
        ("right", "right", "right", "right"),
        data=MISTAG_CSV,
    )
    return Section(
        "Tagging errors",
        f"Of {_name(right)}: writes drawn at random go to another stream, each as likely.",
        tables=(table,),
    )


def _conditions(placement: Placement, speed: str) -> Section:
    setup = placement.setup
    simulated = setup.simulated
    rows = (
        ("Trace", f"{units.size(setup.written_bytes)} written{speed}; {setup.io.rows:,} rows"),
        ("Files at their peak", units.size(setup.peak_bytes)),
        (
            "Replayed",
            f"{setup.blocks.rounds} rounds, {units.size(setup.blocks.written_bytes)}, "
            f"{setup.blocks.written_bytes / simulated.capacity_bytes:.1f} drive fills",
        ),
        (
            "Simulated drive",
            f"{units.size(simulated.capacity_bytes)}, over-provisioning "
            f"{simulated.overprovision_pct:.1f} %, {setup.streams} streams, kind of "
            f"{setup.device.name}",
        ),
    )
    return Section("Conditions", "", tables=(Table("", ("", ""), rows, ("left", "left")),))


def _data(placement: Placement) -> tuple[DataFile, ...]:
    setup, right = placement.setup, _shown(placement)
    cells = (
        (c.scheme, c.streams, c.waf, setup.endurance_bytes(c.waf), setup.years(c.waf),
         c.read_p9999_ns, c.reads.count)
        for c in placement.cells
    )  # fmt: skip
    held_rows = (
        (row["stream"], origin, size)
        for row in stream_rows(setup, right)
        for origin, size in row["by_origin_bytes"].items()
    )
    head = ("assign", "streams", "waf", "endurance_bytes", "years", "read_p9999_ns", "reads")
    x, y = "written_bytes", "dead_pct"
    tagged = ((m.share_pct, m.waf) for m in placement.mistagged)
    return (
        DataFile(CELLS_CSV, csv_text(head, cells)),
        DataFile(STREAMS_CSV, csv_text(("stream", "origin", "written_bytes"), held_rows)),
        DataFile(LIFETIMES_CSV, lines_csv(_stream_lines(placement), "stream", x, y)),
        DataFile(ORIGINS_CSV, lines_csv(_origin_lines(placement), "origin", x, y)),
        DataFile(MISTAG_CSV, csv_text(("share_pct", "waf"), tagged)),
    )
