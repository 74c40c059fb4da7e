"""Where a thread of a job works, and when it ends: size, offset, loops, runtime.

fio 3.33: filesetup.c (`get_start_offset`, `setup_files`), backend.c (`io_bytes_exceeded`,
`keep_running`). The file of fio is the drive here; where fio would grow a file, that is an error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from writecliff.workload.fiojob.blocks import SECTOR_BYTES, Blocks, Operations
from writecliff.workload.fiojob.settings import Settings
from writecliff.workload.fiojob.values import Size
from writecliff.workload.fiojob.zones import whole_zones

_US = 1000


@dataclass(frozen=True)
class Extent:
    """Range and ends of one thread; at least one end is given."""

    offset_bytes: int
    range_bytes: int
    duration_ns: int | None
    volume_bytes: int | None
    ios: int | None


def offset(settings: Settings, blocks: Blocks, capacity: int, thread: int) -> int:
    """Start of a thread's range; offsets in percent are rounded up to whole blocks."""
    increment = _bytes(settings.offset_increment, capacity)
    start: Size = settings.offset
    value = _bytes(start, capacity) + thread * increment
    if start.percent or settings.offset_increment.percent:
        align = settings.offset_align or blocks.unit
        value = -(-value // align) * align
    return value


def _bytes(size: Size, capacity: int) -> int:
    return size.bytes if size.percent is None else int(capacity * size.percent // 100)


def extent(
    settings: Settings, ops: Operations, blocks: Blocks, capacity: int, thread: int
) -> Extent:
    """Range and end of one thread. Raises if they leave the drive or hold no block."""
    start = offset(settings, blocks, capacity, thread)
    if start >= capacity:
        raise settings.error(
            "offset offset_increment",
            f"thread {thread} starts at {start}, beyond the drive's {capacity} bytes",
            "use a smaller offset or offset_increment",
        )
    if start % SECTOR_BYTES:
        raise settings.error(
            "offset offset_increment",
            f"offset {start} is not a multiple of the drive's sectors of {SECTOR_BYTES}",
            "use a multiple of 512",
        )
    length, one_pass = _sizes(settings, ops, blocks, capacity, start)
    if settings.zonemode == "zbd":
        start, length, one_pass = whole_zones(settings, ops, blocks, start, length)
        whole = length
    else:
        whole = _whole(ops, blocks, length, capacity - start)
    if length < blocks.largest or one_pass < blocks.unit:
        raise settings.error(
            "size filesize",
            f"{min(length, one_pass)} bytes are less than one block of {blocks.largest}",
            "use a larger size or a smaller bs",
        )
    if whole // settings.nrfiles < blocks.largest:
        raise settings.error(
            "nrfiles",
            f"{whole} bytes in {settings.nrfiles} files are less than a block of"
            f" {blocks.largest} each",
            "use fewer files or a larger size",
        )
    duration_us = settings.runtime
    if settings.time_based and duration_us:
        return Extent(start, whole, duration_us * _US, None, None)
    volume = _volume(settings, ops, blocks, one_pass=one_pass, length=length, whole=whole)
    ios = settings.number_ios * max(1, settings.loops) or None
    return Extent(start, whole, duration_us * _US if duration_us else None, volume, ios)


def _sizes(
    settings: Settings, ops: Operations, blocks: Blocks, capacity: int, start: int
) -> tuple[int, int]:
    """(length of the range, bytes of one pass) of a thread."""
    size: Size | None = settings.size
    length = size.bytes if size is not None and size.percent is None else 0
    if settings.filesize is not None:
        low, high = settings.filesize
        if low != high:
            raise settings.error(
                "size filesize offset",
                "filesize: a random size is not available",
                f"filesize={high}",
            )
        low *= settings.nrfiles
        if low <= start:
            raise settings.error(
                "size filesize offset",
                f"offset {start} is beyond filesize {low}",
                "use a larger filesize",
            )
        asked, length = length, low - start
        one_pass = min(asked, length) or length
    else:
        _check_fill(settings, ops)
        length = length or capacity - start
        one_pass = length
    if start + length > capacity:
        raise settings.error(
            "size filesize offset",
            f"{length} bytes from offset {start} are more than the drive's {capacity} bytes",
            "use size=100% for all of the drive, or a larger drive",
        )
    if size is not None and size.percent is not None and size.percent != 100:
        length = min(int((start + length) * size.percent // 100), length)
        length -= length % blocks.unit
        one_pass = length
    return length, one_pass


def _check_fill(settings: Settings, ops: Operations) -> None:
    if settings.fill_device and (ops.pattern, ops.used) != ("sequential", ("write",)):
        raise settings.error(
            "fill_device",
            "fill_device: only sequential writes fill a drive",
            "use rw=write, or size=100%",
        )


def _whole(ops: Operations, blocks: Blocks, length: int, room: int) -> int:
    """The range that fio really uses: sequential I/O finishes its last block if there is room."""
    if len(blocks.sizes) > 1 or (ops.pattern == "random" and blocks.is_aligned):
        return length - length % SECTOR_BYTES
    block = blocks.sizes[0].bytes
    up = -(-length // block) * block
    return up if ops.pattern == "sequential" and up <= room else length - length % block


def _volume(
    settings: Settings, ops: Operations, blocks: Blocks, *, one_pass: int, length: int, whole: int
) -> int:
    """Bytes of all passes, in whole blocks: fio issues until the limit is reached.

    It makes `loops` passes, then more while it is below `io_size`, and stops at `io_size * loops`.
    """
    loops = max(1, settings.loops)
    io_size: Size | None = settings.io_size
    limit = one_pass
    if io_size is not None and io_size.percent is not None:
        limit = min(one_pass, int(length * io_size.percent // 100) or length)
    elif io_size is not None and io_size.bytes:
        limit = io_size.bytes
    if settings.sprandom:  # as much as the drive has flash
        return one_pass + math.ceil(one_pass * settings.spr_op[0]) // blocks.unit * blocks.unit
    total = limit * loops
    if not _endless(settings, ops):
        if limit <= length:
            total = min(total, whole * loops)
        else:
            total = min(total, max(whole * loops, limit))
    if ops.trim_first:
        total *= 2  # each block is trimmed and written
    if len(blocks.sizes) > 1:
        return total
    block = blocks.sizes[0].bytes
    return -(-total // block) * block


def _endless(settings: Settings, ops: Operations) -> bool:
    """Whether a pass of fio is endless: random I/O without a map of the blocks done."""
    return ops.pattern == "random" and (
        settings.norandommap
        or settings.random_distribution.kind != "random"
        or settings.given("blockalign")
    )
