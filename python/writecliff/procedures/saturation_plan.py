"""What the rounds of a test of saturation cost at least and at most, by the enabled ends."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures.model import Bounds
from writecliff.procedures.steady import WINDOW_ROUNDS

if TYPE_CHECKING:
    from writecliff.procedures.bounds import Speeds
    from writecliff.procedures.saturation import Saturation
    from writecliff.workload.model import Workload


def bounds(
    test: Saturation[Any], identity: DeviceIdentity, load: Workload, speeds: Speeds
) -> tuple[Bounds, Bounds]:
    """Least and most of all rounds, whose steps are `load`."""
    o, rate = test.options, speeds.writes(load)
    round_s = test.steps_per_round * o.sample_seconds
    ends_min_s, ends_max_s, ends_max_bytes = [], [], []
    if "steady" in o.end:
        ends_min_s.append(WINDOW_ROUNDS * round_s)
        if o.end == ("steady",):
            ends_max_s.append(o.max_rounds * round_s)
    if "capacity" in o.end and rate:
        volume = o.drive_fills * identity.capacity_bytes
        ends_min_s.append(whole_steps_s(volume / rate, o.sample_seconds))
        # The step that reaches the volume runs to its end.
        ends_max_bytes.append(volume + rate * o.sample_seconds)
    if "time" in o.end:
        limit = whole_steps_s(o.time_hours * 3600, o.sample_seconds)
        ends_min_s.append(limit)
        ends_max_s.append(limit)
    low_s, high_s = min(ends_min_s), min(ends_max_s, default=None)
    if high_s is not None:
        ends_max_bytes.append(high_s * rate)
    low = Bounds(round(low_s / o.sample_seconds), low_s, 0.0)
    steps = None if high_s is None else round(high_s / o.sample_seconds)
    return low, Bounds(steps, high_s, min(ends_max_bytes, default=None))


def whole_steps_s(seconds: float, sample_seconds: float) -> float:
    """`seconds` rounded up to whole samples, at least one."""
    return max(1, math.ceil(seconds / sample_seconds - 1e-9)) * sample_seconds
