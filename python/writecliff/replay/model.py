"""Preparation of a trace for a simulated drive, and replay results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff import _native
from writecliff.devices import describe, open_device, preset_names, read_device_file
from writecliff.engines.data_placement_status import DataPlacementStatus, FdpStatistics, status_of
from writecliff.errors import ConfigError
from writecliff.native_errors import as_user_errors
from writecliff.parallel import SLOT_BYTES, drive_memory_bytes
from writecliff.progress import UNSEEN, WorkProgress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from writecliff.devices import DeviceDescription
    from writecliff.replay.columns import FileIO

YEAR_S = 365.25 * 86_400
NS_PER_S = 1e9
READ_QUANTILE = 0.9999
FILLS_MIN = 6.0
WRITTEN_MIN_BYTES = 8e9  # Small drives are filled more often, which provides more reads for p99.99.
TIMED_FILLS = 0.5  # Drive fills in the timed replay, which cause some garbage collection.
TIMED_MIN_BYTES = 4e9
BYTES_PER_BLOCK_IN_REPLAY = 24  # Memory for the ledger, last writes and overwrite times.
STREAMS_MAX = 128
# Fraction of the writes above which further rounds determine write amplification.
UNDRAWN_MAX = 0.5
PURPOSE = "a replay"  # Purpose named in the message for hard disks.
COPIES_MAX = 64
PAGE_CACHE, IMMEDIATE = "page-cache", "immediate"
BY_TRACE = "by-trace"  # Page cache for program traces, and immediate writes for drive traces.
DAY_S = 86_400
_AS_MEASURED = (
    "waf", "host_bytes", "nand_bytes", "oracle", "reads", "writes", "timed_ns",
    "timed_written_bytes",
)  # fmt: skip


@dataclass(frozen=True)
class Sizing:
    """Drive size, replay length, and file system in a replay."""

    fill_pct: float | None = (
        # Percentage of the drive that files fill at peak; `None` to leave the drive unchanged.
        85.0
    )
    units: int | None = None  # Number of reclaim units on a drive that is cut down.
    unit_bytes: float | None = None  # Approximate reclaim unit size, as an alternative to `units`.
    fills: float | None = None  # Number of drive fills, in whole rounds (see FILLS_MIN).
    repeats: int | None = None  # Number of rounds; takes precedence over `fills`.
    # Time when writes reach the drive (see `_native.writebacks`), or `BY_TRACE`.
    writeback: str = BY_TRACE
    allocator: str = "next-fit"  # Allocator of the file system (see `_native.allocators`).
    trim: bool = True  # `False` if the drive retains deleted data until they are overwritten.
    copies: int = 1  # Number of copies of the traced program that run in parallel, offset in time.


@dataclass(frozen=True)
class ReplaySetup:
    """A trace prepared for a simulated drive."""

    io: FileIO  # Trace to replay.
    blocks: _native.BlockTrace  # Writes and TRIMs in the trace, mapped to the drive.
    device: DeviceDescription  # Drive given by --on.
    drive: _native.Device  # Drive that is simulated.
    simulated: DeviceDescription  # Description of `drive`.
    peak_bytes: int  # Total file size at peak.
    written_bytes: int  # Bytes that reach the drive in one round of all copies.
    sizing: Sizing  # Assumptions about the sizes.
    writes_per_day_bytes: float | None = None  # Write rate that overrides the trace's write rate.

    @property
    def memory_bytes(self) -> int:
        """Memory size of a single replay."""
        drive = drive_memory_bytes(self.simulated.capacity_bytes, self.simulated.mapped_bytes)
        return drive + self.simulated.capacity_bytes // SLOT_BYTES * BYTES_PER_BLOCK_IN_REPLAY

    @property
    def mean_fill_pct(self) -> float:
        """Mean fraction of the drive occupied by files during the replay."""
        return 100 * self.blocks.mean_bytes / self.simulated.capacity_bytes

    @property
    def unit_bytes(self) -> float:
        """Reclaim unit size of the simulated drive."""
        return self.simulated.flash_bytes(PURPOSE) / (self.simulated.reclaim_units or 1)

    @property
    def drive_fills(self) -> float:
        """Write volume of the replay, in multiples of the simulated drive's capacity."""
        return self.blocks.written_bytes / self.simulated.capacity_bytes

    @property
    def not_quoted(self) -> str | None:
        """Reason why write amplification and lifetime are not reported, or `None`.

        Scattered data that outlive a replay round are overwritten in the next round. If the
        overwrite order is neither randomised again nor recorded in the trace, all data in a reclaim
        unit are overwritten together, and the write amplification is near 1 for any program.
        """
        share = self.blocks.undrawn_bytes * self.sizing.copies / max(1, self.written_bytes)
        if self.blocks.rounds < 2 or share <= UNDRAWN_MAX:
            return None
        return (
            f"not quoted: the trace is repeated {self.blocks.rounds} times, and "
            f"{100 * min(share, 1.0):.0f} % of its writes are data whose next overwrites it does "
            "not show and that keep their order; capture a longer trace"
        )

    @property
    def write_rate_bytes_per_s(self) -> float | None:
        """Write rate for lifetime calculations, either the given rate or the traced program's rate.

        The rate is `None` if the trace has no duration.
        """
        if self.writes_per_day_bytes is not None:
            return self.writes_per_day_bytes / DAY_S
        seconds = self.io.duration_ns / NS_PER_S
        return self.written_bytes / seconds if seconds > 0 else None

    def endurance_bytes(self, waf: float) -> float:
        """Return the bytes that a host can write before the flash reaches its rated cycles."""
        return (self.device.rated_cycles or 0) * self.device.flash_bytes(PURPOSE) / waf

    def years(self, waf: float) -> float | None:
        """Return the full-size drive's lifetime in years at the write rate."""
        rate = self.write_rate_bytes_per_s
        return self.endurance_bytes(waf) / rate / YEAR_S if rate else None


