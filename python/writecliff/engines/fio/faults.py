"""Detection of stalls and description of failures during a fio run.

A drive that completes no I/O for several seconds has stalled, and the step continues with a note.
If the drive completes no I/O for `GIVE_UP_S`, the run fails. NVMe and SCSI drivers reset a hung
drive or fail its I/Os sooner, but a suspended device mapper device, or a multipath device whose
paths are all down, waits forever.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from writecliff import units
from writecliff.engines.disturbance import PREFIX
from writecliff.engines.fio.process import Exit
from writecliff.errors import EngineError, TargetError
from writecliff.workload.model import Workload

STALL_S = 5.0
GIVE_UP_S = 600.0
_SETTLE_S = 2.0
_IO_ERROR = re.compile(
    r"io_u error on file \S+: (?P<error>[^:]+): (?P<operation>\w+)"
    r" offset=(?P<offset>\d+), buflen=(?P<length>\d+)"
)

IoCounts = Callable[[], tuple[int, int] | None]


class StallWatch:
    """Detector of target stalls, whose `tick` must be called at least once a second."""

    def __init__(
        self,
        name: str,
        counts: IoCounts,
        interval_s: float,
        clock: Callable[[], float] = time.monotonic,
        *,
        never_idle: bool = False,
    ) -> None:
        """Start watching a target for stalls.

        Args:
            name: Target name, for use in errors.
            counts: Callback that returns the numbers of completed and in-flight I/Os, or None if
                the kernel does not count them. If the kernel does not count I/Os, fio must report
                every `interval_s`.
            interval_s: Time between fio reports in seconds.
            clock: Monotonic clock in seconds.
            never_idle: `True` if the load always has I/Os outstanding. Such a load can also stall
                with no I/O in flight, because a suspended device mapper delays I/Os before they are
                counted.
        """
        self.notes: list[str] = []
        self._name = name
        self._counts = counts
        self._interval_s = interval_s
        self._clock = clock
        self._since = clock()  # Start of the period with I/Os in flight but no completions.
        self._heard_at = clock()  # Time of the last activity of the target or of fio.
        self._completed: int | None = None
        self._never_idle = never_idle
        self._begun = False  # `True` once an I/O has completed.
        self._waits = False  # `True` while I/Os are in flight.

    def reported(self) -> None:
        """Record the arrival of a fio report."""
        self._heard_at = self._clock()
        self.tick()

    def tick(self) -> None:
        """Check for a stall.

        Raises:
            EngineError: If the target has completed no I/O for `GIVE_UP_S`.
        """
        now = self._clock()
        counts = self._counts()
        waited_s = 0.0
        if counts is not None:
            completed, in_flight = counts
            moves = completed != self._completed
            if moves:
                self._heard_at = now
            self._begun |= moves and self._completed is not None
            held = bool(in_flight) or (self._never_idle and self._begun)
            if moves or not held:
                self._end_stall()
                self._completed, self._since = completed, now
            self._waits = bool(in_flight)
            waited_s = now - self._since
        waited_s = max(waited_s, now - self._heard_at - self._interval_s)
        if waited_s >= GIVE_UP_S:
            self._note(waited_s)
            raise EngineError(
                f"{self._name}: the drive does not respond: no I/O was completed for"
                f" {units.duration(waited_s * 1e9)}"
            )

    def finish(self) -> None:
        """Record a stall at the end of the load if I/Os are in flight."""
        if self._waits:
            self._end_stall()

    def _end_stall(self) -> None:
        if self._completed is not None:
            self._note(self._clock() - self._since)

    def _note(self, stalled_s: float) -> None:
        if stalled_s >= STALL_S:
            self.notes.append(f"{PREFIX}stall: the drive completed no I/O for {stalled_s:.1f} s")


def is_never_idle(workload: Workload) -> bool:
    """Return True if all jobs have outstanding I/Os at all times."""
    return all(
        job.rate_iops is None
        and job.rate_bytes_per_s is None
        and not (job.think_ns or job.burst_ns or job.start_delay_ns)
        for job in workload.jobs
    )


def io_error(lines: Sequence[str]) -> str | None:
    """Return the first I/O error in fio's messages, such as "write error at byte 4096 (...)"."""
    for line in lines:
        if match := _IO_ERROR.search(line):
            size = units.size(int(match["length"]))
            return (
                f"{match['operation']} error at byte {match['offset']} (of {size}):"
                f" {match['error']}"
            )
    return None


class Failing(Protocol):
    """A target on which a step has failed."""

    @property
    def name(self) -> str:
        """Target name that the user supplied."""
        ...

    def trouble(self) -> str | None:
        """Return a phrase describing the target's fault, or None if there is none."""
        ...

    def logged(self) -> list[str]:
        """Return kernel messages about the target."""
        ...

    def verify(self) -> None:
        """Raise TargetError if the path no longer refers to the opened target."""
        ...


def cause_on(target: Failing, ended: Exit, reason: str) -> str:
    """Describe in one line why a step failed, including the target's state."""
    deadline = time.monotonic() + (_SETTLE_S if io_error(ended.lines) else 0.0)
    # I/Os to an unplugged drive fail shortly before the kernel removes the device.
    while (trouble := target.trouble()) is None and time.monotonic() < deadline:
        time.sleep(_SETTLE_S / 20)
    text = cause(target.name, trouble, ended, reason, target.logged())
    if trouble is None:
        try:
            target.verify()
        except TargetError as error:
            return f"{error}; {text.removeprefix(f'{target.name}: ')}"
    return text


def cause(name: str, trouble: str | None, ended: Exit, reason: str, logged: Sequence[str]) -> str:
    """Describe in one line why a step failed.

    `trouble` describes a fault of the target, `reason` states why fio failed, and `logged` contains
    kernel messages.
    """
    failed = io_error(ended.lines)
    parts = []
    if trouble:
        parts.append(f"{name}: {trouble}")
    if failed:
        parts.append(failed if trouble else f"{name}: {failed}")
    if not parts or not failed:
        parts.append(f"fio failed: {reason}")
    text = "; ".join(parts)
    return f"{text}; kernel: {logged[0]}" if logged else text
