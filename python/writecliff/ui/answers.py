"""The JSON that plots ask for while somebody looks at them."""

from __future__ import annotations

from typing import Any

from writecliff.ui.handler import Handler
from writecliff.ui.library import Library
from writecliff.ui.overlay import overlay
from writecliff.ui.plots import run_plots, view_of
from writecliff.ui.run_page import doing
from writecliff.ui.series import Shelf
from writecliff.ui.sets import coordinates, open_set

_WIDEST = 4_000  # pixels of a screen
_USUAL = 800


class SeriesAnswer(Handler):
    """The plots of a run between two times: `name`, `from` and `to` in seconds, `columns`."""

    async def get(self) -> None:
        dashboard = self.dashboard
        self.json(
            await self.in_thread(
                _series, dashboard.library, dashboard.shelf, self.argument("name"),
                (self.number("from"), self.number("to")), _columns(self),
            )
        )  # fmt: skip


def _series(
    library: Library,
    shelf: Shelf,
    run: str,
    view: tuple[float | None, float | None],
    columns: int,
) -> dict[str, Any]:
    with library.folder(run) as folder:
        series = shelf.series(run, folder)
    return run_plots(series, view_of(series.span_s, *view), columns)


class OverlayAnswer(Handler):
    """The plot of a quantity of several runs: `name` of each, `key`, `norm`, and as above."""

    async def get(self) -> None:
        dashboard = self.dashboard
        self.json(
            await self.in_thread(
                overlay, dashboard.library, dashboard.shelf, self.arguments("name"),
                self.argument("key"), self.argument("norm"),
                (self.number("from"), self.number("to")), _columns(self),
            )
        )  # fmt: skip


class StatusAnswer(Handler):
    """What a run is doing."""

    async def get(self) -> None:
        self.json(await self.in_thread(doing, self.dashboard.library, self.argument("name")))


class SetAnswer(Handler):
    """The parallel coordinates of a sweep."""

    async def get(self) -> None:
        library, name = self.dashboard.library, self.argument("name")
        self.json(await self.in_thread(lambda: coordinates(open_set(library, name))))


def _columns(handler: Handler) -> int:
    """Pixels of the screen."""
    wanted = handler.number("columns")
    return _USUAL if wanted is None else round(min(max(wanted, 1), _WIDEST))
