"""Page for `advise-streams`, which compares the best stream assignment with alternatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff import units
from writecliff.parallel import SLOT_BYTES
from writecliff.replay.advice import BOUNDS, NAMES, StreamAdvice, advice_mapping, verdict
from writecliff.replay.summary import WRITEBACK_TEXT, rate_text, redrawn_text, stream_rows
from writecliff.report import colours, kinds, style
from writecliff.report.axes import Axis, Line
from writecliff.report.colours import one_page
from writecliff.report.csvs import csv_text, lines_csv
from writecliff.report.interaction import Label, write_label
from writecliff.report.model import Figure, Section, section
from writecliff.report.pages import Page
from writecliff.report.plots import lines
from writecliff.report.style import house_style
from writecliff.report.table import Data, DataFile, Table, table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from writecliff.replay.model import Replayed


CELLS_CSV = "assignments.csv"
STREAMS_CSV = "streams.csv"
LIFETIMES_CSV = "lifetimes.csv"
ORIGINS_CSV = "origins.csv"
MISTAG_CSV = "mistagged.csv"
TOO_FEW = "too few reads"
FILLS_STEADY = 3.0  # Drive fills in total; the first half is preconditioning.


@one_page()
def advice_page(advice: StreamAdvice) -> Page:
    """Return the page for stream advice."""
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
    sentences = [
        "Simulated: write amplification of the second half of the writes, endurance from "
        f"the {setup.device.rated_cycles:,} rated cycles of {setup.device.name}, years at "
        f"{rate_text(setup)}."
    ]
    sentences.append(redrawn_text(setup))
    if setup.simulated.capacity_bytes != setup.device.capacity_bytes:
        sentences.append(
            f"The drive is {setup.device.name} cut down to "
            f"{units.size(setup.simulated.capacity_bytes)}, which the trace fills; endurance "
            "is that of the whole drive if it were as full and as busy for its size."
        )
    fills = setup.drive_fills
    if fills < FILLS_STEADY:
        sentences.append(
            f"Only {fills:.1f} drive fills were written: the drive may not be in steady state."
        )
    return tuple(sentences)


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
        ("Assignment", kinds.TEXT, lambda c: _name(c) + _role(advice, c)),
        ("Write amplification", kinds.decimals(3), lambda c: c.waf),
        ("Lifetime", kinds.decimals(2, "x"), lambda c: none.waf / c.waf),
        ("TBW", kinds.SIZE, lambda c: setup.endurance_bytes(c.waf)),
        ("Years", kinds.digits(), lambda c: setup.years(c.waf)),
        ("Read p99.99", kinds.LATENCY, _latency),
        data=CELLS_CSV,
    )
    return section("Assignments", "", *_by_count(advice), table)


def _by_count(advice: StreamAdvice) -> Iterator[Figure | None]:
    counts = sorted({cell.streams for cell in advice.cells})
    x = Axis("Streams", log=True, ticks=tuple((float(count), str(count)) for count in counts))

    def series(value: Callable[[Replayed], float | None]) -> list[Line]:
        """Return a line for each assignment, starting with the assignment without streams."""
        series = []
        for scheme in dict.fromkeys(cell.scheme for cell in advice.cells[1:]):
            cells = [advice.none, *(c for c in advice.cells if c.scheme == scheme)]
            points = [(c.streams, y) for c in cells if (y := value(c)) is not None]
            series.append(Line(NAMES[scheme], [x for x, _ in points], [y for _, y in points]))
        return series

    drawings = (
        ("streams-waf", "Write amplification", lambda c: c.waf, Axis("WAF", from_zero=False)),
        ("streams-latency", "Read latency p99.99", lambda c: c.read_p9999_ns,
         Axis("Read p99.99", units.LATENCY_UNITS)),
    )  # fmt: skip
    for name, what, value, y in drawings:
        about = f"{what} over the number of streams, a line for each assignment"
        yield lines(name, f"{what} v streams", CELLS_CSV, series(value), x, y, alt=about)


def _shown(advice: StreamAdvice) -> Replayed:
    """Return the assignment shown in detail, which is the best assignment that uses streams."""
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
        ("Stream", kinds.TEXT, lambda row: _stream_label(advice, cell, row["stream"])),
        ("Written", kinds.SIZE, lambda row: row["written_bytes"]),
        ("Median lifetime", kinds.RIGHT, lifetime_text),
        ("Main origins", kinds.TEXT, lambda row: ", ".join(row["origins"])),
        data=STREAMS_CSV,
    )
    contents = held(
        "stream-contents",
        "Origins of each stream's data",
        STREAMS_CSV,
        [f"stream {row['stream']}" for row in rows],
        setup.io.origins,
        [list(row["by_origin_bytes"].values()) for row in rows],
        alt="Bytes that each origin wrote to each stream",
    )
    about = "Share of each stream's data that is invalid after a number of written bytes"
    title = "Lifetime of data by stream"
    life = lifetimes("stream-lifetimes", title, LIFETIMES_CSV, _stream_lines(advice), alt=about)
    intro = (
        "A steep line means that the data of a stream become invalid together, as intended. "
        "Lifetimes count the bytes that the host writes until the data are overwritten or trimmed."
    )
    return section(f"Streams of {_name(cell)}", intro, contents, life, table)


def lifetime_text(row: Mapping[str, Any]) -> str:
    """Return a stream's median lifetime, taken from a row of `stream_rows`."""
    median = row["median_lifetime_bytes"]
    return "outlives the trace" if median is None else units.size(median)


