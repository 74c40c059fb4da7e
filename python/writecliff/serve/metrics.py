"""Served drive metrics in the Prometheus text format over HTTP.

Names and units follow the Prometheus conventions for base units, `_total` counters, and labels.
`METRICS` contains all metrics. `python -m writecliff.serve.metrics` prints the metrics table for
docs/reference/metrics.md.
"""

from __future__ import annotations

import re
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from socketserver import ThreadingMixIn
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import numpy as np
from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from writecliff.errors import ConfigError, EngineError
from writecliff.http_manners import HEADERS, is_own_host
from writecliff.serve.figures import Snapshot, difference
from writecliff.serve.session import NUMBERS_SHOWN

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.serve.server import DriveServer

LOOPBACK = "127.0.0.1"
PREFIX = "writecliff_"
BOUNDS_S = tuple(mantissa * 10.0**exponent for exponent in range(-6, 1) for mantissa in (1, 2, 5))
_FAMILIES = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily}

Samples = Iterator[tuple[str, Any]]
"""Label values (or "") with the values of the metric; nothing if the drive lacks the metric."""


@dataclass(frozen=True)
class Figure:
    """A metric. `values` receives the server's first and latest snapshots."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    values: Callable[[Snapshot, Snapshot], Samples]
    label: str = ""

    @property
    def full_name(self) -> str:
        """Name of the metric in Prometheus."""
        return PREFIX + self.name + ("_total" if self.kind == "counter" else "")


def _latest(
    value: Callable[[Snapshot], float | None],
) -> Callable[[Snapshot, Snapshot], Samples]:
    """Return a metric's value in the latest snapshot."""
    return lambda _, now: ((("", result),) if (result := value(now)) is not None else ()).__iter__()


def _each(which: str) -> Callable[[Snapshot, Snapshot], Samples]:
    """Return a metric's values for every operation."""
    return lambda _, now: (
        (name, getattr(operation, which)) for name, operation in now.operations.items()
    )


def _streams(which: str) -> Callable[[Snapshot, Snapshot], Samples]:
    return lambda _, now: (
        (str(writes.number), getattr(writes, which)) for writes in now.streams[:NUMBERS_SHOWN]
    )


def _waf(first: Snapshot, now: Snapshot) -> Samples:
    if (waf := difference(first, now).waf) is not None:
        yield "", waf


METRICS = (
    Figure("requests", "counter", "Completed requests.", _each("requests"),
           "operation"),
    Figure("request_bytes", "counter", "Bytes of completed requests.", _each("bytes"), "operation"),
    Figure("request_latency_seconds", "histogram",
           "Request latency by the drive's clock; absent with --fast.", _each("latency"),
           "operation"),
    Figure("lateness_seconds", "histogram",
           "Time from the due completion of a request until the reply was sent, by the wall clock.",
           lambda _, now: iter([("", now.lateness)])),
    Figure("lateness_ratio", "gauge",
           "Lateness divided by the drive's own latency; above 0.1, clients measure the server.",
           _latest(lambda now: now.lateness_share)),
    Figure("write_amplification", "gauge",
           "Bytes written to flash per byte written by clients, since the server started.", _waf),
    Figure("host_write_bytes", "counter", "Bytes written by hosts since the drive was new.",
           _latest(lambda now: now.counters.host_write_bytes)),
    Figure("nand_write_bytes", "counter", "Bytes written to flash since the drive was new.",
           _latest(lambda now: now.counters.nand_write_bytes)),
    Figure("stream_requests", "counter",
           "Writes by stream or placement identifier, for the lowest 64 in use.",
           _streams("requests"), "stream"),
    Figure("stream_bytes", "counter", "Bytes written by stream or placement identifier.",
           _streams("bytes"), "stream"),
    Figure("open_streams", "gauge", "Open streams, on drives with NVMe or SCSI streams.",
           _latest(lambda now: None if now.data_placement is None
                or now.data_placement.interface == "nvme-fdp"
                else len(now.data_placement.open_streams))),
    Figure("free_reclaim_units", "gauge", "Free reclaim units.",
           _latest(lambda now: now.free_units)),
    Figure("temperature_celsius", "gauge", "Temperature of the drive, if it is simulated.",
           _latest(lambda now: now.temperature_c)),
    Figure("connections", "gauge", "Client connections.", _latest(lambda now: now.connections)),
    Figure("outstanding_requests", "gauge", "Outstanding requests.",
           _latest(lambda now: now.outstanding)),
    Figure("contents_bytes", "gauge", "Memory or file-system space used by the data.",
           _latest(lambda now: now.contents_bytes)),
    Figure("device_time_seconds", "counter", "Virtual time of the drive since it was new.",
           _latest(lambda now: now.drive_time_ns / 1e9)),
    Figure("power_cycles", "counter", "Power-ups of the drive.",
           _latest(lambda now: now.power_cycles)),
)  # fmt: skip


