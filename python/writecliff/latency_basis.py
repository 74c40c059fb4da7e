"""Latency basis, which is the starting point of a latency and selects its histogram.

The I/Os of an open-loop load are due at scheduled times (from a rate, a log with times, or a
model). The latency of such an I/O is counted from the intended arrival time, so that a stall
affects every I/O that it delays. Counting from the issue time instead causes coordinated omission.
The time from issue to completion is the service time, whose figure names contain `service/`, as in
`reads/service/p99.9`. The I/Os of a closed-loop load arrive when they are issued, so response and
service times are equal.

All reports, commands and pages choose the histogram with `histogram_of` only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    from writecliff._native import Histogram

T = TypeVar("T")
Basis = Literal["arrival", "service"]
BASES: tuple[Basis, ...] = ("arrival", "service")
PREFIX = "service/"
BASIS_TEXT = {
    "arrival": "from the intended arrival to completion",
    "service": "service time, from issue to completion",
}
NOT_FROM_ARRIVAL = (
    "not measured from the arrival of I/Os: fio measures from their issue (service/...)"
)


def histogram_of(basis: Basis, *, service: T, response: T, scheduled: bool) -> T:
    """Return `service` or `response`, whichever contains the figures of a basis.

    Args:
        basis: "arrival" for figures without a prefix.
        service: Histogram from issue to completion.
        response: Histogram from the intended arrival to completion, or `None` for closed-loop
            loads, and for engines that do not measure it, such as fio.
        scheduled: `True` if the I/Os have intended arrival times (`Job.is_scheduled`).
    """
    return response if basis == "arrival" and scheduled else service


def merged(histograms: Iterable[Histogram]) -> Histogram | None:
    """Return the sum of the histograms, which are not modified, or `None` if there are none."""
    total: Histogram | None = None
    for histogram in histograms:
        total = total or type(histogram)()
        total.merge(histogram)
    return total


def bases_of(*, scheduled: bool) -> tuple[Basis, ...]:
    """Return the bases whose latencies differ: both if the load is open, else "arrival"."""
    return BASES if scheduled else BASES[:1]


def prefix_of(basis: Basis) -> str:
    """Return the prefix of figure names for a basis: "" or "service/"."""
    return PREFIX if basis == "service" else ""
