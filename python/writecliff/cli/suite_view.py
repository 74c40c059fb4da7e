"""What a running suite shows on stderr: a table that changes on a terminal, lines in a log."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from writecliff.cli.output import duration_text, talk

if TYPE_CHECKING:
    from rich.console import RenderableType

    from writecliff.suite.children import ChildEvent


class SuiteView:
    """Says nothing; the others say what happens. Events come from several threads."""

    def note(self, text: str) -> None:
        """About the suite as a whole."""

    def log(self, event: ChildEvent) -> None:
        """About one of its tests."""


class _Lines(SuiteView):
    """What is worth keeping in a log: no looks at single steps."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._lock = threading.Lock()

    def note(self, text: str) -> None:
        talk(text)

    def log(self, event: ChildEvent) -> None:
        if event.kind == "line":
            clock = duration_text((time.monotonic() - self._began_s) * 1e9)
            with self._lock:
                talk(f"[{clock}] {event.name}: {event.text}")


class _Table(SuiteView):
    """A row a test: how long it has run, how far its stage is, what it does."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._tests = tests
        self._events: dict[str, ChildEvent] = {}
        self._began_s: dict[str, float] = {}
        self._ended_s: dict[str, float] = {}
        self._notes: list[str] = []

    def note(self, text: str) -> None:
        self._notes.append(text)

    def log(self, event: ChildEvent) -> None:
        now_s = time.monotonic()
        self._began_s.setdefault(event.name, now_s)
        if event.fraction == 1.0 and event.kind == "line":
            self._ended_s[event.name] = now_s
        self._events[event.name] = event

    def render(self) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        for test in self._tests:
            event, began_s = self._events.get(test), self._began_s.get(test)
            if event is None or began_s is None:
                grid.add_row(Text(test), "", "", Text("waiting", style="dim"))
                continue
            took_s = self._ended_s.get(test, time.monotonic()) - began_s
            bar = ProgressBar(total=1.0, completed=event.fraction or 0.0, width=16)
            grid.add_row(Text(test), duration_text(took_s * 1e9), bar, Text(event.text))
        return Group(*map(Text, self._notes), grid)


@contextmanager
def view_for(tests: Sequence[str], *, quiet: bool) -> Iterator[SuiteView]:
    """How a suite shows its progress."""
    if quiet:
        yield SuiteView()
    elif not sys.stderr.isatty():
        yield _Lines()
    else:
        from rich.console import Console
        from rich.live import Live

        view = _Table(tests)
        with Live(get_renderable=view.render, console=Console(stderr=True), refresh_per_second=4):
            yield view
