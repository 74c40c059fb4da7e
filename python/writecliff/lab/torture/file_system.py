"""File systems on an attached drive."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from writecliff.errors import ConfigError, TargetError
from writecliff.lab.torture.attachment import run

# Commands that create file systems, and the Debian packages of the commands.
_MAKE = {
    "ext4": (("mkfs.ext4", "-q", "-F"), "e2fsprogs"),
    "xfs": (("mkfs.xfs", "-q", "-f"), "xfsprogs"),
    "btrfs": (("mkfs.btrfs", "-q", "-f"), "btrfs-progs"),
}
KINDS = tuple(_MAKE)
_BUSY_TIMEOUT_S = 30.0
_POLL_S = 0.02


def check(kind: str) -> None:
    """Check that a type of file system can be created.

    Raises:
        ConfigError: If the type is unknown.
        TargetError: If the file system tools are not installed.
    """
    if kind not in _MAKE:
        raise ConfigError.unknown("file system", kind, KINDS)
    words, package = _MAKE[kind]
    if shutil.which(words[0]) is None:
        raise TargetError(
            f"{words[0]} is not installed", hint=f"on Debian: apt-get install {package}"
        )


def make(kind: str, device: str) -> None:
    """Create an empty file system.

    Raises:
        WritecliffError: If the command failed.
    """
    run(*_MAKE[kind][0], device)


@contextmanager
def mounted(device: str, folder: Path, options: str = "defaults") -> Iterator[Path]:
    """Mount a device's file system at `folder`.

    Raises:
        WritecliffError: If the file system cannot be mounted.
    """
    run("mount", "-o", options, device, str(folder))
    try:
        yield folder
    finally:
        # A killed server may take a moment to close its files.
        deadline = time.monotonic() + _BUSY_TIMEOUT_S
        while subprocess.run(["umount", folder], capture_output=True, check=False).returncode:
            if time.monotonic() > deadline:
                subprocess.run(["umount", "--lazy", folder], capture_output=True, check=False)
                break
            time.sleep(_POLL_S)
