"""Load and figure kinds, which `published/held_out.py` uses to group held-out figures.

A load that has several kinds, such as a skewed mix, has the largest of their errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from writecliff.choice.question import LIFE, PRICE, Question
from writecliff.devices import show_device
from writecliff.latency_basis import PREFIX
from writecliff.operation_names import FLUSH
from writecliff.published.held_out import (
    ENDURANCE,
    MIXES,
    POWER_DRAW,
    SKEWED,
    STATIC,
    WRITE_AMPLIFICATION,
    ZONES,
    mean_kind,
    tail_kind,
)
from writecliff.workload.load import load_workload
from writecliff.workload.model import Job

Operation = Literal["reads", "writes"]
# Workload kinds that have no held-out figures.
TRACES, FLUSHES = "replayed traces", "flushes"
_PURE_WRITES = ("random writes", "sequential writes")
_SKEWED = ("zipf", "pareto", "normal", "zoned", "hot_cold", "sequence")
# Minimum fraction of the capacity that a full range covers, because ranges consist of whole blocks.
_NEARLY_ALL = 0.99


@dataclass(frozen=True)
class LoadKinds:
    """The kinds that a load belongs to."""

    rates: tuple[str, ...]  # Kinds of figures behind the load's rates, such as "mixes".
    operations: tuple[Operation, ...]
    # `True` if a job has no rate limit and runs as fast as the drive allows.
    full_rate: bool = True
    # `True` if a given write volume per day determines the wear, rather than the write rate.
    writes_per_day: bool = False

    def kinds_of(self, key: str, *, rated_life: bool = False) -> tuple[str, ...]:
        """Return a figure's kinds in a choice.

        Args:
            key: The figure, such as "reads/p99.9".
            rated_life: `False` if the rated erase cycles limit the drive's lifetime. In that case,
                the lifetime in years depends on the write amplification.

        Returns:
            The kinds, which are empty for a figure taken from a rating or a price list.
        """
        *parts, name = key.removeprefix(PREFIX).split("/")
        if FLUSH in parts:
            return (FLUSHES,)
        if name in (PRICE, "waf", "watts"):
            return {PRICE: (), "waf": (WRITE_AMPLIFICATION,), "watts": (POWER_DRAW,)}[name]
        if name == LIFE:
            rates = self.rates if self.full_rate and not self.writes_per_day else ()
            return rates if rated_life else (ENDURANCE, *rates)
        if name in ("iops", "mb_per_s"):
            return self.rates
        named = [operation for operation in self.operations if operation in parts]
        operations = named or list(self.operations)
        if name == "mean":
            return self._means(operations)
        return tuple(
            tail_kind(name, self._whose(operation), full_rate=self.full_rate)
            for operation in operations
        )

    def _means(self, operations: list[Operation]) -> tuple[str, ...]:
        if len(operations) < len(self.operations):
            return tuple(mean_kind(self._whose(operation)) for operation in operations)
        return tuple(map(mean_kind, self.rates))

    def _whose(self, operation: Operation) -> str:
        if operation == "writes":
            return "writes"
        return "reads beside writes" if "writes" in self.operations else "reads alone"


def kinds_of_load(question: Question) -> LoadKinds:
    """Return the kinds of the measured steps in the load.

    Raises:
        ConfigError: If the workload is invalid.
    """
    capacity_bytes = max(show_device(name).capacity_bytes for name in question.candidates)
    file = load_workload(question.workload, capacity_bytes=capacity_bytes)
    jobs = [job for step in file.steps if step.measured for job in step.workload.jobs]
    return kinds_of_jobs(
        jobs, capacity_bytes, writes_per_day=question.writes_per_day_bytes is not None
    )


def kinds_of_jobs(
    jobs: Iterable[Job], capacity_bytes: int, *, writes_per_day: bool = False
) -> LoadKinds:
    """Return the kinds of jobs that run on a drive of `capacity_bytes`.

    `writes_per_day`: `True` if a given write volume, not the jobs' rates, determines the drive's
    wear.
    """
    listed = list(jobs)
    traces = any(job.model is not None or job.log is not None for job in listed)
    reads = traces or any(job.read_pct > 0 for job in listed)
    writing = [job for job in listed if job.read_pct + job.trim_pct < 100]
    writes = traces or bool(writing)
    if traces:
        rates = [TRACES]
    else:
        is_static = _is_partly_static(writing, capacity_bytes)
        written = [kind for job in writing for kind in _writes(job, is_static=is_static)]
        if reads and writes:
            rates = [MIXES, *(kind for kind in written if kind not in _PURE_WRITES)]
        else:
            rates = written or [f"{job.pattern} reads" for job in listed]
    named: tuple[tuple[Operation, bool], ...] = (("reads", reads), ("writes", writes))
    return LoadKinds(
        tuple(dict.fromkeys(rates)),
        tuple(name for name, has in named if has),
        full_rate=not all(job.is_scheduled for job in listed),
        writes_per_day=writes_per_day,
    )


def _writes(job: Job, *, is_static: bool) -> Iterator[str]:
    """Yield the write kinds of a job.

    Skewed writes, writes alongside static data, and zoned writes are not also counted as uniform
    writes, because their errors already include the errors for uniform writes.
    """
    if job.host_zones is not None:
        yield ZONES
    elif job.pattern == "sequential":
        yield "sequential writes"
    else:
        is_skewed = job.addresses.kind in _SKEWED
        if is_skewed:
            yield SKEWED
        if is_static:
            yield STATIC
        if not is_skewed and not is_static:
            yield "random writes"


def _is_partly_static(writing: Iterable[Job], capacity_bytes: int) -> bool:
    """Return `True` if the jobs leave part of the drive unwritten."""
    ranges = []
    for job in writing:
        if job.segments is not None:
            return True
        zones = job.addresses.zones
        if job.addresses.kind == "zoned" and any(not zone.access_pct for zone in zones):
            return True
        length = job.range_bytes or capacity_bytes - job.offset_bytes
        ranges.append((job.offset_bytes, job.offset_bytes + length))
    reached = 0
    for start, end in sorted(ranges):
        if start > reached:
            return True
        reached = max(reached, end)
    return reached < _NEARLY_ALL * capacity_bytes
