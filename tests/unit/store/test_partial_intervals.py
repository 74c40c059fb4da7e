"""Partial intervals are merged into their neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from writecliff.store.partial_intervals import whole_ends
from writecliff.ui.series import lines_of


@pytest.mark.parametrize(
    ("seq", "ends", "whole"),
    [
        ([1, 1, 1], [10, 20, 23], [10, 23, 23]),
        ([1, 1, 1], [10, 20, 25], [10, 20, 25]),
        ([1, 1, 1, 1], [2, 12, 22, 23], [12, 12, 23, 23]),
        ([1, 1, 1, 1], [10, 11, 12, 22], [12, 12, 12, 22]),
        ([1], [3], [3]),
        ([1, 1, 2, 2, 2], [10, 11, 10, 20, 21], [11, 11, 10, 21, 21]),
        # Each interval has two operations.
        ([1, 1, 1, 1], [10, 10, 12, 12], [12, 12, 12, 12]),
        ([], [], []),
    ],
)
def test_a_partial_interval_belongs_to_its_neighbour(
    seq: list[int], ends: list[float], whole: list[float]
) -> None:
    merged_ends = whole_ends(np.array(seq, dtype=np.int64), np.array(ends, dtype=np.float64))
    assert merged_ends.tolist() == whole


def test_the_dashboard_draws_no_rate_of_a_drain() -> None:
    """Check 10,000 I/Os in a second and six in the next 306 µs: 10,003 IOPS, not 19,608."""
    second, drain = 1e9, 306_000.0
    steps = 3
    column = np.array
    rows = {
        "seq": column([float(n) for n in range(steps) for _ in range(2)]),
        "end_ns": column([second, second + drain] * steps),
        "time_ns": column([n * (second + drain) + end for n in range(steps)
                           for end in (second, second + drain)]),
        "operation": column([0.0] * 2 * steps), "ios": column([10_000.0, 6.0] * steps),
        "bytes": column([10_000.0 * 4096, 6.0 * 4096] * steps),
        "latency_mean_ns": column([100.0, 200.0] * steps),
        "latency_max_ns": column([1e6, 2e6] * steps),
    }  # fmt: skip
    unknown = (
        "response_mean_ns",
        "response_max_ns",
        "latency_p99_ns",
        "waf",
        "watts",
        "temperature_c",
        "free_units",
    )
    rows |= {name: np.full(2 * steps, np.nan) for name in unknown}
    lines = {line.key: line for line in lines_of(rows)}
    assert lines["iops.read"].y.tolist() == pytest.approx([10_006 / 1.000306] * steps)
    assert lines["iops.read"].x.tolist() == pytest.approx([1.000306 * n for n in (1, 2, 3)])
    assert lines["latency_max.read"].y.tolist() == [2.0] * steps
    assert lines["latency_mean.read"].y[0] == pytest.approx((1e6 + 1200) / 10_006 / 1e6)


def test_the_dashboard_draws_latencies_from_arrival() -> None:
    """Check that open and closed loads have latencies of different bases, and service times."""
    column = np.array
    rows = {
        "seq": column([1.0] * 4), "end_ns": column([1e9, 1e9, 2e9, 2e9]),
        "time_ns": column([1e9, 1e9, 2e9, 2e9]), "operation": column([0.0] * 4),
        "ios": column([10.0, 30.0, 20.0, 20.0]), "bytes": column([0.0] * 4),
        "latency_mean_ns": column([1e6, 2e6, 1e6, 2e6]),
        "latency_max_ns": column([3e6, 4e6, 3e6, 4e6]),
        "response_mean_ns": column([np.nan, 6e6, np.nan, 8e6]),
        "response_max_ns": column([np.nan, 9e6, np.nan, 9e6]),
    }  # fmt: skip
    unknown = ("latency_p99_ns", "waf", "watts", "temperature_c", "free_units")
    lines = {line.key: line.y.tolist() for line in lines_of(rows | {n: np.full(4, np.nan)
                                                                 for n in unknown})}  # fmt: skip
    assert lines["latency_mean.read"] == pytest.approx([(10 + 180) / 40, (20 + 160) / 40])
    assert lines["service_mean.read"] == pytest.approx([(10 + 60) / 40, (20 + 40) / 40])
    assert lines["latency_max.read"] == [9.0, 9.0] and lines["service_max.read"] == [4.0, 4.0]
