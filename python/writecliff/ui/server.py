"""Dashboard server, with its URLs and their handlers."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from tornado.web import HTTPError, StaticFileHandler

from writecliff.errors import ConfigError, StoreError, encoded
from writecliff.report import REPORT_NAME
from writecliff.runs.delete import delete_runs
from writecliff.runs.tags import change_tags
from writecliff.ui.access import REPORT_POLICY, TOKEN, Access
from writecliff.ui.handler import Dashboard, Handler
from writecliff.ui.library import Library, NoSuchRun
from writecliff.ui.listing import Asked, Listing, listing
from writecliff.ui.overlay import MOST, NORMS, check_runs, figures_beside, overlay
from writecliff.ui.plots import run_plots, view_of
from writecliff.ui.run_page import doing, run_page
from writecliff.ui.series import Shelf
from writecliff.ui.sets import all_sets, coordinates, open_set

PORT = 8642
_THREADS = 4
_BODY_BYTES = 64 << 10  # Maximum size of a form.
_DRAWS = r"bokeh(?:-api)?\.min\.js"


@dataclass(frozen=True, kw_only=True)
class UiOptions:
    """Options of the server; a `port` of 0 selects a free port."""

    location: str
    listen: str = "127.0.0.1"
    port: int = PORT
    allow_changes: bool = False
    access: Access = field(default_factory=Access)


def check_extra() -> None:
    """Check that the extra `ui` is installed.

    Raises:
        ConfigError: If a package is missing.
    """
    try:
        import bokeh  # noqa: F401
        import tornado  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"the dashboard requires the package {error.name}",
            hint="install it with: pip install 'writecliff[ui]'",
        ) from None


async def serve(
    options: UiOptions,
    ready: Callable[[str], None],
    stop: asyncio.Event,
    complain: Callable[[str], None],
) -> None:
    """Serve the dashboard until `stop` is set.

    Args:
        options: Store, address, token and rights.
        ready: Called with the address, including the token, once the server listens.
        stop: Event that ends the server.
        complain: Called with the text of each internal error.

    Raises:
        ConfigError: The extra is not installed, the port is in use, or the address is not one of
            this machine.
    """
    check_extra()
    from tornado.httpserver import HTTPServer

    from writecliff.ui.handler import Dashboard

    library = Library(options.location)
    sockets = _sockets(options)
    port = int(sockets[0].getsockname()[1])
    for name in ("tornado.access", "tornado.application", "tornado.general"):
        logging.getLogger(name).addHandler(logging.NullHandler())
        logging.getLogger(name).propagate = False
    with ThreadPoolExecutor(_THREADS, "ui") as executor:
        dashboard = Dashboard(library, options.access, executor, options.allow_changes, complain,
                              cookie=f"writecliff-ui-{port}")  # fmt: skip
        server = HTTPServer(
            _application(dashboard), max_body_size=_BODY_BYTES, idle_connection_timeout=300
        )
        server.add_sockets(sockets)
        ready(_address(options, port))
        await stop.wait()
        server.stop()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(server.close_all_connections(), 2)


def _application(dashboard: Any) -> Any:
    """Return the application, which consists of URLs and their handlers."""
    import bokeh
    from tornado.web import Application

    static = Path(__file__).parent / "static"
    report = Path(__file__).parents[1] / "report" / "templates"
    drawing = Path(bokeh.__file__).parent / "server" / "static" / "js"
    shared = {"dashboard": dashboard}
    handlers: list[Any] = [
        (address, handler, shared)
        for address, handler in (
            ("/", ListPage), ("/run", RunPageHandler), ("/report", ReportPage),
            ("/overlay", OverlayPage), ("/sets", SetsPage), ("/set", SetPage),
            ("/api/series", SeriesAnswer), ("/api/overlay", OverlayAnswer),
            ("/api/status", StatusAnswer), ("/api/set", SetAnswer),
            ("/tags", TagsForm), ("/delete", DeleteForm),
        )
    ]  # fmt: skip
    for pattern, folder in (
        (r"/static/(report\.css)", report),
        (rf"/static/({_DRAWS})", drawing),
        (r"/static/([a-z]+\.(?:js|css|svg))", static),
    ):
        handlers.append((pattern, StaticFiles, {**shared, "path": str(folder)}))
    return Application(
        handlers,
        default_handler_class=NotFoundPage,
        default_handler_args=shared,
        xsrf_cookies=True,
        xsrf_cookie_name=f"{dashboard.cookie}-form",
        xsrf_cookie_kwargs={"httponly": True, "samesite": "Strict"},
        log_function=lambda handler: None,
    )


def _sockets(options: UiOptions) -> list[socket.socket]:
    """Return the listening sockets.

    Raises:
        ConfigError: If the port or the address cannot be used.
    """
    from tornado.netutil import bind_sockets

    if not 0 <= options.port <= 65535:
        raise ConfigError(f"--port must be from 0 to 65535, not {options.port}")
    try:
        sockets = bind_sockets(options.port, options.listen)
    except socket.gaierror:
        raise ConfigError(
            f"--listen '{options.listen}' is not an address",
            hint="use an address such as 127.0.0.1 or 0.0.0.0",
        ) from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"port {options.port} at {options.listen} is in use",
                hint="choose another port with --port, or use --port 0 for any free port",
            ) from None
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"cannot listen at {options.listen}:{options.port}: {reason}") from None
    return sockets


def _address(options: UiOptions, port: int) -> str:
    """Return the URL to open in a browser."""
    host = options.listen
    with suppress(ValueError):
        number = ip_address(host)
        host = socket.gethostname() if number.is_unspecified else host
        host = f"[{host}]" if number.version == 6 and not number.is_unspecified else host
    return f"http://{host}:{port}/?{TOKEN}={options.access.token}"


def is_open_to_others(options: UiOptions) -> bool:
    """Return `True` if other machines can reach the dashboard."""
    try:
        return not ip_address(options.listen).is_loopback
    except ValueError:
        return options.listen != "localhost"


# -- static files ----------------------------------------------------------------------------------

# Scripts and styles for the dashboard and the reports, and Bokeh's JavaScript from its package.


class StaticFiles(Handler, StaticFileHandler):
    """An installed file, with the same access check as for pages."""

    def initialize(self, dashboard: Dashboard, path: str) -> None:  # type: ignore[override]
        """Store the shared state and the folder."""
        Handler.initialize(self, dashboard)
        StaticFileHandler.initialize(self, path)

    def set_extra_headers(self, path: str) -> None:
        """Let browsers cache a file, but require them to revalidate it."""
        self.set_header("Cache-Control", "private, max-age=0, must-revalidate")

    def compute_etag(self) -> Any:
        """Return the file's ETag; pages have none."""
        return StaticFileHandler.compute_etag(self)


