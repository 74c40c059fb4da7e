"""States that machines share: a folder or an object store behind the caches of several machines.

`$WRITECLIFF_SHARED_CACHE` names it: a path, or a URL of fsspec (s3://, gs://, ...). A machine looks
there for what its own cache lacks, and puts there what it has made. A state comes before its label,
so one that has a label is whole; and its name is the digest of all that it depends on, so two
machines that make the same state at once write the same bytes. Nothing is removed here: what is no
longer wanted is the owner's to delete.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from writecliff.errors import ConfigError

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
        Object stores show none, but their `mv` is a second copy, which a state can take."""
        part = f"{self._path(path)}.part-{os.getpid()}"
        with path.open("rb") as source, self._files.open(part, "wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        self._files.mv(part, self._path(path))

    def _path(self, path: Path) -> Any:
        return f"{self._root}/{path.name}"
