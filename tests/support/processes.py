"""Processes that tests start and kill: their children, and when they end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

WAIT_LIMIT_S = 300.0  # bounds waits only: more than a busy machine needs


def children(pid: int, program: bytes) -> list[int]:
    """The children of all threads of `pid` with `program` in their command line."""
    return [child for child in _children(pid) if program in _read(child, "cmdline")]


def fio_children() -> list[int]:
    """The fio processes that this one has started, those that were not reaped yet too."""
    return [child for child in _children(os.getpid()) if _read(child, "comm") == b"fio\n"]


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):  # `pid` has ended
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return found


def _read(pid: int, file: str) -> bytes:
    with suppress(OSError):  # it has ended, maybe between opening and reading
        return Path(f"/proc/{pid}/{file}").read_bytes()
    return b""


def alive(pid: int) -> bool:
    """Whether a process runs; who inherits a zombie may take its time to reap it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(condition: Callable[[], object], timeout_s: float = WAIT_LIMIT_S) -> bool:
    """Return whether `condition` becomes true in time."""
    end_s = time.monotonic() + timeout_s
    while not (met := bool(condition())) and time.monotonic() < end_s:
        time.sleep(0.02)
    return met
