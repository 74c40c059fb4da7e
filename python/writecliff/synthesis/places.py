"""Where the runs of a trace begin, and how often and when: the places of an `IoModel`.

What the trace touches is put together into one range and cut into pieces with the same traffic
each, so that hot areas have small pieces. Places of a piece that are used alike are a group, and
are laid into the piece side by side: first those in what is both read and written, with reads and
writes at the same addresses, then others. So the model keeps where in the range the traffic is, how
often places are used, and when, but not which place it was. The few places with most of the traffic
in bytes are kept one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff.synthesis.laid_out import FLUSH, READ, Extents, union
from writecliff.workload.io_model import ModelPlaces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from writecliff.synthesis.laid_out import LaidOut
    from writecliff.synthesis.streams import StreamsOf

PASS = 1 << 24  # times in the life of places: parts of a pass
UNIT_BYTES = 4096
_CELLS_MAX = 1 << 24  # of the range, in which traffic is counted
_GROUPS_MIN, _GROUPS_MAX, _STARTS_OF_GROUP = 64, 4000, 6
_EVEN_USES, _EVEN_DEVIATION = 4, 0.5  # from how many uses on, up to which deviation
_LIFE_MIN = 2e-5
_ALONE_BYTES, _ALONE_SHARE = 64 << 10, 1e-3  # runs, and places with this share
_HOT_USES = 8  # of a place on average: no other one begins where it ends


@dataclass(frozen=True)
class _Fineness:
    """How finely places are told apart."""

    pieces: int  # of the range
    begins: int  # of the time of first uses
    life: float  # octaves
    uses: float
    length: float


_LADDER = (
    _Fineness(1024, 8, 1, 1, 1),
    _Fineness(512, 8, 1, 1, 1),
    _Fineness(256, 8, 1, 1, 1),
    _Fineness(128, 8, 2, 1, 1),
    _Fineness(64, 8, 2, 1, 1),
    _Fineness(32, 4, 2, 1, 2),
    _Fineness(16, 4, 4, 2, 2),
    _Fineness(4, 2, 8, 2, 4),
)


@dataclass(frozen=True)
class _Objects:
    """Distinct places of the streams where runs begin; columns."""

    stream: NDArray[np.int64]
    offset: NDArray[np.int64]  # in the range of what is touched
    uses: NDArray[np.int64]
    run_bytes: NDArray[np.float64]  # mean of its runs
    extent: NDArray[np.int64]  # the longest of its runs
    begin: NDArray[np.float64]  # first use, in parts of the stream's starts
    life: NDArray[np.float64]  # from the first to the last use
    even: NDArray[np.bool_]
    alone: NDArray[np.bool_]  # kept one by one
    shared: NDArray[np.bool_]  # others: in what others of them read and write


def places_of(
    trace: LaidOut, streams: StreamsOf, run: NDArray[np.int64]
) -> tuple[ModelPlaces, int]:
    """Fit the places, and the bytes of the range that they take. `run`: of `_native.trace_runs`."""
    every = np.flatnonzero(trace.operation != FLUSH)
    end = trace.offset + trace.length
    touched = union(trace.offset[every], end[every], UNIT_BYTES)
    offset = _together(touched, trace.offset)
    starts = int(((run == np.arange(len(run))) & (trace.operation != FLUSH)).sum())
    most = min(max(starts // _STARTS_OF_GROUP, _GROUPS_MIN), _GROUPS_MAX)
    objects = _objects(trace, streams, run, offset, most // 2)
    traffic = _traffic(offset[every], trace.length[every], touched.bytes)
    for fineness in _LADDER:
        bounds = _pieces(*traffic, touched.bytes, fineness.pieces)
        group, count = _groups(objects, bounds, fineness)
        if count <= most:
            break
    return _placed(objects, group, bounds, streams, touched.bytes), touched.bytes


def _together(touched: Extents, address: NDArray[np.int64]) -> NDArray[np.int64]:
    """Addresses with the extents one after another."""
    lengths = touched.end - touched.begin
    before = np.cumsum(lengths) - lengths
    at = np.maximum(np.searchsorted(touched.begin, address, side="right") - 1, 0)
    found: NDArray[np.int64] = before[at] + address - touched.begin[at]
    return found


def _objects(
    trace: LaidOut,
    streams: StreamsOf,
    run: NDArray[np.int64],
    offset: NDArray[np.int64],
    alone_max: int,
) -> _Objects:
    rows = np.arange(len(run))
    starts = rows[(run == rows) & (trace.operation != FLUSH)]
    run_bytes = np.bincount(run, weights=trace.length, minlength=len(run))[starts]
    stream = streams.of[starts].astype(np.int64)
    # The rank of each start among those of its stream, from 0 to 1.
    order = np.argsort(stream, kind="stable")
    counts = np.bincount(stream)
    rank = np.empty(len(starts))
    rank[order] = np.arange(len(starts)) - np.repeat(np.cumsum(counts) - counts, counts)
    rank = rank / counts[stream]
    # Long runs are places of their own each, those with most bytes first.
    order = np.argsort(-run_bytes, kind="stable")[:alone_max]
    single = np.zeros(len(starts), np.int64)
    single[order] = np.where(run_bytes[order] >= _ALONE_BYTES, order + 1, 0)
    key = np.stack((stream, offset[starts], single))
    distinct, which, uses = np.unique(key, axis=1, return_inverse=True, return_counts=True)
    which = which.reshape(-1)
    count = len(uses)
    first, last = np.full(count, 2.0), np.zeros(count)
    np.minimum.at(first, which, rank)
    np.maximum.at(last, which, rank)
    extent = np.zeros(count, np.int64)
    np.maximum.at(extent, which, run_bytes.astype(np.int64))
    mean = np.bincount(which, weights=run_bytes) / uses
    alone = (distinct[2] > 0) | _much(uses * mean, alone_max // 2)
    reads = streams.operation[distinct[0]] == READ
    return _Objects(
        stream=distinct[0],
        offset=distinct[1],
        uses=uses,
        run_bytes=mean,
        extent=extent,
        begin=first,
        life=last - first,
        even=_even(which, rank, uses, last - first),
        alone=alone,
        shared=_shared(distinct[1], extent, reads, ~alone),
    )


def _much(traffic: NDArray[np.float64], most: int) -> NDArray[np.bool_]:
    """The places with much of the traffic."""
    order = np.argsort(-traffic, kind="stable")[:most]
    found = np.zeros(len(traffic), bool)
    found[order] = traffic[order] >= _ALONE_SHARE * traffic.sum()
    return found


def _shared(
    offset: NDArray[np.int64],
    extent: NDArray[np.int64],
    reads: NDArray[np.bool_],
    among: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Places `among` all whose middle is in what the other kind of operation uses there."""
    middle = offset + extent // 2
    found = np.zeros(len(offset), bool)
    for kind in (reads, ~reads):
        others = np.flatnonzero(~kind & among)
        area = union(offset[others], offset[others] + extent[others], UNIT_BYTES)
        found |= kind & among & area.has(middle)
    return found


