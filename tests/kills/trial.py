"""Trials: disturb a command, check what it leaves behind, and complete its work."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.kills.disks import Resize, small_disk
from tests.support.forked import fork, left_behind, spent, wait_within

Disturbance = Literal["kill", "full", "read-only"]
DISTURBANCES: tuple[Disturbance, ...] = ("kill", "full", "read-only")
_ROOT = Path(__file__).parents[2]
_ORPHANS_S = 15.0  # Time for members to notice that their parent has exited.
_COMMAND_S = 300.0  # Limit on the CPU time, in seconds.

Words = Sequence[str]
Result = Mapping[str, bytes]


@dataclass(frozen=True)
class Kind:
    """A kind of command.

    Commands run in a separate folder, with relative paths, so that results do not depend on its
    location. `prepare` creates their inputs, once, in the corpus; `place` copies the inputs to a
    trial's folder; `start` is the command to disturb; `again` returns the commands that complete
    the work, given the state of the folder; `result` returns the data that must be equal.
    """

    name: str
    prepare: Callable[[Path], None]
    place: Callable[[Path, Path], None]
    start: Words
    again: Callable[[Path], Sequence[Words]]
    result: Callable[[Path], Result]


@dataclass(frozen=True)
class Outcome:
    """Outcome of a trial; `wrong` describes the failure, or is "" if there is none."""

    wrong: str
    how: str

    def __str__(self) -> str:
        return f"WRONG {self.wrong} ({self.how})" if self.wrong else f"equal ({self.how})"


@dataclass(frozen=True)
class Undisturbed:
    """A kind with the result and the CPU time of an undisturbed run."""

    kind: Kind
    corpus: Path
    result: Result
    seconds: float
    bytes_written: int

    @classmethod
    def of(cls, kind: Kind, folder: Path) -> Undisturbed:
        corpus = folder / "corpus"
        corpus.mkdir(parents=True, exist_ok=True)
        kind.prepare(corpus)
        case = _fresh(folder / f"whole-{kind.name}")
        kind.place(corpus, case)
        before = _bytes_in(case)
        child = Child(kind.start, case)
        seconds = child.wait()
        if child.code != 0:
            raise RuntimeError(f"{kind.name}: {' '.join(kind.start)}: {child.last_stderr_lines()}")
        written = _bytes_in(case) - before
        return cls(kind, corpus, kind.result(case), seconds, written)


@dataclass(frozen=True)
class Case:
    """A trial in `folder`, disturbed after the fraction `share` of the undisturbed CPU time."""

    whole: Undisturbed
    folder: Path
    share: float
    by: Disturbance
    disk: str = "tmpfs"  # File system of the disk, if the trial needs a disk.

    def run(self) -> Outcome:
        _fresh(self.folder)
        if self.by == "kill":
            self.whole.kind.place(self.whole.corpus, self.folder)
            return self._killed()
        with small_disk(self.folder, self.disk) as resize:
            self.whole.kind.place(self.whole.corpus, self.folder)
            return self._without_space(resize)

    def _killed(self) -> Outcome:
        child = Child(self.whole.kind.start, self.folder)
        spent = child.kill_after(self.share * self.whole.seconds)
        how = f"killed after {spent:.2f} of {self.whole.seconds:.2f} s"
        if left := child.orphans():
            return Outcome(f"processes are left: {left}", how)
        return Outcome(self._finish(), how)

    def _without_space(self, resize: Resize) -> Outcome:
        room = 0 if self.by == "read-only" else max(1, int(self.share * self.whole.bytes_written))
        before = _filled(self.folder)
        resize(room)
        child = Child(self.whole.kind.start, self.folder)
        child.wait()
        resize(None)
        how = f"{self.by} with {room >> 10} KiB free: exit code {child.code}: {child.last_stderr_lines()}"
        if wrong := child.misbehaved():
            return Outcome(wrong, how)
        if lost := before - _filled(self.folder):
            return Outcome(f"lost: {sorted(map(str, lost))[:3]}", how)
        if child.code and (left := [*self.folder.rglob("*.tmp"), *self.folder.rglob("*.part")]):
            return Outcome(f"takes up space: {left}", how)
        return Outcome(self._finish(), how)

    def _finish(self) -> str:
        kind = self.whole.kind
        for words in kind.again(self.folder):
            child = Child(words, self.folder)
            child.wait()
            if child.code != 0:
                return f"`{' '.join(words)}` then failed: {child.last_stderr_lines()}"
        return different(self.whole.result, kind.result(self.folder))


class Child:
    """A writecliff command in a child process, with the processes that it starts."""

    def __init__(self, words: Words, folder: Path) -> None:
        self.code: int | None = None
        self._words = " ".join(words)
        self._out, self._stderr = folder.parent / "stdout", folder.parent / "stderr"
        self._pid = fork(lambda: self._become(words, folder))

    def _become(self, words: Words, folder: Path) -> int:
        """Run the command in the new process and return its exit code."""
        from writecliff.cli.main import main

        os.chdir(folder)
        os.environ.update(WRITECLIFF_CACHE="cache", PYTHONUNBUFFERED="1", PYTHONPATH=str(_ROOT))
        os.environ.pop("WRITECLIFF_STORE", None)
        for path, number in ((Path(os.devnull), 0), (self._out, 1), (self._stderr, 2)):
            mode = os.O_RDWR | (os.O_CREAT | os.O_TRUNC if number else 0)
            os.dup2(os.open(path, mode, 0o600), number)
        sys.argv = ["writecliff", *words]
        if words[0] != "-m":
            return main(words)
        sys.argv = list(words[1:])
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return 0

    def wait(self) -> float:
        """Wait until the process exits; return the CPU time of it and its children, in seconds."""
        if why := wait_within(self._pid, _COMMAND_S):
            os.kill(self._pid, signal.SIGKILL)
        _, status, used = os.wait4(self._pid, 0)
        self.code = os.waitstatus_to_exitcode(status)
        if why:
            raise RuntimeError(f"{self._words}: {why}")
        return used.ru_utime + used.ru_stime

    def kill_after(self, seconds: float) -> float:
        """Kill the process after this CPU time of it and its children; return the actual time.

        With wall time, the moment would depend on other load on the machine.
        """
        had = 0.0
        while os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            had = spent(self._pid)
            if had >= seconds:
                break
            time.sleep(0.002)
        os.kill(self._pid, signal.SIGKILL)  # The signal is harmless if the process is a zombie.
        self.code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return had

    def orphans(self) -> list[str]:
        """Return the descendants that still run some time after the process was killed."""
        return list(left_behind(_ORPHANS_S).values())

    def answer(self) -> str:
        """Return the command's stdout.

        Raises:
            RuntimeError: the command failed.
        """
        self.wait()
        if self.code not in (0, 3):
            raise RuntimeError(f"{self._words}: {self.last_stderr_lines()}")
        return self._out.read_text()

    def misbehaved(self) -> str:
        """Return what is wrong with the exit on a full or read-only disk, or ""."""
        message = self.last_stderr_lines()
        if self.code == 0:
            return ""  # The command had enough space.
        if "Traceback" in message or "unexpected" in message or not message:
            return f"no error that names the disk: {message or 'no output'}"
        return "" if self.code in (1, 2) else f"exit code {self.code}: {message}"

    def last_stderr_lines(self) -> str:
        return " | ".join(self._stderr.read_text(errors="replace").strip().splitlines()[-4:])


def different(expected: Result, actual: Result) -> str:
    """Describe the first difference, or return "" if there is none."""
    if sorted(expected) != sorted(actual):
        return f"other files: {sorted(set(expected) ^ set(actual))[:4]}"
    for name, data in expected.items():
        if actual[name] != data:
            at = next(
                (n for n, (a, b) in enumerate(zip(data, actual[name], strict=False)) if a != b), -1
            )
            near = slice(max(0, at - 40), at + 60)
            return f"{name} differs: {data[near]!r} is {actual[name][near]!r}"
    return ""


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _filled(folder: Path) -> set[Path]:
    """Return the files that are not empty."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path for path in files if path.stat().st_size}


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _tells_of_resuming(value: object) -> bool:
    """Return `True` for the expected note in a report that a run was interrupted."""
    return isinstance(value, str) and value.startswith("The run was interrupted")


def plain_json(text: str, leave_out: Sequence[str]) -> bytes:
    """Return a JSON document in canonical form, without some keys at any depth."""

    def plain(value: object) -> object:
        if isinstance(value, dict):
            return {
                key: plain(element)
                for key, element in sorted(value.items())
                if key not in leave_out
            }
        if isinstance(value, list):
            return [plain(element) for element in value if not _tells_of_resuming(element)]
        return value

    return json.dumps(plain(json.loads(text)), indent=1).encode()
