"""Termination of a sweep on a loop device: it stops writing as soon as its parent is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import WAIT_LIMIT_S, alive, children, wait_for
from writecliff.store.manifest import MANIFEST_NAME
from writecliff.store.rundir import RunDirectory

pytest.importorskip("writecliff._native", reason="the native module is not built")

ROOT = Path(__file__).resolve().parents[2]
# The step takes a minute. A member that misses its parent's death would write for that long.
LONG = ["--set", "sample_seconds=60", "--set", "round_minutes=1"]


def test_kill_9_of_a_sweep_ends_its_member_and_its_fio(loop: str, tmp_path: Path) -> None:
    words = ["sweep", "--on", loop, "--destroy", loop, "--vary", "queue_depth=4,32", *LONG]
    sweep = subprocess.Popen(
        [sys.executable, "-m", "writecliff", *words, "--output", str(tmp_path / "s")],
        env=dict(os.environ, PYTHONPATH=str(ROOT / "python")),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    members: list[int] = []
    fios: list[int] = []

    run = tmp_path / "s" / "queue-depth-4"

    def writing() -> bool:
        if not (run / MANIFEST_NAME).exists():  # Earlier fio processes only measure reads.
            return False
        members[:] = children(sweep.pid, b"writecliff.suite.member")
        fios[:] = [fio for member in members for fio in children(member, b"workload.fio")]
        return bool(fios)

    try:
        assert wait_for(writing)
        sweep.kill()
        sweep.wait(WAIT_LIMIT_S)
        assert wait_for(lambda: not any(map(alive, fios)), 30), "fio keeps writing"
        assert wait_for(lambda: not any(map(alive, members)), 30)
    finally:
        for process in filter(alive, [*members, *fios]):
            os.kill(process, signal.SIGKILL)
    assert RunDirectory.open(run).status == "interrupted"