def _even(
    which: NDArray[np.int64],
    rank: NDArray[np.float64],
    uses: NDArray[np.int64],
    life: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Places whose uses follow each other at much the same distance."""
    order = np.lexsort((rank, which))
    step = np.diff(rank[order])
    same = which[order][1:] == which[order][:-1]
    squares = np.bincount(which[order][1:][same], weights=step[same] ** 2, minlength=len(uses))
    steps = np.maximum(uses - 1, 1)
    mean = life / steps
    variance = np.maximum(squares / steps - mean**2, 0)
    found: NDArray[np.bool_] = (uses >= _EVEN_USES) & (np.sqrt(variance) < _EVEN_DEVIATION * mean)
    return found


def _traffic(
    offset: NDArray[np.int64], length: NDArray[np.int64], end: int
) -> tuple[NDArray[np.int64], int]:
    """I/Os up to each cell of the range, and the bytes of a cell."""
    cell = UNIT_BYTES
    while end // cell > _CELLS_MAX:
        cell *= 2
    cells = -(-end // cell)
    change = np.bincount(offset // cell, minlength=cells + 1)[: cells + 1].astype(np.int64)
    behind = np.minimum((offset + length - 1) // cell + 1, cells)
    change -= np.bincount(behind, minlength=cells + 1)[: cells + 1]
    uses = np.cumsum(change)[:-1]
    found: NDArray[np.int64] = np.cumsum(uses)
    return found, cell


def _pieces(upto: NDArray[np.int64], cell: int, end: int, count: int) -> NDArray[np.int64]:
    """Begins of pieces with the same traffic each, and the end of the last one."""
    wanted = upto[-1] * np.arange(1, count) / count
    cuts = np.unique(np.searchsorted(upto, wanted) + 1) * cell
    found: NDArray[np.int64] = np.concatenate(([0], cuts[cuts < end], [end]))
    return found


def _groups(
    of: _Objects, bounds: NDArray[np.int64], fine: _Fineness
) -> tuple[NDArray[np.int64], int]:
    """The group of each place, and how many groups there are."""
    octave = np.round(np.log2(np.maximum(of.life, _LIFE_MIN)) / fine.life)
    key = np.stack(
        (
            of.stream,
            np.searchsorted(bounds, of.offset, side="right"),
            (of.begin * fine.begins).astype(np.int64),
            np.where(of.uses > 1, octave, 0).astype(np.int64),
            np.round(np.log2(of.uses) / fine.uses).astype(np.int64),
            np.round(np.log2(of.run_bytes) / fine.length).astype(np.int64),
            of.even.astype(np.int64),
            (of.offset % UNIT_BYTES != 0).astype(np.int64),
            of.shared.astype(np.int64),
            np.where(of.alone, np.arange(len(of.uses)) + 1, 0),
        )
    )
    distinct, group = np.unique(key, axis=1, return_inverse=True)
    return group.reshape(-1), distinct.shape[1]


def _placed(
    of: _Objects,
    group: NDArray[np.int64],
    bounds: NDArray[np.int64],
    streams: StreamsOf,
    end: int,
) -> ModelPlaces:
    """The groups, the places that are used most first in each piece."""
    count = np.bincount(group)
    uses = np.bincount(group, weights=of.uses).astype(np.int64)

    def mean(values: NDArray[Any]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = np.bincount(group, weights=values) / count
        return found

    def least(values: NDArray[np.float64]) -> NDArray[np.float64]:
        found = np.full(len(count), np.inf)
        np.minimum.at(found, group, values)
        return found

    first = np.unique(group, return_index=True)[1]
    stream = of.stream[first]
    piece = np.searchsorted(bounds, of.offset[first], side="right") - 1
    begin, latest = least(of.begin), -least(-of.begin)
    runs = np.bincount(group, weights=of.run_bytes * of.uses) / uses
    extent = -least(-of.extent.astype(float)).astype(np.int64)
    life, even = mean(of.life), mean(of.even)
    alone, shared = of.alone[first], of.shared[first]
    reads = streams.operation[stream] == READ
    odd = of.offset[first] % UNIT_BYTES
    hot = np.where(uses >= _HOT_USES * count, UNIT_BYTES, 0)
    slots = -(-(extent + odd) // UNIT_BYTES) * UNIT_BYTES + hot
    own = _own_begins(bounds, piece, slots * count, reads, shared & ~alone)
    cursors: dict[tuple[int, int], int] = {}
    rows = []
    for n in np.argsort(-uses / count, kind="stable"):
        inside = int(bounds[piece[n]]), int(bounds[piece[n] + 1])
        key = int(piece[n]), (1 + int(reads[n])) * int(shared[n])
        at = cursors.get(key, inside[0] if shared[n] else int(own[piece[n]]))
        if alone[n]:
            address = min(int(of.offset[first[n]] - odd[n]), max(end - int(extent[n] + odd[n]), 0))
            parts = [(address, 0, 1)]
        else:
            parts, cursors[key] = _slots(int(count[n]), int(slots[n]), at, inside, end)
        left_count, left_uses = int(count[n]), int(uses[n])
        for address, stride, many in parts:
            part_uses = left_uses * many // left_count
            left_count, left_uses = left_count - many, left_uses - part_uses
            rows.append((
                int(stream[n]), round(begin[n] * PASS), round((latest[n] - begin[n]) * PASS),
                round(life[n] * PASS), int(even[n] > 0.5), many, part_uses,
                max(512, round(runs[n] / 512) * 512), address + int(odd[n]), stride,
            ))  # fmt: skip
    # A stream that only continues runs has a place all the same, for want of one to continue.
    numbers = np.arange(len(streams.length))
    for n in numbers[(streams.operation != FLUSH) & ~np.isin(numbers, stream)]:
        rows.append((int(n), 0, PASS, 0, 0, 1, 1, int(streams.length[n]), 0, 0))
    columns = zip(*rows, strict=True)
    return ModelPlaces(*(tuple(column) for column in columns))


def _own_begins(
    bounds: NDArray[np.int64],
    piece: NDArray[np.int64],
    taken: NDArray[np.int64],
    reads: NDArray[np.bool_],
    shared: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Where the part of each piece begins that is not both read and written."""
    count = len(bounds) - 1
    each = [
        np.bincount(piece[of], weights=taken[of], minlength=count).astype(np.int64)
        for of in (shared & reads, shared & ~reads)
    ]
    begin = bounds[:-1] + np.maximum(*each)
    found: NDArray[np.int64] = np.where(begin < bounds[1:], begin, bounds[:-1])
    return found


def _slots(
    count: int, slot: int, at: int, piece: tuple[int, int], end: int
) -> tuple[list[tuple[int, int, int]], int]:
    """Where `count` places of `slot` bytes are in a piece that is used up to `at`: address, stride
    and number of each part; and where the next one begins. What does not fit begins again at the
    begin of the piece."""
    size = piece[1] - piece[0]
    if slot > size:
        # Runs go on behind the piece. Their begins are spread over it.
        room = max(end - slot, 0)
        address = min(piece[0], room)
        stride = min(size, room - address) // count // UNIT_BYTES * UNIT_BYTES
        return [(address, stride, count)], at
    parts = []
    while count:
        fits = (piece[1] - at) // slot
        if fits < 1:
            at = piece[0]
            continue
        many = min(fits, count)
        parts.append((at, slot, many))
        at, count = at + many * slot, count - many
    return parts, at
