"""Demand over time: ends of intervals."""

from __future__ import annotations

import numpy as np

from writecliff.synthesis.laid_out import WRITE, LaidOut
from writecliff.synthesis.sweeps import demand_of

PAGE = 4096


def trace_of(time_ns: list[float], pages: list[int]) -> LaidOut:
    ios = len(time_ns)
    length = np.array(pages, np.int64) * PAGE
    return LaidOut(
        time_ns=np.array(time_ns, np.int64),
        operation=np.full(ios, WRITE, np.uint8),
        offset=np.cumsum(length) - length,
        length=length,
        range_bytes=int(length.sum()),
        span_bytes=int(length.sum()),
        volumes=1,
        notes=(),
    )


def ends(trace: LaidOut, intervals: int) -> set[int]:
    """Return the numbers of the I/Os that end an interval."""
    demand = demand_of(trace, intervals)
    assert sum(demand.ios) == len(trace)
    assert sum(demand.length_ns) == trace.time_ns[-1]
    return set((np.cumsum(demand.ios) - 1).tolist())


def test_the_longest_pauses_are_intervals() -> None:
    """Return 2000 I/Os at random times, with a one-second pause before the 700th."""
    draw = np.random.default_rng(1)
    gaps = draw.exponential(1e5, 2000)
    gaps[0], gaps[700] = 0, 1e9
    interval_ends = ends(trace_of(np.cumsum(gaps).tolist(), [1] * 2000), 40)
    assert {699, 700} <= interval_ends
    assert len(interval_ends) <= 40


def test_intervals_are_where_the_queue_is_longest() -> None:
    """Check two bursts of four steps each; the I/Os of one burst are a hundred times as large."""
    steps = np.repeat([0.0, 2e5, 3e5, 6e5], 10)
    times = np.concatenate((steps, 1e8 + steps, [2e8]))
    pages = [1] * 40 + [100] * 40 + [1]
    interval_ends = ends(trace_of(times.tolist(), pages), 12)
    inside = [len([end for end in interval_ends if a <= end < a + 39]) for a in (0, 40)]
    assert inside[1] >= 5 > inside[0]
