"""Hooks that run at the end of suite members, for tests of member processes."""

from __future__ import annotations

import os
import time
from pathlib import Path

MARK = "waiting"


def lose_one_interrupt(run: Path) -> None:
    """Ignore one interrupt, as Python does with an interrupt raised in a destructor."""
    (run / MARK).touch()
    try:
        time.sleep(30)
    except KeyboardInterrupt:
        time.sleep(30)


def note_process(run: Path) -> None:
    """Write the process ID to `run / MARK`."""
    (run / MARK).write_text(str(os.getpid()))
