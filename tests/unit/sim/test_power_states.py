"""Power states of simulated drives that limit how many dies are active."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.small_drive import write_small_drive
from writecliff.cli.main import main
from writecliff.report import summarise
from writecliff.report.comparison.runs import read_run


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_small_drive(tmp_path_factory.mktemp("drive"))
    power = '\n[power]\nidle = "0.5 W"\nprogram = "40 mW"\nread = "20 mW"\nmax_active_dies = [4, 2, 1]\n'
    path.write_text(re.sub(r"\n\[power\][^\[]*", "\n", path.read_text()) + power)
    return path


def test_a_state_with_fewer_active_dies_is_slower_and_the_report_names_it(
    drive: Path, tmp_path: Path
) -> None:
    rates = []
    for state in range(3):
        output = tmp_path / f"state-{state}"
        words = ["test", "iops", "--on", f"sim:{drive}", "--power-state", str(state), "--quick"]
        words += ["--block-sizes-kib", "4", "--read-pcts", "100,0"]
        words += ["--step-seconds", "0.05", "--max-rounds", "5", "--quiet", "--output", str(output)]
        assert main(words) == 0
        figures = summarise(output)["results"]
        rates.append(
            next(r["iops"] for r in figures if (r["block_bytes"], r["read_pct"]) == (4096, 0))
        )
        assert f"{(4, 2, 1)[state]} dies active at most" in (output / "report.html").read_text()
        assert read_run(output).setup["power state"] == str(state)
    assert rates[0] > 1.3 * rates[1] > 1.6 * rates[2]


@pytest.mark.parametrize(
    ("state", "has_states", "message"),
    [
        ("3", True, "no power state 3"),
        ("-1", True, "no power state -1"),
        ("0", False, "no power states in its device file"),
    ],
)
def test_a_state_that_the_drive_lacks_is_refused_before_a_run_exists(
    state: str,
    has_states: bool,
    message: str,
    drive: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = drive if has_states else write_small_drive(tmp_path)
    words = ["test", "iops", "--on", f"sim:{target}", "--power-state", state]
    assert main([*words, "--output", str(tmp_path / "r")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_the_states_are_shown(drive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["device", "show", str(drive), "--json"]) == 0
    states = json.loads(capsys.readouterr().out)["power_states"]
    assert [row["max_active_dies"] for row in states] == [4, 2, 1]
    watts = [row["watts_max"] for row in states]
    assert watts == sorted(watts, reverse=True)
    assert main(["device", "show", str(drive)]) == 0
    assert "1: 2 active dies" in capsys.readouterr().out
