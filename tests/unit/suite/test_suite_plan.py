"""What suites and sweeps plan to run, and what they refuse before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.bad_runs import unsteady_real_run
from tests.support.small_drive import write_small_drive
from writecliff.devices import show_device
from writecliff.engines.blockdev import renamed
from writecliff.errors import ConfigError, StoreError
from writecliff.store.rundir import RunDirectory
from writecliff.suite.folder import SUITE_NAME, Member, SuiteFolder
from writecliff.suite.plan import plan_suite
from writecliff.suite.sweep import OVERPROVISION, plan_sweep


def test_a_suite_has_the_tests_of_the_standard_in_its_order() -> None:
    members = plan_suite("pts-e", "sim:x", common={"seed": 3})
    assert list(members) == ["iops", "tp", "lat", "wsat", "hir", "xsr", "ecw", "dirth"]
    assert all(member.test == name for name, member in members.items())
    assert members["wsat"].options == {"edition": "pts-e", "seed": 3}


def test_tests_keep_the_standard_s_order_however_they_are_named() -> None:
    members = plan_suite("pts-c", "sim:x", tests=["wsat", "iops"])
    ranges = ["100-8gib", "100-16gib", "75-8gib", "75-16gib"]
    assert list(members) == [f"{test}-{one}" for test in ("iops", "wsat") for one in ranges]


@pytest.mark.parametrize(
    ("edition", "arguments", "message", "hint"),
    [
        ("pts-d", {}, "unknown edition 'pts-d'", "did you mean 'pts-"),
        ("pts-e", {"tests": ["iopz"]}, "unknown test 'iopz'", "did you mean 'iops'"),
        ("pts-e", {"special": {"wsta": {}}}, "unknown test 'wsta'", "did you mean 'wsat'"),
        ("pts-e", {"tests": ["tp"], "special": {"wsat": {}}}, "not among the tests", ""),
        ("pts-e", {"tests": ["wsat"], "special": {"wsat": {"thread": 1}}}, "'thread'", "threads"),
        ("pts-e", {"common": {"revision": "3"}}, "unknown revision '3'", "1.x"),
    ],
)
def test_what_does_not_exist_is_refused(
    edition: str, arguments: dict[str, object], message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        plan_suite(edition, "sim:x", **arguments)  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert hint in (caught.value.hint or "")


def test_a_folder_comes_back_as_it_was_made(tmp_path: Path) -> None:
    members = plan_suite("pts-e", "sim:x", tests=["wsat"])
    made = SuiteFolder.create(tmp_path / "s", "suite", "pts-e", members)
    assert SuiteFolder.open(tmp_path / "s") == made
    assert (made.status("wsat"), made.complete(), made.simulated) == (None, (), True)
    with pytest.raises(ConfigError, match="not empty"):
        SuiteFolder.create(tmp_path / "s", "suite", "pts-e", members)


def test_a_real_drive_is_found_again_by_the_runs_that_were_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = plan_suite("pts-e", "/dev/sdx", tests=["wsat", "hir"])
    made = SuiteFolder.create(tmp_path / "s", "suite", "pts-e", members)
    begun = RunDirectory.open(unsteady_real_run(made.run_directory("wsat"))).manifest.device
    assert begun.target == "/dev/sdx"
    monkeypatch.setattr(renamed, "node_now", lambda drive: {begun.serial: "/dev/sdy"}[drive.serial])
    assert [made.target_now(member.target) for member in members.values()] == ["/dev/sdy"] * 2
    assert made.target_now("/dev/sdz") == "/dev/sdz"  # nothing was run on it


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "writecliff/suite/9"}'])
def test_a_damaged_folder_is_one_clear_error(tmp_path: Path, text: str) -> None:
    (tmp_path / SUITE_NAME).write_text(text)
    with pytest.raises(StoreError, match=r"suite\.json"):
        SuiteFolder.open(tmp_path)


def test_a_directory_without_a_suite_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a suite"):
        SuiteFolder.open(tmp_path)


def test_a_sweep_varies_one_option(tmp_path: Path) -> None:
    sweep = plan_sweep(
        "wsat", "sim:x", "write_cache", [True, False, True], {"threads": 2}, folder=tmp_path
    )
    assert not sweep.devices
    assert sweep.members == {
        "write-cache-on": Member("wsat", {"threads": 2, "write_cache": True}, "sim:x"),
        "write-cache-off": Member("wsat", {"threads": 2, "write_cache": False}, "sim:x"),
    }
    with pytest.raises(ConfigError, match="at least two"):
        plan_sweep("wsat", "sim:x", "write_cache", [True, True], {}, folder=tmp_path)
    with pytest.raises(ConfigError, match="threads must be at least 1"):
        plan_sweep("wsat", "sim:x", "threads", [0, 1], {}, folder=tmp_path)


def test_a_sweep_of_over_provisioning_makes_the_drives(tmp_path: Path) -> None:
    source = f"sim:{write_small_drive(tmp_path)}"
    sweep = plan_sweep("wsat", source, OVERPROVISION, [20.0, 28.0], {}, folder=tmp_path)
    for percent, member in zip((20, 28), sweep.members.values(), strict=True):
        path = Path(member.target.removeprefix("sim:"))
        path.write_text(sweep.devices[path])
        device = show_device(str(path))
        spare = 100 * (device.raw_bytes / device.capacity_bytes - 1)
        assert spare == pytest.approx(percent, abs=0.2)
    with pytest.raises(ConfigError, match="cannot be changed"):
        plan_sweep("wsat", "/dev/x", OVERPROVISION, [7.0, 28.0], {}, folder=tmp_path)


def test_a_drive_that_cannot_be_made_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    source = f"sim:{write_small_drive(tmp_path)}"
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ConfigError, match="with 1 % over-provisioning"):
        plan_sweep("wsat", source, OVERPROVISION, [28.0, 1.0], {}, folder=tmp_path / "new")
    assert sorted(tmp_path.iterdir()) == before
