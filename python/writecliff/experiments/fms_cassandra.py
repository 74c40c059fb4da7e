"""Cassandra with and without streams, after Samsung at the Flash Memory Summit 2016.

The deck: Cassandra 3.5, cassandra-stress, half reads and half writes on one million records, a SAS
drive of 480 GB after 4 hours of writes; streams gave twice the lifetime and 45 % more I/O. Here a
real Cassandra (5.0 on the machine's Java) does the same kind of load through its own client, its
writes are captured with the files and threads that they come from, and laid on a simulated drive
that its files fill to a stated share, once in one stream and once by the assignment "Multi-Data"
(HotStorage 2014): commit log, flush, compaction in three tiers. Repeated until the drive has
settled; what is measured is reported, whatever it is.

The capture is kept as `fms-cassandra.parquet` in the folder of the call and used again from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.experiments import Tell
from writecliff.parallel import Task, run_side_by_side
from writecliff.replay.model import Laid, Replayed, Sizing, lay_out, replay

if TYPE_CHECKING:
    from writecliff.replay.columns import FileIO

TRACE = Path("fms-cassandra.parquet")
DEVICE = "sas-ms-480"
RULES = "cassandra"
RECORDS = 1_000_000
OPERATIONS = 1_000_000
FILLS_PCT = (50.0, 75.0, 85.0, 92.0)
# Reclaim units small and many against the files, as 480 GB are against a full-size Cassandra.
UNITS = 1024
CLAIM = "twice the lifetime and 45 % more I/O (Samsung, Flash Memory Summit 2016)"
CLAIMED_LIFETIME, CLAIMED_IO = 2.0, 1.45


@dataclass(frozen=True)
class Fill:
    """One share of the drive that files take at their peak; without and with streams."""

    fill_pct: float
    laid: Laid
    off: Replayed
    on: Replayed

    @property
    def lifetime_ratio(self) -> float:
        return self.off.waf / self.on.waf

    @property
    def io_ratio(self) -> float | None:
        """Reads and writes that the drive did beside each other; None without a timed part."""
        if not (self.off.timed_ns and self.on.timed_ns):
            return None
        return _io_rate(self.on) / _io_rate(self.off)


def _io_rate(done: Replayed) -> float:
    return (done.reads.count + done.writes.count) / done.timed_ns


@dataclass(frozen=True)
class Result:
    trace: Path
    captured_now: bool
    metadata: dict[str, Any]
    io: FileIO
    rows: tuple[Fill, ...]

    @property
    def precondition(self) -> str:
        rounds = ", ".join(f"{row.laid.blocks.rounds} at {row.fill_pct:g} %" for row in self.rows)
        return (
            "the capture repeated with fresh files until the drive is filled at least six times "
            f"(rounds: {rounds}); the second half is measured"
        )


def run(*, scale: float, tell: Tell) -> Result:
    """Capture (unless that was done), lay and replay. `scale` means nothing here: the drive is cut
    to the files. Raises TargetError where Java, Maven or the machine lacks what Cassandra needs."""
    from writecliff.capture.rules import load_rules
    from writecliff.capture.trace import read_trace
    from writecliff.replay.columns import file_io

    captured_now = not TRACE.exists()
    if captured_now:
        _capture(TRACE, tell)
    else:
        tell(f"using the capture in {TRACE}; remove it to capture anew")
    trace = read_trace(TRACE)
    io = file_io(trace.table, load_rules(RULES))
    rows = _compare(io, FILLS_PCT)
    return Result(TRACE, captured_now, dict(trace.metadata), io, rows)


def _capture(path: Path, tell: Tell) -> None:
    from writecliff.capture.apps import Size, run_app
    from writecliff.capture.run import Options

    run_app("cassandra", Options(output=path), Size(RECORDS, OPERATIONS), tell=tell)


def _compare(io: FileIO, fills_pct: Sequence[float]) -> tuple[Fill, ...]:
    """All cells side by side."""
    count = max(io.streams) + 1
    laid = [
        lay_out(io, f"sim:{DEVICE}", Sizing(fill_pct=fill, units=UNITS), streams=count)
        for fill in fills_pct
    ]

    def task(one: Laid, scheme: str, streams: int) -> Task[Replayed]:
        return Task(
            f"{scheme} with {streams} streams",
            one.memory_bytes,
            lambda: replay(one, scheme, streams, timed=True),
        )

    tasks = [task(one, *cell) for one in laid for cell in (("none", 1), ("rules", count))]
    done = run_side_by_side(tasks)
    return tuple(
        Fill(fill, one, done[2 * n], done[2 * n + 1])
        for n, (fill, one) in enumerate(zip(fills_pct, laid, strict=True))
    )
