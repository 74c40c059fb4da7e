"""The JSON summary: independently computed values, and a stable shape."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.bad_runs import killed_early_run, unsteady_real_run
from tests.support.synthetic_run import Drive, build_run, manifest, records
from writecliff.errors import ConfigError, StoreError
from writecliff.procedures.registry import PROCEDURES
from writecliff.report import report_of, summarise
from writecliff.report.base import TestReport
from writecliff.store.rundir import RunDirectory


def test_figures_are_those_of_the_steps(good_run: Path) -> None:
    summary = summarise(good_run)
    steps = list(records())
    samples = [step.result.iops() for step in steps if step.sample]
    # The window extends from the sample in round 2 to the sample in round 6.
    window = steps[2 * 31 - 1 :]
    figures = summary["figures"]
    assert figures["fob_iops"] == steps[0].result.iops()
    assert figures["steady_state_iops"] == pytest.approx(sum(samples[1:]) / 5)
    assert figures["window_to_fob_ratio"] == pytest.approx(
        figures["steady_state_iops"] / figures["fob_iops"]
    )
    host = sum(step.result.total("write")[1] for step in window)
    nand = sum(
        (step.result.counters_after.nand_write_bytes or 0)
        - (step.result.counters_before.nand_write_bytes or 0)
        for step in window
    )
    assert figures["waf"] == pytest.approx(nand / host)
    assert figures["host_write_bytes"] == steps[-1].host_write_bytes_total
    assert figures["drive_fills"] == pytest.approx(
        steps[-1].host_write_bytes_total / Drive().capacity_bytes
    )
    assert figures["device_time_ns"] == 6 * 31 * 60 * 10**9
    assert figures["steps"] == 186


def test_percentiles_are_of_the_merged_histogram(good_run: Path) -> None:
    summary = summarise(good_run)["latency"]
    from writecliff._native import Histogram

    merged = Histogram()
    for step in list(records())[2 * 31 - 1 :]:
        merged.merge(step.result.jobs[0].operations["write"].service)
    assert summary["source"] == "window"
    assert summary["steps"] == [62, 186]
    assert summary["count"] == merged.count
    assert summary["max_ns"] == merged.max_ns
    assert summary["mean_ns"] == pytest.approx(merged.mean_ns)
    assert [p["pct"] for p in summary["percentiles"]] == [50, 90, 99, 99.9, 99.99, 99.999]
    for percentile in summary["percentiles"]:
        expected = merged.quantile(percentile["pct"] / 100)
        assert percentile["value_ns"] == expected.value_ns
        assert percentile["value_ns"] <= summary["max_ns"]


def test_steady_state_block(good_run: Path) -> None:
    block = summarise(good_run)["steady_state"]
    samples = [step.result.iops() for step in records() if step.sample]
    assert (block["state"], block["reached"], block["first_reached_at_round"]) == (
        "steady",
        True,
        6,
    )
    assert block["window"]["rounds"] == [2, 3, 4, 5, 6]
    assert block["window"]["values"] == samples[1:]
    assert block["window"]["data_excursion"] == pytest.approx(max(samples[1:]) - min(samples[1:]))


def test_shape_is_stable(good_run: Path) -> None:
    summary = summarise(good_run)
    assert summary["schema"] == "writecliff/wsat/1"
    assert {key: sorted(value) for key, value in summary.items() if isinstance(value, dict)} == {
        "run": [
            "command", "created", "edition", "name", "procedure", "reason", "seed", "status",
            "updated", "versions",
        ],
        "device": [
            "capacity_bytes", "device_hash", "firmware", "model", "scale", "serial", "simulated",
            "target", "vendor",
        ],
        "steady_state": [
            "first_reached_at_round", "label", "maybe_fresh", "phase", "reached", "rounds_done",
            "state", "tracking", "tracking_variable", "window", "window_drive_fills",
            "window_rounds",
        ],
        "figures": [
            "device_time_ns", "drive_fills", "fob_iops", "host_write_bytes", "last_window_iops",
            "steady_state_iops", "steps", "waf", "window_to_fob_ratio",
        ],
        "latency": [
            "count", "kind", "max_ns", "mean_ns", "min_ns", "percentiles", "sd_ns", "source",
            "steps",
        ],
        "files": ["histograms", "intervals", "manifest", "rounds"],
    }  # fmt: skip
    assert summary["disclosures"] == []
    text = json.dumps(summary, allow_nan=False)
    assert json.loads(text) == summary


def test_every_key_is_documented(good_run: Path) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs/reference/json.md").read_text()

    def keys(value: object) -> set[str]:
        if isinstance(value, dict):
            return set(value).union(*(keys(item) for item in value.values()))
        if isinstance(value, list):
            return set().union(*(keys(item) for item in value))
        return set()

    summary = summarise(good_run)
    del summary["run"]["versions"]
    missing = {key for key in keys(summary) if f"`{key}`" not in page}
    assert not missing


def test_unsteady_run_has_no_steady_state_figure(tmp_path: Path) -> None:
    summary = summarise(unsteady_real_run(tmp_path / "run"))
    assert summary["steady_state"]["state"] == "not_steady"
    assert summary["steady_state"]["window"]["steady"] is False
    assert summary["figures"]["steady_state_iops"] is None
    assert summary["figures"]["last_window_iops"] > 0
    assert summary["figures"]["waf"] is None
    assert len(summary["disclosures"]) == 6


def test_early_run_has_no_window(tmp_path: Path) -> None:
    summary = summarise(killed_early_run(tmp_path / "run"))
    assert summary["run"]["status"] == "interrupted"
    assert summary["steady_state"]["state"] == "undecided"
    assert summary["steady_state"]["window"] is None
    five_nines = summary["latency"]["percentiles"][-1]
    assert five_nines["value_ns"] is None
    assert five_nines["count"] == summary["latency"]["count"] < 100_000


def test_a_drive_that_leaves_steady_state(tmp_path: Path) -> None:
    path = tmp_path / "run"
    made = manifest(steps_per_round=2, step_s=90.0)
    # A level value counts as steady.
    made = replace(made, options={**made.options, "fresh_fills": 0.0})
    with RunDirectory.create(path, made) as run:
        fresh = records(Drive(cliff_fills=3.0), rounds=9, steps_per_round=2, step_s=90.0)
        for record in fresh:
            run.append_round(record)
        run.finish("complete")
    block = summarise(path)["steady_state"]
    assert block["state"] == "left"
    assert block["first_reached_at_round"] == 5
    assert block["window"]["steady"] is True
    assert summarise(path)["figures"]["steady_state_iops"] is None


def test_response_time_histogram_phase_is_preferred(tmp_path: Path) -> None:
    path = tmp_path / "run"
    steps = list(records(rounds=6, steps_per_round=2, step_s=900.0))
    made = manifest(steps_per_round=2, step_s=900.0)
    made = replace(made, options={**made.options, "histogram": True})
    with RunDirectory.create(path, made) as run:
        for record in steps:
            run.append_round(record)
        last = replace(steps[-1], phase="rth", round=0, step=1, sample=False, label="histogram")
        run.append_round(last)
        run.finish("complete")
    latency = summarise(path)["latency"]
    assert latency["source"] == "rth"
    assert latency["steps"] is None
    assert latency["count"] == steps[-1].result.total()[0]
    assert summarise(path)["figures"]["steps"] == 12


def test_what_cannot_be_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a run directory"):
        summarise(tmp_path / "absent")
    RunDirectory.create(tmp_path / "empty", manifest()).close()
    with pytest.raises(StoreError, match="no complete step"):
        summarise(tmp_path / "empty")
    other = build_run(
        tmp_path / "other",
        rounds=1,
        steps_per_round=1,
        step_s=1.0,
        changes={"procedure": "mystery"},
    )
    with pytest.raises(StoreError, match="unknown test 'mystery'"):
        summarise(other)


def test_a_drive_that_stalls_is_still_summarised(tmp_path: Path) -> None:
    drive = Drive(fresh_iops=2.0, saturated_iops=1.0)
    build_run(tmp_path / "run", drive, rounds=6, steps_per_round=1, step_s=1.0)
    summary = summarise(tmp_path / "run")
    assert math.isfinite(summary["figures"]["fob_iops"])


def test_a_run_in_progress_is_reported_as_far_as_it_is(tmp_path: Path) -> None:
    """Check that steps stored while the report is built are not included."""
    steps = list(records(rounds=2, steps_per_round=3, step_s=60.0))
    with RunDirectory.create(tmp_path / "run", manifest(steps_per_round=3)) as run:
        for record in steps[:4]:
            run.append_round(record)
        report = report_of(RunDirectory.open(tmp_path / "run"))
        shutil.copytree(tmp_path / "run", tmp_path / "then" / "run")
        for record in steps[4:]:
            run.append_round(record)
        model = report.model()
    then = report_of(RunDirectory.open(tmp_path / "then" / "run")).model()
    assert model.disclosures[0] == "The run is in progress: these are the figures so far."
    assert model.summary["figures"]["steps"] == 4
    assert model.data[0].text.count("\n") == 1 + 4
    assert model.data == then.data
    assert model.summary["latency"] == then.summary["latency"]


def test_every_test_has_one_report() -> None:
    reports = {name: entry.load_report() for name, entry in PROCEDURES.items()}
    assert all(issubclass(report, TestReport) for report in reports.values())
    assert len(set(reports.values())) == len(reports)
