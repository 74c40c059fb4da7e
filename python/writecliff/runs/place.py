"""Run store interface, with implementations for folders and object stores.

A run's name is its directory path in the store, with slashes: "runs/wsat-1", "suites/pts-e-1/iops".
Bytes that are not valid UTF-8 appear as escapes in names.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, Protocol

from writecliff.errors import ConfigError, StoreError
from writecliff.store.files import is_locked, read_regular, store_error, write_atomically
from writecliff.store.manifest import MANIFEST_NAME, SUITE_NAME

CATALOGUE_FOLDER = ".writecliff"
NO_MANIFEST = "-"  # Token for a run that has no manifest.
# Files that identify a run directory whose manifest is missing.
REMAINS = frozenset(("rounds.parquet", "histograms.parquet", "intervals.parquet"))


class StoredRun(NamedTuple):
    """A run in a store.

    `token` changes whenever a file in the directory is replaced, and is empty if the directory has
    only just changed. `member_of` is the suite or sweep that contains the run.
    """

    run: str
    token: str
    member_of: str | None = None
    has_manifest: bool = True


class Place(Protocol):
    """A store of runs.

    Methods raise StoreError if the store fails, and FileNotFoundError if the run has been deleted.
    """

    location: str  # Store location as given by the user.

    def find(self) -> Iterator[StoredRun]:
        """Iterate over all runs in arbitrary order; a nonexistent store has no runs."""
        ...

    def path_of(self, run: str) -> Path:
        """Return a run's directory or, for a remote store, the run's name for messages."""
        ...

    def read(self, run: str, name: str) -> bytes:
        """Read a file in a run directory."""
        ...

    def write(self, run: str, name: str, data: bytes) -> None:
        """Replace a file in a run directory atomically."""
        ...

    def is_running(self, run: str) -> bool:
        """Return `True` if a process is writing to the run."""
        ...

    def as_folder(self, run: str) -> AbstractContextManager[Path]:
        """Open a folder for reading that contains the run or a copy of the run."""
        ...

    def add(self, folder: Path, run: str) -> None:
        """Copy a run directory or suite to the unused name `run`, copying the manifest last."""
        ...

    def is_free(self, run: str) -> bool:
        """Return `True` if the name `run` is unused."""
        ...

    def remove(self, run: str) -> None:
        """Remove a run atomically."""
        ...

    def saved(self, name: str) -> Path | None:
        """Return a catalogue file's path, which may not exist, or None for a remote store."""
        ...

    def load(self, name: str) -> bytes | None:
        """Read a catalogue file, or return None if it does not exist."""
        ...

    def save(self, name: str, data: bytes) -> None:
        """Replace a catalogue file."""
        ...

    def discard(self, name: str) -> None:
        """Remove a catalogue file."""
        ...

    def sweep(self) -> None:
        """Remove the remains of interrupted deletions and copies."""
        ...

    def saving(self) -> AbstractContextManager[None]:
        """Lock the catalogue to exclude other writers, if the store supports locks."""
        ...


def open_place(location: str) -> Place:
    """Open the store at a path or URL.

    Raises:
        ConfigError: If the path is a file, or if the package for the URL's protocol is not
            installed.
    """
    from writecliff.runs.location import is_remote

    if is_remote(location):
        return RemotePlace(location)

    return LocalPlace(Path(location))


def shown_name(name: bytes) -> str:
    r"""Decode a file name as text, using escapes such as \xff for bytes that are not UTF-8."""
    return name.decode("utf-8", "backslashreplace")


# -- stores in folders -----------------------------------------------------------------------------

# Runs lie directly in the root or, at any depth, in the root's folders `runs`, `suites`, `sweeps`,
# `choices` and `imports`. The root can therefore be a project folder with many other files. The
# scan skips hidden folders. Two modification times show whether a run has changed. Files in a run
# directory are replaced by renaming, which updates the directory's modification time. The manifest
# has a separate modification time.

FOLDERS = ("runs", "suites", "sweeps", "choices", "imports")
DELETED = ".deleted-"  # Prefix of a directory that is being deleted.
COMING = ".coming-"  # Prefix of a directory that is being copied.
_DEPTH = 6
_MANIFEST = f"/{MANIFEST_NAME}".encode()
# Two changes within one tick of the file system clock cannot be distinguished.
_SETTLED_NS = 50_000_000


