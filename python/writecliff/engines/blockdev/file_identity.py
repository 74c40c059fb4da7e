"""File identity, which is device and inode and, for permanent use, creation time."""

from __future__ import annotations

import ctypes
import os
import struct

FileId = tuple[tuple[int, int], int]  # File system device and inode number.

_AT_FDCWD, _AT_EMPTY_PATH = -100, 0x1000
_STATX_BTIME, _STATX_BYTES, _STATX_BTIME_OFFSET = 0x800, 256, 80  # Constants from linux/stat.h.


def file_id(info: os.stat_result) -> FileId:
    """Return a file's identity on this machine, which is valid until the file is deleted."""
    return (os.major(info.st_dev), os.minor(info.st_dev)), info.st_ino


def path_id(path: str) -> FileId | None:
    """Return the identity of the file at an absolute path, or None if the file is not visible."""
    try:
        return file_id(os.stat(path)) if path.startswith("/") else None
    except OSError:
        return None


def creation_id(file: int | str) -> str:
    """Return the file system, inode and creation time of an open file or path, as text.

    The file system ID identifies the file system, because this ID, unlike the device number,
    survives a reboot.
    """
    info = os.stat(file)
    system = os.statvfs(file).f_fsid or info.st_dev
    return f"{system:x}/{info.st_ino}/{_birth_ns(file)}"


def _birth_ns(file: int | str) -> int | None:
    """Return a file's creation time (statx(2)), or None if the file system does not store it."""
    buffer = (ctypes.c_uint8 * _STATX_BYTES)()
    fd, path = (file, b"") if isinstance(file, int) else (_AT_FDCWD, os.fsencode(file))
    done = ctypes.CDLL(None).statx(fd, path, _AT_EMPTY_PATH, _STATX_BTIME, buffer)
    (mask,) = struct.unpack_from("=I", buffer, 0)
    if done != 0 or not mask & _STATX_BTIME:
        return None
    seconds, nanoseconds = struct.unpack_from("=qI", buffer, _STATX_BTIME_OFFSET)
    return int(seconds) * 1_000_000_000 + int(nanoseconds)
