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
from typing import Any

import pytest

from tests.support.guest_drives import Drive, drives_by_serial
from writecliff.procedures.registry import procedure_from_mapping, suite_tests
from writecliff.store.rundir import RunDirectory

INTENSITY = {
    "threads": "2,1",
    "queue_depths": "2,1",
    "step_seconds": "0.5",
    "precondition_minutes": "0.05",
    "prewrite_minutes": "0.025",
    "histogram_minutes": "0.025",
    "histogram_prewrite_minutes": "0.025",
    "max_rounds": "5",
}
SHORTER: dict[str, dict[str, str]] = {
    "iops": {"read_pcts": "100,0", "block_sizes_kib": "128,4", "step_seconds": "0.5"},
    "tp": {"step_seconds": "0.5"},
    "lat": {
        "read_pcts": "100,0",
        "block_sizes_kib": "8,4",
        "step_seconds": "0.5",
        "histogram_seconds": "2",
    },
    "wsat": {},
    "hir": {
        "waits_seconds": "1,2",
        "burst_seconds": "1",
        "write_minutes": "0.05",
        "step_seconds": "0.5",
        "precondition_minutes": "0.05",
    },
    "xsr": {"sequential_hours": "0.002", "random_hours": "0.002"},
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


@pytest.fixture(scope="session")
def suites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Ran]]]:
    """`suite pts-e --quick` on all four drives, two at a time: one waits where the other computes."""
    folder = tmp_path_factory.mktemp("suites")
    with ThreadPoolExecutor(2) as pool:
        yield {
            serial: pool.submit(_suite, drive, folder / serial)
            for serial, drive in drives_by_serial().items()
        }
        pool.shutdown(cancel_futures=True)


def _suite(drive: Drive, folder: Path) -> Ran:
    settings = [
        f"--set={test}.{option}={value}"
        for test, options in SHORTER.items()
        for option, value in options.items()
    ]
    where = ["--on", drive.path, "--destroy", drive.serial, "--output", str(folder)]
    return writecliff("suite", "pts-e", "--quick", "--json", *where, *settings)


def shortened(test: str) -> set[str]:
    """The options that --quick and the settings above change."""
    quick = procedure_from_mapping(test, {"edition": "pts-e", "quick": True})
    return {deviation.option for deviation in quick.deviations()} | set(SHORTER[test])


def check_conforms(run: Path, test: str, drive: Drive) -> None:
    """A complete run whose only deviations are those of a shorter test."""
    with RunDirectory.open(run) as stored:
        manifest: Any = stored.manifest
        assert stored.status == "complete"
        assert stored.rounds().num_rows > 0
    assert {one["option"] for one in manifest.deviations} <= shortened(test)
    assert manifest.write_cache["enabled"] is False, manifest.write_cache
    # QEMU's SATA drive has neither security erase nor sanitize, which must be disclosed.
    assert manifest.purge["conformant"] is (drive.kind != "sata"), manifest.purge
    if drive.kind == "sata":
        assert "ATA security erase: " in manifest.purge["note"]
    conditions = [text for text in manifest.warnings if "requires" in text]
    assert conditions == []


@pytest.mark.figure(drives="{drive} wsat")
def test_wsat_runs_to_the_end(drive: Drive, tmp_path: Path) -> None:
    run = tmp_path / "wsat"
    where = ["--on", drive.path, "--destroy", drive.serial, "--output", str(run)]
    ran = writecliff("test", "wsat", "--quick", "--json", *where)
    assert ran.status == 0, ran.err
    outcome = json.loads(ran.out)
    assert outcome["status"] == "complete"
    assert Path(outcome["report"]).stat().st_size > 10_000
    assert "Traceback" not in ran.err
    check_conforms(run, "wsat", drive)


@pytest.mark.long
@pytest.mark.figure(drives="{drive} suite")
def test_the_suite_runs_to_the_end(drive: Drive, suites: dict[str, Future[Ran]]) -> None:
    ran = suites[drive.serial].result()
    assert ran.status == 0, ran.err
    outcome = json.loads(ran.out)
    assert Path(outcome["report"]).stat().st_size > 10_000
    assert [one["test"] for one in outcome["runs"]] == list(suite_tests("pts-e"))
    for one in outcome["runs"]:
        assert one["status"] == "complete", one
        assert Path(one["report"]).stat().st_size > 10_000
        check_conforms(Path(one["run"]), one["test"], drive)
