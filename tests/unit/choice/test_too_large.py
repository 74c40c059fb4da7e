"""Drives of a group that this machine cannot simulate: omitted and reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.small_drive import write_small_drive
from writecliff.choice.question import Question
from writecliff.choice.too_large import left_out_text, without_too_large
from writecliff.cli.main import main
from writecliff.errors import ConfigError

GB = 10**9
LARGE, BEYOND = "d5-p5430-15360", "d5-p5336-61440"


def question(folder: Path, *candidates: str, scale: float | None = None) -> Question:
    load = folder / "load.toml"
    load.write_text(
        'name = "load"\n[[job]]\nname = "load"\nblock_size = "4 KiB"\nduration = "2 s"\n'
    )
    return Question(workload=str(load), candidates=candidates, scale=scale)


def test_drives_at_full_size_are_omitted_if_they_do_not_fit(tmp_path: Path) -> None:
    asked = question(tmp_path, "fl6-1600", LARGE, "p5800x-400", scale=1.0)
    possible = without_too_large(asked, (), budget_bytes=20 * GB)
    assert possible.candidates == ("fl6-1600", "p5800x-400")
    assert left_out_text(possible.left_out) == f"{LARGE} needs 32 GB of memory where 20 GB are free"
    assert without_too_large(asked, (), budget_bytes=40 * GB) == asked
    # Drives given by name remain in the list, and are rejected with a reason when they run.
    assert without_too_large(asked, (LARGE,), budget_bytes=20 * GB) == asked


def test_scaled_drives_fit(tmp_path: Path) -> None:
    asked = question(tmp_path, "fl6-1600", LARGE, BEYOND)
    assert without_too_large(asked, (), budget_bytes=20 * GB) == asked


def test_a_trace_needs_drives_that_can_be_simulated_at_full_size(tmp_path: Path) -> None:
    assert main(["trace", "synthesise", "example:sqlite", "--output", str(tmp_path)]) == 0
    load = str(tmp_path / "workload.toml")
    asked = Question(workload=load, candidates=("fl6-1600", BEYOND, "p5800x-400"))
    possible = without_too_large(asked, (), budget_bytes=20 * GB)
    assert possible.candidates == ("fl6-1600", "p5800x-400")
    assert possible.left_out == {BEYOND: "cannot be simulated at full capacity"}


def test_the_answer_lists_omitted_drives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a 1.6 TB drive is too large at full size on a machine with 3 GB."""
    monkeypatch.setattr("writecliff.parallel.available_memory_bytes", lambda: 3 * GB)
    asked = question(tmp_path)
    small = tmp_path / "small"
    small.mkdir()
    write_small_drive(small).rename(small / "usual.toml")
    write_small_drive(small, read='["300 us", "300 us", "300 us"]').rename(small / "slow.toml")
    drives = f"{small}/usual.toml,{small}/slow.toml,fl6-*"
    words = ["choose", "--workload", asked.workload, "--candidates", drives,
             "--scale", "1", "--output", str(tmp_path / "c"), "--json"]  # fmt: skip
    assert main(words) == 0
    done = capsys.readouterr()
    answer = json.loads(done.out)
    assert list(answer["left_out"]) == ["fl6-1600"]
    assert "fl6-1600" not in {row["device"] for row in answer["ranking"]}
    assert "omitted drives: fl6-1600 needs 4 GB" in done.err
    assert "fl6-1600 needs 4 GB" in Path(answer["report"]).read_text(encoding="utf-8")


def test_nothing_left_is_an_error(tmp_path: Path) -> None:
    asked = question(tmp_path, LARGE, "micron-7450-15360", "p5800x-400", scale=1.0)
    with pytest.raises(ConfigError, match="one drive is left to choose from: d5-p5430-15360 needs"):
        without_too_large(asked, (), budget_bytes=20 * GB)
