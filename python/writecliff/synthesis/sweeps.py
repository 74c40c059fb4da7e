"""Model of a trace as sweeps: I/Os in ascending address order over a part of the pass.

An I/O continues the sweep that ended nearest to its address. Data that are written and overwritten
in sequence therefore remain sequential, which determines write amplification. A model with more
sweeps follows the trace more closely. The I/O count limits the number of sweeps, because a model
with as many numbers as the trace would be a copy of the trace.
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

IOS_OF_NUMBER = 2  # Number of trace I/Os per model number.
NUMBERS_MIN, NUMBERS_MAX = 3000, 20_000
_OF_SHORT = 1.5  # Maximum numbers per I/O below NUMBERS_MIN; the chain needs at least 2.
# Fractions of the numbers that streams, demand and mixes may use, excluding sweeps.
_OF_STREAMS, _OF_DEMAND, _OF_MIXES = 1 / 16, 0.2, 0.37
_OF_INTERVAL, _OF_STREAM = 3, 3  # Numbers per interval and per stream.
_WEIGHTED_MIN = 800  # Minimum number count of a model that has page weights.
_BACKS = 7  # Number of distances by which I/Os start before the end of the previous I/O.
# Minimum number of gap-free bytes on either side of a gap that splits a chain.
_PART_BYTES = 256 << 10
_EXACT = (64, 32, 16, 12, 9)  # Numbers of exact sizes per operation; pages compare eight.
_JUMP_BYTES = 512 << 10  # Maximum number of bytes that a sweep skips between two I/Os.
_OPEN = 64  # Maximum number of open sweeps per operation.
_IOS_MAX = 500_000  # Maximum I/O count; longer traces are modelled as chains.


def swept_model(trace: LaidOut, *, seed: int) -> IoModel | None:
    """Return the model of a trace as sweeps, or None if the trace has too many sweeps."""
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
    parts = [part for chain in chains for part in _split_at_gaps(trace, chain)]
    pieces = pieces_of(trace, parts, numbers - taken)
    if pieces is None:
        return None
    # Pieces of a chain follow each other: a piece that starts at the end of the previous piece
    # continues that piece. Chains are sorted in descending order, so that no chain starts at the
    # end of another chain.
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
    """Return the streams, with as many exact sizes as the limit on model numbers permits."""
    for exact in _EXACT:
        streams = streams_of(trace, exact=exact)
        if _OF_STREAM * len(streams.model.lengths) <= numbers:
            break
    return streams


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


def _split_at_gaps(trace: LaidOut, chain: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Split a chain at gaps next to large parts without gaps.

    A gap between files has a fixed address, whereas gaps between written pages do not.
    """
    end = trace.offset[chain] + trace.length[chain]
    first = np.concatenate(([0], np.flatnonzero(trace.offset[chain][1:] > end[:-1]) + 1))
    moved = np.add.reduceat(trace.length[chain], first)
    large = moved >= _PART_BYTES
    cuts = first[1:][large[1:] | large[:-1]]
    return np.split(chain, cuts)


def _kinds(trace: LaidOut, streams: StreamsOf, chains: list[NDArray[np.int64]]) -> KindsOf:
    """Return the I/O kinds: I/Os of a stream that go back by the same distance share a kind.

    Rare distances are counted as the nearest frequent distance.
    """
    back = np.zeros(len(trace), np.int64)
    for chain in chains:
        gone = (trace.offset + trace.length)[chain[:-1]] - trace.offset[chain[1:]]
        back[chain[1:]] = np.maximum(gone, 0)
    distances, counts = np.unique(back, return_counts=True)
    frequent = np.sort(distances[np.argsort(-counts, kind="stable")[: _BACKS + 1]])
    back = frequent[np.abs(frequent[None] - distances[:, None]).argmin(axis=1)][
        np.searchsorted(distances, back)
    ]
    pairs, of = np.unique(np.stack((streams.of, back)), axis=1, return_inverse=True)
    stream = pairs[0].astype(np.int64)
    grows = np.maximum(streams.length[stream] - pairs[1], 0)
    operations = "".join(streams.model.operations[n] for n in stream.tolist())
    return KindsOf(of.reshape(-1), stream, pairs[1], grows, operations)


