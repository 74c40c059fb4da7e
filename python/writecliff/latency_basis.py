"""The basis of a latency: its starting point, and the histogram that holds it.

The I/Os of an open load are due at scheduled times (a rate, a log with times, a model). Their
latency counts from this intended arrival, so that a stall shows in every I/O that it delays.
Counting from issue instead is known as coordinated omission. Time from issue is the service time:
figures of it have `service/` before their name, as in `reads/service/p99.9`. I/Os of a closed load
arrive when they are issued, so both are the same.

Every report, command and page chooses the histogram with `histogram_of` alone.
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
    """Return `service` or `response`, from which figures of a basis are read.

    Args:
        basis: "arrival" for figures without a prefix.
        service: From issue to completion.
        response: From the intended arrival; None for closed loads and for engines that do not
            measure it, such as fio.
        scheduled: `True` if the I/Os have intended arrivals (`Job.is_scheduled`).
    """
    return response if basis == "arrival" and scheduled else service


def merged(histograms: Iterable[Histogram]) -> Histogram | None:
    """Return the sum of the histograms, which stay unchanged; None without histograms."""
    total: Histogram | None = None
    for histogram in histograms:
        total = total or type(histogram)()
        total.merge(histogram)
    return total


def bases_of(*, scheduled: bool) -> tuple[Basis, ...]:
    """Return the bases whose latencies differ: both of an open load, "arrival" of a closed one."""
    return BASES if scheduled else BASES[:1]


def prefix_of(basis: Basis) -> str:
    """Return the prefix of the names of a basis's figures: "" or "service/"."""
    return PREFIX if basis == "service" else ""
