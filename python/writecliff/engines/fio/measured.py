"""Measurements of a step from fio's reports, converted to a `StepResult` or `Progress`.

A step has one part per burst or, without bursts, a single part (a fio process, or a period of a
continuing process).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from writecliff.engines.base import (
    OPERATIONS,
    JobResult,
    Operation,
    OperationResult,
    Progress,
    ProgressHook,
    StepResult,
    together,
)
from writecliff.engines.counters import Counters
from writecliff.engines.fio import parse
from writecliff.engines.fio.intervals import IntervalSeries, Stats
from writecliff.engines.fio.rates import is_rate_driven
from writecliff.workload.model import Job, Workload

if TYPE_CHECKING:
    import numpy as np

    from writecliff.engines.disturbance import Reading
    from writecliff.engines.fio.command import FioPlan
    from writecliff.engines.fio.process import Document, Exit
    from writecliff.engines.fio.watch import DisturbanceWatch

_NO_RESPONSE = (
    "job {name}: no response times: fio measures from the issue of an I/O, not from its"
    " scheduled arrival"
)


@dataclass
class Part:
    """A period of a step during which a single fio process ran."""

    begin_ms: float  # Start time in ms since the start of the step.
    series: IntervalSeries

    @property
    def end_ms(self) -> float:
        """Time of the latest report since the start of the step."""
        return self.begin_ms + self.series.elapsed_ms


@dataclass
class Measured:
    """A running or completed step."""

    workload: Workload
    plan: FioPlan
    started_ns: int
    before: Reading
    since_ms: float = 0.0  # fio's clock at the start of the step, in ms.
    goes_on: bool = False  # `True` if the load continues after the step.
    late_ms: float = 0.0  # Delay from a cut's report to its processing.
    parts: list[Part] = field(default_factory=list)
    pause_end_ms: float = 0.0  # End of the latest pause.
    last: Document | None = None
    notes: list[str] = field(default_factory=list)

    def begin_part(self, begin_ms: float = 0.0, begin: tuple[float, Stats] = (0.0, {})) -> None:
        """Start a new part at `begin_ms`, where `begin` is the report at this time."""
        jobs = self.workload.jobs
        # A burst starts after the start delay.
        delays_ms = tuple(
            0 if job.burst_ns else (job.start_delay_ns + job.ramp_ns) / parse.MS for job in jobs
        )
        series = IntervalSeries(delays_ms, self.workload.interval_ns / parse.MS, begin)
        self.parts.append(Part(begin_ms, series))

    def take(self, document: Document) -> None:
        """Add a fio report to the latest part."""
        self.last = document
        self.series.add(parse.read_document(document, self._single_blocks))

    @property
    def _single_blocks(self) -> dict[int, int]:
        jobs = enumerate(self.workload.jobs)
        return {n: job.block_sizes[0].bytes for n, job in jobs if len(job.all_block_sizes) == 1}

    @property
    def counted(self) -> bool:
        """True if the I/Os pass through the block layer, which counts I/Os."""
        return self.plan.counted

    @property
    def series(self) -> IntervalSeries:
        """Time series of the latest part."""
        return self.parts[-1].series

    @property
    def elapsed_ms(self) -> float:
        """Time since the start of the step."""
        return max(self.parts[-1].end_ms, self.pause_end_ms) if self.parts else 0.0

    def done(self) -> tuple[int, int]:
        """Return the I/O count and bytes of all jobs."""
        return sum(part.series.ios for part in self.parts), sum(self.own_bytes().values())

    def own_bytes(self) -> dict[Operation, int]:
        """Return the bytes of all jobs by operation."""
        total: dict[Operation, int] = dict.fromkeys(OPERATIONS, 0)
        for part in self.parts:
            for (_, operation), done in part.series.ios_only.items():
                total[operation] += done.bytes
        return total

    def progress(self) -> Progress:
        """Return the progress, where `fraction` is the slowest job's."""
        elapsed_ns, stats = (
            self.elapsed_ms * parse.MS,
            [part.series.ios_only for part in self.parts],
        )
        fractions = []
        for index, job in enumerate(self.workload.jobs):
            mine = [done for part in stats for (owner, _), done in part.items() if owner == index]
            ios, size = sum(done.ios for done in mine), sum(done.bytes for done in mine)
            fractions.append(_job_fraction(job, elapsed_ns, ios, size))
        return Progress(
            fraction=min(fractions, default=None),
            elapsed_ns=round(elapsed_ns),
            ios=sum(part.series.ios for part in self.parts),
            iops=self.series.iops(),
        )

    def show(self, hook: ProgressHook | None) -> None:
        """Call the hook with the progress if an I/O has completed."""
        if hook is not None and self.parts and self.done()[0]:
            hook(self.progress())

    def failure(self, ended: Exit) -> str:
        """Return the reason why fio failed, or "" on success."""
        errors = list(parse.job_errors(self.last or {}))
        if not ended.reason and errors:
            return ended.message or os.strerror(errors[0])
        if not ended.reason and self.last is None:
            return ended.message or "it reported nothing"
        return ended.reason

    def result(
        self, after: Reading, watch: DisturbanceWatch, notes: tuple[str, ...], *, complete: bool
    ) -> StepResult:
        """Return the measurements, given the final reading `after` and the target's `notes`."""
        names = tuple(job.name for job in self.workload.jobs)
        rated = [job.name for job in self.workload.jobs if is_rate_driven(job)]
        ceilings = [
            text for part in self.parts for text in parse.ceiling_warnings(names, part.series.stats)
        ]
        columns = self.columns()
        before = self.before.vitals
        looks = None
        if before.data_placement is not None and after.vitals.data_placement is not None:
            looks = (before.data_placement, after.vitals.data_placement)
        disturbances, machine = watch.conclude(self, after, columns, complete=complete)
        texts = (
            *notes,
            *self.plan.warnings,
            *(_NO_RESPONSE.format(name=name) for name in rated),
            *ceilings,
            *self.notes,
            *disturbances,
        )
        return StepResult(
            started_ns=self.started_ns,
            elapsed_ns=round(self.elapsed_ms * parse.MS),
            jobs=self._jobs(),
            intervals=columns,
            counters_before=before.counters,
            counters_after=counted_since(before.counters, after.vitals.counters),
            data_placement=looks,
            warnings=tuple(dict.fromkeys(texts)),
            raw={
                "job_file": self.plan.text,
                "fio": self.last,
                "fio_since_ms": self.since_ms,
                "machine": machine,
            },
        )

    def _jobs(self) -> tuple[JobResult, ...]:
        jobs = self.workload.jobs
        return tuple(
            result.following(job) for result, job in zip(self._results(), jobs, strict=True)
        )

    def _results(self) -> tuple[JobResult, ...]:
        jobs = self.workload.jobs
        by_part = [parse.job_results(jobs, part.series.stats) for part in self.parts]
        if not any(job.burst_ns for job in jobs):
            return by_part[0]
        begin_ms = self.parts[0].begin_ms if self.parts else 0.0
        length_ns = round((self.elapsed_ms - begin_ms) * parse.MS)
        return tuple(
            replace(
                _together(job.name, length_ns, [part[index] for part in by_part]),
                began_ns=round(begin_ms * parse.MS),
            )
            for index, job in enumerate(jobs)
        )

    def columns(self) -> dict[str, np.ndarray]:
        """Return the time series of all parts, including zero rows for the pauses between parts."""
        import numpy as np

        pieces = []
        ends = [*(part.begin_ms for part in self.parts[1:]), self.pause_end_ms]
        for part, next_ms in zip(self.parts, ends, strict=True):
            columns = part.series.columns()
            columns["end_ns"] += round(part.begin_ms * parse.MS)
            pieces.append(columns)
            if next_ms > part.end_ms:
                pieces.append(_pause(columns, round(next_ms * parse.MS)))
        if len(pieces) == 1:
            return pieces[0]
        return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


