"""Reports of HIR, XSR, ECW/CBW and DIRTH, each from one short run on a small simulated drive."""

from __future__ import annotations

import base64
import csv
import io
import math
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.small_drive import write_small_drive
from writecliff.engines.sim import SimEngine
from writecliff.procedures.framework import run_procedure
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.procedures.xsr import recovery_sample
from writecliff.report import build_report, hir, report_of, summarise, write_report
from writecliff.report.dirth import DirthReport
from writecliff.report.disclosure import CHOICES_TITLE as CHOICES
from writecliff.report.model import ReportModel
from writecliff.report.series import Series, samples
from writecliff.report.suite_page import write_suite_page
from writecliff.store.rundir import RunDirectory
from writecliff.suite.folder import Member, SuiteFolder

LOOP = {
    "quick": True,
    "step_seconds": 0.25,
    "precondition_minutes": 0.5 / 60,
    "prewrite_minutes": 0.5 / 60,
    "histogram_prewrite_minutes": 0.5 / 60,
    "histogram_minutes": 0.5 / 60,
    "threads": [16, 4, 1],
    "queue_depths": [32, 1],
    "max_rounds": 6,
}
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "hir": {
        "step_seconds": 1.0,
        "precondition_minutes": 2 / 60,
        "write_minutes": 6 / 60,
        "burst_seconds": 2.0,
        "waits_seconds": [2.0, 6.0],
        "bursts_per_step": 2,
        "max_rounds": 8,
    },
    "xsr": {"sequential_hours": 20 / 3600, "random_hours": 15 / 3600, "sample_seconds": 1.0},
    "ecw": {**LOOP, "revision": "2.0"},
    "dirth": LOOP,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    drive = write_small_drive(folder)
    for name, options in OPTIONS.items():
        engine = SimEngine.from_text(drive.read_text(), str(drive))
        run_procedure(procedure_from_mapping(name, options), engine, folder / name)
        engine.close()
    return {name: folder / name for name in OPTIONS}


@pytest.fixture(scope="module")
def models(runs: dict[str, Path]) -> dict[str, ReportModel]:
    return {name: build_report(RunDirectory.open(path)) for name, path in runs.items()}


def titles(model: ReportModel) -> list[str]:
    return [figure.title for figure in model.figures]


def rows_of(model: ReportModel, name: str) -> list[dict[str, str]]:
    (text,) = (file.text for file in model.data if file.name == name)
    return list(csv.DictReader(io.StringIO(text)))


def test_the_page_is_the_same_each_time_and_stamped(runs: dict[str, Path], tmp_path: Path) -> None:
    first = write_report(runs["hir"], tmp_path / "one.html").read_bytes()
    assert first == write_report(runs["hir"], tmp_path / "two.html").read_bytes()
    assert b"NOT PTS-CONFORMANT" in first


@pytest.mark.parametrize("name", list(OPTIONS))
def test_a_shortened_run_is_stamped(
    name: str, runs: dict[str, Path], models: dict[str, ReportModel]
) -> None:
    assert models[name].stamp == "NOT PTS-CONFORMANT"
    assert models[name].summary == summarise(runs[name])
    assert models[name].summary["schema"] == f"writecliff/{name}/1"


@pytest.mark.parametrize("name", list(OPTIONS))
def test_every_figure_has_its_numbers(name: str, models: dict[str, ReportModel]) -> None:
    model = models[name]
    figures = list(model.figures)
    assert figures
    assert {figure.data for figure in figures} <= set(model.data)
    assert len({figure.name for figure in figures}) == len(figures)
    for column in model.header.columns:
        assert len(column.rows) == 10


