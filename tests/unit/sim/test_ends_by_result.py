"""Jobs that end by their results, and jobs that repeat a log, on a simulated drive."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.small_drive import write_small_drive
from writecliff import Job, SimEngine, Workload
from writecliff.workload.model import IoLog, LatencyTarget, LeastRate, SteadyEnd

MS = 1_000_000


@pytest.fixture
def engine(tmp_path: Path) -> SimEngine:
    engine = SimEngine(str(write_small_drive(tmp_path)))
    engine.precondition(Workload("fill", (Job(volume_bytes=engine.identify().capacity_bytes),)))
    return engine


def load(job: Job, interval_ns: int = 10 * MS) -> Workload:
    return Workload("load", (job,), interval_ns=interval_ns)


def test_a_job_ends_in_steady_state(engine: SimEngine) -> None:
    steady = SteadyEnd(metric="iops", limit=10.0, window_ns=100 * MS, check_ns=20 * MS)
    job = Job(read_pct=100.0, queue_depth=4, duration_ns=2000 * MS, until_steady=steady)
    (result,) = engine.run(load(job)).jobs
    # Reads on an idle drive are steady at once, so the first whole window is steady.
    assert result.ended_by == "steady_state"
    assert 100 * MS <= result.elapsed_ns < 115 * MS
    tight = replace(job, until_steady=replace(steady, limit=1e-6), duration_ns=200 * MS)
    (result,) = engine.run(load(tight)).jobs
    assert result.ended_by is None and result.elapsed_ns >= 200 * MS


def test_a_search_finds_the_depth_that_meets_the_target(engine: SimEngine) -> None:
    target = LatencyTarget(latency_ns=400_000, percentile=90.0, window_ns=20 * MS)
    job = Job(read_pct=100.0, queue_depth=64, duration_ns=5000 * MS, latency_target=target)
    (job_result,) = engine.run(load(job, 5 * MS)).jobs
    assert job_result.ended_by == "latency_target" and job_result.queue_depth is not None
    assert 1 < job_result.queue_depth < 64

    def p90(depth: int) -> float:
        plain = Job(read_pct=100.0, queue_depth=depth, duration_ns=100 * MS)
        (result,) = engine.run(load(plain)).jobs
        return float(result.operations["read"].service.quantile(0.9).value_ns or 0)

    assert (
        p90(job_result.queue_depth)
        <= 1.05 * target.latency_ns
        < 1.25 * p90(2 * job_result.queue_depth)
    )
    assert 20 * MS <= job_result.elapsed_ns < 22 * MS  # The time covers only the last window.


def test_all_jobs_end_with_one(engine: SimEngine) -> None:
    slow = Job(name="slow", rate_iops=2.0, duration_ns=60_000 * MS)
    busy = Job(name="busy", read_pct=100.0, queue_depth=4, duration_ns=60_000 * MS)
    for first in (
        Job(name="first", read_pct=100.0, ios=500, ends_all=True),
        Job(name="first", read_pct=100.0, duration_ns=50 * MS, ends_all=True),
    ):
        result = engine.run(Workload("load", (slow, busy, first)))
        assert result.elapsed_ns < 200 * MS
        assert [job.elapsed_ns <= result.elapsed_ns for job in result.jobs] == [True] * 3
    filled = engine.precondition(
        Workload("w", (Job(volume_bytes=10**9), Job(ios=100, ends_all=True)))
    )
    assert filled.counters_after.host_write_bytes - filled.counters_before.host_write_bytes < 10**8


def test_a_job_below_its_least_rate_ends_with_a_warning(engine: SimEngine) -> None:
    least = LeastRate(operation=0, iops=500.0, cycle_ns=100 * MS)
    job = Job(read_pct=100.0, rate_iops=100.0, duration_ns=5000 * MS, least_rates=(least,))
    step = engine.run(load(job))
    assert step.jobs[0].ended_by == "least_rate"
    assert 2000 * MS < step.jobs[0].elapsed_ns < 2300 * MS  # The load needs two seconds to settle.
    assert any("minimum rate" in warning for warning in step.warnings)
    enough = replace(job, rate_iops=600.0, duration_ns=2500 * MS)
    assert engine.run(load(enough)).jobs[0].ended_by is None


def test_a_log_is_repeated_at_its_times(engine: SimEngine) -> None:
    log = IoLog("wrtf" * 50, (0, 0, 8192, 0) * 50, (4096, 4096, 8192, 0) * 50,
                tuple(range(0, 200 * MS, MS)))  # fmt: skip
    job = Job(log=log, queue_depth=4, ios=150)
    (result,) = engine.run(load(job)).jobs
    assert {name: done.ios for name, done in result.operations.items()} == dict.fromkeys(
        ("read", "write", "trim"), 50
    )
    assert 198 * MS <= result.elapsed_ns < 200 * MS
    assert result.operations["trim"].bytes == 50 * 8192
    fast = engine.run(load(replace(job, log=replace(log, times_ns=())))).jobs[0]
    assert fast.elapsed_ns < 100 * MS


def test_the_same_seed_gives_the_same_bytes_for_every_course(tmp_path: Path) -> None:
    from writecliff.workload.model import Addresses, BlockSize, OwnBlocks

    jobs = (
        Job(name="pareto", addresses=Addresses("pareto", hot_pct=20.0), run_ios=4, ios=300),
        Job(name="normal", addresses=Addresses("normal", deviation_pct=10.0), ios=300),
        Job(name="back", pattern="sequential", hole_bytes=-8192, files=2, ios=300),
        Job(name="own", read_pct=50.0, writes=OwnBlocks((BlockSize(16384),)), ios=300),
        Job(name="trims", trim_first=True, ios=300),
        Job(name="streams", streams=(0, 1), stream_order="random", ios=300),
    )
    small = write_small_drive(tmp_path)
    runs = [SimEngine(str(small)).run(Workload("all", jobs, seed=seed)) for seed in (1, 1, 2)]
    figures = [
        [
            (done.ios, done.service.to_bytes())
            for job in run.jobs
            for done in job.operations.values()
        ]
        for run in runs
    ]
    assert figures[0] == figures[1] != figures[2]
    separate = {job.name: job for job in runs[0].jobs}["own"].operations
    assert separate["write"].bytes == separate["write"].ios * 16384
    assert separate["read"].bytes == separate["read"].ios * 4096
