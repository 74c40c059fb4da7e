"""`--dry-run` on a simulated drive: the estimate matches the run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from tests.support.small_drive import write_small_drive
from writecliff.procedures.journal import stored_rows
from writecliff.store.rundir import RunDirectory

RUN = "test wsat --on sim:small.toml --end capacity --sample-seconds 6 --round-minutes 0.1"


@pytest.fixture
def cli(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> CommandLine:
    """Return the command line with the simulator, in a folder with a small drive."""
    monkeypatch.chdir(tmp_path)
    write_small_drive(tmp_path)
    return CommandLine(capsys)


def test_dry_run_and_run_agree(cli: CommandLine, tmp_path: Path) -> None:
    expected = json.loads(cli(f"{RUN} --dry-run --json").out)["plan"]["estimate"]
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]
    took = json.loads(cli(f"{RUN} --output r --quiet --json").out)
    written = sum(row.host_write_bytes for row in stored_rows(RunDirectory.open(Path("r"))))
    assert expected["device_time_ns"] == pytest.approx(took["device_time_ns"], rel=0.05)
    assert expected["write_bytes"] == pytest.approx(written, rel=0.05)
    assert expected["steps"] == pytest.approx(took["steps"], rel=0.05)
    assert expected["rounds"] == {"rounds": took["stages"][0]["rounds_done"]}
    assert expected["wall_time_s"] > 0


def test_dry_run_says_how_it_knows(cli: CommandLine) -> None:
    completed = cli(f"{RUN} --dry-run")
    assert (completed.code, completed.err) == (0, "")
    lines = completed.out.splitlines()
    (first,) = (number for number, line in enumerate(lines) if line.startswith("expected"))
    assert re.search(r"of device time, .* GB written \(\d\.\d\d drive fills\)$", lines[first])
    assert re.search(r"^ +\d+ steps; complete rounds: rounds \d+$", lines[first + 1])
    assert re.search(r"^ +about .* of wall time on this machine$", lines[first + 2])
    assert re.search(
        r"^ +from \d pilot runs, the last at 1/\d scale, in .*; the last two differ by .* %$",
        lines[first + 3],
    )
