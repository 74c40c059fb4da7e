"""A trace as sweeps: I/Os that go through the addresses upwards, one part of the pass each.

An I/O continues the sweep that ended nearest to where it begins. Data that are written one after
another and overwritten one after another stay so, on which write amplification depends. How finely
sweeps follow the trace is a question of how many there may be, and that is bounded by the I/Os: a
model with as many numbers as the trace has would be a copy, and no character.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import pairwise
from math import gamma, inf
from typing import TYPE_CHECKING

import numpy as np

from writecliff.synthesis.laid_out import FLUSH, READ, TRIM, WRITE, union
from writecliff.synthesis.streams import StreamsOf, streams_of
from writecliff.workload.io_model import IoModel, ModelDemand, ModelMixes, ModelSweeps

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    files has its place, those between pages that are written have not.
    """
    end = trace.offset[chain] + trace.length[chain]
    first = np.concatenate(([0], np.flatnonzero(trace.offset[chain][1:] > end[:-1]) + 1))
    moved = np.add.reduceat(trace.length[chain], first)
    large = moved >= _APART_BYTES
    cuts = first[1:][large[1:] | large[:-1]]
    return np.split(chain, cuts)


def _kinds(trace: LaidOut, streams: StreamsOf, chains: list[NDArray[np.int64]]) -> KindsOf:
    """I/Os of a stream that go back by the same distance are of a kind; rare distances count as
    the nearest frequent one.
    """
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


# -- demand ----------------------------------------------------------------------------------------

# Demand over time: the number of I/Os per interval.
#
# Intervals end where I/Os would otherwise deviate most from their times. The weight of an I/O is
# its work (its bytes plus a constant) times the squared queue length that its burst would cause on
# a drive. So intervals are short around the slowest I/Os.

_WORK_OF_IO = 16 << 10  # bytes that an I/O counts beside its own
_OF_IDLE = 1 / 8  # share of the intervals for times without I/Os, two for each
_RATE_BYTES_S = 1e9  # of a drive, for its queue
_WITHOUT_QUEUE = 0.02  # weight of an I/O for which no queue is left, against the longest queue
_LATE_NS = 50e6  # later than this is no worse: no drive's queue is as long
_SHAPES = np.array([0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.3, 2.0, 4.0, 10.0])
# Squares of the coefficient of variation of Weibull distributions with these shapes.
_VARIATIONS = np.array(
    [gamma(1 + 2 / shape) / gamma(1 + 1 / shape) ** 2 - 1 for shape in _SHAPES.tolist()]
)


def demand_of(trace: LaidOut, intervals_max: int) -> ModelDemand:
    """The intervals of a pass; the first one is its first I/O."""
    work = (trace.length + _WORK_OF_IO).astype(np.float64)
    time_ns = trace.time_ns.astype(np.float64)
    weight = work * (_WITHOUT_QUEUE + _longest_queue(time_ns, work) ** 2)
    last = _ends(time_ns, weight, _idle(time_ns, int(intervals_max * _OF_IDLE)), intervals_max)
    length = np.diff(trace.time_ns[last], prepend=0)
    shapes = [_shape(trace.time_ns[a : b + 1]) for a, b in pairwise(last)]
    return ModelDemand(
        ios=tuple(np.diff(last, prepend=-1).tolist()),
        length_ns=tuple(length.tolist()),
        shape=(1000, *shapes),
    )


def _longest_queue(time_ns: NDArray[np.float64], work: NDArray[np.float64]) -> NDArray[np.float64]:
    """The longest queue until it is empty again, for each I/O, in parts of the longest of all."""
    done_ns = np.cumsum(work) / _RATE_BYTES_S * 1e9
    # What is done before an I/O less the time until then is least where the queue was empty.
    idle_ns = np.minimum.accumulate(np.concatenate(([0.0], done_ns[:-1])) - time_ns)
    queue_ns = done_ns - time_ns - idle_ns
    begins = np.flatnonzero(np.diff(idle_ns, prepend=1.0))
    longest = np.maximum.reduceat(queue_ns, begins)
    found: NDArray[np.float64] = np.repeat(longest, np.diff(begins, append=len(work)))
    found /= found.max()
    return found


