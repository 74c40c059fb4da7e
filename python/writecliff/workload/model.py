"""Workload model shared by all engines.

A `Workload` is a set of `Job`s that run at the same time. The Python API, TOML files and fio job
files create workloads, and both engines (simulated and fio) execute them. The native crate
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

    bytes: int  # of one I/O
    weight: float = 1.0  # weight of the size among the I/Os
    # For random I/O: fraction of the I/Os of this size that form a sequential stream from a random
    # address, with separate streams for each operation of each thread.
    sequential_pct: float = 0.0


@dataclass(frozen=True)
class Zone:
    """`access_pct` of the accesses go to the next `size_pct` of the range (JESD219 zones)."""

    access_pct: float  # % of the accesses
    size_pct: float  # % of the range


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

    kind: AddressKind = "uniform"  # see above
    theta: float | None = None  # zipf: skew exponent, up to 10
    generator: Literal["exact", "fio"] = "exact"  # zipf: see above
    ranks: int | None = None  # zipf: adjacent ranks share a block; `None`: one per block
    hot_pct: float | None = None  # pareto: see above
    deviation_pct: float | None = None  # normal: see above
    zones: tuple[Zone, ...] = ()  # of zoned and hot_cold
    blocks: tuple[int, ...] = ()  # of sequence: numbers of blocks, in order
    advancing: bool = False  # sequence: each pass is shifted by its own length in blocks
    spare_pct: float | None = None  # sprandom: spare flash, in % of the range
    regions: int | None = None  # sprandom: number of parts of the flash; `None`: 100
    # Pieces of this size are permuted over the range. `None`: zones are contiguous, and ranks of
    # zipf, pareto and normal are scattered block by block.
    scatter_bytes: int | None = None
    scatter_seed: int = 0  # number of the permutation, which jobs with the same number share


@dataclass(frozen=True)
class Segments:
    """PTS active-range segments: equal, disjoint, with `amount_bytes` in total.

    The segment starts are chosen at random from `seed`, which is separate from the workload's seed
    because all steps of a test must use the same segments.
    """

    count: int  # number of segments
    amount_bytes: int  # total size of the segments
    seed: int = 1  # seed of the segment starts

    def length(self, unit_bytes: int) -> int:
        """Return the segment size in bytes, in whole blocks of `unit_bytes`; 0 if none fits."""
        return self.amount_bytes // self.count // unit_bytes * unit_bytes


@dataclass(frozen=True)
class OwnBlocks:
    """Block sizes and alignment of an operation, if they differ from the job's."""

    block_sizes: tuple[BlockSize, ...]  # mix of block sizes
    align_bytes: int | None = None  # `None`: the block size of each I/O


@dataclass(frozen=True, kw_only=True)
class HostZones:
    """Zones that the host emulates on a drive without zones (fio's `zonemode=zbd`).

    Writes are sequential within a zone, and a full zone is reset before it is written again. All
    jobs in a workload share the zones, and a job's range and offset are whole zones.
    """

    size_bytes: int  # of a zone
    capacity_bytes: int | None = None  # writable size of each zone; `None`: the whole zone
    max_open: int = 0  # maximum number of zones that all jobs write at a time; 0: no limit
    max_open_per_thread: int = 0  # the same limit for each thread
    begin_full: bool = False  # `True` if zones are initially full, otherwise empty
    read_unwritten: bool = False  # reads access any address, not just written addresses
    short_writes: bool = False  # the last write in a zone may be shorter than a block
    reset_above_pct: float = 0.0  # while this percentage of the range is written,
    reset_every_writes: int = 0  # zones are reset at this interval, in writes; 0: never


_COMMAND_BYTES = 1 << 32  # the length of a command is below this
_TRIM_BYTES = 1 << 31  # length of the commands of a split TRIM


