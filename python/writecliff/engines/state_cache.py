"""Cache of preconditioned states for simulated drives.

A simulated drive is preconditioned once, and many runs then use the saved state. The key of a
cached state contains everything that determines the state: the device (by its hash) and its seed,
the recipe and its seeds, and the simulator build. A cached state is used only if its entire key
matches.
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
    """Return the hash of the native module, which changes whenever the simulator changes."""
    from writecliff import _native

    return hashlib.sha256(Path(str(_native.__file__)).read_bytes()).hexdigest()


def default_folder() -> Path:
    """Return `$WRITECLIFF_CACHE`, or `writecliff` in the user's cache folder."""
    given = os.environ.get(FOLDER)
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "writecliff"


def limit_bytes() -> int:
    """Return the limit in bytes from `$WRITECLIFF_CACHE_LIMIT` (for example "5 GB"), or 20 GB.

    Raises:
        ConfigError: If the variable does not contain a size.
    """
    given = os.environ.get(LIMIT)
    try:
        return units.parse_size(given) if given else BYTES_MAX
    except ConfigError as error:
        raise ConfigError(f"{LIMIT}: {error}", hint=error.hint) from None


@dataclass(frozen=True)
class CachedState:
    """A preconditioned state in the cache."""

    path: Path
    drive: str
    steps: tuple[str, ...]  # Names of the preconditioning workloads.
    size_bytes: int
    used_s: float  # Time of last use, in seconds since 1970.
    current: bool  # `True` if this build of the simulator wrote the state and can use it.


@dataclass(frozen=True)
class StateCache:
    """A folder of saved states, limited to `bytes_max` by least recently used removal.

    If `shared` is set, states that are missing in the folder are copied from `shared`.
    """

    folder: Path
    bytes_max: int = BYTES_MAX
    shared: SharedStates | None = None

    @classmethod
    def of_user(cls) -> Self:
        """Return the cache that all commands share.

        Raises:
            ConfigError: If the limit is not a size, or the shared states cannot be used.
        """
        return cls(default_folder(), limit_bytes(), SharedStates.of_user())

    @staticmethod
    def key(engine: SimEngine, steps: Sequence[Workload]) -> str:
        """Return a state's key, which contains everything that determines the state, as JSON."""
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
    def locked(self, engine: SimEngine, steps: Sequence[Workload]) -> Iterator[None]:
        """Lock a state, so that two processes do not prepare it at the same time.

        If the folder cannot be created, no lock is taken.
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
        """Load the cached state into the engine, or return False if no usable state exists."""
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
            # A damaged or incomplete state counts as missing and is rewritten.
            _discard(state, label)
            return False
        return True

    def save(self, engine: SimEngine, steps: Sequence[Workload]) -> None:
        """Store the engine's state, ignoring errors because a run does not depend on the cache."""
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
        """Return the cached states, least recently used first."""
        states = [_read(path) for path in self.folder.glob("*.wcs")]
        return sorted(
            (state for state in states if state), key=lambda state: (state.used_s, state.path)
        )

    def prune(self, bytes_max: int, *, stale: bool = True) -> list[CachedState]:
        """Remove the least recently used states until at most `bytes_max` remain.

        If `stale` is set, all states from other builds are removed first.

        Returns:
            The removed states.
        """
        left = self.states()
        removed = [state for state in left if stale and not state.current]
        left = [state for state in left if state not in removed]
        while left and sum(state.size_bytes for state in left) > bytes_max:
            removed.append(left.pop(0))
        for state in removed:
            _discard(state.path, state.path.with_suffix(".json"))
        return removed

    def _make_room(self) -> None:
        newest = max((state.size_bytes for state in self.states()[-1:]), default=0)
        # The most recently used state is never deleted. States from other builds may belong to
        # another installation.
        self.prune(max(self.bytes_max, newest), stale=False)


def _read(state: Path) -> CachedState | None:
    """Read a state's label, or None if the state was deleted.

    A state that has no label counts as stale.
    """
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

# Shared state cache: a folder or object store for several machines.
#
# `$WRITECLIFF_SHARED_CACHE` contains the cache path or an fsspec URL (s3://, gs://, ...). A machine
# reads the states that are missing in its own cache, and stores the states that it prepares. A
# state is written before its label, so a labelled state is always complete. The name of a state is
# the digest of all its inputs, so two machines that prepare the same state write the same bytes.
# The owner of the shared folder deletes states that are no longer needed.

LOCATION = "WRITECLIFF_SHARED_CACHE"


class SharedStates:
    """States in a folder or object store that several machines share."""

    def __init__(self, location: str) -> None:
        """Open the location at a path or fsspec URL.

        Raises:
            ConfigError: If fsspec or the package for the protocol is missing.
        """
        self.location = location
        try:
            import fsspec
        except ImportError:
            raise ConfigError(
                f"{LOCATION} requires the package fsspec, which is not installed",
                hint='pip install "writecliff[object-store]", and the package for the protocol '
                "(s3fs, gcsfs, adlfs)",
            ) from None
        try:
            self._files, root = fsspec.core.url_to_fs(location)
        except (ImportError, ValueError) as error:
            raise ConfigError(f"{LOCATION}={location} cannot be used: {error}") from None
        self._root = root.rstrip("/")

    @classmethod
    def of_user(cls) -> Self | None:
        """Return the states at `$WRITECLIFF_SHARED_CACHE`, or None if it is not set.

        Raises:
            ConfigError: If the location cannot be used.
        """
        location = os.environ.get(LOCATION)
        return cls(location) if location else None

    def fetch(self, state: Path, label: Path) -> bool:
        """Copy a state and its label to these paths, or return False if either is unreadable."""
        part = state.with_suffix(f".part-{os.getpid()}")
        try:
            text = self._files.cat_file(self._path(label))
            with self._files.open(self._path(state), "rb") as source, part.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            part.replace(state)
            label.write_bytes(text)
        # Exception types differ by protocol. After a failure, the state is prepared locally.
        except Exception:
            return False
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        return True

    def put(self, state: Path, label: Path) -> bool:
        """Copy a state, then its label, to the location, and return False if the copy fails."""
        try:
            self._files.makedirs(self._root, exist_ok=True)
            self._send(state)  # An existing state is either damaged or identical.
            self._send(label)
        except Exception:  # Exception types differ by protocol.
            return False
        return True

    def _send(self, path: Path) -> None:
        """Copy a file under a temporary name, and rename it, so that readers see it complete.

        Object stores publish only complete objects, and `mv` would require a second copy.
        """
        part = f"{self._path(path)}.part-{os.getpid()}"
        with path.open("rb") as source, self._files.open(part, "wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        self._files.mv(part, self._path(path))

    def _path(self, path: Path) -> Any:
        return f"{self._root}/{path.name}"