class LocalPlace:
    """A run store in a folder, which need not exist."""

    def __init__(self, root: Path) -> None:
        """Open the store in `root`.

        Raises:
            ConfigError: `root` is a file.
        """
        if root.exists() and not root.is_dir():
            raise ConfigError(
                f"{root} is a file, not a folder", hint="specify a folder for the store"
            )
        self.root = root
        self.location = str(root)
        self._paths: dict[str, bytes] = {}  # Paths below the root, by run name.

    # -- finding ------------------------------------------------------------------------------

    def find(self) -> Iterator[StoredRun]:
        """Walk the folders; below depth 1, only `FOLDERS` and suites are searched for runs."""
        root = os.fsencode(self.root)
        wide = [os.fsencode(name) for name in FOLDERS]
        now_ns = time.time_ns()
        for name, entry in _folders(root):
            yield from self._in(entry.path, name, _DEPTH if name in wide else 1, now_ns)

    def _in(self, path: bytes, below: bytes, depth: int, now_ns: int) -> Iterator[StoredRun]:
        """Yield the runs in `path`, whose path relative to the root is `below`."""
        run = self._run(path, below, None, now_ns)
        if run is not None:
            yield run
            return
        names: set[str] = set()
        folders = list(_folders(path, names))
        if names & REMAINS:
            yield self._stored_run(below, NO_MANIFEST, None, has_manifest=False)
            return
        if depth <= 1 and SUITE_NAME not in names:
            return
        suite = shown_name(below) if SUITE_NAME in names else None
        for name, entry in folders:
            inner = below + b"/" + name
            # A direct call avoids a generator per run.
            run = self._run(entry.path, inner, suite, now_ns)
            if run is not None:
                yield run
            else:
                yield from self._in(entry.path, inner, depth - 1, now_ns)

    def _run(
        self, path: bytes, below: bytes, member_of: str | None, now_ns: int
    ) -> StoredRun | None:
        """Return the run in a directory, or None if the directory has no manifest."""
        try:
            manifest = os.stat(path + _MANIFEST)  # noqa: PTH116
            folder_ns = os.stat(path).st_mtime_ns  # noqa: PTH116
        except OSError:
            return None
        settled = now_ns - max(manifest.st_mtime_ns, folder_ns) > _SETTLED_NS
        token = f"{folder_ns}.{manifest.st_mtime_ns}.{manifest.st_size}"
        return self._stored_run(below, token if settled else "", member_of)

    def _stored_run(
        self, below: bytes, token: str, member_of: str | None, *, has_manifest: bool = True
    ) -> StoredRun:
        run = shown_name(below)
        self._paths[run] = below
        return StoredRun(run, token, member_of, has_manifest)

    def path_of(self, run: str) -> Path:
        """Return a run's directory, with the name's bytes as stored on disk."""
        below = self._paths.get(run)
        return self.root / (run if below is None else os.fsdecode(below))

    # -- run files ----------------------------------------------------------------------------

    def read(self, run: str, name: str) -> bytes:
        """Read a file in a run directory; the file must be a regular file."""
        path = self.path_of(run) / name
        try:
            return read_regular(path)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(str(path)) from None
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror}") from None

    def write(self, run: str, name: str, data: bytes) -> None:
        """Replace a file in a run directory atomically."""
        if not self.path_of(run).is_dir():
            raise FileNotFoundError(str(self.path_of(run)))
        write_atomically(self.path_of(run) / name, data)

    def is_running(self, run: str) -> bool:
        """Return `True` if a process holds the run's lock."""
        return is_locked(self.path_of(run))

    @contextmanager
    def as_folder(self, run: str) -> Iterator[Path]:
        """Yield the run directory itself."""
        yield self.path_of(run)

    # -- adding and removing runs -------------------------------------------------------------

    def is_free(self, run: str) -> bool:
        """Return `True` if neither a file nor a link has the name `run`."""
        return not os.path.lexists(self.root / run)

    def add(self, folder: Path, run: str) -> None:
        """Copy a run directory or suite under a hidden name, then rename it to `run`."""
        target = self.root / run
        coming = target.with_name(f"{COMING}{os.getpid()}-{target.name}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            # Links are not followed, because a foreign archive or folder must not give access to
            # files outside it.
            shutil.copytree(folder, coming, symlinks=True, ignore=shutil.ignore_patterns(".lock"))
            os.rename(coming, target)  # noqa: PTH104 - fails if the target exists
        except OSError as error:
            raise store_error(error, target) from error
        finally:
            shutil.rmtree(coming, ignore_errors=True)

    def remove(self, run: str) -> None:
        """Rename a run to a hidden name, and then delete it."""
        path = self.path_of(run)
        gone = path.with_name(f"{DELETED}{os.getpid()}-{time.monotonic_ns()}")
        try:
            os.rename(path, gone)  # noqa: PTH104
        except FileNotFoundError:
            raise
        except OSError as error:
            raise store_error(error, path) from error
        self._paths.pop(run, None)
        _discard(gone)  # The remaining files are hidden, and `sweep` deletes them later.

    def sweep(self) -> None:
        """Remove the remains of deletions and copies whose processes have died."""
        for folder in (self.root, *(self.root / name for name in FOLDERS)):
            for prefix in (DELETED, COMING):
                for path in folder.glob(f"{prefix}*"):
                    if not _alive(path.name.removeprefix(prefix).partition("-")[0]):
                        _discard(path)

    # -- the catalogue ------------------------------------------------------------------------

    @property
    def catalogue(self) -> Path:
        """Folder that contains the catalogue."""
        return self.root / CATALOGUE_FOLDER

    def saved(self, name: str) -> Path | None:
        """Return a catalogue file's path, which may not exist."""
        return self.catalogue / name

    def load(self, name: str) -> bytes | None:
        """Read a catalogue file, or return None if it cannot be read."""
        try:
            return (self.catalogue / name).read_bytes()
        except OSError:
            return None

    def save(self, name: str, data: bytes) -> None:
        """Replace a catalogue file atomically."""
        path = self.catalogue / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise store_error(error, path) from error
        write_atomically(path, data)

    def discard(self, name: str) -> None:
        """Remove a catalogue file if it exists, ignoring errors."""
        with suppress(OSError):
            (self.catalogue / name).unlink(missing_ok=True)

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Hold an exclusive lock on the catalogue."""
        try:
            self.catalogue.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.catalogue / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise store_error(error, self.catalogue) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _folders(
    path: bytes, names: set[str] | None = None
) -> Iterator[tuple[bytes, os.DirEntry[bytes]]]:
    """Yield the visible folders in `path` by name, and add file names to `names`."""
    try:
        entries = list(os.scandir(path))
    except OSError:  # The folder was deleted in the meantime, or permission is missing.
        return
    for entry in entries:
        if entry.name.startswith(b"."):
            continue
        with suppress(OSError):
            if entry.is_dir():
                yield entry.name, entry
            elif names is not None:
                names.add(shown_name(entry.name))


def _discard(path: Path) -> None:
    """Remove as much of a directory as possible; a symbolic link is removed, but not its target."""
    if path.is_symlink():
        with suppress(OSError):
            path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


def _alive(process: str) -> bool:
    return process.isdigit() and Path(f"/proc/{process}").exists()


# -- remote ----------------------------------------------------------------------------------------

# A run store on an object store that is accessed through fsspec: s3://, gs://, abfs://, memory://
# and others.
#
# Object stores support neither locks nor folder renames. The manifest of a run is uploaded last and
# deleted first, so an incomplete run is never listed. If two processes save the catalogue, the last
# process wins, and the next refresh adds the other process's rows.

_TOKENS = ("ETag", "etag", "md5Hash", "content_hash", "mtime", "LastModified", "last_modified",
           "created", "size")  # fmt: skip
_WATCHED = (MANIFEST_NAME, "tags.json", "figures.json")


class RemotePlace:
    """A run store in an object store's folder."""

    def __init__(self, location: str) -> None:
        """Open the store at a URL.

        Raises:
            ConfigError: If a package is missing or the URL cannot be opened.
        """
        try:
            import fsspec
        except ImportError:
            raise ConfigError(
                f"{location} requires the package fsspec",
                hint='pip install "writecliff[object-store]", and the package for the protocol '
                "(s3fs, gcsfs, adlfs)",
            ) from None
        self.location = location
        try:
            self._files, root = fsspec.core.url_to_fs(location)
        except (ImportError, ValueError) as error:
            raise ConfigError(f"cannot open {location}: {_first_line(error)}") from None
        self._root = root.rstrip("/")

    def _path(self, *parts: str) -> str:
        return "/".join((self._root, *parts))

    @contextmanager
    def _errors(self, message: str) -> Iterator[None]:
        """Convert all errors of the protocol's package, except FileNotFoundError, to StoreError."""
        try:
            yield
        except (FileNotFoundError, StoreError):
            raise
        except Exception as error:  # Each package has its own error classes.
            raise StoreError(f"{message}: {_first_line(error)}") from error

    # -- finding ------------------------------------------------------------------------------

    def find(self) -> Iterator[StoredRun]:
        """List all objects below the root and group them into runs."""
        with self._errors(f"cannot list {self.location}"):
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
                yield StoredRun(folder, _token(names), member_of)
            elif REMAINS & names.keys():
                yield StoredRun(folder, NO_MANIFEST, member_of, has_manifest=False)

    def path_of(self, run: str) -> Path:
        """Return a run's location, which is used only in messages."""
        return Path(f"{self.location.rstrip('/')}/{run}")

    # -- run files ----------------------------------------------------------------------------

    def read(self, run: str, name: str) -> bytes:
        """Download a file from a run."""
        with self._errors(f"cannot read {run}/{name}"):
            return bytes(self._files.cat_file(self._path(run, name)))

    def write(self, run: str, name: str, data: bytes) -> None:
        """Upload a file to a run."""
        with self._errors(f"cannot write {run}/{name}"):
            self._files.pipe_file(self._path(run, name), data)

    def is_running(self, run: str) -> bool:
        """Return `False`, because only local runs can be open for writing."""
        return False

    @contextmanager
    def as_folder(self, run: str) -> Iterator[Path]:
        """Download the run to a temporary folder."""
        with tempfile.TemporaryDirectory(prefix="writecliff-") as made:
            folder = Path(made) / PurePosixPath(run).name
            folder.mkdir()
            with self._errors(f"cannot read {run}"):
                for path in self._files.find(self._path(run)):
                    below = PurePosixPath(path.removeprefix(f"{self._path(run)}/"))
                    target = folder.joinpath(*(part for part in below.parts if part != ".."))
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(self._files.cat_file(path))
            yield folder

    # -- adding and removing runs -------------------------------------------------------------

    def is_free(self, run: str) -> bool:
        """Return `True` if no object has `run` as its name or prefix."""
        with self._errors(f"cannot look up {run}"):
            return not self._files.exists(self._path(run))

    def add(self, folder: Path, run: str) -> None:
        """Upload a run directory or suite, with the manifest as the last file."""
        files = [p for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink()]
        files.sort(key=lambda path: path.name in (MANIFEST_NAME, SUITE_NAME))
        with self._errors(f"cannot write {run}"):
            for path in files:
                if path.name != ".lock":
                    below = path.relative_to(folder).as_posix()
                    self._files.pipe_file(self._path(run, below), path.read_bytes())

    def remove(self, run: str) -> None:
        """Delete a run's objects, beginning with the manifest."""
        with self._errors(f"cannot remove {run}"):
            for name in (MANIFEST_NAME, SUITE_NAME):
                if self._files.exists(self._path(run, name)):
                    self._files.rm_file(self._path(run, name))
            if self._files.exists(self._path(run)):
                self._files.rm(self._path(run), recursive=True)

    def sweep(self) -> None:
        """Do nothing, because objects left behind by a killed upload do not belong to any run."""

    # -- the catalogue ------------------------------------------------------------------------

    def saved(self, name: str) -> Path | None:
        """Return None, because objects do not have paths."""
        return None

    def load(self, name: str) -> bytes | None:
        """Download a catalogue file, or return None if it cannot be read."""
        try:
            return self.read(CATALOGUE_FOLDER, name)
        except (FileNotFoundError, StoreError):
            return None

    def save(self, name: str, data: bytes) -> None:
        """Upload a catalogue file."""
        self.write(CATALOGUE_FOLDER, name, data)

    def discard(self, name: str) -> None:
        """Delete a catalogue file if it exists."""
        with self._errors(f"cannot remove {name}"):
            if self._files.exists(self._path(CATALOGUE_FOLDER, name)):
                self._files.rm_file(self._path(CATALOGUE_FOLDER, name))

    def saving(self) -> nullcontext[None]:
        """Return a context without a lock, because object stores do not support locks."""
        return nullcontext()


def _token(names: Mapping[str, Mapping[str, object]]) -> str:
    """Return a token made from the listing of the files that the catalogue depends on."""
    parts = [
        f"{name}:{','.join(str(names[name][key]) for key in _TOKENS if key in names[name])}"
        for name in _WATCHED
        if name in names
    ]
    return ";".join(parts)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
