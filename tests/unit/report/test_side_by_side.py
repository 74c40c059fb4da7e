"""Grids of two drives on one page: values side by side, differences, marks on best values."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_engine import FakeEngine
from writecliff.cli.main import main
from writecliff.procedures.framework import run_procedure
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.report import build_report
from writecliff.report.axes import depth_axis
from writecliff.report.campaigns.results import metric_text
from writecliff.report.compared import Grid
from writecliff.report.comparison import compare
from writecliff.report.comparison.grid_page import grid_sections
from writecliff.report.comparison.grids import SharedGrid
from writecliff.report.model import Section
from writecliff.store.rundir import RunDirectory

SIZES = [1024.0, 128.0, 64.0, 32.0, 16.0, 8.0, 4.0, 0.5]
MIXES = [0.0, 65.0, 100.0]
Make = Callable[..., Path]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Return `make(test, model, speed, **options)`, which runs on a formula drive."""

    def run(test: str, model: str, speed: float, **options: Any) -> Path:
        path = tmp_path_factory.mktemp("runs") / f"{test}-{model}"
        drive = FakeEngine(capacity_bytes=2_000_000_000, model=model, speed=speed)
        procedure = procedure_from_mapping(test, {"step_seconds": 1.0, **options})
        run_procedure(procedure, drive, path)
        return path

    return run


@pytest.fixture(scope="module")
def pair(make: Make) -> tuple[Path, Path]:
    """Return block-size runs of two drives, where B is 1.5 times as fast."""
    options = {"block_sizes_kib": SIZES, "read_pcts": MIXES}
    return make("blocksizes", "A", 1.0, **options), make("blocksizes", "B", 1.5, **options)


def table_of(html: str, caption: str) -> str:
    """Return the table with a caption, as HTML of the page."""
    tables = re.findall(r"<table>.*?</table>", html, re.DOTALL)
    (table,) = (text for text in tables if f"<caption><div>{caption}" in text)
    return table


