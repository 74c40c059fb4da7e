"""Direction and block sizes of a job: what is issued, in the terms of the model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from writecliff.workload.fiojob.settings import Settings
from writecliff.workload.fiojob.values import DIRECTIONS, Triple
from writecliff.workload.model import BlockSize, Pattern

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
}
SECTOR_BYTES = 512  # the least unit of a simulated drive
_TRIMWRITES = ("trimwrite", "randtrimwrite")


@dataclass(frozen=True)
class Operations:
    """What a job does: `used` are its operations, `read_pct` and `trim_pct` their mix."""

    pattern: Pattern
    used: tuple[str, ...]
    read_pct: float
    trim_pct: float


@dataclass(frozen=True)
class Blocks:
    """Block sizes of the operations in use, and what fio derives from all of them."""

    sizes: tuple[BlockSize, ...]
    align_bytes: int | None  # None: the block size
    smallest: int  # of the operations in use
    unit: int  # smallest of all operations, to which fio rounds offsets in percent

    @property
    def largest(self) -> int:
        return max(size.bytes for size in self.sizes)


def operations(settings: Settings) -> Operations:
    """Read `rw` and the mix. Raises for what one job of the model cannot do."""
    written = settings.rw
    name, _, modifier = written.partition(":")
    if name in _TRIMWRITES:
        raise settings.error(
            "rw",
            f"rw={name}: a trim and a write of the same blocks in turn are not available",
            "use a trim job and a write job with stonewall between them",
        )
    if name not in _DIRECTIONS:
        raise settings.error("rw", f"rw: '{name}' is unknown", f"one of {', '.join(_DIRECTIONS)}")
    pattern, used = _DIRECTIONS[name]
    if modifier and modifier != ("1" if pattern == "random" else "0"):
        raise settings.error(
            "rw", f"rw={written}: holes and runs within a pattern are not available", f"rw={name}"
        )
    read_pct = 100.0 if used == ("read",) else 0.0
    if len(used) == 2:
        read_pct = float(settings.rwmixread)
        used = tuple(
            op for op, share in zip(used, (read_pct, 100 - read_pct), strict=True) if share
        )
    if pattern == "random" and set(pick(settings.percentage_random, used)) != {100}:
        raise settings.error(
            "percentage_random",
            "percentage_random: a job is wholly random or wholly sequential",
            "use two jobs",
        )
    return Operations(pattern, used, read_pct, 100.0 if used == ("trim",) else 0.0)


def pick(triple: Triple[int], used: Iterable[str]) -> list[int]:
    """The values of a read,write,trim list for the operations in use."""
    return [triple.of(operation) for operation in used]


def blocks(settings: Settings, ops: Operations) -> Blocks:
    """Sizes, shares and alignment. Raises where the operations in use differ in them."""
    mixes = {operation: _mix(settings, operation) for operation in DIRECTIONS}
    first = mixes[ops.used[0]]
    if any(mixes[operation] != first for operation in ops.used):
        raise settings.error(
            "bssplit bsrange bs",
            f"{' and '.join(ops.used)} of different block sizes in one job are not available",
            "use two jobs, one for reads and one for writes, with a rate_iops for their proportion",
        )
    for size, _ in first:
        if size % SECTOR_BYTES:
            raise settings.error(
                "bssplit bsrange bs",
                f"block size {size} is not a multiple of the drive's sectors of {SECTOR_BYTES}",
                "use a multiple of 512; note that in fio 4KiB is 4000 bytes, and 4k is 4096",
            )
    smallest = min(size for size, _ in first)
    sizes = tuple(BlockSize(size, float(weight)) for size, weight in first)
    if len(sizes) == 1:
        sizes = (BlockSize(sizes[0].bytes),)
    unit = min(size for mix in mixes.values() for size, _ in mix)
    return Blocks(sizes, _align(settings, ops, sizes, smallest), smallest, unit)


def _align(
    settings: Settings, ops: Operations, sizes: tuple[BlockSize, ...], smallest: int
) -> int | None:
    """fio aligns random addresses to the smallest block size, unless blockalign says otherwise."""
    if ops.pattern == "sequential":
        return None
    if settings.blockalign is not None:
        aligns = set(pick(settings.blockalign, ops.used))
        if len(aligns) > 1:
            raise settings.error(
                "blockalign",
                f"{' and '.join(ops.used)} of different blockalign are not available",
                "use two jobs",
            )
        return int(aligns.pop())
    return smallest if len(sizes) > 1 else None


def _mix(settings: Settings, operation: str) -> tuple[tuple[int, float], ...]:
    """(bytes, weight) of one operation. fio prefers a split or a range to a plain size."""
    if settings.bssplit is not None:
        if settings.bsrange is not None:
            raise settings.error("bssplit", "bssplit and bsrange exclude each other", "keep one")
        return tuple(settings.bssplit.of(operation))
    if settings.bsrange is not None:
        chosen = settings.bsrange.of(operation)
        if chosen is not None:
            return _range_mix(*chosen)
    return ((settings.bs.of(operation), 1.0),)


def _range_mix(low: int, high: int) -> tuple[tuple[int, float], ...]:
    """How often fio draws each size of a range (io_u.c, get_next_buflen).

    It draws from [low, low + high), cuts to a multiple of `low`, and to `high` at most.
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