@pytest.mark.parametrize(
    ("name", "here"),
    [
        ("hir", ["rounds of 2 s until steady", "the last"]),
        ("xsr", ["0.00555556/0.00416667/0.00555556 h"]),
        ("ecw", ["3 x 2, 0.5 s", "averages of the window", "half-way to TC 1/QD 1", "5 ms"]),
        ("dirth", ["averages of the window", "half-way to TC 1/QD 1", "5 ms"]),
    ],
)
def test_the_choice_between_sources_is_on_the_page(
    name: str, here: list[str], models: dict[str, ReportModel]
) -> None:
    model = models[name]
    (page,) = (part for part in model.sections if part.title == CHOICES)
    assert [row[2] for row in page.tables[0].rows] == here
    assert [row["here"] for row in rows_of(model, "choices.csv")] == here
    assert [choice["here"] for choice in model.summary["choices"]] == here


@pytest.mark.parametrize(("name", "round_length"), [("hir", "2 s"), ("ecw", "0.5 s")])
def test_short_rounds_are_shown_in_seconds(
    name: str, round_length: str, models: dict[str, ReportModel]
) -> None:
    page = repr(models[name].header)
    assert f"rounds of {round_length} until steady" in page
    assert re.search(r"\d\.\d+ min", page) is None


def keys_of(value: Any) -> set[str]:
    if isinstance(value, Mapping):
        return set(value) | {key for part in value.values() for key in keys_of(part)}
    return {key for part in value for key in keys_of(part)} if isinstance(value, list) else set()


@pytest.mark.parametrize("name", list(OPTIONS))
def test_every_key_of_a_summary_is_documented(name: str, models: dict[str, ReportModel]) -> None:
    text = (Path(__file__).parents[3] / "docs/reference/json.md").read_text(encoding="utf-8")
    results = {k: v for k, v in models[name].summary.items() if k not in ("run", "device", "files")}
    assert {key for key in keys_of(results) if f"`{key}`" not in text} == set()
    assert f'"writecliff/{name}/1"' in text


def test_the_plots_of_dirth_follow_the_standard_after_the_first(
    models: dict[str, ReportModel],
) -> None:
    plots = [re.sub(r" \(.*|, RND .*", "", title) for title in titles(models["dirth"])]
    assert plots == [
        "Demand Intensity",
        "Pre Conditioning IOPS",
        "Pre Conditioning steady-state check",
        "Between-round pre-writes",
        "DV IOPS, TC=16, all QD",
        "DV steady-state check TC16-QD32",
        "Demand Variation",
        *(
            f"{point} IOPS: {what}"
            for point in ("Max", "Mid", "Min")
            for what in ("pre-writes", "response-time histogram", "confidence level plot")
        ),
        *(f"{point} IOPS: response time by percentile" for point in ("Max", "Mid", "Min")),
        "IOPS v outstanding I/Os",
        "Response time v outstanding I/Os",
    ]
    assert any("CPU utilisation plot is omitted" in note for note in models["dirth"].notes)
    longest = models["dirth"].summary["operating_points"]["max"]["latency"]["max_ns"]
    assert longest > 0
    assert any(re.search(r"histogram \(maximum \d", title) for title in titles(models["dirth"]))


@pytest.mark.parametrize("name", ["ecw", "dirth"])
def test_the_optimum_of_outstanding_ios_is_marked(
    name: str, models: dict[str, ReportModel]
) -> None:
    model, summary = models[name], models[name].summary
    (part,) = (part for part in model.sections if part.title == "Outstanding I/Os")
    best = summary["knee"]
    load = f"TC{best['threads']}/QD{best['queue_depth']}"
    for figure in part.figures:
        assert f"optimum, {load}" in figure.svg
    (table,) = part.tables
    assert [row[1] for row in table.rows if row[-1] == "optimum"] == [load]
    by_load = summary["outstanding"]
    assert [entry["outstanding"] for entry in by_load] == sorted(
        {entry["outstanding"] for entry in by_load}
    )
    assert len(table.rows) == len(by_load)
    most = max(cell["iops"] for cell in summary["cells"])
    assert best["iops"] >= 0.9 * most
    for entry in by_load:
        product = entry["threads"] * entry["queue_depth"]
        assert entry["outstanding"] == product
        assert entry["art_to_knee_ratio"] == pytest.approx(entry["art_ns"] / best["art_ns"])
    (file,) = (file for file in model.data if file.name == "outstanding.csv")
    rows = list(csv.DictReader(file.text.splitlines()))
    assert len(rows) == len(summary["cells"])
    assert sum(int(row["optimum"]) for row in rows) == 1


