"""Hard disks on the command line: standard tests run, commands that require flash are rejected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from writecliff.devices import read_device_file


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """Return the command line with the simulator's drives instead of the fake drive."""
    return CommandLine(capsys)


def write_small_disk(folder: Path) -> Path:
    text, _ = read_device_file("hdd-15k-80")
    assert '"80 GB"' in text
    path = folder / "disk.toml"
    path.write_text(text.replace('"80 GB"', '"1 GB"'), encoding="utf-8")
    return path


def test_a_test_of_the_standard_runs_and_is_reported(cli: CommandLine, tmp_path: Path) -> None:
    disk, run = write_small_disk(tmp_path), tmp_path / "run"
    completed = cli(f"test lat --on sim:{disk} --output {run} --step-seconds 4 --json")
    assert completed.code == 0, completed.err
    assert json.loads(completed.out)["status"] == "complete"
    assert "purge: not applicable (hard disk)" in completed.err and "WAF -" in completed.err
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "not applicable (hard disk)" in page
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["device"]["rotational"] is True


def test_a_dry_run_estimates_time_and_volume(cli: CommandLine, tmp_path: Path) -> None:
    completed = cli(f"test lat --on sim:{write_small_disk(tmp_path)} --dry-run --json")
    assert completed.code == 0, completed.err
    estimate = json.loads(completed.out)["plan"]["estimate"]
    assert estimate["drive_fills"] > 2 and estimate["device_time_ns"] > 1800e9


def test_device_show(cli: CommandLine) -> None:
    lines = cli("device show hdd-15k-80").out.splitlines()
    assert "nand type                 -" in lines and "rpm                       15,000" in lines
    assert any(line.startswith("disk.seek_average ") and "ms" in line for line in lines)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            "sweep over-provisioning --on sim:hdd-15k-80 --output {}",
            "over-provisioning requires flash",
        ),
        ("lab bench sim --device hdd-15k-80", "the benchmark requires flash"),
    ],
)
def test_what_needs_flash_says_so(cli: CommandLine, tmp_path: Path, words: str, says: str) -> None:
    completed = cli(words.format(tmp_path / "sweep"))
    assert (completed.code, completed.out) == (2, "")
    assert completed.err.splitlines()[0] == f"error: hdd-15k-80 is a hard disk; {says}"
    assert not (tmp_path / "sweep").exists()
