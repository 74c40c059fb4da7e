"""Page for `characterise`, which shows the workloads of one or two traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff import units
from writecliff.report import kinds, style
from writecliff.report.axes import Axis, Line, time_axis
from writecliff.report.colours import one_page
from writecliff.report.csvs import data_file, lines_csv
from writecliff.report.interaction import Label
from writecliff.report.model import Figure, Section, section
from writecliff.report.pages import Page
from writecliff.report.plots import Bars, bars, lines
from writecliff.report.style import house_style
from writecliff.report.table import DataFile, Quantity, Table, Value, table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from writecliff.traces.characterise import Characterised


NS_PER_S = 1e9
_STREAMS_DRAWN = 9  # Number of dominant streams in SNIA's real-world workloads.


class ShownTrace:
    """A trace with its name on the page."""

    def __init__(self, name: str, trace: Characterised) -> None:
        """Return the name used for the trace `of` on its page."""
        self.name = name
        self.characterised = trace
        self.all = trace.mapping()

    def label(self, what: str, several: bool) -> str:
        """Return a series label, which includes the trace name if there are several traces."""
        return f"{self.name}: {what}" if several else what


@one_page()
def workload_page(traces: Sequence[Characterised]) -> Page:
    """Return the page for one trace, or for two traces side by side."""
    shown = [ShownTrace(name, trace) for name, trace in zip(_names(traces), traces, strict=True)]
    return Page(
        title=f"Workload of {' and '.join(trace.name for trace in shown)}",
        intro="",
        verdict=_verdict(shown[0]),
        sections=(
            *sections_of(shown),
            _drive(shown),
            *(_volumes(trace) for trace in shown if trace.all["volumes_total"] > 1),
            _conditions(shown),
        ),
        summary={"traces": [{**trace.all, "trace": str(trace.all["trace"])} for trace in shown]},
        disclosures=tuple(_disclosures(shown)),
    )


def sections_of(shown: Sequence[ShownTrace]) -> tuple[Section, ...]:
    """Return the sections shared by one or two traces, side by side."""
    parts = _overview, _streams, _over_time, _arrivals, _locality, _heat
    return tuple(part(shown) for part in parts)


def _names(traces: Sequence[Characterised]) -> list[str]:
    names = [characterised.trace.name for characterised in traces]
    if len({*names}) == len(names):
        return names
    return [str(characterised.trace) for characterised in traces]


def _verdict(shown: ShownTrace) -> str:
    measures, stream = shown.all, shown.all["streams"][:1]
    text = f"{measures['ios']:,} I/Os, {units.pct(measures['read_pct'], 0)} reads"
    if measures["sequential_pct"] is not None:
        text += f", {units.pct(measures['sequential_pct'], 0)} sequential"
    if stream:
        (top,) = stream
        text += (
            f"; most often {top['access']} {top['operation']}s of {units.size(top['size_bytes'])}"
            f" ({units.pct(top['share_pct'], 0)})"
        )
    return f"{text}; {units.size(measures['unique_bytes'])} of addresses are used."


def _disclosures(shown: Sequence[ShownTrace]) -> Iterator[str]:
    for trace in shown:
        unique, reuse = trace.all["unique"], trace.all["reuse"]
        if unique["sampled_one_in"] > 1:
            yield (
                f"{trace.name}: figures about single blocks are estimated from 1 in "
                f"{unique['sampled_one_in']:,.0f} blocks, chosen by a hash of the address. The "
                f"standard error of numbers of blocks is {unique['relative_error_pct']:.2g} %."
            )
        if reuse["sampled_one_in"] > 1:
            yield (
                f"{trace.name}: reuse distances are estimated from 1 block in "
                f"{reuse['sampled_one_in']:,.0f} (SHARDS)."
            )
        for skipped in trace.characterised.skipped:
            if not skipped.expected:
                yield (
                    f"{trace.name}: skipped lines: {skipped.lines:,} ({skipped.reason}, "
                    f"first in line {skipped.first_line:,})."
                )
        yield from (f"{trace.name}: {note}." for note in trace.characterised.notes)


def _figures_of(measures: Mapping[str, Any]) -> list[tuple[str, Value]]:
    """Return a trace's figures, by name."""
    arrivals, response = measures["arrivals"], measures["response_ms"]
    depth = measures["queue_depth"]
    figures: list[tuple[str, Value]] = [
        ("I/Os", Quantity(measures["ios"], kinds.NUMBER)),
        ("Duration", Quantity(measures["duration_s"] * NS_PER_S, kinds.DURATION)),
        ("Reads, by number", Quantity(measures["read_pct"], kinds.percents(1))),
        ("Read", Quantity(measures["read_bytes"], kinds.SIZE)),
        ("Written", Quantity(measures["write_bytes"], kinds.SIZE)),
        ("Flushes", Quantity(measures["operations"]["flush"]["ios"], kinds.NUMBER)),
        ("Discards", Quantity(measures["operations"]["discard"]["ios"], kinds.NUMBER)),
        ("Sequential", Quantity(measures["sequential_pct"], kinds.percents(1))),
        ("Aligned to 4 KiB", _aligned(measures)),
        ("Mean IOPS", Quantity(arrivals["ios_per_s"], kinds.digits())),
        ("Peak IOPS (1 s)", Quantity(arrivals["peak_ios_per_s"], kinds.NUMBER)),
        ("Peak : mean", Quantity(arrivals["peak_to_mean"], kinds.digits())),
        ("Index of dispersion (1 s)", Quantity(arrivals["index_of_dispersion"], kinds.digits())),
        ("Unique", Quantity(measures["unique_bytes"], kinds.SIZE)),
        ("Unique written", Quantity(measures["unique"]["write_bytes"], kinds.SIZE)),
        (
            "Overwrites, share of writes",
            Quantity(measures["updates"]["overwritten_pct"], kinds.percents(1)),
        ),
    ]
    if depth is not None:
        figures.append(("Queue depth, mean / p99", f"{depth['mean']:.1f} / {depth['p99']}"))
    for name in ("read", "write"):
        if response is not None and (times := response[name]) is not None:
            mean, p99 = (units.latency(1e6 * times[key]) for key in ("mean", "p99"))
            figures.append((f"{name.capitalize()} response, mean / p99", f"{mean} / {p99}"))
    if (content := measures["content"]) is not None:
        figures.append(("Duplicate writes", Quantity(content["duplicate_pct"], kinds.percents(1))))
    return figures


