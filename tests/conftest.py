"""For all tests: Ctrl-C means what it means to a user, and garbage is collected as in a command.

A CI job in the background may hand down SIGINT as ignored; the programs that tests start and stop
would inherit that.
"""

from __future__ import annotations

import atexit
import gc
import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_NEW_OBJECTS = 50_000  # as `writecliff.startup`


def pytest_collection_finish() -> None:
    """What is imported and collected by now stays: looking through it again and again takes a
    tenth of the time of a report."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
    atexit.register(gc.unfreeze)
