"""Texts of reports about drives that drift, pause, or are filled within a minute."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.synthetic_run import Drive, build_run, manifest, records
from writecliff.engines.base import PurgeReport
from writecliff.procedures.steady import judge
from writecliff.report import build_report, steady_stages
from writecliff.report.model import ReportModel
from writecliff.report.steady import drifting
from writecliff.report.testdata import load
from writecliff.report.wsat import WsatReport
from writecliff.store.rundir import RunDirectory

ROUNDS = (1, 2, 3, 4, 5)
# Options for rounds of the same length with fewer steps.
FEW_STEPS = {"steps_per_round": 2, "step_s": 930.0}


def test_drift_is_distinguished_from_noise() -> None:
    assert drifting(judge((8021, 7735, 7572, 7469, 7399), ROUNDS)) == "falling"
    assert drifting(judge((7399, 7469, 7572, 7735, 8021), ROUNDS)) == "rising"
    assert drifting(judge((8000, 7600, 8100, 7500, 7900), ROUNDS)) is None
    assert drifting(judge((8000, 7990, 7980, 7970, 7960), ROUNDS)) is None  # The drift is 0.5 %.
    assert drifting(judge((8000, 8000, 8000, 8000, 8000), ROUNDS)) is None


def report(directory: Path, drive: Drive, **changes: object) -> ReportModel:
    build_run(directory, drive, **changes)
    return build_report(RunDirectory.open(directory))


def test_a_drive_that_still_falls_sustains_nothing(tmp_path: Path) -> None:
    falling = Drive(noise=0.001, settling_fills=0.2, drift_per_fill=0.015)
    model = report(tmp_path / "run", falling, rounds=7, **FEW_STEPS)
    assert model.verdict.level == "good"
    assert model.verdict.headline.endswith(", with IOPS still falling by 1 % a round")
    assert "a longer run would end lower" in model.verdict.meaning[1]
    assert model.key_figures[1].note == "average of 5 samples, still falling"


def test_a_settled_drive_is_not_said_to_fall(tmp_path: Path) -> None:
    model = report(tmp_path / "run", Drive(settling_fills=0.2), rounds=7, **FEW_STEPS)
    assert model.verdict.headline.startswith("Steady state reached, rounds ")
    assert "still" not in " ".join((model.verdict.headline, *model.verdict.meaning))


def test_fresh_out_of_box_ends_when_all_has_been_written(tmp_path: Path) -> None:
    """Check a 5 s step that writes 1.7 GB: a 5 GB drive is not fresh for a whole minute."""
    small = Drive(capacity_bytes=5_000_000_000)
    model = report(tmp_path / "run", small, rounds=5, steps_per_round=6, step_s=5.0)
    fresh = [record.result for record in records(small, rounds=1, steps_per_round=3, step_s=5.0)]
    assert model.key_figures[0].note == "fresh out of box: first 15 s"
    assert model.key_figures[0].value == f"{sum(r.iops() for r in fresh) / 3:,.0f}"
    whole = report(tmp_path / "whole", Drive(), rounds=1, steps_per_round=2)
    assert whole.key_figures[0].note == "fresh out of box: first minute"


@pytest.mark.parametrize(
    ("gap_ns", "disclosed", "noted"),
    [(0, False, False), (400_000_000, False, True), (4_000_000_000, True, False)],
)
def test_pauses_between_steps_are_disclosed(
    tmp_path: Path, gap_ns: int, disclosed: bool, noted: bool
) -> None:
    with RunDirectory.create(tmp_path / "run", manifest(simulated=False)) as run:
        for number, record in enumerate(records(rounds=2, steps_per_round=5)):
            run.append_round(replace(record, started_ns=record.started_ns + number * gap_ns))
        run.finish("complete")
    model = build_report(RunDirectory.open(tmp_path / "run"))
    text = "The drive was idle between the steps for "
    assert any(line.startswith(text) for line in model.disclosures) is disclosed
    assert any(line.startswith(text) for line in model.notes) is noted
    assert not any("{" in line for line in model.notes)


def test_versions_and_purge_read_well(tmp_path: Path) -> None:
    purge = PurgeReport("simulated purge (every block erased)", conformant=True)
    simulated = report(tmp_path / "sim", Drive(), rounds=1, changes={"purge": purge}, **FEW_STEPS)
    assert simulated.verdict.meaning[0].startswith(
        "The simulated drive (purge: simulated purge, every block erased) was written at random "
    )
    real = report(tmp_path / "real", Drive(), rounds=1, simulated=False, **FEW_STEPS)
    assert "fio 3.33" in dict(real.footer)["Versions"]
    assert "fio" not in dict(simulated.footer)["Versions"]


@pytest.mark.parametrize(
    ("fills", "headline", "text"),
    [
        (0.2, "Ended by 24 h of writes, steady state not reached in 7 rounds", "not reached; ended by 24 h of writes"),
        (1e3, "Ended by 24 h of writes: level in rounds 3 to 7, but the drive may still be fresh", "drive still fresh in rounds 3 - 7; ended by 24 h of writes"),
    ],
)  # fmt: skip
def test_an_end_by_time_is_named_and_is_no_failure(
    tmp_path: Path, fills: float, headline: str, text: str
) -> None:
    """Check that the title of a run that ends by time includes this end and the state."""
    drive = Drive(noise=0.3) if fills < 1 else Drive(capacity_bytes=1 << 50, noise=0.0)
    path = tmp_path / "run"
    build_run(path, drive, rounds=7, **FEW_STEPS)
    wsat_report = WsatReport(load(RunDirectory.open(path)))
    view = replace(wsat_report.wsat.view, end="24 h of writes")
    assert steady_stages.verdict([view], ()).headline == headline
    assert steady_stages.verdict([view], ()).level == "warning"
    assert view.text == text
