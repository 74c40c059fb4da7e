"""The result of one workload: the table for people and the stable JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.cli.output import (
    factor_text,
    latency_text,
    table,
)

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.engines.base import OperationResult, StepResult
    from writecliff.engines.data_placement_status import DataPlacementStatus
    from writecliff.workload.model import Workload

QUANTILES = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999))


def result_table(result: StepResult) -> str:
    """A row per job and operation; service times, and response times of rate-driven jobs."""
    header = ("job", "operation", "IOPS", "MB/s", "mean", *(name for name, _ in QUANTILES), "max")
    rows = []
    for job in result.jobs:
        seconds = job.elapsed_ns / 1e9
        for operation, measured in job.operations.items():
            rates = ("-", "-")
            if seconds:
                megabytes = measured.bytes / seconds / 1e6
                rates = (units.number(measured.ios / seconds), f"{megabytes:,.1f}")
            rows.append((job.name, operation, *rates, *_latency_cells(measured.service)))
            if measured.response is not None:
                cells = _latency_cells(measured.response)
                rows.append((job.name, f"{operation} (response)", "", "", *cells))
    lines = [table(header, rows, "llrrrrrrrr"), ""]
    waf = result.waf
    ios, size = result.total()
    lines.append(
        f"{units.number(ios)} I/Os, {units.size(size)} in {units.duration(result.elapsed_ns)} "
        f"of device time; WAF {factor_text(waf)}"
    )
    if (power := _power(result)) is not None:
        watts, per_io_j = power
        each = "" if per_io_j is None else f", {per_io_j * 1e6:,.1f} µJ per I/O"
        lines.append(f"{watts:.2f} W{each}")
    if spent := causes_table(result):
        lines += ["", spent]
    if result.data_placement is not None:
        lines += data_placement_lines(*result.data_placement)
    return "\n".join(lines)


def _power(result: StepResult) -> tuple[float, float | None] | None:
    """Mean watts of a step, and joules per I/O; None if the drive does not report its energy."""
    joules = result.counted.energy_j
    if joules is None or not result.elapsed_ns:
        return None
    ios, _ = result.total()
    return joules / (result.elapsed_ns / 1e9), joules / ios if ios else None


def _latency_cells(histogram: Histogram) -> list[str]:
    quantiles = [histogram.quantile(q).value_ns for _, q in QUANTILES]
    return [latency_text(v) for v in (histogram.mean_ns, *quantiles, histogram.max_ns)]


def result_mapping(workload: Workload, result: StepResult) -> dict[str, Any]:
    """The JSON of `writecliff run --json`: times in ns, sizes in bytes, unknown values null."""
    from writecliff.report.latency import latency_mapping

    watts, per_io_j = _power(result) or (None, None)
    return {
        "workload": workload.name,
        "seed": workload.seed,
        "elapsed_ns": result.elapsed_ns,
        "waf": result.waf,
        "watts": watts,
        "joules_per_io": per_io_j,
        "counters": dict(result.counted),
        "jobs": [
            {
                "name": job.name,
                "elapsed_ns": job.elapsed_ns,
                "operations": {
                    name: {
                        "ios": op.ios,
                        "bytes": op.bytes,
                        "iops": op.ios / (job.elapsed_ns / 1e9) if job.elapsed_ns else None,
                        "bytes_per_s": op.bytes / (job.elapsed_ns / 1e9)
                        if job.elapsed_ns
                        else None,
                        "service": latency_mapping(op.service),
                        "response": None if op.response is None else latency_mapping(op.response),
                        "causes": _causes(op),
                    }
                    for name, op in job.operations.items()
                },
            }
            for job in result.jobs
        ],
        "data_placement": _data_placement(result),
        "warnings": list(result.warnings),
    }


def _causes(measured: OperationResult) -> list[dict[str, Any]] | None:
    """What latency was spent on, by band of percentiles; None if it was not recorded."""
    if measured.causes is None:
        return None
    return [band.mapping() for band in measured.causes.bands()]


def causes_table(result: StepResult) -> str:
    """A row per operation and band of percentiles, with the shares of its largest causes; empty if
    they were not recorded."""
    rows = []
    for job in result.jobs:
        for operation, measured in job.operations.items():
            bands = () if measured.causes is None else measured.causes.bands()
            for band in bands:
                named = ", ".join(f"{name} {share:.0f} %" for name, share in band.largest())
                rows.append((job.name, operation, band.name, latency_text(band.latency_ns), named))
    header = ("job", "operation", "band", "mean", "spent on")
    return table(header, rows, "lllrl") if rows else ""


def _data_placement(result: StepResult) -> dict[str, Any] | None:
    """The interface after a step, with what it counted in the step; None without one."""
    if result.data_placement is None:
        return None
    before, after = result.data_placement
    return after.mapping(before)


def data_placement_lines(before: DataPlacementStatus, after: DataPlacementStatus) -> list[str]:
    """The interface after a step as a line or two of text."""
    lines = []
    if after.interface == "nvme-fdp":
        figures = after.mapping(before)
        sizes = (
            f"{name.upper()} {units.size(figures[f'{name}_bytes'])}"
            for name in ("hbmw", "mbmw", "mbe")
        )
        lines.append(f"FDP: {', '.join(sizes)}; {after.limit} placement handles")
        events = after.events_since(before)
        seen = [f"{name} {units.number(count)}" for name, count in events.items() if count]
        if seen:
            kept = len(after.log_since(before))
            log = f"; {kept} of them in the log (--json has it)" if kept else ""
            lines.append(f"events: {', '.join(seen)}{log}")
    elif after.open_streams or (after.overflow_bytes or 0) > (before.overflow_bytes or 0):
        named = ", ".join(map(str, after.open_streams)) or "none"
        lines.append(f"streams open: {named} (of {after.limit} beside the default one)")
    released = (after.streams_released or 0) - (before.streams_released or 0)
    if released:
        lines.append(f"streams released by the drive to make room: {units.number(released)}")
    return lines
