"""Targets that must be rejected: the check, and the disks from which they are built.

Each `Danger` is tried with every consent that a user could give by mistake. Engine and command line
must reject the target with a one-line error, and every byte of the target and of its neighbours
must remain unchanged.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Generic, TypeVar

import pytest

from tests.support.processes import WAIT_LIMIT_S, wait_for
from writecliff.cli.main import main
from writecliff.engines.blockdev.tools import find_tool
from writecliff.engines.target import open_target
from writecliff.errors import TargetError

MIB = 1 << 20
SWAP_HEADER = 4096  # Size in bytes; the kernel may write the rest of active swap at any time.
_PIECE = 256 << 10
B = TypeVar("B", bound="Bench")
SIZE = 24 * MIB


@dataclass(frozen=True)
class Danger:
    """A target that must be rejected, with patterns of the error and hint."""

    target: str
    refused: str
    hint: str
    guarded: Sequence[str | Path]  # Devices and files that must not change.
    consent: str | None = None  # Correct confirmation; `None` for the target's own path.
    wipe: bool = True  # `True` to include consent to the loss of signatures.
    first: int | None = None  # Number of leading bytes to compare; `None` for all bytes.


class Kinds(dict[str, Callable[[B], Danger]], Generic[B]):
    """A table of danger builders by name; as a decorator, it adds a builder."""

    def __call__(self, build: Callable[[B], Danger]) -> Callable[[B], Danger]:
        self[build.__name__] = build
        return build


def contents(paths: Sequence[str | Path], first: int | None = None) -> dict[str, list[bytes]]:
    """Return the contents of each device or file in pieces; a piece of zeros is b""."""
    os.sync()
    zeros = bytes(_PIECE)
    by_path = {}
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            size = _PIECE if first is None else min(first, _PIECE)
            pieces = islice(iter(lambda size=size: file.read(size), b""), first and first // size)
            by_path[str(path)] = [b"" if piece == zeros else piece for piece in pieces]
    return by_path


def changed(
    before: Mapping[str, Sequence[bytes]], after: Mapping[str, Sequence[bytes]]
) -> list[str]:
    """Return the locations where the contents differ."""
    return [
        f"{path} from byte {number * _PIECE + _first_difference(old, new)}"
        for path in before
        for number, (old, new) in enumerate(zip_longest(before[path], after[path], fillvalue=b""))
        if old != new
    ]


def _first_difference(old: bytes, new: bytes) -> int:
    return next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)


def assert_refused(
    danger: Danger, capsys: pytest.CaptureFixture[str], folder: Path, *, command: bool = True
) -> None:
    """Check that the engine rejects the target, and the command line unless `command` is False."""
    consent = danger.target if danger.consent is None else danger.consent
    before = contents(danger.guarded, danger.first)
    with pytest.raises(TargetError) as caught:
        engine = open_target(danger.target, destroy_serial=consent, allow_signatures=danger.wipe)
        try:
            engine.purge()  # Files are rejected at the first write.
        finally:
            engine.close()
    _assert_clear(danger, str(caught.value), caught.value.hint or "")
    if command:
        run = folder / "run"
        words = ["test", "wsat", "--quick", "--on", danger.target, "--output", str(run)]
        words += ["--destroy", consent] if danger.target.startswith("/dev/") else []
        words += ["--wipe-signatures"] if danger.wipe and "--destroy" in words else []
        capsys.readouterr()
        assert main(words) == 2, capsys.readouterr().err
        output = capsys.readouterr()
        error, hint, *rest = (*output.err.splitlines()[-2:], *output.out.splitlines())
        assert error.startswith("error: ")
        assert hint.startswith("hint: ")
        assert rest == []
        _assert_clear(danger, error.removeprefix("error: "), hint.removeprefix("hint: "))
    different = changed(before, contents(danger.guarded, danger.first))
    assert not different, f"changed: {different}"


def _assert_clear(danger: Danger, message: str, hint: str) -> None:
    assert re.search(danger.refused, message), message
    assert re.search(danger.hint, hint), f"{message}; hint: {hint}"
    assert "\n" not in message + hint
    assert len(message) < 300


def tool(name: str) -> str:
    path = find_tool(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def run(*argv: str | Path) -> str:
    """Run a command and return its output; skip the test if the command is not installed."""
    words = [tool(str(argv[0])), *map(str, argv[1:])]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout.strip()


def succeeds(*argv: str | Path) -> bool:
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def require(condition: Callable[[], object], timeout_s: float = WAIT_LIMIT_S) -> None:
    """Wait until `condition` is true; fail the test after `timeout_s`."""
    assert wait_for(condition, timeout_s), f"the condition was not met within {timeout_s:g} s"


def write_mbr(path: str | Path, sectors: int = SIZE // 512 - 2048) -> None:
    """Write a partition table with one Linux partition that starts at 1 MiB."""
    entry = struct.pack("<B3sB3sII", 0, b"\0\0\0", 0x83, b"\0\0\0", 2048, sectors)
    with open(path, "r+b") as file:
        file.write(bytes(446) + entry.ljust(64, b"\0") + b"\x55\xaa")


class Bench(contextlib.ExitStack):
    """Loop devices, file systems, mounts and processes of a test, removed on exit."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self._count = 0

    def path(self, name: str) -> Path:
        """Return a new path in the test's folder."""
        self._count += 1
        return self.folder / f"{name}{self._count}"

    def image(self, size: int = SIZE) -> Path:
        """Create an image file of data without a signature."""
        path = self.path("image")
        path.write_bytes(b"\x5a" * size)
        return path

    def zeros(self, size: int = SIZE) -> Path:
        """Create a sparse image file."""
        path = self.path("image")
        with path.open("wb") as file:
            file.truncate(size)
        return path

    def loop(self, image: Path | str | None = None, *options: str) -> str:
        argv = ["losetup", *options, "--find", "--show", str(image or self.image())]
        device = run(*argv)
        self.callback(run, "losetup", "--detach", device)
        return device

    def partitioned(self, device: str | None = None) -> str:
        """Partition a disk and return its only partition."""
        if device is None:
            image = self.image()
            write_mbr(image)
            device = self.loop(image)
        else:
            write_mbr(device)
        # partx parses the partition table itself, because not every kernel supports DOS partitions.
        run("partx", "--add", device)
        self.callback(run, "partx", "--delete", device)
        partition = f"{device}p1" if device[-1].isdigit() else f"{device}1"
        require(lambda: os.path.exists(partition))
        return partition

    def mkfs(self, device: str | Path, *size: str) -> None:
        # If the file system has neither a journal nor lazy inode tables, mounting does not change
        # it.
        lazy = "lazy_itable_init=0,nodiscard"
        run("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-E", lazy, device, *size)

    def mount(self, device: str, *options: str) -> Path:
        where = self.path("mount")
        where.mkdir()
        # The mount is read-only, because a writable file system changes without any I/O by the
        # test.
        run("mount", "-o", "ro", *options, device, where)
        # The kernel may detach a loop device on the file system with a delay.
        self.callback(require, lambda: succeeds("umount", where))
        return where

    def swap(self, path: str | Path) -> None:
        run("mkswap", path)
        run("swapon", path)
        self.callback(run, "swapoff", path)

    def script(self, text: str, *wrapper: str) -> subprocess.Popen[str]:
        """Start a shell that runs `text` and then waits until the end of the test."""
        process = subprocess.Popen(
            [*wrapper, "sh", "-c", f"{text} && echo ready && read line"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.callback(self._end, process)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        return process

    def python(self, text: str) -> subprocess.Popen[str]:
        """Start a Python process that runs `text` and then waits until the end of the test."""
        code = f"{text}\nprint('ready', flush=True)\ninput()"
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.callback(self._end, process)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        return process

    @staticmethod
    def _end(process: subprocess.Popen[str]) -> None:
        with contextlib.suppress(BrokenPipeError):
            process.communicate("\n", timeout=WAIT_LIMIT_S)

    def node(self, path: str, number: tuple[int, int]) -> str:
        os.mknod(path, 0o060600, os.makedev(*number))
        self.callback(os.unlink, path)
        return path

    def link(self, name: str, target: str) -> str:
        path = f"/dev/{name}"
        os.symlink(target, path)
        self.callback(os.unlink, path)
        return path


def number_of(device: str) -> tuple[int, int]:
    info = os.stat(device)
    return os.major(info.st_rdev), os.minor(info.st_rdev)
