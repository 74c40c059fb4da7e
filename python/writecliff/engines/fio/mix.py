"""Splitting of jobs whose mixes fio cannot express into several fio jobs.

fio supports a random I/O percentage per operation, but not per size. Size weights in fio are whole
percentages. The sequential reads and writes of a fio job share a current segment. A mix runs as one
fio job per operation, access pattern and size if it has sequential streams or fractional
percentages, or is sequential within segments. The fio option `flow` maintains the mix's proportions
between these jobs' I/Os. The outstanding I/Os are divided in the same proportions, with at least
one per job. The results are merged into a single job.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from writecliff.engines.base import JobResult, StepResult, together
from writecliff.errors import EngineError
from writecliff.workload.model import BlockSize, Job, Workload

if TYPE_CHECKING:
    import numpy as np

_WEIGHT = 1000  # Sum of the weights in a mix, which is also fio's maximum.
_WHOLE = 1e-6


@dataclass(frozen=True)
class _Part:
    read: bool
    size: int
    sequential: bool
    share: float  # Fraction of the job's I/Os.


@dataclass(frozen=True)
class Split:
    """A workload, with mixes split as fio requires."""

    given: Workload
    run: Workload  # Workload with split mixed jobs.
    jobs: tuple[int, ...]  # For each job in `run`, the index of its job in `given`.
    warnings: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """True if no job was split."""
        return self.run is self.given

    def joined(self, result: StepResult) -> StepResult:
        """Merge the results of split jobs into the jobs of the given workload."""
        if self.is_same or not result.jobs:
            return result
        groups: dict[int, list[JobResult]] = {}
        for index, done in zip(self.jobs, result.jobs, strict=True):
            groups.setdefault(index, []).append(done)
        jobs = tuple(_joined(self.given.jobs[index].name, group) for index, group in groups.items())
        without = [
            f"{done.name}: no I/O completed within the step, because the other I/O streams of the "
            "mix occupied the drive"
            for done in result.jobs
            if not done.operations and len(groups) < len(result.jobs)
        ]
        return replace(
            result,
            jobs=jobs,
            intervals=_intervals(result, self.jobs),
            warnings=(*self.warnings, *without, *result.warnings),
        )


def split(workload: Workload) -> Split:
    """Split the workload's jobs that fio cannot run as a single job."""
    if not any(map(_is_split, workload.jobs)):
        return Split(workload, workload, tuple(range(len(workload.jobs))))
    jobs: list[Job] = []
    numbers: list[int] = []
    warnings = []
    for number, job in enumerate(workload.jobs):
        parts = _jobs(job, number) if _is_split(job) else [job]
        jobs += parts
        numbers += [number] * len(parts)
        if len(parts) > 1:
            wanted, made = job.threads * job.queue_depth, sum(part.queue_depth for part in parts)
            warnings.append(
                f"job {job.name}: fio runs its {len(parts)} I/O streams as separate jobs, kept in "
                f"proportion by flow; at most {made} I/Os are outstanding instead of {wanted}"
            )
    return Split(workload, replace(workload, jobs=tuple(jobs)), tuple(numbers), tuple(warnings))


def idle(jobs: Sequence[Job], results: Sequence[JobResult]) -> list[str]:
    """Return the names of the jobs that completed no I/O.

    A part of a split mix counts only if all parts of the mix completed no I/O, because a large I/O
    of another part may take as long as a short step.
    """
    worked = {job.flow_group for job, done in zip(jobs, results, strict=True) if done.operations}
    return [
        done.name
        for job, done in zip(jobs, results, strict=True)
        if not done.operations and not (job.flow_group and job.flow_group in worked)
    ]


def _is_split(job: Job) -> bool:
    if any(size.sequential_pct for size in job.all_block_sizes) or _is_segmented_mix(job):
        return True
    plain = (
        job.pattern == "random"
        and job.addresses.kind == "uniform"
        and job.segments is None
        and not job.trim_pct
        and job.rate_iops is None
        and job.rate_bytes_per_s is None
        and job.volume_bytes is None
        and job.ios is None
    )
    if not plain or len(job.all_block_sizes) == 1:
        return False
    shares = [job.read_pct]
    for operation in ("read", "write"):
        sizes = job.block_sizes_of(operation)
        total = sum(size.weight for size in sizes)
        shares += [100 * size.weight / total for size in sizes]
    return any(abs(share - round(share)) > _WHOLE for share in shares)


def _is_segmented_mix(job: Job) -> bool:
    in_order = job.pattern == "sequential" and job.segments is not None
    return in_order and len(job.all_block_sizes) == 1 and 0 < job.read_pct < 100


