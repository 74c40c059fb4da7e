"""Cassandra with and without streams, after Samsung at the Flash Memory Summit 2016.

The deck: The presentation describes Cassandra 3.5 and cassandra-stress with half reads and half
writes on one million records, on a 480 GB SAS drive after 4 hours of writes. Streams doubled the
lifetime and increased I/O by 45 %. The presentation does not state the drive's fill, the use of
TRIM, or the table size relative to reclaim units, so this experiment varies all three. A real
Cassandra (5.0 on the machine's Java) runs the same kind of load through its own client, after a
write-only phase. Cassandra's writes are captured with their files and threads. The captured writes
are replayed on simulated drives sized for the files, once in one stream and once with the
assignment "Multi-Data" (HotStorage 2014): commit log, flush, compaction in three tiers.

The capture is stored as `fms-cassandra.parquet` in the current folder and reused in later runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.errors import ConfigError
from writecliff.lab.experiments import Log
from writecliff.parallel import Task, map_side_by_side, run_side_by_side
from writecliff.replay.model import Replayed, ReplaySetup, Sizing, lay_out, replay
from writecliff.replay.summary import stream_rows

if TYPE_CHECKING:
    from writecliff.capture.rules import Rules
    from writecliff.capture.trace import Trace
    from writecliff.replay.columns import FileIO

TRACE = Path("fms-cassandra.parquet")
DEVICE = "sas-ms-480"
RULES = "cassandra"
RECORDS = 1_000_000
UPDATES = 4_000_000
OPERATIONS = 1_000_000
# Conditions that the slide deck does not state.
FILLS_PCT = (50.0, 70.0, 80.0, 90.0, 95.0)
ALLOCATORS = ("next-fit", "first-fit", "folders")
# Reclaim unit sizes other than 1, in flushed tables, by number of nodes on the drive. They are
# compared at a single fill level. The files of one node leave too few larger units for streams and
# garbage collection.
UNIT_SHARES = {1: (0.25, 0.5), 4: (0.25, 0.5, 2.0, 4.0)}
UNIT_FILL_PCT = 90.0
# Stream assignments, which merge streams of the rules. Names in parentheses are those of the
# HotStorage 2014 paper.
ORACLE = "oracle"
ASSIGNMENTS: dict[str, dict[int, int]] = {
    "one stream": {1: 0, 2: 0, 3: 0, 4: 0, 5: 0},
    "commit log apart (Multi-Log)": {2: 0, 3: 0, 4: 0, 5: 0},
    "commit log, flush, compaction": {4: 3, 5: 3},
    "the same, compaction in three tiers (Multi-Data)": {},
}
DRIVE_WRITES = 24.0
# The commit log is written with direct I/O, and most other files are synced.
WRITEBACK = "immediate"
TIMED_BYTES = 2 << 30  # Volume of 1.2 million reads, which suffices for the 99.99th percentile.
# Number of outstanding requests, equal to a node's number of read threads (concurrent_reads).
QUEUE_DEPTH, READERS = 32, 32
BLOCK_BYTES = 4096
MEMORY_BYTES = 256 << 20  # Memory for the requests of one trace, in addition to the drive's memory.
CLAIM = "twice the lifetime and 45 % more I/O (Samsung, Flash Memory Summit 2016)"
CLAIMED_LIFETIME, CLAIMED_IO = 2.0, 1.45


@dataclass(frozen=True, order=True)
class Case:
    """A set of test conditions. `unit_share` is the reclaim unit size, in flushed tables."""

    nodes: int
    trim: bool
    allocator: str
    fill_pct: float
    unit_share: float = 1.0


@dataclass(frozen=True)
class Side:
    """Measurements of a drive with or without streams."""

    waf: float
    waf_drift: float | None  # Change between the third and the fourth quarter of the writes.
    mapped_bytes: int  # Valid data on the drive after the replay, in bytes.
    mixed_bytes_per_s: float  # Write rate while every client read reaches the drive.
    write_bytes_per_s: float  # Write rate while caches serve all reads.
    read_p9999_ns: int | None


@dataclass(frozen=True)
class Row:
    """A set of conditions, measured with and without streams on the same drive."""

    case: Case
    capacity_bytes: int
    units: int
    unit_bytes: float
    rounds: int
    replayed_bytes: int
    mean_fill_pct: float
    off: Side
    on: Side
    by_stream: tuple[dict[str, Any], ...]  # Results by stream, if streams are used.

    @property
    def lifetime_ratio(self) -> float:
        """Lifetime with streams divided by lifetime without streams."""
        return self.off.waf / self.on.waf

    @property
    def io_ratio(self) -> float:
        """Ratio of the client's operations if every read reaches the drive."""
        return self.on.mixed_bytes_per_s / self.off.mixed_bytes_per_s

    @property
    def io_ratio_cached(self) -> float:
        """Ratio of the client's operations if caches serve all reads."""
        return self.on.write_bytes_per_s / self.off.write_bytes_per_s