@dataclass(frozen=True)
class Replayed:
    """Results of a replay.

    `blocks` counts 4 KiB blocks by origin, stream and lifetime bucket (see `BlockTrace.replay`).
    """

    scheme: str  # Stream assignment scheme.
    streams: int  # Number of available streams.
    mistag_pct: float  # Percentage of writes assigned to a wrong stream.
    waf: float  # Write amplification over the second half of the writes.
    host_bytes: NDArray[np.uint64]  # Cumulative bytes written by the host.
    nand_bytes: NDArray[np.uint64]  # Cumulative bytes programmed to flash.
    blocks: NDArray[np.uint64]
    oracle: str | None  # Oracle's grouping of overwrite times; `None` for other schemes.
    reads: _native.Histogram  # Read latencies in the timed replay.
    writes: _native.Histogram  # Write latencies in the timed replay.
    timed_ns: int  # Duration of the timed replay.
    timed_written_bytes: int  # Bytes written during the timed replay.
    counters: Mapping[str, Any]  # Drive counters after the replay.
    statistics: FdpStatistics  # FDP statistics for the measured half of the writes.
    # State of the data placement interface after the replay.
    data_placement: DataPlacementStatus | None
    overflow: Mapping[int, int]  # Bytes of streams that could not be used, by stream number.

    @property
    def mapped_bytes(self) -> int:
        """Valid bytes at the end, from live files and from files deleted without TRIM."""
        return int(self.blocks[:, :, -1].sum()) * SLOT_BYTES

    @property
    def waf_drift(self) -> float | None:
        """Relative increase in write amplification from the third to the fourth quarter.

        A value near 0 means that the write amplification has settled. The value is `None` if too
        little was written.
        """
        first, last = _waf_between(self, 0.5, 0.75), _waf_between(self, 0.75, 1.0)
        return last / first - 1 if first > 0 else None

    @property
    def read_p9999_ns(self) -> int | None:
        """99.99th percentile read latency, or `None` if there were too few timed reads."""
        return self.reads.quantile(READ_QUANTILE).value_ns if self.reads.count else None