@pytest.mark.parametrize("name", ["ecw", "dirth"])
def test_loads_obey_littles_law(name: str, runs: dict[str, Path]) -> None:
    """Check that outstanding I/Os = IOPS x response time, including I/Os queued in the host.

    I/Os that wait in the host also count.
    """
    report = report_of(RunDirectory.open(runs[name]))
    assert len(report.cells) == 6
    for cell in report.cells:
        assert cell.iops * cell.art_ns / 1e9 == pytest.approx(cell.outstanding, rel=0.12)


def test_operating_points_of_the_page_are_those_of_the_run(
    runs: dict[str, Path], models: dict[str, ReportModel]
) -> None:
    report = report_of(RunDirectory.open(runs["dirth"]))
    points = models["dirth"].summary["operating_points"]
    for name, cell in report.points.items():
        rows = report.data.history.stages[f"rth-{name}"].rows
        assert (points[name]["threads"], points[name]["queue_depth"]) == (
            rows[-1].threads,
            rows[-1].queue_depth,
        )
        assert cell.art_ns < 5e6
        assert points[name]["latency"]["count"] == rows[-1].ios
        by_operation = points[name]["latency_by_operation"]
        assert (
            sum(by_operation[operation]["count"] for operation in ("read", "write")) == rows[-1].ios
        )
        assert by_operation["read"]["mean_ns"] != by_operation["write"]["mean_ns"]


def test_the_composite_says_what_it_is_made_of(models: dict[str, ReportModel]) -> None:
    model = models["ecw"]
    assert model.title.startswith("Composite Block Workload Test")
    assert model.header.page_title == "Composite Block Workload Test (OPTIONAL) - Report Page"
    assert model.header.subtitle == "CBW - Composite RW = 40:60"
    (made_of,) = (part for part in model.sections if part.title == "The composite workload")
    sizes, zones = made_of.tables
    assert sizes.rows[7] == ("4 KiB", "67 %", "35.1 %")
    assert zones.rows == (("0 to 5 %", "50 %"), ("5 to 20 %", "30 %"), ("20 to 100 %", "20 %"))
    assert "4 KiB boundaries" in made_of.intro


