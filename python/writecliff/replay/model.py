"""A trace prepared for a simulated drive, and the results of replaying it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff import _native
from writecliff.devices import describe, open_device, read_device_file
from writecliff.engines.placement_status import FdpStatistics, PlacementStatus, status_of
from writecliff.errors import ConfigError
from writecliff.native_errors import as_user_errors
from writecliff.parallel import drive_memory_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from writecliff.devices import DeviceDescription
    from writecliff.replay.columns import FileIO

BLOCK_BYTES = 4096
YEAR_S = 365.25 * 86_400
NS_PER_S = 1e9
READ_QUANTILE = 0.9999
FILLS_LEAST = 6.0
WRITTEN_LEAST_BYTES = 8e9  # a small drive is filled more often: reads for p99.99, and it is cheap
TIMED_FILLS = 0.5  # drive fills of the timed part: some garbage collection of every stream
TIMED_LEAST_BYTES = 4e9
BYTES_PER_BLOCK_IN_REPLAY = 24  # ledger, last writes, death times
STREAMS_MAX = 128
PURPOSE = "a replay"  # what messages say that hard disks do not do
COPIES_MAX = 64


@dataclass(frozen=True)
class Sizing:
    """How large a drive, and how long a replay."""

    fill_pct: float | None = 85.0  # of the drive that files take at their peak; None: as it is
    units: int | None = None  # reclaim units of a drive that is cut down
    unit_bytes: float | None = None  # about the size of one instead
    fills: float | None = None  # drive fills to be written, in whole rounds (see FILLS_LEAST)
    repeats: int | None = None  # rounds; goes before `fills`
    coalesce: bool = False  # appends wait for fsync or the next block
    allocator: str = "next-fit"  # of the file system; see `_native.allocators`
    trim: bool = True  # what it frees is trimmed; else the drive keeps it until it is overwritten
    copies: int = 1  # of the traced program beside each other, spread over a round


@dataclass(frozen=True)
class ReplaySetup:
    """A trace on a drive, ready to be replayed."""

    io: FileIO
    blocks: _native.BlockTrace
    device: DeviceDescription  # as --on names it
    drive: _native.Device  # that is simulated
    simulated: DeviceDescription
    streams: int  # that it has
    units: int  # reclaim units that it has
    rated_cycles: int
    peak_bytes: int
    written_bytes: int  # in one round of all copies
    sizing: Sizing

    @property
    def memory_bytes(self) -> int:
        """Of one replay."""
        drive = drive_memory_bytes(self.simulated.capacity_bytes, self.simulated.mapped_bytes)
        return drive + self.simulated.capacity_bytes // 4096 * BYTES_PER_BLOCK_IN_REPLAY

    @property
    def mean_fill_pct(self) -> float:
        """Share of the drive that files take on average, over what is written."""
        return 100 * self.blocks.mean_bytes / self.simulated.capacity_bytes

    @property
    def unit_bytes(self) -> float:
        """A reclaim unit of the simulated drive."""
        return self.simulated.flash_bytes(PURPOSE) / self.units

    @property
    def write_rate_bytes_per_s(self) -> float | None:
        """At which the traced program wrote."""
        seconds = self.io.duration_ns / NS_PER_S
        return self.written_bytes / seconds if seconds > 0 else None

    def endurance_bytes(self, waf: float) -> float:
        """What a host can write to the whole drive until its flash has its rated cycles."""
        return self.rated_cycles * self.device.flash_bytes(PURPOSE) / waf

    def years(self, waf: float) -> float | None:
        """Until then at the rate of the trace, on the whole drive."""
        rate = self.write_rate_bytes_per_s
        return self.endurance_bytes(waf) / rate / YEAR_S if rate else None


@dataclass(frozen=True)
class Replayed:
    """One replay. `blocks` counts 4 KiB blocks by origin, stream and lifetime (see `native`)."""

    scheme: str
    streams: int
    mistag_pct: float
    waf: float
    host_bytes: NDArray[np.uint64]
    nand_bytes: NDArray[np.uint64]
    blocks: NDArray[np.uint64]
    oracle: str | None
    reads: _native.Histogram
    writes: _native.Histogram
    timed_ns: int
    timed_written_bytes: int
    counters: Mapping[str, Any]  # at the end
    statistics: FdpStatistics  # of the measured half
    placement: PlacementStatus | None  # the interface at the end
    overflow: Mapping[int, int]  # bytes of streams that could not be used, by number

    @property
    def mapped_bytes(self) -> int:
        """What the drive holds for valid at the end: live files, and those it was not told of."""
        return int(self.blocks[:, :, -1].sum()) * BLOCK_BYTES

    @property
    def waf_drift(self) -> float | None:
        """By how much write amplification still rose from the third quarter to the fourth: near 0
        on a drive that has settled. None where too little was written to tell."""
        first, last = _waf_between(self, 0.5, 0.75), _waf_between(self, 0.75, 1.0)
        return last / first - 1 if first > 0 else None

    @property
    def read_p9999_ns(self) -> int | None:
        """None without a timed part, or with too few reads in it."""
        return self.reads.quantile(READ_QUANTILE).value_ns if self.reads.count else None


def _waf_between(done: Replayed, begin: float, end: float) -> float:
    """Write amplification between two parts of what the host wrote."""
    host, nand = done.host_bytes.astype(float), done.nand_bytes.astype(float)
    at = [begin * host[-1], end * host[-1]]
    (h0, h1), (n0, n1) = (np.interp(at, host, y) for y in (host, nand))
    return float((n1 - n0) / (h1 - h0))


def simulated_name(target: str) -> str:
    """The drive's name or file of --on. Raises ConfigError for any but a simulated one."""
    kind, _, name = target.partition(":")
    if kind != "sim" or not name:
        raise ConfigError(
            f"{target} is not simulated; a trace is replayed on simulated drives",
            hint="for example --on sim:sata-tlc-120",
        )
    return name


