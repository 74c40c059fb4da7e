"""Quick tests: the whole test on a smaller simulated drive, a short form on a real drive."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_engine import FakeEngine
from tests.support.small_drive import write_small_drive
from writecliff.engines.sim import SimEngine
from writecliff.lab.validate.quick import QuickRow, compare
from writecliff.procedures.framework import RunInterrupted, run_procedure
from writecliff.procedures.progress import RunProgress
from writecliff.procedures.registry import procedure_from_mapping, suite_tests
from writecliff.procedures.scaling import quick_engine, quick_scale
from writecliff.report import report_of
from writecliff.report.base import TestReport
from writecliff.report.disclosure import disclosures
from writecliff.report.header import header
from writecliff.report.steady_stages import flag
from writecliff.store.rundir import RunDirectory
from writecliff.suite.folder import SuiteFolder
from writecliff.suite.plan import plan_suite
from writecliff.workload.model import SECOND_NS

QUICK = {"quick": True}
# On a 960 MB drive, these steps correspond to minutes on a 120 GB drive.
SHORT: dict[str, dict[str, Any]] = {
    "wsat": {"sample_seconds": 6.0, "round_minutes": 0.2},
    "tp": {"step_seconds": 6.0, "block_sizes_kib": [128.0]},
    "hir": {
        "step_seconds": 6.0,
        "precondition_minutes": 0.2,
        "write_minutes": 0.5,
        "waits_seconds": [10.0],
    },
}


@pytest.fixture(scope="module")
def suites(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, SuiteFolder]:
    """Run a full-length suite on the small drive, and a quick suite."""
    folder = tmp_path_factory.mktemp("suites")
    target = f"sim:{write_small_drive(folder)}"
    scales = {}
    for quick in (False, True):
        common = {"quick": quick}
        members = plan_suite("pts-e", target, tests=[*SHORT], common=common, special=SHORT)
        made = SuiteFolder.create(folder / f"quick-{quick}", "suite", "pts-e", members)
        for name, member in members.items():
            procedure = procedure_from_mapping(name, member.options, simulated=True)
            engine = SimEngine(target.removeprefix("sim:"))
            run_procedure(procedure, engine, made.run_directory(name))
        scales[quick] = made
    return scales


def report(suites: dict[bool, SuiteFolder], *, quick: bool) -> TestReport:
    return report_of(RunDirectory.open(suites[quick].run_directory("wsat")))


def test_every_headline_figure_is_that_of_the_whole_drive(suites: dict[bool, SuiteFolder]) -> None:
    rows = compare(suites[False], suites[True])
    assert {row.test for row in rows} == set(SHORT)
    assert {row.test: row.scale for row in rows} == dict.fromkeys(SHORT, 4.0)
    assert [row for row in rows if not row.ok] == []


def test_a_figure_that_is_missing_or_off_is_not_passed() -> None:
    row = QuickRow("wsat", "waf", "Write amplification", "", 4.0, full=2.0, quick=2.19)
    assert row.ok
    assert not replace(row, quick=2.21).ok
    assert not replace(row, quick=None).ok
    # If there are too few I/Os, there is no figure.
    assert replace(row, key="latency_4k_0_100_max", quick=None).ok
    assert replace(row, quick=9.0, unit="ms", at="TC2/QD1", quick_at="TC4/QD1").ok
    assert not replace(row, quick=9.0, unit="IOPS", at="TC2/QD1", quick_at="TC4/QD1").ok


def test_a_quick_test_says_on_what_drive_it_ran(suites: dict[bool, SuiteFolder]) -> None:
    quick, full = report(suites, quick=True), report(suites, quick=False)
    assert quick.data.stamp == "NOT PTS-CONFORMANT"
    disclosed = disclosures(quick.data)
    assert disclosed[0].startswith("Quick test: the drive was simulated at 1/4 of its capacity")
    assert disclosed[1:] == disclosures(full.data)
    assert quick.summary()["device"]["scale"] == 4.0
    set_up = header(quick.data, "", "", None).columns[2].rows
    assert ("Note", "Simulated at 1/4 of its capacity") in set_up
    assert quick.verdict().headline.startswith("Steady state reached")
    assert full.summary()["device"]["scale"] == 1.0


@pytest.mark.parametrize("name", ["sata-tlc-120", "hdd-15k-80", "p5800x-400"])
def test_only_drives_with_flash_have_erases_that_shrink(
    suites: dict[bool, SuiteFolder], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = report(suites, quick=True).data
    drive = SimEngine(name).scaled(4.0, largest_io_bytes=131_072).identify()
    other = replace(data.manifest, device=drive)
    monkeypatch.setattr(type(data), "manifest", property(lambda self: other))
    disclosed = disclosures(data)[0]
    assert disclosed.startswith("Quick test: the drive was simulated at 1/4 of its capacity")
    if drive.without_flash:
        assert "erase" not in disclosed and disclosed.endswith("slowest I/Os of the whole drive.")
    else:
        assert disclosed.endswith("erases and other stalls shrink with the blocks.")


@pytest.mark.parametrize("test", suite_tests("pts-e"))
def test_quick_leaves_the_test_on_a_simulated_drive_as_it_is(test: str) -> None:
    whole = procedure_from_mapping(test, {})
    quick = procedure_from_mapping(test, QUICK, simulated=True)
    assert replace(quick.options, quick=False) == whole.options
    assert not quick.is_short
    engine = quick_engine(quick, SimEngine("sata-tlc-120"))
    assert engine.identify().scale == (8.0 if test == "hir" else 32.0)
    assert quick_engine(quick, engine) is engine  # The scaled engine is created only once.
    assert quick_scale(quick, FakeEngine()) == 1.0
    assert procedure_from_mapping(test, QUICK).is_short


def test_a_short_test_of_a_real_drive_says_what_it_cannot_know(tmp_path: Path) -> None:
    procedure = procedure_from_mapping("wsat", {**QUICK, "end": ["steady"], "max_rounds": 5})
    run_procedure(procedure, FakeEngine(kind="fio", noise=0.95), tmp_path / "r")
    unsteady = report_of(RunDirectory.open(tmp_path / "r"))
    verdict = unsteady.verdict()
    assert verdict.level == "warning"
    assert verdict.headline.startswith("Steady state not known: 5 short rounds")
    assert flag(unsteady.views) == " - steady state not known"
    assert unsteady.summary()["steady_state"]["state"] == "not_known"
    procedure = procedure_from_mapping("tp", {**QUICK, "block_sizes_kib": [128.0]})
    run_procedure(procedure, FakeEngine(kind="fio"), tmp_path / "s")
    steady = report_of(RunDirectory.open(tmp_path / "s")).verdict()
    assert steady.level == "warning"
    assert "of a shortened test" in steady.headline


def test_a_short_test_of_a_real_drive_ends_within_the_hour() -> None:
    """Check a drive that never settles as well."""
    plan = procedure_from_mapping("wsat", QUICK).plan(FakeEngine(kind="fio").identify())
    assert plan.device_time_max_ns is not None
    assert plan.device_time_max_ns < 3600 * SECOND_NS


def test_a_quick_run_resumes_on_a_drive_of_its_scale(tmp_path: Path) -> None:
    options = {**QUICK, **SHORT["tp"], "max_rounds": 5}
    procedure = procedure_from_mapping("tp", options, simulated=True)
    drive = str(write_small_drive(tmp_path))

    class Stop(RunProgress):
        def step_end(self, row: Any, history: Any, *, again: bool) -> None:
            if len(history.rows) == 4:
                raise KeyboardInterrupt

    run = tmp_path / "r"
    with pytest.raises(RunInterrupted):
        run_procedure(procedure, SimEngine(drive), run, Stop())
    assert list(run.glob("checkpoint-*.wcs"))
    outcome = run_procedure(procedure, SimEngine(drive), run, resume=True)
    run_procedure(procedure, SimEngine(drive), tmp_path / "whole")
    whole = RunDirectory.open(tmp_path / "whole").rounds()
    assert RunDirectory.open(outcome.run_directory).rounds().equals(whole)
