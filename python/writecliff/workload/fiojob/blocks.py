"""Conversion of a fio job's direction and block sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from writecliff.workload.fiojob.settings import Settings
from writecliff.workload.fiojob.values import DIRECTIONS, Context, FioValueError, Triple, number
from writecliff.workload.fiojob.write_modes import becomes, check
from writecliff.workload.model import BlockSize, OwnBlocks, Pattern

_DIRECTIONS: dict[str, tuple[Pattern, tuple[str, ...]]] = {
    "read": ("sequential", ("read",)),
    "write": ("sequential", ("write",)),
    "trim": ("sequential", ("trim",)),
    "rw": ("sequential", ("read", "write")),
    "readwrite": ("sequential", ("read", "write")),
    "randread": ("random", ("read",)),
    "randwrite": ("random", ("write",)),
    "randtrim": ("random", ("trim",)),
    "randrw": ("random", ("read", "write")),
    "trimwrite": ("sequential", ("trim", "write")),
    "randtrimwrite": ("random", ("trim", "write")),
}
SECTOR_BYTES = 512  # Smallest unit of a simulated drive, in bytes.
PROTECTION_INFORMATION = {"md_per_io_size", "pi_act", "pi_chk", "apptag", "apptag_mask"}
# Metadata sizes per sector, for formats whose blocks include metadata.
_METADATA_BYTES = (8, 16, 64, 128)


@dataclass(frozen=True)
class Operations:
    """Operations of a job: `used` contains the operations, and `read_pct` and `trim_pct` their mix.

    If other commands replace writes, `used` contains fio's operations, whose options apply.
    """

    pattern: Pattern
    used: tuple[str, ...]
    read_pct: float
    trim_pct: float
    trim_first: bool = False
    run_ios: int = 1
    hole_bytes: int = 0
    hole_after_bytes: int = 0
    one_position: bool = False
    sequential_read_pct: float = 0.0
    sequential_write_pct: float = 0.0


@dataclass(frozen=True)
class Blocks:
    """Block sizes of the used operations, and values that fio derives from all block sizes."""

    by_operation: Mapping[str, OwnBlocks]  # Block sizes of the operations in use.
    smallest: int  # Smallest size of the operations in use.
    unit: int  # Smallest size of all operations, which fio rounds percentage offsets to.

    @property
    def common(self) -> OwnBlocks:
        """Block sizes of the first used operation, which is reading if the job reads."""
        return next(iter(self.by_operation.values()))

    @property
    def writes(self) -> OwnBlocks | None:
        """Block sizes of writes, or `None` if they equal those of the first operation."""
        writes = self.by_operation.get("write")
        return None if writes == self.common else writes

    @property
    def sizes(self) -> tuple[BlockSize, ...]:
        """Distinct block sizes of all used operations."""
        every = (size for mix in self.by_operation.values() for size in mix.block_sizes)
        return tuple(dict.fromkeys(every))

    @property
    def is_aligned(self) -> bool:
        """`True` if an operation is not aligned to its block size."""
        return any(mix.align_bytes is not None for mix in self.by_operation.values())

    @property
    def largest(self) -> int:
        """Largest block size of any used operation."""
        return max(size.bytes for size in self.sizes)

    @property
    def is_mix(self) -> bool:
        """`True` if an operation has several block sizes."""
        return any(len(mix.block_sizes) > 1 for mix in self.by_operation.values())

    def mean(self, operation: str) -> float:
        """Return the mean block size of a used operation."""
        sizes = self.by_operation[operation].block_sizes
        return sum(s.bytes * s.weight for s in sizes) / sum(s.weight for s in sizes)


def operations(settings: Settings) -> Operations:
    """Parse `rw` and the mix; raise ConfigError for combinations that `Job` does not support."""
    name, _, modifier = settings.rw.partition(":")
    if name not in _DIRECTIONS:
        raise settings.error(
            "rw", f"the rw mode '{name}' is unknown", f"use one of {', '.join(_DIRECTIONS)}"
        )
    pattern, used = _DIRECTIONS[name]
    run_ios, hole_bytes = _modifier(settings, pattern, modifier)
    read_pct = 100.0 if used == ("read",) else 0.0
    if used == ("read", "write"):
        read_pct = float(settings.rwmixread)
        used = tuple(
            op for op, share in zip(used, (read_pct, 100 - read_pct), strict=True) if share
        )
    sequential = _sequential_shares(settings, pattern, used, run_ios)
    trim_pct = 100.0 if used == ("trim",) else 0.0
    if settings.num_range > 1:
        if not trim_pct:
            raise settings.error(
                "num_range", "num_range applies only to trims", "use rw=trim, or remove num_range"
            )
        settings.note("num_range: each range of a trim is issued as a separate command")
    trim_first = used[0] == "trim" and len(used) > 1
    zone = _strided_zone(settings, pattern)
    if zone is not None and hole_bytes:
        raise settings.error("rw", f"rw={settings.rw}: holes within zones are not supported")
    hole_bytes, after_bytes = zone or (hole_bytes, 0)
    ops = Operations(
        pattern,
        used,
        read_pct,
        trim_pct,
        trim_first,
        run_ios,
        hole_bytes,
        after_bytes,
        sequential_read_pct=sequential.get("read", 0.0),
        sequential_write_pct=sequential.get("write", 0.0),
    )
    return _with_write_modes(settings, ops) if "write" in used else ops


def _sequential_shares(
    settings: Settings, pattern: Pattern, used: tuple[str, ...], run_ios: int
) -> Mapping[str, float]:
    """Return the percentage of each operation's I/Os that follow its previous I/O sequentially."""
    if pattern == "sequential":
        return {}
    shares = {
        name: 100.0 - random
        for name, random in zip(used, pick(settings.percentage_random, used), strict=True)
    }
    if any(shares.values()) and ("trim" in used or run_ios > 1):
        raise settings.error(
            "percentage_random",
            "percentage_random: only random reads and writes may be partly sequential",
            "remove percentage_random for trims and for runs of I/Os (rw=randread:N)",
        )
    return shares


