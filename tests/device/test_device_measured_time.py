"""Division of each job's counts on a real target by the job's own run time, in every output."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.device.test_device_engine import opened
from tests.support.small_drive import write_small_drive
from writecliff import Run
from writecliff.cli.main import main
from writecliff.engines.base import JobResult
from writecliff.engines.fio import FioEngine
from writecliff.workload.model import Job, Workload

MS = 1_000_000
MIB = 1 << 20
CLOSED_WORKLOADS = int(os.environ.get("WRITECLIFF_CLOSED_WORKLOADS_FILE", "3"))

# The steps `late` and `long` overlap, and `after` is a separate step.
JOB_FILE = """\
[global]
rw=randread
bs=4k
iodepth=512
size=16m
time_based
rate_iops=500
[late]
runtime=400ms
startdelay=300ms
[long]
runtime=1
[after]
stonewall
runtime=300ms
"""
RUN_S = {"late": 0.4, "long": 1.0, "after": 0.3}


Log = list[tuple[float, float]]  # Completion time since the job's start, and latency, in ns.


def _ios(result: JobResult) -> int:
    return sum(done.ios for done in result.operations.values())


def _outstanding(result: JobResult) -> float:
    """Return a job's mean number of outstanding I/Os by Little's law."""
    spent_ns = sum(done.ios * (done.service.mean_ns or 0.0) for done in result.operations.values())
    return spent_ns / result.elapsed_ns


@pytest.mark.parametrize("kind", ["loop", "file"])
def test_timed_jobs_have_their_own_times(kind: str, loop: str, tmp_path: Path) -> None:
    late = Job(name="late", read_pct=100, rate_iops=500, queue_depth=512,
               start_delay_ns=300 * MS, duration_ns=200 * MS)  # fmt: skip
    counted = Job(name="counted", read_pct=100, rate_iops=500, queue_depth=512, ios=100,
                  duration_ns=900 * MS)  # fmt: skip
    long = Job(name="long", read_pct=100, rate_iops=500, queue_depth=512, duration_ns=800 * MS)
    file = tmp_path / "file"
    with opened(loop) if kind == "loop" else FioEngine.open_file(file, size_bytes=MIB) as engine:
        step = engine.run(Workload("w", (late, counted, long), interval_ns=50 * MS))
        alone = engine.run(Workload("w", (late,), interval_ns=50 * MS))
    jobs = {job.name: job for job in step.jobs}
    assert [(name, jobs[name].began_ns) for name in jobs] == [
        ("late", 300 * MS), ("counted", 0), ("long", 0)
    ]  # fmt: skip
    # The step `counted` ends with its last I/O, 99 intervals of 2 ms after the first I/O.
    for name, length_ms in (("late", 200), ("counted", 198), ("long", 800)):
        _check_length(jobs[name], length_ms)
    assert step.elapsed_ns == max(job.began_ns + job.elapsed_ns for job in step.jobs)
    # The start delay does not count as run time.
    assert alone.iops() == 1e9 * _ios(alone.jobs[0]) / alone.jobs[0].elapsed_ns
    _check_length(alone.jobs[0], 200)


def _check_length(result: JobResult, length_ms: int) -> None:
    """Check that a job of 500 I/Os per second ends at its duration, or with a later, slow I/O."""
    # The count is lower if the machine stalls until the end.
    assert 0 < _ios(result) <= 0.5 * length_ms + 1
    read = result.operations["read"]
    assert read.response is not None
    over_ns = result.elapsed_ns - length_ms * MS
    assert 0 <= over_ns <= (read.response.max_ns or 0)


@pytest.fixture
def logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Log]]:
    """Return a function that reads each thread's I/Os in the last run from fio's logs."""
    folder, program = tmp_path / "bin", shutil.which("fio")
    folder.mkdir()
    wrapper = folder / "fio"
    wrapper.write_text(f'#!/bin/sh\nexec {program} --write_lat_log={tmp_path}/log "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def logs() -> list[Log]:
        paths = sorted(tmp_path.glob("log_lat.*.log"), key=lambda file: int(file.suffixes[-2][1:]))
        read = [_log(file.read_text()) for file in paths]
        for file in tmp_path.glob("log_*.log"):
            file.unlink()
        return read

    return logs


def _log(text: str) -> Log:
    rows = [line.split(",") for line in text.splitlines()]
    return [(float(row[0]) * MS, float(row[1])) for row in rows]


def test_closed_jobs_have_their_own_times(loop: str, logged: Callable[[], list[Log]]) -> None:
    """Check Little's law: IOPS times mean latency equals the mean number of outstanding I/Os.

    The interval extends from the start of a job until its duration has elapsed and no I/O is
    outstanding. The mean number is below the queue depth while fio generates write data, while the
    kernel delays submission, and while the last I/O is slow.
    """
    with opened(loop) as engine:
        for seed in range(CLOSED_WORKLOADS):
            draw = random.Random(seed)
            jobs = tuple(_closed(draw, f"j{number}") for number in range(draw.choice((1, 2))))
            workload = Workload("w", jobs, seed=seed, interval_ns=100 * MS)
            # On a busy machine, a fio thread may record its end late, so the test tries again.
            for _ in range(5):
                step = engine.run(workload)
                pairs = list(zip(jobs, step.jobs, _outstanding_by_log(jobs, logged()), strict=True))
                if all(
                    _outstanding(job) == pytest.approx(mean, rel=0.03) for _, job, mean in pairs
                ):
                    break
            else:
                pytest.fail(f"seed {seed}: {pairs}")
            for job, result, mean in pairs:
                assert mean <= 1.004 * job.threads * job.queue_depth, (seed, job)
                assert result.began_ns == job.start_delay_ns


def _outstanding_by_log(jobs: Sequence[Job], logs: list[Log]) -> Iterator[float]:
    """Yield each job's mean number of outstanding I/Os."""
    each = iter(logs)
    for job in jobs:
        ios = [io for _ in range(job.threads) for io in next(each)]
        # Times are whole milliseconds, so the last I/O may appear 1 ms later, which is 0.3 % of a
        # job.
        length_ns = max(job.duration_ns or 0, *(at_ns for at_ns, _ in ios))
        yield sum(latency_ns for _, latency_ns in ios) / length_ns


