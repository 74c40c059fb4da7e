"""Control of a native issuer, including a report on the issuer's timing accuracy."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from writecliff import units
from writecliff.errors import EngineError, TargetError

if TYPE_CHECKING:
    from writecliff import _native
    from writecliff.engines.fio.command import Target

TraceHook = Callable[[Mapping[str, int], int], None]
"""Called ten times a second with the issuer's counts, and the time at which the last I/O is due."""

LATE_NS = 50_000  # Lateness limit (p99) for a timed load, in ns.
LENGTH_PCT = 0.1
_TICK_S = 0.1
_ABANDON_S = 2.0  # Time for the thread to detect that it was abandoned.
_GIVE_UP_S = 5.0  # Time for I/Os in flight on a drive that does not respond.


def not_watched(live: Mapping[str, int], due_ns: int) -> None:
    """Ignore a trace's progress (a `TraceHook` that displays nothing)."""


class PlannedTrace(Protocol):
    """Requirements of a trace on its target."""

    @property
    def writes(self) -> bool:
        """True if the trace writes or trims."""
        ...

    @property
    def due_ns(self) -> int:
        """Time at which the last I/O is due, relative to the start."""
        ...


P = TypeVar("P", bound=PlannedTrace)


class TraceToIssue(Protocol[P]):
    """A trace that can be issued to a target (implemented in `writecliff.replay.timed_trace`)."""

    def plan(self, target: Target) -> P:
        """Check the trace against the target."""
        ...

    def issue(
        self, target: Target, plan: P, on_tick: Callable[[Mapping[str, int]], None]
    ) -> TraceIssued:
        """Issue the entire trace, where `on_tick` receives the issuer's counts."""
        ...


@dataclass
class TraceIssued:
    """Measurements of an issued trace."""

    ios: Mapping[str, int]  # Number of issued I/Os by operation.
    timing: Mapping[str, Any]  # Result of `timing()`.
    elapsed_ns: int
    # Figures for reads, writes and trims. The columns are `ios`, `bytes`, `service` and `response`
    # (measured from the intended time).
    operations: Mapping[str, Mapping[str, Any]]
    service: Mapping[str, _native.Histogram]  # Service times by operation, including flushes.
    failure: tuple[str, int, int, int, int] | None
    notes: list[str] = field(default_factory=list)


@contextmanager
def opened(target: Target, *, writes: bool) -> Iterator[int]:
    """Open the target for direct I/O, and yield the file descriptor.

    Raises:
        TargetError: If the target cannot be opened for direct I/O.
    """
    flags = (os.O_RDWR if writes else os.O_RDONLY) | os.O_DIRECT | os.O_CLOEXEC
    try:
        fd = os.open(target.filename, flags)
    except OSError as error:
        reason = (error.strerror or "cannot be opened").lower()
        hint = "the target's file system may not support direct I/O" if target.is_file else None
        raise TargetError(f"{target.filename}: {reason}", hint=hint) from error
    try:
        yield fd
    finally:
        os.close(fd)


def follow(issuer: _native.Issuer, on_tick: Callable[[], None] = lambda: None) -> dict[str, object]:
    """Wait for a started issuer and return its results.

    `on_tick` is called ten times a second. If `on_tick` raises an exception or the user presses
    Ctrl-C, no more I/Os are issued.

    Raises:
        EngineError: If io_uring is not available.
    """
    try:
        while not issuer.is_done():
            time.sleep(_TICK_S)
            on_tick()
    except BaseException:
        stopped(issuer)
        raise
    return finished(issuer)


def stopped(issuer: _native.Issuer) -> None:
    """Stop issuing, and wait a few seconds for the I/Os in flight."""
    issuer.stop()
    deadline = time.monotonic() + _GIVE_UP_S
    while not issuer.is_done() and time.monotonic() < deadline:
        time.sleep(_TICK_S / 10)
    if not issuer.is_done():
        issuer.abandon()
        deadline = time.monotonic() + _ABANDON_S
        while not issuer.is_done() and time.monotonic() < deadline:
            time.sleep(_TICK_S / 10)


def finished(issuer: _native.Issuer) -> dict[str, object]:
    """Return the results of a completed issuer.

    Raises:
        EngineError: If io_uring is not available.
    """
    try:
        return issuer.finish()
    except OSError as error:
        raise EngineError(
            f"the kernel rejected io_uring, which timed I/O requires: {error.strerror or error}",
            hint="check `sysctl kernel.io_uring_disabled`, which must be 0",
        ) from error


def failure_text(name: str, failure: tuple[str, int, int, int, int]) -> str:
    """Describe a failed I/O in a sentence."""
    operation, offset, length, errno, moved = failure
    reason = os.strerror(errno) if errno else f"only {moved} bytes were transferred"
    return f"{name}: {operation} error at byte {offset} (of {units.size(length)}): {reason}"


def timing(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the accuracy of the issuer's timing as plain values.

    Returns:
        `lateness_ns`: mean, p50, p99, p99_9 and max of the time from an I/O's due time to its
        submission. `waited`: number of I/Os that the job's queue depth delayed. `left`: number of
        I/Os that were not issued. `intended_ns` and `length_ns`: time from the start until the last
        I/O was due and until it was issued, and their relative difference `length_error_pct`.
        `in_flight_max`: maximum number of outstanding I/Os.
    """
    late, intended = raw["lateness"], raw["intended_ns"]
    quantiles = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999}
    return {
        "lateness_ns": {
            "mean": late.mean_ns,
            **{name: late.quantile(q).value_ns for name, q in quantiles.items()},
            "max": late.max_ns,
        },
        "waited": raw["waited"],
        "left": raw["left"],
        "intended_ns": intended,
        "length_ns": raw["length_ns"],
        "length_error_pct": 100.0 * (raw["length_ns"] - intended) / intended if intended else 0.0,
        "in_flight_max": raw["in_flight_max"],
    }


def timing_texts(figures: Mapping[str, Any]) -> list[str]:
    """Return timing remarks for the user: the lateness of I/Os, then any problem."""
    late = figures["lateness_ns"]
    p99 = late["p99"] if late["p99"] is not None else late["max"]
    texts = [
        f"timed I/O: 99 % of the I/Os were issued at most {units.latency(p99)} late, all at most "
        f"{units.latency(late['max'])} late; {figures['length_error_pct']:+.3f} % in length"
    ]
    if figures["left"]:
        texts.append(
            f"timed I/O: {figures['left']:,} I/Os were not issued: the drive did not keep up"
        )
    elif figures["waited"]:
        texts.append(
            f"timed I/O: {figures['waited']:,} I/Os were issued late: the drive did not keep up at "
            "the queue depth of the job"
        )
    elif (p99 or 0) > LATE_NS or abs(figures["length_error_pct"]) > LENGTH_PCT:
        texts.append("timed I/O: the machine was too busy to issue all I/Os at their times")
    return texts
