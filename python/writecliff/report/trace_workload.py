"""The page of `characterise`: what one or two traces say of their workloads."""

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
_STREAMS_DRAWN = 9  # the dominant ones of SNIA's real world workloads


class ShownTrace:
    """A trace with its name on the page."""

    def __init__(self, name: str, of: Characterised) -> None:
        self.name = name
        self.of = of
        self.all = of.mapping()

    def label(self, what: str, several: bool) -> str:
        """The label of a series: with the trace, if there are several."""
        return f"{self.name}: {what}" if several else what


@one_page()
def workload_page(found: Sequence[Characterised]) -> Page:
    """The page of one trace, or of two beside each other."""
    shown = [ShownTrace(name, one) for name, one in zip(_names(found), found, strict=True)]
    return Page(
        title=f"Workload of {' and '.join(one.name for one in shown)}",
        intro="",
        verdict=_verdict(shown[0]),
        sections=(
            *sections_of(shown),
            _drive(shown),
            *(_volumes(one) for one in shown if one.all["volumes_total"] > 1),
            _conditions(shown),
        ),
        summary={"traces": [{**one.all, "trace": str(one.all["trace"])} for one in shown]},
        disclosures=tuple(_disclosures(shown)),
    )


def sections_of(shown: Sequence[ShownTrace]) -> tuple[Section, ...]:
    """What one or two traces say, beside each other."""
    parts = _overview, _streams, _over_time, _arrivals, _locality, _heat
    return tuple(part(shown) for part in parts)


def _names(found: Sequence[Characterised]) -> list[str]:
    names = [one.trace.name for one in found]
    return names if len({*names}) == len(names) else [str(one.trace) for one in found]


def _verdict(one: ShownTrace) -> str:
    of, stream = one.all, one.all["streams"][:1]
    said = f"{of['ios']:,} I/Os, {units.pct(of['read_pct'], 0)} reads"
    if of["sequential_pct"] is not None:
        said += f", {units.pct(of['sequential_pct'], 0)} sequential"
    if stream:
        (top,) = stream
        said += (
            f"; most often {top['access']} {top['operation']}s of {units.size(top['size_bytes'])}"
            f" ({units.pct(top['share_pct'], 0)})"
        )
    return f"{said}; {units.size(of['unique_bytes'])} of addresses are used."


def _disclosures(shown: Sequence[ShownTrace]) -> Iterator[str]:
    for one in shown:
        unique, reuse = one.all["unique"], one.all["reuse"]
        if unique["sampled_one_in"] > 1:
            yield (
                f"{one.name}: figures about single blocks are of one in "
                f"{unique['sampled_one_in']:,.0f} of them, chosen by a hash of their address. The "
                f"standard error of numbers of blocks is {unique['relative_error_pct']:.2g} %."
            )
        if reuse["sampled_one_in"] > 1:
            yield (
                f"{one.name}: reuse distances are of one block in {reuse['sampled_one_in']:,.0f}"
                " (SHARDS)."
            )
        for skipped in one.of.skipped:
            if not skipped.expected:
                yield (
                    f"{one.name}: lines that are no I/Os: {skipped.lines:,} ({skipped.reason}, "
                    f"first in line {skipped.first_line:,})."
                )
        yield from (f"{one.name}: {note}." for note in one.of.notes)


