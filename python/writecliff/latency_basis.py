"""The basis of a latency: from when it counts, and which histogram that is.

The I/Os of an open load are due at times of their own (a rate, a log with times, a model). Their
latency counts from this intended arrival, so that a stall shows in every I/O that it delays.
Counting from issue instead is known as coordinated omission. Time from issue is the service time:
figures of it have `service/` before their name, as in `reads/service/p99.9`. I/Os of a closed load
arrive when they are issued, so both are the same.

Every report, command and page asks `histogram_of`; nothing else decides.
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
    """Return the latencies that figures of a basis are read from, in the form that they are given.

    Args:
        basis: "arrival" for figures without a prefix.
        service: From issue to completion.
        response: From the intended arrival; None if the engine does not measure it, as fio does
            not. Closed loads have none.
        scheduled: `True` if the I/Os have intended arrivals (`Job.is_scheduled`).
    """
    return response if basis == "arrival" and scheduled else service


def merged(histograms: Iterable[Histogram]) -> Histogram | None:
    """Return one histogram of all; None if there is none. The given ones stay as they are."""
    total: Histogram | None = None
    for histogram in histograms:
        total = total or type(histogram)()
        total.merge(histogram)
    return total


def bases_of(*, scheduled: bool) -> tuple[Basis, ...]:
    """Return the bases whose latencies differ: both of an open load, "arrival" of a closed one."""
    return BASES if scheduled else BASES[:1]


def prefix_of(basis: Basis) -> str:
    """Return what precedes the names of figures of a basis: "" or "service/"."""
    return PREFIX if basis == "service" else ""
