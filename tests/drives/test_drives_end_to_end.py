"""The tests of the standard, from the command line, to the end, on each of the four drives.

`test wsat --quick` runs as it is. `suite pts-e --quick` gets smaller grids and shorter steps still: the
processor of the guest is interpreted. What a run discloses may then be that shortening and nothing else.
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

INTENSITY = {
    "threads": "2,1",
    "queue_depths": "2",
    "step_seconds": "0.3",
    "precondition_minutes": "0.01",
    "prewrite_minutes": "0.01",
    "histogram_minutes": "0.01",
    "histogram_prewrite_minutes": "0.01",
    "max_rounds": "5",
}
SHORTER: dict[str, dict[str, str]] = {
    "iops": {"read_pcts": "100,0", "block_sizes_kib": "128,4", "step_seconds": "0.3"},
    "tp": {"block_sizes_kib": "128", "step_seconds": "0.3"},
    "lat": {
        "read_pcts": "100,0",
        "block_sizes_kib": "8,4",
        "step_seconds": "0.3",
        "histogram_seconds": "2",
    },
    "wsat": {},
    "hir": {
        "waits_seconds": "1",
        "burst_seconds": "1",
        "write_minutes": "0.05",
        "step_seconds": "0.3",
        "precondition_minutes": "0.02",
    },
    "xsr": {"sequential_hours": "0.001", "random_hours": "0.001"},
    "ecw": INTENSITY,
    "dirth": INTENSITY,
}
for _test in ("iops", "tp", "lat", "hir"):
    SHORTER[_test]["max_rounds"] = "5"


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    status: int
    out: str
    err: str


def writecliff(*words: str) -> Ran:
    said = subprocess.run(
        [sys.executable, "-m", "writecliff", *words], capture_output=True, text=True, check=False
    )
    return Ran(said.returncode, said.stdout, said.stderr)


@dataclass(frozen=True)
class Both:
    """What `test wsat --quick` and `suite pts-e --quick` said on a drive."""

    wsat: Ran
    suite: Ran


@pytest.fixture(scope="session")
def commands(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Both]]]:
    """Both commands on each drive that a test asks for, by serial number.

    Two drives at a time: one waits where the other computes.
    """
    folder = tmp_path_factory.mktemp("runs")
    wanted = {item.callspec.params["drive"] for item in request.session.items if _asks(item)}
    drives = [request.getfixturevalue(name) for name in sorted(wanted)]
    with ThreadPoolExecutor(2) as pool:
        yield {drive.serial: pool.submit(_both, drive, folder) for drive in drives}
        pool.shutdown(cancel_futures=True)


def _asks(item: pytest.Item) -> bool:
    return "commands" in getattr(item, "fixturenames", ())


def _both(drive: Drive, folder: Path) -> Both:
    settings = [
        f"--set={test}.{option}={value}"
        for test, options in SHORTER.items()
        for option, value in options.items()
    ]
    where = ["--quick", "--json", "--on", drive.path, "--destroy", drive.serial]
    return Both(
        writecliff("test", "wsat", *where, f"--output={folder}/wsat-{drive.serial}"),
        writecliff("suite", "pts-e", *where, f"--output={folder}/{drive.serial}", *settings),
    )


def shortened(test: str) -> set[str]:
    """The options that --quick and the settings above change."""
    quick = procedure_from_mapping(test, {"edition": "pts-e", "quick": True})
    return {deviation.option for deviation in quick.deviations()} | set(SHORTER[test])


def check_conforms(run: Path, test: str, drive: Drive) -> None:
    """A complete run whose only deviations are those of a shorter test."""
    with RunDirectory.open(run) as stored:
        manifest = stored.manifest
        assert stored.status == "complete"
        assert stored.rounds().num_rows > 0
    assert {one["option"] for one in manifest.deviations} <= shortened(test)
    assert manifest.write_cache is not None
    assert manifest.write_cache.enabled is False, manifest.write_cache
    assert manifest.purge is not None
    # QEMU's SATA drive has neither security erase nor sanitize, which must be disclosed.
    assert manifest.purge.conformant is (drive.kind != "sata"), manifest.purge
    if drive.kind == "sata":
        assert "ATA security erase: " in manifest.purge.note
    assert [text for text in manifest.warnings if "requires" in text] == []


@pytest.mark.long
@pytest.mark.figure(drives="{drive} wsat")
def test_wsat_runs_to_the_end(drive: Drive, commands: dict[str, Future[Both]]) -> None:
    ran = commands[drive.serial].result().wsat
    assert ran.status == 0, ran.err
    outcome = json.loads(ran.out)
    assert outcome["status"] == "complete"
    check_report(ran, outcome["report"])
    check_conforms(Path(outcome["run"]), "wsat", drive)


@pytest.mark.long
@pytest.mark.figure(drives="{drive} suite")
def test_the_suite_runs_to_the_end(drive: Drive, commands: dict[str, Future[Both]]) -> None:
    ran = commands[drive.serial].result().suite
    assert ran.status == 0, ran.err
    outcome = json.loads(ran.out)
    check_report(ran, outcome["report"])
    assert [one["test"] for one in outcome["runs"]] == list(suite_tests("pts-e"))
    for one in outcome["runs"]:
        assert one["status"] == "complete", one
        check_report(ran, one["report"])
        check_conforms(Path(one["run"]), one["test"], drive)


def check_report(ran: Ran, page: str) -> None:
    """The report is there, and no library spoke up."""
    assert Path(page).stat().st_size > 10_000
    assert "Traceback" not in ran.err
    assert "UserWarning" not in ran.err