def _aligned(measures: Mapping[str, Any]) -> Quantity:
    return next(
        Quantity(row["ios_pct"], kinds.percents(1))
        for row in measures["alignment"]
        if row["bytes"] == 4096
    )


def _overview(shown: Sequence[ShownTrace]) -> Section:
    columns = [dict(_figures_of(trace.all)) for trace in shown]
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows = [(name, *(column.get(name) for column in columns)) for name in names]
    head = ("", *(trace.name for trace in shown))
    return Section("Overview", "", tables=(table("", head, rows),))


def _stream_name(row: Mapping[str, Any]) -> str:
    access = {"random": "RND", "sequential": "SEQ"}[row["access"]]
    return f"{access} {row['operation'][0].upper()}\n{units.block(row['size_bytes'])}"


def _streams(shown: Sequence[ShownTrace]) -> Section:
    parts: list[Figure | Table | None] = []
    rows = [(trace.name, row) for trace in shown for row in trace.all["streams"]]
    streams = data_file(
        "io-streams.csv",
        ("trace", "access", "operation", "size_bytes", "share_pct", "ios"),
        ((name, *(row[key] for key in ("access", "operation", "size_bytes", "share_pct", "ios")))
         for name, row in rows),
    )  # fmt: skip
    largest: dict[str, float] = {}
    for _, row in rows:
        name = _stream_name(row)
        largest[name] = max(largest.get(name, 0.0), row["share_pct"])
    groups = sorted(largest, key=lambda name: -largest[name])[:_STREAMS_DRAWN]
    series = [Bars(s.name, _shares(s.all["streams"], groups, _stream_name)) for s in shown]
    y = Axis(Label("Share of the reads and writes", "%"))
    alt = "Share of each I/O stream"
    parts.append(bars("io-streams", "I/O streams", streams, groups, series, y, alt=alt, wide=True))
    sizes = [row for trace in shown for row in trace.all["sizes"] if row["size_bytes"] is not None]
    named = [units.block(size) for size in sorted({row["size_bytes"] for row in sizes})]
    size_file = data_file(
        "block-sizes.csv",
        ("trace", "size_bytes", "ios", "share_pct", "reads", "writes"),
        ((trace.name, *(row[key] for key in ("size_bytes", "ios", "share_pct", "reads", "writes")))
         for trace in shown for row in trace.all["sizes"]),
    )  # fmt: skip

    def name_of(row: Mapping[str, Any]) -> str:
        return "" if row["size_bytes"] is None else units.block(row["size_bytes"])

    drawn = [Bars(trace.name, _shares(trace.all["sizes"], named, name_of)) for trace in shown]
    parts.append(bars("block-sizes", "Block sizes", size_file, named, drawn, y, wide=True))
    intro = (
        "An I/O stream is an operation, an access (SEQ: it starts at the end of one of the last "
        "32 runs) and a size."
    )
    return section("I/O streams", intro, *parts)


