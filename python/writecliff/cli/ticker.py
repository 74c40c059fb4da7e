"""The latest figures of what runs, for one line of a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from writecliff import units
from writecliff.cli.output import factor_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from writecliff.engines.base import Progress


class Ticker:
    """A `ProgressHook`, and what a `Screen` renders."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        self._progress = progress

    def render(self) -> RenderableType:
        from rich.text import Text

        if (now := self._progress) is None:
            return ""
        share = "" if now.fraction is None else f"{100 * now.fraction:3.0f} %  "
        waf = "" if now.waf is None else f"  WAF {factor_text(now.waf)}"
        return Text(f"{share}{units.number(now.iops)} IOPS{waf}")
