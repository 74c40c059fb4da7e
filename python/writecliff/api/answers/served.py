"""JSON output about served drives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from writecliff.api.answers.base import Answer, Item, Object


class Latency(Item, frozen=True):
    """Latency on the drive's clock."""

    mean_ns: float | None  # Mean
    p50_ns: float | None  # Median
    p99_ns: float | None  # 99th percentile
    p99_9_ns: float | None  # 99.9th percentile
    max_ns: float | None  # Maximum


class ServedOperation(Item, frozen=True):
    """Request statistics of an operation."""

    requests: int  # Number of requests
    bytes: int  # Total size of the requests
    iops: float  # Requests per second of wall-clock time
    bytes_per_s: float  # Throughput in wall-clock time
    latency: Latency  # Latency on the drive's clock


class Lifetime(Item, frozen=True):
    """Lifetime at the session's write rate and write amplification."""

    endurance_bytes: float  # Host writes until the flash reaches its rated erase cycles
    write_bytes_per_s: float  # Write rate during the session
    years: float  # Years until the flash reaches its rated erase cycles
    rated_cycles: int  # Rated erase cycles of the flash


class PowerCut(Item, frozen=True):
    """A power cut."""

    wall_ns: int  # Wall-clock time since the session started
    seed: int  # Seed that determines which data are lost
    writes: int  # Number of writes sent to the drive before the cut
    outstanding: int  # Requests that received no reply
    pages_open: int  # 4 KiB pages whose changes were not durable
    pages_undone: int  # Pages whose changes were rolled back
    # Reason why NVMe permits the data loss: `unacknowledged`, or with a volatile cache `unflushed`
    undone_as: str | None
    hold_up_ns: float | None  # Hold-up time of the capacitors; `null` if not modelled
    # Time from power-up until the drive accepted commands; `null` if not modelled
    rebuild_ns: float | None
    # Phases of that recovery time: `start`, `checkpoint`, `journal`, `scan`, `erase`
    rebuild_parts_ns: Object | None


class Served(Answer, frozen=True, tag="writecliff/serve/1"):
    """A session during which a drive was served."""

    commands = "serve"

    target: str  # Simulated drive
    addresses: Sequence[str]  # URIs for clients
    transports: Sequence[str]  # Schemes of the addresses: `nvme+tcp`, `nbd`, `nbd+unix`
    slow_down: float | None  # Ratio of wall-clock time to drive time; `null` with `--fast`
    restored: bool  # `true` if the session started from a saved state
    wall_s: float  # Duration in wall-clock time
    device_time_ns: int  # Duration on the drive's clock
    # Requests by operation: `read`, `write`, `trim`, `flush`
    operations: Mapping[str, ServedOperation]
    waf: float | None  # Write amplification; `null` if nothing was written
    lifetime: Lifetime | None  # Estimated lifetime; `null` without writes or flash
    # Streams that received writes: `numbers` (identifiers that clients used), `requests`,
    # `written_bytes`, `moved_bytes` (by garbage collection and wear levelling), `waf`, and
    # `endurance_bytes` and `years` of a drive that receives only such writes; `null` on drives that
    # compress
    streams: Sequence[Object] | None
    mixed_moved_bytes: int | None  # Bytes moved out of reclaim units that contained several streams
    # Completion delay in wall-clock time, or with `--fast`, the total time that requests spent in
    # the server
    lateness: Latency
    # Median or mean lateness, whichever is larger, relative to the drive's latency
    lateness_share: float | None
    counters: Object  # Drive counters since the drive was new
    contents_bytes: int  # Memory or disk space used by the data
    power_cycles: int  # Drive power-ups, as counted by SMART
    power_cuts: Sequence[PowerCut]  # Power cuts during the session
    state: Path | None  # File that stores the drive state
    run: Path | None  # Directory of `--output`
    report: Path | None  # HTML report of the session
    warnings: Sequence[str]  # Warnings


class Attached(Answer, frozen=True, tag="writecliff/attach/1"):
    """A served drive attached by the kernel."""

    commands = "attach"

    device: str  # Block device of the first namespace
    devices: Sequence[str]  # Block devices of all namespaces
    nqn: str  # Qualified name of the subsystem


class Detached(Answer, frozen=True, tag="writecliff/detach/1"):
    """A served drive detached by the kernel."""

    commands = "attach --detach"

    devices: Sequence[str]  # Block devices that were removed
    nqn: str  # Qualified name of the subsystem


class PowerCutDone(Answer, frozen=True, tag="writecliff/power-cut/1"):
    """A power cut of a served drive."""

    commands = "serve power-cut"

    target: str  # Simulated drive
    addresses: Sequence[str]  # Addresses of the drive
    pid: int  # Process ID of the server
    number: int  # Number of power cuts in the session so far, including this power cut
    cut: PowerCut  # Data loss and recovery after this power cut
