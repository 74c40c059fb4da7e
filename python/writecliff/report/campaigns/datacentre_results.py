"""Figures for the data-centre white paper's tests, read from a run, and their grids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.procedures.campaigns.datacentre import Datacentre
from writecliff.procedures.model import StepRow
from writecliff.procedures.pts import mix_text
from writecliff.report.axes import depth_axis
from writecliff.report.campaigns.results import (
    MS,
    STATISTICS,
    Result,
    Steps,
    known_results,
    latency_results,
    oio_of,
    statistic,
)
from writecliff.report.campaigns.seconds import SECONDS_LEAST, Seconds, seconds_of
from writecliff.report.compared import Grid
from writecliff.units import KIB

if TYPE_CHECKING:
    from writecliff._native import Histogram


def results(steps: Steps) -> list[Result]:
    """Return all figures, ordered by test part."""
    rows = steps.data.stage_rows
    return [
        *(
            r
            for phase in ("sequential", "basic")
            for row in rows(phase)
            for r in _basic(steps, row)
        ),
        *(r for row in rows("mixes") for r in _mix(steps, row)),
        *_consistency(steps),
        *_messenger(steps),
        *(r for row in rows("servers") for r in _server(steps, row)),
    ]


def _access(item: str, row: StepRow) -> dict[str, Any]:
    """Return the result fields of a single access."""
    return {
        "item": item,
        "access": row.pattern or "",
        "block_kib": row.block_bytes / KIB if row.block_bytes else None,
        "read_pct": row.read_pct,
        "oio": oio_of(row),
    }


def _basic(steps: Steps, row: StepRow) -> list[Result]:
    of = _access("basic", row)
    speed = ("iops", row.iops, "IOPS", True)
    if row.pattern == "sequential":
        speed = ("throughput", row.bytes_per_s / 1e6, "MB/s", True)
    return [*known_results((speed,), **of), *latency_results(steps, row, of)]


def _mix(steps: Steps, row: StepRow) -> list[Result]:
    of = _access("mixes", row)
    results = known_results((("iops", row.iops, "IOPS", True),), **of)
    for operation in ("read", "write"):
        iops = steps.iops(row, operation)
        if iops:
            results += known_results(((f"{operation}_iops", iops, "IOPS", True),), **of)
            results += latency_results(steps, row, of, operation, prefix=f"{operation}_")
            steady = mix_consistency_pct(steps, row, operation)
            results += known_results(((f"{operation}_iops_consistency", steady, "%", True),), **of)
    return [*results, *latency_results(steps, row, of)]


def mix_consistency_pct(steps: Steps, row: StepRow, operation: str) -> float | None:
    """Return an operation's IOPS consistency in a mix; None for too few seconds."""
    seconds = seconds_of(steps.data, [row], oio_of(row) or 1, operation)
    return seconds.consistency_pct if len(seconds) >= SECONDS_LEAST else None


@dataclass(frozen=True)
class Load:
    """A load of the "consistency" part, or the reads or writes of a mixed load."""

    row: StepRow
    seconds: Seconds
    operation: str | None = None  # Operation; `None` for the whole load.

    @property
    def label(self) -> str:
        """Description of the load, such as "RND 4KiB 70/30 QD32, reads"."""
        return f"{self.row.label}, {self.operation}s" if self.operation else self.row.label


def loads(steps: Steps) -> Sequence[Load]:
    """Return the loads of the "consistency" part, including the reads and writes of mixes."""
    return [
        Load(row, seconds_of(steps.data, [row], oio_of(row) or 1, operation), operation)
        for row in steps.data.stage_rows("consistency")
        for operation in ((None,) if row.read_pct in (0.0, 100.0) else ("read", "write"))
    ]


def _consistency(steps: Steps) -> list[Result]:
    results = []
    for load in loads(steps):
        of = f"{load.operation}_" if load.operation else ""
        figures = (
            (f"{of}iops", load.seconds.average, "IOPS", True),
            (f"{of}iops_stddev", load.seconds.deviation, "IOPS", False),
            (f"{of}iops_p99.9", load.seconds.slow, "IOPS", True),
            (f"{of}iops_consistency", load.seconds.consistency_pct, "%", True),
        )
        results += known_results(figures, **_access("consistency", load.row))
    return results


