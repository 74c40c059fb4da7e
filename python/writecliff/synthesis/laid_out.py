"""A trace as columns in memory, with its volumes joined into one address range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff.errors import ConfigError
from writecliff.progress import UNSEEN, WorkProgress
from writecliff.traces.source import Source

if TYPE_CHECKING:
    from numpy.typing import NDArray

READ, WRITE, FLUSH, TRIM = range(4)  # Operation numbers.
IOS_MAX = 20_000_000  # Maximum number of I/Os in a trace, which are all held in memory.
SECTOR_BYTES = 512
_PIECE_BITS = 20  # Piece size of 1 MiB; unused pieces of the address space are removed.
_LENGTH_MAX = 1 << 30
_COLUMNS = ("time_ns", "operation", "offset_bytes", "length_bytes", "volume")


@dataclass(frozen=True)
class LaidOut:
    """The I/Os in a trace in time order, at addresses within a single range."""

    time_ns: NDArray[np.int64]  # Time since the first I/O, in ascending order.
    operation: NDArray[np.uint8]  # Operation: READ, WRITE, FLUSH or TRIM.
    offset: NDArray[np.int64]  # Offset in bytes.
    length: NDArray[np.int64]  # Length in bytes; 0 for flushes.
    range_bytes: int  # End of the address range, in bytes.
    span_bytes: int  # Address range of the trace, summed over volumes.
    volumes: int
    notes: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of I/Os."""
        return len(self.time_ns)

    def columns(self) -> dict[str, Any]:
        """Return the columns in the format of `_native.TraceReader.next`."""
        rows = len(self)
        zeros = np.zeros(rows, np.int32)
        return {
            "time_ns": self.time_ns, "operation": self.operation, "volume": zeros,
            "offset_bytes": self.offset, "length_bytes": self.length, "process": zeros,
            "response_ns": np.full(rows, -1, np.int64), "content": np.zeros(rows, np.uint64),
        }  # fmt: skip


def lay_out(source: Source, *, progress: WorkProgress = UNSEEN) -> LaidOut:
    """Read a trace, or the first `IOS_MAX` I/Os of a longer trace.

    Raises:
        ConfigError: If the trace has no I/Os or has neither reads nor writes.
    """
    parts: list[dict[str, Any]] = []
    rows = 0
    notes = []
    for batch in source.batches():
        parts.append({name: batch[name] for name in _COLUMNS})
        rows += len(batch["time_ns"])
        progress.done(max(source.share, rows / IOS_MAX), ios=rows)
        if rows >= IOS_MAX:
            notes.append(f"the trace is longer, so only its first {rows:,} I/Os are used")
            break
    if not rows:
        raise ConfigError("the trace contains no I/Os")
    columns = {name: np.concatenate([part[name] for part in parts]) for name in _COLUMNS}
    order = np.argsort(columns["time_ns"], kind="stable")
    columns = {name: values[order] for name, values in columns.items()}
    if _split_trims(columns):
        notes.append("TRIMs of more than 1 GiB are split into pieces of 1 GiB")
        rows = len(columns["time_ns"])
    operation = columns["operation"]
    begin, end = columns["offset_bytes"], columns["offset_bytes"] + columns["length_bytes"]
    if ((begin | end) % SECTOR_BYTES).any():
        notes.append(
            "I/Os that do not cover whole 512-byte sectors are rounded outwards to sectors"
        )
        begin, end = begin // SECTOR_BYTES * SECTOR_BYTES, -(-end // SECTOR_BYTES) * SECTOR_BYTES
    length = np.minimum(end - begin, _LENGTH_MAX)
    moved = operation != FLUSH
    offset = np.zeros(rows, np.int64)
    volume = columns["volume"][moved].astype(np.int64)
    offset[moved], pieces = _dense(volume, begin[moved], length[moved])
    length[~moved] = 0
    if not (operation <= WRITE).any():
        raise ConfigError("the trace contains no reads or writes")
    time_ns = columns["time_ns"] - columns["time_ns"][0]
    return LaidOut(
        time_ns=time_ns,
        operation=operation,
        offset=offset,
        length=length,
        range_bytes=pieces << _PIECE_BITS,
        span_bytes=_span(volume, (begin + length)[moved]),
        volumes=len(np.unique(volume)),
        notes=tuple(notes),
    )


def _split_trims(columns: dict[str, NDArray[Any]]) -> bool:
    """Split TRIMs that are longer than a workload I/O, and return `True` if any were split."""
    is_trim = columns["operation"] == TRIM
    pieces = np.where(is_trim, -(-columns["length_bytes"] // _LENGTH_MAX), 1).clip(min=1)
    if (pieces == 1).all():
        return False
    row = np.repeat(np.arange(len(pieces)), pieces)
    before = (np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces)) * _LENGTH_MAX
    columns.update({name: values[row] for name, values in columns.items()})
    columns["offset_bytes"] = columns["offset_bytes"] + before
    rest = columns["length_bytes"] - before
    columns["length_bytes"] = np.where(is_trim[row], np.minimum(rest, _LENGTH_MAX), rest)
    return True


def _dense(
    volume: NDArray[np.int64], begin: NDArray[np.int64], length: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """Return the addresses without unused pieces, and the number of used pieces."""
    shift = 62 - _PIECE_BITS
    first, last = begin >> _PIECE_BITS, (begin + np.maximum(length, 1) - 1) >> _PIECE_BITS
    several = last > first
    count = (last - first)[several]
    inner = np.repeat(first[several], count) + 1
    inner += np.arange(len(inner)) - np.repeat(np.cumsum(count) - count, count)
    _, number = np.unique(volume, return_inverse=True)
    number = number.reshape(-1).astype(np.int64)
    pieces = np.unique(
        np.concatenate(
            (number << shift | first, np.repeat(number[several], count) << shift | inner)
        )
    )
    at = np.searchsorted(pieces, number << shift | first)
    return (at << _PIECE_BITS) + (begin & ((1 << _PIECE_BITS) - 1)), len(pieces)


def _span(volume: NDArray[np.int64], end: NDArray[np.int64]) -> int:
    """Return the sum of the end addresses of all volumes, in bytes."""
    _, number = np.unique(volume, return_inverse=True)
    ends = np.zeros(int(number.max()) + 1, np.int64)
    np.maximum.at(ends, number.reshape(-1), end)
    return int(ends.sum())


def union(begin: NDArray[np.int64], end: NDArray[np.int64], unit: int) -> Extents:
    """Return the union of address ranges, rounded outwards to whole units."""
    if not len(begin):
        return Extents(np.zeros(0, np.int64), np.zeros(0, np.int64))
    order = np.argsort(begin, kind="stable")
    low, high = begin[order] // unit * unit, -(-end[order] // unit) * unit
    reach = np.maximum.accumulate(high)
    new = np.concatenate(([True], low[1:] > reach[:-1]))
    firsts = np.flatnonzero(new)
    lasts = np.concatenate((firsts[1:] - 1, [len(low) - 1]))
    return Extents(low[firsts], reach[lasts])


@dataclass(frozen=True)
class Extents:
    """Disjoint address ranges in ascending order."""

    begin: NDArray[np.int64]
    end: NDArray[np.int64]

    @property
    def bytes(self) -> int:
        """Total length of the ranges, in bytes."""
        return int((self.end - self.begin).sum())

    def has(self, address: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return `True` for each address within one of the ranges."""
        if not len(self.begin):
            return np.zeros(len(address), bool)
        at = np.searchsorted(self.begin, address, side="right") - 1
        return (at >= 0) & (address < self.end[np.maximum(at, 0)])
