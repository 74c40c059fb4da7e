"""Intervals of figures for engines that store no batches, computed from the series."""

from __future__ import annotations

import json
from math import sqrt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.support.small_drive import write_small_drive
from writecliff import _native
from writecliff.cli.main import main
from writecliff.report import report_of
from writecliff.report.intervals import Measured, of_intervals, stretch_of
from writecliff.report.workload import WorkloadRunReport
from writecliff.store.rundir import RunDirectory

SECOND_NS = 1_000_000_000
READ = (0, "read")


def _series(seconds: int, *, spread: float, partial_ns: int = 0) -> pa.Table:
    """Return a job's reads, 1,000 per second with normal noise, and a last partial interval."""
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


def _measured(series: pa.Table, began_ns: int = 0) -> Measured:
    histogram = _native.Histogram()
    histogram.record(50_000)
    stretches = stretch_of(of_intervals(series, [3]), [3], "service", {READ: histogram},
                           {(3, 0): began_ns})  # fmt: skip
    stretch = stretches([READ])
    assert stretch is not None
    return Measured([stretch], 1 << 30)


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
    assert measured.waf(1.5) is None


def test_four_intervals_are_too_few() -> None:
    assert _measured(_series(4, spread=50.0)).iops(1000.0) is None


def test_long_series_become_256_batches_and_nothing_is_lost() -> None:
    series = _series(1000, spread=0.0, partial_ns=300_000)
    batches = of_intervals(series, [3])
    assert batches.num_rows == 256
    assert sum(batches["ios"].to_pylist()) == 1_000_006
    assert sum(batches["width_ns"].to_pylist()) == 1000 * SECOND_NS + 300_000
    assert min(batches["width_ns"].to_pylist()) >= 3 * SECOND_NS


def test_a_rate_that_falls_from_start_to_end_has_no_interval() -> None:
    """Return 10 intervals that lose 100 I/Os each, as with a write cliff or a full cache."""
    series = _series(10, spread=5.0)
    falling = np.asarray(series["ios"]) - 100 * np.arange(10)
    series = series.set_column(series.column_names.index("ios"), "ios", pa.array(falling))
    assert _measured(_series(10, spread=5.0)).iops(1000.0) is not None
    assert _measured(series).iops(550.0) is None


def test_a_delayed_start_does_not_widen_the_interval() -> None:
    """Check a job that starts after 2.5 s and has half the I/Os in its first 1 s interval."""
    series = _series(12, spread=5.0)
    ios = np.asarray(series["ios"]).copy()
    ios[:2], ios[2] = 0, ios[2] // 2
    series = series.set_column(series.column_names.index("ios"), "ios", pa.array(ios))
    late, prompt = (_measured(series, began_ns) for began_ns in (2_500_000_000, 0))
    bounds, wide = late.iops(1000.0), prompt.iops(1000.0)
    assert bounds is not None
    assert wide is not None
    assert bounds.high - bounds.low < 20
    assert wide.high - wide.low > 50


def test_a_run_without_batches_has_nearly_the_same_intervals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = tmp_path / "mix.fio"
    job.write_text("[mix]\nrw=randrw\nrwmixread=70\nbs=4k\niodepth=8\nruntime=120\ntime_based\n")
    run = tmp_path / "run"
    words = [
        "run",
        job,
        "--on",
        f"sim:{write_small_drive(tmp_path)}",
        "--precondition",
        "sustained",
    ]
    assert main([*map(str, words), "--output", str(run), "--quiet"]) == 0
    capsys.readouterr()

    def bounds() -> dict[str, tuple[float, float]]:
        report = report_of(RunDirectory.open(run))
        assert isinstance(report, WorkloadRunReport)
        step = json.loads(json.dumps(report.loads[0].mapping()))
        bounds = {}
        for operation, done in step["jobs"][0]["operations"].items():
            interval = done["intervals"]["iops"]
            bounds[f"{operation} iops"] = (done["iops"], interval["high"] - interval["low"])
            interval = done["latency"]["mean_interval"]
            width = interval["high"] - interval["low"]
            bounds[f"{operation} mean"] = (done["latency"]["mean_ns"], width)
        return bounds

    with_batches = bounds()
    table = RunDirectory.table
    monkeypatch.setattr(
        RunDirectory, "table",
        lambda self, name: table(self, name).slice(0, 0 if name == "batches" else None),
    )  # fmt: skip
    without = bounds()
    assert with_batches.keys() == without.keys() == {
        "read iops", "read mean", "write iops", "write mean"
    }  # fmt: skip
    for name, (value, width) in with_batches.items():
        assert without[name][0] == value
        assert 0.5 * width <= without[name][1] <= 2 * width, name
