"""CSV files behind figures and tables."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests.support.sample_report import sample_report
from writecliff.errors import StoreError
from writecliff.report import csvs, kinds
from writecliff.report.axes import Line
from writecliff.report.kinds import Span
from writecliff.report.model import Section
from writecliff.report.table import Column, DataFile, Quantity, table
from writecliff.units import NOT_ENOUGH


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


def test_numbers_have_their_unit_in_the_header() -> None:
    columns = ("Load", Column("IOPS", kinds.decimals(1)), Column("p99", kinds.LATENCY),
               Column("Lifetime", kinds.digits(3, "x")), Column("Share", kinds.shares()))  # fmt: skip
    shown = table("T", columns, [("a, b", 1234567.5, 950e3, 1.25, 0.125),
                                 ("12,3456", None, 1.2e6, NOT_ENOUGH, None)])  # fmt: skip
    assert shown.rows == (("a, b", "1,234,567.5", "950.0 µs", "1.25 x", "12.5 %"),
                          ("12,3456", "-", "1.200 ms", NOT_ENOUGH, "-"))  # fmt: skip
    assert csvs.table_csv(shown) == (
        "Load,IOPS,p99 (ns),Lifetime (x),Share (%)\n"
        '"a, b",1234567.5,950000,1.25,12.5\n'
        '"12,3456",,1200000,,\n'
    )


def test_a_range_is_two_columns() -> None:
    values = (Span(16.78e6, 17.3e6), Span(None, 9e9), Span(1e9, None), Span(None, None), None)
    shown = table(
        "T", ("q", Column("95 %", kinds.ranges(kinds.LATENCY))), [("x", value) for value in values]
    )
    assert [text for _, text in shown.rows] == [
        "16.78 ms to 17.30 ms", "up to 9.000 s", "1.000 s or more", "-", "-",
    ]  # fmt: skip
    assert csvs.table_csv(shown) == (
        'q,"95 %, low (ns)","95 %, high (ns)"\nx,16780000,17300000\nx,,9e+09\nx,1e+09,\nx,,\nx,,\n'
    )


def test_quantities_below_each_other_become_columns() -> None:
    rates, times = kinds.decimals(1, "MB/s"), kinds.decimals(0, "min")
    rows = (
        ("TP at end", Quantity(512.0, rates), Quantity(90.5, rates)),
        ("ART peak", Quantity(4e6, kinds.LATENCY), Quantity(2e9, kinds.LATENCY)),
        ("Recovery", None, Quantity(12, times)),
    )
    assert csvs.table_csv(table("T", ("", "AG1", "AG2"), rows)) == (
        ",TP at end (MB/s),ART peak (ns),Recovery (min)\nAG1,512,4000000,\nAG2,90.5,2e+09,12\n"
    )


def test_quantities_beside_text_have_a_column_of_units() -> None:
    rows = (("Model", "X 100"), ("Capacity", Quantity(120e9, kinds.SIZE)))
    assert csvs.table_csv(table("T", ("", ""), rows)) == (
        ",value,unit\nModel,X 100,\nCapacity,1.2e+11,bytes\n"
    )


def test_a_table_without_rows_is_its_header() -> None:
    assert (
        csvs.table_csv(table("T", ("a", Column("b", kinds.NUMBER, key="b_ns")), ())) == "a,b_ns\n"
    )


def test_every_figure_and_table_has_its_file() -> None:
    model = sample_report(figures=("bars",))
    numbers, of_table = model.data
    assert (numbers.name, of_table.name) == ("numbers.csv", "table-tabular-data.csv")
    assert [t.data for s in model.sections for t in s.tables] == [of_table]
    assert [f.data for f in model.figures] == [numbers]
    assert len(rows(of_table.text)) == 60


def test_a_figure_or_table_may_name_its_file() -> None:
    shown = table("T", ("a",), [("1",)], data="a.csv")
    file = DataFile("a.csv", "a\n1\n")
    (part,), files = csvs.with_data((Section("S", "", tables=(shown,)),), (file,))
    assert (part.tables[0].data, files) == (file, (file,))
    with pytest.raises(KeyError):
        csvs.with_data((Section("S", "", tables=(shown,)),))


def test_tables_of_one_title_get_names_of_their_own() -> None:
    shown = table("Tabular data", ("a",), [("1",)])
    untitled = table("", ("a",), [("2",)])
    _, files = csvs.with_data((Section("S", "", tables=(shown, shown, untitled)),))
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
