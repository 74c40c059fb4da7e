"""Metrics of served drives for Prometheus."""

from __future__ import annotations

import socket
import struct
import time
from pathlib import Path
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.nbd_client import NbdClient
from tests.support.processes import WAIT_LIMIT_S
from tests.support.small_drive import write_small_drive
from writecliff.errors import ConfigError, EngineError
from writecliff.serve import DriveServer, ServeOptions
from writecliff.serve.metrics import METRICS, MetricsServer, reference

PAGE = Path(__file__).parents[3] / "docs/reference/metrics.md"


def test_figures_have_names_units_and_labels(tmp_path: Path) -> None:
    drive = f"sim:{write_small_drive(tmp_path)}"
    server = DriveServer(drive, ServeOptions(slow_down=5.0))
    try:
        with (
            MetricsServer(server, "0") as metrics,
            NbdClient(server.listen_nbd(f"unix:{tmp_path}/s")) as client,
        ):
            client.write(0, bytes(8192))
            client.read(0, 4096)
            client.read(0, 4096)
            server.stop()
            metrics.look(server.snapshot())
            assert metrics.url.startswith("http://127.0.0.1:")
            with urlopen(metrics.url) as answer:
                families = list(text_string_to_metric_families(answer.read().decode()))
        samples = {
            (
                sample.name,
                sample.labels.get("operation") or sample.labels.get("stream") or "",
            ): sample.value
            for family in families
            for sample in family.samples
            if not sample.name.endswith("_bucket")
        }
        assert samples["writecliff_requests_total", "read"] == 2
        assert samples["writecliff_request_bytes_total", "write"] == 8192
        assert samples["writecliff_request_latency_seconds_count", "read"] == 2
        assert 0 < samples["writecliff_request_latency_seconds_sum", "read"] < 1
        assert samples["writecliff_stream_bytes_total", "0"] == 8192
        assert samples["writecliff_write_amplification", ""] >= 1
        assert samples["writecliff_power_cycles_total", ""] == 1
        reads = [
            sample.value
            for family in families
            for sample in family.samples
            if sample.name.endswith("latency_seconds_bucket")
            and sample.labels["operation"] == "read"
        ]
        assert reads == sorted(reads) and reads[-1] == 2
        declared = {figure.full_name.removesuffix("_total") for figure in METRICS}
        assert {family.name for family in families} == declared
    finally:
        server.end()


def test_addresses_that_cannot_be_had_are_explained(tmp_path: Path) -> None:
    server = DriveServer(f"sim:{write_small_drive(tmp_path)}", ServeOptions(slow_down=None))
    try:
        for text in ("nowhere", "1:2:3", "70000", ""):
            with pytest.raises(ConfigError, match="is not an address"):
                MetricsServer(server, text)
        with MetricsServer(server, "127.0.0.1:0") as first:
            port = first.url.split(":")[2].split("/")[0]
            with pytest.raises(EngineError, match=r"metrics at 127\.0\.0\.1"):
                MetricsServer(server, f"127.0.0.1:{port}")
    finally:
        server.end()


def test_the_reference_lists_every_metric() -> None:
    assert reference() in PAGE.read_text()


def _get(address: str, request: str) -> bytes:
    """Send a raw request and return the response."""
    host, _, port = address.removeprefix("http://").removesuffix("/metrics").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=WAIT_LIMIT_S) as connection:
        connection.sendall(request.encode())
        answer = b""
        while more := connection.recv(65536):
            answer += more
    return answer


def test_only_metrics_are_shown_and_only_to_those_who_name_this_machine(tmp_path: Path) -> None:
    server = DriveServer(f"sim:{write_small_drive(tmp_path)}", ServeOptions(slow_down=None))
    try:
        with MetricsServer(server, "0") as metrics:
            for path, host, status in (
                ("/metrics", "127.0.0.1:1234", 200), ("/metrics?name[]=x", "localhost", 200),
                ("/metrics", socket.gethostname(), 200), ("/metrics", "[::1]:9", 200),
                ("/", "localhost", 404), ("/metrics/", "localhost", 404),
                ("/favicon.ico", "localhost", 404), ("/metricsx", "localhost", 404),
                ("/metrics", "attacker.example", 403), ("/", "attacker.example:80", 403),
                ("/metrics", "", 403),
            ):  # fmt: skip
                answer = _get(metrics.url, f"GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n")
                head = answer.partition(b"\r\n\r\n")[0].decode().splitlines()
                assert head[0].split()[1] == str(status), (path, host, head)
                assert "X-Content-Type-Options: nosniff" in head
                assert "Cache-Control: no-store" in head
                assert (b"writecliff_requests_total" in answer) == (head[0].split()[1] == "200"
                                                                   and "?" not in path)  # fmt: skip
            assert b"405" in _get(metrics.url, "POST /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
    finally:
        server.end()


def test_a_client_that_leaves_is_no_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server = DriveServer(f"sim:{write_small_drive(tmp_path)}", ServeOptions(slow_down=None))
    reset = struct.pack("ii", 1, 0)  # With SO_LINGER, closing sends a reset.
    try:
        with MetricsServer(server, "0") as metrics:
            port = int(metrics.url.split(":")[2].split("/")[0])
            for request in (b"", b"GET /metr", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"):
                for _ in range(20):
                    with socket.create_connection(("127.0.0.1", port)) as connection:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                        connection.sendall(request)
            with urlopen(metrics.url) as answer:
                assert answer.status == 200
            time.sleep(0.2)
    finally:
        server.end()
    assert capfd.readouterr().err == ""
