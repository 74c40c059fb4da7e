"""A cache of the states that simulated drives are brought to.

A simulated drive is brought to its sustained state once and used by many runs. The key of a cached
state is everything that it depends on: the device (by its hash) and its seed, the recipe with its
seeds, and the very build of the simulator. A state is served only if all of it is the same.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from writecliff import units
from writecliff.errors import ConfigError, WritecliffError
from writecliff.workload.model import Workload

if TYPE_CHECKING:
    from writecliff.engines.sim import SimEngine

BYTES_MAX = 20_000_000_000
FOLDER, LIMIT = "WRITECLIFF_CACHE", "WRITECLIFF_CACHE_LIMIT"
_LOCK = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


@lru_cache(maxsize=1)
def build_id() -> str:
    """Hash of the native module: any change to the simulator makes another one."""
    from writecliff import _native

    return hashlib.sha256(Path(str(_native.__file__)).read_bytes()).hexdigest()


def default_folder() -> Path:
    """`$WRITECLIFF_CACHE`, else `writecliff` in the user's cache folder."""
    given = os.environ.get(FOLDER)
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "writecliff"


def limit_bytes() -> int:
    """`$WRITECLIFF_CACHE_LIMIT`, a size such as "5 GB", else 20 GB. Raises ConfigError."""
    given = os.environ.get(LIMIT)
    try:
        return units.parse_size(given) if given else BYTES_MAX
    except ConfigError as error:
        raise ConfigError(f"{LIMIT}: {error}", hint=error.hint) from None


@dataclass(frozen=True)
class CachedState:
    """A state in the cache. `current`: made by this build of the simulator, so that it may be
    served; `used_s`: when it was last, in seconds since 1970.
    """

    path: Path
    drive: str
    steps: tuple[str, ...]
    size_bytes: int
    used_s: float
    current: bool


@dataclass(frozen=True)
class StateCache:
    """A folder of saved states, the least recently used ones removed beyond `bytes_max`. What it
    lacks is looked for in the states that machines share, if there are such.
    """

    folder: Path
    bytes_max: int = BYTES_MAX
    shared: SharedStates | None = None

    @classmethod
    def of_user(cls) -> Self:
        """The cache that all commands share. Raises ConfigError: a limit that is no size, shared
        states that cannot be used.
        """
        return cls(default_folder(), limit_bytes(), SharedStates.of_user())

    @staticmethod
    def key(engine: SimEngine, steps: Sequence[Workload]) -> str:
        """Everything that the state depends on, as text."""
        parts = {
            "drive": engine.description.name,
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
        and nothing to hold.
        """
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
        if self.shared is not None and not (state.exists() and label.exists()):
            self.shared.fetch(state, label)
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
            if self.shared is not None:
                self.shared.put(state, label)
            self._make_room()
        except (OSError, WritecliffError):
            _discard(state, label)

    def states(self) -> list[CachedState]:
        """What the cache holds, the least recently used first."""
        found = [_read(path) for path in self.folder.glob("*.wcs")]
        return sorted((one for one in found if one), key=lambda one: (one.used_s, one.path))

    def prune(self, bytes_max: int, *, stale: bool = True) -> list[CachedState]:
        """Remove the least recently used states until the others take no more than `bytes_max`,
        those of other builds first if they are `stale`. Returns what was removed.
        """
        left = self.states()
        removed = [one for one in left if stale and not one.current]
        left = [one for one in left if one not in removed]
        while left and sum(one.size_bytes for one in left) > bytes_max:
            removed.append(left.pop(0))
        for one in removed:
            _discard(one.path, one.path.with_suffix(".json"))
        return removed

    def _make_room(self) -> None:
        newest = max((one.size_bytes for one in self.states()[-1:]), default=0)
        # The one just written stays. Those of other builds may be of another installation.
        self.prune(max(self.bytes_max, newest), stale=False)


def _read(state: Path) -> CachedState | None:
    """None if it is gone. A state without a label that can be read cannot be served."""
    try:
        about = state.stat()
    except OSError:
        return None
    try:
        label = json.loads(state.with_suffix(".json").read_text(encoding="utf-8"))
        drive, recipe = label["drive"], label["recipe"]
        steps, current = tuple(step["name"] for step in recipe), label["build"] == build_id()
    except (OSError, ValueError, KeyError, TypeError):
        drive, steps, current = "unknown", (), False
    return CachedState(state, drive, steps, about.st_size, about.st_mtime, current)


def _discard(*paths: Path) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()


# -- shared states ---------------------------------------------------------------------------------

# Shared states: a folder or an object store behind the caches of several machines.
#
# `$WRITECLIFF_SHARED_CACHE` is its path, or a URL of fsspec (s3://, gs://, ...). A machine reads
# states from there that its own cache lacks, and writes the states that it has prepared. A state is
# written before its label, so a state with a label is complete. Its name is the digest of all its
# inputs, so two machines that prepare the same state write the same bytes. The owner of the folder
# deletes states that are no longer needed.

LOCATION = "WRITECLIFF_SHARED_CACHE"


class SharedStates:
    """Files below one location."""

    def __init__(self, location: str) -> None:
        """Raises ConfigError: fsspec or the package of a protocol is missing."""
        self.location = location
        try:
            import fsspec
        except ImportError:
            raise ConfigError(
                f"{LOCATION} needs the package fsspec",
                hint='pip install "writecliff[object-store]", and the package of the protocol'
                " (s3fs, gcsfs, adlfs)",
            ) from None
        try:
            self._files, root = fsspec.core.url_to_fs(location)
        except (ImportError, ValueError) as error:
            raise ConfigError(f"{LOCATION}={location} cannot be used: {error}") from None
        self._root = root.rstrip("/")

    @classmethod
    def of_user(cls) -> Self | None:
        """What the environment names; None: nothing. Raises ConfigError."""
        location = os.environ.get(LOCATION)
        return cls(location) if location else None

    def fetch(self, state: Path, label: Path) -> bool:
        """Copy a state and its label to these paths, if both are there and can be read."""
        part = state.with_suffix(f".part-{os.getpid()}")
        try:
            text = self._files.cat_file(self._path(label))
            with self._files.open(self._path(state), "rb") as source, part.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            part.replace(state)
            label.write_bytes(text)
        except Exception:  # each protocol has errors of its own; the state is made here then
            return False
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        return True

    def put(self, state: Path, label: Path) -> bool:
        """Copy a state and then its label here; False if that fails, which loses nothing."""
        try:
            self._files.makedirs(self._root, exist_ok=True)
            self._send(state)  # even if one is there: it was damaged, or it has the same bytes
            self._send(label)
        except Exception:  # each protocol has errors of its own
            return False
        return True

    def _send(self, path: Path) -> None:
        """Copy a file: under another name first, because a folder shows files that are half there.
        Object stores show none, but their `mv` is a second copy, which a state can take.
        """
        part = f"{self._path(path)}.part-{os.getpid()}"
        with path.open("rb") as source, self._files.open(part, "wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        self._files.mv(part, self._path(path))

    def _path(self, path: Path) -> Any:
        return f"{self._root}/{path.name}"
