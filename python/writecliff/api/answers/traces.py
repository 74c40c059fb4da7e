"""JSON output about ready-made workloads and block traces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from writecliff.api.answers.base import Answer, Item, Object


class ProfileJob(Item, frozen=True):
    """A job in a ready-made workload."""

    name: str  # Job name
    pattern: str  # Access pattern: random or sequential
    read_pct: float  # Percentage of reads
    block_sizes: Sequence[Object]  # I/O sizes and their frequencies
    threads: int  # Number of threads
    rate_iops: float | None  # Arrival rate; `null` if I/Os are issued as fast as the drive allows


class ListedProfile(Item, frozen=True):
    """A ready-made workload."""

    name: str  # Profile name
    title: str  # Workload description
    source: str  # Source of the workload figures
    jobs: Sequence[ProfileJob]  # Jobs in the workload


class ProfileList(Answer, frozen=True, tag="writecliff/profile-list/1"):
    """The ready-made workloads."""

    commands = "profile list"

    profiles: Sequence[ListedProfile]  # Ready-made workloads


class Profile(Answer, frozen=True, tag="writecliff/profile/1"):
    """A ready-made workload."""

    commands = "profile show"

    name: str  # Profile name
    title: str  # Workload description
    source: str  # Source of the workload figures
    jobs: Sequence[ProfileJob]  # Jobs in the workload


class Skipped(Item, frozen=True):
    """Lines that were skipped for the same reason."""

    reason: str  # Reason why the lines were skipped
    lines: int  # Number of skipped lines
    first_line: int  # Number of the first skipped line, counted from 1
    expected: bool  # `true` if the format allows such lines, `false` if they are damage


class TraceConverted(Answer, frozen=True, tag="writecliff/trace-convert/1"):
    """Result of a trace conversion."""

    commands = "trace convert"

    trace: Path  # Input file
    output: Path  # Output file
    format: str  # Input file format
    written_as: str  # Output file format
    ios: int  # Number of I/Os written
    left_out: int  # Number of I/Os that the output format cannot express
    moved: int  # Number of I/Os that preceded the previous I/O in time and received its time
    skipped_lines: int  # Number of lines (or binary records) that are not I/Os
    skipped: Sequence[Skipped]  # Numbers of skipped lines, by reason
    notes: Sequence[str]  # Remarks


class TraceFormat(Item, frozen=True):
    """A trace format."""

    name: str  # Command-line name
    title: str  # Format description
    columns: Any  # Columns in each line
    units: Any  # Column units
    written: bool  # `true` if `trace convert` can write the format


class TraceFormats(Answer, frozen=True, tag="writecliff/trace-formats/1"):
    """The supported trace formats."""

    commands = "trace formats"

    formats: Sequence[TraceFormat]  # Supported formats


class TraceExample(Item, frozen=True):
    """A captured trace that ships with writecliff."""

    name: str  # Name, for use as `example:NAME`
    title: str  # Workload description
    path: Path  # Path of the trace file
    bytes: int  # File size


class TraceExamples(Answer, frozen=True, tag="writecliff/trace-examples/1"):
    """The captured traces that ship with writecliff."""

    commands = "trace examples"

    examples: Sequence[TraceExample]  # Example traces


class Characterised(Answer, frozen=True, tag="writecliff/characterise/1"):
    """Characteristics of the workload in a block trace."""

    commands = "characterise"

    trace: str  # Trace file
    format: str  # Trace format; several formats if an archive contains different traces
    ios: int  # Number of I/Os
    read_pct: float | None  # Percentage of reads among all reads and writes
    read_bytes: int  # Bytes read
    write_bytes: int  # Bytes written
    duration_s: float  # Time from the first to the last arrival, in seconds
    operations: Object  # `ios` and `bytes` of `read`, `write`, `flush`, `discard`
    # The eight most frequent I/O sizes, then all other sizes combined (`size_bytes`: `null`):
    # `ios`, `share_pct`, `reads`, `writes`
    sizes: Sequence[Object]
    # I/O streams, by percentage of the reads and writes: `access` (`random`, `sequential`),
    # `operation`, `size_bytes`, `share_pct`, `ios`; at most 32
    streams: Sequence[Object]
    # Percentage of reads and writes that start at the end of one of the last 32 runs of the same
    # operation and volume
    sequential_pct: float | None
    sequential: Object  # Percentages by operation: `read_pct`, `write_pct`
    # Percentages (`ios_pct`) of I/Os whose address and length are multiples of `bytes`
    alignment: Sequence[Object]
    # Number of outstanding I/Os at each arrival, including the arriving I/O: `mean`, `p50`, `p90`,
    # `p99`, `max`, `ios`, `distribution` (depth, percentage); `null` if the trace has no
    # completions
    queue_depth: Object | None
    # Response times by operation: `count`, `mean`, `p50`, `p90`, `p99`, `p99_9`, `max`; `points`
    # (ms, cumulative percentage); `null` if the trace has no completions
    response_ms: Object | None
    # Arrival statistics: `between_us`, `ios_per_s`, `peak_ios_per_s`, `peak_to_mean`,
    # `index_of_dispersion` (variance divided by mean) in windows of 1 s, `idle` periods
    # (`at_least_ms`, `periods`, `time_pct`), `idle_longest_ms`
    arrivals: Object
    unique_bytes: int  # Total size of all 4 KiB blocks that were read or written
    # Unique bytes read and written, and the error of these figures: `sampled_one_in` blocks (1 if
    # exact), `relative_error_pct` (one standard deviation)
    unique: Object
    # Traffic to the `blocks_pct` hottest blocks: `traffic_pct`, `read_pct`, `write_pct`
    hottest: Sequence[Object]
    # `distance_bytes`: reuse distance (SHARDS), `first_use_pct`, `hits` (`hit_pct` of an LRU cache
    # of `cache_bytes`)
    reuse: Object
    # Written blocks: Overwrite statistics: `overwritten_pct`, `reads_of_written_pct`, and the
    # update interval of blocks as `interval_s` and `interval_bytes`
    updates: Object
    content: Object | None  # Content statistics from hashes: `writes`, `distinct`, `duplicate_pct`
    intervals: Object  # Intervals of `length_s`: `rows` with counts, bytes and `working_set_bytes`
    # Statistics by volume, busiest volume first, for at most 1024 volumes
    volumes: Sequence[Object]
    volumes_total: int  # Number of volumes
    heat: Any  # I/O counts by address (rows) and time (columns) for the 4 busiest volumes
    processes: Sequence[Object]  # Busiest processes, each with `process`, `ios` and `bytes`
    out_of_order: int  # Number of I/Os that precede the previous I/O in time
    # Demands that the trace makes on a drive: `writes_per_day_bytes`, `writes_per_year_bytes`,
    # `footprint_overwrites_per_day`, `read_not_written_bytes`, `replay` (with `--on`: `waf`,
    # `endurance_bytes`, `years`, ...)
    drive: Object
    against: Object | None  # Same statistics for the trace given by `--against`
    report: Path  # HTML report
    skipped_lines: int  # Number of lines (or binary records) that are not I/Os
    skipped: Sequence[Skipped]  # Numbers of skipped lines, by reason
    notes: Sequence[str]  # Remarks


class Synthesised(Answer, frozen=True, tag="writecliff/synthesise/1"):
    """A workload synthesised from a trace."""

    commands = "trace synthesise"

    trace: str  # Trace file
    format: str  # Trace format; several formats if an archive contains different traces
    ios: int  # Number of trace I/Os used, which is also the number of I/Os per pass
    duration_s: float  # Time from the first to the last arrival, in seconds
    workload: Path  # Path of the workload file
    fio_job: Path  # Path of the fio job file
    # Model size: `numbers` in total, `streams`, `states`, `transitions`, `phases`, `periods`,
    # `places`, or `sweeps` and `intervals`; `range_bytes` (address range of the model),
    # `span_bytes` (address range of the trace); `seed`
    model: Object
    # Metrics of the trace and of the workload: `name`, `unit`, `trace`, `synthetic`, `kind` of the
    # `difference` (percentage `points`, or `percent` of the trace's value), `bound` (`null` if
    # there is no bound), `within`
    measures: Sequence[Object]
    missed: Sequence[str]  # Names of metrics outside their bounds
    # With `--on`: `target`, `capacity_bytes`, `overprovision_pct`, `passes` on each of `drives`
    # drives (`settling` and `measured` without timing, `timed_settling` and `timed`); for `trace`,
    # `synthetic` and `fio_job` (`null` if it cannot be replayed) `waf`, `iops`, `response_ns`
    # (`mean`, `p50`, `p99`, `p99_9`, `max`), `reads_p99_9_ns`, `writes_p99_9_ns`, `waf_of_drives`,
    # `p99_9_ns_of_drives`; `differences` in percent of the trace's values, `fio_job_differences`;
    # `spread` between the drives under the trace, in percent of their mean; `bounds`, `within`
    played: Object | None
    fio_notes: Sequence[str]  # Properties that a fio job file cannot express
    report: Path  # HTML report
    skipped_lines: int  # Number of lines (or binary records) that are not I/Os
    skipped: Sequence[Skipped]  # Numbers of skipped lines, by reason
    notes: Sequence[str]  # Remarks
