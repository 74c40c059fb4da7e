"""Preconditioned drives: recipes by name, and a cache of the states that they lead to.

A simulated drive is brought to its sustained state once and used by many runs. The key of a cached
state is everything that it depends on: the device (by its hash) and its seed, the recipe with its
seeds, and the very build of the simulator. A state is served only if all of it is the same.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.errors import ConfigError, WritecliffError
from writecliff.workload.model import BlockSize, Job, Workload

if TYPE_CHECKING:
    from writecliff.engines.base import Engine, ProgressHook
    from writecliff.engines.sim import SimEngine

RECIPES = {
    "none": "the drive as it is",
    "fill": "the whole capacity once, 128 KiB in order",
    "sustained": "the whole capacity once, 128 KiB in order, then twice, 4 KiB at random",
    "act": "the whole capacity twice, 128 KiB in order: zeros, then random data (ACT's act_prep)",
}
CACHE_BYTES_MAX = 20_000_000_000
_QUEUE_DEPTH = 32
_LOCK = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
_SEEDS = (1001, 1002)  # apart from those of any load, which must not revisit the same addresses


def recipe(name: str, capacity_bytes: int) -> list[Workload]:
    """The workloads of a recipe for a drive of this capacity. Raises ConfigError.

    "sustained" is the preconditioning of Samsung's PM863 white paper (2015): one capacity of
    128 KiB sequential writes, two capacities of 4 KiB random writes.
    """
    if name not in RECIPES:
        known = ", ".join(RECIPES)
        raise ConfigError(f"there is no preconditioning '{name}'", hint=f"known: {known}")
    in_order = Job(
        pattern="sequential",
        block_sizes=(BlockSize(128 * 1024),),
        queue_depth=_QUEUE_DEPTH,
        volume_bytes=capacity_bytes,
    )
    if name == "act":
        zeros = replace(in_order, compressible_pct=100.0)
        return [
            Workload("preconditioning: zeros", (zeros,), seed=_SEEDS[0]),
            Workload("preconditioning: salt", (in_order,), seed=_SEEDS[1]),
        ]
    at_random = Job(queue_depth=_QUEUE_DEPTH, volume_bytes=2 * capacity_bytes)
    steps = [
        Workload("preconditioning: fill", (in_order,), seed=_SEEDS[0]),
        Workload("preconditioning: random", (at_random,), seed=_SEEDS[1]),
    ]
    return steps[: {"none": 0, "fill": 1, "sustained": 2}[name]]


def precondition(
    engine: Engine,
    name: str,
    *,
    cache: StateCache | None = None,
    on_progress: ProgressHook | None = None,
) -> bool:
    """Bring a purged drive to the state of a recipe; True if a cached state could be used."""
    steps = recipe(name, engine.identify().capacity_bytes)
    return bring_to(engine, steps, cache=cache, on_progress=on_progress) if steps else False


def bring_to(
    engine: Engine,
    steps: Sequence[Workload],
    *,
    cache: StateCache | None = None,
    on_progress: ProgressHook | None = None,
) -> bool:
    """The same for any workloads: purge, then precondition with each.

    A simulated drive begins anew, with its write cache as it is set: what it has been through
    before must not be in a state that others are served. Two processes that need the same state
    make it once.
    """
    from writecliff.engines.sim import SimEngine

    def make() -> None:
        if isinstance(engine, SimEngine):
            engine.renew()
        else:
            engine.purge()
        for workload in steps:
            engine.precondition(workload, on_progress)

    if cache is None or not isinstance(engine, SimEngine):
        make()
        return False
    with cache.held(engine, steps):
        if cache.restore(engine, steps):
            return True
        make()
        cache.save(engine, steps)
    return False


@lru_cache(maxsize=1)
def build_id() -> str:
    """Hash of the native module: any change to the simulator makes another one."""
    from writecliff import _native

    return hashlib.sha256(Path(str(_native.__file__)).read_bytes()).hexdigest()


def default_folder() -> Path:
    """`$WRITECLIFF_CACHE`, else `writecliff` in the user's cache folder."""
    given = os.environ.get("WRITECLIFF_CACHE")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "writecliff"


@dataclass(frozen=True)
class StateCache:
    """A folder of saved states, the least recently used ones removed beyond `bytes_max`."""

    folder: Path
    bytes_max: int = CACHE_BYTES_MAX

    @staticmethod
    def key(engine: SimEngine, steps: Sequence[Workload]) -> str:
        """Everything that the state depends on, as text."""
        parts = {
            "device": engine.description.device_hash,
            "drive_seed": engine.seed,
            "write_cache": engine.write_cache,
            "recipe": [json.loads(workload.to_json()) for workload in steps],
            "build": build_id(),
        }
        return json.dumps(parts, sort_keys=True)

    def _paths(self, key: str) -> tuple[Path, Path]:
        stem = hashlib.sha256(key.encode()).hexdigest()[:32]
        return self.folder / f"{stem}.wcs", self.folder / f"{stem}.json"

    @contextmanager
    def held(self, engine: SimEngine, steps: Sequence[Workload]) -> Iterator[None]:
        """Let no other process make the same state meanwhile; without a folder there is no cache,
        and nothing to hold."""
        state, _ = self._paths(self.key(engine, steps))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(state.with_suffix(".lock"), _LOCK, 0o644)
        except OSError:
            yield
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def restore(self, engine: SimEngine, steps: Sequence[Workload]) -> bool:
        """Bring the engine to the cached state; False if there is none that can be used."""
        key = self.key(engine, steps)
        state, label = self._paths(key)
        try:
            if label.read_text(encoding="utf-8") != key:
                return False
            engine.restore(state)
            os.utime(state)
        except (OSError, WritecliffError):
            # Damaged or half gone: as good as not there; it will be written anew.
            _discard(state, label)
            return False
        return True

    def save(self, engine: SimEngine, steps: Sequence[Workload]) -> None:
        """Keep the engine's state. A cache that cannot be written is no reason to fail."""
        key = self.key(engine, steps)
        state, label = self._paths(key)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            engine.save(state)
            part = label.with_suffix(".json.part")
            part.write_text(key, encoding="utf-8")
            part.replace(label)
            self._make_room()
        except (OSError, WritecliffError):
            _discard(state, label)

    def _make_room(self) -> None:
        states = sorted(self.folder.glob("*.wcs"), key=lambda path: path.stat().st_mtime)
        total = sum(path.stat().st_size for path in states)
        for path in states[:-1]:  # the one just written stays
            if total <= self.bytes_max:
                return
            total -= path.stat().st_size
            _discard(path, path.with_suffix(".json"))


def _discard(*paths: Path) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()
