"""Bursts and pauses: properties of each burst of a workload, and series with pauses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.fio_target import DISK, FIO
from writecliff.engines.base import Operation
from writecliff.engines.blockdev.machine import Sample
from writecliff.engines.blockdev.vitals import Vitals
from writecliff.engines.disturbance import Reading
from writecliff.engines.fio import bursts
from writecliff.engines.fio.bursts import burst_of, run_bursts
from writecliff.engines.fio.command import plan
from writecliff.engines.fio.measured import Measured
from writecliff.engines.fio.parse import OperationStats
from writecliff.errors import EngineError
from writecliff.workload.model import Job, Workload

MS = 1_000_000
S = 1000 * MS
HIR = Job(name="hir", burst_ns=5 * S, pause_ns=50 * S, duration_ns=110 * S)
WRITE: Operation = "write"
QUIET = Reading(Sample(), Vitals())


def test_a_burst_is_a_load_of_its_length_with_its_own_seed() -> None:
    first, second = burst_of(Workload("w", (HIR,))), burst_of(Workload("w", (HIR,)), 1)
    assert first is not None
    assert second is not None
    assert first.jobs == (Job(name="hir", duration_ns=5 * S),)
    assert (second.jobs, second.seed == first.seed) == (first.jobs, False)
    assert "runtime=5000000us" in plan(first, DISK, FIO).text
    assert burst_of(Workload("w", (HIR,)), 2) is None


def test_the_last_burst_ends_with_the_workload() -> None:
    short = burst_of(Workload("w", (replace(HIR, duration_ns=57 * S),)), 1)
    assert short is not None
    assert short.jobs[0].duration_ns == 2 * S


@pytest.mark.parametrize(
    ("ends", "done", "left"),
    [
        # The I/Os are whole cycles of the threads.
        ({"ios": 100, "threads": 4}, (30, 0), {"ios": 72}),
        ({"ios": 100}, (100, 0), None),
        ({"volume_bytes": 1 << 20}, (3, 12288), {"volume_bytes": (1 << 20) - 12288}),
        ({"volume_bytes": 1 << 20}, (256, 1 << 20), None),
    ],
)
def test_ends_by_count_are_over_all_bursts(
    ends: dict[str, Any], done: tuple[int, int], left: dict[str, Any] | None
) -> None:
    job = replace(HIR, duration_ns=None, **ends)
    burst = burst_of(Workload("w", (job,)), 1, done)
    if left is None:
        assert burst is None
    else:
        assert burst is not None
        assert {name: getattr(burst.jobs[0], name) for name in left} == left


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ((replace(HIR, burst_ns=0),), "burst_ns is 0, but burst_ns and pause_ns must both"),
        ((replace(HIR, pause_ns=0),), "pause_ns is 0, but burst_ns and pause_ns must both"),
        ((replace(HIR, pause_ns=100 * MS),), "starting fio for each burst"),
        ((replace(HIR, rate_iops=10),), "a rate cannot be combined with bursts"),
        ((replace(HIR, think_ns=1000),), "cannot be combined"),
        ((HIR, replace(HIR, burst_ns=6 * S)), "differ in pauses or stop conditions"),
        ((HIR, Job(duration_ns=S)), "burst_ns and pause_ns must both"),
        ((HIR, replace(HIR, ios=5)), "differ in pauses or stop conditions"),
    ],
)
def test_what_cannot_be_run_in_bursts_is_refused(jobs: tuple[Job, ...], message: str) -> None:
    with pytest.raises(EngineError, match=message):
        burst_of(Workload("w", jobs))


def test_the_series_has_bursts_and_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0]
    monkeypatch.setattr(bursts.time, "monotonic_ns", lambda: clock[0])
    monkeypatch.setattr(bursts.time, "sleep", lambda s: clock.__setitem__(0, clock[0] + int(s * S)))
    job = replace(HIR, burst_ns=S, pause_ns=2 * S, duration_ns=6 * S)
    workload = Workload("w", (job,))
    step = Measured(workload, plan(workload, DISK, FIO), 0, QUIET)
    late_ns = 0

    def run_burst(burst: Workload) -> None:
        nonlocal late_ns
        clock[0] += (burst.jobs[0].duration_ns or 0) + late_ns
        for runtime_ms, ios in ((500, 40), (1000, 100)):
            report = OperationStats(ios, ios * 4096, runtime_ms, 1, 1, 1.0, 0.0, {1: ios})
            step.series.add({(0, WRITE): report})

    run_bursts(step, run_burst, lambda: None)
    columns = step.columns()
    assert (columns["end_ns"] // MS).tolist() == [500, 1000, 3000, 3500, 4000, 6000]
    assert columns["ios"].tolist() == [40, 60, 0, 40, 60, 0]
    assert np.isnan(columns["latency_mean_ns"][2])
    assert (step.elapsed_ms, step.done()) == (6000, (200, 200 * 4096))
    assert step.notes == []

    late_ns = 5 * S // 2  # fio takes longer to end than the pause lasts.
    run_bursts(Measured(workload, step.plan, 0, QUIET), run_burst, lambda: None)
    late = Measured(workload, step.plan, 0, QUIET)
    step = late
    run_bursts(late, run_burst, lambda: None)
    assert late.notes == [
        "a pause was 0.50 s longer than 2 s, because the machine started fio late"
    ]
