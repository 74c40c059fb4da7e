"""Division of rates by the time when I/Os ran: outstanding I/Os = IOPS x mean latency."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.small_drive import write_small_drive
from writecliff import Job, SimEngine, Workload
from writecliff.engines.base import JobResult, StepResult
from writecliff.workload.fiojob import read_fio_job
from writecliff.workload.model import Addresses, LatencyTarget, SteadyEnd

MS = 1_000_000
WORKLOADS = int(os.environ.get("WRITECLIFF_CLOSED_WORKLOADS", "60"))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> SimEngine:
    engine = SimEngine(str(write_small_drive(tmp_path_factory.mktemp("drive"))))
    engine.precondition(Workload("fill", (Job(volume_bytes=engine.identify().capacity_bytes),)))
    return engine


def _outstanding(result: JobResult) -> float:
    """Return a job's mean number of outstanding I/Os by Little's law."""
    latency_ns = sum(
        done.ios * (done.service.mean_ns or 0.0) for done in result.operations.values()
    )
    return latency_ns / result.elapsed_ns


def _job(draw: random.Random, name: str) -> Job:
    """Return a closed-loop job that runs long enough for its last I/Os to weigh less than 1 %."""
    job = Job(
        name=name,
        pattern=draw.choice(("random", "sequential")),
        read_pct=draw.choice((100.0, 100.0, 70.0, 0.0)),
        block_size=draw.choice((4096, 4096, 8192, 16384)),
        threads=draw.choice((1, 1, 2, 3)),
        queue_depth=draw.choice((1, 2, 4, 8, 16)),
        start_delay_ns=draw.choice((0, 0, 33 * MS, 110 * MS)),
        duration_ns=draw.choice((1000, 2000)) * MS,
    )
    kind = draw.choice(("time", "time", "pauses", "steady", "target"))
    if kind == "pauses":
        # The job ends by I/O count, so all pauses are complete.
        job = replace(job, queue_depth=1, threads=1, think_ns=2 * MS, duration_ns=None,
                      ios=draw.randrange(20, 200), think_after_ios=draw.choice((1, 5, 20)))  # fmt: skip
    if kind == "steady":
        steady = SteadyEnd(metric="iops", limit=40.0, window_ns=1000 * MS, check_ns=50 * MS)
        job = replace(job, until_steady=steady, duration_ns=2000 * MS)
    if kind == "target":
        target = LatencyTarget(latency_ns=300_000, percentile=90.0, window_ns=400 * MS)
        job = replace(job, queue_depth=32, read_pct=100.0, block_size=4096, threads=1,
                      latency_target=target, duration_ns=9000 * MS)  # fmt: skip
    return job


def _expected(job: Job, result: JobResult) -> float:
    depth = (result.queue_depth or job.queue_depth) * job.threads
    if not job.think_ns:
        return depth
    ios = sum(done.ios for done in result.operations.values())
    idle_ns = ios // job.think_after_ios * job.think_ns
    return 1 - idle_ns / result.elapsed_ns


def test_iops_times_mean_latency_is_the_mean_of_outstanding_ios(engine: SimEngine) -> None:
    for seed in range(WORKLOADS):
        draw = random.Random(seed)
        count = draw.choice((1, 1, 2, 3))
        jobs = tuple(_job(draw, f"j{index}") for index in range(count))
        results = engine.run(Workload("w", jobs, seed=seed, interval_ns=10 * MS)).jobs
        for job, result in zip(jobs, results, strict=True):
            if job.latency_target is not None and result.ended_by != "latency_target":
                continue  # The results of this job come from the search, at several depths.
            assert _outstanding(result) == pytest.approx(_expected(job, result), rel=0.01), job


def test_a_latency_target_s_rate_is_that_of_its_last_window(engine: SimEngine) -> None:
    target = LatencyTarget(latency_ns=400_000, percentile=90.0, window_ns=100 * MS)
    job = Job(read_pct=100.0, queue_depth=64, duration_ns=5000 * MS, latency_target=target)
    step = engine.run(Workload("load", (job,), interval_ns=5 * MS))
    (job_result,) = step.jobs
    plain = Job(read_pct=100.0, queue_depth=job_result.queue_depth or 0, duration_ns=200 * MS)
    expected = engine.run(Workload("plain", (plain,))).iops()
    assert 100 * MS <= job_result.elapsed_ns < 102 * MS
    assert job_result.began_ns + job_result.elapsed_ns == step.elapsed_ns
    assert step.iops() == pytest.approx(expected, rel=0.1)
    assert _iops(step, 0) == step.iops()


def test_a_start_delay_is_no_running_time(engine: SimEngine) -> None:
    late = Job(name="late", read_pct=100.0, rate_iops=1000.0, start_delay_ns=400 * MS,
               duration_ns=100 * MS)  # fmt: skip
    step = engine.run(Workload("w", (late,)))
    assert (step.iops(), step.elapsed_ns) == (pytest.approx(1000), 500 * MS)
    early = replace(late, name="early", start_delay_ns=0)
    both = engine.run(Workload("w", (late, early)))
    assert (_iops(both, 0), _iops(both, 1)) == (pytest.approx(1000), pytest.approx(1000))
    assert both.iops() == pytest.approx(2 * 100 / 0.5)  # The rate covers the time of both jobs.


def _iops(step: StepResult, job: int) -> float:
    result = step.jobs[job]
    return sum(done.ios for done in result.operations.values()) / (result.elapsed_ns / 1e9)


@pytest.mark.parametrize(
    ("options", "ios", "began_ms", "length_ms"),
    [  # Values measured with fio 3.33 and 3.41. The I/O at the end of the ramp belongs to the ramp.
        ("rate_iops=100\nsize=1m", 256 - 51, 500, 2040),
        ("rate_iops=100\nsize=1m\nnumber_ios=60", 60, 500, 590),
        ("rate_iops=100\nsize=256k\nloops=2", 128 - 51, 500, 760),
        ("rate_iops=400\nsize=1m\nio_size=2m\nrw=randread\nnorandommap", 512 - 201, 500, 775),
        ("rate_iops=100\nsize=1m\nruntime=1\ntime_based", 100, 500, 1000),
        ("rate_iops=100\nsize=1m\nruntime=1\ntime_based\nstartdelay=300ms", 100, 800, 1000),
        (
            "rate_iops=100\nsize=1m\nruntime=1\ntime_based\niodepth=4\nioengine=libaio",
            100,
            500,
            1000,
        ),
        ("rate_iops=3\nsize=1m\nruntime=900ms\ntime_based", 3, 2000 / 3, 900),
        ("thinktime=20ms\nthinktime_blocks=2\nsize=1m\nruntime=1\ntime_based", 99, 501, 1000),
    ],
)
def test_a_ramp_is_the_first_part_of_its_job(
    options: str, ios: int, began_ms: float, length_ms: float, tmp_path: Path
) -> None:
    file = tmp_path / "ramp.fio"
    file.write_text(f"[j]\nbs=4k\nramp_time=500ms\n{options}\n")
    (workload,) = read_fio_job(file, device_capacity_bytes=64 << 20)
    step = SimEngine("nvme-ms-480").run(workload)
    (result,) = step.jobs
    assert result.began_ns / MS == pytest.approx(began_ms, abs=1.5)
    assert result.elapsed_ns / MS == pytest.approx(length_ms, abs=0.5)
    done = result.operations["read"]
    assert done.ios == done.service.count == ios
    assert step.intervals["ios"].sum() == ios
    assert step.counted["host_read_bytes"] == ios * 4096
    if done.response is not None:
        assert done.response.count == ios
        assert done.response.max_ns < 5 * MS


def test_addresses_continue_after_a_ramp(engine: SimEngine) -> None:
    """Check that the same reads, measured from the start, would have other addresses."""
    job = Job(read_pct=0.0, volume_bytes=4 << 20, range_bytes=4 << 20, rate_iops=1000.0,
              addresses=Addresses("once"))  # fmt: skip
    ramped = engine.run(Workload("w", (replace(job, ramp_ns=500 * MS),)))
    assert ramped.jobs[0].operations["write"].ios == 1024 - 501
    assert ramped.jobs[0].elapsed_ns / MS == pytest.approx(522, abs=1)


def test_jobs_end_their_ramps_alone(engine: SimEngine) -> None:
    job = Job(name="a", read_pct=100.0, rate_iops=1000.0, duration_ns=300 * MS)
    jobs = (job, replace(job, name="b", ramp_ns=200 * MS), replace(job, name="c", ramp_ns=600 * MS))
    step = engine.run(Workload("w", jobs))
    assert [result.operations["read"].ios for result in step.jobs] == [300, 300, 300]
    assert [result.began_ns // MS for result in step.jobs] == [0, 200, 600]
    assert step.elapsed_ns // MS == 900


def test_a_job_that_ends_in_its_ramp_measures_nothing(engine: SimEngine) -> None:
    job = Job(read_pct=100.0, rate_iops=1000.0, ios=10, ramp_ns=500 * MS)
    step = engine.run(Workload("w", (job,)))
    assert not step.jobs[0].operations and not step.intervals["ios"].sum()
    assert any("ended during its ramp" in warning for warning in step.warnings)