def _figures_of(of: Mapping[str, Any]) -> list[tuple[str, Value]]:
    """The figures of a trace, by name."""
    arrivals, response, depth = of["arrivals"], of["response_ms"], of["queue_depth"]
    found: list[tuple[str, Value]] = [
        ("I/Os", Quantity(of["ios"], kinds.NUMBER)),
        ("Duration", Quantity(of["duration_s"] * NS_PER_S, kinds.DURATION)),
        ("Reads, by number", Quantity(of["read_pct"], kinds.percents(1))),
        ("Read", Quantity(of["read_bytes"], kinds.SIZE)),
        ("Written", Quantity(of["write_bytes"], kinds.SIZE)),
        ("Flushes", Quantity(of["operations"]["flush"]["ios"], kinds.NUMBER)),
        ("Discards", Quantity(of["operations"]["discard"]["ios"], kinds.NUMBER)),
        ("Sequential", Quantity(of["sequential_pct"], kinds.percents(1))),
        ("Aligned to 4 KiB", _aligned(of)),
        ("Mean IOPS", Quantity(arrivals["ios_per_s"], kinds.digits())),
        ("Peak IOPS (1 s)", Quantity(arrivals["peak_ios_per_s"], kinds.NUMBER)),
        ("Peak : mean", Quantity(arrivals["peak_to_mean"], kinds.digits())),
        ("Index of dispersion (1 s)", Quantity(arrivals["index_of_dispersion"], kinds.digits())),
        ("Unique", Quantity(of["unique_bytes"], kinds.SIZE)),
        ("Unique written", Quantity(of["unique"]["write_bytes"], kinds.SIZE)),
        (
            "Overwrites, share of writes",
            Quantity(of["updates"]["overwritten_pct"], kinds.percents(1)),
        ),
    ]
    if depth is not None:
        found.append(("Queue depth, mean / p99", f"{depth['mean']:.1f} / {depth['p99']}"))
    for name in ("read", "write"):
        if response is not None and (times := response[name]) is not None:
            mean, p99 = (units.latency(1e6 * times[key]) for key in ("mean", "p99"))
            found.append((f"{name.capitalize()} response, mean / p99", f"{mean} / {p99}"))
    if (content := of["content"]) is not None:
        found.append(("Duplicate writes", Quantity(content["duplicate_pct"], kinds.percents(1))))
    return found


def _aligned(of: Mapping[str, Any]) -> Quantity:
    return next(
        Quantity(row["ios_pct"], kinds.percents(1))
        for row in of["alignment"]
        if row["bytes"] == 4096
    )


def _overview(shown: Sequence[ShownTrace]) -> Section:
    columns = [dict(_figures_of(one.all)) for one in shown]
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows = [(name, *(column.get(name) for column in columns)) for name in names]
    head = ("", *(one.name for one in shown))
    return Section("Overview", "", tables=(table("", head, rows),))


def _stream_name(row: Mapping[str, Any]) -> str:
    access = {"random": "RND", "sequential": "SEQ"}[row["access"]]
    return f"{access} {row['operation'][0].upper()}\n{units.block(row['size_bytes'])}"


def _streams(shown: Sequence[ShownTrace]) -> Section:
    parts: list[Figure | Table | None] = []
    rows = [(one.name, row) for one in shown for row in one.all["streams"]]
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
    series = [Bars(one.name, _shares(one.all["streams"], groups, _stream_name)) for one in shown]
    y = Axis(Label("Share of the reads and writes", "%"))
    alt = "Share of each I/O stream"
    parts.append(bars("io-streams", "I/O streams", streams, groups, series, y, alt=alt, wide=True))
    sizes = [row for one in shown for row in one.all["sizes"] if row["size_bytes"] is not None]
    named = [units.block(size) for size in sorted({row["size_bytes"] for row in sizes})]
    size_file = data_file(
        "block-sizes.csv",
        ("trace", "size_bytes", "ios", "share_pct", "reads", "writes"),
        ((one.name, *(row[key] for key in ("size_bytes", "ios", "share_pct", "reads", "writes")))
         for one in shown for row in one.all["sizes"]),
    )  # fmt: skip

    def name_of(row: Mapping[str, Any]) -> str:
        return "" if row["size_bytes"] is None else units.block(row["size_bytes"])

    drawn = [Bars(one.name, _shares(one.all["sizes"], named, name_of)) for one in shown]
    parts.append(bars("block-sizes", "Block sizes", size_file, named, drawn, y, wide=True))
    intro = (
        "An I/O stream is an operation, an access (SEQ: it begins where one of the last 32 runs "
        "ended) and a size."
    )
    return section("I/O streams", intro, *parts)


