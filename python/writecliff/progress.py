"""Progress of long work: one type of event, and the pace of log lines.

Work reports its progress through a `WorkProgress`, independent of the display: the command line
draws the events on a terminal, or logs some of them (`cli/progress.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from writecliff import units

# In a log, the longest silence while work goes on: at first, in the first minutes, and later.
SILENCE_S, SILENCE_EARLY_S, SILENCE_MAX_S = 5.0, 15.0, 60.0
EARLY_S = 300.0
PACED_S = 3.0  # between two lines of a `PacedLog`


@dataclass(frozen=True)
class Work:
    """The state of long work."""

    what: str  # current part
    share: float | None = None  # completed share of the part, 0 to 1; None: unknown
    ios: int = 0  # completed I/Os of the part
    figures: str = ""  # latest figures


WorkHook = Callable[[Work], None]


def _unseen(work: Work) -> None:
    """Show nothing."""


class WorkProgress:
    """Reports long work part by part; each part has its own share and pace."""

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
        """Start the next file, which covers the part from share `begin` to `end`."""
        self._span, self._ios_before = (begin, end), self._ios

    def done(self, share: float, *, ios: int = 0, figures: str = "") -> None:
        """Report the completed share of the part, or of its current file, 0 to 1."""
        begin, end = self._span
        self._ios = self._ios_before + ios
        self._hook(Work(self._what, begin + share * (end - begin), self._ios, figures))


UNSEEN = WorkProgress()
"""A progress without display."""


class Silence:
    """Schedules lines about running work for a log without other news."""

    def __init__(self) -> None:
        """Start the clock."""
        self._began_s = self._said_s = time.monotonic()
        self._most_s = SILENCE_S

    def note_line(self) -> None:
        """Note that a line was logged."""
        self._said_s = time.monotonic()

    def too_long(self) -> bool:
        """Return `True` if a line is due, which the caller then logs. Later lines are rarer."""
        now_s = time.monotonic()
        if now_s < self._said_s + self._most_s:
            return False
        most_s = SILENCE_EARLY_S if now_s < self._began_s + EARLY_S else SILENCE_MAX_S
        self._said_s, self._most_s = now_s, min(2 * self._most_s, most_s)
        return True


class Pace:
    """Estimates the remaining time from the elapsed time. `at_most`: the work may end early."""

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
        """The elapsed time in brackets."""
        return f"[{units.duration(round(self.taken_s) * 1e9)}]"

    def left(self, share: float) -> str:
        """Return the remaining time as text; empty while the share is 0."""
        left_s = self.taken_s * (1 / share - 1) if share > 0 else 0.0
        return f"{self._about} {units.duration(round(left_s) * 1e9)} left" if left_s else ""

    def how_far(self, share: float) -> str:
        """Return the completed share and the remaining time as text."""
        return "  ".join(filter(None, (f"{100 * share:.0f} %", self.left(share))))


class PacedLog:
    """Logs at most one line per `PACED_S`, with the elapsed time. Thread-safe."""

    def __init__(self, log: Callable[[str], None]) -> None:
        """Log to `log`."""
        self.pace = Pace(at_most=True)
        self._log = log
        self._lock = Lock()
        self._said_s = time.monotonic()

    def __call__(self, text: str) -> None:
        """Log a line, unless the previous line is too recent."""
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._said_s < PACED_S:
                return
            self._said_s = now_s
        self._log(f"{self.pace.clock} {text}")
