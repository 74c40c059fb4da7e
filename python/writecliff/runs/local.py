"""A store in a folder.

Runs are found directly in the root and, at any depth, below its folders `runs`, `suites`, `sweeps`,
`choices` and `imports`; so the root may be a project's folder with much else in it. Hidden folders
are left out. Two looks at the file system tell whether a run has changed: everything in a run
directory is replaced by renaming, which changes the time of the directory, and its manifest has a
time of its own.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from writecliff.errors import ConfigError, StoreError
from writecliff.runs.place import CATALOGUE_FOLDER, NO_MANIFEST, REMAINS, Found, shown_name
from writecliff.store.files import is_locked, read_regular, store_error, write_atomically
from writecliff.store.manifest import MANIFEST_NAME, SUITE_NAME

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