@dataclass(frozen=True)
class IoLog:
    """Recorded I/Os that a job repeats instead of generated I/Os, as columns of equal length.

    `operations` has a letter per I/O: r for read, w for write, t for trim, f for flush. Offsets are
    relative to the start of the device; `times_ns` are arrival times since the job's start (empty:
    as fast as possible).

    TRIMs that are too long for one command (4 GiB and more) are split into commands of 2 GiB, as
    the kernel does for drives with a lower limit.
    """

    operations: str  # a letter each
    offsets: tuple[int, ...]  # in bytes; 0 for flushes
    lengths: tuple[int, ...]  # in bytes; 0 for flushes
    times_ns: tuple[int, ...] = ()  # arrivals, ascending

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
    """Condition that stops a job when its last `window_ns` are steady.

    The window is steady if none of its values, measured every `check_ns` from `ramp_ns` on,
    deviates from the mean by `limit`, or if the slope of the least-squares line per value is below
    `limit`. Times are multiples of the workload's `interval_ns`.
    """

    metric: Literal["iops", "bandwidth", "latency"]  # over all operations together
    limit: float  # in % of the mean if `relative`; otherwise in IOPS, bytes/s or ns
    relative: bool = True  # `True` if `limit` is in % of the mean
    slope: bool = False  # `True` if `limit` applies to the slope
    window_ns: int  # time that must be steady
    check_ns: int = SECOND_NS  # time per value
    ramp_ns: int = 0  # time before the first value


@dataclass(frozen=True, kw_only=True)
class LatencyTarget:
    """Search for the highest queue depth that meets a latency target.

    At this depth, `percentile` % of the I/Os in a window complete within `latency_ns`. Depths range
    up to the job's queue depth. Results come from a final window at the chosen depth; with
    `keeps_running`, the search continues until the job stops.
    """

    latency_ns: int  # latency that I/Os must meet
    percentile: float = 100.0  # percentage of the I/Os that must meet it
    window_ns: int  # a multiple of the workload's `interval_ns`
    keeps_running: bool = False  # see above


@dataclass(frozen=True, kw_only=True)
class LeastRate:
    """Minimum rate: after two seconds, an operation that is slower for one cycle stops the job."""

    operation: Literal[0, 1, 2]  # read, write, trim, as in the measured series
    iops: float | None = None  # either this or bytes_per_s
    bytes_per_s: float | None = None  # the same rate in bytes
    cycle_ns: int = SECOND_NS  # a multiple of the workload's `interval_ns`


