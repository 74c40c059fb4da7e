"""The section `steadystate` of fio's JSON: the criterion and its input data.

Rules are those of fio 3.33 (steadystate.c, stat.c): one value for each check interval, the last
window of them, padded with zeros. `criterion` is the largest deviation from the mean,
or the slope of the least-squares line per value, in percent of the mean if the limit is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from writecliff.engines.fiojson_stats import Json, Member

if TYPE_CHECKING:
    import numpy as np

    from writecliff.workload.fiojob.options import FioOptions

_NAMES = {"bandwidth": "bw", "latency": "lat"}
_US = 1000


def steady_state(settings: FioOptions, members: Sequence[Member]) -> Json:
    """Return the section for the jobs of an entry, whose options set `steadystate`."""
    criterion = settings.steadystate
    assert criterion is not None
    name = _NAMES.get(criterion.metric, criterion.metric)
    sign = "%" if criterion.relative else ""
    interval_ns = settings.steadystate_check_interval * _US
    count = settings.steadystate_duration * _US // interval_ns
    ramp_ns = settings.steadystate_ramp_time * _US
    windows = [_values(member, interval_ns, ramp_ns)[-count:] for member in members]
    full = all(len(window) == count for window in windows)
    rates = _summed(windows, count)
    judged = rates[:, ("iops", "bandwidth", "latency").index(criterion.metric)]
    deviation, slope = _deviation_and_slope(judged) if full else (0.0, 0.0)
    value = slope if criterion.slope else deviation
    mean = float(judged.mean())
    reached = (100 * value / mean if mean else 0.0) if criterion.relative else value
    data = {key: [round(rate) for rate in rates[:, column].tolist()]
            for column, key in enumerate(("iops", "bw"))}  # fmt: skip
    return {
        "ss": f"{name}{'_slope' if criterion.slope else ''}:{criterion.limit:f}{sign}",
        "duration": settings.steadystate_duration // 1_000_000,
        "attained": int(all(one.result.ended_by == "steady_state" for one in members)),
        "criterion": f"{reached:f}{sign}",
        "max_deviation": 0.0 if criterion.slope else round(deviation, 6),
        "slope": round(slope, 6) if criterion.slope else 0.0,
        "data": {
            "bw_mean": sum(data["bw"]) // count,
            "iops_mean": sum(data["iops"]) // count,
            **data,
        },
    }


def _values(member: Member, interval_ns: int, ramp_ns: int) -> np.ndarray:
    """Return a row per whole check interval of a job, in order, after `ramp_ns`.

    Columns are I/Os per second, bytes per second and mean latency in ns.
    """
    import numpy as np

    rows = member.step.intervals
    mine = np.flatnonzero(rows["job"] == member.index) if rows else np.empty(0, dtype=np.int64)
    if not len(mine):
        return np.empty((0, 3))
    ends = rows["end_ns"][mine].astype(np.int64) - member.result.began_ns - ramp_ns
    number = -(-ends // interval_ns) - 1
    whole = member.result.elapsed_ns - ramp_ns
    count = max(0, int(whole // interval_ns))
    inside = (number >= 0) & (number < count)
    ios, size = rows["ios"][mine].astype(np.float64), rows["bytes"][mine].astype(np.float64)
    latency = np.nan_to_num(rows["latency_mean_ns"][mine].astype(np.float64)) * ios
    sums = [
        np.bincount(number[inside], weights=column[inside], minlength=count)
        for column in (ios, size, latency)
    ]
    seconds = interval_ns / 1e9
    return np.column_stack((sums[0] / seconds, sums[1] / seconds, sums[2] / np.maximum(sums[0], 1)))


def _summed(windows: Sequence[np.ndarray], count: int) -> np.ndarray:
    """Combine the windows of several jobs, each padded with zeros to `count` values.

    Rates are added; latencies are averaged by I/O.
    """
    import numpy as np

    total = np.zeros((count, 3))
    for window in windows:
        whole = np.zeros((count, 3))
        whole[: len(window)] = window
        total += np.column_stack((whole[:, :2], whole[:, 2] * whole[:, 0]))
    total[:, 2] /= np.maximum(total[:, 0], 1e-9)
    return total


def _deviation_and_slope(values: np.ndarray) -> tuple[float, float]:
    """Return the largest distance from the mean, and the least-squares slope per value."""
    import numpy as np

    mean = float(values.mean())
    times = np.arange(len(values)) - (len(values) - 1) / 2
    slope = float((times * (values - mean)).sum() / (times**2).sum()) if len(values) > 1 else 0.0
    return float(np.abs(values - mean).max()), slope
