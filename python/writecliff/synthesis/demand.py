"""Demand over time: how many I/Os arrive in which time, in intervals.

Intervals end where I/Os would otherwise be furthest off their times. I/Os count by their work,
which is their bytes and some more for each, and by the square of how long the queue of a drive
would get in the burst that they are in. So intervals are short where the slowest I/Os are.
"""

from __future__ import annotations

import heapq
from itertools import pairwise
from math import gamma
from typing import TYPE_CHECKING

import numpy as np

from writecliff.workload.io_model import ModelDemand

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from writecliff.synthesis.laid_out import LaidOut

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
    one after another."""
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