# -- changes ---------------------------------------------------------------------------------------

# Changes, if allowed: tagging and deletion.


class _Change(Handler):
    """Handler for a form that changes the store."""

    def prepare(self) -> None:
        super().prepare()
        if not self.dashboard.allow_changes:
            raise HTTPError(403, reason="Changes are not allowed (start with --allow-changes)")
        origin = self.request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != self.request.headers.get("Host"):
            raise HTTPError(403, reason="The form was not sent from this dashboard")


class TagsForm(_Change):
    """Adds tags to a run, or removes tags from it, given `name`, `add` and `remove`."""

    async def post(self) -> None:
        """Change the tags and return to the page of the run."""
        run = self.form("name")
        await self.in_thread(_tag, self.dashboard.library, run, self.form("add"),
                             self.form("remove"))  # fmt: skip
        self.redirect(f"/run?{urlencode({'name': run})}#tags", status=303)


def _tag(library: Library, run: str, add: str, remove: str) -> None:
    library.check(run)
    wanted = [tag.strip() for tag in add.split(",") if tag.strip()]
    try:
        change_tags(library.place, run, add=wanted, remove=[remove] if remove else [])
    except FileNotFoundError:
        raise NoSuchRun(f"{run} no longer exists") from None
    library.changed()


class DeleteForm(_Change):
    """Deletes a run: `name`, and a `confirm` field that repeats the name."""

    async def get(self) -> None:
        """Ask for confirmation."""
        await self.in_thread(self.dashboard.library.check, self.argument("name"))
        self.page("delete.html.j2", run=self.argument("name"))

    async def post(self) -> None:
        """Delete the run if its name was confirmed, and return to the list."""
        await self.in_thread(_delete, self.dashboard.library, self.form("name"))
        self.redirect("/", status=303)


def _delete(library: Library, run: str) -> None:
    library.check(run)
    deleted = delete_runs(library.place, [run])
    library.changed()
    if not deleted:
        raise NoSuchRun(f"{run} no longer exists")


# -- JSON data of plots ----------------------------------------------------------------------------

_WIDEST = 4_000  # Maximum screen width in pixels.
_USUAL = 800


