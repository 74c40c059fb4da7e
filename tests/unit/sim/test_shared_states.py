"""Machines with separate caches that take states from a shared location."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.small_drive import write_small_drive
from writecliff import SimEngine
from writecliff.engines.preconditioned import precondition
from writecliff.engines.state_cache import LOCATION, SharedStates, StateCache
from writecliff.errors import ConfigError

pytest.importorskip("fsspec")
Machine = Callable[[str], StateCache]


@pytest.fixture(params=["folder", "memory"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a location as a user would name it: a path, or a URL."""
    return str(tmp_path / "shared") if request.param == "folder" else f"memory://{tmp_path.name}"


@pytest.fixture
def machine(location: str, tmp_path: Path) -> Machine:
    return lambda name: StateCache(tmp_path / name, shared=SharedStates(location))


def prepared(tmp_path: Path, cache: StateCache) -> tuple[bool, bytes]:
    """Return `True` if a drive's state was loaded from a cache, and the state."""
    engine = SimEngine(str(write_small_drive(tmp_path)), seed=1)
    cached = precondition(engine, "fill", cache=cache)
    engine.save(tmp_path / "state")
    return cached, (tmp_path / "state").read_bytes()


def test_a_state_is_made_once_for_all_machines(machine: Machine, tmp_path: Path) -> None:
    cached, made = prepared(tmp_path, machine("one"))
    assert not cached
    assert prepared(tmp_path, machine("two")) == (True, made)
    alone = StateCache(tmp_path / "two")  # The second cache now has its own copy.
    assert prepared(tmp_path, alone) == (True, made)
    # The folder contains the state, the label and the lock, but no fragments.
    assert len(list((tmp_path / "two").glob("*"))) == 3


def test_a_damaged_shared_state_is_made_anew_and_replaced(
    machine: Machine, location: str, tmp_path: Path
) -> None:
    _, made = prepared(tmp_path, machine("one"))
    shared = SharedStates(location)
    (name,) = (path.name for path in (tmp_path / "one").glob("*.wcs"))
    with shared._files.open(f"{shared._root}/{name}", "wb") as file:
        file.write(made[: len(made) // 2])
    assert prepared(tmp_path, machine("two")) == (False, made)
    assert prepared(tmp_path, machine("three")) == (True, made)


def test_a_place_that_cannot_be_written_or_read_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = StateCache(tmp_path / "one", shared=SharedStates(str(tmp_path / "file/below")))
    assert prepared(tmp_path, cache)[0] is False
    assert prepared(tmp_path, cache)[0] is True


def test_the_environment_names_the_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(LOCATION, raising=False)
    assert StateCache.of_user().shared is None
    monkeypatch.setenv(LOCATION, str(tmp_path))
    shared_states = StateCache.of_user().shared
    assert shared_states is not None
    assert shared_states.location == str(tmp_path)
    monkeypatch.setenv(LOCATION, "nosuch://x")
    with pytest.raises(ConfigError, match="nosuch://x cannot be used"):
        StateCache.of_user()
