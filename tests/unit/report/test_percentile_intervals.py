"""Intervals of percentiles from batches with known latencies."""

from __future__ import annotations

import json
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from tests.support.small_drive import write_small_drive
from writecliff import Job, SimEngine, Workload, _native, run_workload
from writecliff.cli.main import main
from writecliff.latency_basis import merged
from writecliff.report import report_of
from writecliff.report.intervals import Cell, Measured, Stretch
from writecliff.store.rundir import RunDirectory
from writecliff.store.tables import SLOWER

BATCHES, IOS, CAPACITY = 120, 2000, 1 << 30


def _measured(
    latencies_ns: np.ndarray, *, written: float = 0.0, nand: float = 0.0, width_s: float = 1.0
) -> Measured:
    """Return batches of one operation, with one row of latencies each."""
    histogram = _native.Histogram()
    values, counts = np.unique(latencies_ns.astype(np.int64), return_counts=True)
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        histogram.record(value, count)
    limits = [histogram.quantile(q).value_ns or histogram.max_ns or 0 for q in SLOWER]
    rows = len(latencies_ns)
    cell = Cell(
        ios=np.full(rows, float(latencies_ns.shape[1])),
        bytes=np.full(rows, 4096.0 * latencies_ns.shape[1]),
        latency_ns=latencies_ns.sum(axis=1),
        slower=[(latencies_ns > limit).sum(axis=1).astype(float) for limit in limits],
        histogram=histogram,
    )
    stretch = Stretch(np.full(rows, 1e9 * width_s), np.full(rows, written * CAPACITY / rows),
                      np.full(rows, nand * CAPACITY / rows), [cell])  # fmt: skip
    return Measured([stretch], CAPACITY)


def _exponential(seed: int = 1) -> np.ndarray:
    return 1e5 * np.random.default_rng(seed).exponential(size=(BATCHES, IOS))


@pytest.mark.parametrize("q", [0.5, 0.9, 0.99, 0.999])
def test_independent_latencies_have_the_interval_of_order_statistics(q: float) -> None:
    """Check that the interval of independent latencies follows from order statistics.

    The standard error of a quantile of an exponential distribution with mean 1 is sqrt(q / (1 - q)
    / n).
    """
    bounds = _measured(_exponential()).quantile(q)
    assert bounds is not None
    error_ns = 1e5 * sqrt(q / (1 - q) / (BATCHES * IOS))
    bucket_ns = bounds.high / 64
    half_ns = (bounds.high - bounds.low) / 2
    assert 0.5 * 1.96 * error_ns < half_ns < 2.5 * 1.96 * error_ns + bucket_ns
    truth_ns = -1e5 * np.log(1 - q)
    assert bounds.low <= truth_ns <= bounds.high


def test_the_interval_of_a_share_covers_the_true_share() -> None:
    single = _native.Histogram()
    single.record(200_000)
    end_ns = float(single.buckets()[1][0])  # Fractions between buckets are exact.
    truth, inside = np.exp(-(end_ns + 1) / 1e5), 0
    for seed in range(200):
        inside += _measured(_exponential(seed)[:, :200]).covers_slower(end_ns, float(truth))
    assert 186 <= inside <= 199, inside


def test_slow_ios_that_come_together_are_few_samples() -> None:
    """Return batches where 2 % of the I/Os are slow, all of them in 3 of 120 batches."""
    latencies = _exponential()
    latencies[[20, 60, 90], :1600] = 5e6
    measured = _measured(latencies)
    assert measured.quantile(0.5) is not None
    assert measured.quantile(0.99) is None


def _with_bursts(seed: int) -> np.ndarray:
    """Return latencies with bursts of slow I/Os: 0.1 bursts per batch, each two batches long."""
    draw = np.random.default_rng(seed)
    share = np.zeros(BATCHES + 20)
    for start in np.flatnonzero(draw.random(len(share)) < 0.1):
        share[start : start + draw.geometric(0.5)] += 0.1
    latencies = 1e5 * draw.random((BATCHES, 500))
    slow = draw.random(latencies.shape) < share[20:, None]
    return latencies + np.where(slow, 2e5 + 1e5 * draw.exponential(size=latencies.shape), 0)


