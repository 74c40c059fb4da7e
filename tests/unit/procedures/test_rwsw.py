"""Tests of I/O captures (RWSW): the loads that they apply, and their results, on a small drive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_engine import FakeEngine
from tests.support.io_capture import write_capture
from tests.support.small_drive import write_small_drive
from writecliff.cli.main import main
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.procedures.rwsw.capture_options import CaptureProcedure
from writecliff.procedures.rwsw.multi_wsat import MultiWsat, MultiWsatOptions
from writecliff.procedures.rwsw.replay_native import ReplayNative, ReplayNativeOptions

SHORT = "--round-minutes 0.02 --sample-seconds 0.2"


@pytest.fixture
def portal(tmp_path: Path) -> Path:
    return write_capture(tmp_path)


def answer(capsys: pytest.CaptureFixture[str], words: str) -> dict[str, object]:
    assert main([*words.split(), "--json", "--quiet"]) == 0
    outcome: dict[str, object] = json.loads(capsys.readouterr().out)
    return outcome


def said_of(capsys: pytest.CaptureFixture[str], run: Path) -> dict[str, Any]:
    """Return the summary of a stored run."""
    assert main(["report", str(run), "--json"]) == 0
    summary: dict[str, Any] = json.loads(capsys.readouterr().out)["summary"]
    return summary


def test_each_step_has_its_own_streams_and_depth(portal: Path) -> None:
    test = ReplayNative(ReplayNativeOptions(capture=str(portal), speed_up=20.0))
    (stage,) = test.stages(FakeEngine().identify())
    first, second = (step.workload.jobs[0] for step in stage.steps(None, 1))  # type: ignore[arg-type]
    assert (first.queue_depth, second.queue_depth) == (6, 12)
    assert (first.duration_ns, second.duration_ns) == (3_000_000_000, 3_000_000_000)
    assert (first.read_pct, second.read_pct) == (pytest.approx(55), pytest.approx(80))
    assert first.writes is not None
    sizes = {size.bytes: (size.weight, size.sequential_pct) for size in first.writes.block_sizes}
    assert sizes == {8192: (pytest.approx(30), 0), 65_536: (pytest.approx(15), 100)}


def test_the_applied_workload_has_the_dominant_streams(portal: Path) -> None:
    test = MultiWsat(MultiWsatOptions(capture=str(portal), streams=2))
    # According to the I/O counts of the steps, 55 % of 30,000 and 80 % of 54,000 I/Os are 4 KiB
    # reads.
    reads, writes = (0.55 * 30_000 + 0.80 * 54_000), (0.30 * 30_000 + 0.20 * 54_000)
    shares = {applied.stream.text: applied.share_pct for applied in test.applied}
    assert shares == {
        "RND 4 KiB R": pytest.approx(100 * reads / (reads + writes)),
        "RND 8 KiB W": pytest.approx(100 * writes / (reads + writes)),
    }
    assert test.covered_pct == pytest.approx(100 * (reads + writes) / 84_000)


def test_a_stored_run_needs_the_capture_no_more(portal: Path) -> None:
    test = MultiWsat(MultiWsatOptions(capture=str(portal)))
    portal.unlink()
    again = procedure_from_mapping("multi-wsat", json.loads(json.dumps(test.options_mapping())))
    assert isinstance(again, CaptureProcedure)
    assert again.capture == test.capture


@pytest.mark.draws
@pytest.mark.parametrize(
    ("name", "options", "rows", "count", "sections"),
    [
        ("replay-native", "--speed-up 100", "steps", 2, ["The replay beside the capture"]),
        ("multi-wsat", f"--end capacity --drive-fills 0.3 {SHORT}", "applied", 3,
         ["The drive against the capture", "Steady state"]),
        ("is-wsat", f"--end time --time-hours 0.0006 --fill-capacities 0.2 {SHORT}", "streams", 3,
         ["Each stream alone", "Steady state of SEQ 64 KiB W"]),
    ],
)  # fmt: skip
def test_a_small_drive_is_tested(
    portal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    name: str, options: str, rows: str, count: int, sections: list[str],
) -> None:  # fmt: skip
    drive, run = write_small_drive(tmp_path), tmp_path / "run"
    words = f"test {name} --on sim:{drive} --capture {portal} {options} --output {run}"
    outcome = answer(capsys, words)
    assert outcome["status"] == "complete"
    page = (run / "report.html").read_text()
    for section in ["The I/O capture", *sections]:
        assert f">{section}<" in page, section
    if name == "is-wsat":
        # Bars start at 0, but lines over time are logarithmic.
        assert page.count("IOPS (logarithmic)") == 1
    summary = said_of(capsys, run)
    assert summary["capture"]["name"] == "portal"
    assert len(summary[rows]) == count


def test_the_replay_is_held_against_the_capture(
    portal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drive, run = write_small_drive(tmp_path), tmp_path / "run"
    answer(capsys, f"test replay-native --on sim:{drive} --capture {portal} --speed-up 100"
           f" --fill-capacities 0.2 --output {run}")  # fmt: skip
    summary = said_of(capsys, run)
    rows = summary["steps"]
    assert [row["capture_iops"] for row in rows] == [500, 900]
    assert [row["queue_depth"] for row in rows] == [6, 12]
    ratios = [row["iops"] / row["capture_iops"] for row in rows]
    assert summary["figures"]["least_ratio"] == pytest.approx(min(ratios))
    assert all(ratio > 1 for ratio in ratios)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "the test requires an I/O capture"),
        ("--capture {portal} --speed-up 10000", "would be replayed in less than 0.01 s"),
        ("--capture {portal} --capture-step 60", "defines its own time steps"),
        ("--capture nowhere.csv", "nowhere.csv"),
    ],
)
def test_what_cannot_be_replayed_is_refused(
    portal: Path, capsys: pytest.CaptureFixture[str], options: str, message: str
) -> None:
    words = f"test replay-native --on sim:sata-tlc-120 {options.format(portal=portal)}"
    assert main(words.split()) != 0
    assert message in capsys.readouterr().err
