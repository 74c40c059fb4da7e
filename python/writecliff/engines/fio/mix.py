"""Jobs whose mix fio has no options for, as several of fio's jobs.

fio gives one share of random I/Os to an operation, not to a size, and sizes have whole percentages;
and sequential reads and writes of one job share the segment that they are in. So a mix with
sequential streams, with other shares, or in sequence through segments is run as a job for each
operation, access and size. `flow` keeps their I/Os in the shares of the mix, and the outstanding
I/Os are divided by the same shares, at least one for each. Results are those of the one job again.
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

_WEIGHT = 1000  # of all parts of a mix together: the most that fio takes for one
_WHOLE = 1e-6


@dataclass(frozen=True)
class _Part:
    read: bool
    size: int
    sequential: bool
    share: float  # of the I/Os of the job


@dataclass(frozen=True)
class Split:
    """A workload as fio runs it. `jobs` has the job of the given workload for each of fio's."""

    given: Workload
    run: Workload
    jobs: tuple[int, ...]
    warnings: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        return self.run is self.given

    def joined(self, result: StepResult) -> StepResult:
        """What was measured, by the jobs of the given workload."""
        if self.is_same or not result.jobs:
            return result
        groups: dict[int, list[JobResult]] = {}
        for own, one in zip(self.jobs, result.jobs, strict=True):
            groups.setdefault(own, []).append(one)
        jobs = tuple(_joined(self.given.jobs[own].name, ones) for own, ones in groups.items())
        without = [
            f"{one.name} did no I/O that ended within the step: the other I/O streams of the mix "
            "had the drive"
            for one in result.jobs
            if not one.operations and len(groups) < len(result.jobs)
        ]
        return replace(
            result,
            jobs=jobs,
            intervals=_intervals(result, self.jobs),
            warnings=(*self.warnings, *without, *result.warnings),
        )


def split(workload: Workload) -> Split:
    """How fio runs `workload`: as it is unless one of its jobs is such a mix."""
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
            wanted, made = job.threads * job.queue_depth, sum(one.queue_depth for one in parts)
            warnings.append(
                f"job {job.name}: fio runs its {len(parts)} I/O streams as jobs of their own, in "
                f"proportion by flow; {made} I/Os are outstanding at most, {wanted} are asked for"
            )
    return Split(workload, replace(workload, jobs=tuple(jobs)), tuple(numbers), tuple(warnings))


def idle(jobs: Sequence[Job], results: Sequence[JobResult]) -> list[str]:
    """Names of the jobs without I/O. Of a mix that is run as several, one without any is none of
    them: a large I/O of another may take as long as a short step.
    """
    worked = {job.flow_group for job, one in zip(jobs, results, strict=True) if one.operations}
    return [
        one.name
        for job, one in zip(jobs, results, strict=True)
        if not one.operations and not (job.flow_group and job.flow_group in worked)
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
    found = []
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
                    found.append(_Part(operation == "read", size.bytes, sequential, share))
    return found


def _jobs(job: Job, group: int) -> list[Job]:
    """A job for each part. Sequential ones begin apart from each other in the range; in segments,
    at the first of them.
    """
    for name, given in (
        ("rates", job.rate_iops or job.rate_bytes_per_s),
        ("segments", job.segments is not None and not _is_segmented_mix(job)),
        ("trims", job.trim_pct),
        ("an end by volume or I/Os", job.volume_bytes or job.ios),
    ):
        if given:
            raise EngineError(f"fio: {job.name}: {name} and sequential shares of block sizes",
                              hint="use a job for each stream")  # fmt: skip
    parts = _parts(job)
    depths = divided(job.threads * job.queue_depth, [part.share for part in parts])
    ordered = [part for part in parts if part.sequential]
    jobs = []
    for part, depth in zip(parts, depths, strict=True):
        text = f"{job.name}-{'seq' if part.sequential else 'rnd'}-{part.size}"
        own = replace(
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
            own = replace(own, thread_stride_bytes=0)
        elif part.sequential and job.range_bytes:
            step = job.range_bytes // len(ordered) // part.size * part.size
            own = replace(
                own,
                pattern="sequential",
                align_bytes=None,
                offset_bytes=job.offset_bytes + ordered.index(part) * step // 4096 * 4096,
                range_bytes=max(step, part.size),
            )
        jobs.append(own)
    return jobs


def divided(total: int, shares: Sequence[float]) -> list[int]:
    """`total` in whole parts by `shares`, at least 1 each, by largest remainders."""
    exact = [total * share / sum(shares) for share in shares]
    found = [max(1, math.floor(one)) for one in exact]
    order = sorted(range(len(shares)), key=lambda n: (math.floor(exact[n]) - exact[n], n))
    for n in order[: max(0, total - sum(found))]:
        found[n] += 1
    while sum(found) > max(total, len(found)):
        found[max(range(len(found)), key=found.__getitem__)] -= 1
    return found


def _joined(name: str, ones: Sequence[JobResult]) -> JobResult:
    operations = {}
    for operation in dict.fromkeys(key for one in ones for key in one.operations):
        total = together([one.operations[operation] for one in ones if operation in one.operations])
        assert total is not None  # of at least one
        operations[operation] = total
    return JobResult(
        name,
        max(one.began_ns + one.elapsed_ns for one in ones) - min(one.began_ns for one in ones),
        operations,
        tuple(ios for one in ones for ios in one.thread_ios),
        began_ns=min(one.began_ns for one in ones),
        flush=together([one.flush for one in ones if one.flush is not None]),
    )


def _intervals(result: StepResult, jobs: Sequence[int]) -> dict[str, np.ndarray]:
    """The series, with the rows of one job, operation and interval as one."""
    import numpy as np

    given = result.intervals
    rows: dict[tuple[int, int, int], list[int]] = {}
    for n in range(len(given["end_ns"])):
        key = (int(given["end_ns"][n]), jobs[int(given["job"][n])], int(given["operation"][n]))
        rows.setdefault(key, []).append(n)
    found: dict[str, list[float]] = {name: [] for name in given}
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
                known = ios > 0
                value = (values * ios)[known].sum() / ios[known].sum() if known.any() else math.nan
            elif name == "latency_max_ns":
                value = np.fmax.reduce(values)
            elif name == "latency_sd_ns":
                value = values[0] if len(group) == 1 else math.nan
            else:  # of the whole drive
                value = values[0]
            found[name].append(value)
    return {name: np.array(values, dtype=given[name].dtype) for name, values in found.items()}