@dataclass(frozen=True)
class Assigned:
    """Write amplification under a set of conditions, by assignment."""

    case: Case
    waf: dict[str, float]


@dataclass(frozen=True)
class Load:
    """A capture, and the characteristics of its load."""

    io: FileIO
    table_bytes: int  # Size of a flushed memtable, in bytes.
    reads_per_block: float  # Client reads per 4 KiB that the node writes.


@dataclass(frozen=True)
class Result:
    """A capture, and its replays under all conditions."""

    trace: Path
    captured_now: bool
    metadata: dict[str, Any]
    load: Load
    rows: tuple[Row, ...]
    assigned: tuple[Assigned, ...]

    @property
    def precondition(self) -> str:
        """Description of the drives' state before the measurement."""
        return (
            f"the capture repeated until the drive is written at least {DRIVE_WRITES:g} times, "
            "each round in new files that replace those of the round before; the second half is "
            "measured"
        )


def run(*, scale: float, log: Log) -> Result:
    """Capture the load, unless a capture already exists, and replay it.

    Args:
        scale: Ignored scale factor, because the drive is sized for the files.
        log: Function called with progress messages.

    Raises:
        TargetError: If Java or Maven is missing.
        ConfigError: If the capture belongs to another load.
    """
    from writecliff.capture.rules import load_rules
    from writecliff.capture.trace import read_trace

    captured_now = not TRACE.exists()
    if captured_now:
        _capture(TRACE, log)
    else:
        log(f"using the capture in {TRACE}; remove the file to capture again")
    trace, rules = read_trace(TRACE), load_rules(RULES)
    load = load_of(trace, rules)
    rows = compare(load, cases(), log)
    log("replaying coarser assignments and an oracle")
    assigned = tuple(
        assignments(trace, rules, load, Case(nodes, trim, ALLOCATORS[0], UNIT_FILL_PCT))
        for nodes in UNIT_SHARES
        for trim in (True, False)
    )
    return Result(TRACE, captured_now, dict(trace.metadata), load, rows, assigned)


def _capture(path: Path, log: Log) -> None:
    from writecliff.capture.apps import Size, run_app
    from writecliff.capture.run import Options

    run_app("cassandra", Options(output=path), Size(RECORDS, OPERATIONS, UPDATES), log=log)


def load_of(trace: Trace, rules: Rules) -> Load:
    """Return the load of a capture.

    Raises:
        ConfigError: If the capture has no load data, or no flushed tables.
    """
    from writecliff.replay.columns import file_io

    size = trace.metadata.get("load")
    if not size:
        raise ConfigError(
            "the capture does not record its number of records and operations",
            hint="remove the file to capture Cassandra again",
        )
    io = file_io(trace.table, rules)
    written = io.native.footprint(WRITEBACK)["written_bytes"]
    # Half of the operations are writes, and each other operation reads once.
    writes = size["records"] + size["updates"] + size["operations"] / 2
    return Load(io, _table_bytes(trace, rules), writes / (written / BLOCK_BYTES))


def _table_bytes(trace: Trace, rules: Rules) -> int:
    """Median data size of a flushed memtable."""
    import numpy as np
    import pyarrow.compute as pc

    flush = next(n for n, name in rules.streams.items() if name == "flush")
    table = trace.table
    data = pc.and_(pc.equal(table.column("op"), "write"),
                   pc.ends_with(table.column("path").cast("string"), "-Data.db"))  # fmt: skip
    mask = data.to_numpy(zero_copy_only=False) & (rules.assign(table) == flush)
    file = table.column("file").to_numpy()[mask]
    end = (table.column("offset_bytes").to_numpy() + table.column("length_bytes").to_numpy())[mask]
    if not len(file):
        raise ConfigError("the capture contains no flushed tables", hint="capture a longer load")
    sizes = np.zeros(int(file.max()) + 1, np.int64)
    np.maximum.at(sizes, file, end)
    # Flushes of system tables write a few kilobytes each, which would distort the median.
    large = sizes[sizes >= sizes.max() / 4]
    return int(np.median(large))


