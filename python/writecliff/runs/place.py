"""What a store must do, wherever it is.

A run is named by the path of its directory in the store, with slashes: "runs/wsat-1",
"suites/pts-e-1/iops". The file system gives other bytes than UTF-8 as escapes in names.
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
    here.
    """
    from writecliff.runs.location import is_remote

    if is_remote(location):
        return RemotePlace(location)

    return LocalPlace(Path(location))


def shown_name(name: bytes) -> str:
    """The name of a file as text: what is not UTF-8 becomes escapes such as \\\\xff."""
    return name.decode("utf-8", "backslashreplace")


# -- A store in a folder ---------------------------------------------------------------------------

# Runs are found directly in the root and, at any depth, below its folders `runs`, `suites`,
# `sweeps`, `choices` and `imports`; so the root may be a project's folder with much else in it.
# Hidden folders are skipped. Two modification times show whether a run has changed: files of a
# run directory are replaced by renaming, which changes the time of the directory, and the manifest
# has its own time.

FOLDERS = ("runs", "suites", "sweeps", "choices", "imports")
DELETED = ".deleted-"  # before the name of a directory that is being removed
COMING = ".coming-"  # before the name of one that is being copied
_DEPTH = 6
_MANIFEST = f"/{MANIFEST_NAME}".encode()
_SETTLED_NS = 50_000_000  # a change within the tick of the file system's clock would go unseen


