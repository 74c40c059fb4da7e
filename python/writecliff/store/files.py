"""Writes to a run directory, where a single writer replaces files atomically."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from pathlib import Path

from writecliff.errors import NO_SPACE_HINT, ConfigError, StoreError
from writecliff.output_files import PART_SUFFIX as TEMPORARY_SUFFIX
from writecliff.output_files import check_kind, open_part, part_of, remove_part

LOCK_NAME = ".lock"
# In a run directory of unknown origin, a symbolic link in place of this file must not be followed.
_LOCK = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_NUMBER = re.compile(r"\b(?:errno|os error) (\d+)", re.IGNORECASE)
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_atomically(path: Path, data: bytes) -> None:
    """Replace the content of `path` with `data`, or leave it unchanged.

    The data are synced before the name, so a power cut leaves either the old file or the new file.

    Raises:
        StoreError: If the disk is full or permission is denied.
        ConfigError: `path` is a device.
    """
    temporary = part_of(path)
    try:
        with os.fdopen(open_part(temporary), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        remove_part(temporary)
        raise store_error(error, path) from error


def store_error(error: OSError, path: Path) -> StoreError:
    """Return the error for a failed write to `path`, with a hint if the disk is full."""
    number = error.errno
    # The error comes from shutil or Rust.
    if number is None and (match := _NUMBER.search(str(error))):
        number = int(match[1])
    reason = (error.strerror or (os.strerror(number) if number else str(error))).lower()
    hint = None
    if number in _NO_SPACE:
        hint = NO_SPACE_HINT
    return StoreError(f"cannot write {path}: {reason}", hint=hint)


def check_unused(path: Path) -> None:
    """Check that the directory `path` is unused, which means that it is nonexistent or empty.

    A lock and unfinished files are ignored. A run leaves such files behind if it is killed, or if
    the disk is full, before its manifest is written.

    Raises:
        ConfigError: If the directory is not empty or `path` is a file.
        StoreError: If the directory cannot be read.
    """
    check_kind(path)
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{path} is a file, not a directory", hint="specify a new directory")
    try:
        used = path.is_dir() and any(map(_counts, path.iterdir()))
    except OSError as error:
        raise store_error(error, path) from error
    if used:
        raise ConfigError(
            f"{path} exists and is not empty",
            hint="specify a new directory, or resume the run in it with --resume",
        )


def _counts(path: Path) -> bool:
    return path.name != LOCK_NAME and path.suffix != TEMPORARY_SUFFIX


def claim_directory(path: Path) -> None:
    """Create the directory `path`, which may already exist if it is empty.

    Raises:
        ConfigError: If the directory is not empty or `path` is a file.
        StoreError: If the directory cannot be created.
    """
    check_unused(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise store_error(error, path) from error


def is_plain_name(name: str) -> bool:
    """Return `True` if a name denotes a visible entry directly in a folder."""
    return name == Path(name).name and not name.startswith(".") and "\0" not in name and name != ""


def sync_folder(folder: Path) -> None:
    """Sync the directory `folder`, so that its entries survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_temporaries(folder: Path) -> None:
    """Remove files left behind in `folder` by an interrupted `write_atomically`."""
    for path in folder.glob(f"*{TEMPORARY_SUFFIX}"):
        remove_part(path)


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: If the file cannot be read, or if it is a pipe or device, which might block or be
            endless.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "the path is a device, a pipe or a folder", str(path))
        return file.read()


class FolderLock:
    """An advisory lock on a directory that the kernel releases when the process ends."""

    def __init__(self, folder: Path) -> None:
        """Take the lock.

        Raises:
            StoreError: If another process holds the lock.
        """
        self._path = folder / LOCK_NAME
        try:
            self._descriptor = os.open(self._path, _LOCK, 0o644)
        except OSError as error:
            raise store_error(error, self._path) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _holder(self._descriptor)
            os.close(self._descriptor)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise store_error(error, self._path) from error
            raise StoreError(
                f"{folder} is being written by another process{holder}",
                hint="wait until that process ends, or specify another run directory",
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Release the lock, or do nothing if it has already been released."""
        if self._descriptor >= 0:
            # The lock file is never deleted, because two processes could otherwise lock two
            # different files.
            os.close(self._descriptor)
            self._descriptor = -1


def is_locked(folder: Path) -> bool:
    """Return `True` if a process holds the lock on `folder`."""
    try:
        descriptor = os.open(folder / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    text = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
    return f" (process {text})" if text.isdigit() else ""
