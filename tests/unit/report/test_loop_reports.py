"""Reports of IOPS, throughput and latency: pages, independently computed values, failures."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import pyarrow.parquet as pq
import pytest

from tests.support.fake_engine import FakeEngine, interrupted_at
from writecliff import units
from writecliff.procedures.framework import RunInterrupted, run_procedure
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.report import build_report, report_of, summarise, write_report
from writecliff.report.disclosure import CHOICES_TITLE as CHOICES
from writecliff.report.disclosure import PLATFORM_TITLE as PLATFORM
from writecliff.report.model import ReportModel, Section
from writecliff.report.table import Table
from writecliff.store.rundir import RunDirectory

IOPS = {"read_pcts": [100.0, 65.0, 0.0], "block_sizes_kib": [1024.0, 64.0, 4.0, 0.5]}
OPTIONS: dict[str, dict[str, Any]] = {
    "iops": {"revision": "2.0", **IOPS},
    "tp": {},
    "lat": {
        "revision": "2.0",
        "step_seconds": 10.0,
        "histogram_seconds": 60.0,
        "histogram_reads": True,
    },
}
TESTS = list(OPTIONS)
LAST = (CHOICES, PLATFORM)  # Sections at the end of every page.
Make = Callable[..., Path]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Return `make(test, noise=..., stop_at=..., **options)`, which runs on the formula drive."""

    def run(test: str, *, noise: float = 0.01, stop_at: int | None = None, **more: Any) -> Path:
        path = tmp_path_factory.mktemp("runs") / test
        hook = None if stop_at is None else interrupted_at(stop_at)
        drive = FakeEngine(capacity_bytes=2_000_000_000, noise=noise, before_run=hook)
        options = {"step_seconds": 1.0, **OPTIONS[test], **more}
        procedure = procedure_from_mapping(test, options)
        if stop_at is None:
            run_procedure(procedure, drive, path)
        else:
            with pytest.raises(RunInterrupted):
                run_procedure(procedure, drive, path)
        return path

    return run


@pytest.fixture(scope="module")
def good(make: Make) -> dict[str, Path]:
    return {test: make(test) for test in TESTS}


@pytest.fixture(scope="module")
def models(good: dict[str, Path]) -> dict[str, ReportModel]:
    return {test: model(path) for test, path in good.items()}


def model(path: Path) -> ReportModel:
    return build_report(RunDirectory.open(path))


def rows(path: Path, phase: str = "rounds") -> list[dict[str, Any]]:
    return [r for r in pq.read_table(path / "rounds.parquet").to_pylist() if r["phase"] == phase]


def in_window(path: Path, size: int, read: float, phase: str = "rounds") -> list[dict[str, Any]]:
    """Return the last five rounds, when the formula drive is steady."""
    window_rows = rows(path, phase)
    last = max(row["round"] for row in window_rows)
    return [
        row
        for row in window_rows
        if (row["block_bytes"], row["read_pct"]) == (size, read) and row["round"] > last - 5
    ]


def section(report: ReportModel, title: str) -> Section:
    (section,) = (part for part in report.sections if part.title == title)
    return section


def cells(table: Table) -> dict[tuple[str, str], str]:
    return {
        (row[0], head): cell
        for row in table.rows
        for head, cell in zip(table.header[1:], row[1:], strict=True)
    }


def number(text: str) -> float:
    return float(text.replace(",", ""))


def test_the_sections_of_iops(models: dict[str, ReportModel]) -> None:
    assert [part.title for part in models["iops"].sections] == [
        "Steady-state convergence",
        "Steady-state measurement window",
        "Tabular data",
        "2-D and 3-D plot",
        "Block-size sequencing",
        *LAST,
    ]
    window = section(models["iops"], "Steady-state measurement window")
    assert len(window.figures) == len(window.tables) == 3


def test_the_sections_of_each_block_size(models: dict[str, ReportModel]) -> None:
    pages = [
        "convergence",
        "steady-state measurement window",
        "steady-state measurement window, reads",
        "tabular data and 2-D plot",
    ]
    sections = models["tp"].sections
    sizes = ("1024KiB", "128KiB")
    assert [part.title for part in sections] == [
        *(f"SEQ {s}: {page}" for s in sizes for page in pages),
        *LAST,
    ]


