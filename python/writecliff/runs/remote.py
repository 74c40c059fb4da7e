"""A store on an object store, by fsspec: s3://, gs://, abfs://, memory:// and others.

An object store has neither locks nor renaming of folders. A run comes with its manifest last and
goes with its manifest first, so that it is whole or no run. Of two processes that save the
catalogue the last one wins, and what the other had found is found again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path, PurePosixPath
from typing import Any

from writecliff.errors import ConfigError, StoreError
from writecliff.runs.place import CATALOGUE_FOLDER, NO_MANIFEST, REMAINS, Found
from writecliff.store.manifest import MANIFEST_NAME, SUITE_NAME

_TOKENS = ("ETag", "etag", "md5Hash", "content_hash", "mtime", "LastModified", "last_modified",
           "created", "size")  # fmt: skip
_WATCHED = (MANIFEST_NAME, "tags.json", "figures.json")


class RemotePlace:
    """A folder of an object store."""

    def __init__(self, location: str) -> None:
        """Raises ConfigError: the package for it is missing, or the URL cannot be used."""
        try:
            import fsspec
        except ImportError:
            raise ConfigError(
                f"{location} needs the package fsspec",
                hint='pip install "writecliff[object-store]", and the package of the protocol '
                "(s3fs, gcsfs, adlfs)",
            ) from None
        self.location = location
        try:
            self._files, root = fsspec.core.url_to_fs(location)
        except (ImportError, ValueError) as error:
            raise ConfigError(f"{location} cannot be used: {_first_line(error)}") from None
        self._root = root.rstrip("/")

    def _path(self, *parts: str) -> str:
        return "/".join((self._root, *parts))

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Whatever a protocol's package raises, in one line. FileNotFoundError passes."""
        try:
            yield
        except (FileNotFoundError, StoreError):
            raise
        except Exception as error:  # each package has errors of its own
            raise StoreError(f"{what} failed: {_first_line(error)}") from error

    # -- finding ------------------------------------------------------------------------------

    def find(self) -> Iterator[Found]:
        with self._errors(f"listing {self.location}"):
            self._files.invalidate_cache()
            try:
                listed = self._files.find(self._root, detail=True)
            except FileNotFoundError:
                return
        folders: dict[str, dict[str, Mapping[str, Any]]] = {}
        for path, about in listed.items():
            below = path.removeprefix(f"{self._root}/")
            folder, _, name = below.rpartition("/")
            if folder and not any(part.startswith(".") for part in folder.split("/")):
                folders.setdefault(folder, {})[name] = about
        suites = {folder for folder, names in folders.items() if SUITE_NAME in names}
        for folder, names in folders.items():
            parent = folder.rpartition("/")[0]
            member_of = parent if parent in suites else None
            if MANIFEST_NAME in names:
                yield Found(folder, _token(names), member_of)
            elif REMAINS & names.keys():
                yield Found(folder, NO_MANIFEST, member_of, has_manifest=False)

    def path_of(self, run: str) -> Path:
        return Path(f"{self.location.rstrip('/')}/{run}")

    # -- files of runs ------------------------------------------------------------------------

    def read(self, run: str, name: str) -> bytes:
        with self._errors(f"reading {run}/{name}"):
            return bytes(self._files.cat_file(self._path(run, name)))

    def write(self, run: str, name: str, data: bytes) -> None:
        with self._errors(f"writing {run}/{name}"):
            self._files.pipe_file(self._path(run, name), data)

    def is_running(self, run: str) -> bool:
        return False  # runs are made elsewhere

    @contextmanager
    def as_folder(self, run: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="writecliff-") as made:
            folder = Path(made) / PurePosixPath(run).name
            folder.mkdir()
            with self._errors(f"reading {run}"):
                for path in self._files.find(self._path(run)):
                    below = PurePosixPath(path.removeprefix(f"{self._path(run)}/"))
                    target = folder.joinpath(*(part for part in below.parts if part != ".."))
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(self._files.cat_file(path))
            yield folder

    # -- coming and going ---------------------------------------------------------------------

    def is_free(self, run: str) -> bool:
        with self._errors(f"looking for {run}"):
            return not self._files.exists(self._path(run))

    def add(self, folder: Path, run: str) -> None:
        files = [p for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink()]
        files.sort(key=lambda path: path.name in (MANIFEST_NAME, SUITE_NAME))
        with self._errors(f"writing {run}"):
            for path in files:
                if path.name != ".lock":
                    below = path.relative_to(folder).as_posix()
                    self._files.pipe_file(self._path(run, below), path.read_bytes())

    def remove(self, run: str) -> None:
        with self._errors(f"removing {run}"):
            for name in (MANIFEST_NAME, SUITE_NAME):
                if self._files.exists(self._path(run, name)):
                    self._files.rm_file(self._path(run, name))
            if self._files.exists(self._path(run)):
                self._files.rm(self._path(run), recursive=True)

    def sweep(self) -> None:
        """Nothing is left behind but objects that belong to no run."""

    # -- the catalogue ------------------------------------------------------------------------

    def saved(self, name: str) -> Path | None:
        return None

    def load(self, name: str) -> bytes | None:
        try:
            return self.read(CATALOGUE_FOLDER, name)
        except (FileNotFoundError, StoreError):
            return None

    def save(self, name: str, data: bytes) -> None:
        self.write(CATALOGUE_FOLDER, name, data)

    def discard(self, name: str) -> None:
        with self._errors(f"removing {name}"):
            if self._files.exists(self._path(CATALOGUE_FOLDER, name)):
                self._files.rm_file(self._path(CATALOGUE_FOLDER, name))

    def saving(self) -> nullcontext[None]:
        return nullcontext()


def _token(names: Mapping[str, Mapping[str, Any]]) -> str:
    """What the listing says of the files that the catalogue is made from."""
    parts = [
        f"{name}:{','.join(str(names[name][key]) for key in _TOKENS if key in names[name])}"
        for name in _WATCHED
        if name in names
    ]
    return ";".join(parts)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
