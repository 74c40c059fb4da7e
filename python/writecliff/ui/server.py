"""Listening: the address of the dashboard, until it is told to end."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from writecliff.errors import ConfigError
from writecliff.ui.access import TOKEN, Access
from writecliff.ui.library import Library

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
    extra is not installed, the port is taken, or an address that is not this machine's."""
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

    from writecliff.ui import answers, changes, pages
    from writecliff.ui.static_files import StaticFiles

    own = Path(__file__).parent / "static"
    report = Path(__file__).parents[1] / "report" / "templates"
    drawing = Path(bokeh.__file__).parent / "server" / "static" / "js"
    shared = {"dashboard": dashboard}
    handlers: list[Any] = [
        (address, handler, shared)
        for address, handler in (
            ("/", pages.ListPage), ("/run", pages.RunPageHandler), ("/report", pages.ReportPage),
            ("/overlay", pages.OverlayPage), ("/sets", pages.SetsPage), ("/set", pages.SetPage),
            ("/api/series", answers.SeriesAnswer), ("/api/overlay", answers.OverlayAnswer),
            ("/api/status", answers.StatusAnswer), ("/api/set", answers.SetAnswer),
            ("/tags", changes.TagsForm), ("/delete", changes.DeleteForm),
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
        default_handler_class=pages.NotFoundPage,
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
