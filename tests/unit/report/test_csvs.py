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
from writecliff.report.table_csv import table_csv


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


def cells(*rows: str) -> str:
    """The CSV of a table of "a | b" rows, the first of which is its header."""
    header, *others = (tuple(row.split(" | ")) for row in rows)
    return table_csv(Table("T", header, tuple(others), ("left",) * len(header)))


def test_columns_of_numbers_have_their_unit_in_the_header() -> None:
    assert cells("Load | IOPS | p99 | Lifetime", "a, b | 1,234,567.5 | 950 µs | 1.25 x",
                 "12,3456 | - | 1.2 ms | not enough samples") == (
        "Load,IOPS,p99 (µs),Lifetime (x)\n"
        '"a, b",1234567.5,950,1.25\n'
        '"12,3456",,1200,\n'
    )  # fmt: skip


def test_an_interval_is_two_columns() -> None:
    intervals = "16.78 ms to 17.3 ms", "up to 9 s", "1,000 ms or more", "-"
    assert cells("q | 95 %", *(f"x | {text}" for text in intervals)) == (
        'q,"95 %, low (ms)","95 %, high (ms)"\nx,16.78,17.3\nx,,9000\nx,1000,\nx,,\n'
    )


def test_a_table_of_quantities_below_each_other_is_turned() -> None:
    rows = (
        "TP at end | 512.0 MB/s | 90.5 MB/s",
        "ART peak | 4 ms | 2 s",
        "Recovery (minutes) | - | 12",
    )
    assert cells(" | AG1 | AG2", *rows) == (
        ",TP at end (MB/s),ART peak (ms),Recovery (minutes)\nAG1,512.0,4,\nAG2,90.5,2000,12\n"
    )


def test_a_table_without_rows_is_its_header() -> None:
    assert table_csv(Table("T", ("a", "b"), (), ("left", "left"))) == "a,b\n"


def test_text_stays_text() -> None:
    assert cells("What | Before | After", "Model | X 100 | X 100", "Hours | 1,200 | 1,201") == (
        "What,Before,After\nModel,X 100,X 100\nHours,1200,1201\n"
    )


def test_every_figure_and_table_has_its_file() -> None:
    model = sample_report(figures=("bars",))
    numbers, of_table = model.data
    assert (numbers.name, of_table.name) == ("numbers.csv", "table-tabular-data.csv")
    assert [t.data for s in model.sections for t in s.tables] == [of_table]
    assert [f.data for s in model.sections for f in s.figures] == [numbers]
    assert len(rows(of_table.text)) == 60


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


@pytest.mark.parametrize("name", ["../../out.csv", "/etc/out.csv", "a\0b.csv", "..", "x" * 5000])
def test_names_of_files_stay_in_their_folder(tmp_path: Path, name: str) -> None:
    csvs.write_files([DataFile(name, "a\n1\n")], tmp_path / "csv")
    (path,) = (tmp_path / "csv").iterdir()
    assert path.read_text() == "a\n1\n"
    assert list(tmp_path.iterdir()) == [tmp_path / "csv"]
