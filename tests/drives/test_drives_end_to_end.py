"""PTS tests, end to end, on each of the four drives.

`test wsat --quick` runs unchanged on one drive, with its report. In `suite pts-e --quick`, which
runs on all drives, WSAT ends after one drive fill, and the other tests get even smaller grids and
shorter steps, because the guest's CPU is emulated. A run may then deviate from the standard only by
this shortening.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.guest_drives import Drive
from writecliff.procedures.registry import procedure_from_mapping, suite_tests
from writecliff.store.rundir import RunDirectory
from writecliff.suite.folder import SuiteFolder

LOGS = Path("/run/out")  # Folder that --results retains.
INTENSITY = {
    "threads": "2,1",
    "queue_depths": "2",
    "step_seconds": "0.6",
    "precondition_minutes": "0.01",
    "prewrite_minutes": "0.01",
    "histogram_minutes": "0.01",
    "histogram_prewrite_minutes": "0.01",
    "max_rounds": "5",
}
SHORTER: dict[str, dict[str, str]] = {
    "iops": {"read_pcts": "100,0", "block_sizes_kib": "4", "step_seconds": "0.3"},
    "tp": {"block_sizes_kib": "128", "step_seconds": "0.3"},
    "lat": {
        "read_pcts": "100,0",
        "block_sizes_kib": "4",
        "step_seconds": "0.3",
        "histogram_seconds": "2",
    },
    "wsat": {"end": "steady,capacity", "drive_fills": "1"},
    "hir": {
        "waits_seconds": "1",
        "burst_seconds": "1",
        "write_minutes": "0.05",
        "step_seconds": "0.6",
        "precondition_minutes": "0.01",
    },
    "xsr": {"sequential_hours": "0.001", "random_hours": "0.001"},
    "ecw": INTENSITY,
    "dirth": INTENSITY,
}
for _test in ("iops", "tp", "lat", "hir"):
    SHORTER[_test]["max_rounds"] = "5"


@dataclass(frozen=True)
class Ran:
    """A finished command."""

    status: int
    out: str
    err: str


def run(name: str, module: str, *words: str) -> Ran:
    """Run a Python module with arguments; its output can be followed in `LOGS`."""
    out, err = LOGS / f"{name}.out", LOGS / f"{name}.err"
    with out.open("w") as stdout, err.open("w") as stderr:
        done = subprocess.run(
            [sys.executable, "-m", module, *words], stdout=stdout, stderr=stderr, check=False
        )
    return Ran(done.returncode, out.read_text(), err.read_text())


def wsat(drive: Drive, folder: Path) -> Ran:
    where = ["--on", drive.path, "--destroy", drive.serial, "--output", str(folder)]
    return run(
        folder.name,
        "writecliff",
        "test",
        "wsat",
        "--quick",
        "--end",
        "steady,capacity",
        "--json",
        *where,
    )


def suite(drive: Drive, folder: Path) -> Ran:
    settings = [
        f"{test}.{option}={value}"
        for test, options in SHORTER.items()
        for option, value in options.items()
    ]
    words = [drive.path, drive.serial, str(folder), *settings]
    return run(folder.name, "tests.support.run_suite", *words)


@pytest.fixture(params=["sas", "sata", "nvme", "nvme_fdp"])
def drive(request: pytest.FixtureRequest) -> Drive:
    """Return each of the four drives.

    The SCSI drive is the drive with SANITIZE: scsi_debug has no purge method of the standard, and
    crashes in FORMAT UNIT with Linux 7.3.
    """
    drive: Drive = request.getfixturevalue(request.param)
    return drive


COMMANDS = {"wsat": wsat, "suite": suite}
Results = dict[tuple[str, str], Future[tuple[Ran, Path]]]


@pytest.fixture(scope="session")
def results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Results]:
    """Run the commands that the selected tests need; yield their results by command and drive.

    Two drives run at a time, because one waits while the other computes.
    """
    asked: dict[str, list[str]] = {}
    for item in request.session.items:
        if "results" in getattr(item, "fixturenames", ()):
            asked.setdefault(item.callspec.params["drive"], []).append(
                item.callspec.params["command"]
            )
    drives = {name: request.getfixturevalue(name) for name in asked}
    place = tmp_path_factory.mktemp("runs")
    results: Results = {(c, d): Future() for d, commands in asked.items() for c in commands}

    def one_drive(name: str) -> None:
        for command in asked[name]:
            folder, result = place / f"{command}-{name}", results[command, name]
            try:
                result.set_result((COMMANDS[command](drives[name], folder), folder))
            except OSError as error:
                result.set_exception(error)

    with ThreadPoolExecutor(2) as pool:
        for name in asked:
            pool.submit(one_drive, name)
        yield results
        pool.shutdown(cancel_futures=True)


def shortened(test: str) -> set[str]:
    """Return the options that --quick and the settings in this module change."""
    quick = procedure_from_mapping(test, {"edition": "pts-e", "quick": True})
    return {deviation.option for deviation in quick.deviations()} | set(SHORTER[test])


def check_conforms(run: Path, test: str, drive: Drive) -> None:
    """Check that a run is complete and deviates from the standard only by its shortening."""
    with RunDirectory.open(run) as stored:
        manifest = stored.manifest
        assert stored.status == "complete"
        assert stored.rounds().num_rows > 0
    assert {deviation["option"] for deviation in manifest.deviations} <= shortened(test)
    assert manifest.write_cache is not None
    assert manifest.write_cache.enabled is False, manifest.write_cache
    assert manifest.purge is not None
    # QEMU's SATA drive supports neither security erase nor sanitize, which the output must state.
    assert manifest.purge.conformant is (drive.kind != "sata"), manifest.purge
    if drive.kind == "sata":
        assert "ATA security erase: " in manifest.purge.note
    assert [text for text in manifest.warnings if "requires" in text] == []


@pytest.mark.long
@pytest.mark.figure(drives="wsat on {drive}")
@pytest.mark.parametrize(("command", "drive"), [("wsat", "nvme")], indirect=["drive"])
def test_wsat_runs_to_the_end_and_to_its_page(drive: Drive, command: str, results: Results) -> None:
    ran, folder = results[command, "nvme"].result()
    assert ran.status == 0, ran.err
    outcome = json.loads(ran.out)
    assert outcome["status"] == "complete"
    assert Path(outcome["report"]).stat().st_size > 10_000
    assert "Traceback" not in ran.err
    assert "UserWarning" not in ran.err  # A plotting library would print this warning.
    check_conforms(folder, "wsat", drive)


@pytest.mark.long
@pytest.mark.figure(drives="suite on {drive}")
@pytest.mark.figure(drives="wsat on {drive}")
@pytest.mark.parametrize("command", ["suite"])
def test_the_suite_runs_to_the_end(
    drive: Drive, command: str, results: Results, request: pytest.FixtureRequest
) -> None:
    ran, folder = results[command, request.node.callspec.params["drive"]].result()
    assert ran.status == 0, ran.err
    made = SuiteFolder.open(folder)
    assert list(made.members) == list(suite_tests("pts-e"))
    for name, member in made.members.items():
        check_conforms(made.run_directory(name), member.test, drive)
