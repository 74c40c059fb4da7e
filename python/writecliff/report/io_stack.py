"""Page for `capture --stack`, which shows a program's I/O on its way to the drive."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from writecliff import units
from writecliff.capture.stack.result import MEANINGS, PageCache, Stack
from writecliff.report import colours, kinds, style
from writecliff.report.axes import Axis, Line
from writecliff.report.colours import one_page
from writecliff.report.csvs import Value, data_file, lines_csv
from writecliff.report.interaction import Label, write_label
from writecliff.report.model import Figure, Section, section
from writecliff.report.pages import Page, write_page
from writecliff.report.plots import lines
from writecliff.report.style import house_style
from writecliff.report.table import Column, Data, DataFile, Table, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from writecliff.capture.stack.steps import Step, Traffic


PAGE_NAME = "stack.html"
STEPS_CSV, ORIGINS_CSV, SIZES_CSV, WRITTEN_CSV = (
    "steps.csv", "origins.csv", "sizes.csv", "written.csv",
)  # fmt: skip
NAMES = {"calls": "System calls", "bios": "Bios", "requests": "Requests"}
OPS = {"read": "reads", "write": "writes", "punch": "discards", "fsync": "flushes"}
_ABSORBED = "absorbed by the page cache"
_KINDS = ("data", "metadata", "journal")
_COMMAND_SHOWN = 60


def write_stack(stack: Stack, folder: Path) -> Path:
    """Write the page and its data (CSV) to `folder`, and return the page's path.

    Raises:
        StoreError: If a file cannot be written.
    """
    return write_page(stack_page(stack), folder / PAGE_NAME, csv=folder)


@one_page()
def stack_page(stack: Stack) -> Page:
    """Return the page for a captured I/O stack."""
    answer, *more = verdict(stack)
    return Page(
        title=f"The I/O stack under {_command(stack)}",
        intro=" ".join(more),
        verdict=answer,
        sections=(_steps(stack), _origins(stack), _time(stack), _sizes(stack), _conditions(stack)),
        data=_data(stack),
        summary=stack.mapping(),
        disclosures=disclosures(stack),
    )


def _command(stack: Stack) -> str:
    text = shlex.join(stack.command)
    return text if len(text) <= _COMMAND_SHOWN else text[: _COMMAND_SHOWN - 1] + "…"


def verdict(stack: Stack) -> list[str]:
    """Return the verdict as a sentence, followed by sentences that explain it."""
    calls, drive = stack.calls, stack.requests
    answers = [_writes_text(stack), _reads_text(stack)]
    answers = list(filter(None, answers)) or ["The program did no I/O below the root."]
    extra = []
    if calls.writes.count and drive.writes.count:
        before, after = units.size(calls.writes.mean_bytes), units.size(drive.writes.mean_bytes)
        extra.append(
            f"{calls.writes.count:,} write calls of {before} on average became "
            f"{drive.writes.count:,} requests of {after}."
        )
    if calls.syncs and drive.syncs:
        extra.append(f"{_count(calls.syncs, 'sync call')} became {_count(drive.syncs, 'flush')}.")
    if stack.waits is not None:
        extra.append(
            f"Half of the data reached the drive within {units.latency(stack.waits.p50_ns)} of "
            f"the call, 99 % within {units.latency(stack.waits.p99_ns)}."
        )
    return [" ".join(answers), *extra]


def _writes_text(stack: Stack) -> str:
    asked, total = stack.calls.writes.bytes, stack.requests.writes.bytes
    if not asked:
        text = f"{units.size(total)} were written to the drive without a write call."
        return text if total else ""
    return (
        f"The program wrote {units.size(asked)}; {units.size(total)} were written to the drive "
        f"({_factor(stack.amplification(stack.requests))}: {_factor(stack.data_amplification)} "
        f"data, {units.size(stack.written_bytes('metadata'))} metadata, "
        f"{units.size(stack.written_bytes('journal'))} journal)."
    )


def _reads_text(stack: Stack) -> str:
    cache = stack.cache
    if cache.hit_ratio is None:
        return ""
    if cache.read_in_bytes > cache.asked_bytes:
        return (
            f"It read {units.size(cache.asked_bytes)}, and {units.size(cache.read_in_bytes)} were "
            "read from the drive, including readahead, mapped files and loaded programs."
        )
    return (
        f"Of {units.size(cache.asked_bytes)} that it read, the page cache held "
        f"{units.percent(cache.hit_ratio)}."
    )


def _count(number: int, what: str) -> str:
    ending = "" if number == 1 else "es" if what.endswith("sh") else "s"
    return f"{number:,} {what}{ending}"


def _factor(value: float | None) -> str:
    return units.UNKNOWN if value is None else f"{value:.2f} x"


def _steps(stack: Stack) -> Section:
    figure = stack_figure(
        "stack",
        "Bytes at each layer",
        STEPS_CSV,
        list(_layers(stack)),
        alt="Bytes read and written by system calls, bios and requests to the drive",
    )
    meanings = "; ".join(
        f"{NAMES[step.name].lower()}: {MEANINGS[step.name]}" for step in stack.steps[1:]
    )
    intro = (
        f"System calls are those of the program on files below the root; {meanings}. Amplification "
        "counts bytes written for each byte that the program wrote."
    )
    return section("Layers", intro, _step_table(stack), figure)


def _step_table(stack: Stack) -> Table:
    def cells(step: Step) -> list[Value]:
        values: list[Value] = []
        for traffic in (step.reads, step.writes):
            values += [traffic.count, traffic.bytes, traffic.mean_bytes, traffic.sequential_share]
        discards = step.discards.bytes if step.discards.count else None
        return [*values, stack.amplification(step), step.syncs, discards]

    columns = (
        Column("count", kinds.NUMBER),
        Column("bytes", kinds.SIZE),
        Column("mean", kinds.SIZE),
        Column("sequential", kinds.shares(0)),
    )
    return table(
        "",
        (
            "Step",
            *columns,
            *columns,
            Column("amplification", kinds.decimals(2, "x")),
            Column("syncs, flushes", kinds.NUMBER),
            Column("discards", kinds.SIZE),
        ),
        [(NAMES[step.name], *cells(step)) for step in stack.steps],
        data=STEPS_CSV,
        groups=(("", 1), ("Reads", 4), ("Writes", 5), ("", 2)),
    )


def _layers(stack: Stack) -> Iterator[Layer]:
    for step in stack.steps:
        if step.name == "requests":
            parts = tuple(
                {kind: _bytes(stack, kind, op) for kind in _KINDS} for op in ("read", "write")
            )
        else:
            label = "by the program" if step.name == "calls" else "by the file system"
            parts = ({label: step.reads.bytes}, {label: step.writes.bytes})
        reads, writes = parts
        yield Layer(NAMES[step.name], (reads, writes), (_line(step.reads), _line(step.writes)))
        if step.name == "calls":
            yield _cache_layer(stack)


def _cache_layer(stack: Stack) -> Layer:
    """Return the section about I/O absorbed by the page cache.

    Absorbed I/O consists of read hits, and of writes that were overwritten before writeback.
    """
    cache, asked = stack.cache, stack.calls.writes.bytes
    hits = (cache.hit_ratio or 0.0) * cache.asked_bytes
    absorbed = max(0.0, asked - stack.written_bytes("data"))
    return Layer(
        "Page cache",
        ({_ABSORBED: hits} if hits else {}, {_ABSORBED: absorbed} if absorbed else {}),
        (
            _hits_text(cache),
            f"{units.percent(absorbed / asked)} absorbed" if asked else "",
        ),
    )


def _hits_text(cache: PageCache) -> str:
    if cache.hit_ratio is None:
        return ""
    if cache.read_in_bytes > cache.asked_bytes:
        return "more read than requested"
    return f"{units.percent(cache.hit_ratio)} hits"


def _bytes(stack: Stack, kind: str, op: str) -> float:
    return float(
        sum(
            row.traffic.bytes for row in stack.origins if row.op == op and row.name.startswith(kind)
        )
    )


def _line(traffic: Traffic) -> str:
    if not traffic.count:
        return "none"
    share = units.percent(traffic.sequential_share, 0)
    return f"{traffic.count:,} of {units.size(traffic.mean_bytes)}, {share} sequential"


def _origins(stack: Stack) -> Section:
    total = sum(row.traffic.bytes for row in stack.origins) or 1

    shown = Table.of(
        "",
        stack.origins,
        ("Origin", kinds.TEXT, lambda row: row.name),
        ("Requests", kinds.TEXT, lambda row: OPS[row.op]),
        ("Count", kinds.NUMBER, lambda row: row.traffic.count),
        ("Bytes", kinds.SIZE, lambda row: None if row.op == "fsync" else row.traffic.bytes),
        ("Share", kinds.shares(), lambda row: row.traffic.bytes / total),
        ("Mean size", kinds.SIZE, lambda row: row.traffic.mean_bytes),
        ("Sequential", kinds.shares(0), lambda row: row.traffic.sequential_share),
        ("Queue, median", kinds.LATENCY, lambda row: row.queue_p50_ns),
        ("Drive, median", kinds.LATENCY, lambda row: row.service_p50_ns),
        ("Drive, 99 %", kinds.LATENCY, lambda row: row.service_p99_ns),
        data=ORIGINS_CSV,
    )
    intro = (
        "The kernel writes back data that a program left in the page cache, either later or when "
        "the program syncs. The file system marks requests of metadata; its journal "
        "thread writes the journal."
    )
    return section("Origins of the requests", intro, shown)


def _written_lines(stack: Stack) -> list[Line]:
    names = {"calls": "calls", "data": "drive: data", "metadata": "drive: metadata",
             "journal": "drive: journal"}  # fmt: skip
    series = []
    for key, name in names.items():
        seconds, total = stack.written[key]
        if seconds:
            series.append(Line(name, [value * 1e9 for value in seconds], total))
    return series


def _time(stack: Stack) -> Section:
    figure = lines(
        "written",
        "Cumulative writes",
        WRITTEN_CSV,
        _written_lines(stack),
        Axis("Time", units.LATENCY_UNITS),
        Axis("Written", units.SIZE_UNITS),
        alt="Bytes written by calls and to the drive, over time",
    )
    ended = units.duration(stack.program_ns)
    intro = (
        f"The distance between the lines is the data in the page cache. The program ended after "
        f"{ended}; the rest was written back then."
    )
    return section("Over time", intro, figure)


def _sizes(stack: Stack) -> Section:
    rows = [
        (NAMES[step.name], direction, _size_text(traffic))
        for step in stack.steps
        for direction, traffic in (("reads", step.reads), ("writes", step.writes))
        if traffic.count
    ]
    shown = table("", ("Step", "", "Most frequent sizes"), rows, "lll", data=SIZES_CSV)
    return section("Sizes", "", shown)


def _size_text(traffic: Traffic) -> str:
    """Return the most frequent I/O sizes with their percentages."""
    return ", ".join(
        f"{units.block(size) if size % 512 == 0 else units.size(size)} "
        f"({units.percent(count / traffic.count)})"
        for size, count in traffic.sizes.items()
    )


def _conditions(stack: Stack) -> Section:
    where, cache = stack.file_system, stack.cache
    rows = [
        ("Command", shlex.join(stack.command)),
        ("Files below", stack.root),
        ("File system", f"{where['type']} on {where['path']}, mounted at {where['mount']}"),
        ("Device", f"{where['model'] or 'unknown'}, {units.size(where['size_bytes'])}, "
                   f"scheduler {where['scheduler']}"),
        ("Page cache", f"{cache.added_pages:,} pages of 4 KiB added, {cache.removed_pages:,} "
                       f"removed; a clean folio became dirty {cache.dirtied_folios:,} times; "
                       f"{units.size(cache.read_in_bytes)} read, of which "
                       f"{units.size(cache.readahead_bytes)} by readahead"),
    ]  # fmt: skip
    if (journal := stack.journal) is not None:
        rows.append(
            ("Journal", f"{_count(journal.commits, 'commit')} of {journal.handles:,} operations, "
                        f"{journal.blocks:,} blocks")
        )  # fmt: skip
    if (waits := stack.waits) is not None:
        rows.append(
            ("Call to drive", f"median {units.latency(waits.p50_ns)}, 90 % "
             f"{units.latency(waits.p90_ns)}, 99 % {units.latency(waits.p99_ns)}, maximum "
             f"{units.latency(waits.max_ns)}; for {waits.pages:,} of {waits.of_pages:,} pages. The "
             "others belong to deleted files or to calls that ended after their request")
        )  # fmt: skip
    return section("Conditions", "", table("", ("", ""), rows, "ll"))


def disclosures(stack: Stack) -> tuple[str, ...]:
    """Return the limitations that apply to the figures."""
    notes = [f"{note[:1].upper()}{note[1:]}." for note in stack.notes]
    if any(row.is_others and row.op in ("read", "write") for row in stack.origins):
        notes.append(
            "Other programs used the drive at the same time. Their direct requests have a "
            "separate row, but their data in the page cache is written back together with the "
            "program's data."
        )
    return tuple(notes)


def _data(stack: Stack) -> tuple[DataFile, ...]:
    steps: list[tuple[Value, ...]] = [
        (
            step.name, op, t.count, t.bytes, t.mean_bytes, t.median_bytes,
            t.sequential_share, stack.amplification(step) if op == "write" else None,
        )
        for step in stack.steps
        for op, t in (("read", step.reads), ("write", step.writes), ("discard", step.discards))
    ]  # fmt: skip
    steps += [(step.name, "sync", step.syncs, None, None, None, None, None) for step in stack.steps]
    head = ("step", "op", "count", "bytes", "mean_bytes", "median_bytes", "sequential_share",
            "write_amplification")  # fmt: skip
    origins = [
        (
            row.name, row.op, row.traffic.count, row.traffic.bytes, row.traffic.mean_bytes,
            row.traffic.sequential_share, row.queue_p50_ns, row.service_p50_ns,
            row.service_p99_ns,
        )
        for row in stack.origins
    ]  # fmt: skip
    origin_head = ("origin", "op", "count", "bytes", "mean_bytes", "sequential_share",
                   "queue_p50_ns", "service_p50_ns", "service_p99_ns")  # fmt: skip
    sizes = [
        (step.name, op, size, count)
        for step in stack.steps
        for op, traffic in (("read", step.reads), ("write", step.writes))
        for size, count in traffic.sizes.items()
    ]
    return (
        data_file(STEPS_CSV, head, steps),
        data_file(ORIGINS_CSV, origin_head, origins),
        data_file(SIZES_CSV, ("step", "op", "size_bytes", "count"), sizes),
        DataFile(WRITTEN_CSV, lines_csv(_written_lines(stack), "of", "time_ns", "bytes")),
    )


# -- drawing -----------------------------------------------------------------------------------


WIDTH_IN = 8.6  # Page width in inches.
_ROW_IN = 0.5
_LABELS_IN = 1.5  # Space to the left of the first panel, in inches.
_GAP_IN = 0.35
_BAR = 0.46
_ROOM = 1.02  # Axis length relative to the longest bar.


@dataclass(frozen=True)
class Layer:
    """A stack layer, with bytes by kind and a line of text for reads and for writes."""

    name: str
    parts: tuple[Mapping[str, float], Mapping[str, float]]
    text: tuple[str, str]


@house_style()
def stack_figure(
    name: str, title: str, data: Data, layers: Sequence[Layer], *, alt: str = ""
) -> Figure | None:
    """Return panels for reads and writes, with a bar per layer and the program at the top."""
    if not any(sum(part.values()) for layer in layers for part in layer.parts):
        return None
    height_in = 1.15 + _ROW_IN * len(layers)
    figure = style.new_figure(width_in=WIDTH_IN, height_in=height_in)
    labels = list(dict.fromkeys(label for layer in layers for p in layer.parts for label in p))
    looks = dict(zip(labels, colours.looks(labels), strict=True))
    width_in = (WIDTH_IN - _LABELS_IN - _GAP_IN - 0.1) / 2
    for number, what in enumerate(("Read", "Written")):
        left_in = _LABELS_IN + number * (width_in + _GAP_IN)
        box = (
            left_in / WIDTH_IN,
            0.46 / height_in,
            width_in / WIDTH_IN,
            1 - (0.46 + 0.42) / height_in,
        )
        plot = figure.add_axes(box)
        plot.set_facecolor("none")
        _panel(plot, layers, number, looks, what)
    handles = {
        label: handle
        for plot in figure.axes
        for handle, label in zip(*plot.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="upper left",
        bbox_to_anchor=(0.005, 1 - 0.02 / height_in),
        ncols=len(handles),
        borderaxespad=0.2,
    )
    return style.finished(figure, name, title, data, alt, wide=True)


def _panel(
    plot: Axes, layers: Sequence[Layer], number: int, looks: Mapping[str, int], what: str
) -> None:
    totals = [sum(layer.parts[number].values()) for layer in layers]
    unit = units.common_unit([max(totals)], units.SIZE_UNITS)
    rows = np.arange(len(layers))[::-1]
    left = np.zeros(len(layers))
    for label, look in looks.items():
        values = np.array([layer.parts[number].get(label, 0.0) for layer in layers]) / unit.size
        if not values.any():
            continue
        plot.barh(rows, values, _BAR, left=left, color=colours.colour(look), label=label)
        left += values
    for row, layer in zip(rows, layers, strict=True):
        plot.annotate(
            layer.text[number], (0, row + _BAR / 2), xytext=(1, 1.5), textcoords="offset points",
            va="bottom", ha="left", fontsize=7.5, color=style.MUTED,
        )  # fmt: skip
    plot.set_yticks(rows, [layer.name for layer in layers] if number == 0 else [])
    plot.tick_params(axis="y", length=0)
    write_label(plot.xaxis, Label(what, unit.name))
    plot.grid(True, axis="x")
    style.linear_axis(plot, "x")
    plot.set_xlim(0, max(float(left.max()), 1e-9) * _ROOM)
    plot.set_ylim(-0.5, len(layers) - 0.3)
