"""Disks that are temporarily almost full or read-only."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

FILE_SYSTEMS = ("tmpfs", "ext4")
_SIZE_MIB = 96
_BALLAST = ".ballast"
_STEP_BYTES = 64 << 10

Resize = Callable[[int | None], None]


@contextlib.contextmanager
def small_disk(folder: Path, file_system: str) -> Iterator[Resize]:
    """Mount a disk at `folder` and yield a function that limits its free space.

    The function takes the number of free bytes to leave; 0 makes the disk read-only, `None`
    restores it.

    Raises:
        CalledProcessError: the disk cannot be created or mounted.
        OSError: the ballast cannot be written.
    """
    image = folder.with_suffix(".img")
    if file_system == "tmpfs":
        _do("mount", "-t", "tmpfs", "-o", f"size={_SIZE_MIB}m", "kills", folder)
    else:
        image.unlink(missing_ok=True)
        with image.open("wb") as file:
            file.truncate(_SIZE_MIB << 20)
        _do(f"mkfs.{file_system}", "-q", "-m", "0", image)  # Reserve no blocks for root.
        _do("mount", "-o", "loop", image, folder)

    def resize(room: int | None) -> None:
        if room == 0:
            _do("mount", "-o", "remount,ro", folder)
        elif room is not None:
            _fill(folder / _BALLAST, room)
        else:
            _do("mount", "-o", "remount,rw", folder)
            (folder / _BALLAST).unlink(missing_ok=True)

    try:
        yield resize
    finally:
        _do("umount", "--lazy", folder)
        image.unlink(missing_ok=True)


def _fill(ballast: Path, room: int) -> None:
    """Fill the disk except for `room` bytes; the file system also needs some space."""
    os.sync()
    there = os.statvfs(ballast.parent)
    size = there.f_bavail * there.f_frsize - room
    with ballast.open("wb") as file:
        while size > 0:
            try:
                os.posix_fallocate(file.fileno(), 0, size)
                return
            except OSError:
                size -= _STEP_BYTES


def _do(*words: str | Path) -> None:
    subprocess.run(words, check=True, capture_output=True)