def _idle(time_ns: NDArray[np.float64], most: int) -> set[int]:
    """I/Os before and after the longest times without any, at `most` so many."""
    after = 1 + np.argsort(-np.diff(time_ns), kind="stable")[: most // 2]
    return {int(io) for io in np.concatenate((after - 1, after))}


def _ends(
    time_ns: NDArray[np.float64], weight: NDArray[np.float64], idle: set[int], intervals_max: int
) -> list[int]:
    """I/Os with which intervals end: the first one, those before and after `idle` times, and the
    last one; then, in the interval in which most weight is furthest from its time, the one that is,
    one after another.
    """
    ends = {0, len(time_ns) - 1} | idle
    worst: list[tuple[float, int, int, int]] = []

    def add(first: int, last: int) -> None:
        if last - first > 1:
            time = time_ns[first : last + 1]
            off = np.abs(time - np.linspace(time[0], time[-1], len(time)))
            missed = (np.minimum(off, _LATE_NS) * weight[first : last + 1])[1:].sum()
            heapq.heappush(worst, (-float(missed), first, first + int(off.argmax()), last))

    for first, last in pairwise(sorted(ends)):
        add(first, last)
    while worst and len(ends) < intervals_max:
        _, first, at, last = heapq.heappop(worst)
        if not first < at < last:
            continue
        ends.add(at)
        add(first, at)
        add(at, last)
    return sorted(ends)


def _shape(time_ns: NDArray[np.int64]) -> int:
    """The shape of the times between I/Os, in hundredths."""
    gaps = np.diff(time_ns)
    if len(gaps) == 1:
        # If more I/Os come in this interval, they come together: idle time is not divided.
        return round(100 * float(_SHAPES[0]))
    mean = gaps.mean()
    variation = float(gaps.var() / mean**2) if mean > 0 else 0.0
    # Variations fall with shapes.
    at = np.abs(np.log(_VARIATIONS) - np.log(max(variation, _VARIATIONS[-1]))).argmin()
    return round(100 * float(_SHAPES[at]))


# -- mixes -----------------------------------------------------------------------------------------

# Size mixes: sweeps whose I/Os have similar sizes share a mix, which limits their number.

# Numbers of a kind in a mix: stream, distance, I/Os, begins; of others the first; the last, groups.
_OF_KIND, _OF_OTHER, _OF_OTHERS = 4, 1, 2
_OF_SURPRISE = 0.1  # mean I/Os for each nat


@dataclass(frozen=True)
class KindsOf:
    """The kind of each I/O, and what kinds are; columns."""

    of: NDArray[np.int64]
    stream: NDArray[np.int64]
    back: NDArray[np.int64]  # bytes before the end of the I/O before
    grows: NDArray[np.int64]  # bytes by which it gets further
    operations: str  # a letter each


@dataclass(frozen=True)
class _Mix:
    """Sweeps of an operation, with the I/Os of each kind that they have in all."""

    sweeps: tuple[int, ...]
    operation: str
    count: NDArray[np.int64]
    begins: NDArray[np.int64]  # of them, I/Os with which a sweep begins
    bytes: int

    @property
    def numbers(self) -> int:
        others = self.count - self.begins
        kinds, one, several = ((values > least).sum() for values, least in (
            (self.count, 0), (others, 0), (others, 1)
        ))  # fmt: skip
        return 1 + int(kinds * _OF_KIND + one * _OF_OTHER + several * _OF_OTHERS)

    @property
    def ios(self) -> int:
        return int(self.count.sum())

    @property
    def surprise(self) -> float:
        """What drawing the streams at random leaves open: entropy times I/Os, in nats."""
        used = self.count[self.count > 0].astype(float)
        return float((used * np.log(used.sum() / used)).sum())

    def with_other(self, other: _Mix) -> _Mix:
        sweeps = tuple(sorted(self.sweeps + other.sweeps))
        count, begins = self.count + other.count, self.begins + other.begins
        return _Mix(sweeps, self.operation, count, begins, self.bytes + other.bytes)


def mixes_of(
    sweeps: list[NDArray[np.int64]], kinds: KindsOf, numbers_max: int
) -> tuple[ModelMixes, list[int]]:
    """The mixes, and the one of each sweep. Of mixes with neighbouring mean sizes, those that are
    most alike are put together, until the table has at most `numbers_max` numbers or one mix for
    each operation is left.
    """
    mixes = sorted(_first(sweeps, kinds), key=lambda of: (of.operation, of.bytes / of.ios))
    costs = [_cost(a, b) for a, b in pairwise(mixes)]
    numbers = sum(mix.numbers for mix in mixes)
    while numbers > numbers_max and costs and min(costs) < inf:
        at = costs.index(min(costs))
        both = mixes[at].with_other(mixes[at + 1])
        numbers += both.numbers - mixes[at].numbers - mixes[at + 1].numbers
        mixes[at : at + 2] = [both]
        del costs[at]
        for left in (at - 1, at):
            if 0 <= left < len(costs):
                costs[left] = _cost(mixes[left], mixes[left + 1])
    mixes.sort(key=lambda mix: mix.sweeps)
    rows = [(mix, kind) for mix in mixes for kind in np.flatnonzero(mix.count).tolist()]
    places = [place for mix in mixes for place in _places(mix, sweeps, kinds)]
    table = ModelMixes(
        sizes=tuple(int(np.count_nonzero(mix.count)) for mix in mixes),
        stream=tuple(int(kinds.stream[kind]) for _, kind in rows),
        back=tuple(int(kinds.back[kind]) for _, kind in rows),
        count=tuple(int(mix.count[kind]) for mix, kind in rows),
        begins=tuple(int(mix.begins[kind]) for mix, kind in rows),
        first=tuple(place.first for place in places if place.ios > 0),
        last=tuple(place.last for place in places if place.ios > 1),
        groups=tuple(place.groups for place in places if place.ios > 1),
    )
    of = {sweep: number for number, mix in enumerate(mixes) for sweep in mix.sweeps}
    return table, [of[sweep] for sweep in range(len(sweeps))]


@dataclass(frozen=True)
class _Place:
    """Where the I/Os of a kind that begin no sweep are among those of a mix."""

    ios: int  # that begin no sweep
    first: int  # of these, among all of the mix
    last: int
    groups: int  # of I/Os that follow each other

    @property
    def at(self) -> NDArray[np.float64]:
        """Where the model puts them, as `Spread::places` of `io_model/mixes.rs` does."""
        group = np.arange(self.ios) * self.groups // max(self.ios, 1)
        apart = max(self.last - self.first - max(self.ios // self.groups - 1, 0), 0)
        found: NDArray[np.float64] = self.first + apart * group / max(self.groups - 1, 1)
        return found


def _places(mix: _Mix, sweeps: list[NDArray[np.int64]], kinds: KindsOf) -> list[_Place]:
    """The place of each kind of a mix. I/Os of a kind are in as many groups as in the trace, or
    each by itself, whichever keeps better which kind follows which.
    """
    others = kinds.of[np.concatenate([sweeps[n][1:] for n in mix.sweeps])]
    used = np.flatnonzero(mix.count).tolist()
    found = [np.flatnonzero(others == kind) for kind in used]

    def places(groups: list[int]) -> list[_Place]:
        ends = [(int(at[0]), int(at[-1])) if len(at) else (0, 0) for at in found]
        return [
            _Place(len(at), *between, many)
            for at, between, many in zip(found, ends, groups, strict=True)
        ]

    alone = places([max(len(at), 1) for at in found])
    together = places([int((np.diff(at) > 1).sum()) + 1 for at in found])
    of = np.searchsorted(used, others)
    return min(alone, together, key=lambda choice: _differently_followed(choice, of))


def _differently_followed(places: list[_Place], of: NDArray[np.int64]) -> int:
    """How many I/Os of a mix are followed by another kind in the model than in the trace."""
    kinds = len(places)
    drawn = np.repeat(np.arange(kinds), [place.ios for place in places])
    drawn = drawn[np.argsort(np.concatenate([place.at for place in places]), kind="stable")]
    pairs = [
        np.bincount(one[:-1] * kinds + one[1:], minlength=kinds * kinds) for one in (drawn, of)
    ]
    return int(np.abs(pairs[0] - pairs[1]).sum())


def _first(sweeps: list[NDArray[np.int64]], kinds: KindsOf) -> list[_Mix]:
    """Sweeps of a single kind share its mix from the start; others have their own each."""
    single: dict[int, _Mix] = {}
    several: list[_Mix] = []
    for number, ios in enumerate(sweeps):
        count = np.bincount(kinds.of[ios], minlength=len(kinds.operations)).astype(np.int64)
        used = np.flatnonzero(count).tolist()
        begins = np.zeros_like(count)
        begins[kinds.of[ios[0]]] = 1
        bytes_ = int((count * kinds.grows).sum())
        mix = _Mix((number,), kinds.operations[used[0]], count, begins, bytes_)
        if len(used) > 1:
            several.append(mix)
        elif used[0] in single:
            single[used[0]] = single[used[0]].with_other(mix)
        else:
            single[used[0]] = mix
    return [*single.values(), *several]


def _cost(a: _Mix, b: _Mix) -> float:
    """What putting both together costs for each number that it saves: bytes that one gets from the
    other, and a little of what is left open besides.
    """
    if a.operation != b.operation:
        return inf
    both = a.with_other(b)
    moved = abs(a.bytes * b.ios - b.bytes * a.ios) / both.ios
    more_open = (both.surprise - a.surprise - b.surprise) * both.bytes / both.ios
    return (moved + _OF_SURPRISE * more_open) / (a.numbers + b.numbers - both.numbers)


# -- popularity ------------------------------------------------------------------------------------

# Popularity of pages in sweeps that skip pages.
#
# Sweeps over the same addresses mostly use the same pages: the pages that change most. The share of
# sweeps that use a page varies more than chance explains. The excess is modelled as a beta
# distribution, and the share of each page is its posterior mean (empirical Bayes). The model stores
# weights, the odds of these shares, for groups of equally many pages.

WEIGHTS = 16
_PAGE_BYTES = 4096
_PAGES_MAX = 1 << 24  # of a range; others have no weights
_SHARE_MIN = 0.001  # of sweeps that use a page, and that do not
_ERRORS = 3  # standard errors of the variance that chance gives: less beyond it is none
_UNIT = 1000  # weights are in parts of this


def weights_of(trace: LaidOut, sweeps: Sequence[NDArray[np.int64]]) -> tuple[int, ...]:
    """The weights of pages for sweeps of one operation, or none if pages are used alike."""
    pages = trace.range_bytes // _PAGE_BYTES + 1
    if pages > _PAGES_MAX:
        return ()
    used, expected, chance, over = (np.zeros(pages + 1) for _ in range(4))
    for ios in sweeps:
        covered = union(trace.offset[ios], (trace.offset + trace.length)[ios], _PAGE_BYTES)
        begin, end = covered.begin // _PAGE_BYTES, covered.end // _PAGE_BYTES
        span = slice(int(begin[0]), int(end[-1]))
        density = float((end - begin).sum()) / (span.stop - span.start)
        expected[span] += density
        chance[span] += density * (1 - density)
        over[span] += 1
        np.add.at(used, begin, 1)
        np.add.at(used, end, -1)
    used = np.cumsum(used)
    several = over > 1
    beyond_chance = float(((used - expected)[several] ** 2 - chance[several]).sum())
    if beyond_chance <= _ERRORS * np.sqrt(2 * float((chance[several] ** 2).sum())):
        return ()
    variance = beyond_chance / float((expected[several] ** 2).sum())
    mean = float(expected[several].sum() / over[several].sum())
    # How many sweeps the distribution counts for; the least: pages are used always or never.
    total = max(mean * (1 - mean) / (variance * mean**2) - 1, 1e-3)
    shares = (mean * total + used[several]) / (total + over[several])
    middles = (np.arange(WEIGHTS) + 0.5) / WEIGHTS
    shares = np.clip(np.quantile(shares, middles), _SHARE_MIN, 1 - _SHARE_MIN)
    return tuple(np.maximum(np.rint(_UNIT * shares / (1 - shares)), 1).astype(int).tolist())


# -- pieces ----------------------------------------------------------------------------------------

# Pieces of a trace: the I/Os of each sweep, for a given size of the model.
#
# A piece describes the position of its I/Os in the pass with an error: their distance from uniform
# progress through the pass and its addresses. More pieces reduce the sum of these errors, weighted
# by bytes; the next piece is added where it reduces the sum most. Data that a pass writes only once
# have a low weight, because repeated passes overwrite them in order.

_UNIT_BYTES = 4096
_ONCE_WEIGHT = 0.05  # of a byte that is written once in the pass
_READ_WEIGHT = 0.05  # of a byte that is read: it does not move data
_IO_WEIGHT = 0.05  # of each I/O, in mean I/Os
OF_ROW, _OF_OPEN_ROW = 6, 2  # numbers


@dataclass(frozen=True)
class Piece:
    """A sweep: its I/Os, and before how many of them something is left out."""

    ios: NDArray[np.int64]
    left_out: int

    @property
    def numbers(self) -> int:
        """Of its row in the model."""
        return OF_ROW + (_OF_OPEN_ROW if self.left_out else 0)


@dataclass
class Pieces:
    """The pieces so far, and how each could be divided."""

    trace: LaidOut
    weight: NDArray[np.float64] = field(init=False)
    again: NDArray[np.float64] = field(init=False)
    clock: NDArray[np.float64] = field(init=False)  # bytes written before each I/O, and a little
    _live: dict[int, Piece] = field(default_factory=dict)
    _divisions: list[tuple[float, int, tuple[Piece, Piece]]] = field(default_factory=list)
    _next: int = 0
    numbers: int = 0  # that the pieces take in a model

    def __post_init__(self) -> None:
        of, length = self.trace.operation, self.trace.length
        weight = np.where(of == WRITE, length, length * _READ_WEIGHT).astype(float)
        weight[of == FLUSH] = 0
        self.again = written_again(self.trace)
        weight[of == WRITE] *= _ONCE_WEIGHT + self.again[of == WRITE]
        self.weight = weight + _IO_WEIGHT * max(float(weight.mean()), 1.0)
        written = np.where(of == WRITE, length, 0).astype(float)
        self.clock = np.cumsum(written + max(float(written.mean()), 1.0) * _IO_WEIGHT)

    @property
    def live(self) -> list[Piece]:
        """The pieces so far."""
        return list(self._live.values())

    @property
    def gain(self) -> float:
        """By how much the best division makes the error smaller."""
        return -self._divisions[0][0] if self._divisions else 0.0

    def add(self, piece: Piece) -> None:
        number, self._next = self._next, self._next + 1
        self._live[number] = piece
        self.numbers += piece.numbers
        gain, parts = self._divided(piece.ios)
        if parts is not None and gain > 0:
            heapq.heappush(self._divisions, (-gain, number, parts))

    def divide(self) -> None:
        """Divide the piece whose division has the largest gain."""
        _, number, parts = heapq.heappop(self._divisions)
        self.numbers -= self._live.pop(number).numbers
        for part in parts:
            self.add(part)

    def _divided(self, ios: NDArray[np.int64]) -> tuple[float, tuple[Piece, Piece] | None]:
        """Cut before or after where it is furthest from even."""
        off = self._off(ios)
        at, error = int(off.argmax()), self._error(ios, off)
        best: tuple[float, tuple[Piece, Piece] | None] = (0.0, None)
        if len(ios) < 3:
            return best
        for cut in (at, at + 1):
            if 0 < cut < len(ios):
                parts = ios[:cut], ios[cut:]
                gain = error - sum(self._error(part, self._off(part)) for part in parts)
                if gain > best[0]:
                    best = gain, (self.sweep(parts[0]), self.sweep(parts[1]))
        return best

    def sweep(self, ios: NDArray[np.int64]) -> Piece:
        begin, end = self.trace.offset[ios], (self.trace.offset + self.trace.length)[ios]
        return Piece(ios, left_out=int((begin[1:] > end[:-1]).sum()))

    def _error(self, ios: NDArray[np.int64], off: NDArray[np.float64]) -> float:
        return float((off * self.weight[ios]).sum())

    def _off(self, ios: NDArray[np.int64]) -> NDArray[np.float64]:
        """By how much of the clock each one is from an even course. An address that is off counts
        as the time in which the sweep gets that far.
        """
        rank, ends = np.arange(len(ios)), [0, max(len(ios) - 1, 1)]
        order, address = self.clock[ios], self.trace.offset[ios].astype(float)
        even = np.round(np.interp(rank, ends, [ios[0], ios[-1]])).astype(np.int64)
        off = np.abs(order - self.clock[even])
        if self.trace.operation[ios[0]] != FLUSH:
            rate = (order[-1] - order[0] + 1) / max(address[-1] - address[0], 1.0)
            off += rate * np.abs(address - np.interp(rank, ends, [address[0], address[-1]]))
        found: NDArray[np.float64] = off
        return found


def written_again(trace: LaidOut) -> NDArray[np.float64]:
    """Share of the bytes of each I/O that more than one write of the pass writes."""
    begin, end = trace.offset // _UNIT_BYTES, -(-(trace.offset + trace.length) // _UNIT_BYTES)
    writes = trace.operation == WRITE
    size = int(end.max()) + 1
    change = np.bincount(begin[writes], minlength=size) - np.bincount(end[writes], minlength=size)
    several = np.concatenate(([0], np.cumsum(np.cumsum(change) > 1)))
    found: NDArray[np.float64] = (several[end] - several[begin]) / np.maximum(end - begin, 1)
    return found


def pieces_of(trace: LaidOut, chains: list[NDArray[np.int64]], numbers: int) -> list[Piece] | None:
    """Pieces of the chains whose rows take at most so many numbers, or None if all chains whole
    already take more.
    """
    pieces = Pieces(trace)
    for chain in chains:
        pieces.add(pieces.sweep(chain))
    if pieces.numbers > numbers:
        return None
    while pieces.numbers + OF_ROW + 2 * _OF_OPEN_ROW <= numbers and pieces.gain > 0:
        pieces.divide()
    return pieces.live