class MetricsServer:
    """Context manager that runs an HTTP server in a thread for the latest snapshot's metrics."""

    def __init__(self, server: DriveServer, address: str) -> None:
        """Listen on `HOST:PORT`, or on the given port of 127.0.0.1.

        Raises:
            ConfigError: If the address is invalid.
            EngineError: If the address is not available.
        """
        host, port = _address(address)
        self._first = self._now = server.first
        self._lock = threading.Lock()
        registry = CollectorRegistry()
        registry.register(self)
        try:
            self._http, self._thread = start(registry, host, port)
        except OSError as error:
            raise EngineError(
                f"cannot serve metrics at {address}: {error.strerror or error}"
            ) from None
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._http.server_port}{PATH}"

    def look(self, now: Snapshot) -> None:
        """Use the snapshot `now` for subsequent requests."""
        with self._lock:
            self._now = now

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics, for prometheus_client."""
        with self._lock:
            now = self._now
        for figure in METRICS:
            labels = [figure.label] if figure.label else []
            if figure.kind == "histogram":
                family = HistogramMetricFamily(PREFIX + figure.name, figure.help, labels=labels)
                for label, histogram in figure.values(self._first, now):
                    buckets, total_s = _buckets(histogram)
                    family.add_metric([label] if labels else [], buckets, total_s)
                yield family
                continue
            plain = _FAMILIES[figure.kind](PREFIX + figure.name, figure.help, labels=labels)
            for label, value in figure.values(self._first, now):
                plain.add_metric([label] if labels else [], value)
            yield plain

    def __enter__(self) -> Self:
        """Return the server."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the server."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _address(text: str) -> tuple[str, int]:
    match = re.fullmatch(r"(?:(?:\[(?P<v6>[^]]+)\]|(?P<host>[^:]+)):)?(?P<port>\d{1,5})", text)
    if match is None or int(match["port"]) >= 1 << 16:
        raise ConfigError(
            f"--metrics '{text}' is not an address",
            hint="specify HOST:PORT or a port, such as 127.0.0.1:9464",
        )
    return match["v6"] or match["host"] or LOOPBACK, int(match["port"])


def _buckets(histogram: Histogram) -> tuple[list[tuple[str, float]], float]:
    """Return the number of samples up to each bound, and the sum of all samples in seconds."""
    _, upper_ns, count = histogram.buckets()
    total = np.concatenate(([0], np.cumsum(count.astype(np.int64))))
    upto = np.searchsorted(upper_ns, np.array(BOUNDS_S) * 1e9, side="right")
    buckets = [(f"{bound:g}", float(total[n])) for bound, n in zip(BOUNDS_S, upto, strict=True)]
    mean_ns = histogram.mean_ns or 0.0
    return [*buckets, ("+Inf", float(total[-1]))], mean_ns * histogram.count / 1e9


def reference() -> str:
    """Return the metrics table for docs/reference/metrics.md."""
    lines = ["| metric | type | label | meaning |", "|---|---|---|---|"]
    for figure in METRICS:
        label = f"`{figure.label}`" if figure.label else ""
        lines.append(f"| `{figure.full_name}` | {figure.kind} | {label} | {figure.help} |")
    return "\n".join(lines)


# -- metrics http ----------------------------------------------------------------------------------

# HTTP server that Prometheus queries. The server provides `/metrics` and answers only requests that
# name this machine.

PATH = "/metrics"
_Start = Callable[..., Any]
_Answer = Iterable[bytes]


class _Handler(WSGIRequestHandler):
    """A request handler that writes no logs and closes idle connections after 30 s."""

    timeout = 30

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class _Server(ThreadingMixIn, WSGIServer):
    """A server with one thread per request that ignores disconnected and idle clients."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error unless the client disconnected or timed out."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class _Server6(_Server):
    address_family = socket.AF_INET6


def start(registry: CollectorRegistry, host: str, port: int) -> tuple[WSGIServer, threading.Thread]:
    """Listen on an address and serve requests in a thread.

    Returns:
        The server, which stops with `shutdown` and `server_close`, and the server's thread.

    Raises:
        OSError: If the address is in use or is not available.
    """
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    kind = _Server6 if family == socket.AF_INET6 else _Server
    app = _with_manners(make_wsgi_app(registry), host)
    server = make_server(host, port, app, server_class=kind, handler_class=_Handler)
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    return server, thread


def _with_manners(metrics: Callable[..., _Answer], host: str) -> Callable[..., _Answer]:
    """Respond to other paths with 404, and to requests that do not name this machine with 403."""
    names = () if _is_number(host) else (host,)

    def answer(environ: dict[str, Any], start_response: _Start) -> _Answer:
        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            return start_response(status, [*headers, *HEADERS.items()], *more)

        if not is_own_host(environ.get("HTTP_HOST", ""), names):
            return _refuse(
                start, HTTPStatus.FORBIDDEN, "the Host header of the request names another machine"
            )
        if environ["PATH_INFO"] != PATH:
            return _refuse(start, HTTPStatus.NOT_FOUND, f"the metrics are available at {PATH}")
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


if __name__ == "__main__":
    print(reference())