@dataclass(frozen=True, kw_only=True)
class Job:
    """A load issued by `threads` threads with `queue_depth` outstanding I/Os each.

    Rates, volumes and I/O counts are totals over the job's threads. A job stops when it reaches the
    first of `duration_ns`, `volume_bytes` and `ios`, at least one of which must be set. Measured
    end conditions may stop it earlier: `until_steady`, `latency_target`, `least_rates`.
    """

    name: str = "job"  # name shown in results
    pattern: Pattern = "random"  # address order
    read_pct: float = 0.0  # share of the I/Os that read, 0 to 100; what is left writes
    trim_pct: float = 0.0  # share of the I/Os that trim, 0 to 100
    sequential_read_pct: float = 0.0  # random: reads that continue after the thread's last read
    sequential_write_pct: float = 0.0  # random: writes that continue after the thread's last write
    block_sizes: tuple[BlockSize, ...] = (BlockSize(4 * KIB),)  # mix of block sizes
    block_size: InitVar[int | str | None] = None  # a single size instead of a mix: 4096, "4 KiB"
    writes: OwnBlocks | None = None  # write sizes, if different
    trims: OwnBlocks | None = None  # trim sizes, if different
    threads: int = 1  # host threads
    queue_depth: int = 1  # outstanding I/Os per thread
    offset_bytes: int = 0  # start of the range
    range_bytes: int | None = None  # range length; `None`: to the end of the device
    segments: Segments | None = None  # segments of the range to use; `None`: the whole range
    thread_stride_bytes: int = 0  # thread t starts at offset `t * stride` in the range
    start_bytes: int = 0  # sequential: offset of each thread's start in its range
    write_start_bytes: int | None = None  # sequential: the same for writes; `None`: as for reads
    align_bytes: int | None = None  # `None`: the block size of each I/O
    addresses: Addresses = field(default_factory=Addresses)  # of random I/O
    run_ios: int = 1  # random: number of consecutive I/Os from each random address
    hole_bytes: int = 0  # sequential: bytes skipped after each I/O; negative: backwards
    hole_after_bytes: int = 0  # hole after this volume instead of after each I/O
    files: int = 1  # sequential: equal parts of the range, whose I/Os alternate
    one_position: bool = False  # sequential: all operations continue after the last I/O
    trim_first: bool = False  # each block is trimmed, then written
    host_zones: HostZones | None = None  # writes are sequential within each zone
    log: IoLog | None = None  # replaces generated I/Os
    model: IoModel | None = None  # model of a trace instead of generated I/Os; an open loop
    compressible_pct: float = 0.0  # percentage of the data that a compressing controller can save
    duplicate_pct: float = 0.0  # percentage of writes that repeat the thread's last original data
    stream: int = 0  # stream of the writes; 0: the default stream
    streams: tuple[int, ...] = ()  # several streams for the writes, instead of `stream`
    stream_order: StreamOrder = "in_turn"  # how the stream of a write is chosen
    rate_iops: float | None = None  # arrivals per second; `None`: as fast as the drive completes
    rate_bytes_per_s: float | None = None  # the same rate in bytes
    rate_read_pct: float | None = None  # share of the rate that reads follow on a schedule of their
    # own, as do writes; `None`: a single schedule for all operations
    arrival: Arrival = "linear"  # arrival spacing for a rate
    think_ns: int = 0  # idle time after every `think_after_ios` I/Os of a thread
    think_after_ios: int = 1  # see `think_ns`
    rate_ignores_think: bool = False  # think time shifts the rate's schedule
    burst_ns: int = 0  # issue for `burst_ns`, then nothing for `pause_ns`, over and over from the
    pause_ns: int = 0  # job's start (PTS HIR); 0: no pauses; not with a rate
    start_delay_ns: int = 0  # delay before the first I/O
    ramp_ns: int = 0  # from the first I/O on, until `duration_ns` and `ios` start and I/Os count
    flush_every_writes: int = 0  # 0: never
    dsync: bool = False  # O_DSYNC: a write completes on the media (simulated: a flush after each)
    duration_ns: int | None = None  # end condition: device time
    volume_bytes: int | None = None  # end condition: bytes transferred
    ios: int | None = None  # end: number of I/Os
    ends_all: bool = False  # all jobs end with this one
    flow_weight: int = 0  # weight of each thread in its group's I/Os; 0: not limited
    flow_group: int = 0  # group of the job
    until_steady: SteadyEnd | None = None  # end condition: steady state
    latency_target: LatencyTarget | None = None  # end: the queue depth that meets it is found
    least_rates: tuple[LeastRate, ...] = ()  # end condition: an operation is slower than this

    def __post_init__(self, block_size: int | str | None) -> None:
        """Replace the mix of block sizes if a single size is given."""
        if block_size is not None:
            size = parse_size(block_size) if isinstance(block_size, str) else block_size
            object.__setattr__(self, "block_sizes", (BlockSize(size),))

    def block_sizes_of(self, operation: str) -> tuple[BlockSize, ...]:
        """Return the block sizes of "read", "write" or "trim"."""
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
        """Return the load with a duration in seconds of device time as its only end condition."""
        return replace(self, duration_ns=round(seconds * SECOND_NS), volume_bytes=None, ios=None)


@dataclass(frozen=True)
class Workload:
    """Jobs that run at the same time; `seed` determines all their random choices."""

    name: str  # name shown in results
    jobs: tuple[Job, ...]  # run at the same time
    seed: int = 1  # seed of every random choice
    interval_ns: int = SECOND_NS  # time resolution of the measured series

    def to_json(self) -> str:
        """Return the JSON for the native crate, whose keys are the field names of these classes."""
        return json.dumps(asdict(self), separators=(",", ":"))


@dataclass(frozen=True)
class Access:
    """Summary of a workload in single values, which are `None` for mixes and several jobs."""

    pattern: Pattern | None = None
    block_bytes: int | None = None
    read_pct: float | None = None
    threads: int | None = None
    queue_depth: int | None = None  # outstanding I/Os per thread


def access_of(workload: Workload) -> Access:
    """Return a workload's summary for the columns of a table of steps."""
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
