"""WSAT on the simulated drive, end to end: ends, resume, report, identical bytes twice."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.processes import WAIT_LIMIT_S
from tests.support.small_drive import write_small_drive

ROOT = Path(__file__).resolve().parents[3]
OPTIONS = ["--end", "capacity", "--sample-seconds", "2", "--round-minutes", "0.2", "--json"]


def command(device: Path, output: Path, *more: str) -> list[str]:
    words = [sys.executable, "-m", "writecliff", "test", "wsat", "--on", f"sim:{device}"]
    return [*words, "--output", str(output), *OPTIONS, *more]


def run(words: list[str]) -> dict[str, object]:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=WAIT_LIMIT_S)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def rounds(folder: Path) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = pq.read_table(folder / "rounds.parquet").to_pylist()
    return rows


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("wsat")
    device = write_small_drive(folder)
    run(command(device, folder / "whole"))
    return device, folder / "whole"


def test_the_cliff_is_where_the_spare_space_ends(whole: tuple[Path, Path]) -> None:
    rows = rounds(whole[1])
    fresh, last = rows[0], rows[-1]
    waf = [row["waf"] for row in rows]
    assert waf[0] == pytest.approx(1.0)
    # At 14.6 % over-provisioning, the write amplification reaches 4.1 eventually in theory, and
    # most of that value after four fills.
    assert 3.0 < waf[-1] < 4.3
    first_moved = next(row for row in rows if row["waf"] > 1.01)
    assert 1.0 < first_moved["drive_fills"] < 1.35
    assert last["drive_fills"] == pytest.approx(4.0, abs=0.2)
    assert fresh["iops"] > 2 * last["iops"]


def test_the_report_stands_by_itself(whole: tuple[Path, Path]) -> None:
    html = (whole[1] / "report.html").read_text()
    assert "<script src" not in html
    assert re.findall(r'(?:src|href)="(?!data:|#)[^"]*', html) == []
    assert html.count("<svg") >= 8


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_run_resumes_to_the_same_tables(
    whole: tuple[Path, Path], tmp_path: Path, how: signal.Signals
) -> None:
    words = command(whole[0], tmp_path / "cut")
    words[1:3] = [str(ROOT / "tests/support/stop_itself.py"), str(int(how)), "step:12"]
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    cut = subprocess.run(
        words, env=environment, capture_output=True, check=False, timeout=WAIT_LIMIT_S
    )
    assert cut.returncode == (-9 if how == signal.SIGKILL else 130), cut.stderr
    manifest = json.loads((tmp_path / "cut" / "manifest.json").read_text())
    assert manifest["status"] != "complete"

    words = [sys.executable, "-m", "writecliff", "test", "wsat", "--on", f"sim:{whole[0]}"]
    run([*words, "--resume", str(tmp_path / "cut"), "--json"])
    for table in ("rounds", "intervals", "histograms"):
        first = pq.read_table(whole[1] / f"{table}.parquet")
        assert first.equals(pq.read_table(tmp_path / "cut" / f"{table}.parquet")), table
