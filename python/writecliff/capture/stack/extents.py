"""Device positions of files (FIEMAP), and waiting times from system call to drive."""

from __future__ import annotations

import fcntl
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from writecliff.capture.trace import codes

PAGE_BYTES = 4096
_FIEMAP = 0xC020660B
_HEADER = struct.Struct("=QQIIII")  # Fields: start, length, flags, mapped, count, reserved.
# Fields: logical, physical, length, reserved, flags, reserved.
_EXTENT = struct.Struct("=QQQQQIIII")
_AT_ONCE = 512
_LAST, _UNKNOWN, _DELAYED = 1, 2, 4
_PAGES_MAX = 20_000_000

Numbers = NDArray[Any]


@dataclass(frozen=True)
class Extent:
    """A contiguous extent of a file, in bytes."""

    logical: int
    physical: int
    length: int


def extents(path: Path) -> Iterator[Extent]:
    """Yield a file's extents in order.

    Raises:
        OSError: If the file does not exist, or the file system does not support FIEMAP.
    """
    begin = 0
    with path.open("rb") as file:
        while True:
            asked = _HEADER.pack(begin, (1 << 64) - 1 - begin, 0, 0, _AT_ONCE, 0)
            room = bytearray(asked + bytes(_AT_ONCE * _EXTENT.size))
            fcntl.ioctl(file, _FIEMAP, room)
            count = _HEADER.unpack_from(room)[3]
            for number in range(count):
                logical, physical, length, _, _, flags, *_ = _EXTENT.unpack_from(
                    room, _HEADER.size + number * _EXTENT.size
                )
                if not flags & (_UNKNOWN | _DELAYED):
                    yield Extent(logical, physical, length)
                begin = logical + length
            if not count or flags & _LAST:
                return


@dataclass(frozen=True)
class Waits:
    """Page waiting times, from the last write call until the driver receives the page."""

    pages: int  # Number of pages with a known waiting time.
    of_pages: int  # Number of pages written to the drive.
    p50_ns: int
    p90_ns: int
    p99_ns: int
    max_ns: int

    def mapping(self) -> dict[str, int]:
        """Return the times in the format of `writecliff capture --stack --json`."""
        return dict(vars(self))


def waits(
    calls: pa.Table,
    requests: tuple[Numbers, Numbers, Numbers],
    places: Mapping[int, list[Extent]],
    shift_ns: int,
) -> Waits | None:
    """Return the waiting times of the written pages.

    Args:
        calls: Trace of system calls.
        requests: Offset, length and issue time of each data write.
        places: File extents, by file number in `calls`.
        shift_ns: Difference between device times and the times in `calls`, in ns.

    Returns:
        The waiting times, or `None` if no page can be matched or there are too many pages.
    """
    op, words = codes(calls, "op")
    if "write" not in words:
        return None
    mine = op == words.index("write")
    file, offset, length, time_ns = (
        calls[name].to_numpy()[mine] for name in ("file", "offset_bytes", "length_bytes", "time_ns")
    )
    if (length.sum() + requests[1].sum()) // PAGE_BYTES > _PAGES_MAX:
        return None
    parts = [
        _located(place, offset[chosen], length[chosen], time_ns[chosen] + shift_ns)
        for number, place in places.items()
        if len(place) and (chosen := file == number).any()
    ]
    written, issued = _pages(*requests)
    if not parts or not len(written):
        return None
    called, called_ns = (np.concatenate(column) for column in zip(*parts, strict=True))
    waited = _since_last(called, called_ns, written, issued)
    if not len(waited):
        return None
    p50, p90, p99 = np.percentile(waited, (50, 90, 99), method="inverted_cdf")
    return Waits(len(waited), len(written), int(p50), int(p90), int(p99), int(waited.max()))


def _pages(offset: Numbers, length: Numbers, time_ns: Numbers) -> tuple[Numbers, Numbers]:
    """Return the pages in the given ranges, and each page's time."""
    first = offset // PAGE_BYTES
    count = (offset + np.maximum(length, 1) - 1) // PAGE_BYTES - first + 1
    row = np.repeat(np.arange(len(offset)), count)
    within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    return first[row] + within, time_ns[row]


def _located(
    place: list[Extent], offset: Numbers, length: Numbers, time_ns: Numbers
) -> tuple[Numbers, Numbers]:
    """Return the device pages that a file's writes went to, with the write times."""
    page, at_ns = _pages(offset, length, time_ns)
    logical = np.array([extent.logical for extent in place]) // PAGE_BYTES
    behind = (
        logical + (np.array([extent.length for extent in place]) + PAGE_BYTES - 1) // PAGE_BYTES
    )
    physical = np.array([extent.physical for extent in place]) // PAGE_BYTES
    index = np.searchsorted(logical, page, side="right") - 1
    is_mapped = (index >= 0) & (page < behind[index])
    index, page = index[is_mapped], page[is_mapped]
    return physical[index] + page - logical[index], at_ns[is_mapped]


def _since_last(
    called: Numbers, called_ns: Numbers, written: Numbers, issued_ns: Numbers
) -> Numbers:
    """Return, for each written page, the time since the latest call that wrote to the page."""
    page = np.concatenate((called, written))
    time_ns = np.concatenate((called_ns, issued_ns))
    is_call = np.arange(len(page)) < len(called)
    order = np.lexsort((~is_call, time_ns, page))
    page, time_ns, is_call = page[order], time_ns[order], is_call[order]
    last = np.maximum.accumulate(np.where(is_call, np.arange(len(page)), -1))
    is_matched = ~is_call & (last >= 0)
    is_matched &= page[np.maximum(last, 0)] == page
    waited_ns: Numbers = time_ns[is_matched] - time_ns[last[is_matched]]
    return waited_ns
