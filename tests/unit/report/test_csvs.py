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
from writecliff.report.model import DataFile, Section, Table


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_unknown_is_empty_and_floats_have_nine_digits() -> None:
    text = csvs.csv_text(("a", "b", "c"), [(None, float("nan"), 1 / 3), ("x,y", 7, 1e9)])
    assert text == 'a,b,c\n,,0.333333333\n"x,y",7,1e+09\n'


def test_series_in_long_form() -> None:
    series = [Line("100/0", [512, 4096], [1.5, float("nan")])]
    assert csvs.lines_csv(series, "rw_mix", "block_bytes", "iops") == (
        "rw_mix,block_bytes,iops\n100/0,512,1.5\n100/0,4096,\n"
    )


def test_table_cells_lose_their_separators_only() -> None:
    cells = ("1,234,567.5", "25,254.7 IOPS", "4,5", "12,3456", "a, b")
    table = Table("T", tuple("abcde"), (cells,), ("left",) * 5)
    (row,) = rows(csvs.table_csv(table))
    assert list(row.values()) == ["1234567.5", "25254.7 IOPS", "4,5", "12,3456", "a, b"]


def test_every_figure_and_table_has_its_file() -> None:
    model = sample_report(figures=("bars",))
    numbers, cells = model.data
    assert (numbers.name, cells.name) == ("numbers.csv", "table-tabular-data.csv")
    assert [t.data for s in model.sections for t in s.tables] == [cells]
    assert [f.data for s in model.sections for f in s.figures] == [numbers]
    assert len(rows(cells.text)) == 60


def test_a_figure_or_table_may_name_its_file() -> None:
    table = Table("T", ("a",), (("1",),), ("left",), data="a.csv")
    file = DataFile("a.csv", "a\n1\n")
    (part,), files = csvs.with_data((Section("S", "", tables=(table,)),), (file,))
    assert (part.tables[0].data, files) == (file, (file,))
    with pytest.raises(KeyError):
        csvs.with_data((Section("S", "", tables=(table,)),))


def test_tables_of_one_title_get_names_of_their_own() -> None:
    table = Table("Tabular data", ("a",), (("1",),), ("left",))
    untitled = Table("", ("a",), (("2",),), ("left",))
    _, files = csvs.with_data((Section("S", "", tables=(table, table, untitled)),))
    assert [file.name for file in files] == [
        "table-tabular-data.csv", "table-tabular-data-2.csv", "table-s.csv",
    ]  # fmt: skip


def test_files_are_whole_and_others_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "numbers"
    csvs.write_files([DataFile("a.csv", "x\n1\n")], folder)
    (folder / "mine.txt").write_text("kept")
    csvs.write_files([DataFile("a.csv", "x\n2\n")], folder)
    assert sorted(p.name for p in folder.iterdir()) == ["a.csv", "mine.txt"]
    assert (folder / "a.csv").read_text() == "x\n2\n"
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "absent" / "x", tmp_path / "file"):
        with pytest.raises(StoreError, match="cannot write"):
            csvs.write_files([DataFile("a.csv", "")], path)
