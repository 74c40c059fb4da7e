"""Lines over intervals: sums, means and maxima over jobs; running runs; the cache."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.cli import CommandLine
from tests.support.long_run import SPIKE_IOPS, make_long_run
from tests.support.small_drive import write_small_drive
from tests.support.synthetic_run import Drive, build_run, manifest, records
from writecliff.errors import StoreError
from writecliff.store.rundir import RunDirectory
from writecliff.ui import series as series_module
from writecliff.ui.plots import run_plots, view_of
from writecliff.ui.series import Shelf, lines_of, named

MS = 1_000_000


def columns(rows: list[dict[str, float]]) -> dict[str, Any]:
    names = series_module._COLUMNS
    return {name: np.array([row.get(name, np.nan) for row in rows], float) for name in names}


def row(end: float, operation: int, ios: float, **more: float) -> dict[str, float]:
    return {"seq": 1, "end_ns": end * MS, "time_ns": (end + 5) * MS, "operation": operation,
            "ios": ios, "bytes": ios * 4096, **more}  # fmt: skip


def test_jobs_are_added_up_and_operations_are_not() -> None:
    rows = columns(
        [
            row(1, 0, 10, latency_mean_ns=1 * MS, latency_max_ns=2 * MS, waf=2),
            row(1, 0, 30, latency_mean_ns=3 * MS, latency_max_ns=9 * MS, waf=2),
            row(1, 1, 0, latency_max_ns=0, waf=2),
            row(3, 0, 0, latency_max_ns=0, waf=3),
            row(3, 0, 0, latency_max_ns=0, waf=3),
            row(3, 1, 0, latency_max_ns=0, waf=3),
        ]
    )
    lines = {line.key: line for line in lines_of(rows)}
    assert sorted(lines) == ["iops.read", "latency_max.read", "latency_mean.read", "mbps.read",
                             "waf"]  # fmt: skip
    assert lines["iops.read"].x.tolist() == [0.006, 0.008]
    assert lines["iops.read"].y.tolist() == [40_000.0, 0.0]
    assert lines["mbps.read"].y[0] == pytest.approx(40 * 4096 / 1e6 / 1e-3)
    assert lines["latency_mean.read"].y[0] == pytest.approx((10 * 1 + 30 * 3) / 40)
    assert lines["latency_max.read"].y[0] == 9.0
    # If there are no I/Os, the latency is unknown.
    assert np.isnan(lines["latency_mean.read"].y[1])
    assert np.isnan(lines["latency_max.read"].y[1])
    assert lines["waf"].y.tolist() == [2.0, 3.0]


def test_the_order_of_rows_does_not_matter() -> None:
    rows = [row(end, op, end + op + 1, latency_mean_ns=end * MS, latency_max_ns=end * MS, waf=end)
            for end in range(1, 20) for op in (0, 1)]  # fmt: skip
    straight = {line.key: line.y.tolist() for line in lines_of(columns(rows))}
    mixed = {line.key: line.y.tolist() for line in lines_of(columns(rows[::-1]))}
    assert straight == mixed


def test_quantiles_of_steps_are_those_of_their_histograms(tmp_path: Path) -> None:
    build_run(tmp_path / "run", rounds=2, steps_per_round=2, step_s=2.0)
    line = named(Shelf().series("run", tmp_path / "run"), "latency_p99_step.write")
    assert line is not None
    run = RunDirectory.open(tmp_path / "run")
    want = [run.histogram(steps=[seq]).quantile(0.99).value_ns / 1e6 for seq in (1, 2, 3, 4)]
    assert line.y.tolist() == [value for value in want for _ in "ab"]
    assert line.x.tolist() == [0, 2, 2, 4, 4, 6, 6, 8]


FLUSHING = """
name = "log"
[[job]]
name = "log"
pattern = "sequential"
read = "0 %"
block_size = "64 KiB"
queue_depth = 1
flush_every_writes = 2
duration = "300 ms"
[[job]]
name = "pages"
read = "70 %"
queue_depth = 4
rate_iops = 2000
flush_every_writes = 10
duration = "300 ms"
"""


def test_flushes_have_latencies_over_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load, folder = tmp_path / "log.toml", tmp_path / "run"
    load.write_text(FLUSHING)
    drive = write_small_drive(tmp_path)
    words = ["run", str(load), "--on", f"sim:{drive}", "--precondition", "fill"]
    answer = CommandLine(capsys)([*words, "--output", str(folder), "--quiet"])
    assert answer.code == 0, answer.err

    run, series = RunDirectory.open(folder), Shelf().series("run", folder)
    measured = run.histogram(operation="flush")
    mean, p99 = (named(series, f"latency_{what}.flush") for what in ("mean", "p99_step"))
    assert mean is not None and p99 is not None
    assert p99.y.tolist() == [measured.quantile(0.99).value_ns / 1e6] * 2
    assert len(mean.x) > 10 and (np.diff(mean.x) > 0).all()
    assert series.span_s[0] < mean.x[0] and mean.x[-1] <= series.span_s[1]
    batches = run.table("batches").to_pandas().query("operation == 3")
    counts = batches.groupby("end_ns").ios.sum().to_numpy()
    whole = counts[: len(mean.y) - 1]  # A partial batch at the end is merged into the last point.
    spent = (mean.y[:-1] * whole).sum() + mean.y[-1] * (measured.count - whole.sum())
    assert spent / measured.count == pytest.approx(measured.mean_ns / 1e6)
    (plot,) = (p for p in run_plots(series, series.span_s, 500)["plots"] if p["key"] == "latency")
    names = {line["name"] for line in plot["lines"]}
    assert {"flushes: mean", "flushes: p99 of the step", "writes: mean"} <= names
    assert "flushes: mean service time" not in names


def test_a_run_that_goes_on_is_read_step_by_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[str, int]] = []
    plain = RunDirectory.rows_after

    def watched(self: RunDirectory, name: Any, step: int, *more: Any) -> Any:
        read.append((name, step))
        return plain(self, name, step, *more)

    monkeypatch.setattr(RunDirectory, "rows_after", watched)
    shelf, seen = Shelf(), []
    drive = Drive(capacity_bytes=120_000_000_000)
    with RunDirectory.create(tmp_path / "run", manifest(drive)) as run:
        for record in records(drive, rounds=2, steps_per_round=2, step_s=2.0):
            run.append_round(record)
            seen.append(shelf.series("run", tmp_path / "run").intervals)
        going_on = shelf.series("run", tmp_path / "run")
        run.finish("complete")
    assert seen == [2, 4, 6, 8]
    assert [step for name, step in read if name == "intervals"] == [0, 1, 2, 3]
    assert [step for name, step in read if name == "histograms"] == [0, 1, 2, 3]
    # The run has ended in the meantime.
    assert shelf.series("run", tmp_path / "run").intervals == 8
    whole = Shelf().series("run", tmp_path / "run")
    assert [line.key for line in going_on.lines] == [line.key for line in whole.lines]
    for line, other in zip(going_on.lines, whole.lines, strict=True):
        np.testing.assert_array_equal(line.y, other.y)


def test_series_that_have_not_changed_stay_in_memory(tmp_path: Path) -> None:
    for name in "ab":
        build_run(tmp_path / name, rounds=1, steps_per_round=2, step_s=2.0)
    shelf = Shelf(kept_bytes=1)  # The cache holds only one run.
    first = shelf.series("a", tmp_path / "a")
    assert shelf.series("a", tmp_path / "a") is first
    shelf.series("b", tmp_path / "b")
    assert shelf.series("a", tmp_path / "a") is not first


def test_a_run_with_too_many_rows_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_run(tmp_path / "run", rounds=1, steps_per_round=2, step_s=2.0)
    monkeypatch.setattr(series_module, "MOST_ROWS", 3)
    monkeypatch.setattr(RunDirectory, "rows_after", lambda *_: pytest.fail("it was read"))
    with pytest.raises(StoreError, match="4 rows of intervals; plots are limited to 3"):
        Shelf().series("run", tmp_path / "run")


def test_a_run_without_intervals_has_no_plots(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path / "run", manifest()) as run:
        run.finish("complete")
    series = Shelf().series("run", tmp_path / "run")
    assert run_plots(series, series.span_s, 500)["plots"] == []


def test_zooming_in_leads_to_single_intervals(tmp_path: Path) -> None:
    make_long_run(tmp_path / "run", 60_000)
    series = Shelf().series("run", tmp_path / "run")
    assert series.span_s == (0.0, 60.0)
    counts = []
    for view in ((0.0, 60.0), (29.0, 31.0), (29.99, 30.01)):
        page = run_plots(series, view, 1200)
        (iops,) = next(plot for plot in page["plots"] if plot["key"] == "iops")["lines"]
        assert max(iops["y"]) == SPIKE_IOPS == iops["greatest"]
        assert page["marks"] <= 5_000
        counts.append((iops["whole"], iops["points"]))
    assert counts == [(False, 60_000), (False, 2_001), (True, 21)]


@pytest.mark.parametrize(
    ("low", "high", "view"),
    [(None, None, (1, 9)), (3, 4, (3, 4)), (-5, 99, (1, 9)), (20, 30, (1, 9)), (4, 3, (1, 9))],
)
def test_views_stay_within_the_run(low: Any, high: Any, view: tuple[float, float]) -> None:
    assert view_of((1, 9), low, high) == view


def test_unknown_columns_of_other_versions_are_left_out(tmp_path: Path) -> None:
    drive = replace(Drive(capacity_bytes=120_000_000_000), has_waf=False)
    build_run(tmp_path / "run", drive, rounds=1, steps_per_round=2, step_s=2.0)
    keys = {line.key for line in Shelf().series("run", tmp_path / "run").lines}
    assert "waf" not in keys and "iops.write" in keys
