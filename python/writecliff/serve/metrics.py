"""Figures of a served drive for Prometheus, by its text format over HTTP.

Names and units follow the conventions of Prometheus: base units, `_total` for counters, a label for
what is counted apart. `METRICS` is all of it, which `python -m writecliff.serve.metrics` prints for
docs/reference/metrics.md.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from writecliff.errors import ConfigError, EngineError
from writecliff.serve import metrics_http
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
"""The value of the label, "" without one, and the value; nothing where the drive has none."""


@dataclass(frozen=True)
class Figure:
    """A metric. `values` gets the first snapshot of the server and the one of now."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    values: Callable[[Snapshot, Snapshot], Samples]
    label: str = ""

    @property
    def full_name(self) -> str:
        """As Prometheus sees it."""
        return PREFIX + self.name + ("_total" if self.kind == "counter" else "")


def _one(value: Callable[[Snapshot], float | None]) -> Callable[[Snapshot, Snapshot], Samples]:
    """A figure of the last snapshot alone."""
    return lambda _, now: ((("", found),) if (found := value(now)) is not None else ()).__iter__()


def _each(which: str) -> Callable[[Snapshot, Snapshot], Samples]:
    """A figure of every operation."""
    return lambda _, now: ((name, getattr(one, which)) for name, one in now.operations.items())


def _streams(which: str) -> Callable[[Snapshot, Snapshot], Samples]:
    return lambda _, now: (
        (str(one.number), getattr(one, which)) for one in now.streams[:NUMBERS_SHOWN]
    )


def _waf(first: Snapshot, now: Snapshot) -> Samples:
    if (waf := difference(first, now).waf) is not None:
        yield "", waf


METRICS = (
    Figure("requests", "counter", "Completed requests.", _each("requests"),
           "operation"),
    Figure("request_bytes", "counter", "Bytes of these requests.", _each("bytes"), "operation"),
    Figure("request_latency_seconds", "histogram",
           "Latency of requests by the drive's clock; none with --fast.", _each("latency"),
           "operation"),
    Figure("lateness_seconds", "histogram",
           "Time from the due completion of a request until the reply was sent, by the wall clock.",
           lambda _, now: iter([("", now.lateness)])),
    Figure("lateness_ratio", "gauge",
           "Lateness over the drive's own latency; clients measure the server above 0.1.",
           _one(lambda now: now.lateness_share)),
    Figure("write_amplification", "gauge",
           "Bytes written to flash per byte written by clients, since the server started.", _waf),
    Figure("host_write_bytes", "counter", "Bytes written by hosts since the drive was new.",
           _one(lambda now: now.counters.host_write_bytes)),
    Figure("nand_write_bytes", "counter", "Bytes written to flash since the drive was new.",
           _one(lambda now: now.counters.nand_write_bytes)),
    Figure("stream_requests", "counter",
           "Writes by stream or placement identifier, of the lowest 64 in use.",
           _streams("requests"), "stream"),
    Figure("stream_bytes", "counter", "Bytes of these writes.", _streams("bytes"), "stream"),
    Figure("open_streams", "gauge", "Open streams, on drives with NVMe or SCSI streams.",
           _one(lambda now: None if now.data_placement is None
                or now.data_placement.interface == "nvme-fdp"
                else len(now.data_placement.open_streams))),
    Figure("free_reclaim_units", "gauge", "Free reclaim units.",
           _one(lambda now: now.free_units)),
    Figure("temperature_celsius", "gauge", "Temperature of the drive, if it is simulated.",
           _one(lambda now: now.temperature_c)),
    Figure("connections", "gauge", "Client connections.", _one(lambda now: now.connections)),
    Figure("outstanding_requests", "gauge", "Outstanding requests.",
           _one(lambda now: now.outstanding)),
    Figure("contents_bytes", "gauge", "Memory or file-system space used by the data.",
           _one(lambda now: now.contents_bytes)),
    Figure("device_time_seconds", "counter", "Virtual time of the drive since it was new.",
           _one(lambda now: now.drive_time_ns / 1e9)),
    Figure("power_cycles", "counter", "Power-ups of the drive.",
           _one(lambda now: now.power_cycles)),
)  # fmt: skip


class MetricsServer:
    """Answers Prometheus with the figures of the last look, in a thread of its own. A context
    manager."""

    def __init__(self, server: DriveServer, address: str) -> None:
        """Listen at `HOST:PORT`, or at a port of 127.0.0.1. Raises ConfigError if it is no address,
        EngineError if it cannot be had."""
        host, port = _address(address)
        self._first = self._now = server.first
        self._lock = threading.Lock()
        registry = CollectorRegistry()
        registry.register(self)
        try:
            self._http, self._thread = metrics_http.start(registry, host, port)
        except OSError as error:
            raise EngineError(f"metrics at {address}: {error.strerror or error}") from None
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._http.server_port}{metrics_http.PATH}"

    def look(self, now: Snapshot) -> None:
        """Show the figures of `now` from now on."""
        with self._lock:
            self._now = now

    def collect(self) -> Iterator[Metric]:
        """All figures, for prometheus_client."""
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
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _address(text: str) -> tuple[str, int]:
    found = re.fullmatch(r"(?:(?:\[(?P<v6>[^]]+)\]|(?P<host>[^:]+)):)?(?P<port>\d{1,5})", text)
    if found is None or int(found["port"]) >= 1 << 16:
        raise ConfigError(
            f"--metrics is '{text}'", hint="give HOST:PORT or a port, such as 127.0.0.1:9464"
        )
    return found["v6"] or found["host"] or LOOPBACK, int(found["port"])


def _buckets(histogram: Histogram) -> tuple[list[tuple[str, float]], float]:
    """Numbers of samples up to each bound, and the sum of all in seconds."""
    _, upper_ns, count = histogram.buckets()
    total = np.concatenate(([0], np.cumsum(count.astype(np.int64))))
    upto = np.searchsorted(upper_ns, np.array(BOUNDS_S) * 1e9, side="right")
    found = [(f"{bound:g}", float(total[n])) for bound, n in zip(BOUNDS_S, upto, strict=True)]
    mean_ns = histogram.mean_ns or 0.0
    return [*found, ("+Inf", float(total[-1]))], mean_ns * histogram.count / 1e9


def reference() -> str:
    """The table of docs/reference/metrics.md."""
    lines = ["| metric | type | label | meaning |", "|---|---|---|---|"]
    for figure in METRICS:
        label = f"`{figure.label}`" if figure.label else ""
        lines.append(f"| `{figure.full_name}` | {figure.kind} | {label} | {figure.help} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(reference())
