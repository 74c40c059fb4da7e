"""The metrics of a load by name, from what an engine measured of it.

Rates are in I/Os or 10^6 bytes per second, latencies in ms, `waf` is write amplification, `power`
mean watts. What is of reads or writes alone has `read` or `write` in its name. Where several jobs
share a load (the readers of the messenger), such latencies are averages over the jobs, as the white
paper states them; rates are totals. Metrics that cannot be determined are absent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from writecliff.engines.base import Operation, StepResult
from writecliff.latency_basis import merged

if TYPE_CHECKING:
    import numpy.typing as npt

    from writecliff._native import Histogram

_QUANTILES = {"p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}
_WAYS: tuple[tuple[Operation, int], ...] = (("read", 0), ("write", 1))  # as the intervals have them
_SECOND_NS = 1_000_000_000
_SLOW_SHARE = 0.001  # of the seconds: those beyond the 99.9th percentile


def metrics_of(parts: Sequence[StepResult]) -> dict[str, float]:
    """Metrics over all steps of one load."""
    seconds = sum(part.elapsed_ns for part in parts) / 1e9
    metrics = _rates(parts, sum(part.measured_ns for part in parts) / 1e9)
    whole = [merged(filter(None, (part.service() for part in parts)))]
    metrics |= _latencies(whole, "")
    metrics |= _spread(parts, None, "iops", "")
    for way, number in _WAYS:
        metrics |= _latencies(_by_job(parts, way), f"_{way}")
        metrics |= _spread(parts, number, f"{way}_iops", f"_{way}")
    waf = parts[-1].counters_after.write_amplification_since(parts[0].counters_before)
    if waf is not None:
        metrics["waf"] = waf
    joules = [part.counted.energy_j for part in parts]
    known = [one for one in joules if one is not None]
    if len(known) == len(joules):
        metrics["power"] = sum(known) / seconds
    return metrics


def _rates(parts: Sequence[StepResult], seconds: float) -> dict[str, float]:
    found = {}
    ways: list[tuple[Operation | None, str]] = [(None, "")]
    ways += [(way, f"{way}_") for way, _ in _WAYS]
    for way, prefix in ways:
        totals = [part.total(way) for part in parts]
        found[f"{prefix}iops"] = sum(ios for ios, _ in totals) / seconds
        found[f"{prefix}throughput"] = sum(size for _, size in totals) / seconds / 1e6
    return found


def _by_job(parts: Sequence[StepResult], way: Operation) -> list[Histogram | None]:
    """The service times of each job that has this operation."""
    jobs = zip(*(part.jobs for part in parts), strict=True)
    return [
        merged(one.operations[way].service for one in same if way in one.operations)
        for same in jobs
        if any(way in one.operations for one in same)
    ]


def _latencies(histograms: Sequence[Histogram | None], suffix: str) -> dict[str, float]:
    """Mean, percentiles and maximum, averaged over the histograms."""
    known = [one for one in histograms if one is not None]
    times: dict[str, Sequence[float | None]] = {
        "avg": [one.mean_ns for one in known],
        "max": [one.max_ns for one in known],
        **{name: [one.quantile(q).value_ns for one in known] for name, q in _QUANTILES.items()},
    }
    found = {}
    for name, values in times.items():
        measured = [value for value in values if value is not None]
        if measured:
            found[f"latency_{name}{suffix}"] = fmean(measured) / 1e6
    return found


def _spread(
    parts: Sequence[StepResult], operation: int | None, rate: str, suffix: str
) -> dict[str, float]:
    """Standard deviation of the I/Os of each second, and the I/Os in the 99.9th percentile of the
    seconds over the average (nearest rank: below 1,000 seconds that of the slowest one)."""
    counts = np.concatenate([_per_second(part, operation) for part in parts])
    average = float(counts.mean()) if len(counts) > 1 else 0.0
    if not average:
        return {}
    slow = np.sort(counts)[max(1, math.ceil(_SLOW_SHARE * len(counts))) - 1]
    return {
        f"{rate}_stddev": float(np.std(counts, ddof=1)),
        f"iops_consistency{suffix}": 100 * float(slow) / average,
    }


def _per_second(part: StepResult, operation: int | None) -> npt.NDArray[np.float64]:
    """I/Os of each whole second but the first, which begins with an empty queue."""
    ends = np.asarray(part.intervals["end_ns"])
    ios = np.asarray(part.intervals["ios"], dtype=float)
    wanted = ends % _SECOND_NS == 0
    seconds = len(np.unique(ends[wanted]))
    if operation is not None:
        wanted &= np.asarray(part.intervals["operation"]) == operation
    at = (ends[wanted] // _SECOND_NS - 1).astype(int)
    counts = np.bincount(at, weights=ios[wanted], minlength=seconds)[1:].astype(float)
    return counts