def _shares(
    rows: Sequence[Mapping[str, Any]], groups: Sequence[str], name: Callable[[Any], str]
) -> list[float]:
    """Return each group's fraction, or NaN if a trace does not contain the group."""
    shares: dict[str, float] = {}
    for row in rows:
        shares[name(row)] = shares.get(name(row), 0.0) + row["share_pct"]
    return [shares.get(group, float("nan")) for group in groups]


def _over_time(shown: Sequence[ShownTrace]) -> Section:
    several = len(shown) > 1
    longest = max(trace.all["duration_s"] for trace in shown) * NS_PER_S
    x = time_axis(longest)

    def series(pick: Callable[[Mapping[str, Any], float], float], what: str) -> list[Line]:
        curves = []
        for trace in shown:
            length, rows = trace.all["intervals"]["length_s"], trace.all["intervals"]["rows"]
            times = [row["begin_s"] * NS_PER_S for row in rows]
            values = [pick(row, length) for row in rows]
            curves.append(Line(trace.label(what, several), times, values))
        return curves

    iops = [
        *series(lambda row, length: row["reads"] / length, "reads"),
        *series(lambda row, length: row["writes"] / length, "writes"),
    ]
    rate = [
        *series(lambda row, length: row["read_bytes"] / length, "read"),
        *series(lambda row, length: row["write_bytes"] / length, "written"),
    ]
    working = series(lambda row, _: row["working_set_bytes"], "working set")
    throughput = Axis("Throughput", (units.MB_S,))
    size = Axis("Working set", units.BYTE_UNITS)
    return section(
        "Over time",
        f"Means of intervals of {units.duration(shown[0].all['intervals']['length_s'] * NS_PER_S)}."
        " The working set is the data read or written in an interval.",
        _lines("iops", "IOPS v time", iops, x, Axis("IOPS"), ("time_ns", "iops")),
        _lines("throughput", "Throughput v time", rate, x, throughput, ("time_ns", "bytes_per_s")),
        _lines("working-set", "Working set v time", working, x, size, ("time_ns", "bytes")),
    )


def _lines(
    name: str, title: str, series: Sequence[Line], x: Axis, y: Axis, columns: tuple[str, str]
) -> Figure | None:
    """Return a figure with a data file that has a column for each axis."""
    data = DataFile(f"{name}.csv", lines_csv(series, "series", *columns))
    return lines(name, title, data, [line for line in series if len(line.x)], x, y)


def _curve(label: str, points: Sequence[Sequence[float]], unit: float) -> Line:
    return Line(label, [x * unit for x, _ in points], [y for _, y in points])


def _arrivals(shown: Sequence[ShownTrace]) -> Section:
    several = len(shown) > 1
    up_to = Axis(Label("Cumulative share of I/Os", "%"), top=100)
    between = [
        _curve(trace.label("arrivals", several), trace.all["arrivals"]["between_points_us"], 1e3)
        for trace in shown
    ]
    times = [
        _curve(trace.label(operation, several), points, 1e6)
        for trace in shown
        if trace.all["response_ms"] is not None
        for operation, points in trace.all["response_ms"]["points"].items()
    ]
    depths = []
    for trace in shown:
        if (depth := trace.all["queue_depth"]) is not None:
            rows = depth["distribution"]
            total, sums = 0.0, []
            for _, part in rows:
                total += part
                sums.append(total)
            depths.append(Line(trace.label("arrivals", several), [n for n, _ in rows], sums))
    latency = Axis("Response time", units.LATENCY_UNITS, log=True)
    idle = Table.of(
        "Idle periods",
        [(trace.name, row) for trace in shown for row in trace.all["arrivals"]["idle"]],
        ("Trace", kinds.TEXT, lambda row: row[0]),
        ("At least", kinds.LATENCY, lambda row: row[1]["at_least_ms"] * 1e6),
        ("Periods", kinds.NUMBER, lambda row: row[1]["periods"]),
        ("Share of time", kinds.percents(1), lambda row: row[1]["time_pct"]),
        note="No I/O is outstanding (as far as completions are known) and none arrives.",
    )
    return section(
        "Arrivals, queue depth and response times",
        "",
        idle,
        _lines("between", "Time between arrivals", between,
               Axis("Time between arrivals", units.LATENCY_UNITS, log=True), up_to,
               ("time_ns", "ios_pct")),
        _lines("depth", "Queue depth at arrivals", depths, Axis("Queue depth", log=True), up_to,
               ("queue_depth", "ios_pct")),
        _lines("response", "Response times", times, latency, up_to, ("time_ns", "ios_pct")),
    )  # fmt: skip


