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
    created: str  # Start time of the capture (ISO 8601)
    duration_ns: int  # Capture duration
    root: str | None  # Folder to which the capture was limited
    command: Sequence[str]  # Command and its arguments
    program: str | None  # Program name and version
    exit_code: int  # Exit code of the command; 128 + n if signal n killed the command
    load: Object | UnsetType | None = UNSET  # Size of the ready-made workload, if reported
    notes: Sequence[str]  # Remarks about data that are missing from the trace
    hints: Object  # Write hints: `delivered`, `refused`, `errors` (by name), `repaired`
    reads: bool  # `true` if reads were captured
    bytes_written: int  # Number of bytes that the program wrote
    bytes_read: int  # Number of bytes that the program read
    # Number of `fsync` rows implied by writes with `O_DIRECT` or similar flags instead of a sync
    # call
    implied_syncs: int
    files: int  # Number of files
    processes: int  # Number of processes
    dropped: int  # Number of lost events
    sources: Any  # Event source: `"preload"` or `"strace"`


class DeviceCapture(Answer, frozen=True, tag="writecliff/capture-device/1"):
    """Captured requests to a block device."""

    commands = "capture --device"

    trace: Path  # Trace file
    level: Literal["block"]  # I/O layer where the trace was recorded
    created: str  # Start time of the capture (ISO 8601)
    duration_ns: int  # Capture duration
    # Device properties: `path`, `name`, `number` (major:minor), `disk` (the whole disk that
    # contains a partition), `model`, `size_bytes`, `first_sector` (on the disk), `requests`
    # (`false` if the driver takes bios without a request queue), `scheduler`
    device: Object
    # Request counts by the trace's `op`: `read`, `write`, `punch` (discard), `fsync` (flush)
    requests: Mapping[str, int]
    bytes: Mapping[str, int]  # Byte counts by the trace's `op`
    lost_events: int  # Number of events that the kernel lost because its buffers were full
    # Number of lost events by the kernel's reason: `overrun`, `commit_overrun`, `dropped`
    losses: Mapping[str, int]
    # Number of requests that were issued before the capture and completed during it
    open_at_start: int
    open_at_end: int  # Number of requests that were outstanding when the capture ended
    requeued: int  # Number of requests that the driver requeued
    merged: int  # Number of requests that were merged into other requests and are not in the trace
    # Number of driver and zone commands, which move no data and are omitted from the trace
    other_commands: int
    events: int  # Number of events read from the kernel
    # Resource usage of the capture: `cpu_s`, `cpu_pct` (relative to a single processor),
    # `machine_cpu_pct` (relative to all `processors`), `peak_rss_bytes`
    overhead: Object
    command: Sequence[str]  # Command and its arguments; empty if no command was run
    program: str | None  # Program name
    exit_code: int  # Exit code of the command; 128 + n if signal n killed the command
    notes: Sequence[str]  # Remarks about data that are missing from the trace


class StackCapture(Answer, frozen=True, tag="writecliff/capture-stack/1"):
    """The I/O of a command at each layer of the I/O stack."""

    commands = "capture --stack"

    report: Path  # HTML report
    # Folder that contains the report, its data (CSV), and the traces `calls.parquet` and
    # `device.parquet`
    folder: Path
    command: Sequence[str]  # Command and its arguments
    exit_code: int  # Exit code of the command; 128 + n if signal n killed the command
    root: str  # Folder that contains the captured files
    file_system: Object  # File system `type`, `mount` and block device, as in `capture --device`
    program_ns: int  # Time until the command exited
    duration_ns: int  # Time until all data had been written back
    # `name` (`calls`, `bios`, `requests`), `reads`, `writes`, `discards` (each `count`, `bytes`,
    # `mean_bytes`, `median_bytes`, `sequential_share`, `sizes`), `syncs` (sync calls, bios that
    # request a flush, flushes), `write_amplification` (bytes written per byte of write calls)
    steps: Sequence[Object]
    # Requests by `origin` and `op`, with the same keys as a direction in `steps`, and
    # `queue_p50_ns`, `service_p50_ns`, `service_p99_ns`
    origins: Sequence[Object]
    # Page cache statistics: `hit_ratio`, `asked_bytes` (requested by read calls), `read_in_bytes`
    # (file data read in), `readahead_bytes`, `added_pages`, `removed_pages`, `dirtied_folios`
    page_cache: Object
    journal: Object | None  # jbd2 counts: `commits`, `handles`, `blocks`; `null` without jbd2
    # Write amplification of file data, excluding metadata and journal
    data_amplification: float | None
    # Time from the last write call to a 4 KiB page until the page reaches the driver: `pages` (with
    # a known time), `of_pages` (all pages), `p50_ns`, `p90_ns`, `p99_ns`, `max_ns`; `null` if the
    # files' blocks cannot be located
    write_wait: Object | None
    lost_events: int  # Number of events that the kernel lost because its buffers were full
    notes: Sequence[str]  # Remarks about missing data
