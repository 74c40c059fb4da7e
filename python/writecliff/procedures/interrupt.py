"""Ctrl-C and SIGTERM at the right moment: never between the halves of one record."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Let SIGTERM raise KeyboardInterrupt as Ctrl-C does, so that a stopped run can be resumed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def interrupt_deferred() -> Iterator[None]:
    """Hold back Ctrl-C and SIGTERM until the block is left, then deliver each that came.

    A signal that is ignored stays ignored: it must not be delivered in the place of another one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    before = {n: signal.getsignal(n) for n in _SIGNALS if signal.getsignal(n) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, lambda number, frame: held.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for held_number in held:
            signal.raise_signal(held_number)
