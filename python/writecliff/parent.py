"""Ends a child process when its parent dies, even by SIGKILL: nobody else would stop its writes."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """In a child: have the kernel send it signal `number` when process `parent` dies.

    The signal is sent when the *thread* that started the child ends, so that thread must wait for
    the child. A parent that died before this call sends none; the child then signals itself.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)