def _origin_lines(advice: StreamAdvice) -> list[Line]:
    blocks = advice.none.blocks
    names = advice.setup.io.origins
    origin_lines = [lifetime_line(name, blocks[n].sum(axis=0)) for n, name in enumerate(names)]
    return [line for line in origin_lines if line.x][:8]


def _origins(advice: StreamAdvice) -> Section:
    text = "Share of each origin's data that is invalid after a number of written bytes"
    intro = (
        "By thread and kind of file, regardless of the stream. Origins with similar lines can "
        "share a stream; a line that rises slowly shows data of different lifetimes."
    )
    title = "Lifetime of data by origin"
    figure = lifetimes("origin-lifetimes", title, ORIGINS_CSV, _origin_lines(advice), alt=text)
    return section("Origins", intro, figure)


def _mistagged(advice: StreamAdvice) -> Section:
    right, setup = _shown(advice), advice.setup
    table = Table.of(
        "",
        [(0.0, right.waf), *((m.mistag_pct, m.waf) for m in advice.mistagged)],
        ("Writes in a wrong stream", kinds.plain("%"), lambda point: point[0]),
        ("Write amplification", kinds.decimals(3), lambda point: point[1]),
        ("Lifetime", kinds.signed(), lambda point: 100 * (right.waf / point[1] - 1)),
        ("TBW", kinds.SIZE, lambda point: setup.endurance_bytes(point[1])),
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


# -- drawings ----------------------------------------------------------------------------------


_ROW_IN = 0.34
_NAMED_SHARE = 0.005  # Fraction of all bytes below which origins are drawn together.


@house_style()
def held(
    name: str,
    title: str,
    data: Data,
    streams: Sequence[str],
    origins: Sequence[str],
    written_bytes: Sequence[Sequence[float]],
    *,
    alt: str = "",
) -> Figure | None:
    """Return a horizontal bar for each stream, divided by the origins of its writes.

    `written_bytes` has a row for each stream and a column for each origin.
    """
    volumes = np.array(written_bytes, dtype=np.float64)
    if volumes.size == 0 or volumes.sum() == 0:
        return None
    by_origin = volumes.sum(axis=0)
    order = [n for n in np.argsort(-by_origin, kind="stable") if by_origin[n] > 0]
    large = [n for n in order if by_origin[n] >= _NAMED_SHARE * by_origin.sum()]
    shown = large[: len(style.SERIES)]
    looks = colours.looks([origins[n] for n in shown])
    parts = [
        (origins[n], colours.colour(look), volumes[:, n])
        for n, look in zip(shown, looks, strict=True)
    ]
    rest = [n for n in order if n not in shown]
    if rest:
        parts.append(("others", style.GRID, volumes[:, rest].sum(axis=1)))
    unit = units.common_unit(volumes.sum(axis=1), units.BYTE_UNITS)
    legend_in = 0.2 * ((len(shown) + 1) // 2)
    height_in = 1.05 + _ROW_IN * max(3, len(streams)) + legend_in
    figure = style.new_figure(height_in=height_in)
    plot = figure.add_axes((0.2, 0.46 / height_in, 0.77, 1 - (0.66 + legend_in) / height_in))
    plot.set_facecolor("none")
    plot.grid(True, axis="x")
    rows = np.arange(len(streams))[::-1]
    left = np.zeros(len(streams))
    for label, colour, values in parts:
        plot.barh(rows, values / unit.size, 0.66, left=left, color=colour, label=label)
        left += values / unit.size
    plot.set_yticks(rows, list(streams))
    plot.tick_params(axis="y", length=0)
    write_label(plot.xaxis, Label("Written", unit.name))
    style.linear_axis(plot, "x")
    anchor = (0.01, 1 - 0.02 / height_in)
    figure.legend(loc="upper left", bbox_to_anchor=anchor, ncols=2, borderaxespad=0.2)
    return style.finished(figure, name, title, data, alt)


def lifetime_line(label: str, blocks: NDArray[np.uint64]) -> Line:
    """Return the percentage of data that is invalid after a given volume of host writes.

    `blocks` holds counts by bucket (see `BlockTrace.replay`); blocks in the last bucket outlived
    the trace.
    """
    total = max(1, int(blocks.sum()))
    dead_pct = np.cumsum(blocks[:-1].astype(np.float64)) / total * 100
    ends = 2.0 ** np.arange(len(blocks) - 1) * SLOT_BYTES
    measured = np.flatnonzero(blocks[:-1])
    if len(measured) == 0:
        return Line(label, [], [])
    part = slice(max(0, int(measured[0]) - 1), int(measured[-1]) + 1)
    return Line(label, ends[part].tolist(), dead_pct[part].tolist())


def lifetimes(
    name: str, title: str, data: Data, series: Sequence[Line], *, alt: str = ""
) -> Figure | None:
    """Return cumulative lifetime curves, with a line for each stream or origin."""
    x = Axis("Bytes written by the host meanwhile", units.BYTE_UNITS, log=True)
    return lines(
        name, title, data, series, x, Axis(Label("Share of invalid data", "%"), top=100), alt=alt
    )
