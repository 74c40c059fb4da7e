"""One trial: a command that is disturbed, what is left of it, and the same work taken up again."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Disturbance = Literal["kill", "full", "read-only"]
DISTURBANCES: tuple[Disturbance, ...] = ("kill", "full", "read-only")
MARK = "WRITECLIFF_KILL_TRIAL"  # in the environment of all processes of a trial
_ROOT = Path(__file__).parents[2]
_ORPHANS_S = 15.0  # members end when they notice that their parent is gone
_COMMAND_S = 600.0

Words = Sequence[str]
Result = Mapping[str, bytes]


@dataclass(frozen=True)
class Kind:
    """A kind of command. All run in a folder of their own, with relative paths, so that what they
    write does not tell where. `prepare` makes what they need, once, in the corpus; `place` puts it
    into the folder of a trial; `start` is disturbed; `again` are the commands that finish the work,
    given what is there; `result` is what has to be equal."""

    name: str
    prepare: Callable[[Path], None]
    place: Callable[[Path, Path], None]
    start: Words
    again: Callable[[Path], Sequence[Words]]
    result: Callable[[Path], Result]


@dataclass(frozen=True)
class Outcome:
    """`wrong` says what is not as it should be; empty: nothing."""

    wrong: str
    how: str

    def __str__(self) -> str:
        return f"WRONG {self.wrong} ({self.how})" if self.wrong else f"equal ({self.how})"


@dataclass(frozen=True)
class Undisturbed:
    """A kind, with the result and the processor time of a run that nothing disturbed."""

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
            raise RuntimeError(f"{kind.name}: {' '.join(kind.start)}: {child.said()}")
        written = _bytes_in(case) - before
        return cls(kind, corpus, kind.result(case), seconds, written)


@dataclass(frozen=True)
class Case:
    """A trial in `folder`, disturbed after `share` of the undisturbed work."""

    whole: Undisturbed
    folder: Path
    share: float
    by: Disturbance

    def run(self) -> Outcome:
        with _small_disk(self.folder, self.by) as resize:
            return self._run(resize)

    def _run(self, resize: Callable[[int | None], None]) -> Outcome:
        kind = self.whole.kind
        kind.place(self.whole.corpus, self.folder)
        if self.by == "kill":
            child = Child(kind.start, self.folder)
            spent = child.kill_after(self.share * self.whole.seconds)
            how = f"killed after {spent:.2f} of {self.whole.seconds:.2f} s"
            if left := child.orphans():
                return Outcome(f"processes are left: {left}", how)
        else:
            room = int(self.share * self.whole.bytes_written) if self.by == "full" else 0
            resize(room)
            child = Child(kind.start, self.folder)
            child.wait()
            resize(None)
            how = f"{self.by} with {room >> 10} KiB to go: exit code {child.code}"
            if wrong := child.misbehaved():
                return Outcome(wrong, how)
        return Outcome(self._finish(), how)

    def _finish(self) -> str:
        kind = self.whole.kind
        for words in kind.again(self.folder):
            child = Child(words, self.folder)
            child.wait()
            if child.code != 0:
                return f"`{' '.join(words)}` then failed: {child.said()}"
        return different(self.whole.result, kind.result(self.folder))


class Child:
    """A command of writecliff in a process of its own, and those that it starts."""

    def __init__(self, words: Words, folder: Path) -> None:
        self.code: int | None = None
        self._mark = f"{os.getpid()}-{time.monotonic_ns()}"
        self._stderr = folder.parent / "stderr"
        environment = {
            **os.environ, MARK: self._mark, "WRITECLIFF_CACHE": "cache", "PYTHONUNBUFFERED": "1"
        }  # fmt: skip
        environment.pop("WRITECLIFF_STORE", None)
        environment["PYTHONPATH"] = str(_ROOT)  # of programs of the tests
        program = words if words[0] == "-m" else ("-m", "writecliff", *words)
        with self._stderr.open("wb") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, *program], cwd=folder, env=environment,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr,
            )  # fmt: skip

    def wait(self) -> float:
        """Its processor time with its children's, in seconds."""
        before = os.times()
        try:
            self.code = self._process.wait(_COMMAND_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        after = os.times()
        return (after.children_user - before.children_user) + (
            after.children_system - before.children_system
        )

    def kill_after(self, seconds: float) -> float:
        """Kill it once it and its children have had this much processor time, and say how much
        they had. Time of the wall would make the moment depend on what else the machine does."""
        spent = 0.0
        while self._process.poll() is None:
            spent = _spent(self._process.pid)
            if spent >= seconds:
                break
            time.sleep(0.002)
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self.code = self._process.wait()
        return spent

    def orphans(self) -> list[str]:
        """The processes that still run some time after their ancestor was killed."""
        end = time.monotonic() + _ORPHANS_S
        while (left := _marked(self._mark)) and time.monotonic() < end:
            time.sleep(0.02)
        for pid in left:  # they are ours
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return list(left.values())

    def misbehaved(self) -> str:
        """What is wrong with how it ended on a disk that is full or read-only."""
        said = self.said()
        if self.code == 0:
            return ""  # it needed no more than there was
        if "Traceback" in said or "unexpected" in said or not said:
            return f"it did not say what is wrong: {said or 'nothing'}"
        return "" if self.code in (1, 2) else f"exit code {self.code}: {said}"

    def said(self) -> str:
        return " | ".join(self._stderr.read_text(errors="replace").strip().splitlines()[-4:])


def different(expected: Result, found: Result) -> str:
    """What differs first; empty: nothing."""
    if sorted(expected) != sorted(found):
        return f"other files: {sorted(set(expected) ^ set(found))[:4]}"
    for name, data in expected.items():
        if found[name] != data:
            at = next(
                (n for n, (a, b) in enumerate(zip(data, found[name], strict=False)) if a != b), -1
            )
            near = slice(max(0, at - 40), at + 60)
            return f"{name} differs: {data[near]!r} is {found[name][near]!r}"
    return ""


def _spent(pid: int) -> float:
    """Processor time of a process and its descendants, in seconds."""
    total = 0.0
    with contextlib.suppress(OSError, ValueError):
        total += sum(
            int((task / "schedstat").read_text().split()[0]) / 1e9
            for task in Path(f"/proc/{pid}/task").iterdir()
        )
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                total += _spent(int(child))
    return total


def _marked(mark: str) -> dict[int, str]:
    """The processes with this mark, with their command lines."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                if state not in "ZX":
                    words = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(folder.name)] = words.decode(errors="replace")
    return found


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@contextlib.contextmanager
def _small_disk(folder: Path, by: Disturbance) -> Iterator[Callable[[int | None], None]]:
    """`folder`, empty. Where a disk is needed, it is one in memory, and what the block gets makes
    it full but for some bytes, or read-only with 0, and with None whole again."""
    _fresh(folder)
    if by == "kill":
        yield lambda room: None
        return
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "kills", folder], check=True)

    def resize(room: int | None) -> None:
        if room is None:
            option = "rw,size=64m"
        elif by == "read-only":
            option = "ro"
        else:
            used = os.statvfs(folder)
            taken = (used.f_blocks - used.f_bfree) * used.f_frsize
            option = f"size={(taken + room) // 4096 * 4096}"
        subprocess.run(["mount", "-o", f"remount,{option}", folder], check=True)

    try:
        yield resize
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def _tells_of_resuming(value: object) -> bool:
    """A report that says of a run that it was interrupted is right."""
    return isinstance(value, str) and value.startswith("The run was interrupted")


def plain_json(text: str, leave_out: Sequence[str]) -> bytes:
    """A JSON document in one form, without the values of some keys, at any depth."""

    def plain(value: object) -> object:
        if isinstance(value, dict):
            return {key: plain(one) for key, one in sorted(value.items()) if key not in leave_out}
        if isinstance(value, list):
            return [plain(one) for one in value if not _tells_of_resuming(one)]
        return value

    return json.dumps(plain(json.loads(text)), indent=1).encode()
