"""Files that writecliff makes: never in the place of a device, and never through a link.

As root, a name such as /dev/sda or /dev/null is as easily given to --output as to --on, and a run
directory that somebody sent may hold links where a file is to be written.
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
_HINT = "name a new file or folder"


def check_output(path: Path) -> None:
    """Raise ConfigError if a device, a pipe or a socket is at `path`, also through links, or a file
    that a loop device or swap stands on. Files and folders are the caller's to judge.
    """
    check_kind(path)
    if path.is_file() and (user := _mapped_by(path)) is not None:
        raise ConfigError(f"{printable(str(path))} is in use by {user}", hint=_HINT)


def check_kind(path: Path) -> None:
    """Raise ConfigError if a device, a pipe or a socket is at `path`, also through links."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return  # nothing is there, or nothing that could be written
    for is_kind, name in _KINDS:
        if is_kind(mode):
            raise ConfigError(
                f"{printable(str(path))} is {name}, and no place for a file", hint=_HINT
            )


def _mapped_by(path: Path) -> str | None:
    """The loop device, or the swap, that stands on a file; None if there is none."""
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
    """Where to write what is then renamed to `path`: nothing is there, no link that leads
    elsewhere either. Raises ConfigError as `check_kind`, OSError.
    """
    check_kind(path)
    part = path.with_name(path.name + PART_SUFFIX)
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(part.lstat().st_mode):
            part.unlink()
    return part


def remove_part(part: Path) -> None:
    """Remove what was not renamed. That it cannot be removed, on a disk that is read-only by now,
    is less than why it was not renamed.
    """
    with suppress(OSError):
        part.unlink(missing_ok=True)


def open_part(part: Path) -> int:
    """A descriptor of the file at `part`, empty, which is no link. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(part, flags, 0o666)