class LocalPlace:
    """A folder, which need not exist."""

    def __init__(self, root: Path) -> None:
        """Raises ConfigError if `root` is a file."""
        if root.exists() and not root.is_dir():
            raise ConfigError(f"{root} is a file", hint="a store is a folder of runs")
        self.root = root
        self.location = str(root)
        self._paths: dict[str, bytes] = {}  # of runs that were found, below the root

    # -- finding ------------------------------------------------------------------------------

    def find(self) -> Iterator[Found]:
        root = os.fsencode(self.root)
        wide = [os.fsencode(name) for name in FOLDERS]
        now_ns = time.time_ns()
        for name, entry in _folders(root):
            yield from self._in(entry.path, name, _DEPTH if name in wide else 1, now_ns)

    def _in(self, path: bytes, below: bytes, depth: int, now_ns: int) -> Iterator[Found]:
        """The runs in `path`, which is `below` the root."""
        run = self._run(path, below, None, now_ns)
        if run is not None:
            yield run
            return
        names: set[str] = set()
        folders = list(_folders(path, names))
        if names & REMAINS:
            yield self._found(below, NO_MANIFEST, None, has_manifest=False)
            return
        if depth <= 1 and SUITE_NAME not in names:
            return
        suite = shown_name(below) if SUITE_NAME in names else None
        for name, entry in folders:
            inner = below + b"/" + name
            run = self._run(entry.path, inner, suite, now_ns)  # most are: no further generator
            if run is not None:
                yield run
            else:
                yield from self._in(entry.path, inner, depth - 1, now_ns)

    def _run(self, path: bytes, below: bytes, member_of: str | None, now_ns: int) -> Found | None:
        """The run in a directory; None if it has no manifest."""
        try:
            manifest = os.stat(path + _MANIFEST)  # noqa: PTH116
            folder_ns = os.stat(path).st_mtime_ns  # noqa: PTH116
        except OSError:
            return None
        settled = now_ns - max(manifest.st_mtime_ns, folder_ns) > _SETTLED_NS
        token = f"{folder_ns}.{manifest.st_mtime_ns}.{manifest.st_size}"
        return self._found(below, token if settled else "", member_of)

    def _found(
        self, below: bytes, token: str, member_of: str | None, *, has_manifest: bool = True
    ) -> Found:
        run = shown_name(below)
        self._paths[run] = below
        return Found(run, token, member_of, has_manifest)

    def path_of(self, run: str) -> Path:
        below = self._paths.get(run)
        return self.root / (run if below is None else os.fsdecode(below))

    # -- files of runs ------------------------------------------------------------------------

    def read(self, run: str, name: str) -> bytes:
        path = self.path_of(run) / name
        try:
            return read_regular(path)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(str(path)) from None
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror}") from None

    def write(self, run: str, name: str, data: bytes) -> None:
        if not self.path_of(run).is_dir():
            raise FileNotFoundError(str(self.path_of(run)))
        write_atomically(self.path_of(run) / name, data)

    def is_running(self, run: str) -> bool:
        return is_locked(self.path_of(run))

    @contextmanager
    def as_folder(self, run: str) -> Iterator[Path]:
        yield self.path_of(run)

    # -- coming and going ---------------------------------------------------------------------

    def is_free(self, run: str) -> bool:
        return not os.path.lexists(self.root / run)

    def add(self, folder: Path, run: str) -> None:
        target = self.root / run
        coming = target.with_name(f"{COMING}{os.getpid()}-{target.name}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            # Links are not followed: an archive or folder of others must not reach out of itself.
            shutil.copytree(folder, coming, symlinks=True, ignore=shutil.ignore_patterns(".lock"))
            os.rename(coming, target)  # noqa: PTH104 - fails if the target is there
        except OSError as error:
            raise store_error(error, target) from error
        finally:
            shutil.rmtree(coming, ignore_errors=True)

    def remove(self, run: str) -> None:
        path = self.path_of(run)
        gone = path.with_name(f"{DELETED}{os.getpid()}-{time.monotonic_ns()}")
        try:
            os.rename(path, gone)  # noqa: PTH104
        except FileNotFoundError:
            raise
        except OSError as error:
            raise store_error(error, path) from error
        self._paths.pop(run, None)
        _discard(gone)  # what is left is hidden; `sweep` tries again

    def sweep(self) -> None:
        """Remove what deletions and copies that were killed have left behind."""
        for folder in (self.root, *(self.root / name for name in FOLDERS)):
            for begin in (DELETED, COMING):
                for path in folder.glob(f"{begin}*"):
                    if not _alive(path.name.removeprefix(begin).partition("-")[0]):
                        _discard(path)

    # -- the catalogue ------------------------------------------------------------------------

    @property
    def catalogue(self) -> Path:
        """The folder of the catalogue."""
        return self.root / CATALOGUE_FOLDER

    def saved(self, name: str) -> Path | None:
        return self.catalogue / name

    def load(self, name: str) -> bytes | None:
        try:
            return (self.catalogue / name).read_bytes()
        except OSError:
            return None

    def save(self, name: str, data: bytes) -> None:
        path = self.catalogue / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise store_error(error, path) from error
        write_atomically(path, data)

    def discard(self, name: str) -> None:
        with suppress(OSError):
            (self.catalogue / name).unlink(missing_ok=True)

    @contextmanager
    def saving(self) -> Iterator[None]:
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
    """The folders in `path` that are not hidden, by name; `names` gets those of its files."""
    try:
        entries = list(os.scandir(path))
    except OSError:  # gone, or not for us
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
    """Remove a directory as far as possible; of a link, the link."""
    if path.is_symlink():
        with suppress(OSError):
            path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


def _alive(process: str) -> bool:
    return process.isdigit() and Path(f"/proc/{process}").exists()


# -- remote ----------------------------------------------------------------------------------------

# A store on an object store, by fsspec: s3://, gs://, abfs://, memory:// and others.
#
# An object store has neither locks nor renaming of folders. The manifest of a run is uploaded last
# and deleted first, so an incomplete run is never listed. If two processes save the catalogue, the
# last one wins, and the next read adds the entries of the other.

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


def _token(names: Mapping[str, Mapping[str, object]]) -> str:
    """What the listing says of the files that the catalogue is made from."""
    parts = [
        f"{name}:{','.join(str(names[name][key]) for key in _TOKENS if key in names[name])}"
        for name in _WATCHED
        if name in names
    ]
    return ";".join(parts)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
