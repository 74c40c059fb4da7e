"""Round over time with its block sizes, the window of reads, the test platform."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tests.support.fake_engine import FakeEngine
from writecliff.engines.base import PowerState, PowerStates
from writecliff.procedures.framework import run_procedure
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.report import build_report, report_of
from writecliff.report.disclosure import PLATFORM_TITLE, platform_section
from writecliff.report.model import ReportModel, Section
from writecliff.report.pages import render_html
from writecliff.report.testdata import load
from writecliff.store.rundir import RunDirectory

pytestmark = pytest.mark.draws

OPTIONS: dict[str, dict[str, Any]] = {
    "iops": {"read_pcts": [100.0, 65.0, 0.0], "block_sizes_kib": [1024.0, 64.0, 4.0]},
    "tp": {"block_sizes_kib": [128.0]},
}


def made(path: Path, test: str, **more: Any) -> Path:
    """Return a run on the formula drive."""
    options = {"step_seconds": 12.0, **OPTIONS[test]}
    drive = FakeEngine(capacity_bytes=2_000_000_000, **more)
    run_procedure(procedure_from_mapping(test, options), drive, path)
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    return {test: made(folder / test, test) for test in OPTIONS}


@pytest.fixture(scope="module")
def models(runs: dict[str, Path]) -> dict[str, ReportModel]:
    return {test: build_report(RunDirectory.open(path)) for test, path in runs.items()}


def section(model: ReportModel, title: str) -> Section:
    (section,) = (part for part in model.sections if part.title == title)
    return section


def rows_of(model: ReportModel, name: str) -> list[dict[str, str]]:
    (file,) = (file for file in model.data if file.name == name)
    return list(csv.DictReader(file.text.splitlines()))


def test_a_round_is_drawn_with_its_block_sizes_and_mixes(
    runs: dict[str, Path], models: dict[str, ReportModel]
) -> None:
    part = section(models["iops"], "Block-size sequencing")
    (figure,) = part.figures
    assert "9 steps in 1 min 48 s" in part.intro
    for text in ("block size (right)", "IOPS (left)", "100/0", "65/35", "0/100", "Time (s)"):
        assert text in figure.svg
    lines = rows_of(models["iops"], "sequence.csv")
    assert len(lines) == 9 * 12
    data = load(RunDirectory.open(runs["iops"]))
    last = max(row.round for row in data.rows)
    for row in (row for row in data.rows if row.round == last and row.phase == "rounds"):
        mine = [line for line in lines if (int(line["block_bytes"]), float(line["read_pct"]))
                == (row.block_bytes, row.read_pct)]  # fmt: skip
        assert len(mine) == 12
        assert fmean(float(line["iops"]) for line in mine) == pytest.approx(row.iops)
    times = [float(line["middle_ns"]) for line in lines]
    assert times == sorted(times)


def test_compared_runs_get_iops_over_block_size(runs: dict[str, Path]) -> None:
    report = report_of(RunDirectory.open(runs["iops"]))
    curves = {curve.name: dict(curve.points) for curve in report.curves()}
    assert set(curves) == {"iops-by-size-0", "iops-by-size-65", "iops-by-size-100"}
    results = report.summary()["results"]
    for result in results:
        points = curves[f"iops-by-size-{result['read_pct']:g}"]
        assert points[result["block_bytes"]] == pytest.approx(result["iops"])


def test_the_window_of_reads_is_beside_that_of_writes(
    runs: dict[str, Path], models: dict[str, ReportModel]
) -> None:
    part = section(models["tp"], "SEQ 128KiB: steady-state measurement window, reads")
    (figure,), (table,) = part.figures, part.tables
    assert "SEQ 128KiB 100/0 throughput" in figure.title
    assert "SEQ 128KiB 100/0 throughput" in table.title
    (entry,) = models["tp"].summary["read_windows"]
    window = entry["window"]
    data = load(RunDirectory.open(runs["tp"]))
    rates = [
        row.bytes_per_s / 1e6
        for row in data.stage_rows("rounds-128k")
        if row.read_pct == 100.0 and row.round in window["rounds"]
    ]
    assert window["values"] == pytest.approx(rates)
    assert window["average"] == pytest.approx(fmean(rates))
    values = [float(row["read_mb_per_s"]) for row in rows_of(models["tp"], "reads-128k.csv")]
    assert values == pytest.approx(rates)


def test_every_report_describes_its_platform(models: dict[str, ReportModel]) -> None:
    for model in models.values():
        (table,) = section(model, PLATFORM_TITLE).tables
        parts = {row[0]: row[1] for row in table.rows}
        assert parts["Clock"] == "Virtual, in nanoseconds"
        assert parts["Drive"] == "sim:fake"
        assert f"<h2>{PLATFORM_TITLE}</h2>" in render_html(model)


def test_a_real_drive_names_machine_kernel_and_what_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = {"cpu": "Example 9000, 8 threads", "cpu_governor": "powersave", "virtual_machine": "yes"}
    measured = {"kernel": "Linux 6.12", "fio": "fio-3.41", "writecliff": "1"}
    run = RunDirectory.open(made(tmp_path / "tp", "tp", kind="fio", target="/dev/sdx"))
    manifest = replace(run.manifest, host=host, versions=measured)
    monkeypatch.setattr(RunDirectory, "manifest", manifest)
    (table,) = platform_section(load(run)).tables
    parts = {row[0]: row[1:] for row in table.rows}
    assert parts["CPU"][0] == "Example 9000, 8 threads"
    assert parts["CPU frequency governor"][0] == "powersave"
    assert parts["Kernel"][0] == "Linux 6.12"
    assert parts["Memory"][0] == "not known"
    assert "Another layer" in parts["Virtual machine"][1]


STATES = tuple(PowerState(n, 8.0 - 3 * n, True, 0, 0) for n in range(3))


class StatefulDrive(FakeEngine):
    """A formula drive with power states: initially 0, opened with 1, and `last` at the end."""

    last = 1

    def power_states(self, *, settle: bool = False) -> PowerStates:  # type: ignore[override]
        return PowerStates(1 if settle else self.last, STATES, autonomous=True, before=0)


@pytest.mark.parametrize("last", [1, 2])
def test_a_power_state_is_in_the_report_of_its_run(tmp_path: Path, last: int) -> None:
    drive = StatefulDrive(capacity_bytes=2_000_000_000, kind="fio", target="/dev/nvme0n1")
    drive.last = last
    options = {"step_seconds": 12.0, **OPTIONS["tp"]}
    run_procedure(procedure_from_mapping("tp", options), drive, tmp_path / "r")
    run = RunDirectory.open(tmp_path / "r")
    model = build_report(run)
    (table,) = section(model, PLATFORM_TITLE).tables
    parts = {row[0]: row[1:] for row in table.rows}
    assert parts["NVMe power state"][0] == "1 of 0 to 2, 5 W at most"
    assert "the drive was found in 0" in parts["NVMe power state"][1]
    assert parts["Power"][0] == "Not measured"
    page = render_html(model)
    assert "The drive was in NVMe power state 1 of 0 to 2, 5 W at most, as requested" in page
    assert ("in 2 at the end" in page) == (last == 2)
    assert run.manifest.power == PowerStates(1, STATES, autonomous=True, before=0)