def _waf_between(done: Replayed, begin: float, end: float) -> float:
    """Return the write amplification between two fractions of the host writes."""
    host, nand = done.host_bytes.astype(float), done.nand_bytes.astype(float)
    at = [begin * host[-1], end * host[-1]]
    (h0, h1), (n0, n1) = (np.interp(at, host, y) for y in (host, nand))
    return float((n1 - n0) / (h1 - h0))


def simulated_name(target: str) -> str:
    """Return the simulated drive's name or file, as given by --on.

    Raises:
        ConfigError: If the target is not simulated.
    """
    kind, _, name = target.partition(":")
    if kind != "sim" or not name:
        meant = f"sim:{target}" if target in preset_names() else None
        raise ConfigError(
            f"{target} is not simulated, but traces are replayed only on simulated drives",
            hint=f"did you mean '{meant}'?"
            if meant
            else "use a simulated drive, for example --on sim:sata-tlc-120",
        )
    return name


def checked_scheme(name: str | None, with_rules: bool) -> str:
    """Return the scheme given by --assign, or the default scheme.

    Raises:
        ConfigError: If the scheme is unknown, or does not match the presence or absence of rules.
    """
    if name is None:
        return "rules" if with_rules else "none"
    schemes = _native.assign_schemes()
    if name not in schemes:
        raise ConfigError.unknown("stream assignment", name, schemes)
    if name == "rules" and not with_rules:
        raise ConfigError(
            "--assign rules requires a rules file",
            hint="specify the rules file with --streams FILE",
        )
    if with_rules and name != "rules":
        raise ConfigError(
            f"--streams has no effect with --assign {name}", hint="omit either option"
        )
    return name


def lay_out(
    io: FileIO,
    target: str,
    sizing: Sizing,
    *,
    streams: int | None = None,
    writes_per_day_bytes: float | None = None,
    progress: WorkProgress = UNSEEN,
) -> ReplaySetup:
    """Prepare a trace for the drive `target`, or for a smaller version that the trace fills.

    Args:
        io: trace to prepare.
        target: name or file of the simulated drive.
        sizing: drive size, replay length and file system.
        streams: number of streams on the simulated drive (default: as in its device file).
        writes_per_day_bytes: volume written in a day, for lifetimes; None: the rate of the trace.
        progress: hook that receives the progress.

    Raises:
        ConfigError: If an option is invalid, or if the trace does not fit; the message states the
            required size.
    """
    if sizing.writeback == BY_TRACE:
        sizing = replace(sizing, writeback=IMMEDIATE if io.is_block else PAGE_CACHE)
    _check(sizing)
    if writes_per_day_bytes is not None and writes_per_day_bytes <= 0:
        raise ConfigError(
            "--writes-per-day must be greater than 0",
            hint="specify the volume written per day, for example 500GB",
        )
    opened = open_device(*read_device_file(simulated_name(target)))
    device = describe(opened)
    device.flash_bytes(PURPOSE)
    progress.part("measuring the write volume")
    with as_user_errors():
        needs = io.native.footprint(sizing.writeback, sizing.copies, progress.done)
    capacity_bytes = units = None
    if sizing.fill_pct is not None:
        capacity_bytes = round(needs["peak_bytes"] / (sizing.fill_pct / 100))
        units = sizing.units
        if units is None and sizing.unit_bytes is not None:
            raw_bytes = capacity_bytes * device.flash_bytes(PURPOSE) / device.capacity_bytes
            units = max(1, round(raw_bytes / sizing.unit_bytes))
    streams = streams or device.streams
    if not 1 <= streams <= STREAMS_MAX:
        raise ConfigError(f"{streams} streams are out of range: a drive has 1 to {STREAMS_MAX}")
    with as_user_errors():
        drive = opened.for_streams(streams, capacity_bytes, units)
    simulated = describe(drive)
    enough = max(FILLS_MIN, WRITTEN_MIN_BYTES / simulated.capacity_bytes)
    progress.part("laying out the files")
    fills = None if sizing.repeats is not None else sizing.fills or enough
    with as_user_errors():
        blocks = io.native.lay_out(
            simulated.capacity_bytes,
            sizing.writeback,
            repeats=sizing.repeats,
            fills=fills,
            allocator=sizing.allocator,
            trim=sizing.trim,
            copies=sizing.copies,
            hook=progress.done,
        )
    return ReplaySetup(
        io=io,
        blocks=blocks,
        device=device,
        drive=drive,
        simulated=simulated,
        peak_bytes=needs["peak_bytes"],
        written_bytes=needs["written_bytes"],
        sizing=sizing,
        writes_per_day_bytes=writes_per_day_bytes,
    )


