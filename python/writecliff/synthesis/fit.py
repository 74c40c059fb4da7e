"""Fits an `IoModel` to a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from writecliff import _native
from writecliff.native_errors import as_user_errors
from writecliff.synthesis.laid_out import FLUSH
from writecliff.synthesis.places import places_of
from writecliff.synthesis.streams import streams_of
from writecliff.synthesis.sweeps import swept_model
from writecliff.workload.io_model import (
    IoModel,
    ModelGaps,
    ModelPeriods,
    ModelStates,
    ModelTransitions,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from writecliff.synthesis.laid_out import LaidOut


def fit(trace: LaidOut, *, seed: int = 1) -> IoModel:
    """The model of a trace: sweeps if few are enough, else a chain. Deterministic."""
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

# When the I/Os of a trace come, and which after which: the chain of states of an `IoModel`.

Arrivals = tuple[ModelGaps, ModelStates, ModelTransitions, ModelPeriods]

# Bounds of the classes of gaps, in ns: fine, and coarse for short traces.
_FINE = (2e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 1e8, 1e9)
_COARSE = (1e4, 1e5, 1e6, 1e7)
_VALUES = 8  # of a class of gaps
_PERIODS_MAX, _IOS_OF_PERIOD = 512, 100  # of equal length, and as many of equal I/Os
_PHASES_MAX, _IOS_OF_PHASE = 12, 1000
_TRANSITIONS_MAX, _TRANSITIONS_MIN, _IOS_OF_TRANSITION = 8000, 200, 5
_BURST_MIN_NS, _BURST_MAX_NS = 1e5, 1e8  # bounds of the gap that ends a burst
_POSITIONS = 8  # classes of positions in a burst
_KINDS = 8  # beginning a run, and distances from its end when continuing one


def arrivals_of(
    trace: LaidOut,
    stream: NDArray[np.int32],
    continues: NDArray[np.bool_],
    back: NDArray[np.int64],
) -> Arrivals:
    """Fit the chain: as fine as there are I/Os enough for. `back`: by how much an I/O goes back
    before the end of the run that it continues."""
    kinds, kind = _kinds(continues, back)
    every_gap = np.diff(trace.time_ns, prepend=0)
    number, window_ns = _period_of(trace.time_ns)
    # Of longer gaps the periods know.
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
    """How far back I/Os of each kind go, and the kind of each: 0 begins a run, the others continue
    one, with the most frequent distances; others get the nearest of them."""
    distances, counts = np.unique(back[continues], return_counts=True)
    kept = np.sort(distances[np.argsort(-counts, kind="stable")[: _KINDS - 1]])
    if not len(kept):
        return np.zeros(_KINDS, np.int64), np.zeros(len(back), np.int64)
    nearest = np.abs(kept[None] - distances[:, None]).argmin(axis=1)
    kind = np.zeros(len(back), np.int64)
    kind[continues] = 1 + nearest[np.searchsorted(distances, back[continues])]
    kinds = np.zeros(_KINDS, np.int64)
    kinds[1 : len(kept) + 1] = kept
    return kinds, kind


def _plain(values: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(values.reshape(-1).tolist())


def _period_of(time_ns: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """The number of each I/O's period, and the longest gap that is told apart. Periods end where
    one of equal length does, for quiet times, and where one of equal I/Os does, for bursts."""
    count = min(max(len(time_ns) // _IOS_OF_PERIOD, 1), _PERIODS_MAX)
    length = time_ns[-1] / count + 1
    by_time = (time_ns / length).astype(np.int64)
    by_ios = np.arange(len(time_ns)) * count // len(time_ns)
    ends = (np.diff(by_time, prepend=0) > 0) | (np.diff(by_ios, prepend=0) > 0)
    return np.cumsum(ends), int(length)


def _phases(
    number: NDArray[np.int64], stream: NDArray[np.int32], gap: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Periods with much the same mix and rate are of one phase: k-means, begun along the axis of
    the largest variance."""
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
    """Classes of the position in a burst of I/Os without a longer gap: 0, 1, 2-3, 4-7, ..."""
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
    for one in used:
        inside = np.sort(gap[classes == one])
        parts = np.array_split(inside, _VALUES)
        if len(inside) < _VALUES:
            parts = [inside[[n * len(inside) // _VALUES]] for n in range(_VALUES)]
        values += [round(float(part.mean())) for part in parts]
    return tuple(values)


def _idle_ns(gap: NDArray[np.int64], bounds: tuple[float, ...]) -> int:
    """The bound of a class from which on gaps are idle time rather than part of a burst."""
    above = [bound for bound in bounds if bound >= max(_BURST_MIN_NS, float(gap.mean()))]
    return int(min(above, default=bounds[-1]))