def test_unsteady_runs_are_called_so(
    runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evaluate the run's samples as if they fell by half in the window."""
    report = report_of(RunDirectory.open(runs["dirth"]))
    precondition, rounds = report.views
    assert rounds.stage is not None
    worse = type(rounds.stage)("rounds", rounds.stage.tracking, max_rounds=5)
    for row in rounds.stage.rows:
        if row.round <= 5:
            worse.add(replace(row, iops=row.iops / row.round))
    for number in range(1, 6):
        worse.round_complete(number)
    views = (precondition, replace(rounds, stage=worse))
    monkeypatch.setattr(DirthReport, "views", property(lambda report: views))
    model = build_report(RunDirectory.open(runs["dirth"]))
    assert "not in steady state" in model.title
    assert model.verdict.level == "bad"
    assert model.verdict.headline == "Steady state not reached in 5 rounds (Demand variation)"
    assert any("(allowed: 20 %)" in text for text in model.verdict.meaning)
    assert "not reached in 5 rounds" in dict(model.header.columns[3].rows)["Steady State"]
    tables = [table for section in model.sections for table in section.tables]
    assert any(row[-1] == "NOT met" for table in tables for row in table.rows)


def test_hir_counts_the_time_of_its_bursts_only(
    runs: dict[str, Path], models: dict[str, ReportModel]
) -> None:
    report = report_of(RunDirectory.open(runs["hir"]))
    assert [wait.wait_s for wait in report.waits] == [2.0, 6.0]
    for wait in report.waits:
        stage = report.data.history.stages[f"wait-{wait.wait_s:g}"]
        assert wait.bursts.iops.size == 3
        assert (np.diff(wait.bursts.time_ns) > 0).all()
        # The bursts contain all I/Os, and no other interval does.
        ios = float(wait.bursts.iops.sum()) * 2.0
        assert ios == pytest.approx(sum(row.ios for row in stage.rows))
        assert wait.burst_iops is not None
        assert wait.burst_iops > 1.3 * max(row.iops for row in stage.rows)
    assert [round(wait.number, 6) for wait in report.waits] == [1, 3]
    states = models["hir"].summary["wait_states"]
    assert [state["baseline_steps"] for state in states] == [6, 6]
    assert titles(models["hir"])[0] == "IOPS v time, all wait states"
    assert titles(models["hir"])[-1] == "IOPS v time spent writing, by wait state"


def test_xsr_samples_hold_every_byte_and_recovery_follows_from_them(
    runs: dict[str, Path], models: dict[str, ReportModel]
) -> None:
    report = report_of(RunDirectory.open(runs["xsr"]))
    rows = rows_of(models["xsr"], "samples.csv")
    rates: dict[str, list[float]] = {}
    for row in rows:
        rates.setdefault(row["group"], []).append(float(row["bytes_per_s"]))
    assert {name: len(values) for name, values in rates.items()} == {
        "AG1": 20,
        "AG2": 15,
        "AG3": 20,
    }
    for group in report.groups:
        stage = report.data.history.stages[group.group.phase]
        total = sum(row.bytes for row in stage.rows)
        # The count excludes the I/Os in flight at the end, which complete after the last whole
        # sample.
        assert sum(rates[group.group.name]) == pytest.approx(total, abs=33 << 20)
    times = [int(row["time_ns"]) for row in rows]
    assert times == sorted(times)
    expected = recovery_sample(rates["AG1"], rates["AG3"])
    minutes = models["xsr"].summary["recovery_minutes"]
    assert minutes == (None if expected is None else pytest.approx(expected / 60))
    assert {"TP v time, AG1 to AG2", "TP v time, AG2 to AG3"} <= set(titles(models["xsr"]))


def test_samples_are_means_over_time_and_maxima_of_maxima() -> None:
    def column(*values: float) -> Any:
        return np.array(values, dtype=np.float64)

    intervals = Series(
        seq=np.array([1, 1, 1, 1, 1]),
        begin_ns=column(0, 1e9, 2e9, 3e9, 4e9),
        end_ns=column(1e9, 2e9, 3e9, 4e9, 4.3e9),
        ios=column(10, 30, 0, 8, 5),
        bytes=column(100, 300, 0, 80, 50),
        mean_ns=column(1.0, 3.0, math.nan, 2.0, 9.0),
        square_ns2=column(2.0, 10.0, math.nan, 5.0, 81.0),
        max_ns=column(5.0, 4.0, math.nan, 7.0, 9.0),
    )
    sampled = samples(intervals, 2e9)
    assert sampled.number.tolist() == [1, 2]  # The third sample lasts 0.3 of 2 s.
    assert sampled.iops.tolist() == [20, 4]
    assert sampled.bytes_per_s.tolist() == [200, 40]
    assert sampled.mean_ns.tolist() == [2.5, 2.0]
    assert sampled.max_ns.tolist() == [5.0, 7.0]


def test_a_burst_that_is_too_long_counts_with_its_own_time() -> None:
    """Check old fio versions, which make the first burst last as long as burst and pause."""
    second = np.full(12, 1e9)
    assert hir._burst_iops(np.full(12, 100.0), second, 5e9) == pytest.approx(100)
    ios = np.array([100.0] * 5 + [1.0] + [0.0] * 6)
    assert hir._burst_iops(ios, second, 5e9) == pytest.approx(501 / 5)
    assert hir._burst_iops(np.zeros(12), second, 5e9) == 0


@pytest.mark.parametrize("name", OPTIONS)
def test_headlines_are_told_apart_and_lie_in_their_intervals(
    runs: dict[str, Path], name: str
) -> None:
    headlines = report_of(RunDirectory.open(runs[name])).headlines()
    keys = [item.key for item in headlines]
    assert len(set(keys)) == len(keys) >= 3
    for item in headlines:
        assert item.interval is None or item.interval.low <= item.value <= item.interval.high
    # XSR's throughput changes continuously, so no window has a confidence interval.
    assert any(item.interval is not None for item in headlines) == (name != "xsr")


def test_a_demand_test_answers_with_its_knee(runs: dict[str, Path]) -> None:
    report = report_of(RunDirectory.open(runs["dirth"]))
    assert isinstance(report, DirthReport)
    knee = report.knee
    assert knee is not None
    assert knee.iops >= 0.9 * max(cell.iops for cell in report.cells)
    assert (
        f"Knee at TC{knee.threads}/QD{knee.queue_depth}: {knee.iops:,.0f} IOPS" in report.answer()
    )
    assert summarise(runs["dirth"])["knee"]["iops"] == knee.iops


@pytest.mark.draws
def test_the_summary_of_a_suite_shows_every_test(runs: dict[str, Path], tmp_path: Path) -> None:
    """Check figures and a curve of HIR, XSR, ECW and DIRTH, each curve in the drive's colour."""
    members = {name: Member(name, OPTIONS[name], "sim:small") for name in runs}
    folder = SuiteFolder.create(tmp_path / "suite", "suite", "pts-e", members)
    for name, run in runs.items():
        shutil.copytree(run, folder.run_directory(name))
    page = write_suite_page(folder).path.read_text()
    assert re.findall(r'<figure id="([a-z-]+)"', page) == [
        "recovery", "cross-stimulus", "demand-ecw", "demand-dirth",
    ]  # fmt: skip
    data = re.search(r'download="key-figures.csv" href="data:text/csv;base64,([^"]+)"', page)
    assert data is not None
    rows = list(csv.DictReader(io.StringIO(base64.b64decode(data[1]).decode())))
    assert {row["run"] for row in rows} == set(runs)
    assert all(math.isfinite(float(row["value"])) for row in rows)
    assert page.count("NOT PTS-CONFORMANT") == 2, "on the screen and on paper"
    drawn = re.findall(r"<figure.*?</figure>", page, re.DOTALL)
    assert all(text.count("stroke: var(--s1, ") and "var(--s2" not in text for text in drawn)


def test_runs_of_one_test_in_a_suite_stand_side_by_side_by_name(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    """Check that several runs of one test, such as PTS-C active ranges, share tables and curves."""
    names = ("hir-100-8gib", "hir-75-8gib")
    members = {name: Member("hir", OPTIONS["hir"], "sim:small") for name in names}
    folder = SuiteFolder.create(tmp_path / "suite", "suite", "pts-c", members)
    for name in names:
        shutil.copytree(runs["hir"], folder.run_directory(name))
    page = write_suite_page(folder).path.read_text()
    assert "All 2 runs: " in page, "what is the same for all is said once"
    (shown,) = re.findall(r"<table>(?:(?!<table>).)*?Figure</th>.*?</table>", page, re.DOTALL)
    head = re.findall(r"<th[^>]*>([^<]*)</th>", shown)
    assert head == ["Figure", *names, "Unit"]
    (curve,) = re.findall(r'<figure id="recovery".*?</figure>', page, re.DOTALL)
    assert "100-8gib" in curve and "75-8gib" in curve
