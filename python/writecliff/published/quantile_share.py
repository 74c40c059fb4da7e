"""Share of I/Os whose simulated latency is within 10 % of the measured one, from percentiles.

Das Sharma, Ji, Jeong and Kim (IEEE CAL 24(2), 2025) compare the latency of each I/O. Sources with
percentiles alone allow a comparison of the distributions: the share of the quantiles at which the
simulated latency is within 10 % of the measured one. That ignores which I/Os are slow, so it is
milder.

Between two percentiles, the logarithm of a latency is linear in -log10(1 - q). Below the lowest
percentile and beyond the highest nothing is known, and these I/Os do not count.
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
_FEWEST = 3  # percentiles of a distribution
_MEDIAN = 0.5  # the percentile that a distribution must begin with
_METRIC = re.compile(r"(read|write) latency p([\d.]+)")


@dataclass(frozen=True)
class Distribution:
    """Latencies of reads or writes under a load: published and simulated, by quantile."""

    drive: str
    operation: str  # "read" or "write"
    rate_iops: float  # of the open loop
    latencies: Mapping[float, tuple[float, float]]

    @property
    def share_pct(self) -> float:
        """Share of the I/Os between the lowest and the highest quantile, in percent."""
        return 100 * share_within(self.latencies)


def share_within(
    latencies: Mapping[float, tuple[float, float]], tolerance: float = TOLERANCE
) -> float:
    """Return the share of the quantiles at which both latencies differ by at most `tolerance`.

    `latencies` has two quantiles (below 1) or more.
    """
    low, high = log(1 - tolerance), log(1 + tolerance)
    points = [(-log10(1 - q), log(ours / real)) for q, (real, ours) in sorted(latencies.items())]
    mass = sum(_mass_between(a, b, low, high) for a, b in pairwise(points))
    return mass / (_beyond(points[0][0]) - _beyond(points[-1][0]))


def _beyond(x: float) -> float:
    """Return the share of the I/Os beyond a quantile."""
    return float(10**-x)


def _mass_between(a: tuple[float, float], b: tuple[float, float], low: float, high: float) -> float:
    """Return the share of the I/Os of a segment whose ratio is between `low` and `high`."""
    (x0, y0), (x1, y1) = a, b
    if y0 == y1:
        return _beyond(x0) - _beyond(x1) if low <= y0 <= high else 0.0
    crossings = (x0 + (limit - y0) * (x1 - x0) / (y1 - y0) for limit in (low, high))
    begin, end = sorted(min(x1, max(x0, x)) for x in crossings)
    return _beyond(begin) - _beyond(end)


def distributions(rows: Iterable[SsdIqPrediction]) -> list[Distribution]:
    """Return the distributions of open loops of which the median and two percentiles are known."""
    found: dict[tuple[str, str, float], dict[float, tuple[float, float]]] = {}
    for row in rows:
        match = _METRIC.fullmatch(row.metric)
        if match is not None and isinstance(row.load, OpenLoop):
            own = found.setdefault((row.drive, match[1], row.load.rate_iops), {})
            own[float(match[2]) / 100] = (row.value, row.simulated)
    return [
        Distribution(*key, latencies)
        for key, latencies in found.items()
        if _MEDIAN in latencies and len(latencies) >= _FEWEST
    ]
