"""JSON output about served drives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from writecliff.api.answers.base import Answer, Item, Object


class Latency(Item, frozen=True):
    """Latency on the drive's clock."""

    mean_ns: float | None  # Mean
    p50_ns: float | None  # Median latency
    p99_ns: float | None  # 99th percentile of latency
    p99_9_ns: float | None  # 99.9th percentile
    max_ns: float | None  # Maximum


class ServedOperation(Item, frozen=True):
    """Request statistics of an operation."""

    requests: int  # Number of requests
    bytes: int  # Total request size, in bytes
    iops: float  # Requests per second of wall-clock time
    bytes_per_s: float  # Throughput in wall-clock time
    latency: Latency  # Latency on the drive's clock


class Lifetime(Item, frozen=True):
    """Lifetime at the session's write rate and write amplification."""

    # Bytes that the host can write before the flash reaches its rated erase cycles
    endurance_bytes: float
    write_bytes_per_s: float  # Write rate during the session, in bytes per second
    years: float  # Years until the flash reaches its rated erase cycles
    rated_cycles: int  # Rated erase cycles of the flash


class PowerCut(Item, frozen=True):
    """A power cut."""

    wall_ns: int  # Wall-clock time since the start of the session
    seed: int  # Seed that determines which data are lost
    writes: int  # Number of writes sent to the drive before the cut
    outstanding: int  # Number of requests that received no reply
    pages_open: int  # Number of 4 KiB pages with changes that were not durable
    pages_undone: int  # Number of pages whose changes were rolled back
    # Reason why NVMe permits the data loss: `unacknowledged`, or `unflushed` if the drive has a
    # volatile cache
    undone_as: str | None
    hold_up_ns: float | None  # Hold-up time of the capacitors; `null` if not modelled
    # Time from power-up until the drive accepted commands; `null` if not modelled
    rebuild_ns: float | None
    # Phases of the recovery time: `start`, `checkpoint`, `journal`, `scan`, `erase`
    rebuild_parts_ns: Object | None


class Served(Answer, frozen=True, tag="writecliff/serve/1"):
    """A session during which a drive was served."""

    commands = "serve"

    target: str  # Simulated drive
    addresses: Sequence[str]  # URIs that clients can connect to
    transports: Sequence[str]  # URI schemes of the addresses: `nvme+tcp`, `nbd`, `nbd+unix`
    slow_down: float | None  # Ratio of wall-clock time to drive time; `null` with `--fast`
    restored: bool  # `true` if the session started from a saved state
    wall_s: float  # Session duration in wall-clock time
    device_time_ns: int  # Session duration on the drive's clock
    # Request statistics by operation: `read`, `write`, `trim`, `flush`
    operations: Mapping[str, ServedOperation]
    waf: float | None  # Write amplification; `null` if nothing was written
    # Estimated lifetime; `null` if nothing was written or the drive has no flash
    lifetime: Lifetime | None
    # Statistics of each stream that received writes: `numbers` (identifiers that clients used),
    # `requests`, `written_bytes`, `moved_bytes` (by garbage collection and wear levelling), `waf`,
    # and `endurance_bytes` and `years` for a drive that receives only such writes; `null` on drives
    # that compress data
    streams: Sequence[Object] | None
    # Bytes relocated from reclaim units that contained several streams
    mixed_moved_bytes: int | None
    # Completion delay in wall-clock time; with `--fast`, the total time that requests spent in the
    # server
    lateness: Latency
    # Median or mean lateness, whichever is larger, relative to the drive latency
    lateness_share: float | None
    counters: Object  # Drive counters over the whole drive life
    contents_bytes: int  # Memory or disk space that the data use, in bytes
    power_cycles: int  # Number of drive power-ups, as counted by SMART
    power_cuts: Sequence[PowerCut]  # Power cuts during the session
    state: Path | None  # Path of the file that stores the drive state
    run: Path | None  # Directory of `--output`
    report: Path | None  # Path of the HTML report about the session
    warnings: Sequence[str]  # Warnings


class Attached(Answer, frozen=True, tag="writecliff/attach/1"):
    """A served drive attached by the kernel."""

    commands = "attach"

    device: str  # Block device for the first namespace
    devices: Sequence[str]  # Block devices for all namespaces
    nqn: str  # Qualified name of the NVMe subsystem


class Detached(Answer, frozen=True, tag="writecliff/detach/1"):
    """A served drive detached by the kernel."""

    commands = "attach --detach"

    devices: Sequence[str]  # Block devices that were removed
    nqn: str  # Qualified name of the NVMe subsystem


class PowerCutDone(Answer, frozen=True, tag="writecliff/power-cut/1"):
    """A power cut of a served drive."""

    commands = "serve power-cut"

    target: str  # Simulated drive
    addresses: Sequence[str]  # Addresses where clients can reach the drive
    pid: int  # Process ID of the server
    number: int  # Number of power cuts in the session, including this power cut
    cut: PowerCut  # Data loss and recovery after this power cut