def _chains(trace: LaidOut, most: int) -> list[NDArray[np.int64]] | None:
    """Return chains of I/Os that continue each other, or None if there are more than `most`."""
    chains: list[list[int]] = []
    flushes = np.flatnonzero(trace.operation == FLUSH)
    if len(flushes):
        chains.append(flushes.tolist())
    for operation in (READ, WRITE, TRIM):
        # For each open sweep: start and end of its last I/O, time of use, and chain.
        begins, ends, used = (np.zeros(_OPEN, np.int64) for _ in range(3))
        chain = np.full(_OPEN, -1, np.int64)
        for io in np.flatnonzero(trace.operation == operation).tolist():
            at = int(trace.offset[io])
            step = at - ends
            distance = np.abs(step)
            # Ties are resolved in favour of the most recently used sweep.
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
    return [np.array(chain_ios, np.int64) for chain_ios in chains]


# -- demand ----------------------------------------------------------------------------------------

# Demand over time is the I/O count per interval.
#
# Intervals end where I/Os would otherwise deviate most from their times. The weight of an I/O is
# its work (its bytes plus a constant) times the squared queue length that its burst would cause on
# a drive. Intervals are therefore short around the slowest I/Os.

_WORK_OF_IO = 16 << 10  # Bytes that an I/O counts in addition to its length.
# Fraction of the intervals reserved for idle times, each of which takes two intervals.
_OF_IDLE = 1 / 8
_RATE_BYTES_S = 1e9  # Rate at which the modelled drive empties its queue.
_WITHOUT_QUEUE = 0.02  # Weight of an I/O that meets no queue, relative to the longest queue.
_LATE_NS = 50e6  # Maximum deviation that counts, because no drive's queue is longer.
_SHAPES = np.array([0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.3, 2.0, 4.0, 10.0])
# Squared coefficients of variation of Weibull distributions with these shapes.
_VARIATIONS = np.array(
    [gamma(1 + 2 / shape) / gamma(1 + 1 / shape) ** 2 - 1 for shape in _SHAPES.tolist()]
)


def demand_of(trace: LaidOut, intervals_max: int) -> ModelDemand:
    """Return the intervals in a pass, where the first interval is the first I/O."""
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
    """Return the longest queue in each I/O's burst, relative to the longest queue of all bursts."""
    done_ns = np.cumsum(work) / _RATE_BYTES_S * 1e9
    # The work before an I/O minus the elapsed time is smallest where the queue was empty.
    idle_ns = np.minimum.accumulate(np.concatenate(([0.0], done_ns[:-1])) - time_ns)
    queue_ns = done_ns - time_ns - idle_ns
    begins = np.flatnonzero(np.diff(idle_ns, prepend=1.0))
    longest = np.maximum.reduceat(queue_ns, begins)
    queue: NDArray[np.float64] = np.repeat(longest, np.diff(begins, append=len(work)))
    queue /= queue.max()
    return queue


