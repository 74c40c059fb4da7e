"""WSAT on a loop device, from the command line: stored figures compared with fio's own output."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support.processes import WAIT_LIMIT_S, alive, children, wait_for
from writecliff.store.rundir import RunDirectory

ROOT = Path(__file__).resolve().parents[2]
STEPS = 3
# Options for tests that check only the list of steps.
LIGHT = ["--threads", "1", "--queue-depth", "1"]


def for_steps(steps: int) -> list[str]:
    """Return the options of a test with `steps` one-second steps, three per round."""
    hours = str(0.96 * steps / 3600)
    lengths = ["--sample-seconds", "1", "--round-minutes", "0.05"]
    return ["--end", "time", "--time-hours", hours, *lengths]


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "writecliff", "test", "wsat", *words],
        env=dict(os.environ, PYTHONPATH=str(ROOT / "python")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def stored_raw(run: Path, step: int) -> dict[str, Any]:
    """Return fio's cumulative figures at the end of a step; all zero before the first step."""
    if step == 0:
        return {"total_ios": 0, "io_bytes": 0, "runtime": 0, "lat_ns": {"bins": {}}}
    document = json.loads(gzip.decompress((run / "raw" / f"{step:06d}.json.gz").read_bytes()))
    (job,) = document["fio"]["jobs"]
    return job["write"]


def added(before: dict[str, Any], after: dict[str, Any]) -> dict[int, int]:
    """Return the bins that a step added."""
    old, new = before["lat_ns"]["bins"], after["lat_ns"]["bins"]
    return {int(key): count - old.get(key, 0) for key, count in new.items()}


def fios_percentile(bins: dict[int, int], share: float) -> int:
    """Return the nearest-rank percentile over fio's bins, which are named by their middle."""
    rank, seen = share * sum(bins.values()), 0
    for value, count in sorted(bins.items()):
        seen += count
        if seen >= rank:
            return value
    raise AssertionError(f"no bin contains percentile {share:%}")


def test_stored_steps_are_fios_figures(loop: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start(
        "--on", loop, "--destroy", loop, "--output", str(run), "--json", *for_steps(STEPS)
    )
    out, err = process.communicate(timeout=WAIT_LIMIT_S)
    assert process.returncode == 0, err
    outcome = json.loads(out)
    rows = pq.read_table(run / "rounds.parquet").to_pylist()
    assert len(rows) == outcome["steps"] == STEPS
    histograms = RunDirectory.open(run).histograms_by_step()
    for row in rows:
        before, write = stored_raw(run, row["seq"] - 1), stored_raw(run, row["seq"])
        bins = added(before, write)
        assert row["ios"] == sum(bins.values()) == histograms[row["seq"]].count
        assert row["bytes"] == 4096 * row["ios"]
        # fio does not update all its counters simultaneously.
        ios = write["total_ios"] - before["total_ios"]
        assert row["ios"] == pytest.approx(ios, rel=0.02)
        assert row["elapsed_ns"] == (write["runtime"] - before["runtime"]) * 10**6
        assert row["latency_max_ns"] <= write["lat_ns"]["max"]
        middle = fios_percentile(bins, 0.9999)
        # writecliff reports the upper edge of the bin, but fio reports its midpoint. A bin is 1/64
        # of its lower edge wide. In the bin with the maximum, writecliff reports the maximum, which
        # may lie below fio's midpoint.
        least = min(middle * (1 - 1e-9), row["latency_max_ns"])
        assert least <= row["latency_p9999_ns"] <= middle * (1 + 1 / 64)


@pytest.mark.parametrize("victim", ["writecliff", "fio"])
def test_a_kill_loses_the_step_in_progress_only(loop: str, tmp_path: Path, victim: str) -> None:
    # The run must not end before the kill, even on a busy machine.
    run, steps = tmp_path / "run", 7
    process = start(
        "--on", loop, "--destroy", loop, "--output", str(run), *for_steps(steps), *LIGHT
    )
    fios: list[int] = []

    def writing() -> bool:
        fios[:] = children(process.pid, b"workload.fio")
        return bool(fios) and (run / "rounds" / "000001.parquet").exists()

    assert wait_for(writing)
    os.kill(process.pid if victim == "writecliff" else fios[0], signal.SIGKILL)
    _, err = process.communicate(timeout=WAIT_LIMIT_S)
    if victim == "fio":
        assert process.returncode == 1
        assert re.search(r"error: fio failed: killed by SIGKILL\nhint: [0-9]+ complete step", err)
        assert f"--resume {run} --destroy {loop}`" in err
    assert wait_for(lambda: not any(map(alive, fios)), 30)
    again = start("--resume", str(run), "--destroy", loop)
    _, err = again.communicate(timeout=WAIT_LIMIT_S)
    assert again.returncode == 0, err
    with RunDirectory.open(run) as finished:
        assert finished.status == "complete"
        assert finished.rounds().num_rows == steps
