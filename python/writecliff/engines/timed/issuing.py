"""Follows a native issuer to its end, and says how far it kept to its times."""

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
"""Called ten times a second with what the issuer says of itself, and when the last I/O is due."""

LATE_NS = 50_000  # p99 of what a timed load should keep
LENGTH_PCT = 0.1
_TICK_S = 0.1
_ABANDON_S = 2.0  # for the thread to see that it is given up
_GIVE_UP_S = 5.0  # for I/Os in flight of a drive that does not answer


def not_watched(live: Mapping[str, int], due_ns: int) -> None:
    """A `TraceHook` that shows nothing."""


class PlannedTrace(Protocol):
    """What a trace asks of a target."""

    @property
    def writes(self) -> bool: ...
    @property
    def due_ns(self) -> int: ...


P = TypeVar("P", bound=PlannedTrace)


class TraceToIssue(Protocol[P]):
    """A trace that is issued to a target; `writecliff.replay.timed_trace` has one."""

    def plan(self, target: Target) -> P: ...
    def issue(
        self, target: Target, plan: P, on_tick: Callable[[Mapping[str, int]], None]
    ) -> TraceIssued: ...


@dataclass
class TraceIssued:
    """What became of a trace."""

    ios: Mapping[str, int]  # issued, by operation
    timing: Mapping[str, Any]  # of `timing`
    elapsed_ns: int
    # Of reads, writes and trims: `ios`, `bytes`, `service`, `response` (from when it was due).
    operations: Mapping[str, Mapping[str, Any]]
    service: Mapping[str, _native.Histogram]  # service times by operation, flushes included
    failure: tuple[str, int, int, int, int] | None
    notes: list[str] = field(default_factory=list)


@contextmanager
def opened(target: Target, *, writes: bool) -> Iterator[int]:
    """A descriptor of the target for direct I/O. Raises TargetError."""
    flags = (os.O_RDWR if writes else os.O_RDONLY) | os.O_DIRECT | os.O_CLOEXEC
    try:
        fd = os.open(target.filename, flags)
    except OSError as error:
        reason = (error.strerror or "cannot be opened").lower()
        hint = "its file system has no direct I/O" if target.is_file else None
        raise TargetError(f"{target.filename}: {reason}", hint=hint) from error
    try:
        yield fd
    finally:
        os.close(fd)


def follow(issuer: _native.Issuer, on_tick: Callable[[], None] = lambda: None) -> dict[str, object]:
    """Wait for the end of an issuer that has begun; its results. `on_tick` is called ten times a
    second. If it fails, or on Ctrl-C, no more I/Os are issued. Raises EngineError: io_uring.
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
    """Issue no more; wait a while for what is in flight."""
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
    """The results of an issuer that is done. Raises EngineError."""
    try:
        return issuer.finish()
    except OSError as error:
        raise EngineError(
            f"the kernel refuses timed I/O: io_uring: {error.strerror or error}",
            hint="it may be switched off: sysctl kernel.io_uring_disabled",
        ) from error


def failure_text(name: str, failure: tuple[str, int, int, int, int]) -> str:
    """Why an I/O failed, in a sentence."""
    operation, offset, length, errno, moved = failure
    reason = os.strerror(errno) if errno else f"only {moved} bytes of it were transferred"
    return f"{name}: {operation} error at byte {offset} (of {units.size(length)}): {reason}"


def timing(raw: Mapping[str, Any]) -> dict[str, Any]:
    """How far the issuer kept to its times, as plain values: `lateness_ns` (mean, p50, p99, p99_9,
    max; from when an I/O was due until it was issued), `waited` (I/Os that had to wait for others,
    by the depth of their job), `left` (never issued), `intended_ns` and `length_ns` (from the begin
    to the last I/O: when it was due, and when it was issued), `length_error_pct`.
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


def timing_texts(found: Mapping[str, Any]) -> list[str]:
    """What the user must know of it: always how late I/Os were, then what is wrong."""
    late = found["lateness_ns"]
    p99 = late["p99"] if late["p99"] is not None else late["max"]
    texts = [
        f"timed I/O: issued {units.latency(p99)} after their times or sooner (99 %), "
        f"{units.latency(late['max'])} at most; {found['length_error_pct']:+.3f} % in length"
    ]
    if found["left"]:
        texts.append(
            f"timed I/O: {found['left']:,} I/Os were due and never issued: the drive did not keep "
            "up"
        )
    elif found["waited"]:
        texts.append(
            f"timed I/O: {found['waited']:,} I/Os waited for others before they were issued: the "
            "drive did not keep up with the queue depth of the job"
        )
    elif (p99 or 0) > LATE_NS or abs(found["length_error_pct"]) > LENGTH_PCT:
        texts.append("timed I/O: the machine was too busy to issue all I/Os at their times")
    return texts
