"""What the drive sees of the cut between two steps of one load: nothing.

The kernel's own trace says when requests were issued. The time around each cut is compared with as
long a time in the middle of each step of the same run, because a machine with other work to do has
gaps of its own.
"""

from __future__ import annotations

import itertools
import statistics
import time
from pathlib import Path

import pytest

from tests.support.block_trace import issue_times
from writecliff.engines.fio import FioEngine
from writecliff.workload.model import Job, Workload

pytest.importorskip("writecliff._native", reason="the native module is not built")

pytestmark = pytest.mark.measures

SECOND = 1_000_000_000
STEPS = 8
WINDOW_S = 0.1
GAP_MS = 2.0  # of a drive that is alone on its machine
LOAD = Job(name="load", threads=2, queue_depth=4, rate_iops=4000, duration_ns=SECOND // 2)


def gaps_ms(loop: str, folder: Path, *, keep_running: bool) -> tuple[list[float], list[float]]:
    """The longest gap around each cut, and in the middle of each step but the first."""
    cuts = []
    with FioEngine.open_device(loop, destroy_serial=loop) as engine:
        with issue_times(loop, folder) as issued:
            for number in range(STEPS):
                engine.run(Workload(f"{number}", (LOAD,)), keep_running=keep_running)
                cuts.append(time.monotonic())
        engine.stop_load()
    inner = cuts[:-1]
    middles = [(a + b) / 2 for a, b in itertools.pairwise(inner)]
    around, within = (
        [issued.longest_gap_ms(at - WINDOW_S, at + WINDOW_S) for at in points]
        for points in (inner, middles)
    )
    print(f"keep_running={keep_running}: at cuts {around}, within steps {within}")
    return around, within


def test_the_drive_does_not_notice_a_cut(loop: str, tmp_path: Path) -> None:
    try:
        around, within = gaps_ms(loop, tmp_path, keep_running=True)
    except OSError as error:
        pytest.skip(f"no trace of block requests: {error}")
    assert statistics.median(around) <= 2 * statistics.median(within) + GAP_MS


def test_a_process_for_each_step_is_noticed(loop: str, tmp_path: Path) -> None:
    """The measurement finds the gaps that there would be."""
    try:
        around, _ = gaps_ms(loop, tmp_path, keep_running=False)
    except OSError as error:
        pytest.skip(f"no trace of block requests: {error}")
    assert min(around) > 50