def _idle(time_ns: NDArray[np.float64], most: int) -> set[int]:
    """Return the I/Os before and after the longest idle times, at most `most` I/Os."""
    after = 1 + np.argsort(-np.diff(time_ns), kind="stable")[: most // 2]
    return {int(io) for io in np.concatenate((after - 1, after))}


def _ends(
    time_ns: NDArray[np.float64], weight: NDArray[np.float64], idle: set[int], intervals_max: int
) -> list[int]:
    """Return the I/Os that end intervals.

    These I/Os are the first and the last I/O, and the I/Os around `idle` times. The interval with
    the largest weighted deviation is then repeatedly split at the I/O with the largest deviation.
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
    """Return the Weibull shape of the times between I/Os, in hundredths."""
    gaps = np.diff(time_ns)
    if len(gaps) == 1:
        # More I/Os in this interval arrive together, because idle time is not divided.
        return round(100 * float(_SHAPES[0]))
    mean = gaps.mean()
    variation = float(gaps.var() / mean**2) if mean > 0 else 0.0
    # The variation decreases as the shape increases.
    at = np.abs(np.log(_VARIATIONS) - np.log(max(variation, _VARIATIONS[-1]))).argmin()
    return round(100 * float(_SHAPES[at]))


# -- mixes -----------------------------------------------------------------------------------------

# Size mixes. Sweeps whose I/Os have similar sizes share a mix, which limits the number of mixes.

# Numbers for each kind in a mix: stream, distance, I/O count, start count, and first position among
# other I/Os. A kind with several groups also has its last position and group count.
_OF_KIND, _OF_OTHER, _OF_OTHERS = 4, 1, 2
_OF_SURPRISE = 0.1  # Cost of a nat of entropy, in mean I/Os.


@dataclass(frozen=True)
class KindsOf:
    """Kind of each I/O, and the properties of each kind, stored as columns."""

    of: NDArray[np.int64]
    stream: NDArray[np.int64]
    back: NDArray[np.int64]  # Distance from the end of the previous I/O, in bytes.
    grows: NDArray[np.int64]  # Number of bytes by which the kind extends the sweep.
    operations: str  # Operations, one letter per kind.


@dataclass(frozen=True)
class _Mix:
    """A mix of sweeps for one operation, and the total I/O count of each kind."""

    sweeps: tuple[int, ...]
    operation: str
    count: NDArray[np.int64]
    begins: NDArray[np.int64]  # Number of I/Os of each kind that start a sweep.
    bytes: int

    @property
    def numbers(self) -> int:
        others = self.count - self.begins
        kinds, with_others, several = ((values > least).sum() for values, least in (
            (self.count, 0), (others, 0), (others, 1)
        ))  # fmt: skip
        return 1 + int(kinds * _OF_KIND + with_others * _OF_OTHER + several * _OF_OTHERS)

    @property
    def ios(self) -> int:
        return int(self.count.sum())

    @property
    def surprise(self) -> float:
        """Entropy of the randomly chosen streams times the I/O count, in nats."""
        used = self.count[self.count > 0].astype(float)
        return float((used * np.log(used.sum() / used)).sum())

    def with_other(self, other: _Mix) -> _Mix:
        sweeps = tuple(sorted(self.sweeps + other.sweeps))
        count, begins = self.count + other.count, self.begins + other.begins
        return _Mix(sweeps, self.operation, count, begins, self.bytes + other.bytes)


def mixes_of(
    sweeps: list[NDArray[np.int64]], kinds: KindsOf, numbers_max: int
) -> tuple[ModelMixes, list[int]]:
    """Return the mixes, and the mix of each sweep.

    Mixes with adjacent mean sizes are merged, beginning with the most similar, until the table has
    at most `numbers_max` numbers or each operation has a single mix.
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
    """Positions within a mix of those I/Os of a kind that do not start a sweep."""

    ios: int  # Number of I/Os that do not start a sweep.
    first: int  # Position of the first I/O.
    last: int  # Position of the last I/O.
    groups: int  # Number of groups of consecutive I/Os.

    @property
    def at(self) -> NDArray[np.float64]:
        """Positions in the model, computed as in `Spread::places` in `io_model/mixes.rs`."""
        group = np.arange(self.ios) * self.groups // max(self.ios, 1)
        distance = max(self.last - self.first - max(self.ios // self.groups - 1, 0), 0)
        positions: NDArray[np.float64] = self.first + distance * group / max(self.groups - 1, 1)
        return positions


def _places(mix: _Mix, sweeps: list[NDArray[np.int64]], kinds: KindsOf) -> list[_Place]:
    """Return each kind's positions in a mix.

    The I/Os of a kind either form as many groups as in the trace, or are all separate. The option
    that better preserves the sequence of kinds is used.
    """
    others = kinds.of[np.concatenate([sweeps[n][1:] for n in mix.sweeps])]
    used = np.flatnonzero(mix.count).tolist()
    rows_of = [np.flatnonzero(others == kind) for kind in used]

    def places(groups: list[int]) -> list[_Place]:
        ends = [(int(at[0]), int(at[-1])) if len(at) else (0, 0) for at in rows_of]
        return [
            _Place(len(at), *between, many)
            for at, between, many in zip(rows_of, ends, groups, strict=True)
        ]

    alone = places([max(len(at), 1) for at in rows_of])
    together = places([int((np.diff(at) > 1).sum()) + 1 for at in rows_of])
    of = np.searchsorted(used, others)
    return min(alone, together, key=lambda choice: _differently_followed(choice, of))


def _differently_followed(places: list[_Place], of: NDArray[np.int64]) -> int:
    """Return how many I/Os of a mix are followed by another I/O in the model than in the trace."""
    kinds = len(places)
    drawn = np.repeat(np.arange(kinds), [place.ios for place in places])
    drawn = drawn[np.argsort(np.concatenate([place.at for place in places]), kind="stable")]
    pairs = [
        np.bincount(kind_of[:-1] * kinds + kind_of[1:], minlength=kinds * kinds)
        for kind_of in (drawn, of)
    ]
    return int(np.abs(pairs[0] - pairs[1]).sum())


def _first(sweeps: list[NDArray[np.int64]], kinds: KindsOf) -> list[_Mix]:
    """Return the initial mixes, where sweeps of a single kind share a mix."""
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
    """Return a merge's cost per number saved.

    The cost is the number of bytes that move between mixes, plus a small part of the additional
    entropy.
    """
    if a.operation != b.operation:
        return inf
    both = a.with_other(b)
    moved = abs(a.bytes * b.ios - b.bytes * a.ios) / both.ios
    more_open = (both.surprise - a.surprise - b.surprise) * both.bytes / both.ios
    return (moved + _OF_SURPRISE * more_open) / (a.numbers + b.numbers - both.numbers)


# -- popularity ------------------------------------------------------------------------------------

# Page popularity in sweeps that skip pages.
#
# Sweeps over the same addresses mostly use the same pages, namely those that change most. The
# fraction of sweeps that use a page varies more than chance explains. The excess variation is
# modelled as a beta distribution, and the fraction for each page is its posterior mean (empirical
# Bayes). The model stores weights (the odds of these fractions) for groups with equal page counts.

WEIGHTS = 16
_PAGE_BYTES = 4096
_PAGES_MAX = 1 << 24  # Maximum number of pages in a range; larger ranges have no weights.
_SHARE_MIN = 0.001  # Minimum fraction of sweeps that use, or do not use, a page.
_ERRORS = 3  # Minimum excess of the variance over chance, in standard errors.
_UNIT = 1000  # Number of weight units in 1.


def weights_of(trace: LaidOut, sweeps: Sequence[NDArray[np.int64]]) -> tuple[int, ...]:
    """Return page weights for an operation's sweeps, or empty if all pages are used equally."""
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
    # Weight of the prior, in sweeps. At the minimum, pages are used always or never.
    total = max(mean * (1 - mean) / (variance * mean**2) - 1, 1e-3)
    shares = (mean * total + used[several]) / (total + over[several])
    middles = (np.arange(WEIGHTS) + 0.5) / WEIGHTS
    shares = np.clip(np.quantile(shares, middles), _SHARE_MIN, 1 - _SHARE_MIN)
    return tuple(np.maximum(np.rint(_UNIT * shares / (1 - shares)), 1).astype(int).tolist())


# -- pieces ----------------------------------------------------------------------------------------

# Pieces of a trace, which are the I/Os of each sweep, for a given model size.
#
# A piece describes the position of its I/Os in the pass with an error. The error is their distance
# from uniform progress through the pass and through the addresses of the piece. More pieces reduce
# the sum of these errors, weighted by bytes. The next piece is added where it reduces the error sum
# most. Data that a pass writes only once have a low weight, because repeated passes overwrite these
# data in order.

_UNIT_BYTES = 4096
_ONCE_WEIGHT = 0.05  # Weight of a byte that is written once per pass.
_READ_WEIGHT = 0.05  # Weight of a byte that is read, which changes no data.
_IO_WEIGHT = 0.05  # Weight of each I/O, in mean I/Os.
OF_ROW, _OF_OPEN_ROW = 6, 2  # Number counts per row and per open row.


@dataclass(frozen=True)
class Piece:
    """A sweep with its I/Os."""

    ios: NDArray[np.int64]
    left_out: int  # Number of I/Os that follow a gap in the sweep.

    @property
    def numbers(self) -> int:
        """Number of values in the piece's row of the model."""
        return OF_ROW + (_OF_OPEN_ROW if self.left_out else 0)


@dataclass
class Pieces:
    """Current pieces, with each piece's possible division."""

    trace: LaidOut
    weight: NDArray[np.float64] = field(init=False)
    again: NDArray[np.float64] = field(init=False)
    # Bytes written before each I/O, plus a small constant.
    clock: NDArray[np.float64] = field(init=False)
    _live: dict[int, Piece] = field(default_factory=dict)
    _divisions: list[tuple[float, int, tuple[Piece, Piece]]] = field(default_factory=list)
    _next: int = 0
    numbers: int = 0  # Count of the numbers that the pieces take in a model.

    def __post_init__(self) -> None:
        """Compute each I/O's weight and the clock of the pass."""
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
        """Current pieces of the model."""
        return list(self._live.values())

    @property
    def gain(self) -> float:
        """Error reduction by the best division."""
        return -self._divisions[0][0] if self._divisions else 0.0

    def add(self, piece: Piece) -> None:
        """Add a piece with its best division."""
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
        """Cut the piece before or after the I/O with the largest deviation."""
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
        """Return I/Os combined as a piece."""
        begin, end = self.trace.offset[ios], (self.trace.offset + self.trace.length)[ios]
        return Piece(ios, left_out=int((begin[1:] > end[:-1]).sum()))

    def _error(self, ios: NDArray[np.int64], off: NDArray[np.float64]) -> float:
        return float((off * self.weight[ios]).sum())

    def _off(self, ios: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return each I/O's deviation from uniform progress, in units of the clock.

        An address deviation counts as the time that the sweep takes to cover it.
        """
        rank, ends = np.arange(len(ios)), [0, max(len(ios) - 1, 1)]
        order, address = self.clock[ios], self.trace.offset[ios].astype(float)
        even = np.round(np.interp(rank, ends, [ios[0], ios[-1]])).astype(np.int64)
        off = np.abs(order - self.clock[even])
        if self.trace.operation[ios[0]] != FLUSH:
            rate = (order[-1] - order[0] + 1) / max(address[-1] - address[0], 1.0)
            off += rate * np.abs(address - np.interp(rank, ends, [address[0], address[-1]]))
        distance: NDArray[np.float64] = off
        return distance


def written_again(trace: LaidOut) -> NDArray[np.float64]:
    """Return the fraction of each I/O's bytes that are written more than once during the pass."""
    begin, end = trace.offset // _UNIT_BYTES, -(-(trace.offset + trace.length) // _UNIT_BYTES)
    writes = trace.operation == WRITE
    size = int(end.max()) + 1
    change = np.bincount(begin[writes], minlength=size) - np.bincount(end[writes], minlength=size)
    several = np.concatenate(([0], np.cumsum(np.cumsum(change) > 1)))
    share: NDArray[np.float64] = (several[end] - several[begin]) / np.maximum(end - begin, 1)
    return share


def pieces_of(trace: LaidOut, chains: list[NDArray[np.int64]], numbers: int) -> list[Piece] | None:
    """Return pieces of the chains whose rows require at most `numbers` values.

    The result is `None` if undivided chains already require more values.
    """
    pieces = Pieces(trace)
    for chain in chains:
        pieces.add(pieces.sweep(chain))
    if pieces.numbers > numbers:
        return None
    while pieces.numbers + OF_ROW + 2 * _OF_OPEN_ROW <= numbers and pieces.gain > 0:
        pieces.divide()
    return pieces.live
