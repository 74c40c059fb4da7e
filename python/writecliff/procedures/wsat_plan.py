"""What a WSAT run will cost, before it starts: steps, device time and bytes written.

Bounds, not predictions. The lower bounds assume the fastest interface of its kind, the upper ones
the ends that are enabled; what nothing bounds is None.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures.bounds import interface_bytes_per_s
from writecliff.procedures.model import Plan
from writecliff.procedures.pts import beginning
from writecliff.procedures.steady import WINDOW_ROUNDS
from writecliff.workload.model import SECOND_NS

if TYPE_CHECKING:
    from writecliff.procedures.wsat import Wsat


def plan(test: Wsat, identity: DeviceIdentity) -> Plan:
    """Bounds of the run of `test` on the drive `identity`."""
    o = test.options
    rate = interface_bytes_per_s(identity.interface)
    round_s = test.steps_per_round * o.sample_seconds
    ends_min_s, ends_max_s, ends_max_bytes = [], [], []
    if "steady" in o.end:
        ends_min_s.append(WINDOW_ROUNDS * round_s)
        if o.end == ("steady",):
            ends_max_s.append(o.max_rounds * round_s)
    if "capacity" in o.end:
        volume = o.drive_fills * identity.capacity_bytes
        ends_min_s.append(whole_steps_s(volume / rate, o.sample_seconds))
        # The step in which the volume is reached is run to its end.
        ends_max_bytes.append(volume + rate * o.sample_seconds)
    if "time" in o.end:
        limit = whole_steps_s(o.time_hours * 3600, o.sample_seconds)
        ends_min_s.append(limit)
        ends_max_s.append(limit)
    after_s = o.histogram_seconds if o.histogram else 0.0
    seconds_min = min(ends_min_s)
    seconds_max = min(ends_max_s) if ends_max_s else None
    if seconds_max is not None:
        ends_max_bytes.append(seconds_max * rate)
    bytes_max = math.ceil(min(ends_max_bytes) + after_s * rate) if ends_max_bytes else None
    after = 1 if o.histogram else 0
    return Plan(
        title=f"{test.title}, {test.edition}",
        phases=tuple(test.phases(identity)),
        steps_min=round(seconds_min / o.sample_seconds) + after,
        steps_max=None if seconds_max is None else round(seconds_max / o.sample_seconds) + after,
        device_time_min_ns=round((seconds_min + after_s) * SECOND_NS),
        device_time_max_ns=(
            None if seconds_max is None else round((seconds_max + after_s) * SECOND_NS)
        ),
        write_bytes_min=0,
        write_bytes_max=bytes_max,
        drive_fills_max=None if bytes_max is None else bytes_max / identity.capacity_bytes,
        deviations=test.deviations(),
    )


def whole_steps_s(seconds: float, sample_seconds: float) -> float:
    """`seconds` rounded up to whole samples, at least one."""
    return max(1, math.ceil(seconds / sample_seconds - 1e-9)) * sample_seconds


def phases(test: Wsat, identity: DeviceIdentity) -> tuple[str, ...]:
    o = test.options
    ends = " or ".join(end.text for end in test.ends(identity))
    phases = [
        *beginning(o),
        f"{test.stimulus.words}, TC {o.threads} / QD {o.queue_depth}, in steps of "
        f"{o.sample_seconds:g} s",
        f"one step in {test.steps_per_round}, the last of a round, is a steady-state sample",
        f"until {ends}, whichever comes first" if " or " in ends else f"until {ends}",
    ]
    if o.histogram:
        phases.append(f"response-time histogram, {o.histogram_seconds:g} s")
    return tuple(phases)