def _parts(job: Job) -> list[_Part]:
    if _is_segmented_mix(job):
        (size,) = job.block_sizes
        reads = job.read_pct / 100
        return [_Part(True, size.bytes, True, reads), _Part(False, size.bytes, True, 1 - reads)]
    parts = []
    for operation, of_all in (("read", job.read_pct), ("write", 100 - job.read_pct)):
        sizes = job.block_sizes_of(operation)
        total = sum(size.weight for size in sizes)
        for size in sizes:
            for sequential, pct in (
                (False, 100 - size.sequential_pct),
                (True, size.sequential_pct),
            ):
                share = of_all / 100 * size.weight / total * pct / 100
                if share > 0:
                    parts.append(_Part(operation == "read", size.bytes, sequential, share))
    return parts


def _jobs(job: Job, group: int) -> list[Job]:
    """Return a separate job for each part.

    Sequential parts start at different addresses of the range or, if the range has segments, at the
    first segment.
    """
    for name, given in (
        ("rates", job.rate_iops or job.rate_bytes_per_s),
        ("segments", job.segments is not None and not _is_segmented_mix(job)),
        ("trims", job.trim_pct),
        ("a volume or number of I/Os", job.volume_bytes or job.ios),
    ):
        if given:
            raise EngineError(
                f"fio: {job.name}: {name} cannot be combined with sequential percentages per "
                f"block size",
                hint="use a separate job for each stream",
            )
    parts = _parts(job)
    depths = divided(job.threads * job.queue_depth, [part.share for part in parts])
    ordered = [part for part in parts if part.sequential]
    jobs = []
    for part, depth in zip(parts, depths, strict=True):
        text = f"{job.name}-{'seq' if part.sequential else 'rnd'}-{part.size}"
        run = replace(
            job,
            name=f"{text}-{'read' if part.read else 'write'}",
            read_pct=100.0 if part.read else 0.0,
            block_sizes=(BlockSize(part.size),),
            writes=None,
            threads=1,
            queue_depth=depth,
            flow_weight=max(1, round(_WEIGHT * part.share)),
            flow_group=group + 1,
        )
        if job.segments is not None:
            run = replace(run, thread_stride_bytes=0)
        elif part.sequential and job.range_bytes:
            step = job.range_bytes // len(ordered) // part.size * part.size
            run = replace(
                run,
                pattern="sequential",
                align_bytes=None,
                offset_bytes=job.offset_bytes + ordered.index(part) * step // 4096 * 4096,
                range_bytes=max(step, part.size),
            )
        jobs.append(run)
    return jobs


def divided(total: int, shares: Sequence[float]) -> list[int]:
    """Divide `total` in proportion to `shares` (largest remainder method), with at least 1 each."""
    exact = [total * share / sum(shares) for share in shares]
    counts = [max(1, math.floor(value)) for value in exact]
    order = sorted(range(len(shares)), key=lambda n: (math.floor(exact[n]) - exact[n], n))
    for n in order[: max(0, total - sum(counts))]:
        counts[n] += 1
    while sum(counts) > max(total, len(counts)):
        counts[max(range(len(counts)), key=counts.__getitem__)] -= 1
    return counts


def _joined(name: str, results: Sequence[JobResult]) -> JobResult:
    operations = {}
    for operation in dict.fromkeys(key for result in results for key in result.operations):
        total = together(
            [result.operations[operation] for result in results if operation in result.operations]
        )
        assert total is not None  # At least one result contains the operation.
        operations[operation] = total
    return JobResult(
        name,
        max(result.began_ns + result.elapsed_ns for result in results)
        - min(result.began_ns for result in results),
        operations,
        tuple(ios for result in results for ios in result.thread_ios),
        began_ns=min(result.began_ns for result in results),
        flush=together([result.flush for result in results if result.flush is not None]),
    )


def _intervals(result: StepResult, jobs: Sequence[int]) -> dict[str, np.ndarray]:
    """Merge the series rows that have the same job, operation and interval."""
    import numpy as np

    given = result.intervals
    rows: dict[tuple[int, int, int], list[int]] = {}
    for n in range(len(given["end_ns"])):
        key = (int(given["end_ns"][n]), jobs[int(given["job"][n])], int(given["operation"][n]))
        rows.setdefault(key, []).append(n)
    columns: dict[str, list[float]] = {name: [] for name in given}
    for (_, job, _), group in rows.items():
        at = np.array(group)
        ios = given["ios"][at].astype(float)
        for name, column in given.items():
            values = column[at]
            if name == "job":
                value: float = job
            elif name in ("ios", "bytes"):
                value = values.sum()
            elif name == "latency_mean_ns":
                counted = ios > 0
                value = (
                    (values * ios)[counted].sum() / ios[counted].sum()
                    if counted.any()
                    else math.nan
                )
            elif name == "latency_max_ns":
                value = np.fmax.reduce(values)
            elif name == "latency_sd_ns":
                value = values[0] if len(group) == 1 else math.nan
            else:  # The remaining columns apply to the whole drive.
                value = values[0]
            columns[name].append(value)
    return {name: np.array(values, dtype=given[name].dtype) for name, values in columns.items()}