@dataclass(frozen=True)
class Messenger:
    """The messenger service, with its writer and its readers."""

    seconds: float
    writer: Histogram | None
    readers: Sequence[Histogram]

    def iops(self, histogram: Histogram) -> float:
        """Return a thread's IOPS."""
        return histogram.count / self.seconds

    @property
    def reader_iops(self) -> float:
        """IOPS of a reader, averaged over the threads."""
        return fmean(self.iops(reader) for reader in self.readers)

    def readers_ns(self, q: float | None) -> float | None:
        """Return a statistic in ns averaged over the readers; None for too few samples."""
        values = [statistic(reader, q) for reader in self.readers]
        measured = [value for value in values if value is not None]
        return fmean(measured) if len(measured) == len(values) else None

    def writer_ns(self, q: float | None) -> float | None:
        """Return a writer statistic in ns."""
        return statistic(self.writer, q)


def messenger(steps: Steps) -> Messenger | None:
    """Return the messenger service, or None if it did not run or no reader completed an I/O."""
    rows = steps.data.stage_rows("messenger")
    if not rows:
        return None
    histograms_by_job = steps.data.run.histograms_by_job(steps.data.seq(rows[0]))
    readers = [histogram for name, histogram in histograms_by_job.items() if name != "writer"]
    if not readers:
        return None
    return Messenger(rows[0].elapsed_ns / 1e9, histograms_by_job.get("writer"), readers)


def _messenger(steps: Steps) -> list[Result]:
    limits = messenger(steps)
    if limits is None:
        return []
    of: dict[str, Any] = {"item": "messenger", "access": "messenger"}
    read = ("read_iops_per_thread", limits.reader_iops, "IOPS", True)
    write = ("write_iops", limits.iops(limits.writer) if limits.writer else None, "IOPS", True)
    results = known_results((read,), block_kib=4.0, read_pct=100.0, **of)
    results += known_results((write,), block_kib=512.0, read_pct=0.0, **of)
    for kind, value_ns in (("read", limits.readers_ns), ("write", limits.writer_ns)):
        for name, q in STATISTICS:
            value = value_ns(q)
            shown = None if value is None else value / MS
            results += known_results(((f"{kind}_latency_{name}", shown, "ms", False),), **of)
    return results


def _server(steps: Steps, row: StepRow) -> list[Result]:
    name, depth = profile_and_depth(steps, row)
    of: dict[str, Any] = {"item": "servers", "access": name, "oio": depth}
    figures = (
        ("iops", row.iops, "IOPS", True),
        ("throughput", row.bytes_per_s / 1e6, "MB/s", True),
    )
    return [*known_results(figures, **of), *latency_results(steps, row, of)]


def profile_and_depth(steps: Steps, row: StepRow) -> tuple[str, int]:
    """Return a server step's profile and queue depth."""
    procedure = steps.data.procedure
    assert isinstance(procedure, Datacentre)
    return procedure.servers[row.step - 1]


# -- comparison grids --------------------------------------------------------------------------
#
# Grids in the PM863 white paper (2015): mixes by queue depth with reads and writes separate (tables
# 4 to 11), messenger (figure 6), servers (figures 7 to 10).


Value = Callable[[StepRow], float | None]
# Operations, each with the read percentage that excludes it.
OPERATIONS = {"read": 0.0, "write": 100.0}
_SLOW = (("p999", "99.9 %", 0.999), ("p9999", "99.99 %", 0.9999), ("max", "Maximum", 1.0))
_NINES = (0.99, 0.999, 0.9999)


def mix_cells(steps: Steps) -> Sequence[StepRow]:
    """Return the steps of the "mixes" part that ran at every queue depth.

    Only steps with the first block size are returned.
    """
    rows = steps.data.stage_rows("mixes")
    return [row for row in rows if row.block_bytes == rows[0].block_bytes]


def datacentre_grids(steps: Steps) -> list[Grid]:
    """Return the grids of the test parts that ran."""
    return [*_mixes(steps), *_messenger_grids(steps), *_servers(steps)]