def _check(sizing: Sizing) -> None:
    if sizing.fill_pct is not None and not 1 <= sizing.fill_pct <= 99:
        raise ConfigError(f"--fill is {sizing.fill_pct:g}; it must be 1 to 99 percent")
    if sizing.fills is not None and not 0 < sizing.fills <= 1000:
        raise ConfigError(f"--fills is {sizing.fills:g}; it must be above 0 and at most 1000")
    if sizing.repeats is not None and sizing.repeats < 1:
        raise ConfigError(f"--repeat is {sizing.repeats}; it must be 1 or more")
    if not 1 <= sizing.copies <= COPIES_MAX:
        raise ConfigError(f"--copies is {sizing.copies}; it must be 1 to {COPIES_MAX}")
    for what, name, names in (
        ("allocator", sizing.allocator, _native.allocators()),
        ("write-back", sizing.writeback, _native.writebacks()),
    ):
        if name not in names:
            raise ConfigError.unknown(what, name, names)


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
    progress: WorkProgress = UNSEEN,
) -> Replayed:
    """Replay a trace whose writes go to `streams` streams.

    Args:
        setup: prepared trace and drive.
        scheme: assignment of writes to streams.
        streams: number of streams.
        mistag_pct: percentage of writes assigned to a wrong stream.
        timed: `True` to repeat the end with timing and random reads of live data, for latencies.
        queue_depth: number of outstanding writes in the timed replay.
        readers: number of outstanding reads in the timed replay.
        reads_per_block: reads per 4 KiB written (default: as many as `readers` can issue).
        timed_bytes: bytes written during the timed replay.
        seed: seed for random choices.
        progress: hook that receives the progress.

    Raises:
        ConfigError: If an option is out of range.
    """
    if not 1 <= streams <= setup.simulated.streams:
        raise ConfigError(
            f"{streams} streams are out of range: the drive has {setup.simulated.streams}"
        )
    if not 0 <= mistag_pct <= 100:
        raise ConfigError(f"--mistag is {mistag_pct:g}; it must be 0 to 100 percent")
    if timed_bytes is None:
        timed_bytes = round(max(TIMED_FILLS * setup.simulated.capacity_bytes, TIMED_MIN_BYTES))
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
            hook=_hook(progress),
        )
    shape = (-1, raw["streams"], raw["buckets"])
    return Replayed(
        scheme=scheme,
        streams=streams,
        mistag_pct=mistag_pct,
        blocks=raw["blocks"].reshape(shape),
        **{name: raw[name] for name in _AS_MEASURED},
        counters=raw["after"],
        statistics=_statistics(*raw["statistics"]),
        data_placement=(status := status_of(raw["data_placement"])),
        overflow=_overflow(raw["overflow"], status),
    )


def _hook(progress: WorkProgress) -> Callable[..., None]:
    """Return a hook that reports the progress of the untimed and timed parts of a replay."""
    is_timed = False
    progress.part("replaying the trace")

    def look(share: float, elapsed_ns: int, *_: object) -> None:
        nonlocal is_timed
        if elapsed_ns > 0 and not is_timed:
            is_timed = True
            progress.part("replaying the end of the trace with timing")
        progress.done(share)

    return look


def _statistics(begin: Mapping[str, int], end: Mapping[str, int]) -> FdpStatistics:
    return FdpStatistics(**end).since(FdpStatistics(**begin))


def _overflow(given: Mapping[int, int], status: DataPlacementStatus | None) -> dict[int, int]:
    """Return the bytes written to streams beyond --count and to streams that the drive rejected."""
    overflow = dict(given)
    for number, size in (status.overflow_by_number if status else {}).items():
        overflow[number] = overflow.get(number, 0) + size
    return dict(sorted(overflow.items()))
