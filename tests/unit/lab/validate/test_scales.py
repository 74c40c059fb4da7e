"""`writecliff lab validate scales`: errors of scaled drives, and the table that `choose` uses."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from tests.support.small_drive import write_small_drive
from writecliff.lab.validate.scales import KINDS, ScaleError, largest, toml_of

LOAD = """
name = "mixed"
precondition = "fill"
[[job]]
name = "mixed"
read = "70 %"
queue_depth = 1
rate = "500 IOPS"
duration = "40 s"
"""


def error(level: str, kind: str, whole: float, scaled: float, drive: str = "a") -> ScaleError:
    return ScaleError(drive, "flash", "load", level, 16.0, kind, kind, whole, scaled)


def test_the_table_has_the_largest_factor_of_each_kind() -> None:
    errors = [
        error("rough", "rate", 100.0, 98.0),
        error("rough", "rate", 100.0, 105.0, "b"),
        error("rough", "p99.99", 1.0, 0.5),
        error("fine", "rate", 100.0, 100.0),
    ]
    assert largest(errors) == {
        ("flash", "rough"): {"rate": 1.05, "p99.99": 2.0},
        ("flash", "fine"): {"rate": 1.0},
    }
    table = tomllib.loads(toml_of(errors))
    assert table["flash"]["rough"] == {"rate": 1.05, "p99.99": 2.0}
    assert error("rough", "rate", 0.0, 1.0).factor == float("inf")


def test_a_drive_at_three_levels_and_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load = tmp_path / "load.toml"
    load.write_text(LOAD)
    drive = write_small_drive(tmp_path)
    words = ["lab", "validate", "scales", "--drives", str(drive), "--workload", str(load)]
    words += ["--output", str(tmp_path / "runs")]
    done = CommandLine(capsys)([*words, "--json"])
    assert done.code == 0, done.err
    rows = json.loads(done.out)["rows"]
    assert {row["level"] for row in rows} == {"rough", "medium", "fine"}
    assert {row["kind"] for row in rows} <= set(KINDS)
    assert all(row["factor"] >= 1 for row in rows)
    rates = [row["factor"] for row in rows if row["figure"] == "iops"]
    assert len(rates) == 3 and all(factor < 1.2 for factor in rates)
    runs = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/*/*.parquet")}
    toml = CommandLine(capsys)([*words, "--toml"])
    (levels,) = tomllib.loads(toml.out).values()
    assert levels.keys() == {"rough", "medium", "fine"}
    assert runs == {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/*/*.parquet")}
