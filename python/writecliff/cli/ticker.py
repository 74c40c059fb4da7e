"""The latest figures of what runs: one line of a terminal, or lines of a log now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from writecliff import units
from writecliff.cli.output import factor_text
from writecliff.cli.progress import Pace, Silence

if TYPE_CHECKING:
    from rich.console import RenderableType

    from writecliff.cli.screen import Screen
    from writecliff.engines.base import Progress


class Ticker:
    """A `ProgressHook`, and what a `Screen` renders."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._silence, self._pace = Silence(), Pace()
        self._what = ""
        self._progress: Progress | None = None

    def begin(self, what: str) -> None:
        """What the next figures are of."""
        self._what, self._progress, self._pace = what, None, Pace()

    def __call__(self, progress: Progress) -> None:
        self._progress = progress
        if not self._screen.terminal and self._silence.too_long():
            self._screen.log(self._text(progress))

    def render(self) -> RenderableType:
        from rich.text import Text

        return "" if self._progress is None else Text(self._text(self._progress))

    def _text(self, now: Progress) -> str:
        waf = "" if now.waf is None else f"  WAF {factor_text(now.waf)}"
        share = "" if now.fraction is None else f"  {self._pace.how_far(now.fraction)}"
        return f"{self._what}: {units.number(now.iops)} IOPS{waf}{share}"
