"""Child processes of tests: search for them, and wait until they end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

WAIT_LIMIT_S = 300.0  # Limit on waits, which exceeds the time that a busy machine needs.


def children(pid: int, program: bytes) -> list[int]:
    """Return the children of all threads of `pid` with `program` in their command line."""
    return [child for child in _children(pid) if program in _read(child, "cmdline")]


def fio_children() -> list[int]:
    """Return the fio processes started by this process, including zombies."""
    return [child for child in _children(os.getpid()) if _read(child, "comm") == b"fio\n"]


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with suppress(OSError):  # `pid` has ended
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            children += map(int, task.read_text().split())
    return children


def _read(pid: int, file: str) -> bytes:
    with suppress(OSError):  # The process has ended.
        return Path(f"/proc/{pid}/{file}").read_bytes()
    return b""


def alive(pid: int) -> bool:
    """Return `True` while a process runs; zombies, which init may reap late, do not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(condition: Callable[[], object], timeout_s: float = WAIT_LIMIT_S) -> bool:
    """Wait for `condition`; return `False` if it is still false after `timeout_s`."""
    end_s = time.monotonic() + timeout_s
    while not (met := bool(condition())) and time.monotonic() < end_s:
        time.sleep(0.02)
    return met
