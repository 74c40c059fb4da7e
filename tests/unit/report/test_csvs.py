"""Numbers as CSV: what figures and tables show, and the row for cloudharmony's tables."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.sample_report import sample_report
from writecliff.errors import StoreError
from writecliff.procedures.model import StageHistory, TrackingVariable
from writecliff.report import cloudharmony, csvs
from writecliff.report.axes import Line
from writecliff.report.model import DataFile, Table


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_unknown_is_empty_and_floats_have_nine_digits() -> None:
    text = csvs.csv_text(("a", "b", "c"), [(None, float("nan"), 1 / 3), ("x,y", 7, 1e9)])
    assert text == 'a,b,c\n,,0.333333333\n"x,y",7,1e+09\n'


def test_series_and_grids() -> None:
    series = [Line("100/0", [512, 4096], [1.5, float("nan")])]
    assert csvs.lines_csv(series, "rw_mix", "block_bytes", "iops") == (
        "rw_mix,block_bytes,iops\n100/0,512,1.5\n100/0,4096,\n"
    )
    grid = csvs.grid_csv("block_bytes", [512, 4096], ["0/100", "100/0"], [[1, 2.5], [None, 4]])
    assert grid == "block_bytes,0/100,100/0\n512,1,2.5\n4096,,4\n"
    with pytest.raises(ValueError, match="zip"):
        csvs.grid_csv("a", [1, 2], ["x"], [[1]])


def test_table_cells_lose_their_separators_only() -> None:
    cells = ("1,234,567.5", "25,254.7 IOPS", "4,5", "12,3456", "a, b")
    table = Table("T", tuple("abcde"), (cells,), ("left",) * 5)
    (row,) = rows(csvs.table_csv(table))
    assert list(row.values()) == ["1234567.5", "25254.7 IOPS", "4,5", "12,3456", "a, b"]


def test_every_figure_and_table_has_its_file() -> None:
    model, files = csvs.named_tables(sample_report(figures=("bars",)))
    names = [file.name for file in files]
    assert names == ["numbers.csv", "table-tabular-data.csv"]
    assert [t.data for s in model.sections for t in s.tables] == ["table-tabular-data.csv"]
    assert {f.data for s in model.sections for f in s.figures} <= set(names)
    assert len(rows(files[1].text)) == 60


def test_tables_of_one_title_get_names_of_their_own() -> None:
    from dataclasses import replace

    model = sample_report(figures=())
    table = model.sections[1].tables[0]
    twice = replace(model, sections=(replace(model.sections[1], tables=(table, table)),))
    assert [file.name for file in csvs.data_files(twice)] == [
        "numbers.csv", "table-tabular-data.csv", "table-tabular-data-2.csv",
    ]  # fmt: skip


def test_files_are_whole_and_others_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "numbers"
    csvs.write_files([DataFile("a.csv", "x\n1\n")], folder)
    (folder / "mine.txt").write_text("kept")
    csvs.write_files([DataFile("a.csv", "x\n2\n")], folder)
    assert sorted(p.name for p in folder.iterdir()) == ["a.csv", "mine.txt"]
    assert (folder / "a.csv").read_text() == "x\n2\n"
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "absent" / "x", tmp_path / "file"):
        with pytest.raises(StoreError, match="cannot write"):
            csvs.write_files([DataFile("a.csv", "")], place)


# -- cloudharmony ------------------------------------------------------------------------------


def step(number: int, block_bytes: int, read_pct: float, **values: Any) -> Any:
    given = {
        "round": number, "block_bytes": block_bytes, "read_pct": read_pct, "iops": 1000.0,
        "bytes_per_s": 0.0, "latency_mean_ns": 1e6, "latency_max_ns": 5_000_000,
    }  # fmt: skip
    return SimpleNamespace(**{**given, **values})


def run_of(test: str, make: Any, variable: TrackingVariable, rounds: int = 6) -> Any:
    """What `testdata.load` gives of a run with these rows in its rounds."""
    stage = StageHistory("rounds", (variable,), max_rounds=25)
    for number in range(1, rounds + 1):
        stage.rows += make(number)
        stage.round_complete(number)
    device = SimpleNamespace(
        target="/dev/sdx", model="Drive", interface="SATA 6Gb/s", capacity_bytes=120_034_123_776,
        simulated=False,
    )  # fmt: skip
    manifest = SimpleNamespace(
        procedure=test, device=device, options={"threads": 4, "queue_depth": 32},
        versions={"fio": "fio-3.33", "writecliff": "0.1.0"}, host={"cpu": "Example CPU"},
        setup={"active_range": "100%"}, purge=SimpleNamespace(method="security erase"),
        created="2026-03-02T15:30:00+00:00", updated="2026-03-02T19:20:00+00:00",
    )  # fmt: skip
    return SimpleNamespace(
        manifest=manifest, name="run-1", status="complete",
        history=SimpleNamespace(stages={"rounds": stage}),
        stage=lambda phase: stage if phase == "rounds" else None,
    )  # fmt: skip


@pytest.fixture
def row_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    def row(data: Any) -> dict[str, str]:
        monkeypatch.setattr(cloudharmony, "load", lambda run: data)
        (found,) = rows(cloudharmony.cloudharmony_csv(data))
        return found

    return row


def test_iops_row(row_of: Any) -> None:
    def make(number: int) -> list[Any]:
        return [
            step(number, 4096, 0.0, iops=10_000.0 + 10 * number),
            step(number, 1 << 20, 65.0, iops=150.4),
            step(number, 512, 100.0, iops=90_000.0),
        ]

    variable = TrackingVariable("RND 4KiB W IOPS", "IOPS", lambda rows: rows[0].iops)
    row = row_of(run_of("iops", make, variable))
    assert row["test"] == "iops"
    assert row["iops_4k_0_100"] == "10040"  # rounds 2 to 6, the last window that is steady
    assert (row["iops_1m_65_35"], row["iops_512b_100_0"]) == ("150", "90000")
    assert row["iops_8k_0_100"] == ""
    assert (row["ss_start"], row["ss_stop"], row["ss_rounds"]) == ("2", "6", "2-6")
    assert (row["ss_average"], row["ss_slope"], row["ss_y_intercept"]) == ("10040", "10", "10000")
    assert row["ss_linear_fit_formula"] == "10 * R + 10000"
    assert (row["ss_max_data_excursion"], row["ss_largest_data_excursion"]) == ("2008", "40")
    assert (row["target_size_gb"], row["active_range"], row["threads"]) == ("112", "100", "4")
    assert row["test_started"] == "2026-03-02 15:30:00"
    assert (row["fio_version"], row["meta_cpu"]) == ("fio-3.33", "Example CPU")
    assert row["meta_provider"] == row["iteration"] == ""


def test_columns_are_those_of_its_tables() -> None:
    """Numbers of columns of its schema at commit 9b15364: 81 common ones and each test's own."""
    lengths = {t: len(cloudharmony.columns(t)) for t in ("iops", "throughput", "latency", "hir")}
    common = len(cloudharmony.columns("xsr"))
    assert common == 81
    assert lengths == {
        "iops": common + 56, "throughput": common + 4, "latency": common + 24, "hir": common + 6,
    }  # fmt: skip
    assert len(cloudharmony.columns("wsat")) == common - 13 + 1
    for test in lengths:
        names = cloudharmony.columns(test)
        assert names == sorted(set(names))