def test_the_pages_of_lat(models: dict[str, ReportModel], make: Make) -> None:
    pages = [
        "Convergence",
        "Steady-state measurement window",
        "Tabular data",
        "3-D columns",
    ]
    assert [part.title for part in models["lat"].sections] == [
        *pages,
        "Response-time histogram, RND 4KiB 0/100",
        "Response-time histogram, RND 4KiB 100/0",
        *LAST,
    ]
    assert len(section(models["lat"], "Tabular data").tables) == 4
    old = model(make("lat", revision="1.x", histogram_reads=False))
    assert [part.title for part in old.sections] == [*pages, *LAST]
    assert [table.title for table in section(old, "Tabular data").tables] == [
        "Average latency (ms)",
        "Maximum latency (ms)",
    ]


def test_iops_are_means_over_the_window(
    good: dict[str, Path], models: dict[str, ReportModel]
) -> None:
    (table,) = section(models["iops"], "Tabular data").tables
    assert table.title == "Enterprise IOPS - ALL RW Mix & BS - Tabular Data"
    assert table.header[1:] == ("0/100", "65/35", "100/0")
    assert [row[0] for row in table.rows] == ["0.5KiB", "4KiB", "64KiB", "1024KiB"]
    shown = cells(table)
    summary = {
        (r["block_bytes"], r["read_pct"]): r["iops"] for r in summarise(good["iops"])["results"]
    }
    for size in (512, 4096, 65536, 1048576):
        for read in (0.0, 65.0, 100.0):
            expected = fmean(
                r["ios"] / r["elapsed_ns"] * 1e9 for r in in_window(good["iops"], size, read)
            )
            text = shown[f"{size / 1024:g}KiB", f"{read:g}/{100 - read:g}"]
            assert number(text) == pytest.approx(expected, abs=0.05)
            assert summary[size, read] == pytest.approx(expected)


def test_throughput_is_decimal_and_a_mean_over_the_window(
    good: dict[str, Path], models: dict[str, ReportModel]
) -> None:
    for size, label in ((1 << 20, "1024"), (1 << 17, "128")):
        (table,) = section(models["tp"], f"SEQ {label}KiB: tabular data and 2-D plot").tables
        ((name, write, read),) = table.rows
        assert name == f"{label}KiB"
        for text, share in ((write, 0.0), (read, 100.0)):
            window_rows = in_window(good["tp"], size, share, f"rounds-{label}k")
            assert len(window_rows) == 5
            mean = fmean(r["bytes"] / r["elapsed_ns"] * 1e9 for r in window_rows)
            assert number(text) == pytest.approx(mean / 1e6, abs=0.05)


def test_latencies_are_means_and_true_maxima(good: dict[str, Path], make: Make) -> None:
    results = summarise(good["lat"])["results"]
    assert len(results) == 9
    for result in results:
        window_rows = in_window(good["lat"], result["block_bytes"], result["read_pct"])
        assert result["latency_mean_ns"] == pytest.approx(
            fmean(r["latency_mean_ns"] for r in window_rows)
        )
        assert result["latency_max_ns"] == max(r["latency_max_ns"] for r in window_rows)
        assert result["latency_p99999_ns"] <= result["latency_max_ns"]
    other = make("lat", max_latency="mean")
    for result in summarise(other)["results"]:
        window_rows = in_window(other, result["block_bytes"], result["read_pct"])
        assert result["latency_max_ns"] == pytest.approx(
            fmean(r["latency_max_ns"] for r in window_rows)
        )
    assert "mean of the maxima" in " ".join(model(other).notes)


def test_histograms_after_the_rounds_are_whole(good: dict[str, Path]) -> None:
    summary = summarise(good["lat"])["histograms"]
    assert [(h["block_bytes"], h["read_pct"]) for h in summary] == [(4096, 0.0), (4096, 100.0)]
    for histogram, row in zip(summary, rows(good["lat"], "rth"), strict=True):
        assert histogram["max_ns"] == row["latency_max_ns"]
        assert histogram["count"] == pytest.approx(row["ios"], abs=1)


