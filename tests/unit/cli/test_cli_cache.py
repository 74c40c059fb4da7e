"""`writecliff device cache`: prepared states are listed and removed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import CommandLine
from tests.support.small_drive import write_small_drive
from writecliff import SimEngine
from writecliff.engines import state_cache
from writecliff.engines.preconditioned import precondition
from writecliff.engines.state_cache import StateCache


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a cache with two states: one of another build, one of this build."""
    monkeypatch.setenv("WRITECLIFF_CACHE", str(tmp_path / "cache"))
    drive = str(write_small_drive(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(state_cache, "build_id", lambda: "another build")
        precondition(SimEngine(drive, seed=1), "fill", cache=StateCache.of_user())
    (old,) = (tmp_path / "cache").glob("*.wcs")
    os.utime(old, (1.7e9, 1.7e9))
    precondition(SimEngine(drive, seed=1), "sustained", cache=StateCache.of_user())
    return tmp_path / "cache"


def answer(cli: CommandLine, words: str) -> dict[str, Any]:
    completed = cli(words)
    assert completed.code == 0, completed.err
    document: dict[str, Any] = json.loads(completed.out)
    return document


def test_states_are_listed_with_what_they_are(cli: CommandLine, folder: Path) -> None:
    listing = answer(cli, "device cache list --json")
    old, new = listing["states"]
    assert (old["current"], new["current"]) == (False, True)
    assert old["drive"] == new["drive"] != "unknown"
    assert old["used"].startswith("2023-11-1")
    assert [step.split(": ")[-1] for step in new["steps"]] == ["fill", "random"]
    sizes = sorted(path.stat().st_size for path in folder.glob("*.wcs"))
    assert sorted(state["size_bytes"] for state in listing["states"]) == sizes
    assert listing["size_bytes"] == sum(sizes)
    shown = cli("device cache list").out
    assert "from another build" in shown
    assert "2 states, " in shown and "at most 20" in shown


def test_pruning_removes_what_no_build_here_can_use(cli: CommandLine, folder: Path) -> None:
    (removed,) = answer(cli, "device cache prune --json")["removed"]
    assert removed["current"] is False
    assert [path.suffix for path in sorted(folder.glob("*.[jw]*"))] == [".json", ".wcs"]
    assert answer(cli, "device cache prune --json")["removed"] == []
    assert "1 state, " in cli("device cache prune 1kB").out
    assert not list(folder.glob("*.[jw]*"))


def test_all_can_be_removed(cli: CommandLine, folder: Path) -> None:
    assert len(answer(cli, "device cache prune --all --json")["removed"]) == 2
    assert cli("device cache list").out.startswith("0 states, 0 ")


def test_a_state_without_its_label_is_listed_and_removed(cli: CommandLine, folder: Path) -> None:
    for label in folder.glob("*.json"):
        label.write_text("{")
    assert {state["drive"] for state in answer(cli, "device cache list --json")["states"]} == {
        "unknown"
    }
    assert len(answer(cli, "device cache prune --json")["removed"]) == 2


def test_the_limit_may_be_set(
    cli: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRITECLIFF_CACHE_LIMIT", "5 GB")
    assert answer(cli, "device cache list --json")["limit_bytes"] == 5_000_000_000
    monkeypatch.setenv("WRITECLIFF_CACHE_LIMIT", "much")
    completed = cli("device cache list")
    assert completed.code == 2
    assert "WRITECLIFF_CACHE_LIMIT: invalid size 'much'" in completed.err


def test_a_cache_that_is_not_there_is_empty(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRITECLIFF_CACHE", str(tmp_path / "nowhere"))
    assert answer(cli, "device cache list --json")["states"] == []
    assert answer(cli, "device cache prune --json")["removed"] == []
    assert cli("device cache prune 1GB --all").code == 2
