"""HTTP server for Prometheus: `/metrics`, for requests that name this machine."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterable
from http import HTTPStatus
from ipaddress import ip_address
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from writecliff.http_manners import HEADERS, is_own_host

PATH = "/metrics"
_Start = Callable[..., Any]
_Answer = Iterable[bytes]


class _Handler(WSGIRequestHandler):
    """A request handler without logs that closes idle connections after 30 s."""

    timeout = 30

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class _Server(ThreadingMixIn, WSGIServer):
    """A server with a thread per request that ignores disconnected and idle clients."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error, except if the client disconnected or timed out."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class _Server6(_Server):
    address_family = socket.AF_INET6


def start(registry: CollectorRegistry, host: str, port: int) -> tuple[WSGIServer, threading.Thread]:
    """Listen at an address and serve requests in a thread.

    Returns:
        The server, which `shutdown` and `server_close` stop, and its thread.

    Raises:
        OSError: the address is in use or not available.
    """
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    kind = _Server6 if family == socket.AF_INET6 else _Server
    app = _with_manners(make_wsgi_app(registry), host)
    server = make_server(host, port, app, server_class=kind, handler_class=_Handler)
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    return server, thread


def _with_manners(metrics: Callable[..., _Answer], host: str) -> Callable[..., _Answer]:
    """Answer other paths with 404, and requests that do not name this machine with 403."""
    names = () if _is_number(host) else (host,)

    def answer(environ: dict[str, Any], start_response: _Start) -> _Answer:
        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            return start_response(status, [*headers, *HEADERS.items()], *more)

        if not is_own_host(environ.get("HTTP_HOST", ""), names):
            return _refuse(start, HTTPStatus.FORBIDDEN, "the request names another machine")
        if environ["PATH_INFO"] != PATH:
            return _refuse(start, HTTPStatus.NOT_FOUND, f"the figures are at {PATH}")
        return metrics(environ, start)

    return answer


def _refuse(start: _Start, status: HTTPStatus, reason: str) -> _Answer:
    body = f"{status.phrase}: {reason}\n".encode()
    headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
    start(f"{status.value} {status.phrase}", headers)
    return [body]


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
