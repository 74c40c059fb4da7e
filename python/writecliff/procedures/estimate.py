"""Estimates of a run's cost on a simulated drive, from scaled-down pilot runs.

A pilot run executes the unmodified procedure on the drive at 1/k of its size for 1/k of the time
(`engines/scaled.py`), and stores nothing. A pilot run therefore determines the rounds until steady
state, stops by volume and the loops of every stage without any knowledge of the procedure.

The first pilot run is the smallest. The first pilot run may exceed the budget for all pilot runs,
because a test of many hours on a drive of tens of TB has no smaller pilot run. Each further pilot
run is twice as large, until two pilot runs agree or the next pilot run would exceed the budget. The
error of a scaled-down drive grows with k, because its buffer and the I/Os outstanding at the end of
a step are large relative to the step. Therefore the last two pilot runs are extrapolated to the
scale of the run, which is k = 1 except for quick tests (`scaling.py`), and their difference is part
of the estimate. Real drives have no pilot runs, only the bounds calculated by `bounds.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from writecliff.engines.base import ScalableEngine
from writecliff.procedures.framework import simulate
from writecliff.procedures.model import Estimate, History, Plan, Procedure
from writecliff.procedures.progress import RunProgress
from writecliff.procedures.scaling import largest_io_bytes, possible_scales

if TYPE_CHECKING:
    from writecliff.engines.base import DeviceIdentity, Engine, Progress

BUDGET_S = 8.0  # CPU time of all pilot runs, which does not depend on other load on the machine.
FIRST = 5.0  # Limit for the first pilot run, in budgets.
# Minimum total time of the pilot runs, because small pilot runs may agree on the wrong number of
# rounds.
PATIENCE_S = 3.0
AGREEMENT = 0.005  # Maximum relative difference between two pilot runs that agree.
# Maximum relative difference in rounds between two pilot runs that are extrapolated.
ROUNDS_APART = 0.1
# Shortest step in ns; in shorter steps, single I/Os and the buffer dominate.
SHORTEST_STEP_NS = 10_000_000
GROWTH = 2.2  # Maximum time ratio between a pilot run and one of half its size, with headroom.
SILENCE_S = 2.0  # Time between two progress messages of a pilot run.
STEP_WALL_S = 0.02  # Wall-clock time to store a step, in addition to its simulation time.


class _TooLongError(Exception):
    """The pilot run has exceeded its time limit."""


def _discard(text: str) -> None:
    """Ignore a message."""


class _Deadline(RunProgress):
    """A hook that stops a pilot run at time `at_s`, and periodically reports the remaining time."""

    def __init__(
        self, at_s: float, clock: Callable[[], float], log: Callable[[str], None] = _discard
    ) -> None:
        self._at_s = at_s
        self._clock = clock
        self._log = log
        self._logged_s = clock()

    def step_begin(self, phase: str, round_number: int, step: int, steps: int, name: str) -> None:
        self._check()

    def step_progress(self, progress: Progress) -> None:
        self._check()

    def _check(self) -> None:
        if (now_s := self._clock()) > self._at_s:
            raise _TooLongError
        if now_s >= self._logged_s + SILENCE_S:
            self._logged_s = now_s
            self._log(f"at most {self._at_s - now_s:.0f} s of processor time left")


@dataclass(frozen=True)
class _Pilot:
    scale: float
    took_s: float
    history: History

    def totals(self) -> tuple[int, ...]:
        """Return device time in ns, bytes written, bytes read and steps."""
        rows = self.history.rows
        written = sum(row.host_write_bytes for row in rows)
        read = sum(row.read_bytes for row in rows)
        return self.history.elapsed_ns, written, read, len(rows)

    def rounds(self) -> dict[str, int]:
        stages = self.history.stages
        return {phase: stage.rounds_done for phase, stage in stages.items() if stage.rounds_done}

    def alike(self, other: _Pilot) -> bool:
        """Return `True` if each stage took a similar number of rounds in both pilot runs."""
        mine, theirs = self.rounds(), other.rounds()
        return mine.keys() == theirs.keys() and all(
            abs(count - theirs[phase]) <= ROUNDS_APART * count for phase, count in mine.items()
        )

    def difference(self, other: _Pilot) -> float:
        """Return the largest relative difference in time and volumes."""
        pairs = zip(self.totals()[:3], other.totals()[:3], strict=True)
        return max((abs(a - b) / max(a, b) if a != b else 0.0) for a, b in pairs)


def with_estimate(
    plan: Plan,
    procedure: Procedure,
    engine: Engine,
    *,
    budget_s: float = BUDGET_S,
    clock: Callable[[], float] = time.thread_time,
    log: Callable[[str], None] = _discard,
) -> Plan:
    """Return `plan` with a cost estimate if the drive is simulated.

    `log` receives messages about long pilot runs.
    """
    if not isinstance(engine, ScalableEngine):
        return plan
    return replace(
        plan, estimate=estimate(procedure, engine, budget_s=budget_s, clock=clock, log=log)
    )


def estimate(
    procedure: Procedure,
    engine: ScalableEngine,
    *,
    budget_s: float = BUDGET_S,
    clock: Callable[[], float] = time.thread_time,
    log: Callable[[str], None] = _discard,
) -> Estimate | None:
    """Estimate the time and volume of a run of `procedure` on the drive of `engine`.

    The drive's state does not change. Errors that the run would raise, such as a workload that the
    drive cannot run, are also raised here.

    Returns:
        The estimate, or `None` if the smallest pilot run did not finish within `FIRST * budget_s`
        seconds of `clock`.
    """
    began_s = clock()
    largest, identity = largest_io_bytes(procedure, engine), engine.identify()
    done: list[_Pilot] = []
    # A drive that cannot be scaled is simulated at full size.
    possible = possible_scales(procedure, engine, SHORTEST_STEP_NS, SHORTEST_STEP_NS)
    for scale in possible or [identity.scale]:
        left_s = (budget_s if done else FIRST * budget_s) - (clock() - began_s)
        if done and GROWTH * done[-1].took_s > left_s:
            break
        start_s = clock()
        try:
            small = engine.scaled(scale, largest_io_bytes=largest)
            pilot_log = partial(_log_pilot, log, scale)
            history = simulate(procedure, small, _Deadline(start_s + left_s, clock, pilot_log))
        except _TooLongError:
            break
        done.append(_Pilot(scale, clock() - start_s, history))
        spent_s = clock() - began_s
        if len(done) > 1 and spent_s >= PATIENCE_S and _agree(done[-2], done[-1]):
            break
    return _estimate(done, identity, clock() - began_s) if done else None


def _log_pilot(log: Callable[[str], None], scale: float, text: str) -> None:
    log(f"estimating with a pilot at 1/{scale:g} of the drive: {text}")


def _agree(before: _Pilot, last: _Pilot) -> bool:
    return last.difference(before) <= AGREEMENT and last.rounds() == before.rounds()


def _estimate(done: list[_Pilot], drive: DeviceIdentity, took_s: float) -> Estimate:
    last = done[-1]
    elapsed_ns, written, read, steps = _totals_at(drive.scale, done)
    return Estimate(
        device_time_ns=elapsed_ns,
        write_bytes=written,
        read_bytes=read,
        drive_fills=written / drive.capacity_bytes,
        steps=steps,
        rounds=last.rounds(),
        wall_time_s=_wall_s(drive.scale, done) + STEP_WALL_S * steps,
        scale=last.scale,
        pilots=len(done),
        took_s=took_s,
        apart_pct=100 * last.difference(done[-2]) if len(done) > 1 else None,
    )


def _totals_at(scale: float, done: list[_Pilot]) -> tuple[int, ...]:
    """Return the totals of the last two pilot runs, extrapolated linearly to `scale`.

    If the two pilot runs agree, or took different numbers of rounds, the totals are those of the
    last pilot run.
    """
    last = done[-1]
    if len(done) == 1 or _agree(done[-2], last) or not last.alike(done[-2]):
        return last.totals()
    before = done[-2]
    share = (last.scale - scale) / (before.scale - last.scale)
    pairs = zip(before.totals(), last.totals(), strict=True)
    return tuple(max(0, round(b + (b - a) * share)) for a, b in pairs)


def _wall_s(scale: float, done: list[_Pilot]) -> float:
    """Return the wall-clock time of the simulation at `scale`.

    The component that two pilot runs show to be independent of the scale is not extrapolated.
    """
    last = done[-1]
    simple = last.took_s * last.scale / scale
    if len(done) == 1:
        return simple
    first = done[0]
    per_share = (last.took_s - first.took_s) / (1 / last.scale - 1 / first.scale)
    fixed = max(0.0, last.took_s - per_share / last.scale)
    return min(simple, fixed + per_share / scale) if per_share > 0 else simple
