"""The pages."""

from __future__ import annotations

import threading
from contextlib import suppress
from urllib.parse import urlencode

from writecliff.errors import ConfigError, StoreError, encoded
from writecliff.report import REPORT_NAME
from writecliff.ui.access import REPORT_POLICY
from writecliff.ui.handler import Dashboard, Handler
from writecliff.ui.library import Library
from writecliff.ui.listing import Asked, Listing, listing
from writecliff.ui.overlay import MOST, NORMS, check_runs, figures_beside
from writecliff.ui.run_page import run_page
from writecliff.ui.sets import all_sets, open_set

_drawing = threading.Lock()  # matplotlib has one style for all threads


class ListPage(Handler):
    """The runs of the store."""

    async def get(self) -> None:
        given = {name: self.argument(name) for name in self.request.query_arguments}
        error = None
        asked = Asked()
        try:
            asked = Asked.of(given)
            found = await self.in_thread(listing, self.dashboard.library, asked)
        except ConfigError as wrong:
            self.set_status(400)
            error = wrong
            found = Listing(asked, [], 0, {name: [] for name in ("kind", "test", "status", "tag")})
        self.page("list.html.j2", listing=found, asked=asked, error=error, most=MOST)


class RunPageHandler(Handler):
    """One run."""

    async def get(self) -> None:
        dashboard, name = self.dashboard, self.argument("name")
        found = await self.in_thread(run_page, dashboard.library, name)
        if found.status != "damaged":  # the page will ask for its plots at once
            dashboard.executor.submit(_take_down, dashboard, name)
        self.page("run.html.j2", run=found)


def _take_down(dashboard: Dashboard, run: str) -> None:
    """Have the series of a run in memory. Whoever asks for them is told what is wrong."""
    with suppress(Exception), dashboard.library.folder(run) as folder:
        dashboard.shelf.series(run, folder)


class ReportPage(Handler):
    """The report of a run, apart from our pages: it may come from anywhere."""

    async def get(self) -> None:
        data = await self.in_thread(report, self.dashboard.library, self.argument("name"))
        self.set_header("Content-Security-Policy", REPORT_POLICY)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        await self.finish(data)


def report(library: Library, run: str) -> bytes:
    """The report that is in the run directory, or one that is made now and not kept. Raises
    StoreError: nothing measured yet, damaged."""
    with library.folder(run) as folder:
        try:
            return (folder / REPORT_NAME).read_bytes()
        except FileNotFoundError:
            pass
        except OSError as error:
            raise StoreError(f"cannot read the report of {run}: {error.strerror}") from None
        from writecliff.report import build_report
        from writecliff.report.pages import render_html
        from writecliff.store.rundir import RunDirectory

        with _drawing:
            return encoded(render_html(build_report(RunDirectory.open(folder))))


class OverlayPage(Handler):
    """Several runs on one plot."""

    async def get(self) -> None:
        runs = check_runs(self.arguments("name"))
        library = self.dashboard.library
        for run in runs:
            await self.in_thread(library.check, run)
        figures = await self.in_thread(figures_beside, library, runs)
        address = urlencode([("name", run) for run in runs])
        self.page("overlay.html.j2", runs=runs, figures=figures, norms=NORMS, address=address)


class SetsPage(Handler):
    """Suites and sweeps."""

    async def get(self) -> None:
        self.page("sets.html.j2", sets=await self.in_thread(all_sets, self.dashboard.library))


class SetPage(Handler):
    """One of them."""

    async def get(self) -> None:
        found = await self.in_thread(open_set, self.dashboard.library, self.argument("name"))
        self.page("set.html.j2", found=found)


class NotFoundPage(Handler):
    """Every other address."""

    async def get(self) -> None:
        self.send_error(404)

    post = get
