"""A trace as sweeps: I/Os that go through the addresses upwards, one part of the pass each.

An I/O continues the sweep that ended nearest to where it begins. Data that are written one after
another and overwritten one after another stay so, on which write amplification depends. How finely
sweeps follow the trace is a question of how many there may be, and that is bounded by the I/Os: a
model with as many numbers as the trace has would be a copy, and no character.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from writecliff.synthesis.demand import demand_of
from writecliff.synthesis.laid_out import FLUSH, READ, TRIM, WRITE, union
from writecliff.synthesis.mixes import KindsOf, mixes_of
from writecliff.synthesis.pieces import OF_ROW, Piece, pieces_of
from writecliff.synthesis.popularity import WEIGHTS, weights_of
from writecliff.synthesis.streams import StreamsOf, streams_of
from writecliff.workload.io_model import IoModel, ModelSweeps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from writecliff.synthesis.laid_out import LaidOut

IOS_OF_NUMBER = 2  # of the trace, for each number of the model
NUMBERS_MIN, NUMBERS_MAX = 3000, 20_000
_OF_SHORT = 1.5  # numbers for an I/O at most, below NUMBERS_MIN; the chain takes 2 and more
_OF_STREAMS, _OF_DEMAND, _OF_MIXES = 1 / 16, 0.2, 0.37  # shares of the numbers; the rest: sweeps
_OF_INTERVAL, _OF_STREAM = 3, 3  # numbers
_WEIGHTED_MIN = 800  # numbers from which on pages have weights
_BACKS = 7  # distances by which I/Os go back before the end of the one before
_APART_BYTES = 256 << 10  # of what one of two I/Os with a gap between them is part of, without one
_EXACT = (64, 32, 16, 12, 9)  # sizes of an operation that are kept as they are; pages compare eight
_JUMP_BYTES = 512 << 10  # that an I/O of a sweep may leave out
_OPEN = 64  # sweeps of an operation that may go on
_IOS_MAX = 500_000  # longer traces get the chain


def swept_model(trace: LaidOut, *, seed: int) -> IoModel | None:
    """The model of sweeps, or None if there are too many of them."""
    if len(trace) > _IOS_MAX:
        return None
    least = int(min(len(trace) * _OF_SHORT, NUMBERS_MIN))
    numbers = min(max(len(trace) // IOS_OF_NUMBER, least), NUMBERS_MAX)
    chains = _chains(trace, numbers // OF_ROW)
    if chains is None:
        return None
    streams = _streams(trace, numbers * _OF_STREAMS)
    demand = demand_of(trace, int(numbers * _OF_DEMAND) // _OF_INTERVAL)
    of_mixes = int(numbers * _OF_MIXES)
    weighted = numbers >= _WEIGHTED_MIN
    of_weights = 2 * WEIGHTS if weighted else 0
    taken = (
        of_weights
        + _OF_STREAM * len(streams.model.lengths)
        + _OF_INTERVAL * len(demand.ios)
        + of_mixes
    )
    parts = [part for chain in chains for part in _apart(trace, chain)]
    pieces = pieces_of(trace, parts, numbers - taken)
    if pieces is None:
        return None
    # Those of a chain one after another: one that begins where the one before ended goes on there.
    # Chains downwards, so that none begins where another one ended.
    number = np.zeros(len(trace), np.int64)
    for part in parts:
        number[part] = -trace.offset[part[0]]
    pieces.sort(key=lambda of: (of.left_out > 0, int(number[of.ios[0]]), int(of.ios[0])))
    kinds = _kinds(trace, streams, chains)
    mixes, mix = mixes_of([piece.ios for piece in pieces], kinds, of_mixes)
    every = np.flatnonzero(trace.operation != FLUSH)
    touched = union(trace.offset[every], (trace.offset + trace.length)[every], 4096)
    return IoModel(
        seed=seed,
        range_bytes=max(int(touched.end[-1]), *streams.model.lengths),
        streams=streams.model,
        sweeps=_table(trace, pieces, mix, weighted=weighted),
        mixes=mixes,
        demand=demand,
    )


def _streams(trace: LaidOut, numbers: float) -> StreamsOf:
    """As many sizes as the numbers allow; some in any case."""
    for exact in _EXACT:
        found = streams_of(trace, exact=exact)
        if _OF_STREAM * len(found.model.lengths) <= numbers:
            break
    return found


def _table(trace: LaidOut, pieces: list[Piece], mix: list[int], *, weighted: bool) -> ModelSweeps:
    rows, steps, left_out = [], [], []
    end_of = trace.offset + trace.length
    for piece, of in zip(pieces, mix, strict=True):
        ios = piece.ios
        first = int(trace.offset[ios[0]])
        span = int(end_of[ios].max()) - first
        rows.append((int(ios[0]), int(ios[-1]), first, len(ios), of, span))
        if piece.left_out:
            steps.append(piece.left_out)
            gaps = trace.offset[ios[1:]] - end_of[ios[:-1]]
            left_out.append(int(np.maximum(gaps, 0).sum()))
    begin, end, offset, ios_of, mixes, spans = (tuple(column) for column in zip(*rows, strict=True))
    open_ios = [piece.ios for piece in pieces if piece.left_out and weighted]
    reads, writes = (
        weights_of(trace, [ios for ios in open_ios if trace.operation[ios[0]] == operation])
        for operation in (READ, WRITE)
    )
    return ModelSweeps(
        begin, end, offset, ios_of, mixes, spans, tuple(steps), tuple(left_out), reads, writes
    )  # fmt: skip


def _apart(trace: LaidOut, chain: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The parts of a chain between which something is left out, if they are large: a gap between
    files has its place, those between pages that are written have not."""
    end = trace.offset[chain] + trace.length[chain]
    first = np.concatenate(([0], np.flatnonzero(trace.offset[chain][1:] > end[:-1]) + 1))
    moved = np.add.reduceat(trace.length[chain], first)
    large = moved >= _APART_BYTES
    cuts = first[1:][large[1:] | large[:-1]]
    return np.split(chain, cuts)


