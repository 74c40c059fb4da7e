"""What a member of a suite does at its end in the tests of lost signals."""

from __future__ import annotations

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
