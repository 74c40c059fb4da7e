"""How fast a drive can be under a load, as far as reading tells.

Flash takes data no faster than it gives them when many I/Os are outstanding: programming takes
longer than reading, and both share the link and the processors of the controller. A write buffer is
faster for as long as it lasts; the factor of two is for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from writecliff.engines.base import StepResult
from writecliff.errors import EngineError, TargetError
from writecliff.workload.model import Job, Workload

WRITES_OVER_READS = 2.0
MEASURE_NS = 300_000_000
OUTSTANDING = 64  # at least: a read alone waits for the flash, a write alone for the buffer only


def reads_like(workload: Workload) -> Workload:
    """Reads of the same blocks and addresses as fast as they go; equal for alike workloads."""
    jobs = tuple(dict.fromkeys(_reads(job) for job in workload.jobs))
    return Workload("speed of reads", jobs, interval_ns=MEASURE_NS)


def _reads(job: Job) -> Job:
    return Job(
        name="reads",
        pattern=job.pattern,
        read_pct=100.0,
        block_sizes=job.block_sizes,
        threads=job.threads,
        queue_depth=max(job.queue_depth, -(-OUTSTANDING // job.threads)),
        align_bytes=job.align_bytes,
        duration_ns=MEASURE_NS,
    )


def measured(run: Callable[[Workload], StepResult], reads: Workload) -> float | None:
    """The limit by running `reads`; None if they cannot be run."""
    try:
        result = run(replace(reads, seed=1))
    except (EngineError, TargetError):
        return None
    return WRITES_OVER_READS * result.total()[1] / (result.elapsed_ns / 1e9 or 1e-3)