def _closed(draw: random.Random, name: str) -> Job:
    return Job(
        name=name,
        pattern=draw.choice(("random", "sequential")),
        read_pct=draw.choice((100, 100, 70, 0)),
        block_size=draw.choice((4096, 64 << 10, MIB)),
        threads=draw.choice((1, 1, 2)),
        queue_depth=draw.choice((1, 2, 4, 8)),
        start_delay_ns=draw.choice((0, 200 * MS)),
        duration_ns=draw.choice((300, 600)) * MS,
    )


def test_a_load_in_bursts_starts_after_its_delay(loop: str) -> None:
    job = Job(read_pct=100, burst_ns=200 * MS, pause_ns=500 * MS, start_delay_ns=400 * MS,
              duration_ns=700 * MS)  # fmt: skip
    with opened(loop) as engine:
        step = engine.run(Workload("w", (job,), interval_ns=100 * MS))
    (result,) = step.jobs
    assert 400 * MS <= result.began_ns < 500 * MS
    assert result.began_ns + result.elapsed_ns == step.elapsed_ns
    assert step.elapsed_ns == pytest.approx(1100 * MS, rel=0.01)


@pytest.fixture(params=["file", "sim"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sim":
        return f"sim:{write_small_drive(tmp_path)}"
    (tmp_path / "drive").write_bytes(bytes(32 * MIB))
    return f"file:{tmp_path / 'drive'}"


def test_every_output_has_the_same_rates(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "times.fio"
    file.write_text(JOB_FILE)
    run = tmp_path / "run"
    words = ["run", file, "--on", target, "--output", run, "--quiet"]
    limits = [
        word
        for step, name in (("times-1", "late"), ("times-1", "long"), ("times-2", "after"))
        for word in ("--expect", f"{step}/{name}/reads/iops > 0")
    ]
    assert main([*map(str, words), *limits, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    rates = {}
    for job in (job for step in answer["steps"] for job in step["jobs"]):
        reads = job["operations"]["read"]
        _check_rate(job["name"], reads["ios"], job["elapsed_ns"] / 1e9, reads["latency"]["max_ns"])
        rates[job["name"]] = reads["ios"] / (job["elapsed_ns"] / 1e9)
        assert reads["iops"] == pytest.approx(rates[job["name"]])
        assert reads["bytes_per_s"] == pytest.approx(4096 * rates[job["name"]])
    assert [limit["value"] for limit in answer["expectations"]] == pytest.approx(
        list(rates.values())
    )
    page = (run / "report.html").read_text()
    assert all(f"{rate:,.0f}" in page for rate in rates.values())
    figures = {figure.key: figure.value for figure in Run(run).figures}
    for step in answer["steps"]:
        for job in step["jobs"]:
            key = f"{step['workload']}/{job['name']}/reads/iops"
            assert figures[key] == pytest.approx(rates[job["name"]])
    # Figures for partially overlapping jobs cannot be added.
    both = sum(job["operations"]["read"]["ios"] for job in answer["steps"][0]["jobs"])
    rate = 1e9 * both / answer["steps"][0]["elapsed_ns"]
    assert f"times-1: {rate:,.0f} reads/s" in Run(run).verdict
    plain = ["--on", target, "--quiet"]
    commands = [["run", file, *plain, "--output", tmp_path / "b", "--output-format", "fio-json"]]
    if target.startswith("sim:"):
        commands.append(["fio", *plain, "--output-format=json", file])
    for words in commands:
        assert main(list(map(str, words))) == 0
        for job in json.loads(capsys.readouterr().out)["jobs"]:
            reads, runtime_s = job["read"], job["read"]["runtime"] / 1000
            _check_rate(job["jobname"], reads["total_ios"], runtime_s, 1e9)
            assert reads["iops"] == pytest.approx(reads["total_ios"] / runtime_s)
            assert job["job_runtime"] == reads["runtime"]


def _check_rate(name: str, ios: int, seconds: float, slowest_ns: float) -> None:
    # The count is lower if the machine stalls until the end.
    assert 0 < ios <= 500 * RUN_S[name] + 1
    assert 0 <= seconds - RUN_S[name] <= slowest_ns / 1e9


def test_rates_and_means_of_a_real_file_have_intervals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Check that percentiles have no interval, because fio logs intervals, not batches."""
    (tmp_path / "drive").write_bytes(bytes(4 * MIB))
    file = tmp_path / "reads.fio"
    file.write_text("[reads]\nrw=randread\nbs=4k\ntime_based\nruntime=1200ms\nrate_iops=500\n"
                    "log_avg_msec=100\nstartdelay=150ms\n")  # fmt: skip
    for attempt in range(5):  # A run with drifting latencies has no confidence interval.
        words = ["run", file, "--on", f"file:{tmp_path / 'drive'}", "--quiet", "--json"]
        words += ["--output", tmp_path / f"run-{attempt}"]
        assert main([*map(str, words)]) == 0
        (step,) = json.loads(capsys.readouterr().out)["steps"]
        reads = step["jobs"][0]["operations"]["read"]
        latency = reads["latency"]
        figures = [
            (reads["iops"], reads["intervals"]["iops"]),
            (reads["bytes_per_s"], reads["intervals"]["bytes_per_s"]),
            (latency["mean_ns"], latency["mean_interval"]),
        ]
        assert all(percentile["low_ns"] is None for percentile in latency["percentiles"])
        if all(bounds is not None for _, bounds in figures):
            break
    for value, bounds in figures:
        assert 0 < bounds["low"] <= value <= bounds["high"] < float("inf")


def test_a_ramp_is_not_measured(tmp_path: Path) -> None:
    """Check timed I/O, and a closed-loop load run by fio."""
    timed = Job(name="timed", read_pct=100, rate_iops=500, queue_depth=512, ramp_ns=100 * MS,
                start_delay_ns=100 * MS, duration_ns=200 * MS)  # fmt: skip
    closed = Job(
        name="closed", read_pct=100, think_ns=5 * MS, ramp_ns=300 * MS, duration_ns=200 * MS
    )
    with FioEngine.open_file(tmp_path / "file", size_bytes=MIB) as engine:
        for job, began_ms in ((timed, 200), (closed, 300)):
            step = engine.run(Workload("w", (job,), interval_ns=50 * MS))
            (result,) = step.jobs
            assert result.began_ns == began_ms * MS
            read = result.operations["read"]
            assert 0 < read.ios == read.service.count <= 101
            assert step.intervals["ios"].sum() == read.ios
            over_ns = result.elapsed_ns - 200 * MS
            assert -MS <= over_ns <= max(read.service.max_ns or 0, 10 * MS)
