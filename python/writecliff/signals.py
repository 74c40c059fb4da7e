"""Signals: handlers for the time of a block, and a child process that ends with its parent."""

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
TERMINATIONS = (signal.SIGTERM, signal.SIGHUP)  # what ends a process that handles neither


@contextmanager
def handling(numbers: Iterable[int], handler: Handler) -> Iterator[None]:
    """Let `handler` have these signals while the block runs.

    Without effect outside the main thread, which alone may set handlers.
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
    """In a child: have the kernel send it signal `number` when process `parent` dies, even by
    SIGKILL: nobody else would stop its writes.

    The signal is sent when the *thread* that started the child ends, so that thread must wait for
    the child. A parent that died before this call sends none; the child then signals itself.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)
