"""Workload model shared by all engines.

A `Workload` is a set of `Job`s that run at the same time. The Python API, TOML files and fio job
files create workloads, and both the simulated engine and fio execute them. The native crate
`writecliff-workload` mirrors these classes field by field, and reads the JSON of `to_json`.

Names contain units: `_bytes`, `_ns`, `_pct`. Offsets and sizes are in bytes on the device.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, asdict, dataclass, field, replace
from typing import Any, Literal

from writecliff.units import parse_size
from writecliff.workload.io_model import IoModel, io_model_from_mapping

Pattern = Literal["random", "sequential"]
Arrival = Literal["linear", "poisson"]
AddressKind = Literal[
    "uniform", "zipf", "pareto", "normal", "zoned", "hot_cold", "sequence", "sprandom", "once"
]
StreamOrder = Literal["in_turn", "random"]

KIB = 1024
SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class BlockSize:
    """A size in a block-size mix."""

    bytes: int  # I/O size in bytes.
    weight: float = 1.0  # Relative frequency of the size.
    # For random I/O: percentage of I/Os of this size that form a sequential stream from a random
    # address. Each operation in each thread has a separate stream.
    sequential_pct: float = 0.0


@dataclass(frozen=True)
class Zone:
    """`access_pct` of the accesses go to the next `size_pct` of the range (JESD219 zones)."""

    access_pct: float  # Percentage of the accesses.
    size_pct: float  # Percentage of the range.


@dataclass(frozen=True)
class Addresses:
    """Distribution of random addresses over the range.

    kind:

    - `uniform`: every block is equally likely
    - `zipf`: rank r has weight r^-theta, and a permutation scatters the ranks over the range. The
      `generator` "fio" uses fio's approximation and hash, which are more skewed
    - `pareto`: `hot_pct` of the blocks take the other 100 - `hot_pct` % of the accesses, and so on
      within them; scattered as with zipf
    - `normal`: ranks around the middle one, with a standard deviation of `deviation_pct` of the
      blocks; scattered as with zipf
    - `zoned`: zones, each with its share of the accesses; consecutive unless `scatter_bytes` is set
    - `hot_cold`: two zones: `zones[0]` is hot, and the rest of the range is cold
    - `sequence`: the `blocks` in order, repeatedly
    - `sprandom`: writes of one thread; a volume of the range and its spare flash leaves the drive
      as random writes would in the long run (SPRandom of SanDisk)
    - `once`: each block of the range once in a pass, as with fio's random map; an I/O of several
      sizes is cut where it would meet a block that the pass has accessed
    """

    kind: AddressKind = "uniform"  # Kind, as listed in the class description.
    theta: float | None = None  # Skew exponent for `zipf`, up to 10.
    generator: Literal["exact", "fio"] = "exact"  # Generator for `zipf`: "exact" or "fio".
    # Number of ranks for `zipf`, where adjacent ranks share a block; `None` for one per block.
    ranks: int | None = None
    hot_pct: float | None = None  # Percentage of hot blocks for `pareto`.
    # Standard deviation for `normal`, as a percentage of the blocks.
    deviation_pct: float | None = None
    zones: tuple[Zone, ...] = ()  # Zones for `zoned` and `hot_cold`.
    blocks: tuple[int, ...] = ()  # Block numbers for `sequence`, in order.
    # For `sequence`: `True` to shift each pass by its own length in blocks.
    advancing: bool = False
    spare_pct: float | None = None  # Spare flash for `sprandom`, as a percentage of the range.
    regions: int | None = None  # Number of flash regions for `sprandom`; `None` for 100.
    # Size of the chunks that are permuted over the range. If `None`, zones are contiguous, and the
    # ranks of zipf, pareto and normal are scattered block by block.
    scatter_bytes: int | None = None
    scatter_seed: int = 0  # Permutation number; jobs with the same number share a permutation.


@dataclass(frozen=True)
class Segments:
    """PTS active-range segments: equal, disjoint, with `amount_bytes` in total.

    The segment starts are chosen at random with `seed`, which differs from the workload's seed
    because all steps of a test must use the same segments.
    """

    count: int  # Number of segments.
    amount_bytes: int  # Total size of the segments.
    seed: int = 1  # Seed for the segment starts.

    def length(self, unit_bytes: int) -> int:
        """Return the segment size in bytes, in whole blocks of `unit_bytes`; 0 if none fits."""
        return self.amount_bytes // self.count // unit_bytes * unit_bytes


@dataclass(frozen=True)
class OwnBlocks:
    """Block sizes and alignment of an operation, if they differ from those of the job."""

    block_sizes: tuple[BlockSize, ...]  # Mix of block sizes.
    align_bytes: int | None = None  # Alignment in bytes; `None` for the block size of each I/O.


@dataclass(frozen=True, kw_only=True)
class HostZones:
    """Zones that the host emulates on a drive without zones (`zonemode=zbd` in fio).

    Writes are sequential within a zone, and a full zone is reset before it is written again. All
    jobs in a workload share the zones, and a job's range and offset consist of whole zones.
    """

    size_bytes: int  # Zone size in bytes.
    capacity_bytes: int | None = None  # Writable size of each zone; `None` for the whole zone.
    max_open: int = 0  # Maximum number of zones that all jobs write concurrently; 0 for no limit.
    max_open_per_thread: int = 0  # Maximum number of open zones per thread; 0 for no limit.
    begin_full: bool = False  # `True` if zones are initially full, `False` if they are empty.
    read_unwritten: bool = False  # `True` if reads may access unwritten addresses.
    short_writes: bool = False  # `True` if the last write in a zone may be shorter than a block.
    reset_above_pct: float = 0.0  # Written percentage of the range above which zones are reset.
    reset_every_writes: int = 0  # Number of writes between two zone resets; 0 for no resets.


_COMMAND_BYTES = 1 << 32  # Exclusive upper bound on the command length.
_TRIM_BYTES = 1 << 31  # Length of the commands that a long TRIM is split into.


@dataclass(frozen=True)
class IoLog:
    """Recorded I/Os, which a job repeats instead of generating I/Os, as columns of equal length.

    `operations` has one letter per I/O, which is r for read, w for write, t for trim, or f for
    flush. Offsets are relative to the start of the device, and `times_ns` are arrival times since
    the start of the job (empty: as fast as possible).

    TRIMs that are too long for one command (4 GiB and more) are split into commands of 2 GiB, as
    the kernel does for drives with lower limits.
    """

    operations: str  # Operations, one letter per I/O.
    offsets: tuple[int, ...]  # Offsets in bytes; 0 for flushes.
    lengths: tuple[int, ...]  # Lengths in bytes; 0 for flushes.
    times_ns: tuple[int, ...] = ()  # Arrival times in ascending order.

    def __post_init__(self) -> None:
        """Split TRIMs that are too long."""
        pairs = zip(self.operations, self.lengths, strict=False)
        if any(letter == "t" and length >= _COMMAND_BYTES for letter, length in pairs):
            self._split_trims()

    def _split_trims(self) -> None:
        letters: list[str] = []
        columns: list[list[int]] = [[], [], []]
        times_ns = self.times_ns or (0,) * len(self.operations)
        for letter, begin, length, time_ns in zip(
            self.operations, self.offsets, self.lengths, times_ns, strict=True
        ):
            end = begin + length
            is_long = letter == "t" and length >= _COMMAND_BYTES
            for offset in range(begin, end, _TRIM_BYTES) if is_long else (begin,):
                letters.append(letter)
                piece = min(_TRIM_BYTES, end - offset) if is_long else length
                for column, value in zip(columns, (offset, piece, time_ns), strict=True):
                    column.append(value)
        names = ("offsets", "lengths", "times_ns") if self.times_ns else ("offsets", "lengths")
        object.__setattr__(self, "operations", "".join(letters))
        for name, column in zip(names, columns, strict=False):
            object.__setattr__(self, name, tuple(column))

    @property
    def ios(self) -> int:
        """Number of I/Os in a pass, excluding flushes."""
        return len(self.operations) - self.operations.count("f")


@dataclass(frozen=True, kw_only=True)
class SteadyEnd:
    """Condition that stops a job once its last `window_ns` are steady.

    The window is steady if none of its values, measured every `check_ns` from `ramp_ns` on,
    deviates from the mean by `limit` or more, or if the least-squares slope per value is below
    `limit`. Times must be multiples of the workload's `interval_ns`.
    """

    metric: Literal["iops", "bandwidth", "latency"]  # Metric over all operations together.
    limit: float  # Limit in percent of the mean if `relative`; otherwise in IOPS, bytes/s or ns.
    relative: bool = True  # `True` if `limit` is a percentage of the mean.
    slope: bool = False  # `True` if `limit` applies to the slope.
    window_ns: int  # Duration that must be steady.
    check_ns: int = SECOND_NS  # Interval between two values.
    ramp_ns: int = 0  # Time before the first value.


@dataclass(frozen=True, kw_only=True)
class LatencyTarget:
    """Search for the highest queue depth that meets a latency target.

    At this queue depth, `percentile` % of the I/Os in a window complete within `latency_ns`. The
    search covers depths up to the job's queue depth. The results come from a final window at the
    chosen depth; with `keeps_running`, the search continues until the job stops.
    """

    latency_ns: int  # Latency that I/Os must meet.
    percentile: float = 100.0  # Percentage of the I/Os that must meet the latency.
    window_ns: int  # Window length, which is a multiple of the workload's `interval_ns`.
    keeps_running: bool = False  # `True` to continue the search until the job stops.


@dataclass(frozen=True, kw_only=True)
class LeastRate:
    """Minimum rate: after two seconds, an operation that is slower for one cycle stops the job."""

    operation: Literal[0, 1, 2]  # Operation number in the measured series: read, write, trim.
    iops: float | None = None  # Minimum IOPS; either `iops` or `bytes_per_s` is set.
    bytes_per_s: float | None = None  # Minimum rate in bytes per second.
    cycle_ns: int = SECOND_NS  # Cycle length, which is a multiple of the workload's `interval_ns`.


@dataclass(frozen=True, kw_only=True)
class Job:
    """A load issued by `threads` threads with `queue_depth` outstanding I/Os each.

    Rates, volumes and I/O counts are totals over the job's threads. A job stops when it reaches the
    first of `duration_ns`, `volume_bytes` and `ios`, at least one of which must be set. Measured
    end conditions may stop it earlier: `until_steady`, `latency_target`, `least_rates`.
    """

    name: str = "job"  # Name shown in results.
    pattern: Pattern = "random"  # Address order.
    read_pct: float = 0.0  # Percentage of reads; I/Os that are neither reads nor trims are writes.
    trim_pct: float = 0.0  # Percentage of trims.
    # For random I/O: percentage of reads that continue after the thread's last read.
    sequential_read_pct: float = 0.0
    # For random I/O: percentage of writes that continue after the thread's last write.
    sequential_write_pct: float = 0.0
    block_sizes: tuple[BlockSize, ...] = (BlockSize(4 * KIB),)  # Mix of block sizes.
    # Single size instead of a mix, such as 4096 or "4 KiB".
    block_size: InitVar[int | str | None] = None
    writes: OwnBlocks | None = None  # Write sizes, if different.
    trims: OwnBlocks | None = None  # Trim sizes, if different.
    threads: int = 1  # Number of host threads.
    queue_depth: int = 1  # Number of outstanding I/Os per thread.
    offset_bytes: int = 0  # Start of the range.
    # Range length; `None` extends the range to the end of the device.
    range_bytes: int | None = None
    segments: Segments | None = None  # Segments of the range to use; `None` for the whole range.
    # Distance between the start offsets of consecutive threads in the range.
    thread_stride_bytes: int = 0
    start_bytes: int = 0  # For sequential I/O: start offset of each thread in its range.
    # For sequential writes: start offset of each thread; `None` for the same offset as reads.
    write_start_bytes: int | None = None
    align_bytes: int | None = None  # Alignment in bytes; `None` for the block size of each I/O.
    addresses: Addresses = field(default_factory=Addresses)  # Address distribution of random I/O.
    run_ios: int = 1  # For random I/O: number of consecutive I/Os from each random address.
    # For sequential I/O: bytes skipped after each I/O; negative to move backwards.
    hole_bytes: int = 0
    hole_after_bytes: int = 0  # Volume between two holes; 0 for a hole after each I/O.
    # For sequential I/O: number of equal sections of the range, whose I/Os alternate.
    files: int = 1
    # For sequential I/O: `True` if all operations continue after the last I/O.
    one_position: bool = False
    trim_first: bool = False  # `True` to trim each block before writing it.
    # Host zones, in which writes are sequential; `None` if there are no zones.
    host_zones: HostZones | None = None
    log: IoLog | None = None  # Recorded I/Os that replace generated I/Os.
    model: IoModel | None = None  # Trace model that replaces generated I/Os with an open loop.
    compressible_pct: float = 0.0  # Percentage of the data that a compressing controller can save.
    duplicate_pct: float = 0.0  # Percentage of writes that repeat the thread's last original data.
    stream: int = 0  # Stream number of the writes; 0 for the default stream.
    streams: tuple[int, ...] = ()  # Several streams for the writes, instead of `stream`.
    stream_order: StreamOrder = "in_turn"  # Order in which writes use the streams.
    # Arrivals per second; `None` to issue I/Os as fast as the drive completes them.
    rate_iops: float | None = None
    rate_bytes_per_s: float | None = None  # Arrival rate in bytes per second.
    # Percentage of the rate that reads receive, with separate schedules for reads and writes;
    # `None` for a single schedule for all operations.
    rate_read_pct: float | None = None
    arrival: Arrival = "linear"  # Arrival spacing for a rate.
    think_ns: int = 0  # Idle time after every `think_after_ios` I/Os of a thread.
    think_after_ios: int = 1  # Number of I/Os between two idle times of `think_ns`.
    rate_ignores_think: bool = False  # `True` if think time shifts the rate's schedule.
    # Duration of each burst (PTS HIR). Bursts and pauses alternate from the start of the job.
    burst_ns: int = 0
    pause_ns: int = 0  # Pause between two bursts; 0 for no pauses. A job with pauses has no rate.
    start_delay_ns: int = 0  # Delay before the first I/O.
    # Time after the first I/O before `duration_ns` and `ios` start and I/Os count.
    ramp_ns: int = 0
    flush_every_writes: int = 0  # Number of writes between two flushes; 0 for no flushes.
    # `True` for O_DSYNC writes, which complete on the media (simulated by a flush after each
    # write).
    dsync: bool = False
    duration_ns: int | None = None  # End condition: device time.
    volume_bytes: int | None = None  # End condition: bytes transferred.
    ios: int | None = None  # End condition: number of I/Os.
    ends_all: bool = False  # `True` if all jobs end with this job.
    flow_weight: int = 0  # Weight of each thread in the I/Os of its group; 0 for no limit.
    flow_group: int = 0  # Group of the job.
    until_steady: SteadyEnd | None = None  # End condition: steady state.
    # End condition: the highest queue depth that meets the target has been found.
    latency_target: LatencyTarget | None = None
    # End condition: an operation falls below its minimum rate.
    least_rates: tuple[LeastRate, ...] = ()

    def __post_init__(self, block_size: int | str | None) -> None:
        """Replace the block size mix if a single size is given."""
        if block_size is not None:
            size = parse_size(block_size) if isinstance(block_size, str) else block_size
            object.__setattr__(self, "block_sizes", (BlockSize(size),))

    def block_sizes_of(self, operation: str) -> tuple[BlockSize, ...]:
        """Return the block sizes for "read", "write" or "trim"."""
        mix = {"write": self.writes, "trim": self.trims}.get(operation)
        return self.block_sizes if mix is None else mix.block_sizes

    @property
    def all_block_sizes(self) -> tuple[BlockSize, ...]:
        """Block sizes of all operations."""
        others = (size for mix in (self.writes, self.trims) if mix for size in mix.block_sizes)
        return (*self.block_sizes, *others)

    @property
    def is_scheduled(self) -> bool:
        """`True` for an open loop: I/Os arrive at times that do not depend on the drive."""
        logged = self.log is not None and bool(self.log.times_ns)
        rated = self.rate_iops is not None or self.rate_bytes_per_s is not None
        return rated or logged or self.model is not None

    def with_duration_s(self, seconds: float) -> Job:
        """Return the load with a duration in seconds of device time as the only end condition."""
        return replace(self, duration_ns=round(seconds * SECOND_NS), volume_bytes=None, ios=None)


@dataclass(frozen=True)
class Workload:
    """Jobs that run at the same time; `seed` determines all random choices of the jobs."""

    name: str  # Name shown in results.
    jobs: tuple[Job, ...]  # Jobs that run concurrently.
    seed: int = 1  # Seed for every random choice.
    interval_ns: int = SECOND_NS  # Time resolution of the measured series.

    def to_json(self) -> str:
        """Return the JSON for the native crate, whose keys are these classes' field names."""
        return json.dumps(asdict(self), separators=(",", ":"))