def _shares(
    rows: Sequence[Mapping[str, Any]], groups: Sequence[str], name: Callable[[Any], str]
) -> list[float]:
    """The share of each group, NaN where a trace has none."""
    found: dict[str, float] = {}
    for row in rows:
        found[name(row)] = found.get(name(row), 0.0) + row["share_pct"]
    return [found.get(group, float("nan")) for group in groups]


def _over_time(shown: Sequence[ShownTrace]) -> Section:
    several = len(shown) > 1
    longest = max(one.all["duration_s"] for one in shown) * NS_PER_S
    x = time_axis(longest)

    def series(pick: Callable[[Mapping[str, Any], float], float], what: str) -> list[Line]:
        found = []
        for one in shown:
            length, rows = one.all["intervals"]["length_s"], one.all["intervals"]["rows"]
            times = [row["begin_s"] * NS_PER_S for row in rows]
            values = [pick(row, length) for row in rows]
            found.append(Line(one.label(what, several), times, values))
        return found

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
        " The working set is what is read or written in an interval.",
        _lines("iops", "IOPS v time", iops, x, Axis("IOPS"), ("time_ns", "iops")),
        _lines("throughput", "Throughput v time", rate, x, throughput, ("time_ns", "bytes_per_s")),
        _lines("working-set", "Working set v time", working, x, size, ("time_ns", "bytes")),
    )


def _lines(
    name: str, title: str, series: Sequence[Line], x: Axis, y: Axis, columns: tuple[str, str]
) -> Figure | None:
    """A figure with its own file; one column of numbers for each axis."""
    data = DataFile(f"{name}.csv", lines_csv(series, "series", *columns))
    return lines(name, title, data, [one for one in series if len(one.x)], x, y)


def _curve(label: str, points: Sequence[Sequence[float]], unit: float) -> Line:
    return Line(label, [x * unit for x, _ in points], [y for _, y in points])


