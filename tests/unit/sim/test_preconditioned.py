"""Preconditioned drives: loaded from the cache exactly when nothing has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.small_drive import write_small_drive
from writecliff import SimEngine
from writecliff.engines import state_cache
from writecliff.engines.preconditioned import precondition, recipe
from writecliff.engines.state_cache import StateCache
from writecliff.errors import ConfigError


@pytest.fixture
def cache(tmp_path: Path) -> StateCache:
    return StateCache(tmp_path / "cache")


def drive(tmp_path: Path, seed: int = 1, **changes: str) -> SimEngine:
    return SimEngine(str(write_small_drive(tmp_path, **changes)), seed=seed)


def state(engine: SimEngine, path: Path) -> bytes:
    engine.save(path)
    return path.read_bytes()


def test_a_cached_drive_is_the_same_drive(cache: StateCache, tmp_path: Path) -> None:
    made, taken = drive(tmp_path), drive(tmp_path)
    assert precondition(made, "sustained", cache=cache) is False
    assert precondition(taken, "sustained", cache=cache) is True
    assert state(made, tmp_path / "a") == state(taken, tmp_path / "b")
    written = taken.counters().host_write_bytes
    assert written == pytest.approx(3 * taken.identify().capacity_bytes, rel=1e-3)
    taken.check()


def test_any_change_of_the_key_is_a_miss(
    cache: StateCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert precondition(drive(tmp_path), "fill", cache=cache) is False
    assert precondition(drive(tmp_path), "fill", cache=cache) is True
    assert precondition(drive(tmp_path), "sustained", cache=cache) is False
    assert precondition(drive(tmp_path, seed=2), "fill", cache=cache) is False
    assert precondition(drive(tmp_path, erase='"6 ms"'), "fill", cache=cache) is False
    monkeypatch.setattr(state_cache, "build_id", lambda: "another build")
    assert precondition(drive(tmp_path), "fill", cache=cache) is False


def test_a_damaged_state_is_made_anew(cache: StateCache, tmp_path: Path) -> None:
    sound = drive(tmp_path)
    precondition(sound, "fill", cache=cache)
    (path,) = cache.folder.glob("*.wcs")
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    again = drive(tmp_path)
    assert precondition(again, "fill", cache=cache) is False
    again.check()
    assert again.counters() == sound.counters()
    assert precondition(drive(tmp_path), "fill", cache=cache) is True


def test_a_label_that_is_not_the_key_is_never_believed(cache: StateCache, tmp_path: Path) -> None:
    precondition(drive(tmp_path), "fill", cache=cache)
    (label,) = cache.folder.glob("*.json")
    label.write_text(label.read_text().replace('"drive_seed": 1', '"drive_seed": 9'))
    assert precondition(drive(tmp_path), "fill", cache=cache) is False


def test_the_cache_keeps_to_its_size(tmp_path: Path) -> None:
    cache = StateCache(tmp_path / "cache", bytes_max=1)
    for seed in (1, 2, 3):
        precondition(drive(tmp_path, seed=seed), "fill", cache=cache)
    assert len(list(cache.folder.glob("*.wcs"))) == 1
    assert precondition(drive(tmp_path, seed=3), "fill", cache=cache) is True


def test_a_cache_that_cannot_be_written_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    engine = drive(tmp_path)
    assert precondition(engine, "fill", cache=StateCache(tmp_path / "file")) is False
    assert engine.counters().host_write_bytes


def test_unknown_recipes_are_named() -> None:
    with pytest.raises(ConfigError, match="unknown preconditioning 'half'"):
        recipe("half", 1 << 30)
