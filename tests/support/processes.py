"""Processes that tests start and kill: their children, and when they end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path


def children(pid: int, program: bytes) -> list[int]:
    """The children of all threads of `pid` with `program` in their command line."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            command = Path(f"/proc/{child}/cmdline")
            if command.exists() and program in command.read_bytes():
                found.append(int(child))
    return found


def fio_children() -> list[int]:
    """The fio processes that this one has started."""
    return children(os.getpid(), b"fio\0")


def alive(pid: int) -> bool:
    """Whether a process runs; who inherits a zombie may take its time to reap it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(condition: Callable[[], object], timeout_s: float = 10.0) -> bool:
    """Whether `condition` becomes true in time."""
    end_s = time.monotonic() + timeout_s
    while not (met := bool(condition())) and time.monotonic() < end_s:
        time.sleep(0.02)
    return met