def _arrivals(shown: Sequence[ShownTrace]) -> Section:
    several = len(shown) > 1
    up_to = Axis(Label("Cumulative share of I/Os", "%"), top=100)
    between = [
        _curve(one.label("arrivals", several), one.all["arrivals"]["between_points_us"], 1e3)
        for one in shown
    ]
    times = [
        _curve(one.label(operation, several), points, 1e6)
        for one in shown
        if one.all["response_ms"] is not None
        for operation, points in one.all["response_ms"]["points"].items()
    ]
    depths = []
    for one in shown:
        if (depth := one.all["queue_depth"]) is not None:
            rows = depth["distribution"]
            total, sums = 0.0, []
            for _, part in rows:
                total += part
                sums.append(total)
            depths.append(Line(one.label("arrivals", several), [n for n, _ in rows], sums))
    latency = Axis("Response time", units.LATENCY_UNITS, log=True)
    idle = Table.of(
        "Idle periods",
        [(one.name, row) for one in shown for row in one.all["arrivals"]["idle"]],
        ("Trace", kinds.TEXT, lambda row: row[0]),
        ("At least", kinds.LATENCY, lambda row: row[1]["at_least_ms"] * 1e6),
        ("Periods", kinds.NUMBER, lambda row: row[1]["periods"]),
        ("Share of time", kinds.percents(1), lambda row: row[1]["time_pct"]),
        note="Nothing is under way, as far as completions are known, and nothing arrives.",
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
    for one in shown:
        for key, what in (("traffic_pct", "all"), ("write_pct", "writes")):
            rows = [row for row in one.all["hottest"] if row[key] is not None]
            points = [(row["blocks_pct"], row[key]) for row in rows]
            hot.append(_curve(one.label(what, several), points, 1))
        rows = [row for row in one.all["reuse"]["hits"] if row["hit_pct"] is not None]
        points = [(row["cache_bytes"], row["hit_pct"]) for row in rows]
        hits.append(_curve(one.label("LRU cache", several), points, 1))
        points = one.all["updates"]["interval_points_bytes"]
        updates.append(_curve(one.label("writes", several), [p for p in points if p[0] > 0], 1))
    rows_table = Table.of(
        "Share of the traffic to the most used blocks",
        [(one.name, row) for one in shown for row in one.all["hottest"] if row["blocks_pct"] < 100],
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
        "Of 4 KiB blocks: how unevenly they are used, how soon again, and how soon they are "
        "overwritten.",
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
    found = []
    for at, one in enumerate(shown):
        for n, heat in enumerate(one.all["heat"]):
            for which in ("reads", "writes"):
                if any(map(any, heat[which])):
                    title = f"{one.name}, {heat['volume']}: {which}"
                    found.append(heat_map(f"heat-{at}-{n}-{which}", title, heat, which))
    return section("Addresses over time", "I/Os by address and time; darker is more.", *found)


def _drive(shown: Sequence[ShownTrace]) -> Section:
    def rows(one: ShownTrace) -> list[tuple[str, Value]]:
        drive = one.all["drive"]
        per_day = drive["footprint_overwrites_per_day"]
        replay = drive["replay"]
        found: list[tuple[str, Value]] = [
            ("Written per year (TBW)", Quantity(drive["writes_per_year_bytes"], kinds.SIZE)),
            ("Written per day", Quantity(drive["writes_per_day_bytes"], kinds.SIZE)),
            ("Overwrites of the footprint per day", Quantity(per_day, kinds.digits())),
            ("Read, never written (fill first)", Quantity(
                drive["read_not_written_bytes"], kinds.SIZE)),
        ]  # fmt: skip
        if replay is not None:
            found += [
                (
                    f"Write amplification on {replay['on']}",
                    Quantity(replay["waf"], kinds.decimals(3)),
                ),
                ("Endurance of the whole drive", Quantity(replay["endurance_bytes"], kinds.SIZE)),
                ("Years at this rate", Quantity(replay["years"], kinds.digits())),
            ]
        return found

    columns = [dict(rows(one)) for one in shown]
    names = list(dict.fromkeys(name for column in columns for name in column))
    cells = [(name, *(column.get(name) for column in columns)) for name in names]
    head = ("", *(one.name for one in shown))
    intro = (
        "At the rate of the trace, if it goes on like this. A drive must hold what is read before "
        "it was written, and be in steady state, before a test with this workload means anything."
    )
    return Section("What it means for a drive", intro, tables=(table("", head, cells),))


def _volumes(one: ShownTrace) -> Section:
    total = one.all["volumes_total"]
    rows = one.all["volumes"][:64]
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
        note=f"The busiest {len(rows)} of {total:,}." if total > len(rows) else "",
    )
    return section(f"Volumes of {one.name}", "", rows_table)


def _conditions(shown: Sequence[ShownTrace]) -> Section:
    rows = []
    for one in shown:
        rows.append((one.name, f"format {one.all['format']}"))
        for skipped in one.of.skipped:
            text = f"{skipped.lines:,} lines skipped: {skipped.reason}"
            rows.append(("", f"{text}, first in line {skipped.first_line:,}"))
    return Section("Conditions", "", tables=(table("", ("", ""), rows, "ll"),))


# -- heat map ----------------------------------------------------------------------------------


_HEIGHT_IN = 3.0
_LEVELS = 8


@house_style()
def heat_map(name: str, title: str, heat: Mapping[str, Any], which: str) -> Figure | None:
    """`heat` is a map of `_native.TraceMeasures.result`, `which` "reads" or "writes".

    Cells are drawn as one area for each of eight levels, on a logarithmic scale, so that thousands
    of cells take little space in the page.
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
    """Begin and end of each run of what is true."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], where.astype(np.int8), [0]))))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _draw(plot: Any, spans: list[tuple[float, float, float]], height: float, share: float) -> None:
    """All cells of a level as one path."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    corners, codes = [], []
    for x, width, y in spans:
        corners += [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
        codes += [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    colour = style.SERIES[0]
    path = Path(corners, codes)
    plot.add_patch(PathPatch(path, facecolor=colour, alpha=0.12 + 0.88 * share, linewidth=0))