@dataclass(frozen=True)
class Access:
    """Summary of a workload as single values, which are `None` for mixes and for several jobs."""

    pattern: Pattern | None = None
    block_bytes: int | None = None
    read_pct: float | None = None
    threads: int | None = None
    queue_depth: int | None = None  # Number of outstanding I/Os per thread.


def access_of(workload: Workload) -> Access:
    """Return a workload's summary for the columns of a step table."""
    if len(workload.jobs) != 1:
        return Access()
    job = workload.jobs[0]
    single = job.block_sizes[0].bytes if len(job.all_block_sizes) == 1 else None
    pattern = None if any(size.sequential_pct for size in job.all_block_sizes) else job.pattern
    return Access(pattern, single, job.read_pct, job.threads, job.queue_depth)


def workload_from_mapping(data: Mapping[str, Any]) -> Workload:
    """Recreate a `Workload` from `to_json` output that the native crate has validated."""
    rest = {key: value for key, value in data.items() if key != "jobs"}
    return Workload(jobs=tuple(_job(raw) for raw in data["jobs"]), **rest)


def _job(raw: Mapping[str, Any]) -> Job:
    job = dict(raw)
    readers: dict[str, Callable[[Any], Any]] = {
        "block_sizes": _sizes,
        "writes": _own_blocks,
        "trims": _own_blocks,
        "addresses": _addresses,
        "segments": lambda given: Segments(**given),
        "host_zones": lambda given: HostZones(**given),
        "log": lambda given: IoLog(**{name: _plain(value) for name, value in given.items()}),
        "model": io_model_from_mapping,
        "streams": tuple,
        "until_steady": lambda given: SteadyEnd(**given),
        "latency_target": lambda given: LatencyTarget(**given),
        "least_rates": lambda given: tuple(LeastRate(**rate) for rate in given),
    }
    for name, read in readers.items():
        if job.get(name) is not None:
            job[name] = read(job[name])
    return Job(**job)


def _sizes(given: Iterable[Mapping[str, Any]]) -> tuple[BlockSize, ...]:
    return tuple(BlockSize(**size) for size in given)


def _own_blocks(given: Mapping[str, Any]) -> OwnBlocks:
    return OwnBlocks(_sizes(given["block_sizes"]), given.get("align_bytes"))


def _addresses(given: Mapping[str, Any]) -> Addresses:
    zones = tuple(Zone(**zone) for zone in given.get("zones", ()))
    return Addresses(**{**given, "zones": zones, "blocks": tuple(given.get("blocks", ()))})


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