def _with_write_modes(settings: Settings, ops: Operations) -> Operations:
    """Return the operations that remain after writes are converted to other commands."""
    converted = becomes(settings)
    check(settings, ops.used, converted)
    settings.notes += converted.notes
    if ops.used != ("write",):
        return ops
    return replace(
        ops,
        read_pct=converted.read_pct,
        trim_pct=converted.trim_pct,
        one_position=ops.pattern == "sequential" and converted.is_mix,
    )


def _strided_zone(settings: Settings, pattern: Pattern) -> tuple[int, int] | None:
    """Return (hole size, bytes before the hole) for strided zones, including zonesize alone."""
    mode = settings.zonemode or ("strided" if settings.zonesize else "none")
    if mode == "zbd":
        return None
    hole_bytes = max(settings.zonerange - settings.zonesize, 0) + settings.zoneskip
    if mode == "none" or not hole_bytes:
        return None
    if pattern == "random":
        raise settings.error(
            "zonemode zonesize",
            "random I/O in strided zones is not supported",
            "use a job for each zone, with offset and size",
        )
    for name in ("zonesize", "zonerange", "zoneskip"):
        if getattr(settings, name) % SECTOR_BYTES:
            raise settings.error(
                name,
                f"{name} is not a multiple of the sector size of {SECTOR_BYTES} bytes",
                "use a multiple of 512",
            )
    return hole_bytes, settings.zonesize


def _modifier(settings: Settings, pattern: Pattern, text: str) -> tuple[int, int]:
    """Return (I/Os per run, hole size) from the modifier after the colon in `rw`."""
    if not text:
        return 1, 0
    try:
        value = number(text, Context(int(settings.kb_base)))
    except FioValueError as problem:
        raise settings.error("rw", f"rw={settings.rw}: {problem}", problem.hint) from None
    if pattern == "sequential":
        if value % SECTOR_BYTES:
            raise settings.error(
                "rw",
                f"rw={settings.rw}: a hole of {value} bytes is not a multiple of the sector size",
                "use a multiple of 512",
            )
        return 1, value
    if value < 1:
        raise settings.error(
            "rw",
            f"rw={settings.rw}: a run of {value} I/Os is too short",
            "use a run of 1 or more I/Os",
        )
    if value > 1 and settings.rw_sequencer != "sequential":
        raise settings.error(
            "rw_sequencer",
            f"rw_sequencer={settings.rw_sequencer}: issuing several I/Os to the same address is "
            f"not supported",
            "omit rw_sequencer: the I/Os of a run are then consecutive",
        )
    return value, 0


