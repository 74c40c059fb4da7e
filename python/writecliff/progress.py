"""Progress of long-running work, with a single event type, and the pace of log lines.

Work reports its progress through a `WorkProgress`, independently of the display. The command line
shows the events on a terminal, or logs some of the events (`cli/progress.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from writecliff import units

# Longest silence in a log while work continues: initially, in the first minutes, and later.
SILENCE_S, SILENCE_EARLY_S, SILENCE_MAX_S = 5.0, 15.0, 60.0
EARLY_S = 300.0
PACED_S = 3.0  # Minimum time between two lines of a `PacedLog`.


@dataclass(frozen=True)
class Work:
    """The state of long-running work."""

    what: str  # Name of the current task.
    share: float | None = None  # Completed fraction of the step, from 0 to 1; `None` if unknown.
    ios: int = 0  # Number of completed I/Os in the step.
    figures: str = ""  # Latest figures as text.


WorkHook = Callable[[Work], None]


def _unseen(work: Work) -> None:
    """Show nothing."""


class WorkProgress:
    """Reporter of long-running work in parts, each with a separate fraction and pace."""

    def __init__(self, hook: WorkHook = _unseen, what: str = "") -> None:
        """Start the work, and its first part if `what` is given."""
        self._hook, self._what = hook, what
        self._span, self._ios, self._ios_before = (0.0, 1.0), 0, 0
        self._began_s = time.monotonic()
        if what:
            self.part(what)

    @property
    def seconds(self) -> float:
        """Seconds since the start of the work."""
        return time.monotonic() - self._began_s

    def part(self, what: str) -> None:
        """Report the start of a part, such as "laying out the files"."""
        self._what, self._span, self._ios, self._ios_before = what, (0.0, 1.0), 0, 0
        self._hook(Work(what))

    def file(self, begin: float, end: float) -> None:
        """Start the next file, which covers the fractions `begin` to `end` of the part."""
        self._span, self._ios_before = (begin, end), self._ios

    def done(self, share: float, *, ios: int = 0, figures: str = "") -> None:
        """Report the completed fraction of the part or of the part's current file, from 0 to 1."""
        begin, end = self._span
        self._ios = self._ios_before + ios
        self._hook(Work(self._what, begin + share * (end - begin), self._ios, figures))


UNSEEN = WorkProgress()
"""A progress without display."""


class Silence:
    """Pace of log lines about running work in the absence of other log lines."""

    def __init__(self) -> None:
        """Start the clock."""
        self._began_s = self._said_s = time.monotonic()
        self._most_s = SILENCE_S

    def note_line(self) -> None:
        """Record that a line was logged."""
        self._said_s = time.monotonic()

    def too_long(self) -> bool:
        """Return `True` if a line is due, which the caller must log; intervals increase."""
        now_s = time.monotonic()
        if now_s < self._said_s + self._most_s:
            return False
        most_s = SILENCE_EARLY_S if now_s < self._began_s + EARLY_S else SILENCE_MAX_S
        self._said_s, self._most_s = now_s, min(2 * self._most_s, most_s)
        return True


class Pace:
    """Estimator of the remaining time. `at_most` means that the work may end early."""

    def __init__(self, *, at_most: bool = False) -> None:
        """Start the clock."""
        self._began_s = time.monotonic()
        self._about = "at most" if at_most else "about"

    @property
    def taken_s(self) -> float:
        """Elapsed seconds."""
        return time.monotonic() - self._began_s

    @property
    def clock(self) -> str:
        """The elapsed time as text, in brackets."""
        return f"[{units.duration(round(self.taken_s) * 1e9)}]"

    def left(self, share: float) -> str:
        """Return the remaining time as text, or "" if the fraction is 0."""
        left_s = self.taken_s * (1 / share - 1) if share > 0 else 0.0
        return f"{self._about} {units.duration(round(left_s) * 1e9)} left" if left_s else ""

    def how_far(self, share: float) -> str:
        """Return the completed fraction and the remaining time as text."""
        return "  ".join(filter(None, (f"{100 * share:.0f} %", self.left(share))))


class PacedLog:
    """A logger of at most one line per `PACED_S`, including the elapsed time. Thread-safe."""

    def __init__(self, log: Callable[[str], None]) -> None:
        """Log to `log`."""
        self.pace = Pace(at_most=True)
        self._log = log
        self._lock = Lock()
        self._said_s = time.monotonic()

    def __call__(self, text: str) -> None:
        """Log a line, unless the previous line was logged too recently."""
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._said_s < PACED_S:
                return
            self._said_s = now_s
        self._log(f"{self.pace.clock} {text}")
