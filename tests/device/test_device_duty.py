"""Bursts and pauses on a loop device, which the series must show with threads and queue depth."""

from __future__ import annotations

import numpy as np
import pytest

from writecliff.engines.base import StepResult
from writecliff.engines.fio import FioEngine
from writecliff.workload.model import Job, Workload

pytest.importorskip("writecliff._native", reason="the native module is not built")

MS = 1_000_000
BURST_MS, PAUSE_MS, CYCLES = 1000, 1000, 2
LATE_MS = 300
TRIES = 4  # On a busy machine, fio may be late.
pytestmark = [pytest.mark.usefixtures("no_fio_left"), pytest.mark.measures]


def stretches(result: StepResult) -> list[tuple[bool, float]]:
    """Return consecutive phases of rows with or without I/Os, as (active, duration in ms)."""
    phases: list[tuple[bool, float]] = []
    begin = 0
    for end in np.unique(result.intervals["end_ns"]).tolist():
        at = result.intervals["end_ns"] == end
        # The last I/Os of a burst may complete at the start of the next row.
        active = bool(result.intervals["ios"][at].sum() > 20)
        width = (end - begin) / MS
        if phases and phases[-1][0] == active:
            phases[-1] = (active, phases[-1][1] + width)
        else:
            phases.append((active, width))
        begin = end
    return phases


@pytest.mark.parametrize(("threads", "depth"), [(1, 1), (4, 16)])
def test_bursts_and_pauses_come_out_right(loop: str, threads: int, depth: int) -> None:
    job = Job(
        name="hir",
        # Writes to a loop device occasionally wait for the underlying disk, so the test uses reads.
        read_pct=100,
        threads=threads,
        queue_depth=depth,
        burst_ns=BURST_MS * MS,
        pause_ns=PAUSE_MS * MS,
        duration_ns=CYCLES * (BURST_MS + PAUSE_MS) * MS,
    )
    for remaining in reversed(range(TRIES)):
        with FioEngine.open_device(loop, destroy_serial=None) as engine:
            result = engine.run(Workload("hir", (job,), interval_ns=100 * MS))
        check_rows(result)
        try:
            check_times(result)
            return
        except AssertionError:
            if not remaining:
                raise


def check_rows(result: StepResult) -> None:
    """Check the properties that are independent of the machine's load."""
    columns = result.intervals
    assert columns["ios"].sum() == result.total()[0]
    assert (np.diff(np.unique(columns["end_ns"])) > 0).all()
    keys = list(zip(columns["end_ns"], columns["operation"], strict=True))
    assert len(set(keys)) == len(keys)
    idle = columns["ios"] == 0
    assert idle.any()
    assert np.isnan(columns["latency_mean_ns"][idle]).all()


def check_times(result: StepResult) -> None:
    phases = stretches(result)
    bursts = [width for active, width in phases if active]
    pauses = [width for active, width in phases if not active]
    assert bursts == pytest.approx([BURST_MS] * CYCLES, abs=LATE_MS)
    assert pauses == pytest.approx([PAUSE_MS] * CYCLES, abs=LATE_MS)
