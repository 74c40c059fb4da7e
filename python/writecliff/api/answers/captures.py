"""JSON output of captures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from writecliff.api.answers.base import Answer, Object


class Capture(Answer, frozen=True, tag="writecliff/capture/1", kw_only=True):
    """Captured file I/O of a command."""

    commands = "capture"

    trace: Path  # Trace file
    created: str  # Start of the capture (ISO 8601)
    duration_ns: int  # Duration of the capture
    root: str | None  # Folder to which the capture was limited
    command: Sequence[str]  # Command and its arguments
    program: str | None  # Name and version of the program
    exit_code: int  # Exit code of the command; 128 + n for signal n
    load: Object | UnsetType | None = UNSET  # Size of the ready-made load, if reported
    notes: Sequence[str]  # Remarks about data missing from the trace
    hints: Object  # Write hints: `delivered`, `refused`, `errors` (by name), `repaired`
    reads: bool  # `true` if reads were captured
    bytes_written: int  # Bytes that the program wrote
    bytes_read: int  # Bytes that the program read
    # `fsync` rows implied by writes with `O_DIRECT` or similar flags, without a sync call
    implied_syncs: int
    files: int  # Number of files
    processes: int  # Number of processes
    dropped: int  # Lost events
    sources: Any  # `"preload"` or `"strace"`


class DeviceCapture(Answer, frozen=True, tag="writecliff/capture-device/1"):
    """Captured requests to a block device."""

    commands = "capture --device"

    trace: Path  # Trace file
    level: Literal["block"]  # I/O layer at which the trace was recorded
    created: str  # Start of the capture (ISO 8601)
    duration_ns: int  # Duration of the capture
    # `path`, `name`, `number` (major:minor), `disk` (the whole disk of a partition), `model`,
    # `size_bytes`, `first_sector` (on the disk), `requests` (`false` if the driver takes bios
    # without a request queue), `scheduler`
    device: Object
    # Request counts by the trace's `op`: `read`, `write`, `punch` (discard), `fsync` (flush)
    requests: Mapping[str, int]
    bytes: Mapping[str, int]  # Bytes by the trace's `op`
    lost_events: int  # Events that the kernel lost because its buffers were full
    # Lost events by the reason that the kernel reports: `overrun`, `commit_overrun`, `dropped`
    losses: Mapping[str, int]
    open_at_start: int  # Requests that were issued before the capture and completed during it
    open_at_end: int  # Requests still outstanding when the capture ended
    requeued: int  # Requests that the driver requeued
    merged: int  # Requests that were merged into other requests and are not in the trace
    # Driver and zone commands, which move no data and are omitted from the trace
    other_commands: int
    events: int  # Number of events read from the kernel
    # Resource usage of the capture: `cpu_s`, `cpu_pct` (of a single processor), `machine_cpu_pct`
    # (of all `processors`), `peak_rss_bytes`
    overhead: Object
    command: Sequence[str]  # Command and its arguments; empty if no command was run
    program: str | None  # Name of the program
    exit_code: int  # Exit code of the command; 128 + n for signal n
    notes: Sequence[str]  # Remarks about data missing from the trace


class StackCapture(Answer, frozen=True, tag="writecliff/capture-stack/1"):
    """The I/O of a command at each layer of the I/O stack."""

    commands = "capture --stack"

    report: Path  # HTML report
    # Folder with the report, its data (CSV) and the traces `calls.parquet`, `device.parquet`
    folder: Path
    command: Sequence[str]  # Command and its arguments
    exit_code: int  # Exit code of the command; 128 + n for signal n
    root: str  # Folder whose files were captured
    file_system: Object  # `type`, `mount`, and the block device, as in `capture --device`
    program_ns: int  # Time until the command exited
    duration_ns: int  # Time until writeback of all data was complete
    # `name` (`calls`, `bios`, `requests`), `reads`, `writes`, `discards` (each `count`, `bytes`,
    # `mean_bytes`, `median_bytes`, `sequential_share`, `sizes`), `syncs` (sync calls, bios that
    # request a flush, flushes), `write_amplification` (bytes written per byte of write calls)
    steps: Sequence[Object]
    # Requests by `origin` and `op`, with the same keys as a direction of a step, and
    # `queue_p50_ns`, `service_p50_ns`, `service_p99_ns`
    origins: Sequence[Object]
    # `hit_ratio`, `asked_bytes` (requested by read calls), `read_in_bytes` (file data read in),
    # `readahead_bytes`, `added_pages`, `removed_pages`, `dirtied_folios`
    page_cache: Object
    journal: Object | None  # `commits`, `handles`, `blocks` of jbd2; `null` without jbd2
    # Write amplification of file data, without metadata and journal
    data_amplification: float | None
    # Time of 4 KiB pages from their last write call to the driver: `pages` (with a known time),
    # `of_pages` (all pages), `p50_ns`, `p90_ns`, `p99_ns`, `max_ns`; `null` if the files' blocks
    # cannot be located
    write_wait: Object | None
    lost_events: int  # Events that the kernel lost because its buffers were full
    notes: Sequence[str]  # Remarks about missing data
