"""Thread-safe access to the dashboard's store and catalogue, but not outside the store."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.errors import StoreError
from writecliff.runs.catalogue import Catalogue
from writecliff.runs.details import Details, details
from writecliff.runs.location import is_remote
from writecliff.runs.place import Place, open_place
from writecliff.store.manifest import MANIFEST_NAME

if TYPE_CHECKING:
    from writecliff.store.db import Views

_FRESH_S = 1.0  # Lifetime of the catalogue in seconds, because a page queries it several times.
_PARTS = frozenset(("rounds", "intervals", "histograms"))  # Folders of a run in progress.


class NoSuchRun(StoreError):
    """Raised if the store does not contain the run."""


class OutsideError(StoreError):
    """Raised if a run contains a link to a file outside the store."""


class Library:
    """A store that need not exist yet; all methods are thread-safe."""

    def __init__(self, location: str) -> None:
        """Open the store.

        Raises:
            ConfigError: If `location` is a file or an unsupported type of URL.
        """
        self.place: Place = open_place(location)
        self.location = location
        self._remote = is_remote(location)
        self._catalogue = Catalogue(self.place, ours=True)
        self._lock = threading.Lock()
        self._looked_s = float("-inf")
        self._names: set[str] = set()  # Run names, exactly as in the catalogue.

    @contextmanager
    def catalogue(self, *, figures: bool = False) -> Iterator[Views]:
        """Yield the views of the catalogue, which is at most one second old.

        Raises:
            StoreError: If the store cannot be read.
        """
        with self._lock:
            if figures or time.monotonic() - self._looked_s > _FRESH_S:
                self._catalogue.refresh(figures=figures)
                self._looked_s = time.monotonic()
            with self._catalogue.opened() as database:
                yield database

    def changed(self) -> None:
        """Read all directories again for the next query."""
        self._looked_s = float("-inf")

    def details(self, run: str) -> Details:
        """Return a run's details.

        Raises:
            NoSuchRun: If the store does not contain the run.
            OutsideError: If the run contains a link to outside the store.
            StoreError: If the run is damaged.
        """
        self.check(run)
        with self._lock:
            try:
                return details(self._catalogue, run)
            except StoreError:
                raise self._gone(run) from None

    def complete(self, runs: Sequence[str]) -> None:
        """Compute missing headline figures for some runs.

        Raises:
            StoreError: If the store cannot be read.
        """
        with self._lock:
            self._catalogue.complete(runs)

    def check(self, run: str) -> None:
        """Check that a run with exactly this name exists, without links to outside the store.

        Raises:
            NoSuchRun: If the store does not contain the run.
            OutsideError: If the run contains a link to outside the store.
        """
        if not (run in self._names and self._is_there(run)):
            with self.catalogue() as database:
                self._names = {name for (name,) in database.rows("select run from runs")[1]}
        if run not in self._names:
            raise self._gone(run)
        if self.leads_outside(run):
            raise OutsideError(
                f"{run} contains a link to a file outside the store",
                hint="run writecliff runs import to copy the link's target into the store",
            )

    @contextmanager
    def folder(self, run: str) -> Iterator[Path]:
        """Yield a run's directory, or a copy of the directory.

        Raises:
            NoSuchRun: see `check`.
            OutsideError: see `check`.
        """
        self.check(run)
        with self.place.as_folder(run) as folder:
            yield folder

    def leads_outside(self, run: str) -> bool:
        """Return `True` if a run directory, or a file in it, is outside the store."""
        if self._remote:
            return False
        root = os.path.realpath(self.place.path_of(""))
        return not _is_below(self.place.path_of(run), root) or _links_out(
            self.place.path_of(run), root
        )

    def _is_there(self, run: str) -> bool:
        """Return `True` if a known run still exists.

        Zooming queries a run repeatedly, so reading all directories of a large store would take
        longer than the response.
        """
        return not self._remote and (self.place.path_of(run) / MANIFEST_NAME).is_file()

    def _gone(self, run: str) -> NoSuchRun:
        return NoSuchRun(f"{self.location} does not contain a run '{run}'")


def _is_below(path: str | Path, root: str) -> bool:
    realpath = os.path.realpath(path)
    return realpath == root or realpath.startswith(root.rstrip("/") + "/")


def _links_out(folder: str | Path, root: str, *, inner: bool = False) -> bool:
    """Return `True` if a run directory entry is a link out of `root` or is not a file."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return False  # The run was deleted in the meantime, and reading it will report this.
    for entry in entries:
        if entry.is_symlink():
            if not _is_below(entry.path, root):
                return True
        elif entry.is_dir(follow_symlinks=False):
            if entry.name in _PARTS and not inner and _links_out(entry.path, root, inner=True):
                return True
        elif not inner and not _is_file(entry):
            return True  # Reading a pipe would block.
    return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode)
    except OSError:
        return True