@pytest.mark.parametrize("test", TESTS)
def test_the_determination_is_shown_whole(
    test: str, good: dict[str, Path], models: dict[str, ReportModel]
) -> None:
    judged = [part for part in models[test].sections if not part.title.endswith(", reads")]
    tables = [t for part in judged for t in part.tables if "determ" in t.title]
    loops = summarise(good[test])["steady_state"]["loops"]
    windows = [entry for loop in loops for entry in loop["tracking"]]
    assert len(tables) == len(windows) == {"iops": 3, "tp": 2, "lat": 1}[test]
    for table, entry in zip(tables, windows, strict=True):
        shown = {row[0].partition(",")[0]: row for row in table.rows}
        window = entry["window"]
        assert shown["Least-squares line"][2] == window["formula"]
        assert shown["Data excursion"][3] == shown["Slope excursion"][3] == "met"
        average = number(shown["Average"][2].split()[0])
        assert average == pytest.approx(window["average"], abs=0.05)
        allowed = number(shown["Data excursion"][1].split()[0])
        assert allowed == pytest.approx(0.2 * fmean(window["values"]), abs=0.05)


@pytest.mark.parametrize(
    ("test", "need"),
    [("iops", "IOPS Test (REQUIRED)"), ("tp", "Throughput Test (REQUIRED)"), ("lat", "Latency")],
)
def test_the_header_block_is_full(test: str, need: str, models: dict[str, ReportModel]) -> None:
    header = models[test].header
    assert header.page_title.startswith(need)
    assert [len(column.rows) for column in header.columns] == [10, 10, 10, 10]
    set_up, loop = (dict(column.rows) for column in header.columns[2:])
    assert set_up["Duration"] == "Twice User Capacity"
    assert "Rounds 1 - 5" in set_up["SS Rounds"]
    assert ("Steady State", set_up["SS Rounds"]) in header.columns[3].rows
    assert loop["RW Mix (Outer Loop)"].startswith("100/0, ")


@pytest.mark.parametrize("test", TESTS)
def test_a_shortened_run_is_stamped(test: str, models: dict[str, ReportModel]) -> None:
    assert models[test].stamp == "NOT PTS-CONFORMANT"
    assert any("step_seconds is 1" in text for text in models[test].disclosures)


def test_only_what_the_standard_requires_is_stamped(make: Make) -> None:
    data = model(make("tp", step_seconds=60.0))
    assert (data.stamp, data.disclosures) == ("", ())


@pytest.mark.parametrize("test", TESTS)
def test_not_achieved_cannot_be_overlooked(test: str, make: Make) -> None:
    path = make(test, noise=0.95, max_rounds=5)
    page = model(path)
    assert "not in steady state" in page.title
    assert page.verdict.level == "bad"
    assert "not reached in 5 rounds" in page.verdict.headline
    assert "rounds 1 to 5: NOT steady" in " ".join(page.verdict.meaning)
    assert all("not in steady state" in figure.note for figure in page.key_figures[:2])
    tables = [t for part in page.sections for t in part.tables if "determ" in t.title]
    assert tables
    assert any("NOT met" in row for table in tables for row in table.rows)
    windows = [f for f in page.figures if "window" in f.name]
    assert any("not in steady state" in figure.title for figure in windows)
    parts = [part for part in page.sections if part.title not in LAST]
    results = [t for part in parts for t in part.tables if "determ" not in t.title]
    assert all(
        "not in steady state" in t.title for t in results if not t.title.startswith("Response")
    )
    set_up = dict(page.header.columns[2].rows)
    assert "not reached in 5 rounds" in set_up["SS Rounds"]
    steady = summarise(path)["steady_state"]
    assert (steady["state"], steady["reached"]) == ("not_achieved", False)
    assert steady["loops"][0]["tracking"][0]["window"]["steady"] is False


@pytest.mark.parametrize(("test", "at"), [("iops", 2), ("iops", 17), ("tp", 2), ("lat", 15)])
def test_a_run_cut_short_is_reported_as_far_as_it_went(test: str, at: int, make: Make) -> None:
    path = make(test, stop_at=at)
    page = model(path)
    assert page.verdict.headline.startswith("Too few rounds for steady state: ")
    assert page.disclosures[0].startswith("The run was interrupted")
    complete = summarise(path)["steady_state"]["loops"][0]["rounds_done"]
    assert bool([part for part in page.sections if part.title not in LAST]) is bool(complete)
    assert complete == {("iops", 2): 0, ("iops", 17): 1, ("tp", 2): 0, ("lat", 15): 1}[test, at]
    assert write_report(path).stat().st_size > 10_000