class SeriesAnswer(Handler):
    """Plots of a run `name` between the times `from` and `to` in seconds, `columns` wide."""

    async def get(self) -> None:
        """Answer with the plots in view."""
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
) -> dict[str, object]:
    with library.folder(run) as folder:
        series = shelf.series(run, folder)
    return run_plots(series, view_of(series.span_s, *view), columns)


class OverlayAnswer(Handler):
    """Plot of a quantity for several runs.

    Arguments: `name` of each run, `key`, `norm`, and the arguments of `SeriesAnswer`.
    """

    async def get(self) -> None:
        """Answer with the plot of all runs in view."""
        dashboard = self.dashboard
        self.json(
            await self.in_thread(
                overlay, dashboard.library, dashboard.shelf, self.arguments("name"),
                self.argument("key"), self.argument("norm"),
                (self.number("from"), self.number("to")), _columns(self),
            )
        )  # fmt: skip


class StatusAnswer(Handler):
    """Progress of a run."""

    async def get(self) -> None:
        """Answer with status, steps and a line of text."""
        self.json(await self.in_thread(doing, self.dashboard.library, self.argument("name")))


class SetAnswer(Handler):
    """Parallel coordinates of a sweep."""

    async def get(self) -> None:
        """Answer with axes and lines."""
        library, name = self.dashboard.library, self.argument("name")
        self.json(await self.in_thread(lambda: coordinates(open_set(library, name))))


def _columns(handler: Handler) -> int:
    """Return the screen width in pixels."""
    wanted = handler.number("columns")
    return _USUAL if wanted is None else round(min(max(wanted, 1), _WIDEST))


# -- the pages -------------------------------------------------------------------------------------

_drawing = threading.Lock()  # matplotlib has a single style for all threads.


class ListPage(Handler):
    """List of the runs in the store."""

    async def get(self) -> None:
        """Answer with the page of the list that the address selects."""
        given = {name: self.argument(name) for name in self.request.query_arguments}
        error = None
        asked = Asked()
        try:
            asked = Asked.of(given)
            page = await self.in_thread(listing, self.dashboard.library, asked)
        except ConfigError as wrong:
            self.set_status(400)
            error = wrong
            page = Listing(asked, [], 0, {name: [] for name in ("kind", "test", "status", "tag")})
        self.page("list.html.j2", listing=page, asked=asked, error=error, most=MOST)


class RunPageHandler(Handler):
    """One run."""

    async def get(self) -> None:
        """Answer with the page of a run, and load its series."""
        dashboard, name = self.dashboard, self.argument("name")
        page = await self.in_thread(run_page, dashboard.library, name)
        if page.status != "damaged":  # The page requests all its plots at once.
            dashboard.executor.submit(_take_down, dashboard, name)
        self.page("run.html.j2", run=page)


def _take_down(dashboard: Dashboard, run: str) -> None:
    """Load a run's series into the cache; errors are reported with the later plot request."""
    with suppress(Exception), dashboard.library.folder(run) as folder:
        dashboard.shelf.series(run, folder)


class ReportPage(Handler):
    """Report of a run, isolated from other pages by its opaque origin."""

    async def get(self) -> None:
        """Answer with the stored report, or with a new report."""
        data = await self.in_thread(report, self.dashboard.library, self.argument("name"))
        self.set_header("Content-Security-Policy", REPORT_POLICY)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        await self.finish(data)


def report(library: Library, run: str) -> bytes:
    """Return the report in the run directory, or create a report that is not stored.

    Raises:
        StoreError: If the run is damaged or has no measurements.
    """
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
    """Page with several runs on a single plot."""

    async def get(self) -> None:
        """Answer with the page of an overlay and its table of figures."""
        runs = check_runs(self.arguments("name"))
        library = self.dashboard.library
        for run in runs:
            await self.in_thread(library.check, run)
        figures = await self.in_thread(figures_beside, library, runs)
        address = urlencode([("name", run) for run in runs])
        self.page("overlay.html.j2", runs=runs, figures=figures, norms=NORMS, address=address)


class SetsPage(Handler):
    """List of suites and sweeps."""

    async def get(self) -> None:
        """Answer with the list of suites and sweeps."""
        self.page("sets.html.j2", sets=await self.in_thread(all_sets, self.dashboard.library))


class SetPage(Handler):
    """Page of a suite or sweep."""

    async def get(self) -> None:
        """Answer with the tables of a suite or sweep."""
        opened = await self.in_thread(open_set, self.dashboard.library, self.argument("name"))
        self.page("set.html.j2", opened=opened)


class NotFoundPage(Handler):
    """Responds at all other URLs."""

    async def get(self) -> None:
        """Answer with status 404."""
        self.send_error(404)

    post = get
