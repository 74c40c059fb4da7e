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
    max_ns: float | None  # Largest


class ServedOperation(Item, frozen=True):
    """Requests of one operation."""

    requests: int  # Number of requests
    bytes: int  # Size of the requests
    iops: float  # Requests per second of wall time
    bytes_per_s: float  # Throughput by wall time
    latency: Latency  # Latency by the drive's clock


class Lifetime(Item, frozen=True):
    """Lifetime at the session's rate and write amplification."""

    endurance_bytes: float  # Bytes until the flash has its rated cycles
    write_bytes_per_s: float  # Rate of the writes
    years: float  # Time until the flash has its rated cycles
    rated_cycles: int  # Rated erase cycles of the flash


class PowerCut(Item, frozen=True):
    """A power cut."""

    wall_ns: int  # Time of the session
    seed: int  # Seed of what it lost
    writes: int  # Writes that the drive had been sent
    outstanding: int  # Requests without a reply
    pages_open: int  # Pages of 4 KiB with changes that were not durable
    pages_undone: int  # Pages whose changes were undone
    # Why NVMe allows it: `unacknowledged`, or on a drive with a volatile cache `unflushed`
    undone_as: str | None
    hold_up_ns: float | None  # Time that capacitors gave; `null`: not modelled
    # Time from power-up until the drive took commands; `null`: not modelled
    rebuild_ns: float | None
    # Parts of that time: `start`, `checkpoint`, `journal`, `scan`, `erase`
    rebuild_parts_ns: Object | None


class Served(Answer, frozen=True, tag="writecliff/serve/1"):
    """A session of a served drive."""

    commands = "serve"

    target: str  # The drive
    addresses: Sequence[str]  # URIs for clients
    transports: Sequence[str]  # Schemes of the addresses: `nvme+tcp`, `nbd`, `nbd+unix`
    slow_down: float | None  # Wall time per time of the drive; `null` with `--fast`
    restored: bool  # The session began with the state of a file
    wall_s: float  # Duration by wall time
    device_time_ns: int  # Duration by the drive's clock
    # Requests by operation: `read`, `write`, `trim`, `flush`
    operations: Mapping[str, ServedOperation]
    waf: float | None  # Write amplification; `null` if nothing was written
    lifetime: Lifetime | None  # Lifetime of the drive; `null` without writes or flash
    # Streams that were written: `numbers` (identifiers that clients gave), `requests`,
    # `written_bytes`, `moved_bytes` (by garbage collection and wear levelling), `waf`, and
    # `endurance_bytes` and `years` of a drive of which all is written like it; `null` on drives
    # that compress
    streams: Sequence[Object] | None
    mixed_moved_bytes: int | None  # Bytes moved of data of several streams together
    # Time by which completions were sent too late, by wall time; with `--fast` the whole time
    # of requests in the server
    lateness: Latency
    # The larger of its median and mean, over that of the drive's latency
    lateness_share: float | None
    counters: Object  # Counters of the drive, since it was new
    contents_bytes: int  # Memory or disk space that the data take
    power_cycles: int  # Power-ups of the drive, as SMART counts them
    power_cuts: Sequence[PowerCut]  # Power cuts of the session
    state: Path | None  # The file of the drive's state
    run: Path | None  # The directory of `--output`
    report: Path | None  # Its page
    warnings: Sequence[str]  # Sentences


class Attached(Answer, frozen=True, tag="writecliff/attach/1"):
    """A served drive that the kernel has attached."""

    commands = "attach"

    device: str  # Block device of its first namespace
    devices: Sequence[str]  # Block devices of all its namespaces
    nqn: str  # Qualified name of its subsystem


class Detached(Answer, frozen=True, tag="writecliff/detach/1"):
    """A served drive that the kernel has detached."""

    commands = "attach --detach"

    devices: Sequence[str]  # Block devices that are gone
    nqn: str  # Qualified name of its subsystem


class PowerCutDone(Answer, frozen=True, tag="writecliff/power-cut/1"):
    """A power cut of a served drive."""

    commands = "serve power-cut"

    target: str  # The drive
    addresses: Sequence[str]  # Addresses at which it is served
    pid: int  # The process that serves it
    number: int  # Power cuts so far, with this one
    cut: PowerCut  # The power cut
