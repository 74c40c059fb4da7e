"""What members of suites do at their ends in tests of their processes."""

from __future__ import annotations

import os
import time
from pathlib import Path

MARK = "waiting"


def lose_one_interrupt(run: Path) -> None:
    """As where an interrupt is raised in a destructor, which Python drops."""
    (run / MARK).touch()
    try:
        time.sleep(30)
    except KeyboardInterrupt:
        time.sleep(30)


def note_process(run: Path) -> None:
    """Write the number of the process to `run / MARK`."""
    (run / MARK).write_text(str(os.getpid()))
