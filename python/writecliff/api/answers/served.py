"""Answers about served drives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from writecliff.api.answers.base import Answer, Item, Object


class Latency(Item, frozen=True):
    """Latency by the drive's clock."""

    mean_ns: float | None  # Mean
    p50_ns: float | None  # Median
    p99_ns: float | None  # 99th percentile
    p99_9_ns: float | None  # 99.9th percentile
    max_ns: float | None  # Maximum


class ServedOperation(Item, frozen=True):
    """Requests of one operation."""

    requests: int  # Number of requests
    bytes: int  # Total size of the requests
    iops: float  # Requests per second of wall time
    bytes_per_s: float  # Throughput in wall time
    latency: Latency  # Latency by the drive's clock


class Lifetime(Item, frozen=True):
    """Lifetime at the session's rate and write amplification."""

    endurance_bytes: float  # Host writes until the flash reaches its rated cycles
    write_bytes_per_s: float  # Write rate of the session
    years: float  # Years until the flash reaches its rated cycles
    rated_cycles: int  # Rated erase cycles of the flash


class PowerCut(Item, frozen=True):
    """A power cut."""

    wall_ns: int  # Wall time since the start of the session
    seed: int  # Seed that determines the lost data
    writes: int  # Writes sent to the drive before the cut
    outstanding: int  # Requests without a reply
    pages_open: int  # Pages of 4 KiB with changes that were not durable
    pages_undone: int  # Pages whose changes were undone
    # Reason why NVMe permits the loss: `unacknowledged`, or with a volatile cache `unflushed`
    undone_as: str | None
    hold_up_ns: float | None  # Hold-up time of the capacitors; `null`: not modelled
    # Time from power-up until the drive accepted commands; `null`: not modelled
    rebuild_ns: float | None
    # Parts of that time: `start`, `checkpoint`, `journal`, `scan`, `erase`
    rebuild_parts_ns: Object | None


class Served(Answer, frozen=True, tag="writecliff/serve/1"):
    """A session of a served drive."""

    commands = "serve"

    target: str  # Simulated drive
    addresses: Sequence[str]  # URIs for clients
    transports: Sequence[str]  # Schemes of the addresses: `nvme+tcp`, `nbd`, `nbd+unix`
    slow_down: float | None  # Ratio of wall time to drive time; `null` with `--fast`
    restored: bool  # `true` if the session started from a saved state
    wall_s: float  # Duration in wall time
    device_time_ns: int  # Duration by the drive's clock
    # Requests by operation: `read`, `write`, `trim`, `flush`
    operations: Mapping[str, ServedOperation]
    waf: float | None  # Write amplification; `null` if nothing was written
    lifetime: Lifetime | None  # Lifetime of the drive; `null` without writes or flash
    # Streams with writes: `numbers` (identifiers that clients used), `requests`,
    # `written_bytes`, `moved_bytes` (by garbage collection and wear levelling), `waf`, and
    # `endurance_bytes` and `years` of a drive with only such writes; `null` on drives that
    # compress
    streams: Sequence[Object] | None
    mixed_moved_bytes: int | None  # Bytes moved from reclaim units that hold several streams
    # Delay of completions in wall time; with `--fast` the whole time of requests in the server
    lateness: Latency
    # Larger of median and mean lateness, relative to the latency of the drive
    lateness_share: float | None
    counters: Object  # Counters of the drive since it was new
    contents_bytes: int  # Memory or disk space that holds the data
    power_cycles: int  # Power-ups of the drive, as SMART counts them
    power_cuts: Sequence[PowerCut]  # Power cuts of the session
    state: Path | None  # File with the drive's state
    run: Path | None  # Directory of `--output`
    report: Path | None  # HTML report of the session
    warnings: Sequence[str]  # Warnings


class Attached(Answer, frozen=True, tag="writecliff/attach/1"):
    """A served drive that the kernel has attached."""

    commands = "attach"

    device: str  # Block device of the first namespace
    devices: Sequence[str]  # Block devices of all namespaces
    nqn: str  # Qualified name of the subsystem


class Detached(Answer, frozen=True, tag="writecliff/detach/1"):
    """A served drive that the kernel has detached."""

    commands = "attach --detach"

    devices: Sequence[str]  # Block devices that were removed
    nqn: str  # Qualified name of the subsystem


class PowerCutDone(Answer, frozen=True, tag="writecliff/power-cut/1"):
    """A power cut of a served drive."""

    commands = "serve power-cut"

    target: str  # Simulated drive
    addresses: Sequence[str]  # Addresses of the drive
    pid: int  # Process that serves the drive
    number: int  # Number of power cuts so far, including this one
    cut: PowerCut  # Losses and recovery of this power cut
