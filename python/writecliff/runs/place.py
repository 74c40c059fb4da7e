"""What a store must do, wherever it is.

A run is named by the path of its directory in the store, with slashes: "runs/wsat-1",
"suites/pts-e-1/iops". The file system gives other bytes than UTF-8 as escapes in names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

CATALOGUE_FOLDER = ".writecliff"
NO_MANIFEST = "-"  # the token of a run without one
# What a run directory without a manifest still has.
REMAINS = frozenset(("rounds.parquet", "histograms.parquet", "intervals.parquet"))


class Found(NamedTuple):
    """A run that a store holds.

    `token` changes whenever something in the directory is replaced; empty: changing right now, or
    nothing can be told. `member_of` is the suite or sweep that the run is part of.
    """

    run: str
    token: str
    member_of: str | None = None
    has_manifest: bool = True


class Place(Protocol):
    """Where runs are. Methods raise StoreError; of a run that is gone, FileNotFoundError."""

    location: str  # as the user names it

    def find(self) -> Iterator[Found]:
        """All runs, in no order; none if the place does not exist."""
        ...

    def path_of(self, run: str) -> Path:
        """For messages; and, of a store in a folder, the directory itself."""
        ...

    def read(self, run: str, name: str) -> bytes:
        """The content of a file of a run."""
        ...

    def write(self, run: str, name: str, data: bytes) -> None:
        """Replace a file of a run as a whole."""
        ...

    def is_running(self, run: str) -> bool:
        """Whether a process is writing the run."""
        ...

    def as_folder(self, run: str) -> AbstractContextManager[Path]:
        """A folder that holds the run, or a copy of it, for reading."""
        ...

    def add(self, folder: Path, run: str) -> None:
        """Copy a run directory or suite to `run`, which must be free; the manifest last."""
        ...

    def is_free(self, run: str) -> bool:
        """Whether nothing is there."""
        ...

    def remove(self, run: str) -> None:
        """Remove a run: it is whole or gone."""
        ...

    def saved(self, name: str) -> Path | None:
        """The path of a file of the catalogue, there or not; None where files have no paths."""
        ...

    def load(self, name: str) -> bytes | None:
        """A file of the catalogue; None if there is none."""
        ...

    def save(self, name: str, data: bytes) -> None:
        """Replace a file of the catalogue."""
        ...

    def discard(self, name: str) -> None:
        """Remove a file of the catalogue."""
        ...

    def sweep(self) -> None:
        """Remove what deletions and copies that were killed have left behind."""
        ...

    def saving(self) -> AbstractContextManager[None]:
        """Holds off other processes that save the catalogue, where that is possible."""
        ...


def open_place(location: str) -> Place:
    """The store at a path or URL. Raises ConfigError: a file, or a kind of URL that cannot be used
    here."""
    from writecliff.runs.location import is_remote

    if is_remote(location):
        from writecliff.runs.remote import RemotePlace

        return RemotePlace(location)
    from writecliff.runs.local import LocalPlace

    return LocalPlace(Path(location))


def shown_name(name: bytes) -> str:
    """The name of a file as text: what is not UTF-8 becomes escapes such as \\\\xff."""
    return name.decode("utf-8", "backslashreplace")
