"""Four sequential writers with data lifetimes of 1, 10, 33 and 55, and cyclic log theory.

The slide (Samsung, "Multi-stream", Flash Memory Summit 2016) states only the four lifetimes. The
lifetimes can be read in two ways:

* `by-size`: ranges of 1, 10, 33 and 55 parts (99 in all), written at equal rates;
* `by-rate`: equal ranges, written at rates of 1, 1/10, 1/33 and 1/55.

In a single FIFO log, a slot of a class with data fraction s and write fraction r is overwritten
once per s/r capacities written by the host. Each time the log wraps before the overwrite, the slot
is relocated: `A = sum r ceil(s a A / r)`, with a = user / circulating slots. The right side is a
staircase function. Several values of A solve the equation, and the preconditioning determines which
of them a drive reaches.

`reference_waf` is the write amplification of another simulator, without streams. That simulator is
flat and independently written (C, untimed): 4096 reclaim units of 256 slots, 20 capacities to
settle, 10 measured, requests of 4 or 128 KiB. The simulator's figures have three digits. The
simulator's garbage collection is not documented. One of the variants tried reproduces all of that
simulator's figures: whole victims relocated to the unit that the host fills, 4094 circulating
units, and requests that wrap at the end of their range. The guide to streams lists the errors of
the other variants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Literal

from writecliff.parallel import SLOT_BYTES

Reading = Literal["by-size", "by-rate"]
READINGS: tuple[Reading, ...] = ("by-size", "by-rate")
LIFETIMES = (1, 10, 33, 55)
# Upper bound, above the write amplification of any drive with at least 2 % spare space.
_A_MAX = 40.0
_EPSILON = 1e-9
TOLERANCE_PCT = 3.0
REQUESTS = (SLOT_BYTES, 32 * SLOT_BYTES)

# Results by reading and over-provisioning: greedy with requests of 4 and 128 KiB, FIFO (128 KiB).
_WAF: dict[tuple[Reading, float], tuple[float, float, float]] = {
    ("by-size", 0.07): (6.45, 5.32, 7.00),
    ("by-size", 0.127): (3.89, 3.63, 4.75),
    ("by-size", 0.145): (3.73, 3.39, 4.00),
    ("by-size", 0.28): (2.18, 2.16, 2.50),
    ("by-rate", 0.07): (3.03, 3.04, 3.14),
    ("by-rate", 0.127): (2.69, 2.51, 2.83),
    ("by-rate", 0.145): (2.63, 2.40, 2.67),
    ("by-rate", 0.28): (2.17, 1.97, 2.33),
}


@dataclass(frozen=True)
class Writer:
    """A writer's fractions of capacity and writes; each adds up to 1 over all writers."""

    data: float
    writes: float


def writers(reading: Reading) -> tuple[Writer, ...]:
    """Return the four writers, shortest-lived data first."""
    if reading == "by-size":
        total = sum(LIFETIMES)
        return tuple(Writer(life / total, 0.25) for life in LIFETIMES)
    total_rate = sum(1 / life for life in LIFETIMES)
    return tuple(Writer(0.25, 1 / life / total_rate) for life in LIFETIMES)


def describe(reading: Reading) -> str:
    """Describe a reading as text."""
    return {
        "by-size": "ranges of 1 : 10 : 33 : 55, written at equal rates",
        "by-rate": "equal ranges, written at rates of 1 : 1/10 : 1/33 : 1/55",
    }[reading]


def fifo_fixed_points(classes: Sequence[Writer], overprovision: float) -> tuple[float, ...]:
    """Return all stable write amplifications of a FIFO log of these writers, ascending.

    The right side is constant on every step of the staircase, and is a solution if it lies on its
    own step.

    Args:
        classes: The writers.
        overprovision: Over-provisioning, (circulating - user) / user.
    """
    alpha = 1 / (1 + overprovision)
    edges = {0.0}
    for c in classes:
        width = c.writes / (c.data * alpha)
        edges.update(n * width for n in range(1, int(_A_MAX / width) + 2))
    steps = sorted(edge for edge in edges if edge <= _A_MAX)
    points: list[float] = []
    for low, high in pairwise(steps):
        middle = 0.5 * (low + high)
        value = sum(c.writes * ceil(c.data * alpha * middle / c.writes) for c in classes)
        if low - _EPSILON < value <= high + _EPSILON and (
            not points or value - points[-1] > _EPSILON
        ):
            points.append(value)
    return tuple(points)


def reference_waf(
    reading: Reading, overprovision: float, policy: str, request_bytes: int
) -> float | None:
    """Return the other simulator's write amplification with whole victims, or None if unknown."""
    columns = {("greedy", REQUESTS[0]): 0, ("greedy", REQUESTS[1]): 1, ("fifo", REQUESTS[1]): 2}
    row, column = _WAF.get((reading, overprovision)), columns.get((policy, request_bytes))
    return None if row is None or column is None else row[column]
