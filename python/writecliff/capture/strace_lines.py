"""Parses the output of `strace -f -y -Y -ttt -s 0`: a line per call, or two halves of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# pid<name> seconds.microseconds rest
_LINE = re.compile(r"(\d+)(?:<((?:[^<>\\]|\\.)*)>)?\s+(\d+)\.(\d+) (.*)")
_RESUMED = re.compile(r"<\.\.\. (\w+) resumed>\s?(.*)")
_UNFINISHED = " <unfinished ...>"
_CALL = re.compile(r"(\w+)\((.*)\)\s+= (0x[0-9a-f]+|-?\d+)(.*)")
# An argument; quoted text, brackets and descriptor names may contain commas.
_ARGUMENT = re.compile(r'(?:[^,"<\[{(]|"(?:[^"\\]|\\.)*"|<[^>]*>|\[[^\]]*\]|\{[^}]*\}|\([^)]*\))+')
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)")
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f", b"a": b"\a"}
_DESCRIPTOR = re.compile(r"(-?\d+|AT_FDCWD)(?:<(.*)>(\(deleted\))?)?")
_ERROR = re.compile(r" (E[A-Z0-9]+)")


@dataclass(frozen=True)
class Call:
    """A call that has returned. `time_ns` is the time of its return, so that calls are ordered by
    effect."""

    tid: int
    comm: bytes
    time_ns: int
    name: str
    args: tuple[str, ...]
    result: int
    shown: str  # text after the result: the name of a descriptor, or an error

    @property
    def error(self) -> str | None:
        found = _ERROR.match(self.shown) if self.result == -1 else None
        return found[1] if found else None

    def number(self, at: int) -> int | None:
        """Argument `at` as a number, or the first number that it points to."""
        found = (
            re.match(r"\[?(-?0x[0-9a-f]+|-?\d+)", self.args[at]) if at < len(self.args) else None
        )
        return int(found[1], 0) if found else None

    def text(self, at: int) -> bytes:
        """Argument `at` without its quotes."""
        return unescaped(self.args[at].rpartition('"')[0].partition('"')[2])

    def descriptor(self, at: int) -> tuple[int, bytes | None]:
        """Argument `at` as number (-1 for the current folder), and the name of its file."""
        return _descriptor(self.args[at]) if at < len(self.args) else (-1, None)

    def opened(self) -> bytes | None:
        """The name of the returned descriptor."""
        return _descriptor(f"{self.result}{self.shown}")[1]


def _descriptor(text: str) -> tuple[int, bytes | None]:
    found = _DESCRIPTOR.match(text)
    if found is None:
        return -1, None
    number = -1 if found[1] == "AT_FDCWD" else int(found[1])
    return number, None if found[2] is None else unescaped(found[2])


def unescaped(text: str) -> bytes:
    """Decode strace's escape sequences to bytes."""

    def one(found: re.Match[bytes]) -> bytes:
        what = found[1]
        return bytes([int(what, 8) & 255]) if what.isdigit() else _ESCAPED.get(what, what)

    raw = text.encode("latin-1", errors="replace")
    return _ESCAPE.sub(one, raw) if b"\\" in raw else raw


def calls(lines: Iterable[str]) -> Iterator[Call]:
    """The calls in the order of their return; signals, exits and other lines are skipped."""
    begun: dict[int, str] = {}
    for line in lines:
        found = _LINE.match(line)
        if found is None:
            continue
        tid, rest = int(found[1]), found[5].rstrip("\n")
        if rest.endswith(_UNFINISHED):
            begun[tid] = rest.removesuffix(_UNFINISHED)
            continue
        resumed = _RESUMED.match(rest)
        if resumed is not None:
            rest = begun.pop(tid, "") + resumed[2]
        call = _CALL.match(rest)
        if call is None:
            continue
        args = tuple(arg.strip() for arg in _ARGUMENT.findall(call[2]))
        time_ns = int(found[3]) * 1_000_000_000 + int(found[4].ljust(9, "0")[:9])
        comm = unescaped(found[2] or "")
        yield Call(tid, comm, time_ns, call[1], args, int(call[3], 0), call[4])
