"""The figures of the data-centre white paper's tests, read from a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from writecliff.procedures.campaigns.datacentre import Datacentre
from writecliff.procedures.model import StepRow
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
from writecliff.units import KIB

if TYPE_CHECKING:
    from writecliff._native import Histogram


def results(steps: Steps) -> list[Result]:
    """All figures, in the order of the parts."""
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
    """What a result of a single access is of."""
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
    found = known_results((("iops", row.iops, "IOPS", True),), **of)
    for operation in ("read", "write"):
        iops = steps.iops(row, operation)
        if iops:
            found += known_results(((f"{operation}_iops", iops, "IOPS", True),), **of)
            found += latency_results(steps, row, of, operation, prefix=f"{operation}_")
            steady = mix_consistency_pct(steps, row, operation)
            found += known_results(((f"{operation}_iops_consistency", steady, "%", True),), **of)
    return [*found, *latency_results(steps, row, of)]


def mix_consistency_pct(steps: Steps, row: StepRow, operation: str) -> float | None:
    """IOPS consistency of one operation of a mix; None where the step has too few seconds."""
    seconds = seconds_of(steps.data, [row], oio_of(row) or 1, operation)
    return seconds.consistency_pct if len(seconds) >= SECONDS_LEAST else None


@dataclass(frozen=True)
class Load:
    """One load of the part "consistency", or the reads or writes of a mixed one."""

    row: StepRow
    seconds: Seconds
    operation: str | None = None  # None: all of the load

    @property
    def label(self) -> str:
        """ "RND 4KiB 70/30 QD32, reads"."""
        return f"{self.row.label}, {self.operation}s" if self.operation else self.row.label


def loads(steps: Steps) -> Sequence[Load]:
    """The loads of the part "consistency", reads and writes of a mixed one apart."""
    return [
        Load(row, seconds_of(steps.data, [row], oio_of(row) or 1, operation), operation)
        for row in steps.data.stage_rows("consistency")
        for operation in ((None,) if row.read_pct in (0.0, 100.0) else ("read", "write"))
    ]


def _consistency(steps: Steps) -> list[Result]:
    found = []
    for load in loads(steps):
        of = f"{load.operation}_" if load.operation else ""
        figures = (
            (f"{of}iops", load.seconds.average, "IOPS", True),
            (f"{of}iops_stddev", load.seconds.deviation, "IOPS", False),
            (f"{of}iops_p99.9", load.seconds.slow, "IOPS", True),
            (f"{of}iops_consistency", load.seconds.consistency_pct, "%", True),
        )
        found += known_results(figures, **_access("consistency", load.row))
    return found


@dataclass(frozen=True)
class Messenger:
    """The messenger service: the writer, and its readers one by one."""

    seconds: float
    writer: Histogram | None
    readers: Sequence[Histogram]

    def iops(self, histogram: Histogram) -> float:
        """IOPS of a thread."""
        return histogram.count / self.seconds

    @property
    def reader_iops(self) -> float:
        """IOPS of a reader, averaged over the threads."""
        return fmean(self.iops(reader) for reader in self.readers)

    def readers_ns(self, q: float | None) -> float | None:
        """A statistic averaged over the readers; None if one of them has too few samples."""
        values = [statistic(reader, q) for reader in self.readers]
        known = [value for value in values if value is not None]
        return fmean(known) if len(known) == len(values) else None

    def writer_ns(self, q: float | None) -> float | None:
        """A statistic of the writer."""
        return statistic(self.writer, q)


def messenger(steps: Steps) -> Messenger | None:
    """None: the run has none, or no reader completed an I/O."""
    rows = steps.data.stage_rows("messenger")
    if not rows:
        return None
    found = steps.data.run.histograms_by_job(steps.data.seq(rows[0]))
    readers = [histogram for name, histogram in found.items() if name != "writer"]
    if not readers:
        return None
    return Messenger(rows[0].elapsed_ns / 1e9, found.get("writer"), readers)


def _messenger(steps: Steps) -> list[Result]:
    found = messenger(steps)
    if found is None:
        return []
    of: dict[str, Any] = {"item": "messenger", "access": "messenger"}
    read = ("read_iops_per_thread", found.reader_iops, "IOPS", True)
    write = ("write_iops", found.iops(found.writer) if found.writer else None, "IOPS", True)
    results = known_results((read,), block_kib=4.0, read_pct=100.0, **of)
    results += known_results((write,), block_kib=512.0, read_pct=0.0, **of)
    for kind, value_ns in (("read", found.readers_ns), ("write", found.writer_ns)):
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
    """Profile and queue depth of a step of the servers."""
    procedure = steps.data.procedure
    assert isinstance(procedure, Datacentre)
    return procedure.servers[row.step - 1]
