"""Attachment of a served drive as a block device of this machine until its power is cut.

The attachment uses NBD over a Unix socket, nbdfuse and a loop device, which work without the
kernel's NBD module. The loop device bypasses the page cache (direct I/O) and forwards flushes and
discards. Data that a file system considers durable have therefore been flushed to the drive.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from functools import partial
from pathlib import Path
from types import TracebackType

from writecliff.errors import TargetError, WritecliffError
from writecliff.signals import die_with_parent

_READY_TIMEOUT_S = 30.0
_POLL_S = 0.01


def check_machine() -> None:
    """Check that this machine can attach drives.

    Raises:
        TargetError: If the user is not root, or a program or FUSE is missing.
    """
    if os.geteuid() != 0:
        raise TargetError("mounting file systems requires root", hint="run the command as root")
    for program, package in (("nbdfuse", "nbdfuse"), ("losetup", "mount")):
        if shutil.which(program) is None:
            raise TargetError(
                f"{program} is not installed", hint=f"on Debian: apt-get install {package}"
            )
    if not Path("/dev/fuse").exists():
        raise TargetError(
            "this kernel does not support FUSE", hint="load the kernel module: modprobe fuse"
        )


class Attachment:
    """A block device, `device`, for the drive at an NBD socket, until `close` or `cut`."""

    def __init__(
        self, uri: str, folder: Path, offset_bytes: int = 0, size_bytes: int | None = None
    ) -> None:
        """Attach the drive, or its range of `size_bytes` at `offset_bytes`.

        Args:
            uri: URI of the NBD export.
            folder: An existing, empty folder.
            offset_bytes: Start of the range in bytes.
            size_bytes: Length of the range in bytes (default: up to the end of the drive).

        Raises:
            WritecliffError: If the drive cannot be attached.
        """
        self._folder = folder
        self._fuse = subprocess.Popen(
            ["nbdfuse", str(folder), uri],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            preexec_fn=partial(die_with_parent, os.getpid()),  # noqa: PLW1509 (only prctl runs)
        )
        self.device = ""
        try:
            self._wait(folder / "nbd")
            part = ["--offset", str(offset_bytes)] if offset_bytes else []
            part += ["--sizelimit", str(size_bytes)] if size_bytes is not None else []
            nbd = str(folder / "nbd")
            self.device = run("losetup", "--find", "--show", "--direct-io=on", *part, nbd)
        except BaseException:
            self.close()
            raise

    def _wait(self, file: Path) -> None:
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while not file.exists():
            if self._fuse.poll() is not None or time.monotonic() > deadline:
                raise WritecliffError("nbdfuse cannot attach the drive")
            time.sleep(_POLL_S)

    def cut(self) -> None:
        """Cut the connection, so that all further kernel I/O fails."""
        self._fuse.kill()
        self._fuse.wait()

    def close(self) -> None:
        """Detach the device, which must not be in use."""
        if self.device:
            run("losetup", "--detach", self.device)
            self.device = ""
        subprocess.run(["umount", "--lazy", self._folder], capture_output=True, check=False)
        self._fuse.terminate()
        self._fuse.wait()

    def __enter__(self) -> Attachment:
        """Return the attachment itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Detach the device."""
        self.close()


def run(*words: str) -> str:
    """Run a program and return its standard output.

    Raises:
        WritecliffError: If the program failed. The message includes its stderr.
    """
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        message = " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"
        raise WritecliffError(f"{words[0]}: {message}")
    return done.stdout.strip()
