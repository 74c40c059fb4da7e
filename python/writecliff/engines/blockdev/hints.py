"""Write-lifetime hints: which of them this kernel takes, tried out on a file or device.

A hint is a property of the inode and changes no data; the previous hint is restored. Numbers are
those of Linux (RWH_WRITE_LIFE_*). Arguments are 64 bits wide; the kernel refuses a value in the
upper half, so programs that pass a 32-bit enumeration lose their hints (RocksDB before its pull
request 12595).
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path

from writecliff.errors import TargetError

HINTS = ("not set", "none", "short", "medium", "long", "extreme")
_GET_RW_HINT, _SET_RW_HINT = 1035, 1036  # of the inode
_SET_FILE_RW_HINT = 1038  # of the open file; removed from Linux 5.18
_DIRTY = 0xDEAD << 32  # stray bytes behind a 32-bit argument


@dataclass(frozen=True)
class HintAnswer:
    """One call; `refused` is the name of its error, None if the kernel took the hint."""

    call: str  # "F_SET_RW_HINT", "F_SET_FILE_RW_HINT", "F_SET_RW_HINT, 32 bits"
    hint: str
    refused: str | None


def try_hints(path: Path) -> tuple[HintAnswer, ...]:
    """Ask for every hint on a file, a block device, or a new file in a folder.

    Raises TargetError if it cannot be opened for reading.
    """
    try:
        if path.is_dir():
            with tempfile.TemporaryFile(dir=path) as file:
                return _answers(file.fileno())
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise TargetError(f"{path}: {error.strerror}") from error
    try:
        return _answers(fd)
    finally:
        os.close(fd)


def _answers(fd: int) -> tuple[HintAnswer, ...]:
    before = _get(fd)
    answers = []
    for number, name in enumerate(HINTS):
        answers.append(HintAnswer("F_SET_RW_HINT", name, _set(fd, _SET_RW_HINT, number)))
    for number, name in enumerate(HINTS):
        refused = _set(fd, _SET_FILE_RW_HINT, number)
        answers.append(HintAnswer("F_SET_FILE_RW_HINT", name, refused))
    short = HINTS.index("short")
    refused = _set(fd, _SET_RW_HINT, short | _DIRTY)
    answers.append(HintAnswer("F_SET_RW_HINT, 32 bits", HINTS[short], refused))
    if before is not None:
        _set(fd, _SET_RW_HINT, before)
    return tuple(answers)


def _get(fd: int) -> int | None:
    try:
        return int(struct.unpack("=Q", fcntl.fcntl(fd, _GET_RW_HINT, struct.pack("=Q", 0)))[0])
    except OSError:
        return None


def _set(fd: int, command: int, value: int) -> str | None:
    try:
        fcntl.fcntl(fd, command, struct.pack("=Q", value))
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error.errno))
    return None
