"""Intervals of figures of engines that store no batches, from the intervals of their series."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pyarrow as pa
import pytest

from writecliff import _native
from writecliff.report.intervals import Measured, of_intervals, stretch_of

SECOND_NS = 1_000_000_000
READ = (0, "read")


def _series(seconds: int, *, spread: float, partial_ns: int = 0) -> pa.Table:
    """A job's reads, 1,000 a second on average with normal noise, and a last partial interval."""
    draw = np.random.default_rng(1)
    ios = np.round(1000 + spread * draw.standard_normal(seconds)).astype(np.int64)
    ends = SECOND_NS * np.arange(1, seconds + 1)
    if partial_ns:
        ios, ends = np.append(ios, 6), np.append(ends, ends[-1] + partial_ns)
    rows = len(ends)
    return pa.table({
        "seq": np.full(rows, 3), "job": np.zeros(rows, np.int32),
        "operation": np.zeros(rows, np.int8), "end_ns": ends, "ios": ios, "bytes": 4096 * ios,
        "latency_mean_ns": np.full(rows, 50_000.0),
    })  # fmt: skip


def _measured(series: pa.Table) -> Measured:
    histogram = _native.Histogram()
    histogram.record(50_000)
    stretch = stretch_of(of_intervals(series, [3]), [3], "service", {READ: histogram})([READ])
    assert stretch is not None
    return Measured([stretch])


@pytest.mark.parametrize("seconds", [10, 60, 600])
def test_rates_of_a_log_have_the_interval_of_their_noise(seconds: int) -> None:
    bounds = _measured(_series(seconds, spread=50.0)).iops(1000.0)
    assert bounds is not None
    error = 50 / sqrt(seconds)
    assert 1.2 * error < (bounds.high - bounds.low) / 2 < 5 * error
    assert bounds.low < 1000 < bounds.high


def test_a_log_tells_nothing_of_percentiles_and_write_amplification() -> None:
    measured = _measured(_series(60, spread=50.0))
    assert measured.mean(50_000.0) is not None
    assert measured.quantile(0.99) is None
    assert measured.waf(1.5, 1 << 30) is None


def test_four_intervals_are_too_few() -> None:
    assert _measured(_series(4, spread=50.0)).iops(1000.0) is None


def test_long_series_become_256_batches_and_nothing_is_lost() -> None:
    series = _series(1000, spread=0.0, partial_ns=300_000)
    batches = of_intervals(series, [3])
    assert batches.num_rows == 256
    assert sum(batches["ios"].to_pylist()) == 1_000_006
    assert sum(batches["width_ns"].to_pylist()) == 1000 * SECOND_NS + 300_000
    assert min(batches["width_ns"].to_pylist()) >= 3 * SECOND_NS
