"""`writecliff report` and `writecliff demo`."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from tests.support.fake_engine import FakeEngine, interrupted_at


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder where the first test leaves its run for the others."""
    return tmp_path_factory.mktemp("kept") / "r"


@pytest.fixture
def stored(cli: CommandLine, template: Path) -> Path:
    if template.exists():
        return Path(shutil.copytree(template, "r"))
    completed = cli("test wsat --on sim:fake --end time --time-hours 0.1 --output r --quiet")
    assert completed.code == 0
    shutil.copytree("r", template)
    return Path("r")


def test_report_is_written_beside_the_run(cli: CommandLine, stored: Path) -> None:
    at_the_end = (stored / "report.html").read_bytes()
    (stored / "report.html").unlink()
    completed = cli("report r")
    path, verdict = completed.out.splitlines()
    assert (completed.code, path, completed.err) == (0, "r/report.html", "")
    assert verdict.startswith("Ended by 0.1 h of writes before a round was complete. At the end ")
    assert (stored / "report.html").read_bytes() == at_the_end, "the same run, the same bytes"
    page = (stored / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>") or page.startswith("<!doctype html>")
    assert "Formula 480" in page


@pytest.mark.parametrize("name", ["y[1]", "wsat-2026-11-22T12:00:00"])
def test_a_run_is_resumed_and_reported_by_its_very_name(
    cli: CommandLine, drive: FakeEngine, name: str
) -> None:
    """Check that `y[1]` is not a pattern, which `y1` would match, and a colon makes no URI."""
    words = "test wsat --on sim:fake --end time --quiet --time-hours"
    assert cli(f"{words} 0.2 --output y1").code == 0
    drive.before_run = interrupted_at(drive.runs + 3)
    assert cli(f"{words} 0.1 --output {name}").code == 130
    drive.before_run = None
    assert cli(f"test wsat --resume {name} --quiet").code == 0
    at_the_end = Path(name, "report.html").read_bytes()
    completed = cli(f"report {name} --json")
    assert completed.code == 0, completed.err
    assert json.loads(completed.out)["summary"]["figures"]["steps"] == 6
    assert Path(name, "report.html").read_bytes() == at_the_end


def test_report_elsewhere_and_as_json(cli: CommandLine, stored: Path) -> None:
    (stored / "report.html").unlink()
    completed = cli("report r --output mine.html --json")
    assert completed.code == 0
    answer = json.loads(completed.out)
    assert answer["report"] == "mine.html"
    assert answer["summary"]["run"]["procedure"] == "wsat"
    assert Path("mine.html").is_file()
    assert not (stored / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("report nowhere", "nowhere is not a run directory"),
        ("report r --output .", ". is a directory"),
        ("report r --output none/x.html", "none is not a directory"),
        ("report r --output x.pdf --pdf", "x.pdf cannot be both the HTML and the PDF file"),
        ("report r --csv r/manifest.json", "r/manifest.json is not a directory"),
        ("report r --csv none/x", "none is not a directory"),
        ("demo --on /dev/sda", "runs on simulated drives only, not on /dev/sda"),
        ("demo --on sim:fake --output r", "r exists and is not empty"),
        ("demo --on sim:unknown", "no simulated drive 'sim:unknown'"),
    ],
)
def test_refusals(cli: CommandLine, stored: Path, words: str, message: str) -> None:
    completed = cli(words)
    assert (completed.code, completed.out) == (2, "")
    assert message in completed.err


def test_report_as_pdf_and_numbers(cli: CommandLine, stored: Path) -> None:
    pytest.importorskip("weasyprint", reason="needs the extra pdf and Pango")
    completed = cli("report r --pdf --csv numbers")
    assert (completed.code, completed.err) == (0, "")
    assert completed.out.startswith(
        "r/report.html\nr/report.pdf\nnumbers\nEnded by 0.1 h of writes before"
    )
    assert (stored / "report.pdf").read_bytes().startswith(b"%PDF-")
    names = {path.name for path in Path("numbers").iterdir()}
    assert {"steps.csv", "histogram.csv"} <= names
    page = (stored / "report.html").read_text()
    assert all(f'download="{name}"' in page for name in names)


def test_no_weasyprint_writes_nothing(
    cli: CommandLine, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    completed = cli("report r --output new.html --pdf --csv numbers")
    assert (completed.code, completed.out) == (1, "")
    assert "PDF reports require WeasyPrint, which is not installed" in completed.err
    assert 'pip install "writecliff[pdf]"' in completed.err
    assert not Path("new.html").exists()
    assert not Path("numbers").exists()


def test_demo_shows_a_cliff(cli: CommandLine, drive: FakeEngine) -> None:
    drive.capacity_bytes = 60_000_000_000
    completed = cli("demo --on sim:fake --json --quiet")
    assert (completed.code, completed.err) == (0, "")
    answer = json.loads(completed.out)
    assert answer["run"] == "demo"
    assert Path(answer["report"]).is_file()
    assert answer["summary"]["run"]["status"] == "complete"
