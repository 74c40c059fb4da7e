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
    read_pct: float  # Share of reads
    block_sizes: Sequence[Object]  # Sizes with their shares
    threads: int  # Threads
    rate_iops: float | None  # Rate of arrivals; `null`: as fast as the drive


class ListedProfile(Item, frozen=True):
    """A ready-made workload."""

    name: str  # Name of the profile
    title: str  # The load in words
    source: str  # Where its figures are from
    jobs: Sequence[ProfileJob]  # The jobs


class ProfileList(Answer, frozen=True, tag="writecliff/profile-list/1"):
    """The ready-made workloads."""

    commands = "profile list"

    profiles: Sequence[ListedProfile]  # The profiles


class Profile(Answer, frozen=True, tag="writecliff/profile/1"):
    """A ready-made workload."""

    commands = "profile show"

    name: str  # Name of the profile
    title: str  # The load in words
    source: str  # Where its figures are from
    jobs: Sequence[ProfileJob]  # The jobs


class Skipped(Item, frozen=True):
    """Lines that were skipped for one reason."""

    reason: str  # The reason
    lines: int  # Number of lines
    first_line: int  # The first of them, from 1
    expected: bool  # The format has such lines; others are damage


class TraceConverted(Answer, frozen=True, tag="writecliff/trace-convert/1"):
    """A trace that was converted."""

    commands = "trace convert"

    trace: Path  # The file that was read
    output: Path  # The file that was written
    format: str  # Format of the file that was read
    written_as: str  # Format of the file that was written
    ios: int  # I/Os that were written
    left_out: int  # I/Os that the new format cannot have
    moved: int  # I/Os at a time before that of the previous one, which got that time
    skipped_lines: int  # Lines (of binary formats: records) that are no I/Os
    skipped: Sequence[Skipped]  # These lines by reason
    notes: Sequence[str]  # Sentences


class TraceFormat(Item, frozen=True):
    """A format of traces."""

    name: str  # Name on the command line
    title: str  # The format in words
    columns: Any  # Columns of a line
    units: Any  # Units of the columns
    written: bool  # `trace convert` writes it


class TraceFormats(Answer, frozen=True, tag="writecliff/trace-formats/1"):
    """The formats of traces."""

    commands = "trace formats"

    formats: Sequence[TraceFormat]  # The formats


class TraceExample(Item, frozen=True):
    """A captured trace that ships with writecliff."""

    name: str  # Name after `example:`
    title: str  # The load in words
    path: Path  # The file
    bytes: int  # Size of the file


class TraceExamples(Answer, frozen=True, tag="writecliff/trace-examples/1"):
    """The captured traces that ship with writecliff."""

    commands = "trace examples"

    examples: Sequence[TraceExample]  # The traces


