"""Share of I/Os whose simulated latency is within 10 % of the measured latency, from percentiles.

Das Sharma, Ji, Jeong and Kim (IEEE CAL 24(2), 2025) compare the latency of each I/O. A source that
publishes only percentiles allows a comparison of the distributions: the share of the quantiles at
which the simulated latency is within 10 % of the measured latency. This measure is milder, because
it ignores which I/Os are slow.

The logarithm of a latency is interpolated linearly in -log10(1 - q) between two percentiles. I/Os
below the lowest or beyond the highest percentile do not count, because their latencies are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import log, log10

from writecliff.published.predictions import SsdIqPrediction
from writecliff.published.ssd_iq.conditions import OpenLoop

TOLERANCE = 0.10
_FEWEST = 3  # minimum number of percentiles of a distribution
_MEDIAN = 0.5  # quantile that every distribution must contain
_METRIC = re.compile(r"(read|write) latency p([\d.]+)")


@dataclass(frozen=True)
class Distribution:
    """Published and simulated latencies of reads or writes in an open loop."""

    drive: str
    operation: str  # "read" or "write"
    rate_iops: float  # arrival rate of the open loop
    latencies: Mapping[float, tuple[float, float]]  # published and simulated, by quantile (0 to 1)

    @property
    def share_pct(self) -> float:
        """Percentage of the I/Os with a latency within 10 %.

        Only I/Os between the lowest and the highest quantile count.
        """
        return 100 * share_within(self.latencies)


def share_within(
    latencies: Mapping[float, tuple[float, float]], tolerance: float = TOLERANCE
) -> float:
    """Return the share (0 to 1) of the quantiles at which the latencies agree.

    Args:
        latencies: published and simulated latency by quantile, for two quantiles or more, all below
            1. Both latencies have the same unit.
        tolerance: largest relative difference of latencies that agree.
    """
    low, high = log(1 - tolerance), log(1 + tolerance)
    points = [(-log10(1 - q), log(ours / real)) for q, (real, ours) in sorted(latencies.items())]
    mass = sum(_mass_between(a, b, low, high) for a, b in pairwise(points))
    return mass / (_beyond(points[0][0]) - _beyond(points[-1][0]))


def _beyond(x: float) -> float:
    """Return the share of the I/Os beyond the quantile with -log10(1 - q) = `x`."""
    return float(10**-x)


def _mass_between(a: tuple[float, float], b: tuple[float, float], low: float, high: float) -> float:
    """Return the share of the I/Os in a segment whose log ratio is between `low` and `high`."""
    (x0, y0), (x1, y1) = a, b
    if y0 == y1:
        return _beyond(x0) - _beyond(x1) if low <= y0 <= high else 0.0
    crossings = (x0 + (limit - y0) * (x1 - x0) / (y1 - y0) for limit in (low, high))
    start, end = sorted(min(x1, max(x0, x)) for x in crossings)
    return _beyond(start) - _beyond(end)


def distributions(rows: Iterable[SsdIqPrediction]) -> list[Distribution]:
    """Return the distributions of open loops with a median and at least two more percentiles."""
    by_loop: dict[tuple[str, str, float], dict[float, tuple[float, float]]] = {}
    for row in rows:
        match = _METRIC.fullmatch(row.metric)
        if match is not None and isinstance(row.load, OpenLoop):
            latencies = by_loop.setdefault((row.drive, match[1], row.load.rate_iops), {})
            latencies[float(match[2]) / 100] = (row.value, row.simulated)
    return [
        Distribution(*key, latencies)
        for key, latencies in by_loop.items()
        if _MEDIAN in latencies and len(latencies) >= _FEWEST
    ]
