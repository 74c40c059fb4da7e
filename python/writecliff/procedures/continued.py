"""Sequential streams that go on from step to step.

A stream that began at the first address in each step would pass over the same part of the drive
again and again. On a real drive a stage is one load without a gap (`Stage.continuous`), or its
steps begin where the ones before ended (`tp.next_start`, as far as fio can). A simulated drive
begins a step's streams where the earlier steps of the same kind left them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from writecliff.procedures.model import Step, StepRow
from writecliff.workload.model import access_of


def continued(step: Step, rows: Iterable[StepRow], range_bytes: int) -> Step:
    """`step` with its streams where those of `rows`, the earlier steps of its stage, ended.

    Only steps of the same access count; reads and writes have streams of their own. `range_bytes`
    is the range of a job that names none.
    """
    access = access_of(step.workload)
    if access.pattern != "sequential" or access.block_bytes is None:
        return step
    earlier = [row for row in rows if _same(row, access)]
    if not earlier:
        return step
    (job,) = step.workload.jobs
    block = access.block_bytes
    passed = job.range_bytes or range_bytes
    if job.segments is not None:  # laid end to end
        passed = job.segments.count * job.segments.length(block)
    blocks = max(1, passed // block)

    def position(done_bytes: int) -> int:
        return done_bytes // job.threads // block % blocks * block

    read = sum(row.read_bytes for row in earlier)
    written = sum(row.bytes for row in earlier) - read
    job = replace(job, start_bytes=position(read), write_start_bytes=position(written))
    return replace(step, workload=replace(step.workload, jobs=(job,)))


def _same(row: StepRow, access: object) -> bool:
    names = ("pattern", "block_bytes", "read_pct", "threads", "queue_depth")
    return all(getattr(row, name) == getattr(access, name) for name in names)
