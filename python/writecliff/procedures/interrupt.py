"""Ctrl-C and SIGTERM at the right moment: never between the halves of one record."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from writecliff.signals import handling

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def terminate_as_interrupt() -> AbstractContextManager[None]:
    """Let SIGTERM raise KeyboardInterrupt as Ctrl-C does, so that a stopped run can be resumed."""
    return handling((signal.SIGTERM,), signal.default_int_handler)


@contextmanager
def interrupt_deferred() -> Iterator[None]:
    """Hold back Ctrl-C and SIGTERM until the block is left, then deliver each that came.

    A signal that is ignored stays ignored: it must not be delivered in the place of another one.
    """
    held: list[int] = []
    numbers = [n for n in _SIGNALS if signal.getsignal(n) != signal.SIG_IGN]
    try:
        with handling(numbers, lambda number, frame: held.append(number)):
            yield
    finally:
        for number in held:
            signal.raise_signal(number)
