"""Convert measurements to the store's records and to the rows of a history.

Quantiles are computed from the merged histograms of all jobs and operations in the step, so each
quantile describes all I/Os instead of averaging quantiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from writecliff.procedures.model import Step, StepPosition, StepRow
from writecliff.store.record import RoundRecord
from writecliff.workload.model import access_of

if TYPE_CHECKING:
    from writecliff.engines.base import StepResult

# Columns that procedures add to the `rounds` table of the store.
_QUANTILES = {"latency_p999_ns": 0.999, "latency_p9999_ns": 0.9999, "latency_p99999_ns": 0.99999}
EXTRA_COLUMNS = (*_QUANTILES, "drive_fills")
FIGURE_PREFIX = "figure_"  # Prefix of columns for a procedure's additional figures.
_COLUMNS = tuple(item.name for item in fields(StepRow) if item.name not in ("figures", "role"))


def record_of(
    result: StepResult,
    position: StepPosition,
    step: Step,
    *,
    started_ns: int,
    written_before_bytes: int,
    capacity_bytes: int,
) -> RoundRecord:
    """Return the record of a step.

    Args:
        result: The measurement.
        position: Position of the step in the run.
        step: The step.
        started_ns: Start of the step, in device time since the start of the rounds.
        written_before_bytes: Bytes written between the purge and the step.
        capacity_bytes: User capacity, for drive fills.
    """
    total = written_before_bytes + result.written_bytes
    latency = result.service()
    measured = latency is not None and latency.count
    figures = step.figures(result) if step.figures is not None else {}
    return RoundRecord(
        **position._asdict(),
        label=step.name,
        access=access_of(step.workload),
        started_ns=started_ns,
        elapsed_ns=result.elapsed_ns,
        result=result if step.batches else replace(result, batches={}),
        sample=step.sample,
        host_write_bytes_total=total,
        waf=result.waf,
        extra={
            **{
                name: latency.quantile(q).value_ns if latency is not None and measured else None
                for name, q in _QUANTILES.items()
            },
            "drive_fills": total / capacity_bytes,
            **{f"{FIGURE_PREFIX}{name}": float(value) for name, value in figures.items()},
        },
    )


def row_of(columns: Mapping[str, Any]) -> StepRow:
    """Convert a (stored or pending) row of the table `rounds` for a history."""
    figures = {
        name.removeprefix(FIGURE_PREFIX): value
        for name, value in columns.items()
        if name.startswith(FIGURE_PREFIX) and value is not None
    }
    return StepRow(**{name: columns[name] for name in _COLUMNS}, figures=figures)
