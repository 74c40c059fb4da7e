"""Signal handlers for the duration of a block, and child processes tied to their parent."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)

Handler = Callable[[int, FrameType | None], Any]
# Signals that terminate a process that has no handlers.
TERMINATIONS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def handling(numbers: Iterable[int], handler: Handler) -> Iterator[None]:
    """Install `handler` for these signals while the block runs.

    Outside the main thread, this function does nothing, because only the main thread can set
    handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def die_with_parent(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Make the kernel send signal `number` to this child process when process `parent` dies.

    The parent's death may also be caused by SIGKILL, after which nothing else would stop the
    child's writes. The kernel sends the signal when the *thread* that started the child exits, so
    that thread must wait for the child. If the parent exited before this call, the child sends the
    signal to itself.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)
