"""From what an engine measured to a row of the table of results.

Latency figures come from the histograms of the step's jobs, merged over jobs and operations, so
that a quantile is one of all I/Os and never an average of quantiles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from writecliff.procedures.model import Step, StepRow
from writecliff.store.tables import cpu_busy_pct
from writecliff.workload.model import access_of

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.engines.base import StepResult


def merged_service(result: StepResult) -> Histogram | None:
    """All service times of a step in one histogram; None if it has none."""
    parts = [op.service for job in result.jobs for op in job.operations.values()]
    if not parts:
        return None
    whole = type(parts[0])()
    for part in parts:
        whole.merge(part)
    return whole


def _mean_ns(result: StepResult) -> float | None:
    """Mean of all service times, summed as the store does, so that rows compare exactly."""
    parts = [op.service for job in result.jobs for op in job.operations.values()]
    count = sum(part.count for part in parts)
    if not count:
        return None
    return sum((part.mean_ns or 0.0) * part.count for part in parts if part.count) / count


def row_of(
    result: StepResult,
    *,
    phase: str,
    round_number: int,
    number: int,
    step: Step,
    started_ns: int,
    written_before_bytes: int,
    capacity_bytes: int,
) -> StepRow:
    """The row of a step that began `started_ns` into the rounds, with `written_before_bytes`
    written since the purge."""
    ios, size = result.total()
    written = result.written_bytes
    total = written_before_bytes + written
    latency = merged_service(result)
    nines: list[int | None] = [None, None, None]
    if latency is not None and latency.count:
        nines = [latency.quantile(q).value_ns for q in (0.999, 0.9999, 0.99999)]
    return StepRow(
        phase=phase,
        round=round_number,
        step=number,
        label=step.name,
        **vars(access_of(step.workload)),
        started_ns=started_ns,
        elapsed_ns=result.elapsed_ns,
        ios=ios,
        bytes=size,
        read_bytes=result.total("read")[1],
        iops=result.iops(),
        latency_mean_ns=_mean_ns(result),
        latency_p999_ns=nines[0],
        latency_p9999_ns=nines[1],
        latency_p99999_ns=nines[2],
        latency_max_ns=latency.max_ns if latency is not None and latency.count else None,
        host_write_bytes=written,
        host_write_bytes_total=total,
        drive_fills=total / capacity_bytes,
        cpu_busy_pct=cpu_busy_pct(result),
        waf=result.counters_after.write_amplification_since(result.counters_before),
        figures=dict(step.figures(result)) if step.figures is not None else {},
    )