def _locality(shown: Sequence[ShownTrace]) -> Section:
    several = len(shown) > 1
    hot, hits, updates = [], [], []
    for trace in shown:
        for key, what in (("traffic_pct", "all"), ("write_pct", "writes")):
            rows = [row for row in trace.all["hottest"] if row[key] is not None]
            points = [(row["blocks_pct"], row[key]) for row in rows]
            hot.append(_curve(trace.label(what, several), points, 1))
        rows = [row for row in trace.all["reuse"]["hits"] if row["hit_pct"] is not None]
        points = [(row["cache_bytes"], row["hit_pct"]) for row in rows]
        hits.append(_curve(trace.label("LRU cache", several), points, 1))
        points = trace.all["updates"]["interval_points_bytes"]
        updates.append(_curve(trace.label("writes", several), [p for p in points if p[0] > 0], 1))
    rows_table = Table.of(
        "Share of the traffic to the most used blocks",
        [(t.name, row) for t in shown for row in t.all["hottest"] if row["blocks_pct"] < 100],
        ("Trace", kinds.TEXT, lambda row: row[0]),
        ("Hottest", kinds.plain("%"), lambda row: row[1]["blocks_pct"]),
        ("All", kinds.percents(1), lambda row: row[1]["traffic_pct"]),
        ("Reads", kinds.percents(1), lambda row: row[1]["read_pct"]),
        ("Writes", kinds.percents(1), lambda row: row[1]["write_pct"]),
    )
    size = Axis("Cache", units.BYTE_UNITS, log=True)
    written = Axis("Bytes written meanwhile", units.BYTE_UNITS, log=True)
    return section(
        "Locality",
        "4 KiB blocks: distribution of the traffic, reuse distances and update intervals.",
        rows_table,
        _lines("hottest", "Traffic to the hottest blocks", hot,
               Axis(Label("Blocks", "%"), log=True),
               Axis(Label("Share of the traffic", "%"), top=100), ("blocks_pct", "traffic_pct")),
        _lines("hits", "Hits of an LRU cache", hits, size, Axis(Label("Hits", "%"), top=100),
               ("cache_bytes", "hit_pct")),
        _lines("updates", "Update interval of written blocks", updates, written,
               Axis(Label("Share overwritten", "%"), top=100), ("bytes", "writes_pct")),
    )  # fmt: skip


def _heat(shown: Sequence[ShownTrace]) -> Section:
    maps = []
    for at, trace in enumerate(shown):
        for n, heat in enumerate(trace.all["heat"]):
            for which in ("reads", "writes"):
                if any(map(any, heat[which])):
                    title = f"{trace.name}, {heat['volume']}: {which}"
                    maps.append(heat_map(f"heat-{at}-{n}-{which}", title, heat, which))
    return section("Addresses over time", "I/Os by address and time; darker is more.", *maps)


def _drive(shown: Sequence[ShownTrace]) -> Section:
    def rows(trace: ShownTrace) -> list[tuple[str, Value]]:
        drive = trace.all["drive"]
        per_day = drive["footprint_overwrites_per_day"]
        replay = drive["replay"]
        cells: list[tuple[str, Value]] = [
            ("Written per year (TBW)", Quantity(drive["writes_per_year_bytes"], kinds.SIZE)),
            ("Written per day", Quantity(drive["writes_per_day_bytes"], kinds.SIZE)),
            ("Overwrites of the footprint per day", Quantity(per_day, kinds.digits())),
            ("Read, never written (fill first)", Quantity(
                drive["read_not_written_bytes"], kinds.SIZE)),
        ]  # fmt: skip
        if replay is not None:
            cells += [
                (
                    f"Write amplification on {replay['on']}",
                    Quantity(replay["waf"], kinds.decimals(3)),
                ),
                ("Endurance of the whole drive", Quantity(replay["endurance_bytes"], kinds.SIZE)),
                ("Years at this rate", Quantity(replay["years"], kinds.digits())),
            ]
        return cells

    columns = [dict(rows(trace)) for trace in shown]
    names = list(dict.fromkeys(name for column in columns for name in column))
    cells = [(name, *(column.get(name) for column in columns)) for name in names]
    head = ("", *(trace.name for trace in shown))
    intro = (
        "Assumes that the rate of the trace continues. Before a test with this workload, a drive "
        "must contain the data that is read before it is written, and be in steady state."
    )
    return Section("Demands on a drive", intro, tables=(table("", head, cells),))