@pytest.fixture(scope="module")
def compared(
    pair: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    """Return the folder of `compare` with page, PDF and CSV, and its JSON."""
    pytest.importorskip("weasyprint", reason="needs the extra pdf and Pango")
    folder = tmp_path_factory.mktemp("page")
    words = ["compare", *map(str, pair), "--output", str(folder / "c.html"), "--pdf"]
    with pytest.MonkeyPatch.context() as patch:
        text = io.StringIO()
        patch.setattr("sys.stdout", text)
        assert main([*words, "--csv", str(folder / "csv"), "--json"]) == 0
    return folder, json.loads(text.getvalue())


def test_the_page_has_eight_by_three_with_differences_and_the_winner(
    compared: tuple[Path, dict[str, Any]],
) -> None:
    html = (compared[0] / "c.html").read_text()
    part = html[html.index("<h2>IOPS by block size and mix") :]
    values = table_of(part[: part.index("</section>")], "Side by side")
    assert [re.findall(r"<th[^>]*>([^<]*)</th>", line) for line in values.split("</tr>")[:2]] == [
        ["Block size, R/W", "0/100", "65/35", "100/0"],
        ["", *["Fake A", "Fake B", "Difference"] * 3],
    ]
    lines = re.findall(r"<tr>(<td.*?)</tr>", values)
    assert len(lines) == 8
    for line in lines:
        assert line.count("✓</td>") == 3
        assert len(re.findall(r'class="right better">\+\d+ %<', line)) == 3


def test_pdf_csv_and_json_have_the_same(compared: tuple[Path, dict[str, Any]]) -> None:
    pypdf = pytest.importorskip("pypdf", reason="reads the PDF")
    folder, answer = compared
    (grid,) = (entry for entry in answer["grids"] if entry["name"] == "iops")
    assert (grid["unit"], grid["difference_unit"], len(grid["cells"])) == ("IOPS", "%", 24)
    assert {cell["best"] for cell in grid["cells"]} == {"Fake B"}
    with (folder / "csv" / "blocksizes-iops-grid.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 48
    cell = grid["cells"][0]
    of_b = next(row for row in rows if row["contender"] == "Fake B")
    assert (of_b["row"], of_b["column"], of_b["best"]) == (cell["row"], cell["column"], "1")
    assert float(of_b["value"]) == pytest.approx(cell["values"][1])
    assert float(of_b["difference"]) == pytest.approx(cell["differences"][1])
    text = "\n".join(page.extract_text() for page in pypdf.PdfReader(folder / "c.pdf").pages)
    assert "IOPS by block size and mix" in text
    shown = f"{cell['values'][1]:,.0f} ✓"
    assert shown in text


def test_values_are_those_of_the_reports_and_lower_latency_wins(pair: tuple[Path, Path]) -> None:
    comparison = compare(list(pair))
    by_name = {grid.sample.name: grid for grid in comparison.grids}
    assert list(by_name) == ["iops", "average", "maximum"]
    results = [build_report(RunDirectory.open(path)).summary["results"] for path in pair]
    for number, result in enumerate(results):
        value = next(
            r["value"]
            for r in result
            if (r["metric"], r["block_kib"], r["read_pct"]) == ("latency_avg", 4.0, 65.0)
        )
        assert by_name["average"].value(("4KiB", "65/35"), number) == pytest.approx(value)
    assert by_name["average"].best(("4KiB", "65/35")) == 1
    difference = by_name["average"].difference(("4KiB", "65/35"), 1)
    assert difference == pytest.approx(-100 / 3, abs=2)


def grid(values: dict[tuple[str, str], float], **more: Any) -> Grid:
    rows, columns = (list(dict.fromkeys(key[part] for key in values)) for part in (0, 1))
    fields: dict[str, Any] = {"unit": "IOPS", "higher_is_better": True, **more}
    return Grid(name="g", title="Speed", corner="QD", rows=rows, columns=columns, values=values,
                **fields)  # fmt: skip


FIRST = {("1", "R"): 100.0, ("1", "W"): 50.0, ("8", "R"): 400.0}


def test_a_cell_of_one_drive_alone_is_not_compared() -> None:
    shared = SharedGrid("t", [grid(FIRST), grid({("1", "R"): 90.0, ("8", "W"): 1.0})])
    assert (shared.rows, shared.columns) == (["1"], ["R"])
    assert shared.best(("1", "R")) == 0
    assert shared.best(("8", "W")) is None
    assert shared.difference_text(("1", "R"), 1) == "-10 %"


def test_nearly_equal_values_have_no_winner() -> None:
    shared = SharedGrid("t", [grid(FIRST), grid({("1", "R"): 100.05, ("8", "R"): 404.0})])
    assert shared.best(("1", "R")) is None
    assert shared.difference_text(("1", "R"), 1) == "equal"
    assert shared.best(("8", "R")) == 1


def test_percentages_differ_in_points_and_zero_has_no_percent() -> None:
    share = {"unit": "%", "higher_is_better": False}
    shared = SharedGrid("t", [grid({("1", "R"): 5.0}, **share), grid({("1", "R"): 2.5}, **share)])
    assert shared.difference_text(("1", "R"), 1) == "-2.5 points"
    assert shared.better(("1", "R"), 1) is True
    none = SharedGrid("t", [grid({("1", "R"): 0.0}), grid({("1", "R"): 3.0})])
    assert none.difference(("1", "R"), 1) is None
    assert none.best(("1", "R")) == 1


def shown(shared: SharedGrid, labels: list[str]) -> Section:
    (section,) = grid_sections([shared], labels)
    return section


def test_wide_grids_have_their_differences_apart_and_a_third_drive_too() -> None:
    wide = {(f"{q}", f"{mix}"): 1.0 + q for q in (1, 2) for mix in range(6)}
    more = {key: 2 * value for key, value in wide.items()}
    two = shown(SharedGrid("t", [grid(wide), grid(more)]), ["A", "B"])
    assert [table.title for table in two.tables] == ["Side by side", "B against A"]
    assert set(two.tables[1].marks.values()) == {"better"}
    half = {key: value / 2 for key, value in wide.items()}
    three = shown(SharedGrid("t", [grid(wide), grid(more), grid(half)]), ["A", "B", "C"])
    assert [t.title for t in three.tables] == ["A", "B", "C", "B against A", "C against A"]
    assert set(three.tables[4].marks.values()) == {"worse"}
    assert three.tables[4].rows[0] == ("1", *["-50 %"] * 6)


def test_bars_have_a_group_for_each_row_and_lines_the_difference_on_a_second_axis() -> None:
    other = grid({key: 1.25 * value for key, value in FIRST.items()}, drawn="bars")
    bars = shown(SharedGrid("t", [grid(FIRST, drawn="bars"), other]), ["A", "B"])
    assert [figure.title for figure in bars.figures] == ["Speed, R", "Speed, W"]
    places: dict[str, Any] = {"drawn": "lines", "x": depth_axis([1, 8]), "places": [1.0, 8.0]}
    first = grid(FIRST, **places)
    tables = shown(SharedGrid("t", [first, replace(first, values=other.values)]), ["A", "B"])
    plot = json.loads(
        re.search(r'data-plots="([^"]*)"', tables.figures[0].svg)[1].replace("&quot;", '"')  # type: ignore[index]
    )
    assert plot["legend"] == ["A (left)", "B (left)", "B v A (right)"]
    assert [entry["y"]["name"] for entry in plot["plots"]] == ["IOPS", "Difference"]


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        ("iops", "IOPS"),
        ("write_iops", "IOPS of writes"),
        ("read_latency_p99.99", "99.99 % response time of reads"),
        ("latency_max", "maximum response time"),
        ("read_iops_per_thread", "read IOPS per thread"),
        ("tco_per_tb_written", "TCO per TB written"),
    ],
)
def test_metrics_of_campaigns_are_words(metric: str, text: str) -> None:
    assert metric_text(metric) == text
