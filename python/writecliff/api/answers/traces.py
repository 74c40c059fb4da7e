"""Answers about ready-made workloads and block traces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from writecliff.api.answers.base import Answer, Item, Object


class ProfileJob(Item, frozen=True):
    """A job of a ready-made workload."""

    name: str  # Name of the job
    pattern: str  # Random or sequential
    read_pct: float  # Percentage of reads
    block_sizes: Sequence[Object]  # Sizes with their shares
    threads: int  # Number of threads
    rate_iops: float | None  # Arrival rate; `null`: as fast as the drive allows


class ListedProfile(Item, frozen=True):
    """A ready-made workload."""

    name: str  # Name of the profile
    title: str  # Description of the load
    source: str  # Source of its figures
    jobs: Sequence[ProfileJob]  # Jobs of the workload


class ProfileList(Answer, frozen=True, tag="writecliff/profile-list/1"):
    """The ready-made workloads."""

    commands = "profile list"

    profiles: Sequence[ListedProfile]  # Ready-made workloads


class Profile(Answer, frozen=True, tag="writecliff/profile/1"):
    """A ready-made workload."""

    commands = "profile show"

    name: str  # Name of the profile
    title: str  # Description of the load
    source: str  # Source of its figures
    jobs: Sequence[ProfileJob]  # Jobs of the workload


class Skipped(Item, frozen=True):
    """Lines that were skipped for one reason."""

    reason: str  # Reason for skipping the lines
    lines: int  # Number of lines
    first_line: int  # Number of the first such line, from 1
    expected: bool  # `true` if the format has such lines, `false`: damage


class TraceConverted(Answer, frozen=True, tag="writecliff/trace-convert/1"):
    """Conversion of a trace."""

    commands = "trace convert"

    trace: Path  # File that was read
    output: Path  # File that was written
    format: str  # Format of the file that was read
    written_as: str  # Format of the file that was written
    ios: int  # I/Os that were written
    left_out: int  # I/Os that the new format cannot express
    moved: int  # I/Os earlier than the I/O before them, whose time they got
    skipped_lines: int  # Lines (records in binary formats) that are not I/Os
    skipped: Sequence[Skipped]  # Skipped lines by reason
    notes: Sequence[str]  # Remarks


class TraceFormat(Item, frozen=True):
    """A format of traces."""

    name: str  # Name on the command line
    title: str  # Description of the format
    columns: Any  # Columns of a line
    units: Any  # Units of the columns
    written: bool  # `true` if `trace convert` can write it


class TraceFormats(Answer, frozen=True, tag="writecliff/trace-formats/1"):
    """The formats of traces."""

    commands = "trace formats"

    formats: Sequence[TraceFormat]  # Supported formats


class TraceExample(Item, frozen=True):
    """A captured trace that ships with writecliff."""

    name: str  # Name, used as `example:NAME`
    title: str  # Description of the load
    path: Path  # Path of the trace file
    bytes: int  # Size of the file


class TraceExamples(Answer, frozen=True, tag="writecliff/trace-examples/1"):
    """The captured traces that ship with writecliff."""

    commands = "trace examples"

    examples: Sequence[TraceExample]  # Example traces


class Characterised(Answer, frozen=True, tag="writecliff/characterise/1"):
    """The workload of a block trace."""

    commands = "characterise"

    trace: str  # Trace file
    format: str  # Format of the trace; several for an archive with several
    ios: int  # Number of I/Os
    read_pct: float | None  # Percentage of reads among reads and writes
    read_bytes: int  # Bytes that were read
    write_bytes: int  # Bytes that were written
    duration_s: float  # Time from the first arrival to the last
    operations: Object  # `ios` and `bytes` of `read`, `write`, `flush`, `discard`
    # Eight most frequent sizes, then all others (`size_bytes`: `null`): `ios`, `share_pct`,
    # `reads`, `writes`
    sizes: Sequence[Object]
    # I/O streams by share of the reads and writes: `access` (`random`, `sequential`),
    # `operation`, `size_bytes`, `share_pct`, `ios`; at most 32
    streams: Sequence[Object]
    # Percentage of reads and writes that start where one of the last 32 runs of their operation
    # and volume ended
    sequential_pct: float | None
    sequential: Object  # Percentage by operation: `read_pct`, `write_pct`
    alignment: Sequence[Object]  # `ios_pct` whose address and length are multiples of `bytes`
    # Outstanding I/Os at an arrival, itself included: `mean`, `p50`, `p90`, `p99`, `max`, `ios`,
    # `distribution` (depth, percentage); `null` without completions
    queue_depth: Object | None
    # Response times by operation: `count`, `mean`, `p50`, `p90`, `p99`, `p99_9`, `max`;
    # `points` (ms, cumulative percentage); `null` without completions
    response_ms: Object | None
    # `between_us`, `ios_per_s`, `peak_ios_per_s`, `peak_to_mean`, `index_of_dispersion`
    # (variance over mean) in windows of 1 s, `idle` periods (`at_least_ms`, `periods`,
    # `time_pct`), `idle_longest_ms`
    arrivals: Object
    unique_bytes: int  # Size of all 4 KiB blocks that were read or written
    # Unique bytes of reads and of writes, and their error: `sampled_one_in` blocks (1: exact),
    # `relative_error_pct` (one standard deviation)
    unique: Object
    # Traffic of the `blocks_pct` hottest blocks: `traffic_pct`, `read_pct`, `write_pct`
    hottest: Sequence[Object]
    # `distance_bytes`: reuse distance (SHARDS), `first_use_pct`, `hits`
    # (`hit_pct` of an LRU cache of `cache_bytes`)
    reuse: Object
    # Written blocks: `overwritten_pct`, `reads_of_written_pct`, and the update interval of a
    # block as `interval_s` and `interval_bytes`
    updates: Object
    content: Object | None  # Contents by hashes: `writes`, `distinct`, `duplicate_pct`
    intervals: Object  # Intervals of `length_s`: `rows` with counts, bytes and `working_set_bytes`
    volumes: Sequence[Object]  # All these figures by volume, busiest first; at most 1024
    volumes_total: int  # Number of volumes
    heat: Any  # I/Os by address (rows) and time (columns) of the 4 busiest volumes
    processes: Sequence[Object]  # `process`, `ios`, `bytes` of the busiest processes
    out_of_order: int  # I/Os earlier than the I/O before them
    # Demand on a drive: `writes_per_day_bytes`, `writes_per_year_bytes`,
    # `footprint_overwrites_per_day`, `read_not_written_bytes`, `replay` (with `--on`: `waf`,
    # `endurance_bytes`, `years`, ...)
    drive: Object
    against: Object | None  # All these figures of the trace of `--against`
    report: Path  # HTML report
    skipped_lines: int  # Lines (records in binary formats) that are not I/Os
    skipped: Sequence[Skipped]  # Skipped lines by reason
    notes: Sequence[str]  # Remarks


class Synthesised(Answer, frozen=True, tag="writecliff/synthesise/1"):
    """A workload synthesised from a trace."""

    commands = "trace synthesise"

    trace: str  # Trace file
    format: str  # Format of the trace; several for an archive with several
    ios: int  # I/Os of the trace in use, flushes included; also the I/Os of a pass
    duration_s: float  # Time from the first arrival to the last
    workload: Path  # Workload file that was written
    fio_job: Path  # fio job file that was written
    # Size of the model: `numbers` in all, `streams`, `states`, `transitions`, `phases`,
    # `periods`, `places`, or `sweeps` and `intervals`; `range_bytes` (address range of the
    # model), `span_bytes` (address range of the trace); `seed`
    model: Object
    # Trace and workload side by side: `name`, `unit`, `trace`, `synthetic`, `kind` of the
    # `difference` (percentage `points`, or `percent` of the trace's), `bound` (`null`: no
    # bound), `within`
    measures: Sequence[Object]
    missed: Sequence[str]  # Names of the measures outside their bound
    # With `--on`: `target`, `capacity_bytes`, `overprovision_pct`, `passes` on each of `drives`
    # drives (`settling` and `measured` without time, `timed_settling` and `timed`); of `trace`,
    # `synthetic` and `fio_job` (`null` if it cannot be replayed) `waf`, `iops`, `response_ns`
    # (`mean`, `p50`, `p99`, `p99_9`, `max`), `reads_p99_9_ns`, `writes_p99_9_ns`,
    # `waf_of_drives`, `p99_9_ns_of_drives`; `differences` in percent of the trace's,
    # `fio_job_differences`; `spread` of the drives under the trace, in percent of their mean;
    # `bounds`, `within`
    played: Object | None
    fio_notes: Sequence[str]  # Properties that fio's language cannot express
    report: Path  # HTML report
    skipped_lines: int  # Lines (records in binary formats) that are not I/Os
    skipped: Sequence[Skipped]  # Skipped lines by reason
    notes: Sequence[str]  # Remarks