def cases() -> Iterator[Case]:
    """Iterate over all conditions.

    The conditions are every fill, with and without TRIM, under each allocator, with one node and
    with several, followed by the reclaim unit sizes at a single fill.
    """
    for nodes, shares in UNIT_SHARES.items():
        for trim in (True, False):
            for allocator in ALLOCATORS:
                for fill in FILLS_PCT:
                    yield Case(nodes, trim, allocator, fill)
            for share in shares:
                yield Case(nodes, trim, ALLOCATORS[0], UNIT_FILL_PCT, share)


def compare(load: Load, wanted: Sequence[Case] | Iterator[Case], log: Log) -> tuple[Row, ...]:
    """Replay all cases in parallel."""
    memory = {case: _memory_bytes(load, case) for case in wanted}
    log(f"{len(memory)} sets of conditions, without and with streams")
    return tuple(
        run_side_by_side(
            [
                Task(f"{case.nodes} nodes, {case.fill_pct:g} %", size, partial(_row, load, case))
                for case, size in memory.items()
            ]
        )
    )


def _sizing(load: Load, case: Case) -> Sizing:
    return Sizing(
        fill_pct=case.fill_pct,
        unit_bytes=case.unit_share * load.table_bytes,
        fills=DRIVE_WRITES,
        writeback=WRITEBACK,
        allocator=case.allocator,
        trim=case.trim,
        copies=case.nodes,
    )


def _memory_bytes(load: Load, case: Case) -> int:
    from writecliff.parallel import drive_memory_bytes

    peak = load.io.native.footprint(WRITEBACK, case.nodes)["peak_bytes"]
    capacity = round(peak / case.fill_pct * 100)
    return drive_memory_bytes(2 * capacity, 2 * capacity) + MEMORY_BYTES


def _row(load: Load, case: Case) -> Row:
    streams = max(load.io.streams) + 1
    setup = lay_out(load.io, f"sim:{DEVICE}", _sizing(load, case), streams=streams)
    off, _ = _side(load, setup, "none", 1)
    on, done = _side(load, setup, "rules", streams)
    return Row(
        case=case,
        capacity_bytes=setup.simulated.capacity_bytes,
        units=setup.simulated.reclaim_units or 0,
        unit_bytes=setup.unit_bytes,
        rounds=setup.blocks.rounds,
        replayed_bytes=setup.blocks.written_bytes,
        mean_fill_pct=setup.mean_fill_pct,
        off=off,
        on=on,
        by_stream=tuple(stream_rows(setup, done)),
    )


def _side(load: Load, setup: ReplaySetup, scheme: str, streams: int) -> tuple[Side, Replayed]:
    timed = partial(
        replay, setup, scheme, streams, timed=True, queue_depth=QUEUE_DEPTH, timed_bytes=TIMED_BYTES
    )
    mixed = timed(readers=READERS, reads_per_block=load.reads_per_block)
    alone = timed(readers=0)
    side = Side(
        waf=mixed.waf,
        waf_drift=mixed.waf_drift,
        mapped_bytes=mixed.mapped_bytes,
        mixed_bytes_per_s=mixed.timed_written_bytes / mixed.timed_ns * 1e9,
        write_bytes_per_s=alone.timed_written_bytes / alone.timed_ns * 1e9,
        read_p9999_ns=mixed.read_p9999_ns,
    )
    return side, mixed


def assignments(trace: Trace, rules: Rules, load: Load, case: Case) -> Assigned:
    """Return the write amplification with increasingly detailed assignments, and an oracle.

    The oracle knows when data become invalid, and has as many streams as the most detailed
    assignment.
    """
    from writecliff.replay.columns import file_io

    streams = max(load.io.streams) + 1
    runs = []
    for merged in ASSIGNMENTS.values():
        coarser = tuple(replace(r, stream=merged.get(r.stream, r.stream)) for r in rules.rules)
        io = file_io(trace.table, replace(rules, rules=coarser))
        runs.append((replace(load, io=io), case, "rules", streams))
    runs.append((load, case, "oracle", streams))
    wafs = map_side_by_side(_waf, runs, _memory_bytes(load, case))
    return Assigned(case, dict(zip((*ASSIGNMENTS, ORACLE), wafs, strict=True)))


def _waf(load: Load, case: Case, scheme: str, streams: int) -> float:
    setup = lay_out(load.io, f"sim:{DEVICE}", _sizing(load, case), streams=streams)
    return replay(setup, scheme, streams).waf
