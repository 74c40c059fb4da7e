"""Page and folder of a reproduction, with synthetic results."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from writecliff.errors import ConfigError, StoreError
from writecliff.lab.published import notes, output
from writecliff.lab.published.output import check_output, figures_csv, mapping, write_folder
from writecliff.lab.published.page import page_of
from writecliff.lab.published.reproduce import Reproduction
from writecliff.lab.published.tables import FAR, item_tables, missing_summary
from writecliff.published.figures import OTHERS, read_figures
from writecliff.published.modern import modern_figures
from writecliff.published.scores import Row
from writecliff.report.pages import render_page

shipped = notes.notes


@pytest.fixture(autouse=True)
def own_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    notes_shown = (notes.Note("nobody has this disk", device="hdd-none", metric="iops"),)
    monkeypatch.setattr(notes, "notes", lambda: notes_shown)


def test_the_page_lists_errors_comparisons_and_missing_figures(made_up: Reproduction) -> None:
    page = page_of(made_up)
    assert [section.title for section in page.sections] == [
        "Overall", "Agreement", "Winners of comparisons", "Large errors", "paper", "other",
        "Not simulated", "Conditions", "Loads", "Drives and times",
    ]  # fmt: skip
    assert page.sections[0].tables[1].rows == (
        ("paper", "7", "6", "17.5 %", "-", "-", "2.05 x", "66.7 %"),
        ("other", "2", "0", "-", "-", "-", "-", "-"),
    )
    assert "3 of 9 figures are not simulated" in page.disclosures[0]
    assert "66.7 % with the right winner, 1 with the wrong winner" in page.sections[2].intro
    assert page.disclosures[1].startswith("2 of 2 drives were simulated scaled down, to as little")
    assert page.disclosures[2] == "Not a figure: own.csv:11: value is 'much', not a number"
    (wrong,) = page.sections[2].tables[0].rows
    assert wrong[2:] == ("pm863-960 v mlc-a-800", "2", "0.5")
    assert [name for name, *_ in page.sections[-1].tables[0].rows] == ["pm863-960", "mlc-a-800"]


def test_drives_stand_side_by_side_and_every_figure_has_its_condition(
    made_up: Reproduction,
) -> None:
    beside, whole = item_tables(made_up.rows[:5])
    assert beside.header == ("", "", "pm863-960", "mlc-a-800")
    assert beside.rows[:3] == (
        ("IOPS, random 4 KiB 100 % read QD 32", "published, IOPS", "100,000", "80,000"),
        ("", "simulated", "110,000", "60,000"),
        ("", "error", "+10.0 %", f"{FAR} -25.0 %"),
    )
    assert whole.rows[2] == (
        "maximum latency, random 4 KiB 0 % read QD 32", "pm863-960", "10.0 ms", "4.00 ms",
        f"{FAR} 0.40 x", "sustained; random 4 KiB writes, 32 outstanding; 300\u00a0s", "",
    )  # fmt: skip
    assert whole.rows[1][-1] == "read from a plot"
    assert whole.rows[4][1:4] == ("pm863-960 v mlc-a-800", "+50.0 %", "+83.3 %")
    alone = item_tables(made_up.rows[5:7])
    assert len(alone) == 1
    assert alone[0].rows[1][-2:] == ("-", "not simulated: nobody has this disk")


def test_the_same_figures_give_the_same_page(made_up: Reproduction) -> None:
    html = render_page(page_of(made_up))
    assert html == render_page(page_of(made_up))
    assert html.count("<svg") == 4  # The plots show IOPS, latency, ratio and TBW.
    for name in ("agreement-iops", "agreement-latency", "agreement-ratio", "agreement-tbw"):
        assert f'id="{name}"' in html
    assert "nobody has this disk" in html
    (data,) = re.findall(r'<script type="application/json"[^>]*>\n(.*?)</script>', html, re.S)
    assert json.loads(data)["campaign"] == "own"


def test_reasons_are_gathered(made_up: Reproduction) -> None:
    assert missing_summary(made_up.missing).rows == (
        ("1", "hdd-none", "nobody has this disk"),
        ("1", "pm863-960", made_up.missing[1].why),
        ("1", "pm863-960", "unknown metric 'iosp': did you mean 'iops'?"),
    )


def test_the_mapping_for_programs(made_up: Reproduction) -> None:
    answer = json.loads(json.dumps(mapping(made_up), allow_nan=False))
    assert answer["schema"] == "writecliff/reproduce/2"
    assert [(row["kind"], row["reached"]) for row in answer["kinds"]] == [
        ("IOPS and throughput, pure loads", False),
        ("99.9 / 99.99 % and maxima", False),
        ("improvement tables, IOPS", False),
        ("endurance", None),
        ("right winner, all comparisons", False),
    ]
    assert answer["kinds"][1]["worst"]["error"] == pytest.approx(0.4)
    assert answer["kinds"][-1]["worst"] is None
    assert answer["skipped"] == [
        {"path": "own.csv", "line": 11, "why": "value is 'much', not a number"}
    ]
    assert answer["loads"][0]["drive"] == "pm863-960"
    assert answer["loads"][0]["metrics"]["latency_max_write"] == 3.5
    assert (answer["comparisons"]["count"], answer["comparisons"]["right"]) == (3, 2)
    first = answer["figures"][0]
    assert (first["value"], first["simulated"], first["error_pct"]) == (
        100_000.0, 110_000.0, pytest.approx(10.0),
    )  # fmt: skip
    assert (first["simulated_state"], first["simulated_seconds"]) == ("sustained", 10.0)
    assert first["device_hash"] == made_up.drives[0].device_hash
    assert [row["why"] for row in answer["not_simulated"]] == [row.why for row in made_up.missing]


def test_figures_csv_can_be_given_back(made_up: Reproduction, tmp_path: Path) -> None:
    path = tmp_path / "figures.csv"
    path.write_text(figures_csv(made_up))
    assert read_figures(path) == tuple(row.figure for row in made_up.rows)
    half = replace(made_up.rows[0].figure, compressible_pct=50.0)
    path.write_text(figures_csv(replace(made_up, rows=(Row(half, 1.0),))))
    assert read_figures(path) == (half,)
    path.write_text(figures_csv(made_up))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[3]["error_pct"] == "60"
    assert rows[6]["simulated"] == "" and rows[6]["reason"] == "nobody has this disk"


def test_the_folder_is_whole_or_not_there(
    made_up: Reproduction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "deep" / "out"
    check_output(path)
    page = write_folder(made_up, path)
    assert page == path / "report.html"
    names = {"report.html", "figures.csv", "loads.csv", "results.json"}
    assert {path.name for path in path.iterdir()} == names
    with pytest.raises(ConfigError, match="is not empty"):
        check_output(path)

    def full(path: Path, data: bytes) -> None:
        if path.name == "results.json":
            raise StoreError("cannot write: no space left")
        path.write_bytes(data)

    monkeypatch.setattr(output, "write_atomically", full)
    with pytest.raises(StoreError):
        write_folder(made_up, tmp_path / "second")
    assert [path.name for path in tmp_path.iterdir() if path.name != "own.csv"] == ["deep"]


def test_notes_are_about_what_they_name(made_up: Reproduction) -> None:
    figure = made_up.rows[0].figure
    assert notes.Note("r", metric="iops").is_about(figure)
    assert notes.Note("r", device="pm863-960", read_pct=100.0, block_kib=4.0).is_about(figure)
    assert not notes.Note("r", device="pm863-960", read_pct=0.0).is_about(figure)
    assert not notes.Note("r", item="table 2").is_about(figure)


def test_every_shipped_note_is_about_a_figure() -> None:
    figures = (*read_figures(), *read_figures(OTHERS), *modern_figures())
    for note in shipped():
        assert any(note.is_about(figure) for figure in figures), note


def test_a_reproduction_gives_the_reason_of_missing_figures(made_up: Reproduction) -> None:
    assert [row.why for row in made_up.missing] == [
        "unknown preset 'hdd-none': see `writecliff device list`",
        "unknown load 'dance' (use random, sequential, or a profile of `writecliff profile list`)",
        "unknown metric 'iosp': did you mean 'iops'?",
    ]
    assert [comparison.right for comparison in made_up.comparisons].count(False) == 1
