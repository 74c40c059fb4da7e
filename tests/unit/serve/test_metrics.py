"""What Prometheus sees of a served drive."""

from __future__ import annotations

from pathlib import Path
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.nbd_client import NbdClient
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
        found = {
            (one.name, one.labels.get("operation") or one.labels.get("stream") or ""): one.value
            for family in families
            for one in family.samples
            if not one.name.endswith("_bucket")
        }
        assert found["writecliff_requests_total", "read"] == 2
        assert found["writecliff_request_bytes_total", "write"] == 8192
        assert found["writecliff_request_latency_seconds_count", "read"] == 2
        assert 0 < found["writecliff_request_latency_seconds_sum", "read"] < 1
        assert found["writecliff_stream_bytes_total", "0"] == 8192
        assert found["writecliff_write_amplification", ""] >= 1
        assert found["writecliff_power_cycles_total", ""] == 1
        reads = [
            one.value
            for family in families
            for one in family.samples
            if one.name.endswith("latency_seconds_bucket") and one.labels["operation"] == "read"
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
            with pytest.raises(ConfigError, match="--metrics is"):
                MetricsServer(server, text)
        with MetricsServer(server, "127.0.0.1:0") as first:
            port = first.url.split(":")[2].split("/")[0]
            with pytest.raises(EngineError, match=r"metrics at 127\.0\.0\.1"):
                MetricsServer(server, f"127.0.0.1:{port}")
    finally:
        server.end()


def test_the_reference_lists_every_metric() -> None:
    assert reference() in PAGE.read_text()