def test_latency_is_in_ms_and_throughput_in_mib(row_of: Any) -> None:
    variable = TrackingVariable("average latency", "µs", lambda rows: rows[0].latency_mean_ns / 1e3)
    make = lambda number: [step(number, 4096, 0.0, latency_max_ns=number * 1_000_000)]  # noqa: E731
    row = row_of(run_of("lat", make, variable))
    assert row["test"] == "latency"
    assert (row["latency_4k_0_100_mean"], row["latency_4k_0_100_max"]) == ("1", "4")
    assert row["ss_average"] == "1"
    variable = TrackingVariable("write", "MB/s", lambda rows: rows[0].bytes_per_s / 1e6)
    make = lambda number: [step(number, 1 << 20, 0.0, bytes_per_s=512.0 * 2**20)]  # noqa: E731
    row = row_of(run_of("tp", make, variable))
    assert (row["throughput_1024k_0_100"], row["ss_average"]) == ("512", "512")


def test_not_steady_leaves_the_window_empty(row_of: Any) -> None:
    variable = TrackingVariable("v", "IOPS", lambda rows: rows[0].iops)
    make = lambda number: [step(number, 4096, 0.0, iops=1000.0 * number)]  # noqa: E731
    row = row_of(run_of("iops", make, variable))
    assert [name for name, value in row.items() if name.startswith("ss_") and value] == []
    assert row["iops_4k_0_100"] == "4000"
    wsat = row_of(run_of("wsat", make, variable))
    assert wsat["wsat_iops"] == ""