class Characterised(Answer, frozen=True, tag="writecliff/characterise/1"):
    """The workload of a block trace."""

    commands = "characterise"

    trace: str  # The file
    format: str  # Its format; several for an archive of several
    ios: int  # Number of I/Os
    read_pct: float | None  # Share of reads among the reads and writes, by number
    read_bytes: int  # Bytes that were read
    write_bytes: int  # Bytes that were written
    duration_s: float  # Time from the first arrival to the last
    operations: Object  # `ios` and `bytes` of `read`, `write`, `flush`, `discard`
    # The 8 most frequent sizes, then all others (`size_bytes`: `null`): `ios`, `share_pct`,
    # `reads`, `writes`
    sizes: Sequence[Object]
    # I/O streams by share of the reads and writes: `access` (`random`, `sequential`),
    # `operation`, `size_bytes`, `share_pct`, `ios`; at most 32
    streams: Sequence[Object]
    # Reads and writes that begin where one of the last 32 runs of their operation and volume
    # ended
    sequential_pct: float | None
    sequential: Object  # That share of the reads and of the writes: `read_pct`, `write_pct`
    alignment: Sequence[Object]  # `ios_pct` whose address and length are multiples of `bytes`
    # I/Os under way at an arrival, itself included: `mean`, `p50`, `p90`, `p99`, `max`, `ios`,
    # `distribution` (depth, percentage); `null` without completions
    queue_depth: Object | None
    # Response times by operation: `count`, `mean`, `p50`, `p90`, `p99`, `p99_9`, `max`;
    # `points` (ms, percentage up to it); `null` without completions
    response_ms: Object | None
    # `between_us`, `ios_per_s`, `peak_ios_per_s`, `peak_to_mean`, `index_of_dispersion`
    # (variance by mean) over windows of 1 s, `idle` periods (`at_least_ms`, `periods`,
    # `time_pct`), `idle_longest_ms`
    arrivals: Object
    unique_bytes: int  # Size of all 4 KiB blocks that were read or written
    # That size for reads and for writes, and its error: `sampled_one_in` blocks (1: exact),
    # `relative_error_pct` (one standard deviation)
    unique: Object
    # Traffic of the `blocks_pct` most used blocks: `traffic_pct`, `read_pct`, `write_pct`
    hottest: Sequence[Object]
    # `distance_bytes` of other blocks between two uses of one (SHARDS), `first_use_pct`, `hits`
    # (`hit_pct` of an LRU cache of `cache_bytes`)
    reuse: Object
    # Written blocks: `overwritten_pct`, `reads_of_written_pct`, and between two writes of a
    # block `interval_s` and `interval_bytes`
    updates: Object
    content: Object | None  # Contents in traces with hashes: `writes`, `distinct`, `duplicate_pct`
    intervals: Object  # Intervals of `length_s`: `rows` with counts, bytes and `working_set_bytes`
    volumes: Sequence[Object]  # The same figures of each volume, the busiest first; at most 1024
    volumes_total: int  # Number of volumes
    heat: Any  # I/Os by address (rows) and time (columns) of the 4 busiest volumes
    processes: Sequence[Object]  # `process`, `ios`, `bytes` of the busiest processes
    out_of_order: int  # I/Os at a time before that of the previous one
    # Demand on a drive: `writes_per_day_bytes`, `writes_per_year_bytes`,
    # `footprint_overwrites_per_day`, `read_not_written_bytes`, `replay` (with `--on`: `waf`,
    # `endurance_bytes`, `years`, ...)
    drive: Object
    against: Object | None  # The same figures of the trace of `--against`
    report: Path  # The page
    skipped_lines: int  # Lines (of binary formats: records) that are no I/Os
    skipped: Sequence[Skipped]  # These lines by reason
    notes: Sequence[str]  # Sentences


class Synthesised(Answer, frozen=True, tag="writecliff/synthesise/1"):
    """A workload made of a trace."""

    commands = "trace synthesise"

    trace: str  # The file
    format: str  # Its format; several for an archive of several
    ios: int  # I/Os of the trace that were used, flushes included; as many as of a pass
    duration_s: float  # Time from the first arrival to the last
    workload: Path  # The workload file that was written
    fio_job: Path  # The fio job file that was written
    # Size of the model: `numbers` in all, `streams`, `states`, `transitions`, `phases`,
    # `periods`, `places`, or `sweeps` and `intervals`; `range_bytes` that its addresses take,
    # `span_bytes` of those of the trace; `seed`
    model: Object
    # Trace and workload side by side: `name`, `unit`, `trace`, `synthetic`, `kind` of the
    # `difference` (`points` of percent, or `percent` of the trace's), `bound` (`null`: none is
    # promised), `within`
    measures: Sequence[Object]
    missed: Sequence[str]  # Names of the measures that do not keep their bound
    # With `--on`: `target`, `capacity_bytes`, `overprovision_pct`, `passes` on each of `drives`
    # drives (`settling` and `measured` without time, `timed_settling` and `timed`); of `trace`,
    # `synthetic` and `fio_job` (`null` if it cannot be played) `waf`, `iops`, `response_ns`
    # (`mean`, `p50`, `p99`, `p99_9`, `max`), `reads_p99_9_ns`, `writes_p99_9_ns`,
    # `waf_of_drives`, `p99_9_ns_of_drives`; `differences` in percent of the trace's,
    # `fio_job_differences`; `spread` of the drives under the trace, in percent of their mean;
    # `bounds`, `within`
    played: Object | None
    fio_notes: Sequence[str]  # Properties that fio's language cannot express
    report: Path  # The page
    skipped_lines: int  # Lines (of binary formats: records) that are no I/Os
    skipped: Sequence[Skipped]  # These lines by reason
    notes: Sequence[str]  # Sentences