def _mixes(steps: Steps) -> Iterator[Grid]:
    cells = mix_cells(steps)
    for operation, none in OPERATIONS.items():
        rows, name = [row for row in cells if row.read_pct != none], operation.capitalize()
        if rows:
            speed = partial(steps.iops, operation=operation)
            yield _mix_grid(f"{operation}-iops", f"{name} IOPS", rows, speed, "IOPS")
            for key, title, q in _SLOW:
                slow = partial(_latency_ms, steps, q=q, operation=operation)
                full = f"{title} response time of {operation}s"
                yield _mix_grid(f"{operation}-{key}", full, rows, slow, "ms")
    for operation in OPERATIONS:
        yield consistency_grid(steps, operation)


def consistency_grid(steps: Steps, operation: str) -> Grid:
    """Return an operation's IOPS consistency by mix and queue depth.

    The result is empty if the steps are too short.
    """
    rows = [row for row in mix_cells(steps) if row.read_pct != OPERATIONS[operation]]
    value = partial(mix_consistency_pct, steps, operation=operation)
    return _mix_grid(
        f"{operation}-consistency", f"IOPS consistency of {operation}s", rows, value, "%"
    )


def _latency_ms(steps: Steps, row: StepRow, q: float | None, operation: str | None) -> float | None:
    value = steps.latency_ns(row, q, operation)
    return None if value is None else value / MS


def _mix_grid(name: str, title: str, rows: Sequence[StepRow], value: Value, unit: str) -> Grid:
    """Return a grid of queue depths and mixes."""
    grid = {(str(row.queue_depth), mix_text(row.read_pct or 0.0)): value(row) for row in rows}
    return Grid(
        name=f"mixes-{name}",
        title=f"{title} by mix and queue depth",
        corner="QD, R/W",
        rows=sorted({depth for depth, _ in grid}, key=int),
        columns=list(dict.fromkeys(mix for _, mix in grid)),
        values={key: number for key, number in grid.items() if number is not None},
        unit=unit,
        higher_is_better=unit != "ms",
    )


def _messenger_grids(steps: Steps) -> Iterator[Grid]:
    limits = messenger(steps)
    if limits is None:
        return
    yield Grid(
        name="messenger-iops",
        title="Messenger service: read IOPS of a thread",
        corner="",
        rows=["Readers"],
        columns=["Read IOPS"],
        values={("Readers", "Read IOPS"): limits.reader_iops},
        unit="IOPS",
        higher_is_better=True,
        drawn="bars",
    )
    slow = {units.nines(q): limits.readers_ns(q) for q in _NINES}
    yield Grid(
        name="messenger-latency",
        title="Messenger service: response times of reads",
        corner="Percentile",
        rows=list(slow),
        columns=["Response time"],
        values={(q, "Response time"): ns / MS for q, ns in slow.items() if ns is not None},
        unit="ms",
        higher_is_better=False,
        drawn="bars",
    )


def _servers(steps: Steps) -> Iterator[Grid]:
    rows = steps.data.stage_rows("servers")
    if not rows:
        return
    loads = [(*profile_and_depth(steps, row), row) for row in rows]
    depths = sorted({depth for _, depth, _ in loads})
    kinds: tuple[tuple[str, str, Value, str], ...] = (
        ("iops", "IOPS of servers", steps.iops, "IOPS"),
        ("latency", "Average response time of servers",
         partial(_latency_ms, steps, q=None, operation=None), "ms"),
    )  # fmt: skip
    for name, title, value, unit in kinds:
        values = {(str(depth), profile): value(row) for profile, depth, row in loads}
        yield Grid(
            name=f"servers-{name}",
            title=title,
            corner="QD",
            rows=[str(depth) for depth in depths],
            columns=list(dict.fromkeys(profile for profile, _, _ in loads)),
            values={key: number for key, number in values.items() if number is not None},
            unit=unit,
            higher_is_better=unit != "ms",
            drawn="lines",
            x=depth_axis(depths),
            places=[float(depth) for depth in depths],
        )
