"""Output files, which never replace a device and are never written through a symbolic link.

A user with root privileges can accidentally specify /dev/sda or /dev/null as --output, and a run
directory from elsewhere may contain links in place of files.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from writecliff.errors import ConfigError, printable

PART_SUFFIX = ".tmp"
_KINDS = (
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)
_HINT = "choose a new file or folder"


def check_output(path: Path) -> None:
    """Check that `path` can be used for output (the caller handles existing files and folders).

    Raises:
        ConfigError: If `path` is a device, pipe or socket, even through links, or a file that is
            used by a loop device or as swap.
    """
    check_kind(path)
    if path.is_file() and (user := _mapped_by(path)) is not None:
        raise ConfigError(f"{printable(str(path))} is in use by {user}", hint=_HINT)


def check_kind(path: Path) -> None:
    """Check the type of the file at `path`.

    Raises:
        ConfigError: If `path` is a device, pipe or socket, even through links.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return  # The file does not exist or is not accessible.
    for is_kind, name in _KINDS:
        if is_kind(mode):
            raise ConfigError(f"{printable(str(path))} is {name}, not a file", hint=_HINT)


def _mapped_by(path: Path) -> str | None:
    """Return the loop device or swap area that uses a file, or `None`."""
    name = str(path.resolve())
    for file in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):
            if file.read_text(errors="surrogateescape").rstrip("\n") == name:
                return f"/dev/{file.parent.parent.name}"
    with suppress(OSError):
        for line in Path("/proc/swaps").read_text(errors="surrogateescape").splitlines()[1:]:
            if line.split()[0].replace("\\040", " ") == name:
                return "the kernel as swap"
    return None


def part_of(path: Path) -> Path:
    """Return the path of a temporary file that is later renamed to `path`, removing any link there.

    Raises:
        ConfigError: If `path` is a device, pipe or socket.
        OSError: If a link cannot be removed.
    """
    check_kind(path)
    part = path.with_name(path.name + PART_SUFFIX)
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(part.lstat().st_mode):
            part.unlink()
    return part


def remove_part(part: Path) -> None:
    """Remove a temporary file that was not renamed.

    Errors are ignored, because the reason why the file was not renamed is more important.
    """
    with suppress(OSError):
        part.unlink(missing_ok=True)


def open_part(part: Path) -> int:
    """Open the file at `part` for writing and truncate it, unless it is a link.

    Raises:
        OSError: If the file cannot be opened.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(part, flags, 0o666)
