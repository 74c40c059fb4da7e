"""Mixes that fio runs as several jobs: a stream whose I/Os outlast a step does not end the test."""

from __future__ import annotations

from typing import Any

from writecliff.engines.base import JobResult
from writecliff.engines.fio.mix import idle, split
from writecliff.workload.model import BlockSize, Job, Workload

MIX = Job(
    name="applied",
    pattern="random",
    read_pct=0.0,
    block_sizes=(BlockSize(4096, 67.0, 100.0), BlockSize(1_310_720, 33.0, 100.0)),
    duration_ns=10**9,
    range_bytes=1 << 29,
    queue_depth=32,
)


def did(name: str, *operations: str) -> JobResult:
    results_of: dict[Any, Any] = dict.fromkeys(operations)
    return JobResult(name, 10**9, results_of)


def test_a_stream_of_a_mix_may_end_no_io_in_a_step() -> None:
    jobs = split(Workload("w", (MIX,))).run.jobs
    small, large = (job.name for job in jobs)
    assert idle(jobs, [did(small), did(large, "write")]) == []
    assert idle(jobs, [did(small), did(large)]) == [small, large]


def test_a_job_of_its_own_must_do_some() -> None:
    alone = Job(name="alone", duration_ns=10**9)
    jobs = (*split(Workload("w", (MIX,))).run.jobs, alone)
    names = [job.name for job in jobs]
    results = [did(names[0], "write"), did(names[1], "write"), did("alone")]
    assert idle(jobs, results) == ["alone"]