def checked_scheme(name: str | None, with_rules: bool) -> str:
    """The scheme of --assign, or what is meant without it. Raises ConfigError."""
    if name is None:
        return "rules" if with_rules else "none"
    known = _native.assign_schemes()
    if name not in known:
        raise ConfigError.unknown("stream assignment", name, known)
    if name == "rules" and not with_rules:
        raise ConfigError("--assign rules needs rules", hint="give them with --streams FILE")
    if with_rules and name != "rules":
        raise ConfigError(
            f"--streams means nothing with --assign {name}", hint="leave one of them out"
        )
    return name


def lay_out(io: FileIO, target: str, sizing: Sizing, *, streams: int | None = None) -> ReplaySetup:
    """Lay a trace on the drive `target`, or on one of its kind that it fills.

    `streams`: what the drive is given (default: what its file says). Raises ConfigError: a trace
    that does not fit names the size that does.
    """
    _check(sizing)
    opened = open_device(*read_device_file(simulated_name(target)))
    device = describe(opened)
    device.flash_bytes(PURPOSE)
    with as_user_errors():
        needs = io.native.footprint(sizing.coalesce, sizing.copies)
    capacity_bytes = units = None
    if sizing.fill_pct is not None:
        capacity_bytes = round(needs["peak_bytes"] / (sizing.fill_pct / 100))
        units = sizing.units
        if units is None and sizing.unit_bytes is not None:
            raw_bytes = capacity_bytes * device.flash_bytes(PURPOSE) / device.capacity_bytes
            units = max(1, round(raw_bytes / sizing.unit_bytes))
    streams = streams or device.streams
    if not 1 <= streams <= STREAMS_MAX:
        raise ConfigError(f"{streams} streams; a drive has 1 to {STREAMS_MAX}")
    with as_user_errors():
        drive = opened.for_streams(streams, capacity_bytes, units)
    simulated = describe(drive)
    enough = max(FILLS_LEAST, WRITTEN_LEAST_BYTES / simulated.capacity_bytes)
    fills = None if sizing.repeats is not None else sizing.fills or enough
    with as_user_errors():
        blocks = io.native.lay_out(
            simulated.capacity_bytes,
            sizing.coalesce,
            repeats=sizing.repeats,
            fills=fills,
            allocator=sizing.allocator,
            trim=sizing.trim,
            copies=sizing.copies,
        )
    return ReplaySetup(
        io=io,
        blocks=blocks,
        device=device,
        drive=drive,
        simulated=simulated,
        streams=streams,
        units=simulated.reclaim_units or 0,
        rated_cycles=simulated.rated_cycles or 0,
        peak_bytes=needs["peak_bytes"],
        written_bytes=needs["written_bytes"],
        sizing=sizing,
    )


