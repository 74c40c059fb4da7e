"""Drives that vanish during a test, and an unusable fio.

In the first case, all complete steps survive; in the second, the error appears before any write.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.processes import WAIT_LIMIT_S
from writecliff.engines.base import Progress
from writecliff.engines.fio import FioEngine
from writecliff.errors import EngineError
from writecliff.store.rundir import RunDirectory
from writecliff.workload.model import Job, Workload

pytest.importorskip("writecliff._native", reason="the native module is not built")

SECOND = 1_000_000_000
ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("no_fio_left")


def drop_out(loop: str, image: Path) -> None:
    """Remove the medium of a loop device: its node remains, without capacity."""
    size = Path("/sys/block", Path(loop).name, "size")
    while size.read_text() != "0\n":  # Writes in flight may extend the file again.
        os.truncate(image, 0)
        subprocess.run(["losetup", "--set-capacity", loop], check=True)


def test_the_engine_says_that_it_is_gone(loop: str, image: Path) -> None:
    dropped: list[int] = []

    def drop(progress: Progress) -> None:
        if progress.elapsed_ns > SECOND // 2 and not dropped:
            dropped.append(progress.ios)
            drop_out(loop, image)

    job = Job(duration_ns=20 * SECOND)
    with FioEngine.open_device(loop, destroy_serial=loop) as engine:
        with pytest.raises(
            EngineError, match=f"{loop}: the drive vanished: its capacity is now 0"
        ) as caught:
            engine.run(Workload("w", (job,), interval_ns=SECOND // 5), drop)
        assert "; write error at byte " in str(caught.value)
        assert "\n" not in str(caught.value)
        partial = caught.value.partial
        assert partial is not None
        assert partial.total()[0] >= dropped[0] > 0
        size = image.stat().st_size
        with pytest.raises(EngineError, match="the drive vanished"):
            engine.run(Workload("again", (job,)))
        assert image.stat().st_size == size  # The drive is rejected before any write.


def test_a_run_keeps_its_whole_steps(loop: str, image: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ["test", "wsat", "--on", loop, "--destroy", loop, "--output", str(run)]
    words += ["--end", "time", "--time-hours", "0.01", "--sample-seconds", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "writecliff", *words, "--round-minutes", "0.05"],
        env=dict(os.environ, PYTHONPATH=str(ROOT / "python")),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + WAIT_LIMIT_S
    while not (run / "rounds" / "000002.parquet").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    drop_out(loop, image)
    _, output = process.communicate(timeout=WAIT_LIMIT_S)
    assert process.returncode == 1
    # Writes in flight extend the image again, so the drive may appear to have shrunk at first.
    causes = ("vanished: its capacity is now 0", "changed its size: ")
    assert any(f"error: {loop}: the drive {cause}" in output for cause in causes), output
    assert re.search("hint: [0-9]+ complete step", output)
    assert "Traceback" not in output
    with RunDirectory.open(run) as stored:
        assert stored.status == "failed"
        assert stored.rounds().num_rows >= 2


@pytest.mark.parametrize(
    ("version", "message"),
    [("", "fio is not installed"), ("fio-3.16", "fio-3.16 is too old"), ("sh 5", "not fio")],
)
def test_an_unusable_fio_is_reported_first(
    loop: str, tmp_path: Path, version: str, message: str
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    if version:
        (tools / "fio").write_text(f"#!/bin/sh\necho {version}\n")
        (tools / "fio").chmod(0o755)
    run = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-m", "writecliff", "test", "wsat", "--on", loop]
        + ["--destroy", loop, "--output", str(run)],
        env=dict(os.environ, PYTHONPATH=str(ROOT / "python"), PATH=f"{tools}"),
        capture_output=True,
        text=True,
        timeout=WAIT_LIMIT_S,
        check=False,
    )
    assert done.returncode == 1
    assert "error: " in done.stderr
    assert message in done.stderr
    assert "hint: install fio" in done.stderr
    assert not run.exists()
    assert not any(Path(loop).read_bytes())
