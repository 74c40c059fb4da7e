"""Code shared by all responses: access checks, headers, work in threads, and error pages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from tornado.web import HTTPError, RequestHandler

from writecliff.errors import ConfigError, WritecliffError
from writecliff.http_manners import HEADERS
from writecliff.ui.access import TOKEN, Access, new_nonce, page_policy
from writecliff.ui.library import Library, NoSuchRun, OutsideError
from writecliff.ui.series import Shelf

T = TypeVar("T")
_LONGEST = 8_000  # Maximum length of an address, in characters.
_MOST = 40  # Maximum number of arguments in an address.


@dataclass
class Dashboard:
    """State that all responses share."""

    library: Library
    access: Access
    executor: Executor
    allow_changes: bool
    complain: Callable[[str], None]  # Callback that prints internal errors on the console.
    cookie: str = "writecliff-ui"
    shelf: Shelf = field(default_factory=Shelf)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("writecliff.ui"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["query"] = lambda pairs: urlencode(pairs, doseq=True)
    return environment


class Guard(RequestHandler):
    """Rejects requests that lack the token or use another machine's host name."""

    def initialize(self, dashboard: Dashboard) -> None:
        """Store a reference to the shared state."""
        self.dashboard = dashboard

    def set_default_headers(self) -> None:
        """Set the headers of every response."""
        self.nonce = new_nonce()
        for name, value in HEADERS.items():
            self.set_header(name, value)
        self.set_header("Content-Security-Policy", page_policy(self.nonce))
        self.clear_header("Server")

    def prepare(self) -> None:
        """Check the request's address, host name and token."""
        access = self.dashboard.access
        if not access.knows_host(self.request.headers.get("Host", "")):
            raise HTTPError(403, reason="Unknown host name")
        given = self.get_query_argument(TOKEN, None)
        if access.opens(given):
            return self._keep_token()
        if not access.opens(self.get_cookie(self.dashboard.cookie)):
            raise HTTPError(403, reason="The request contains no token")
        return None

    def _keep_token(self) -> None:
        """Move the token from the URL, which others may see, to a cookie."""
        self.set_cookie(
            self.dashboard.cookie, self.dashboard.access.token, httponly=True, samesite="Lax"
        )
        if self.request.method in ("GET", "HEAD"):
            parts = urlsplit(self.request.uri or "/")
            left = [pair for pair in parse_qsl(parts.query) if pair[0] != TOKEN]
            # A leading double slash must not address another machine.
            path = "/" + parts.path.lstrip("/")
            self.redirect(urlunsplit(("", "", path, urlencode(left), "")), status=303)

    def compute_etag(self) -> str | None:
        """Return `None`, because pages do not have an ETag."""
        return None


class Handler(Guard):
    """Handler for a page or a JSON response."""

    def arguments(self, name: str) -> list[str]:
        """Return the URL arguments with a given name, unchanged.

        Run names may contain any characters.
        """
        return [_text(value) for value in self.request.query_arguments.get(name, ())]

    def argument(self, name: str) -> str:
        """Return the last argument with a given name, or ""."""
        return next(reversed(self.arguments(name)), "")

    def form(self, name: str) -> str:
        """Return a field of the submitted form, unchanged."""
        return next(map(_text, reversed(self.request.body_arguments.get(name, ()))), "")

    def number(self, name: str) -> float | None:
        """Return a numeric URL argument, or `None` if it is absent.

        Raises:
            ConfigError: If the text is not a number.
        """
        text = self.argument(name)
        try:
            value = float(text) if text else None
        except ValueError:
            value = float("nan")
        if value is not None and value - value != 0:
            raise ConfigError(f"the parameter {name} must be a number")
        return value

    async def in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run a slow function in a thread, so other requests are answered meanwhile."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.dashboard.executor, work, *arguments)

    def page(self, template: str, **values: Any) -> None:
        """Respond with a page."""
        dashboard = self.dashboard
        self.finish(
            _environment()
            .get_template(template)
            .render(
                nonce=self.nonce,
                store=dashboard.library.location,
                allow_changes=dashboard.allow_changes,
                xsrf=self.xsrf_token.decode() if dashboard.allow_changes else "",
                **values,
            )
        )

    def json(self, value: Any) -> None:
        """Respond with JSON."""
        self.set_header("Content-Type", "application/json; charset=utf-8")
        self.finish(json.dumps(value, allow_nan=False, separators=(",", ":"), default=float))

    # -- errors -------------------------------------------------------------------------------

    def write_error(self, status_code: int, **about: Any) -> None:
        """Respond with an error as a page, or as text if access is denied."""
        error = about["exc_info"][1] if "exc_info" in about else None
        status, message, hint = _explained(error, status_code)
        self.set_status(status)
        if self.request.path.startswith("/api/"):
            self.json({"error": message, "hint": hint})
        elif isinstance(error, HTTPError) and status == 403:
            # No template is used, because a client that has no token must not learn anything about
            # the store.
            self.set_header("Content-Type", "text/plain; charset=utf-8")
            self.finish(f"403: {message}\n{hint or ''}\n")
        else:
            self.page("error.html.j2", status=status, message=message, hint=hint)

    def log_exception(self, kind: Any, error: Any, trace: Any) -> None:
        """Report internal errors on the console; users' errors are only shown in the response."""
        if not isinstance(error, HTTPError | WritecliffError):
            text = " ".join(str(error).split())
            self.dashboard.complain(f"{self.request.path}: {type(error).__name__}: {text}")


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise HTTPError(400, reason="The address is not valid UTF-8") from None


def _explained(error: BaseException | None, status: int) -> tuple[int, str, str | None]:
    """Return the status, message and hint for an error."""
    if isinstance(error, NoSuchRun):
        return 404, str(error), error.hint
    if isinstance(error, OutsideError):
        return 403, str(error), error.hint
    if isinstance(error, ConfigError):
        return 400, str(error), error.hint
    if isinstance(error, WritecliffError):
        return 409, str(error), error.hint
    if status == 403:
        hint = "open the address that `writecliff ui` printed, including its token"
        return 403, (error.reason if isinstance(error, HTTPError) else None) or "Forbidden", hint
    if status == 404:
        return 404, "page not found", None
    if isinstance(error, HTTPError):
        return status, error.reason or error.log_message or "the request cannot be answered", None
    return 500, "internal error", "`writecliff ui` has printed the reason on its console"
