"""IOPS, throughput and latency on the simulated drive, from the command line to the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.small_drive import write_small_drive
from writecliff.cli.main import main
from writecliff.report import summarise

# A twentieth of a second on a 960 MB drive corresponds to several seconds on a 120 GB drive.
SHORT = ["--revision", "2.0", "--quick", "--step-seconds", "0.05", "--quiet"]
MORE = {"iops": ["--max-rounds", "5"], "lat": ["--histogram-seconds", "1"]}


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_drive(tmp_path_factory.mktemp("drive"))


def results(run: Path) -> dict[tuple[int, float], dict[str, Any]]:
    figures = summarise(run)["results"]
    return {(result["block_bytes"], result["read_pct"]): result for result in figures}


@pytest.mark.parametrize(("test", "pages"), [("iops", 7), ("tp", 10), ("lat", 7)])
def test_a_whole_run_with_its_report(test: str, pages: int, drive: Path, tmp_path: Path) -> None:
    words = ["test", test, "--on", f"sim:{drive}", "--output", str(tmp_path / "r")]
    assert main([*words, *SHORT, *MORE.get(test, [])]) == 0
    page = (tmp_path / "r" / "report.html").read_text()
    assert page.count('<section class="plots">') == pages
    assert "NOT PTS-CONFORMANT" in page
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert manifest["status"] == "complete"
    assert manifest["edition"] == "PTS 2.0.2 (enterprise)"
    figures = results(tmp_path / "r")
    if test == "iops":
        assert len(figures) == 56
        # Flash drives have higher IOPS with small blocks, and faster reads than writes.
        for mix in (100.0, 65.0, 0.0):
            assert figures[4096, mix]["iops"] > 2 * figures[65536, mix]["iops"]
        assert figures[4096, 100.0]["iops"] > 3 * figures[4096, 0.0]["iops"]
    elif test == "tp":
        for size in (1 << 20, 1 << 17):
            read, write = figures[size, 100.0]["bytes_per_s"], figures[size, 0.0]["bytes_per_s"]
            assert 600e6 > read > write > 50e6
    else:
        for result in figures.values():
            assert result["latency_max_ns"] >= result["latency_mean_ns"] > 20_000
        # With one outstanding I/O, the mean latency is the inverse of the rate.
        read = figures[4096, 100.0]
        assert read["iops"] * read["latency_mean_ns"] == pytest.approx(1e9, rel=0.02)
        (histogram,) = summarise(tmp_path / "r")["histograms"]
        assert histogram["count"] > 1000
