"""The CSV files behind figures and tables."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests.support.sample_report import sample_report
from writecliff.errors import StoreError
from writecliff.report import csvs
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
