"""A served drive as a block device of this machine, for as long as it has power.

NBD over a Unix socket, by nbdfuse and a loop device: both work without the kernel's own NBD module.
The loop device bypasses the page cache (direct I/O) and passes flushes and discards on, so what a
file system believes to be durable is what the drive was told to make durable.
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
    """Raises TargetError with what is missing here to attach drives."""
    if os.geteuid() != 0:
        raise TargetError("file systems are mounted by root", hint="run this as root")
    for program, package in (("nbdfuse", "nbdfuse"), ("losetup", "mount")):
        if shutil.which(program) is None:
            raise TargetError(
                f"{program} is not installed", hint=f"on Debian: apt-get install {package}"
            )
    if not Path("/dev/fuse").exists():
        raise TargetError("this kernel has no FUSE", hint="load its module: modprobe fuse")


class Attachment:
    """The drive at an NBD socket as `device`, until the end of the block or until `cut`."""

    def __init__(
        self, uri: str, folder: Path, offset_bytes: int = 0, size_bytes: int | None = None
    ) -> None:
        """The drive, or the range of it at `offset_bytes`. `folder`: an existing empty folder.
        Raises WritecliffError if it cannot be attached.
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
        """The drive is gone: what the kernel still has for it fails."""
        self._fuse.kill()
        self._fuse.wait()

    def close(self) -> None:
        """Detach the device; nothing may use it any more."""
        if self.device:
            run("losetup", "--detach", self.device)
            self.device = ""
        subprocess.run(["umount", "--lazy", self._folder], capture_output=True, check=False)
        self._fuse.terminate()
        self._fuse.wait()

    def __enter__(self) -> Attachment:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def run(*words: str) -> str:
    """What a program prints. Raises WritecliffError with what it says on stderr if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"
        raise WritecliffError(f"{words[0]}: {said}")
    return done.stdout.strip()