def test_every_run_with_some_bursts_has_an_interval_and_most_hold_the_truth() -> None:
    """Check runs with small estimated variance, whose intervals alone would be too narrow."""
    runs = [_measured(_with_bursts(seed)) for seed in range(60)]
    together = merged(run.histogram for run in runs if run.histogram is not None)
    assert together is not None
    truth_ns = together.quantile(0.99).value_ns
    assert truth_ns is not None
    intervals = [run.quantile(0.99) for run in runs]
    measured = [interval for interval in intervals if interval is not None]
    assert len(measured) == len(runs)
    assert sum(interval.low <= truth_ns <= interval.high for interval in measured) >= 56


@pytest.mark.parametrize(("every", "covered"), [(1, False), (20, True)])
def test_the_slowest_ios_depend_on_each_other_as_faster_ones_do(every: int, covered: bool) -> None:
    """Every batch has 0.1 % slowest I/Os; the 1 % slow I/Os are in every batch, or in only six."""
    latencies = 1e5 * np.random.default_rng(1).random((BATCHES, IOS))
    latencies[::every, : IOS * every // 100] += 1e6
    latencies[:, -2:] += 4e6
    measured = _measured(latencies)
    assert measured.covers_slower(3e6, 0.001)
    assert [measured.covers_slower(3e6, share) for share in (0.0007, 0.0014)] == [covered] * 2


def test_a_drive_that_is_hardly_overwritten_has_no_interval_of_percentiles() -> None:
    assert _measured(_exponential(), written=1.9, nand=4.0).quantile(0.9) is None
    assert _measured(_exponential(), written=2.1, nand=4.0).quantile(0.9) is not None
    assert _measured(_exponential(), written=0.0, nand=0.0).quantile(0.9) is not None
    unknown = _measured(_exponential(), written=0.5, nand=float("nan"))
    assert unknown.quantile(0.9) is not None, "no flash, so nothing is moved"


def test_less_than_four_seconds_have_no_interval_of_percentiles() -> None:
    assert _measured(_exponential(), width_s=0.03).quantile(0.9) is None


def test_flushes_have_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drive = write_small_drive(tmp_path)
    job = tmp_path / "log.fio"
    job.write_text("[log]\nrw=randwrite\nbs=4k\nfdatasync=4\nruntime=20\ntime_based\n")
    words = [
        "run",
        job,
        "--on",
        f"sim:{drive}",
        "--precondition",
        "sustained",
    ]
    words += ["--output", tmp_path / "run", "--quiet", "--json"]
    assert main([*map(str, words)]) == 0
    (step,) = json.loads(capsys.readouterr().out)["steps"]
    operations = step["jobs"][0]["operations"]
    flushes, writes = operations["flush"], operations["write"]
    for value, bounds in (
        (flushes["iops"], flushes["intervals"]["iops"]),
        (flushes["latency"]["mean_ns"], flushes["latency"]["mean_interval"]),
    ):
        assert bounds["low"] <= value <= bounds["high"] < 1.2 * value
    # A flush follows every fourth write.
    assert flushes["iops"] == pytest.approx(writes["iops"] / 4, rel=1e-3)
    widths = [bounds["high"] / bounds["low"] - 1
              for bounds in (flushes["intervals"]["iops"], writes["intervals"]["iops"])]  # fmt: skip
    assert widths[0] == pytest.approx(widths[1], rel=0.2)


def test_a_drive_simulated_scaled_down_has_the_intervals_of_the_one_that_ran(
    tmp_path: Path,
) -> None:
    """Check that the small drive's time and capacity decide, because batches come from it."""
    whole = SimEngine("sata-tlc-120")
    small = whole.scaled(64, largest_io_bytes=4096)
    written = 4 * whole.identify().capacity_bytes // 4096 * 4096
    job = Job(name="w", read_pct=0, queue_depth=8, volume_bytes=written)
    run = run_workload(Workload("writes", (job,)), small, output=tmp_path / "run")
    report = report_of(RunDirectory.open(run.path))
    figures = {figure.key: figure for figure in report.headlines()}
    assert figures["/w/writes/p99"].interval is not None
