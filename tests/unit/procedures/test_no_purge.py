"""`--no-purge`: the drive is not purged, and all output discloses this."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fake_engine import FakeEngine
from tests.support.io_capture import required_options
from writecliff.engines.base import NOT_PURGED
from writecliff.errors import ConfigError
from writecliff.procedures.framework import run_procedure
from writecliff.procedures.registry import PROCEDURES, procedure_from_mapping
from writecliff.report import build_report
from writecliff.store.rundir import RunDirectory
from writecliff.suite.plan import plan_suite

SHORT = {"end": ("time",), "time_hours": 0.1}


def real_drive() -> FakeEngine:
    return FakeEngine(capacity_bytes=60_000_000_000, kind="fio", target="/dev/fake")


def test_the_drive_is_left_as_it_is_and_the_report_is_stamped(tmp_path: Path) -> None:
    engine = real_drive()
    procedure = procedure_from_mapping("wsat", {**SHORT, "no_purge": True})
    outcome = run_procedure(procedure, engine, tmp_path / "r")
    assert "purge" not in engine.calls
    assert not [text for text in outcome.warnings if "purge" in text]
    run = RunDirectory.open(tmp_path / "r")
    assert run.manifest.purge == NOT_PURGED
    assert run.manifest.options["no_purge"] is True
    page = build_report(run)
    assert page.stamp == "NOT PTS-CONFORMANT"
    disclosed = [text for text in page.disclosures if "purge" in text.lower()]
    assert disclosed == [
        "Not purged by writecliff. The run was started with --no-purge; the drive kept its"
        " previous state."
    ]
    assert page.verdict.meaning[0].startswith("The drive (not purged by writecliff) was written")


def test_a_run_that_purges_says_nothing_of_it(tmp_path: Path) -> None:
    engine = real_drive()
    run_procedure(procedure_from_mapping("wsat", SHORT), engine, tmp_path / "r")
    assert engine.calls[0] == "purge"
    run = RunDirectory.open(tmp_path / "r")
    assert run.manifest.options["no_purge"] is False
    assert "no_purge" not in [item["option"] for item in run.manifest.deviations]
    assert not [text for text in build_report(run).disclosures if "purge" in text.lower()]


@pytest.mark.parametrize("name", list(PROCEDURES))
def test_every_test_has_the_option(name: str, tmp_path: Path) -> None:
    options = {"no_purge": True, **required_options(name, tmp_path)}
    procedure = procedure_from_mapping(name, options)
    (deviation,) = [d for d in procedure.deviations() if d.option == "no_purge"]
    assert deviation.level == "required"
    assert str(deviation).startswith("not purged by writecliff (--no-purge); a purge is required")


def test_simulated_drives_refuse_it_before_anything_is_made(tmp_path: Path) -> None:
    procedure = procedure_from_mapping("wsat", {**SHORT, "no_purge": True})
    with pytest.raises(ConfigError, match="applies only to real drives"):
        run_procedure(procedure, FakeEngine(), tmp_path / "r")
    assert not (tmp_path / "r").exists()
    with pytest.raises(ConfigError, match="applies only to real drives"):
        plan_suite("pts-e", "sim:fake", common={"no_purge": True})
    assert plan_suite("pts-e", "/dev/fake", common={"no_purge": True})
