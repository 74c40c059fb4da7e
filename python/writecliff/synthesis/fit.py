"""Fit of an `IoModel` to a trace."""

from __future__ import annotations

from dataclasses import dataclass
from math import gamma
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff import _native
from writecliff.native_errors import as_user_errors
from writecliff.synthesis.laid_out import FLUSH, READ, Extents, union
from writecliff.synthesis.streams import streams_of
from writecliff.synthesis.sweeps import swept_model
from writecliff.workload.io_model import (
    IoModel,
    ModelGaps,
    ModelPeriods,
    ModelPlaces,
    ModelStates,
    ModelTransitions,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from writecliff.synthesis.laid_out import LaidOut
    from writecliff.synthesis.streams import StreamsOf


def fit(trace: LaidOut, *, seed: int = 1) -> IoModel:
    """Return the trace model, with sweeps if few suffice, otherwise a chain. Deterministic."""
    swept = swept_model(trace, seed=seed)
    return swept if swept is not None else _chained(trace, seed=seed)


def _chained(trace: LaidOut, *, seed: int) -> IoModel:
    streams = streams_of(trace)
    with as_user_errors():
        runs = _native.trace_runs(trace.columns())
    run = runs["run"]
    continues = (run != np.arange(len(run))) & (trace.operation != FLUSH)
    gaps, states, transitions, periods = arrivals_of(trace, streams.of, continues, runs["back"])
    places, range_bytes = places_of(trace, streams, run, runs["back"])
    return IoModel(
        seed=seed,
        range_bytes=max(range_bytes, *streams.model.lengths),
        streams=streams.model,
        gaps=gaps,
        states=states,
        transitions=transitions,
        periods=periods,
        places=places,
        read_ranks=tuple(runs["read_ranks"]),
        write_ranks=tuple(runs["write_ranks"]),
    )


# -- arrivals --------------------------------------------------------------------------------------

# Arrival times and order of a trace's I/Os, which form the state chain of an `IoModel`.

Arrivals = tuple[ModelGaps, ModelStates, ModelTransitions, ModelPeriods]

# Bounds of gap classes in ns: fine classes, and coarse classes for short traces.
_FINE = (2e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 1e8, 1e9)
_COARSE = (1e4, 1e5, 1e6, 1e7)
_VALUES = 8  # Stored values per gap class.
# Maximum number of periods with equal lengths, and of periods with equal I/O counts.
_PERIODS_MAX, _IOS_OF_PERIOD = 512, 100
_PHASES_MAX, _IOS_OF_PHASE = 12, 1000
_TRANSITIONS_MAX, _TRANSITIONS_MIN, _IOS_OF_TRANSITION = 8000, 200, 5
_BURST_MIN_NS, _BURST_MAX_NS = 1e5, 1e8  # Bounds on the gap that ends a burst, in ns.
_POSITIONS = 8  # Number of classes for positions in a burst.
_KINDS = 8  # Number of kinds: the start of a run, and distances from the end of a continued run.


def arrivals_of(
    trace: LaidOut,
    stream: NDArray[np.int32],
    continues: NDArray[np.bool_],
    back: NDArray[np.int64],
) -> Arrivals:
    """Fit the state chain as finely as the I/O count permits.

    Args:
        trace: Trace to fit.
        stream: Stream number of each I/O.
        continues: `True` for I/Os that continue a run.
        back: Distance in bytes from the start of an I/O to the end of the run that it continues.
    """
    kinds, kind = _kinds(continues, back)
    every_gap = np.diff(trace.time_ns, prepend=0)
    number, window_ns = _period_of(trace.time_ns)
    # The periods describe longer gaps.
    gap = np.minimum(every_gap, window_ns)
    phase_of_period = _phases(number, stream, gap)
    phase = phase_of_period[number]
    most = min(max(len(gap) // _IOS_OF_TRANSITION, _TRANSITIONS_MIN), _TRANSITIONS_MAX)
    burst_ns = float(np.clip(2 * gap.mean(), _BURST_MIN_NS, _BURST_MAX_NS))
    position = _positions(gap, burst_ns)
    for bounds, place, part in (
        (_FINE, position, phase), (_FINE, 0 * position, phase), (_COARSE, 0 * position, phase),
        (_FINE, position, 0 * phase), (_FINE, 0 * position, 0 * phase),
        (_COARSE, 0 * position, 0 * phase),
    ):  # fmt: skip
        classes = np.searchsorted(np.array(bounds), gap, side="right")
        key = ((stream.astype(np.int64) * _KINDS + kind) * 64 + classes) * _POSITIONS + place
        states, state = np.unique(key, return_inverse=True)
        state = state.reshape(-1)
        before = np.concatenate((state[:1], state[:-1]))
        moves, counts = np.unique(np.stack((part, before, state)), axis=1, return_counts=True)
        if len(counts) <= most:
            break
    used, renumbered = np.unique(states // _POSITIONS % 64, return_inverse=True)
    ios = np.bincount(number)
    last = np.cumsum(ios) - 1
    part_of_period = part[last]
    return (
        ModelGaps(_values(gap, classes, used), _idle_ns(gap, bounds)),
        ModelStates(
            _plain(states // _POSITIONS // 64 // _KINDS),
            _plain((states // _POSITIONS // 64 % _KINDS > 0).astype(np.int64)),
            _plain(kinds[states // _POSITIONS // 64 % _KINDS]),
            _plain(renumbered),
        ),
        ModelTransitions(_plain(moves[0]), _plain(moves[1]), _plain(moves[2]), _plain(counts)),
        ModelPeriods(
            _plain(part_of_period),
            _plain(ios),
            _plain(np.diff(trace.time_ns[last], prepend=0)),
            _plain(np.maximum.reduceat(every_gap, np.concatenate(([0], last[:-1] + 1)))),
        ),
    )


def _kinds(
    continues: NDArray[np.bool_], back: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Classify I/Os by their distance from the end of the run they continue.

    Kind 0 starts a run. All other kinds continue a run at one of the most frequent distances. Rare
    distances are counted as the nearest frequent distance.

    Returns:
        The distance of each kind in bytes, and the kind of each I/O.
    """
    distances, counts = np.unique(back[continues], return_counts=True)
    frequent = np.sort(distances[np.argsort(-counts, kind="stable")[: _KINDS - 1]])
    if not len(frequent):
        return np.zeros(_KINDS, np.int64), np.zeros(len(back), np.int64)
    nearest = np.abs(frequent[None] - distances[:, None]).argmin(axis=1)
    kind = np.zeros(len(back), np.int64)
    kind[continues] = 1 + nearest[np.searchsorted(distances, back[continues])]
    kinds = np.zeros(_KINDS, np.int64)
    kinds[1 : len(frequent) + 1] = frequent
    return kinds, kind


def _plain(values: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(values.reshape(-1).tolist())


def _period_of(time_ns: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Return each I/O's period, and the longest modelled gap in ns.

    Periods end at the boundaries of equal time spans, which resolve quiet times, and at the
    boundaries of equal I/O counts, which resolve bursts.
    """
    count = min(max(len(time_ns) // _IOS_OF_PERIOD, 1), _PERIODS_MAX)
    length = time_ns[-1] / count + 1
    by_time = (time_ns / length).astype(np.int64)
    by_ios = np.arange(len(time_ns)) * count // len(time_ns)
    ends = (np.diff(by_time, prepend=0) > 0) | (np.diff(by_ios, prepend=0) > 0)
    return np.cumsum(ends), int(length)


def _phases(
    number: NDArray[np.int64], stream: NDArray[np.int32], gap: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the phase of each period. Periods with similar mixes and rates share a phase.

    Periods are clustered by k-means, initialised along the axis of largest variance.
    """
    periods, streams = int(number[-1]) + 1, int(stream.max()) + 1
    count = min(max(len(number) // _IOS_OF_PHASE, 1), _PHASES_MAX, periods)
    table = np.bincount(number * streams + stream, minlength=periods * streams)
    ios = np.bincount(number)
    length = np.maximum(np.bincount(number, weights=gap), 1.0)
    rate = np.log10(ios / length)
    features = np.column_stack((table.reshape(periods, streams) / ios[:, None], 0.5 * rate))
    middle = features - features.mean(axis=0)
    axis = np.linalg.svd(middle, full_matrices=False)[2][0]
    along = np.argsort(middle @ axis, kind="stable")
    phase = np.empty(periods, np.int64)
    phase[along] = np.arange(periods) * count // periods
    for _ in range(20):
        centres = np.stack(
            [
                np.average(features[phase == n], axis=0, weights=ios[phase == n])
                if (phase == n).any()
                else features[n]
                for n in range(count)
            ]
        )
        distance = ((features[:, None, :] - centres[None]) ** 2).sum(axis=2)
        nearest = distance.argmin(axis=1)
        if (nearest == phase).all():
            break
        phase = nearest
    return phase


def _positions(gap: NDArray[np.int64], burst_ns: float) -> NDArray[np.int64]:
    """Return classes of the position in a burst (0, 1, 2-3, 4-7, ...); longer gaps end bursts."""
    begins = gap >= burst_ns
    begins[0] = True
    first = np.maximum.accumulate(np.where(begins, np.arange(len(gap)), 0))
    since = np.arange(len(gap)) - first
    classes = np.ceil(np.log2(since + 1)).astype(np.int64)
    return np.minimum(classes, _POSITIONS - 1)


def _values(
    gap: NDArray[np.int64], classes: NDArray[np.int64], used: NDArray[np.int64]
) -> tuple[int, ...]:
    values: list[int] = []
    for class_ in used:
        inside = np.sort(gap[classes == class_])
        parts = np.array_split(inside, _VALUES)
        if len(inside) < _VALUES:
            parts = [inside[[n * len(inside) // _VALUES]] for n in range(_VALUES)]
        values += [round(float(part.mean())) for part in parts]
    return tuple(values)


def _idle_ns(gap: NDArray[np.int64], bounds: tuple[float, ...]) -> int:
    """Return the class bound above which gaps are idle time instead of part of a burst."""
    above = [bound for bound in bounds if bound >= max(_BURST_MIN_NS, float(gap.mean()))]
    return int(min(above, default=bounds[-1]))


# -- places ----------------------------------------------------------------------------------------

# Start addresses of a trace's runs, and the frequency and times of their use, which form the places
# of an `IoModel`.
#
# The addresses in use are joined into one range. The range is divided into pieces of equal traffic,
# so that hot areas have small pieces. Places in the same piece that are used similarly form a group
# and are adjacent. Places in data that are both read and written, where reads and writes have the
# same addresses, come first. Places inside the data of an individually stored place remain inside
# that data, and all other places remain outside. The model therefore preserves the position of the
# traffic in the range, and the frequency and times of use, but does not preserve individual places.
# The few places that account for most of the bytes are stored individually.

PASS = 1 << 24  # Time units per pass.
UNIT_BYTES = 4096
_CELLS_MAX = 1 << 24  # Maximum number of range cells where traffic is counted.
_GROUPS_MIN, _GROUPS_MAX, _STARTS_OF_GROUP = 200, 4000, 6
# Squared coefficients of variation of the times between uses; values in between are random.
_CLUSTERED, _EVEN = 2.5, 0.3
_SHAPED_USES = 4  # Minimum number of uses for a fit of the times between the uses of a place.
# Shapes of Weibull distributions with these squared coefficients of variation.
_SHAPES = np.array([0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0])
_VARIATIONS = np.array(
    [gamma(1 + 2 / shape) / gamma(1 + 1 / shape) ** 2 - 1 for shape in _SHAPES.tolist()]
)
_LIFE_MIN = 2e-5
# Thresholds for individual storage: bytes, and fraction of the total.
_ALONE_BYTES, _ALONE_SHARE = 64 << 10, 1e-3
_RUNS_OF_PIECE = 8  # Minimum number of runs that fit into a piece.
_HOT_USES = 8  # Minimum mean use count of a place that is followed by a free unit.


@dataclass(frozen=True)
class _Fineness:
    """Resolution for grouping locations."""

    pieces: int  # Number of pieces that the range is divided into.
    begins: int  # Number of classes for the time of first use.
    life: float  # Octaves of the time from first to last use.
    uses: float  # Octaves of the use count.
    length: float  # Octaves of the run length.


# Write amplification depends on which data are written together and overwritten together, so times
# of use are resolved as finely as positions in the range.
_LADDER = (
    _Fineness(256, 32, 0.5, 1, 1),
    _Fineness(128, 32, 0.5, 1, 1),
    _Fineness(64, 32, 0.5, 1, 1),
    _Fineness(32, 32, 0.5, 1, 1),
    _Fineness(32, 16, 1, 1, 1),
    _Fineness(32, 8, 1, 1, 1),
    _Fineness(16, 8, 2, 1, 1),
    _Fineness(8, 8, 2, 1, 2),
    _Fineness(4, 4, 4, 2, 2),
    _Fineness(4, 2, 8, 2, 4),
)


@dataclass(frozen=True)
class _Objects:
    """Distinct start locations of a stream's runs, stored as columns."""

    stream: NDArray[np.int64]
    offset: NDArray[np.int64]  # Offset in the range of addresses in use.
    uses: NDArray[np.int64]
    run_bytes: NDArray[np.float64]  # Mean length of the place's runs.
    extent: NDArray[np.int64]  # Length of the place's longest run.
    begin: NDArray[np.float64]  # First use, as a fraction of the stream's starts.
    life: NDArray[np.float64]  # Time from the first to the last use.
    squares: NDArray[np.float64]  # Sum of squared times between uses, relative to their mean.
    alone: NDArray[np.bool_]  # True if the place is stored individually.
    # True if the place is not stored individually and is both read and written.
    shared: NDArray[np.bool_]
    # True if the place is not stored individually and lies inside an individually stored place's
    # data.
    covered: NDArray[np.bool_]


def places_of(
    trace: LaidOut, streams: StreamsOf, run: NDArray[np.int64], back: NDArray[np.int64]
) -> tuple[ModelPlaces, int]:
    """Fit the locations, and return them with the bytes that they occupy in the range.

    `run` and `back` are computed by `_native.trace_runs`.
    """
    every = np.flatnonzero(trace.operation != FLUSH)
    end = trace.offset + trace.length
    touched = union(trace.offset[every], end[every], UNIT_BYTES)
    offset = _together(touched, trace.offset)
    starts = int(((run == np.arange(len(run))) & (trace.operation != FLUSH)).sum())
    most = min(max(starts // _STARTS_OF_GROUP, _GROUPS_MIN), _GROUPS_MAX)
    objects = _objects(trace, streams, run, trace.length - back, offset, most // 2)
    traffic = _traffic(offset[every], trace.length[every], touched.bytes)
    pieces_max = _pieces_max(objects, touched.bytes)
    for fineness in _LADDER:
        bounds = _pieces(*traffic, touched.bytes, min(fineness.pieces, pieces_max))
        group, count = _groups(objects, bounds, fineness)
        if count <= most:
            break
    return _placed(objects, group, bounds, streams, touched.bytes), touched.bytes


def _together(touched: Extents, address: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the addresses after the extents are moved together."""
    lengths = touched.end - touched.begin
    before = np.cumsum(lengths) - lengths
    at = np.maximum(np.searchsorted(touched.begin, address, side="right") - 1, 0)
    addresses: NDArray[np.int64] = before[at] + address - touched.begin[at]
    return addresses


def _objects(
    trace: LaidOut,
    streams: StreamsOf,
    run: NDArray[np.int64],
    grows: NDArray[np.int64],
    offset: NDArray[np.int64],
    alone_max: int,
) -> _Objects:
    """Return the locations in a trace.

    `grows` holds the number of bytes by which each I/O extends its run.
    """
    rows = np.arange(len(run))
    starts = rows[(run == rows) & (trace.operation != FLUSH)]
    run_bytes = np.bincount(run, weights=grows, minlength=len(run))[starts]
    stream = streams.of[starts].astype(np.int64)
    # Rank of each start among the starts of its stream, from 0 to 1.
    order = np.argsort(stream, kind="stable")
    counts = np.bincount(stream)
    rank = np.empty(len(starts))
    rank[order] = np.arange(len(starts)) - np.repeat(np.cumsum(counts) - counts, counts)
    rank = rank / counts[stream]
    # Each long run has a separate place. The runs with the most bytes come first.
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
        squares=_squares(which, rank, uses, last - first),
        alone=alone,
        shared=_shared(distinct[1], extent, reads, ~alone),
        covered=~alone & _taken(distinct[1], extent, alone).has(distinct[1] + extent // 2),
    )


def _much(traffic: NDArray[np.float64], most: int) -> NDArray[np.bool_]:
    """Select the locations that receive a large fraction of the traffic."""
    order = np.argsort(-traffic, kind="stable")[:most]
    selected = np.zeros(len(traffic), bool)
    selected[order] = traffic[order] >= _ALONE_SHARE * traffic.sum()
    return selected


def _taken(
    offset: NDArray[np.int64], extent: NDArray[np.int64], which: NDArray[np.bool_]
) -> Extents:
    return union(offset[which], (offset + extent)[which], UNIT_BYTES)


def _shared(
    offset: NDArray[np.int64],
    extent: NDArray[np.int64],
    reads: NDArray[np.bool_],
    among: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Select the locations in `among` whose middle is also used by the other kind of operation."""
    middle = offset + extent // 2
    shared = np.zeros(len(offset), bool)
    for kind in (reads, ~reads):
        shared |= kind & among & _taken(offset, extent, ~kind & among).has(middle)
    return shared


def _squares(
    which: NDArray[np.int64],
    rank: NDArray[np.float64],
    uses: NDArray[np.int64],
    life: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return each location's sum of squared times between uses, relative to the mean."""
    order = np.lexsort((rank, which))
    step = np.diff(rank[order])
    same = which[order][1:] == which[order][:-1]
    squares = np.bincount(which[order][1:][same], weights=step[same] ** 2, minlength=len(uses))
    mean = np.where(life > 0, life / np.maximum(uses - 1, 1), 1.0)
    normalised: NDArray[np.float64] = np.where(life > 0, squares / mean**2, 0.0)
    return normalised


def _variation(squares: NDArray[np.float64], gaps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared coefficient of variation of the times between uses from their sum.

    The mean of the squares of m times is x = m (1 + c) / (m + c).
    """
    x = squares / np.maximum(gaps, 1)
    variation: NDArray[np.float64] = gaps * np.maximum(x - 1, 0) / np.maximum(gaps - x, 1e-3)
    return variation


def _shape(variation: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the tabulated Weibull shape whose variation is nearest."""
    wanted = np.log(np.maximum(variation, 1e-3))
    nearest = np.abs(np.log(_VARIATIONS)[None] - wanted[:, None]).argmin(axis=1)
    shape: NDArray[np.float64] = _SHAPES[nearest]
    return shape


def _traffic(
    offset: NDArray[np.int64], length: NDArray[np.int64], end: int
) -> tuple[NDArray[np.int64], int]:
    """Return the cumulative I/O count up to each cell in the range, and the cell size in bytes."""
    cell = UNIT_BYTES
    while end // cell > _CELLS_MAX:
        cell *= 2
    cells = -(-end // cell)
    change = np.bincount(offset // cell, minlength=cells + 1)[: cells + 1].astype(np.int64)
    behind = np.minimum((offset + length - 1) // cell + 1, cells)
    change -= np.bincount(behind, minlength=cells + 1)[: cells + 1]
    uses = np.cumsum(change)[:-1]
    total: NDArray[np.int64] = np.cumsum(uses)
    return total, cell


def _pieces_max(of: _Objects, end: int) -> int:
    """Return the number of pieces that have room for several typical runs."""
    among = ~of.alone
    if not among.any():
        return 1
    typical = np.average(of.extent[among], weights=(of.uses * of.run_bytes)[among])
    return max(1, int(end / (_RUNS_OF_PIECE * max(float(typical), 1.0))))


def _pieces(upto: NDArray[np.int64], cell: int, end: int, count: int) -> NDArray[np.int64]:
    """Return the starts of pieces with equal traffic, and the end of the last piece."""
    wanted = upto[-1] * np.arange(1, count) / count
    cuts = np.unique(np.searchsorted(upto, wanted) + 1) * cell
    bounds: NDArray[np.int64] = np.concatenate(([0], cuts[cuts < end], [end]))
    return bounds


def _groups(
    of: _Objects, bounds: NDArray[np.int64], fine: _Fineness
) -> tuple[NDArray[np.int64], int]:
    """Return each location's group, and the number of groups."""
    octave = np.round(np.log2(np.maximum(of.life, _LIFE_MIN)) / fine.life)
    key = np.stack(
        (
            of.stream,
            np.searchsorted(bounds, of.offset, side="right"),
            (of.begin * fine.begins).astype(np.int64),
            np.where(of.uses > 1, octave, 0).astype(np.int64),
            np.round(np.log2(of.uses) / fine.uses).astype(np.int64),
            np.round(np.log2(of.run_bytes) / fine.length).astype(np.int64),
            _regular(of),
            (of.offset % UNIT_BYTES != 0).astype(np.int64),
            of.shared.astype(np.int64),
            of.covered.astype(np.int64),
            np.where(of.alone, np.arange(len(of.uses)) + 1, 0),
        )
    )
    distinct, group = np.unique(key, axis=1, return_inverse=True)
    return group.reshape(-1), distinct.shape[1]


def _regular(of: _Objects) -> NDArray[np.int64]:
    """Return how regularly each location is used: 0 clustered, 1 random, 2 even."""
    gaps = (of.uses - 1).astype(float)
    variation = _variation(of.squares, gaps)
    regularity = np.where(variation > _CLUSTERED, 0, np.where(variation < _EVEN, 2, 1))
    return np.where(of.uses >= _SHAPED_USES, regularity, 1)


def _placed(
    of: _Objects,
    group: NDArray[np.int64],
    bounds: NDArray[np.int64],
    streams: StreamsOf,
    end: int,
) -> ModelPlaces:
    """Lay out the groups, with the most frequently used locations first in each piece."""
    count = np.bincount(group)
    uses = np.bincount(group, weights=of.uses).astype(np.int64)

    def mean(values: NDArray[Any]) -> NDArray[np.float64]:
        means: NDArray[np.float64] = np.bincount(group, weights=values) / count
        return means

    def least(values: NDArray[np.float64]) -> NDArray[np.float64]:
        minimum = np.full(len(count), np.inf)
        np.minimum.at(minimum, group, values)
        return minimum

    first = np.unique(group, return_index=True)[1]
    stream = of.stream[first]
    reads = streams.operation[stream] == READ
    piece = np.searchsorted(bounds, of.offset[first], side="right") - 1
    begin, latest = least(of.begin), -least(-of.begin)
    runs = np.bincount(group, weights=of.run_bytes * of.uses) / uses
    extent = -least(-of.extent.astype(float)).astype(np.int64)
    gaps = np.where(of.uses >= _SHAPED_USES, of.uses - 1.0, 0.0)
    several = np.bincount(group, weights=gaps > 0)
    all_gaps = np.bincount(group, weights=gaps)
    squares = np.bincount(group, weights=np.where(gaps > 0, of.squares, 0.0))
    # Mean number of gaps per place, which corrects the bias of small samples.
    each = all_gaps / np.maximum(several, 1)
    variation = _variation(squares / np.maximum(several, 1), each)
    shape = np.where(several > 0, _shape(variation), 1.0)
    life = mean(of.life)
    alone, shared = of.alone[first], of.shared[first]
    odd = of.offset[first] % UNIT_BYTES
    hot = np.where(uses >= _HOT_USES * count, UNIT_BYTES, 0)
    slots = -(-(extent + odd) // UNIT_BYTES) * UNIT_BYTES + hot
    areas = _areas(bounds, _taken(of.offset, of.extent, of.alone), end)
    area = piece * 2 + of.covered[first]
    other_begins = _other_begins(len(bounds) * 2, area, slots * count, reads, shared & ~alone)
    cursors: dict[tuple[int, int], int] = {}
    rows = []
    for n in np.argsort(-uses / count, kind="stable"):
        key = int(area[n]), (1 + int(reads[n])) * int(shared[n])
        if alone[n]:
            address = min(int(of.offset[first[n]] - odd[n]), max(end - int(extent[n] + odd[n]), 0))
            parts = [(address, 0, 1)]
        else:
            at = cursors.get(key, 0 if shared[n] else int(other_begins[area[n]]))
            inside = areas.get(key[0]) or [(int(bounds[piece[n]]), int(bounds[piece[n] + 1]))]
            parts, cursors[key] = _slots(int(count[n]), int(slots[n]), at, inside, end)
        left_count, left_uses = int(count[n]), int(uses[n])
        for address, stride, many in parts:
            part_uses = left_uses * many // left_count
            left_count, left_uses = left_count - many, left_uses - part_uses
            rows.append((
                int(stream[n]), round(begin[n] * PASS), round((latest[n] - begin[n]) * PASS),
                round(life[n] * PASS), round(100 * shape[n]), many, part_uses,
                max(512, round(runs[n] / 512) * 512), address + int(odd[n]), stride,
            ))  # fmt: skip
    # A stream that only continues runs still needs a place for times when no run is open.
    numbers = np.arange(len(streams.length))
    for n in numbers[(streams.operation != FLUSH) & ~np.isin(numbers, stream)]:
        rows.append((int(n), 0, PASS, 0, 100, 1, 1, int(streams.length[n]), 0, 0))
    columns = zip(*rows, strict=True)
    return ModelPlaces(*(tuple(column) for column in columns))


def _areas(bounds: NDArray[np.int64], taken: Extents, end: int) -> dict[int, list[tuple[int, int]]]:
    """Return each piece's extents, by area.

    Area 2 n + 1 is the part of piece n with individually stored locations, and area 2 n is the
    remainder of the piece.
    """
    cuts = np.unique(np.concatenate((bounds, np.minimum(taken.begin, end), taken.end)))
    cuts = cuts[cuts <= end]
    begins, ends = cuts[:-1], cuts[1:]
    number = np.searchsorted(bounds, begins, side="right") - 1
    extents: dict[int, list[tuple[int, int]]] = {}
    keys = number * 2 + taken.has(begins)
    for key, begin, end_ in zip(keys.tolist(), begins.tolist(), ends.tolist(), strict=True):
        extents.setdefault(key, []).append((begin, end_))
    return extents


def _other_begins(
    count: int,
    area: NDArray[np.int64],
    taken: NDArray[np.int64],
    reads: NDArray[np.bool_],
    shared: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Return the number of bytes at the start of each area that are both read and written."""
    each = [
        np.bincount(area[of], weights=taken[of], minlength=count).astype(np.int64)
        for of in (shared & reads, shared & ~reads)
    ]
    sizes: NDArray[np.int64] = np.maximum(*each)
    return sizes


def _slots(
    count: int, slot: int, at: int, area: list[tuple[int, int]], end: int
) -> tuple[list[tuple[int, int, int]], int]:
    """Position `count` slots of `slot` bytes in an area where `at` bytes are already in use.

    Slots that do not fit wrap around to the start of the area.

    Returns:
        Address, stride and slot count of each part, and the number of bytes in use afterwards.
    """
    size = sum(last - first for first, last in area)
    if slot > max(last - first for first, last in area):
        # The runs extend beyond the area. The runs' start addresses are spread over the area.
        room = max(end - slot, 0)
        begin, behind = area[0][0], area[-1][1]
        address = min(begin, room)
        stride = min(behind - begin, room - address) // count // UNIT_BYTES * UNIT_BYTES
        return [(address, stride, count)], at
    parts = []
    while count:
        at %= size
        passed = 0
        for first, last in area:
            begin = first + max(at - passed, 0)
            passed += last - first
            fits = min((last - begin) // slot, count)
            if fits >= 1:
                parts.append((begin, slot, fits))
                count -= fits
                at = passed - (last - begin - fits * slot)
            if not count:
                break
        else:
            at = 0
    return parts, at
