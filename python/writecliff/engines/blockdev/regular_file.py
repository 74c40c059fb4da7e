"""Regular files as targets: created only on request, written only if they are ours to write.

Owns the rules for `file:PATH`. An existing file is written only if it was made for this purpose
(marked with an extended attribute when it was created) or holds no data at all (one hole). An
advisory lock keeps two runs from using one file at the same time.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

from writecliff.engines.blockdev.protection import format_bytes
from writecliff.errors import TargetError

_MARK = "user.writecliff.target"
_ALIGN = 4096


class FileTarget:
    """An open, locked regular file. `refusal` tells why it must not be written, if so."""

    def __init__(self, path: str, fd: int, refusal: TargetError | None) -> None:
        self.path = path
        self.fd = fd
        self.refusal = refusal
        info = os.fstat(fd)
        self.size_bytes = info.st_size
        self._identity = (info.st_dev, info.st_ino)

    def verify(self) -> None:
        """The path must still lead to the very file that was opened. Raises `TargetError`."""
        try:
            info = os.stat(self.path)
        except OSError:
            info = None
        if info is None or (info.st_dev, info.st_ino) != self._identity:
            raise TargetError(f"{self.path}: no longer the file that was opened")

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)  # also releases the lock
            self.fd = -1


def open_target(path: str | Path, size_bytes: int | None) -> FileTarget:
    """Open a regular file as a target; create it with `size_bytes` if it is not there.

    Raises `TargetError` if it is absent and no size is given, of another size than asked for, not
    a regular file, in use by another run, or if the file system has no room for it.
    """
    name = str(path)
    if size_bytes is not None and (size_bytes <= 0 or size_bytes % _ALIGN):
        raise TargetError(f"{name}: size {size_bytes} is not a positive multiple of {_ALIGN} bytes")
    if not os.path.lexists(name):
        if size_bytes is None:
            raise TargetError(f"{name}: no such file", hint="give a size to have it created")
        _create(name, size_bytes)
    try:
        fd = os.open(name, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise TargetError(f"{name}: cannot be opened: {error.strerror}") from error
    try:
        _check(name, fd, size_bytes)
        return FileTarget(name, fd, _write_refusal(name, fd))
    except BaseException:
        os.close(fd)
        raise


def _check(name: str, fd: int, size_bytes: int | None) -> None:
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        raise TargetError(f"{name}: not a regular file", hint="give block devices without file:")
    if size_bytes is not None and info.st_size != size_bytes:
        raise TargetError(
            f"{name}: exists with {info.st_size} bytes, not the {size_bytes} asked for",
            hint="delete it, or leave the size out",
        )
    if info.st_size < _ALIGN:
        raise TargetError(f"{name}: too small ({info.st_size} bytes)")
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise TargetError(f"{name}: in use by another run") from error


def _create(name: str, size_bytes: int) -> None:
    """Create under a temporary name and rename, so that no half-made file is left behind."""
    parent = os.path.dirname(os.path.abspath(name))
    temporary = os.path.join(parent, f".{os.path.basename(name)}.{os.getpid()}.new")
    try:
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise TargetError(f"{name}: cannot be created: {error.strerror}") from error
    try:
        try:
            os.posix_fallocate(fd, 0, size_bytes)
            _mark(fd)
        finally:
            os.close(fd)
        os.link(temporary, name)  # unlike a rename it never replaces a file that appeared meanwhile
    except OSError as error:
        wanted = f" ({format_bytes(size_bytes)})" if error.errno == errno.ENOSPC else ""
        raise TargetError(f"{name}: cannot be created{wanted}: {error.strerror}") from error
    finally:
        os.unlink(temporary)


def _mark(fd: int) -> None:
    try:
        os.setxattr(fd, _MARK, b"1")
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.EPERM):
            raise


def _is_marked(fd: int) -> bool:
    try:
        return os.getxattr(fd, _MARK) == b"1"
    except OSError:
        return False


def _holds_data(fd: int) -> bool:
    try:
        os.lseek(fd, 0, os.SEEK_DATA)
    except OSError as error:
        return error.errno != errno.ENXIO  # ENXIO: nothing but a hole
    return True


def _write_refusal(name: str, fd: int) -> TargetError | None:
    if _is_marked(fd):
        return None
    if _holds_data(fd):
        return TargetError(
            f"{name}: holds data and was not created as a test target",
            hint="delete it, or name a new file and its size",
        )
    _mark(fd)
    return None
