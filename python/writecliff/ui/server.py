"""Listening: the address of the dashboard, until it is told to end."""

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
_BODY_BYTES = 64 << 10  # of a form
_DRAWS = r"bokeh(?:-api)?\.min\.js"


@dataclass(frozen=True, kw_only=True)
class UiOptions:
    """How the dashboard is served. `port` 0: any free one."""

    location: str
    listen: str = "127.0.0.1"
    port: int = PORT
    allow_changes: bool = False
    access: Access = field(default_factory=Access)


def check_extra() -> None:
    """Raises ConfigError if the extra is not installed."""
    try:
        import bokeh  # noqa: F401
        import tornado  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"the dashboard needs the package {error.name}",
            hint="install it: pip install 'writecliff[ui]'",
        ) from None


async def serve(
    options: UiOptions,
    ready: Callable[[str], None],
    stop: asyncio.Event,
    complain: Callable[[str], None],
) -> None:
    """Serve until `stop` is set; `ready` gets the address with the token. Raises ConfigError: the
    extra is not installed, the port is taken, or an address that is not this machine's.
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
    """The addresses and what answers at them."""
    import bokeh
    from tornado.web import Application

    own = Path(__file__).parent / "static"
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
        (r"/static/([a-z]+\.(?:js|css|svg))", own),
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
    """Raises ConfigError."""
    from tornado.netutil import bind_sockets

    if not 0 <= options.port <= 65535:
        raise ConfigError(f"--port must be 0 to 65535, not {options.port}")
    try:
        found = bind_sockets(options.port, options.listen)
    except socket.gaierror:
        raise ConfigError(
            f"--listen '{options.listen}' is no address", hint="for example 127.0.0.1 or 0.0.0.0"
        ) from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"port {options.port} of {options.listen} is taken",
                hint="give another one with --port, or --port 0 for any that is free",
            ) from None
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"cannot listen at {options.listen}:{options.port}: {reason}") from None
    return found


def _address(options: UiOptions, port: int) -> str:
    """What is opened in a browser."""
    host = options.listen
    with suppress(ValueError):
        number = ip_address(host)
        host = socket.gethostname() if number.is_unspecified else host
        host = f"[{host}]" if number.version == 6 and not number.is_unspecified else host
    return f"http://{host}:{port}/?{TOKEN}={options.access.token}"


def is_open_to_others(options: UiOptions) -> bool:
    """Whether other machines can reach it."""
    try:
        return not ip_address(options.listen).is_loopback
    except ValueError:
        return options.listen != "localhost"


# -- static files ----------------------------------------------------------------------------------

# Scripts and styles: of the dashboard and of reports, and Bokeh's JavaScript from its package.


class StaticFiles(Handler, StaticFileHandler):
    """A file that is installed; who may ask is checked as for pages."""

    def initialize(self, dashboard: Dashboard, path: str) -> None:  # type: ignore[override]
        Handler.initialize(self, dashboard)
        StaticFileHandler.initialize(self, path)

    def set_extra_headers(self, path: str) -> None:
        self.set_header("Cache-Control", "private, max-age=0, must-revalidate")

    def compute_etag(self) -> Any:
        return StaticFileHandler.compute_etag(self)


# -- changes ---------------------------------------------------------------------------------------

# Changes, if allowed: tags and deletion, by the functions of the store.


class _Change(Handler):
    """A form that changes the store."""

    def prepare(self) -> None:
        super().prepare()
        if not self.dashboard.allow_changes:
            raise HTTPError(403, reason="Changes are not allowed: see --allow-changes")
        origin = self.request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != self.request.headers.get("Host"):
            raise HTTPError(403, reason="A form of another page")


class TagsForm(_Change):
    """Add and remove tags of a run: `name`, `add`, `remove`."""

    async def post(self) -> None:
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
        raise NoSuchRun(f"{run} has gone") from None
    library.changed()


class DeleteForm(_Change):
    """Delete a run: `name`, and `confirm` with the same name."""

    async def get(self) -> None:
        await self.in_thread(self.dashboard.library.check, self.argument("name"))
        self.page("delete.html.j2", run=self.argument("name"))

    async def post(self) -> None:
        await self.in_thread(_delete, self.dashboard.library, self.form("name"))
        self.redirect("/", status=303)


def _delete(library: Library, run: str) -> None:
    library.check(run)
    deleted = delete_runs(library.place, [run])
    library.changed()
    if not deleted:
        raise NoSuchRun(f"{run} has gone")


# -- JSON data of plots ----------------------------------------------------------------------------

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
) -> dict[str, object]:
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


# -- the pages -------------------------------------------------------------------------------------

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
    StoreError: nothing measured yet, damaged.
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
