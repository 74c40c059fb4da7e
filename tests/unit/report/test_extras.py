"""Remarks on steps and on drive health, in the report of any test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.support.synthetic_run import manifest, records
from writecliff.engines.disturbance import PREFIX
from writecliff.report import build_report, disclosure
from writecliff.report.model import ReportModel
from writecliff.report.table import Table
from writecliff.store.rundir import RunDirectory

STEAL = f"{PREFIX}CPU steal: 12 % of the CPU time went to other guests"
OTHER = f"{PREFIX}other I/O on sdx: 3.0 MB written that the test did not issue"
ALWAYS = "job wsat: fio trims one at a time"
HEALTH = {
    "before": {"smart": {"temperature": 301, "percentage_used": 2}, "link": None},
    "after": {"smart": {"temperature": 318, "percentage_used": 2}},
}


def report(path: Path, warnings: Sequence[Sequence[str]], *, simulated: bool) -> ReportModel:
    made = manifest(simulated=simulated, health=HEALTH)
    with RunDirectory.create(path, made) as run:
        for record, texts in zip(
            records(rounds=1, steps_per_round=3, step_s=1.0), warnings, strict=True
        ):
            run.append_round(replace(record, result=replace(record.result, warnings=tuple(texts))))
        run.finish("complete", reason="done")
    return build_report(RunDirectory.open(path))


def tables(model: ReportModel) -> dict[str, Table]:
    return {table.title: table for section in model.sections for table in section.tables}


def test_disturbances_are_disclosed_and_listed_by_step(tmp_path: Path) -> None:
    model = report(
        tmp_path / "r", [[ALWAYS], [ALWAYS, STEAL], [ALWAYS, STEAL, OTHER]], simulated=False
    )
    assert (
        "2 steps were disturbed: CPU steal (2), other I/O on sdx (1); see Remarks."
        in model.disclosures
    )
    rows = tables(model)["Remarks on steps"].rows
    assert rows[0] == ("3 steps", ALWAYS)
    assert [text for _, text in rows[1:]] == [t.removeprefix(PREFIX) for t in (STEAL, STEAL, OTHER)]
    assert rows[1][0].startswith("round 1, ")


def test_an_undisturbed_run_says_nothing_of_it(tmp_path: Path) -> None:
    model = report(tmp_path / "r", [[], [], []], simulated=False)
    assert "Remarks on steps" not in tables(model)
    assert not any("disturbed" in text for text in model.disclosures)


def test_health_is_shown_before_and_after_for_real_drives_only(tmp_path: Path) -> None:
    rows = tables(report(tmp_path / "real", [[], [], []], simulated=False))[
        "Condition as the drive reports it"
    ].rows
    assert rows == (
        ("smart / temperature", "301", "318"),
        ("smart / percentage_used", "2", "2"),
    )
    simulated = report(tmp_path / "sim", [[], [], []], simulated=True)
    assert "Condition as the drive reports it" not in tables(simulated)


def test_the_prefix_is_that_of_the_engines() -> None:
    """Check that two constants are equal, because the report must not import the engines."""
    assert disclosure.PREFIX == PREFIX
