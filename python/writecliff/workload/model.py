"""What hosts do: the one definition of a workload, shared by every engine.

A `Workload` is a set of `Job`s that run at the same time. It is what the Python API builds, what
TOML files and fio job files are read into, and what both engines (simulated and fio) execute.
The native crate `writecliff-workload` mirrors these classes field by field; `to_json` is the form
that crosses the seam.

Units are in the names: `_bytes`, `_ns`, `_pct`. Offsets and sizes are in bytes on the device.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import InitVar, asdict, dataclass, field, replace
from typing import Any, Literal

from writecliff.units import parse_size

Pattern = Literal["random", "sequential"]
Arrival = Literal["linear", "poisson"]
AddressKind = Literal["uniform", "zipf", "zoned", "hot_cold"]

KIB = 1024
SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class BlockSize:
    """One size of a block-size mix."""

    bytes: int  # of one I/O
    weight: float = 1.0  # its share of the I/Os, relative to that of the other sizes


@dataclass(frozen=True)
class Zone:
    """`access_pct` of the accesses go to the next `size_pct` of the range (JESD219 zones)."""

    access_pct: float  # share of the accesses
    size_pct: float  # share of the range


@dataclass(frozen=True)
class Addresses:
    """How random addresses are spread over the range.

    kind      uniform   every block equally likely
              zipf      rank r with weight r^-theta, ranks scattered over the range by a permutation
              zoned     consecutive zones, each with its share of the accesses
              hot_cold  two zones: `zones[0]` is hot, the rest of the range takes the rest
    """

    kind: AddressKind = "uniform"  # see above
    theta: float | None = None  # of zipf: how much the first ranks are preferred, up to 10
    zones: tuple[Zone, ...] = ()  # of zoned and hot_cold


@dataclass(frozen=True)
class Segments:
    """PTS active-range segments: `count` equal, non-touching pieces of the range that together hold
    `amount_bytes`; their starts are drawn from `seed`. It is not the workload's, which differs from
    step to step: all steps of a test must use the same segments."""

    count: int  # of the segments
    amount_bytes: int  # that they hold together
    seed: int = 1  # of their starts


@dataclass(frozen=True, kw_only=True)
class Job:
    """One kind of load, issued by `threads` threads of `queue_depth` outstanding I/Os each.

    Rates, volumes and I/O counts are totals over the job's threads. A job ends at the first of
    `duration_ns`, `volume_bytes` and `ios` that it reaches; one of the three must be given.
    """

    name: str = "job"  # shown in results
    pattern: Pattern = "random"  # order of the addresses
    read_pct: float = 0.0  # share of the I/Os that read, 0 to 100; what is left writes
    trim_pct: float = 0.0  # share of the I/Os that trim, 0 to 100
    block_sizes: tuple[BlockSize, ...] = (BlockSize(4 * KIB),)  # the mix of sizes
    block_size: InitVar[int | str | None] = None  # a single size in their place: 4096, "4 KiB"
    threads: int = 1  # host threads
    queue_depth: int = 1  # outstanding I/Os of each thread
    offset_bytes: int = 0  # start of the range
    range_bytes: int | None = None  # its length; None: to the end of the device
    segments: Segments | None = None  # use only these parts of it; None: all
    thread_stride_bytes: int = 0  # thread t starts `t * stride` into the range
    align_bytes: int | None = None  # None: the block size of each I/O
    addresses: Addresses = field(default_factory=Addresses)  # of random I/O
    compressible_pct: float = 0.0  # share of the data that a compressing controller can save
    duplicate_pct: float = 0.0  # writes that repeat the data of the thread's last that did not
    stream: int = 0  # that writes go to; 0: the default one
    rate_iops: float | None = None  # arrivals per second; None: as fast as the drive completes
    rate_bytes_per_s: float | None = None  # the same in bytes
    arrival: Arrival = "linear"  # spacing of the arrivals of a rate
    think_ns: int = 0  # idle after every `think_after_ios` I/Os of a thread
    think_after_ios: int = 1  # see `think_ns`
    burst_ns: int = 0  # issue for `burst_ns`, then nothing for `pause_ns`, over and over from the
    pause_ns: int = 0  # job's start (PTS HIR); 0: no pauses; not with a rate
    start_delay_ns: int = 0  # before the first I/O
    flush_every_writes: int = 0  # 0: never
    dsync: bool = False  # O_DSYNC: a write completes on the media (simulated: a flush after each)
    duration_ns: int | None = None  # end: device time
    volume_bytes: int | None = None  # end: bytes transferred
    ios: int | None = None  # end: number of I/Os

    def __post_init__(self, block_size: int | str | None) -> None:
        if block_size is not None:
            size = parse_size(block_size) if isinstance(block_size, str) else block_size
            object.__setattr__(self, "block_sizes", (BlockSize(size),))

    def with_duration_s(self, seconds: float) -> Job:
        """The same load for `seconds` of device time, without another end."""
        return replace(self, duration_ns=round(seconds * SECOND_NS), volume_bytes=None, ios=None)


@dataclass(frozen=True)
class Workload:
    """Jobs that run at the same time; `seed` fixes every random choice that they make."""

    name: str  # shown in results
    jobs: tuple[Job, ...]  # that run at the same time
    seed: int = 1  # of every random choice
    interval_ns: int = SECOND_NS  # width of the rows of the measured series

    def to_json(self) -> str:
        """The form that the native crate reads; keys are the field names of these classes."""
        return json.dumps(asdict(self), separators=(",", ":"))


@dataclass(frozen=True)
class Access:
    """What a workload asks for, as far as one value can say it; None for mixes and several jobs."""

    pattern: Pattern | None = None
    block_bytes: int | None = None
    read_pct: float | None = None
    threads: int | None = None
    queue_depth: int | None = None  # of each thread


def access_of(workload: Workload) -> Access:
    """The columns by which a table of steps is read."""
    if len(workload.jobs) != 1:
        return Access()
    job = workload.jobs[0]
    single = job.block_sizes[0].bytes if len(job.block_sizes) == 1 else None
    return Access(job.pattern, single, job.read_pct, job.threads, job.queue_depth)


def workload_from_mapping(data: Mapping[str, Any]) -> Workload:
    """Rebuild a `Workload` from what `to_json` wrote (already validated by the native crate)."""
    jobs = []
    for raw in data["jobs"]:
        job = dict(raw)
        job["block_sizes"] = tuple(BlockSize(**size) for size in job.get("block_sizes", ()))
        if "addresses" in job:
            addresses = dict(job["addresses"])
            addresses["zones"] = tuple(Zone(**zone) for zone in addresses.get("zones", ()))
            job["addresses"] = Addresses(**addresses)
        if job.get("segments") is not None:
            job["segments"] = Segments(**job["segments"])
        jobs.append(Job(**job))
    rest = {key: value for key, value in data.items() if key != "jobs"}
    return Workload(jobs=tuple(jobs), **rest)