def pick(triple: Triple[int], used: Iterable[str]) -> list[int]:
    """Return a read,write,trim list's values for the used operations."""
    return [triple.of(operation) for operation in used]


def blocks(settings: Settings, ops: Operations) -> Blocks:
    """Return each operation's sizes, weights and alignment; ConfigError for partial sectors."""
    mixes = {
        operation: tuple((_data_bytes(settings, size), weight) for size, weight in mix)
        for operation in DIRECTIONS
        for mix in (_mix(settings, operation),)
    }
    used = {
        operation: _operation_blocks(settings, ops, operation, mixes[operation])
        for operation in ops.used
    }
    if ops.trim_first:
        if used["write"] != used["trim"]:
            settings.note(f"rw={settings.rw}: writes have the sizes of the preceding trims")
        used = {"trim": used["trim"]}
    smallest = min(size for operation in used for size, _ in mixes[operation])
    unit = min(size for mix in mixes.values() for size, _ in mix)
    return Blocks(used, smallest, unit)


def _operation_blocks(
    settings: Settings, ops: Operations, operation: str, mix: tuple[tuple[int, float], ...]
) -> OwnBlocks:
    """Return an operation's blocks; fio aligns random addresses to the smallest block size."""
    for size, _ in mix:
        if size % SECTOR_BYTES:
            raise settings.error(
                "bssplit bsrange bs",
                f"block size {size} is not a multiple of the drive's sector size of {SECTOR_BYTES}",
                "use a multiple of 512; note that in fio 4KiB is 4000 bytes, and 4k is 4096",
            )
    if len(mix) == 1:
        mix = ((mix[0][0], 1.0),)
    sizes = tuple(BlockSize(size, float(weight)) for size, weight in mix)
    if ops.pattern == "sequential":
        return OwnBlocks(sizes)
    if settings.blockalign is not None:
        return OwnBlocks(sizes, int(settings.blockalign.of(operation)))
    return OwnBlocks(sizes, min(size for size, _ in mix) if len(mix) > 1 else None)


def _mix(settings: Settings, operation: str) -> tuple[tuple[int, float], ...]:
    """Return an operation's (bytes, weight); fio prefers a split or a range to a single size."""
    if settings.bssplit is not None:
        if settings.bsrange is not None:
            raise settings.error(
                "bssplit",
                "bssplit and bsrange are mutually exclusive",
                "remove one of the two options",
            )
        return tuple(settings.bssplit.of(operation))
    if settings.bsrange is not None:
        chosen = settings.bsrange.of(operation)
        if chosen is not None:
            return _range_mix(*chosen)
    return ((settings.bs.of(operation), 1.0),)


def _data_bytes(settings: Settings, size: int) -> int:
    """Return a block size without its sectors' metadata (extended LBA formats)."""
    if not size % SECTOR_BYTES or not any(map(settings.given, PROTECTION_INFORMATION)):
        return size
    for sector in (4096, SECTOR_BYTES):
        for metadata in _METADATA_BYTES:
            if not size % (sector + metadata):
                data = size // (sector + metadata) * sector
                settings.note(
                    f"bs={size} is {data} bytes of data and {size - data} bytes of metadata, "
                    f"which are not transferred; sizes count only data"
                )
                return data
    return size


def _range_mix(low: int, high: int) -> tuple[tuple[int, float], ...]:
    """Return how often fio uses each size in a range (io_u.c, get_next_buflen).

    fio chooses a value in [low, low + high), rounds the value down to a multiple of `low`, and
    limits it to `high`.
    """
    if low == high:
        return ((low, 1.0),)
    weights: dict[int, float] = {}
    start = low
    while start < low + high:
        end = min(start + low, low + high)
        size = min(start, high)
        weights[size] = weights.get(size, 0.0) + (end - start)
        start += low
    return tuple(sorted(weights.items()))
