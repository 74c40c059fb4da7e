"""Detection of programs whose I/O the preload library misses, from ELF headers and /proc."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_LOOK_EVERY_S = 1.0
# Number of bytes at the start of an ELF file that include its program headers.
_PROGRAMS_MAX = 4096
_PT_INTERP = 3


def is_static(program: Path) -> bool:
    """Return `True` if the program is an ELF file that requires no dynamic linker."""
    try:
        with program.open("rb") as file:
            head = file.read(_PROGRAMS_MAX)
    except OSError:
        return False
    if head[:4] != b"\x7fELF" or len(head) < 64:
        return False
    wide = head[4] == 2
    order = "little" if head[5] == 1 else "big"

    def number(at: int, size: int) -> int:
        return int.from_bytes(head[at : at + size], order)  # type: ignore[arg-type]

    table, size, count = (
        (number(32, 8), number(54, 2), number(56, 2))
        if wide
        else (number(28, 4), number(42, 2), number(44, 2))
    )
    kinds = [number(table + index * size, 4) for index in range(count)]
    return _PT_INTERP not in kinds


def family(pid: int) -> list[int]:
    """Return `pid` and all its running descendants."""
    pids, at = [pid], 0
    while at < len(pids):
        with suppress(OSError):  # The process has exited.
            for task in Path(f"/proc/{pids[at]}/task").iterdir():
                pids += [int(word) for word in (task / "children").read_text().split()]
        at += 1
    return pids


class ProcessWatch:
    """A monitor that checks a command and its children for io_uring once a second."""

    def __init__(self, pid: int) -> None:
        """Monitor the process `pid`."""
        self._pid = pid
        self._next = 0.0
        self._uring: set[str] = set()

    def look(self) -> None:
        """Check for io_uring, unless the last check was less than a second ago."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _LOOK_EVERY_S
        for pid in family(self._pid):
            if _has_uring(pid):
                self._uring.add(_name(pid))

    def notes(self) -> list[str]:
        """Return notes about writes that are missing from the trace."""
        return uring_notes(self._uring)


def uring_notes(programs: Iterable[str]) -> list[str]:
    """Return a note about programs whose io_uring writes are not in the trace, if any."""
    names = ", ".join(sorted(programs))
    return [f"{names} used io_uring: writes through it are not in the trace"] if names else []


def _has_uring(pid: int) -> bool:
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # The descriptor has been closed in the meantime.
                if str(descriptor.readlink()) == "anon_inode:[io_uring]":
                    return True
    return False


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return f"process {pid}"