def _kinds(trace: LaidOut, streams: StreamsOf, chains: list[NDArray[np.int64]]) -> KindsOf:
    """I/Os of a stream that go back by the same distance are of a kind; rare distances count as
    the nearest frequent one."""
    back = np.zeros(len(trace), np.int64)
    for chain in chains:
        gone = (trace.offset + trace.length)[chain[:-1]] - trace.offset[chain[1:]]
        back[chain[1:]] = np.maximum(gone, 0)
    distances, counts = np.unique(back, return_counts=True)
    kept = np.sort(distances[np.argsort(-counts, kind="stable")[: _BACKS + 1]])
    back = kept[np.abs(kept[None] - distances[:, None]).argmin(axis=1)][
        np.searchsorted(distances, back)
    ]
    pairs, of = np.unique(np.stack((streams.of, back)), axis=1, return_inverse=True)
    stream = pairs[0].astype(np.int64)
    grows = np.maximum(streams.length[stream] - pairs[1], 0)
    operations = "".join(streams.model.operations[n] for n in stream.tolist())
    return KindsOf(of.reshape(-1), stream, pairs[1], grows, operations)


def _chains(trace: LaidOut, most: int) -> list[NDArray[np.int64]] | None:
    """I/Os that continue each other, or None if there are more than `most` such chains."""
    chains: list[list[int]] = []
    flushes = np.flatnonzero(trace.operation == FLUSH)
    if len(flushes):
        chains.append(flushes.tolist())
    for operation in (READ, WRITE, TRIM):
        # Where the last I/O of each open sweep begins and ends, when it was, and its chain.
        begins, ends, used = (np.zeros(_OPEN, np.int64) for _ in range(3))
        chain = np.full(_OPEN, -1, np.int64)
        for io in np.flatnonzero(trace.operation == operation).tolist():
            at = int(trace.offset[io])
            step = at - ends
            distance = np.abs(step)
            # Of equally near ones the last used one.
            distance[(chain < 0) | (step > _JUMP_BYTES) | (at < begins)] = 1 << 62
            nearest = int(distance.argmin())
            if distance[nearest] == 1 << 62:
                nearest = int(used.argmin())
                if len(chains) >= most:
                    return None
                chain[nearest] = len(chains)
                chains.append([])
            else:
                same = np.flatnonzero(distance == distance[nearest])
                nearest = int(same[used[same].argmax()])
            chains[int(chain[nearest])].append(io)
            begins[nearest], ends[nearest] = at, at + int(trace.length[io])
            used[nearest] = io + 1
    return [np.array(one, np.int64) for one in chains]