def counted_since(before: Counters, after: Counters) -> Counters:
    """Return the counters after a step; flash writes are None if they did not change.

    Some logs count flash writes in units of 10^9 bytes, which a short step does not reach, and some
    drives never update these logs.
    """
    host, flash = (after.since(before)[name] for name in ("host_write_bytes", "nand_write_bytes"))
    return Counters(**{**after, "nand_write_bytes": None}) if host and flash == 0 else after


def _pause(burst: Mapping[str, np.ndarray], end_ns: int) -> dict[str, np.ndarray]:
    """Return rows of zero I/Os up to `end_ns`, for each job and operation in the burst."""
    import numpy as np

    keys = sorted(set(zip(burst["job"].tolist(), burst["operation"].tolist(), strict=True)))
    values = {"end_ns": end_ns, "ios": 0, "bytes": 0}
    rows = {
        name: np.full(len(keys), values.get(name, np.nan), dtype=column.dtype)
        for name, column in burst.items()
        if name not in ("job", "operation")
    }
    return {
        name: rows[name] if name in rows else np.array([key[name == "operation"] for key in keys])
        for name in burst
    }


def _together(name: str, elapsed_ns: int, parts: list[JobResult]) -> JobResult:
    """Return a job's results over all parts."""
    operations: dict[Operation, OperationResult] = {}
    for operation in OPERATIONS:
        results = [job.operations[operation] for job in parts if operation in job.operations]
        if (total := together(results)) is not None:
            operations[operation] = total
    flush = together([job.flush for job in parts if job.flush is not None])
    return JobResult(name, elapsed_ns, operations, flush=flush)


def _job_fraction(job: Job, elapsed_ns: float, ios: int, size: int) -> float:
    """Return the progress towards the nearest end condition: duration, volume or I/O count."""
    parts = []
    if job.duration_ns is not None:
        parts.append((elapsed_ns - job.start_delay_ns - job.ramp_ns) / max(1, job.duration_ns))
    if job.volume_bytes is not None:
        parts.append(size / max(1, job.volume_bytes))
    if job.ios is not None:
        parts.append(ios / max(1, job.ios))
    return min(1.0, max(0.0, *parts)) if parts else 0.0
