"""Conversion of fio's measured end conditions: steadystate, latency_target and rate_min.

fio 3.42: steadystate.c, io_u.c (`lat_target_check`), backend.c (`__check_min_rate`).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Literal

from writecliff.workload.fiojob import values as read
from writecliff.workload.fiojob.values import DIRECTIONS, Context, FioValueError
from writecliff.workload.model import LatencyTarget, LeastRate, SteadyEnd

_US = 1000
_METRICS: dict[str, Literal["iops", "bandwidth", "latency"]] = {
    "iops": "iops",
    "bw": "bandwidth",
    "lat": "latency",
}


@dataclass(frozen=True)
class SteadyCriterion:
    """Criterion of `steadystate`, where `limit` is in % of the mean, IOPS, bytes/s or ns."""

    metric: Literal["iops", "bandwidth", "latency"]
    slope: bool
    limit: float
    relative: bool


def steady_criterion(text: str, context: Context) -> SteadyCriterion:
    """Read a criterion: `iops:2%`, `bw_slope:0.1%`, `lat:50us`.

    Raises:
        FioValueError: If the criterion is invalid.
    """
    what, _, limit = text.strip().partition(":")
    name, _, slope = what.partition("_")
    if name not in _METRICS or slope not in ("", "slope"):
        raise FioValueError(
            f"the steady-state criterion '{what}' is unknown",
            "use iops, bw or lat, or append _slope, as in iops_slope",
        )
    if not limit.strip():
        raise FioValueError(f"'{text}' has no limit", "specify a limit, for example iops:2%")
    relative = limit.strip().endswith("%")
    value = _limit(name, limit.strip(), relative, context)
    if not (math.isfinite(value) and value > 0):
        raise FioValueError(f"the limit {limit} must be above 0")
    return SteadyCriterion(_METRICS[name], bool(slope), value, relative)


def _limit(name: str, text: str, relative: bool, context: Context) -> float:
    if name == "bw" and not relative:
        return float(read.number(text, context))
    if name == "lat" and not relative:
        match = re.fullmatch(r"(\d+)\s*ns|(\d+)", text)
        if match:
            return float(match.group(1) or match.group(2))
        return float(read.time_us("us")(text, context) * _US)
    try:
        return float(text.rstrip("% "))
    except ValueError:
        raise FioValueError(f"'{text}' is not a number") from None


def ends_by_result(settings: object, used: tuple[str, ...]) -> dict[str, object]:
    """Return a thread's `Job` fields; raise ConfigError if options contradict each other."""
    return {
        "until_steady": _until_steady(settings),
        "latency_target": _latency_target(settings),
        "least_rates": _least_rates(settings, used),
    }


def interval_ns(settings: Any) -> int | None:
    """Return the longest interval that suits all criteria, or `None` for any interval."""
    if settings.latency_target:
        # The window has several intervals, because one interval is skipped after each depth change.
        return int(max(settings.latency_window * _US // 4, 1))
    times = []
    if settings.steadystate is not None and settings.steadystate_duration:
        times.append(settings.steadystate_check_interval * _US)
    if any(settings.rate_min.items()) or any(settings.rate_iops_min.items()):
        times.append(settings.rate_cycle * 1_000_000)
    return math.gcd(*times) if times else None


def _until_steady(settings: Any) -> SteadyEnd | None:
    criterion, window_us = settings.steadystate, settings.steadystate_duration
    if criterion is None or not window_us:
        if criterion is not None:
            settings.note("steadystate has no effect without steadystate_duration, as in fio")
        return None
    check_us = settings.steadystate_check_interval
    if not check_us or window_us < 2 * check_us:
        raise settings.error(
            "steadystate_duration steadystate_check_interval",
            "steadystate_duration is shorter than two check intervals",
            "use a longer steadystate_duration",
        )
    return SteadyEnd(
        metric=criterion.metric,
        limit=criterion.limit,
        relative=criterion.relative,
        slope=criterion.slope,
        window_ns=window_us * _US,
        check_ns=check_us * _US,
        ramp_ns=settings.steadystate_ramp_time * _US,
    )


def _latency_target(settings: Any) -> LatencyTarget | None:
    target_us = settings.latency_target
    if not target_us:
        return None
    if settings.latency_window < 4:
        raise settings.error(
            "latency_window latency_target",
            "latency_target requires a latency_window of at least 4 us",
            "specify a longer window, for example latency_window=5s",
        )
    percentile = settings.latency_percentile[0]
    if len(settings.latency_percentile) > 1 or not 0 < percentile <= 100:
        raise settings.error(
            "latency_percentile", "latency_percentile must be one number above 0 and at most 100"
        )
    interval = interval_ns(settings) or 1
    return LatencyTarget(
        latency_ns=target_us * _US,
        percentile=percentile,
        window_ns=settings.latency_window * _US // interval * interval,
        keeps_running=settings.latency_run,
    )


def _least_rates(settings: Any, used: tuple[str, ...]) -> tuple[LeastRate, ...]:
    cycle_ns = settings.rate_cycle * 1_000_000
    rates = []
    for operation in used:
        number: Any = DIRECTIONS.index(operation)
        if least := settings.rate_min.of(operation):
            rates.append(LeastRate(operation=number, bytes_per_s=float(least), cycle_ns=cycle_ns))
        elif least := settings.rate_iops_min.of(operation):
            rates.append(LeastRate(operation=number, iops=float(least), cycle_ns=cycle_ns))
    return tuple(rates)
