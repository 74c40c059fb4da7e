"""The stderr output of a running command.

The output consists of permanent lines and, on a terminal, a live block of figures below those
lines. If --quiet is given, nothing is printed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from writecliff.cli.output import log
from writecliff.cli.streams import raw

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_REFRESH_HZ = 4


class Screen:
    """A command's stderr. This class is thread-safe."""

    def __init__(self, *, quiet: bool = False, console: Console | None = None) -> None:
        """Write to `console` (default: plain stderr), or discard all output if `quiet` is set."""
        self.terminal = console is not None or (not quiet and sys.stderr.isatty())
        self._quiet = quiet
        self._console = console

    def log(self, text: str, *, warning: bool = False) -> None:
        """Print a permanent line."""
        if self._quiet:
            return
        text = f"warning: {text}" if warning else text
        if self._console is None:
            log(text)
        else:
            self._console.print(
                text, style="yellow" if warning else "", markup=False, highlight=False
            )

    @contextmanager
    def showing(
        self, render: Callable[[], RenderableType], *, keep: bool = False
    ) -> Iterator[None]:
        """Refresh `render`'s terminal output while the block runs; `keep` retains the last."""
        if not self.terminal:
            yield
            return
        from rich.console import Console
        from rich.live import Live

        outer, self._console = self._console, self._console or Console(file=raw(sys.stderr))
        live = Live(
            get_renderable=render,
            console=self._console,
            refresh_per_second=_REFRESH_HZ,
            transient=not keep,
        )
        try:
            with live:
                yield
        finally:
            self._console = outer