def _volumes(trace: ShownTrace) -> Section:
    total = trace.all["volumes_total"]
    rows = trace.all["volumes"][:64]
    rows_table = Table.of(
        "",
        rows,
        ("Volume", kinds.TEXT, lambda row: row["volume"]),
        ("I/Os", kinds.NUMBER, lambda row: row["ios"]),
        ("Reads", kinds.percents(1), lambda row: row["read_pct"]),
        ("Read", kinds.SIZE, lambda row: row["read_bytes"]),
        ("Written", kinds.SIZE, lambda row: row["write_bytes"]),
        ("Sequential", kinds.percents(1), lambda row: row["sequential_pct"]),
        ("Unique", kinds.SIZE, lambda row: row["unique_bytes"]),
        ("Highest address", kinds.SIZE, lambda row: row["end_bytes"]),
        note=f"The {len(rows)} busiest of {total:,} volumes." if total > len(rows) else "",
    )
    return section(f"Volumes of {trace.name}", "", rows_table)


def _conditions(shown: Sequence[ShownTrace]) -> Section:
    rows = []
    for trace in shown:
        rows.append((trace.name, f"format {trace.all['format']}"))
        for skipped in trace.characterised.skipped:
            text = f"{skipped.lines:,} lines skipped: {skipped.reason}"
            rows.append(("", f"{text}, first in line {skipped.first_line:,}"))
    return Section("Conditions", "", tables=(table("", ("", ""), rows, "ll"),))


# -- heat map ----------------------------------------------------------------------------------


_HEIGHT_IN = 3.0
_LEVELS = 8


@house_style()
def heat_map(name: str, title: str, heat: Mapping[str, Any], which: str) -> Figure | None:
    """Draw the I/Os over address and time.

    Cells are drawn as one area for each of eight levels on a logarithmic scale, so that thousands
    of cells take little space on the page.

    Args:
        name: Figure name.
        title: Caption.
        heat: Heat map from `_native.TraceMeasures.result`.
        which: "reads" or "writes".
    """
    counts: NDArray[np.float64] = np.array(heat[which], dtype=np.float64)
    if counts.size == 0 or not counts.any():
        return None
    rows, columns = counts.shape
    time, size = units.time_unit(columns * heat["cell_s"] * NS_PER_S), _byte_unit(rows, heat)
    width, height = heat["cell_s"] * NS_PER_S / time.size, heat["cell_bytes"] / size.size
    figure, plot = style.new_axes(Label("Time", time.name), Label("Address", size.name))
    highest = np.log1p(counts.max())
    level = np.ceil(np.log1p(counts) / highest * _LEVELS).astype(int)
    for number in range(1, _LEVELS + 1):
        spans = [
            (begin * width, (end - begin) * width, row * height)
            for row in range(rows)
            for begin, end in _runs(level[row] == number)
        ]
        if spans:
            _draw(plot, spans, height, number / _LEVELS)
    plot.set_xlim(0, columns * width)
    plot.set_ylim(0, rows * height)
    plot.grid(False)
    data = data_file(
        f"{name}.csv",
        ("address_bytes", "time_s", "ios"),
        (
            (row * heat["cell_bytes"], float(column * heat["cell_s"]), int(counts[row, column]))
            for row, column in zip(*np.nonzero(counts), strict=True)
        ),
    )
    alt = f"{title} by address and time; darker cells have more"
    return style.finished(figure, name, title, data, alt)


def _byte_unit(rows: int, heat: Mapping[str, Any]) -> units.Unit:
    return units.common_unit([rows * heat["cell_bytes"]], units.BYTE_UNITS)


def _runs(where: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the start and end of each run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], where.astype(np.int8), [0]))))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _draw(plot: Any, spans: list[tuple[float, float, float]], height: float, share: float) -> None:
    """Draw all cells in a level as a single path."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    corners, codes = [], []
    for x, width, y in spans:
        corners += [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
        codes += [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    colour = style.SERIES[0]
    path = Path(corners, codes)
    plot.add_patch(PathPatch(path, facecolor=colour, alpha=0.12 + 0.88 * share, linewidth=0))
