"""Test that the drive sees no gap at the cut between two steps of the same load.

Issue times are taken from the kernel's trace. The test compares the longest gap around each cut
with the longest gap in an equally long window in the middle of each step of the same run. A busy
machine causes additional gaps, and ACT's reads arrive in bursts. ACT's three jobs repeat every
PATTERN_S, and a window covers two patterns, so without a cut, the longest gap does not depend on
the window's position. Other load on the machine only lengthens some gaps, so the test compares
lower quartiles. The drive is in memory and does not cause pauses.
"""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.block_trace import issue_times
from writecliff.engines.fio import FioEngine
from writecliff.workload.model import KIB, BlockSize, Job, Workload

pytest.importorskip("writecliff._native", reason="the native module is not built")

pytestmark = pytest.mark.measures

STEPS = 12
STEP_NS = 480_000_000
WINDOW_S = 0.05
PATTERN_S = 0.04  # Two bursts of 40 reads, one large read and one large write.
GAP_MS = 5.0  # With a process per step, gaps are 50 to 140 ms.


def large(name: str, read_pct: float) -> Job:
    block = (BlockSize(128 * KIB),)
    return Job(
        name=name,
        read_pct=read_pct,
        block_sizes=block,
        rate_iops=1 / PATTERN_S,
        duration_ns=STEP_NS,
    )


WRITES = Job(name="writes", threads=2, queue_depth=4, rate_iops=4000, duration_ns=STEP_NS)
READS = Job(
    name="reads", read_pct=100, threads=40, rate_iops=2 * 40 / PATTERN_S, duration_ns=STEP_NS
)
LOADS = {"WSAT": (WRITES,), "ACT": (READS, large("large reads", 100), large("large writes", 0))}


@pytest.fixture
def drive(attach: Callable[[Path], str]) -> Iterator[str]:
    image = Path(f"/dev/shm/writecliff-gaps-{os.getpid()}")
    with image.open("wb") as file:
        file.truncate(128 * KIB * KIB)
    yield attach(image)
    image.unlink()


def gaps_ms(
    drive: str,
    folder: Path,
    jobs: tuple[Job, ...],
    *,
    steps: int = STEPS,
    keep_running: bool = True,
) -> tuple[list[float], list[float]]:
    """Return the longest gaps around each cut and in the middle of each step except the first."""
    cuts = []
    with FioEngine.open_device(drive, destroy_serial=drive) as engine:
        try:
            with issue_times(drive, folder) as issued:
                for number in range(steps):
                    engine.run(Workload(f"{number}", jobs), keep_running=keep_running)
                    cuts.append(time.monotonic())
        except OSError as error:
            pytest.skip(f"no trace of block requests: {error}")
        engine.stop_load()
    inner = cuts[:-1]
    middles = [(a + b) / 2 for a, b in itertools.pairwise(inner)]
    around, within = (
        [issued.longest_gap_ms(at - WINDOW_S, at + WINDOW_S) for at in points]
        for points in (inner, middles)
    )
    print(f"keep_running={keep_running}: at cuts {around}, within steps {within}")
    return around, within


def lower_quartile(gaps: list[float]) -> float:
    return statistics.quantiles(gaps, n=4)[0]


@pytest.mark.figure(gaps="{load}")
@pytest.mark.parametrize("load", LOADS)
def test_a_cut_adds_no_gap(load: str, drive: str, tmp_path: Path) -> None:
    around, within = gaps_ms(drive, tmp_path, LOADS[load])
    assert lower_quartile(around) <= lower_quartile(within) + GAP_MS


def test_a_process_for_each_step_is_noticed(drive: str, tmp_path: Path) -> None:
    """Check that the measurement detects gaps when each step has its own process."""
    around, within = gaps_ms(drive, tmp_path, (WRITES,), steps=4, keep_running=False)
    assert min(around) > min(within) + GAP_MS
