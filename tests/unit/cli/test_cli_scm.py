"""Storage-class memory on the command line: steady at once; flash commands are rejected."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.cli import CommandLine
from writecliff.devices import read_device_file


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """Return the command line with the simulator's drives instead of the fake drive."""
    return CommandLine(capsys)


def test_write_saturation_is_steady_at_once(cli: CommandLine, tmp_path: Path) -> None:
    """The test drive has a fiftieth of the drive's rates, to save time."""
    text, _ = read_device_file("p5800x-400")
    for line in ('user_capacity = "400 GB"', "banks = 7", 'write_time = "0.578 us"'):
        assert line in text
    slow = text.replace('"400 GB"', '"100 GB"').replace("banks = 7", "banks = 1")
    (tmp_path / "slow.toml").write_text(slow.replace('"0.578 us"', '"4 us"'), encoding="utf-8")
    run = tmp_path / "run"
    completed = cli(f"test wsat --on sim:{tmp_path / 'slow.toml'} --quick --output {run} --json")
    assert completed.code == 0, completed.err
    answer = json.loads(completed.out)
    assert (answer["status"], answer["ended_by"]) == ("complete", "steady")
    (stage,) = answer["stages"]
    assert stage["first_reached_at_round"] == 5, "the first rounds that can be"
    assert "purge: simulated purge (a new key)" in completed.err and "WAF -" in completed.err
    rounds = pq.read_table(run / "rounds.parquet").to_pydict()
    assert len(rounds["iops"]) > 100
    assert max(rounds["iops"]) < 1.01 * min(rounds["iops"]), "no cliff, from the first minute on"
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "storage-class memory" in page and "not saturated" not in page


def test_device_show_and_list(cli: CommandLine) -> None:
    lines = cli("device show p5800x-1600").out.splitlines()
    assert "kind                      scm" in lines and "nand type                 -" in lines
    assert any(line.startswith("media.read_time ") and "us" in line for line in lines)
    assert "p5800x-800" in cli("device list").out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            "sweep over-provisioning --on sim:p5800x-400 --output {}",
            "over-provisioning requires flash",
        ),
        ("lab bench sim --device p5800x-400", "the benchmark requires flash"),
    ],
)
def test_what_needs_flash_says_so(cli: CommandLine, tmp_path: Path, words: str, says: str) -> None:
    completed = cli(words.format(tmp_path / "sweep"))
    assert (completed.code, completed.out) == (2, "")
    expected = f"error: p5800x-400 is a drive of storage-class memory; {says}"
    assert completed.err.splitlines()[0] == expected
    assert not (tmp_path / "sweep").exists()
