"""Directory and progress code that the commands `suite`, `sweep` and `choose` share."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff import units
from writecliff.api import run_members as run_set
from writecliff.api.outcome import check_limits, check_set_limits, read_baseline
from writecliff.api.sets import open_set
from writecliff.cli.options import SetOptions, TargetOptions
from writecliff.cli.output import emit_json, pairs
from writecliff.cli.screen import Screen
from writecliff.errors import ConfigError
from writecliff.progress import Silence

if TYPE_CHECKING:
    from rich.console import RenderableType

    from writecliff.report.suite_page import SuitePage
    from writecliff.suite.children import ChildEvent
    from writecliff.suite.folder import Kind, SuiteFolder


def stored_folder(
    path: Path, kind: Kind, target: TargetOptions, others: Sequence[object]
) -> SuiteFolder:
    """Open the directory of a set to resume.

    Raises:
        ConfigError: If the directory contains another kind of set or a set for another drive, or if
            an option in `others` is given, because these options cannot change on resume.
    """
    if any(other is not None and other != () for other in others):
        raise ConfigError(
            f"a {kind} cannot be resumed with different options",
            hint="with --resume, specify only target options",
        )
    return open_set(path, kind, target.on)


def run_members(
    folder: SuiteFolder, target: TargetOptions, options: SetOptions, *, as_json: bool
) -> int:
    """Run the remaining members, write the summary page, and print the page's path."""
    baseline = read_baseline(options.baseline)
    tests = {*folder.members} | {member.test for member in folder.members.values()}
    limits = check_limits(options.expect, options.junit, tests)
    check_set_limits(options.expect, folder.members)
    if target.on is None:
        target = replace(target, on=folder.targets[0])
    screen = Screen(quiet=options.quiet)
    screen.log(f"{folder.kind} directory: {folder.path}")
    view = SetView(screen, folder.left())
    with screen.showing(view.render, keep=True):
        done = run_set(
            folder,
            opening=target.opening(),
            workers=options.jobs,
            scheduler=options.scheduler,
            log=view.log,
            expect=limits,
        )
    end = done.outcome(baseline)
    if as_json:
        emit_json(done.answer(end))
        return end.end(options.junit)
    _show(done.written)
    if lines := [*end.lines()]:
        print(pairs(lines))
    return end.end(options.junit)


def _show(page: SuitePage) -> None:
    """Print the comparison for a sweep, or the verdict on each test in a suite."""
    from writecliff.cli.cmd_compare import show_comparison
    from writecliff.report.sweep_page import knee_text

    if page.compared is not None:
        show_comparison(page.compared, page.path)
    else:
        print(page.path)
        print(pairs((name, report.answer()) for name, report in page.reports.items()))
    if page.knee is not None:
        print(knee_text(page.knee))


class SetView:
    """Progress display of a set, with the time, progress and current step of each run.

    On a terminal, the number of completed runs and the time remaining are also shown. A log
    contains each run's lines, and the run's progress after a long time without output. This class
    is thread-safe.
    """

    def __init__(self, screen: Screen, names: Sequence[str]) -> None:
        """Show the progress of the named runs on `screen`."""
        self._screen = screen
        self._names = names
        self._start_s = time.monotonic()
        self._events: dict[str, ChildEvent] = {}
        self._began_s: dict[str, float] = {}
        self._ended_s: dict[str, float] = {}
        self._shares: dict[str, float] = {}
        self._silence = Silence()

    def begin(self, names: Sequence[str]) -> None:
        """Show the progress of the named runs from now on."""
        self._names, self._start_s = list(names), time.monotonic()

    def log(self, event: ChildEvent) -> None:
        """Show a run's event."""
        now_s = time.monotonic()
        self._began_s.setdefault(event.name, now_s)
        if event.fraction == 1.0 and event.kind == "line":
            self._ended_s[event.name] = now_s
        self._events[event.name] = event
        if event.fraction is not None:
            self._shares[event.name] = event.fraction
        if self._screen.terminal:
            return
        if event.kind == "line":
            self._silence.note_line()
        elif not self._silence.too_long():
            return
        clock = units.duration((now_s - self._start_s) * 1e9)
        left = self._left() if event.name in self._ended_s else None
        self._screen.log("; ".join(filter(None, (f"[{clock}] {event.name}: {event.text}", left))))

    def render(self) -> RenderableType:
        """Return the rows for all runs, and the total progress."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        for name in self._names:
            event, began_s = self._events.get(name), self._began_s.get(name)
            if event is None or began_s is None:
                grid.add_row(Text(name), "", "", Text("waiting", style="dim"))
                continue
            took_s = self._ended_s.get(name, time.monotonic()) - began_s
            bar = ProgressBar(total=1.0, completed=self._shares.get(name, 0.0), width=16)
            grid.add_row(Text(name), units.duration(took_s * 1e9), bar, Text(event.text))
        if (left := self._left()) is not None:
            grid.add_row(Text("all"), "", "", Text(left))
        return grid

    def _left(self) -> str | None:
        """Return the number of completed runs, the progress and the remaining time.

        Return `None` if the set is a single run.
        """
        if len(self._names) < 2:
            return None
        share = sum(self._shares.get(name, 0.0) for name in self._names) / len(self._names)
        done = sum(name in self._ended_s for name in self._names)
        text = f"{done} of {len(self._names)} runs  {100 * share:.0f} %"
        if not 0 < share < 1:
            return text
        left_s = (time.monotonic() - self._start_s) * (1 / share - 1)
        return f"{text}  about {units.duration(left_s * 1e9)} left"
