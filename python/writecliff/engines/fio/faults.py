"""What went wrong while fio ran, in the user's terms: the drive's state first, then fio's error.

A drive that completes no I/O for some seconds has stalled; the step says so and goes on. One that
completes none for `GIVE_UP_S` does not answer any more, and the run ends: NVMe and SCSI drivers
reset a hung drive or fail its I/Os sooner, but a suspended device mapper device, or multipath
without paths, waits for ever.
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
    """Notices that a target completes no I/O. Call `tick` at least once a second.

    `counts` gives the completed I/Os and those in flight, or None where the kernel does not count:
    then fio's reports are what has to come, every `interval_s`. A load that is `never_idle` stalls
    also while none is in flight, once it has begun: a suspended device mapper holds I/Os back
    before they are counted.
    """

    def __init__(
        self,
        name: str,
        counts: IoCounts,
        interval_s: float,
        clock: Callable[[], float] = time.monotonic,
        *,
        never_idle: bool = False,
    ) -> None:
        self.notes: list[str] = []
        self._name = name
        self._counts = counts
        self._interval_s = interval_s
        self._clock = clock
        self._since = clock()  # that I/Os have been in flight, and none was completed
        self._heard_at = clock()  # of the target or of fio
        self._completed: int | None = None
        self._never_idle = never_idle
        self._begun = False  # I/Os have been completed
        self._waits = False  # for I/Os that were issued

    def reported(self) -> None:
        """A report of fio's has come."""
        self._heard_at = self._clock()
        self.tick()

    def tick(self) -> None:
        """Raises `EngineError` once the target has not answered for `GIVE_UP_S`."""
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
                f"{self._name}: the drive does not answer: no I/O was completed for"
                f" {units.duration(waited_s * 1e9)}"
            )

    def finish(self) -> None:
        """Note a stall at the end of the load; with nothing in flight it was only done."""
        if self._waits:
            self._end_stall()

    def _end_stall(self) -> None:
        if self._completed is not None:
            self._note(self._clock() - self._since)

    def _note(self, stalled_s: float) -> None:
        if stalled_s >= STALL_S:
            self.notes.append(f"{PREFIX}stall: the drive completed no I/O for {stalled_s:.1f} s")


def is_never_idle(workload: Workload) -> bool:
    """Whether all jobs issue I/Os as fast as they are completed, from the beginning to the end."""
    return all(
        job.rate_iops is None
        and job.rate_bytes_per_s is None
        and not (job.think_ns or job.burst_ns or job.start_delay_ns)
        for job in workload.jobs
    )


def io_error(lines: Sequence[str]) -> str | None:
    """The first I/O error among fio's messages, as "write error at byte 4096 (...)"."""
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
    def name(self) -> str: ...

    def trouble(self) -> str | None: ...

    def logged(self) -> list[str]: ...

    def verify(self) -> None: ...


def cause_on(target: Failing, ended: Exit, reason: str) -> str:
    """Why a step failed, in one line, with what the target says of itself."""
    deadline = time.monotonic() + (_SETTLE_S if io_error(ended.lines) else 0.0)
    # I/Os to a drive that is pulled fail a moment before the kernel removes it.
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
    """Why a step failed, in one line.

    `trouble` is what is wrong with the target itself, `reason` why fio failed, `logged` what the
    kernel says.
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
