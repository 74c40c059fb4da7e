"""Drive states over a saturation test: fresh out of box, transition, steady state."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.synthetic_run import SECOND_NS, Drive, build_run
from writecliff.cli.main import main
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.report import build_report, report_of
from writecliff.report.testdata import load
from writecliff.report.wsat_data import WsatData
from writecliff.store.rundir import RunDirectory

SHAPE: dict[str, Any] = {"rounds": 8, "steps_per_round": 4, "step_s": 450.0}
STEP_NS = round(SHAPE["step_s"] * SECOND_NS)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return two drives, the second of which has a later cliff."""
    folder = tmp_path_factory.mktemp("runs")
    late = Drive(noise=0.002, cliff_fills=2.2)
    return [
        build_run(folder / "early", Drive(noise=0.002), **SHAPE),
        build_run(folder / "late", late, changes={"seed": 8}, **SHAPE),
    ]


def wsat_of(path: Path) -> WsatData:
    return WsatData(load(RunDirectory.open(path)))


def test_a_drive_leaves_its_fresh_state_at_its_cliff(runs: list[Path]) -> None:
    for path, cliff in zip(runs, (1.1, 2.2), strict=True):
        wsat = wsat_of(path)
        step = wsat.leaves_fob
        assert step is not None
        capacity = wsat.data.capacity_bytes
        assert wsat.before_bytes[step] / capacity <= cliff + 0.5
        assert wsat.written_bytes[step] / capacity >= cliff
        assert wsat.becomes_steady == wsat.window.start > step


def test_a_drive_without_a_cliff_never_leaves_it(tmp_path: Path) -> None:
    flat = Drive(noise=0.002, saturated_iops=84_000.0, cliff_fills=1e9)
    wsat = wsat_of(build_run(tmp_path / "flat", flat, **SHAPE))
    assert wsat.leaves_fob is None
    assert wsat.becomes_steady is not None


def test_a_drive_that_relocates_nothing_is_not_called_saturated(
    runs: list[Path], tmp_path: Path
) -> None:
    """Check IOPS that are level at a write amplification of 1, as in PTS-C segments."""
    flat = Drive(noise=0.002, saturated_iops=84_000.0, cliff_fills=1e9)
    path = build_run(tmp_path / "flat", flat, **SHAPE)
    report, model = report_of(RunDirectory.open(path)), build_report(RunDirectory.open(path))
    assert wsat_of(path).unsaturated
    assert report.headlines()[0].label == "Steady, not saturated"
    assert model.verdict.headline.endswith("; the load does not saturate the drive")
    assert "No data was relocated (write amplification 1.02)" in " ".join(model.verdict.meaning)
    saturated = report_of(RunDirectory.open(runs[0]))
    assert saturated.headlines()[0].label == "Saturated"
    assert "saturate the drive" not in saturated.verdict().headline


def test_a_drive_at_its_fresh_speed_that_relocates_is_saturated(tmp_path: Path) -> None:
    """The drive's controller or link limits it before and after."""
    hidden = Drive(noise=0.002, saturated_iops=84_000.0)
    assert not wsat_of(build_run(tmp_path / "hidden", hidden, **SHAPE)).unsaturated


@pytest.mark.draws
def test_compare_draws_the_shapes_over_time_with_the_states_marked(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", *map(str, runs), "--output", str(tmp_path / "c.html")]
    assert main([*words, "--csv", str(tmp_path / "csv"), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    html = (tmp_path / "c.html").read_text()
    begin = html.index('<figure id="saturation-relative-time"')
    drawing = html[begin : html.index("</figure>", begin)]
    for text in ("leaves FOB", "steady state begins", "Time (h)", "IOPS relative to peak"):
        assert text in drawing
    assert "When the drives change their state" in html
    marks = {(c["name"], c["contender"]): c["marks"] for c in summary["curves"]}
    with (tmp_path / "csv" / "moments.csv").open() as file:
        rows = {row["contender"]: row for row in csv.DictReader(file)}
    assert len(rows) == 2
    for label, path in zip(rows, runs, strict=True):
        wsat = wsat_of(path)
        assert wsat.leaves_fob is not None
        left_ns = marks["saturation-relative-time", label]["leaves FOB"]
        assert left_ns == wsat.end_ns[wsat.leaves_fob]
        assert float(rows[label]["leaves_FOB_time_ns"]) == pytest.approx(left_ns)
        fills = marks["saturation-relative", label]["leaves FOB"]
        assert float(rows[label]["leaves_FOB_drive_fills"]) == pytest.approx(fills)
    early, late = (marks["saturation-relative-time", label]["leaves FOB"] for label in rows)
    assert early < late


def test_response_times_are_drawn_over_drive_fills(runs: list[Path]) -> None:
    report = build_report(RunDirectory.open(runs[0]))
    (figure,) = (f for f in report.figures if f.name == "latency-fills")
    for text in ("ART", "99.999 %", "MRT", "Drive fills since the purge"):
        assert text in figure.svg
    (file,) = (file for file in report.data if file.name == "latency-fills.csv")
    rows = list(csv.DictReader(file.text.splitlines()))
    wsat = wsat_of(runs[0])
    steps = len(wsat.rows)
    assert [row["statistic"] for row in rows].count("ART") == steps
    longest = [float(row["latency_ns"]) for row in rows if row["statistic"] == "MRT"]
    assert longest == pytest.approx([row.latency_max_ns for row in wsat.rows])
    nines = [float(r["latency_ns"]) for r in rows if r["statistic"].startswith("99.999 %")]
    assert 0 < max(nines) <= max(longest)


@pytest.mark.parametrize(("end", "text"), [(("steady", "time"), "steady or 24 h"),
                                           (("capacity",), "4X user capacity")])  # fmt: skip
def test_the_header_names_the_preconditioning(
    runs: list[Path], end: tuple[str, ...], text: str
) -> None:
    setup = procedure_from_mapping("wsat", {"end": list(end)}).setup(wsat_identity(runs))
    assert setup["precondition"] == "WDPC, RND 4KiB W"
    assert setup["precondition_toio"] == "TC 4/QD 32"
    assert setup["precondition_duration"] == text
    header = build_report(RunDirectory.open(runs[0])).header
    assert dict(header.columns[2].rows)["SS Rounds"] == wsat_of(runs[0]).view.text


def wsat_identity(runs: list[Path]) -> Any:
    return load(RunDirectory.open(runs[0])).manifest.device