def test_a_run_between_five_and_25_rounds_is_not_yet_a_failure(make: Make) -> None:
    page = model(make("lat", noise=0.95, stop_at=1 + 9 * 6 + 3))
    assert page.verdict.headline == "Steady state not reached so far, after 6 rounds"
    assert dict(page.header.columns[2].rows)["SS Rounds"] == "not steady in 6 rounds so far"


def test_throughput_without_its_second_block_size_is_not_called_steady(make: Make) -> None:
    path = make("tp", stop_at=1 + 10 + 1 + 1)
    page = model(path)
    assert page.verdict.level == "bad"
    assert all(part.title.startswith("SEQ 1024KiB: ") for part in page.sections[: -len(LAST)])
    loops = summarise(path)["steady_state"]["loops"]
    assert [loop["state"] for loop in loops] == ["steady", "undecided"]
    nothing = [r for r in summarise(path)["results"] if r["block_bytes"] == 131072]
    assert [r["bytes_per_s"] for r in nothing] == [None, None]


@pytest.mark.parametrize("test", TESTS)
def test_the_page_has_its_data_and_comes_out_the_same(
    test: str, good: dict[str, Path], models: dict[str, ReportModel]
) -> None:
    shown = [x for part in models[test].sections for x in (*part.figures, *part.tables)]
    assert {item.data for item in shown} <= set(models[test].data)
    first = write_report(good[test]).read_bytes()
    assert write_report(good[test]).read_bytes() == first
    match = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', first.decode(), re.S)
    assert match is not None
    assert json.loads(match[1]) == json.loads(json.dumps(summarise(good[test])))


@pytest.mark.parametrize("test", TESTS)
def test_every_key_of_the_summary_is_documented(test: str, good: dict[str, Path]) -> None:
    text = (Path(__file__).parents[3] / "docs/reference/json.md").read_text(encoding="utf-8")
    words = set(re.findall(r"`([a-z0-9_]+)`", text))

    def keys(value: object) -> set[str]:
        if isinstance(value, dict):
            skipped = {"versions"}  # The keys of this object are program names.
            inner = (keys(part) for key, part in value.items() if key not in skipped)
            return set(value).union(*inner)
        return set().union(*map(keys, value)) if isinstance(value, list) else set()

    summary = summarise(good[test])
    assert summary["schema"] == f"writecliff/{test}/1"
    assert f'"writecliff/{test}/1"' in text
    assert keys(summary) - words == set()


@pytest.mark.parametrize(
    ("kind", "says"), [("fio", "idle between the steps"), ("sim", "the last I/Os of a step before")]
)
def test_pauses_between_the_steps_are_a_share_of_all_the_time(
    kind: Literal["fio", "sim"], says: str, tmp_path: Path
) -> None:
    drive = FakeEngine(capacity_bytes=2_000_000_000, kind=kind)

    def rest(number: int) -> None:
        drive.clock_ns += 3_000_000_000

    drive.before_run = rest
    procedure = procedure_from_mapping("lat", {"step_seconds": 1.0})
    run_procedure(procedure, drive, tmp_path / "r")
    (idle,) = [text for text in model(tmp_path / "r").disclosures if says in text]
    count = len(rows(tmp_path / "r"))
    assert f"for {units.duration(3e9 * (count - 1))}" in idle
    share = float(re.findall(r"([0-9.]+) % of the time", idle)[0])
    assert 70 < share < 75


@pytest.mark.parametrize("test", TESTS)
def test_headlines_have_the_interval_of_their_window(good: dict[str, Path], test: str) -> None:
    headlines = report_of(RunDirectory.open(good[test])).headlines()
    keys = [item.key for item in headlines]
    assert len(set(keys)) == len(keys)
    wanted = {"iops": "iops_4k_0_100", "tp": "tp_1024k_0_100", "lat": "latency_4k_0_100_mean"}
    (item,) = (item for item in headlines if item.key == wanted[test])
    assert item.interval is not None
    assert item.interval.low < item.value < item.interval.high
    assert item.higher_is_better is (test != "lat")
