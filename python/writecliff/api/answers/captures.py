"""Answers of captures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from writecliff.api.answers.base import Answer, Object


class Capture(Answer, frozen=True, tag="writecliff/capture/1", kw_only=True):
    """The file I/O of a command."""

    commands = "capture"

    trace: Path  # The file
    created: str  # Start of the capture (ISO 8601)
    duration_ns: int  # Duration of the capture
    root: str | None  # The folder that it was limited to
    command: Sequence[str]  # The words of the command
    program: str | None  # Name and version of the program
    exit_code: int  # Exit code of the command; 128 + n for signal n
    load: Object | UnsetType | None = UNSET  # Size of a ready-made load that states it
    notes: Sequence[str]  # Sentences on what is missing in the trace
    hints: Object  # Write hints: `delivered`, `refused`, `errors` (by name), `repaired`
    reads: bool  # Reads were captured
    bytes_written: int  # Bytes that the program wrote
    bytes_read: int  # Bytes that the program read
    # Rows `fsync` that no call, but a write with `O_DIRECT` or the like brought about
    implied_syncs: int
    files: int  # Number of files
    processes: int  # Number of processes
    dropped: int  # Events that were lost
    sources: Any  # `"preload"` or `"strace"`


class DeviceCapture(Answer, frozen=True, tag="writecliff/capture-device/1"):
    """The requests to a block device."""

    commands = "capture --device"

    trace: Path  # The file
    level: Literal["block"]  # Level of the trace
    created: str  # Start of the capture (ISO 8601)
    duration_ns: int  # Duration of the capture
    # `path`, `name`, `number` (major:minor), `disk` (its whole disk), `model`, `size_bytes`,
    # `first_sector` (on the disk), `requests` (`false`: it takes bios as they come),
    # `scheduler`
    device: Object
    # Requests by `op` of the trace: `read`, `write`, `punch` (discard), `fsync` (flush)
    requests: Mapping[str, int]
    bytes: Mapping[str, int]  # Bytes by `op` of the trace
    lost_events: int  # Events that the kernel could not keep
    # Lost events by the kernel's reason: `overrun`, `commit_overrun`, `dropped`
    losses: Mapping[str, int]
    open_at_start: int  # Requests that were issued before, and completed during the capture
    open_at_end: int  # Requests that had no completion by its end
    requeued: int  # Requests that the driver returned to the queue
    merged: int  # Requests that became part of others, and are not in the trace
    # Commands of drivers and zones, which move no data and are not in the trace
    other_commands: int
    events: int  # Events that were read
    # Cost of the capture: `cpu_s`, `cpu_pct` (of one processor), `machine_cpu_pct` (of all
    # `processors`), `peak_rss_bytes`
    overhead: Object
    command: Sequence[str]  # The words of the command; empty without a command
    program: str | None  # Name of the program
    exit_code: int  # Exit code of the command; 128 + n for signal n
    notes: Sequence[str]  # Sentences on what is missing in the trace


class StackCapture(Answer, frozen=True, tag="writecliff/capture-stack/1"):
    """The I/O of a command at each step of its way to the drive."""

    commands = "capture --stack"

    report: Path  # The page
    # Folder of the page, its numbers (CSV) and the traces `calls.parquet`, `device.parquet`
    folder: Path
    command: Sequence[str]  # The words of the command
    exit_code: int  # Exit code of the command; 128 + n for signal n
    root: str  # The folder whose files were captured
    file_system: Object  # `type`, `mount`, and its device as `capture --device` has it
    program_ns: int  # Time at which the command had ended
    duration_ns: int  # Time at which all was written back
    # `name` (`calls`, `bios`, `requests`), `reads`, `writes`, `discards` (each `count`,
    # `bytes`, `mean_bytes`, `median_bytes`, `sequential_share`, `sizes`), `syncs` (sync calls,
    # bios that ask for a flush, flushes), `write_amplification` (bytes written for each byte of
    # the calls)
    steps: Sequence[Object]
    # Requests by `origin` and `op`: as a direction of a step, and `queue_p50_ns`,
    # `service_p50_ns`, `service_p99_ns`
    origins: Sequence[Object]
    # `hit_ratio`, `asked_bytes` (by read calls), `read_in_bytes` (of data), `readahead_bytes`,
    # `added_pages`, `removed_pages`, `dirtied_folios`
    page_cache: Object
    journal: Object | None  # `commits`, `handles`, `blocks` of jbd2; `null` on other file systems
    # Write amplification of data alone, without metadata and journal
    data_amplification: float | None
    # Time from the last write call to the driver, by pages of 4 KiB: `pages` (of which it is
    # known), `of_pages`, `p50_ns`, `p90_ns`, `p99_ns`, `max_ns`; `null` where files cannot be
    # located
    write_wait: Object | None
    lost_events: int  # Events that the kernel could not keep
    notes: Sequence[str]  # Sentences on what is missing