def _check(sizing: Sizing) -> None:
    if sizing.fill_pct is not None and not 1 <= sizing.fill_pct <= 99:
        raise ConfigError(f"--fill is {sizing.fill_pct:g}; it must be 1 to 99 percent")
    if sizing.fills is not None and not 0 < sizing.fills <= 1000:
        raise ConfigError(f"--fills is {sizing.fills:g}; it must be above 0, and 1000 at most")
    if sizing.repeats is not None and sizing.repeats < 1:
        raise ConfigError(f"--repeat is {sizing.repeats}; it must be 1 or more")
    if not 1 <= sizing.copies <= COPIES_MAX:
        raise ConfigError(f"--copies is {sizing.copies}; it must be 1 to {COPIES_MAX}")
    known = _native.allocators()
    if sizing.allocator not in known:
        raise ConfigError.unknown("allocator", sizing.allocator, known)


def replay(
    setup: ReplaySetup,
    scheme: str,
    streams: int,
    *,
    mistag_pct: float = 0.0,
    timed: bool = False,
    queue_depth: int = 32,
    readers: int = 4,
    reads_per_block: float | None = None,
    timed_bytes: int | None = None,
    seed: int = 1,
) -> Replayed:
    """Replay a trace with its writes in `streams` streams.

    `timed`: its end on the timed clock too, with random reads of live data, for latencies;
    `reads_per_block`: so many for each 4 KiB written, else as many as `readers` do; `timed_bytes`:
    so much is written in it. Raises ConfigError.
    """
    if not 1 <= streams <= setup.streams:
        raise ConfigError(f"{streams} streams; the drive has {setup.streams}")
    if not 0 <= mistag_pct <= 100:
        raise ConfigError(f"--mistag is {mistag_pct:g}; it must be 0 to 100 percent")
    if timed_bytes is None:
        timed_bytes = round(max(TIMED_FILLS * setup.simulated.capacity_bytes, TIMED_LEAST_BYTES))
    with as_user_errors():
        raw = setup.blocks.replay(
            setup.drive,
            scheme,
            streams,
            mistag=mistag_pct / 100,
            seed=seed,
            timed_bytes=timed_bytes if timed else 0,
            queue_depth=queue_depth,
            readers=readers,
            reads_per_block=reads_per_block,
        )
    shape = (-1, raw["streams"], raw["buckets"])
    return Replayed(
        scheme=scheme,
        streams=streams,
        mistag_pct=mistag_pct,
        waf=raw["waf"],
        host_bytes=raw["host_bytes"],
        nand_bytes=raw["nand_bytes"],
        blocks=raw["blocks"].reshape(shape),
        oracle=raw["oracle"],
        reads=raw["reads"],
        writes=raw["writes"],
        timed_ns=raw["timed_ns"],
        timed_written_bytes=raw["timed_written_bytes"],
        counters=raw["after"],
        statistics=_statistics(*raw["statistics"]),
        placement=(placement := status_of(raw["placement"])),
        overflow=_overflow(raw["overflow"], placement),
    )


def _statistics(begin: Mapping[str, int], end: Mapping[str, int]) -> FdpStatistics:
    return FdpStatistics(**end).since(FdpStatistics(**begin))


def _overflow(given: Mapping[int, int], placement: PlacementStatus | None) -> dict[int, int]:
    """Bytes in streams beyond --count, and in those that the drive then refused."""
    overflow = dict(given)
    for number, size in (placement.overflow_by_number if placement else {}).items():
        overflow[number] = overflow.get(number, 0) + size
    return dict(sorted(overflow.items()))
