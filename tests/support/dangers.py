"""Targets that must be refused: the proof, and the disks to build them from.

A `Danger` is given every consent that a user could give by mistake. It has to be refused by the
engine and by the command line, in one clear line, with every byte of it and of its neighbours as
before.
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
SWAP_HEADER = 4096  # bytes; what follows it in swap that is on, the kernel may write at any time
_PIECE = 256 << 10
B = TypeVar("B", bound="Bench")
SIZE = 24 * MIB


@dataclass(frozen=True)
class Danger:
    """A target that must be refused, and what the refusal has to say (patterns)."""

    target: str
    refused: str
    hint: str
    guarded: Sequence[str | Path]  # devices and files whose bytes have to stay
    consent: str | None = None  # the right confirmation; None: the target's own path
    wipe: bool = True  # whether the consent to lose signatures is given too
    first: int | None = None  # bytes that are compared; None: all


class Kinds(dict[str, Callable[[B], Danger]], Generic[B]):
    """A table: each kind of danger by its name, with what builds it. As a decorator it adds one."""

    def __call__(self, build: Callable[[B], Danger]) -> Callable[[B], Danger]:
        self[build.__name__] = build
        return build


def contents(paths: Sequence[str | Path], first: int | None = None) -> dict[str, list[bytes]]:
    """The bytes of each device or file, in pieces; those that hold only zeros are empty."""
    os.sync()
    zeros = bytes(_PIECE)
    found = {}
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            size = _PIECE if first is None else min(first, _PIECE)
            pieces = islice(iter(lambda size=size: file.read(size), b""), first and first // size)
            found[str(path)] = [b"" if piece == zeros else piece for piece in pieces]
    return found


def changed(
    before: Mapping[str, Sequence[bytes]], after: Mapping[str, Sequence[bytes]]
) -> list[str]:
    """Where the contents differ."""
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
    """The engine refuses it, then the command line (unless `command` is False)."""
    consent = danger.target if danger.consent is None else danger.consent
    before = contents(danger.guarded, danger.first)
    with pytest.raises(TargetError) as caught:
        engine = open_target(danger.target, destroy_serial=consent, allow_signatures=danger.wipe)
        try:
            engine.purge()  # a file is refused when it is to be written
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
        said = capsys.readouterr()
        error, hint, *rest = (*said.err.splitlines()[-2:], *said.out.splitlines())
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
    """Run a command to its end; its output. Skips the test if the command is not installed."""
    words = [tool(str(argv[0])), *map(str, argv[1:])]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout.strip()


def succeeds(*argv: str | Path) -> bool:
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def require(condition: Callable[[], object], timeout_s: float = WAIT_LIMIT_S) -> None:
    """Wait for `condition`; the test fails if it does not become true in time."""
    assert wait_for(condition, timeout_s), "what the test waits for does not happen"


def write_mbr(path: str | Path, sectors: int = SIZE // 512 - 2048) -> None:
    """A partition table with one Linux partition from 1 MiB on."""
    entry = struct.pack("<B3sB3sII", 0, b"\0\0\0", 0x83, b"\0\0\0", 2048, sectors)
    with open(path, "r+b") as file:
        file.write(bytes(446) + entry.ljust(64, b"\0") + b"\x55\xaa")


class Bench(contextlib.ExitStack):
    """Loop devices, file systems, mounts and processes; all are gone when it is closed."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self._count = 0

    def path(self, name: str) -> Path:
        """A new path in the folder of the test."""
        self._count += 1
        return self.folder / f"{name}{self._count}"

    def image(self, size: int = SIZE) -> Path:
        """An image file with data that no signature begins."""
        path = self.path("image")
        path.write_bytes(b"\x5a" * size)
        return path

    def zeros(self, size: int = SIZE) -> Path:
        """An image file without data."""
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
        """A disk with one partition; returns the partition."""
        if device is None:
            image = self.image()
            write_mbr(image)
            device = self.loop(image)
        else:
            write_mbr(device)
        # partx reads the table itself: not every kernel is built to understand DOS tables.
        run("partx", "--add", device)
        self.callback(run, "partx", "--delete", device)
        partition = f"{device}p1" if device[-1].isdigit() else f"{device}1"
        require(lambda: os.path.exists(partition))
        return partition

    def mkfs(self, device: str | Path, *size: str) -> None:
        # Without a journal and with all inode tables written, a mounted one stays as it is.
        lazy = "lazy_itable_init=0,nodiscard"
        run("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-E", lazy, device, *size)

    def mount(self, device: str, *options: str) -> Path:
        where = self.path("mount")
        where.mkdir()
        # Only to be read: a file system that may be written changes by itself.
        run("mount", "-o", "ro", *options, device, where)
        # A loop device on it may be detached a moment later than asked for.
        self.callback(require, lambda: succeeds("umount", where))
        return where

    def swap(self, path: str | Path) -> None:
        run("mkswap", path)
        run("swapon", path)
        self.callback(run, "swapoff", path)

    def script(self, text: str, *wrapper: str) -> subprocess.Popen[str]:
        """A shell that has run `text` and waits until the end of the test."""
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
        """A Python process that has run `text` and waits until the end of the test."""
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
