"""What a run on a simulated drive will take, found by a pilot: the same procedure, made small.

The pilot runs the procedure unchanged on the drive at 1/k of its size for 1/k of its time
(`engines/scaled.py`) and keeps nothing. So rounds until steady state, ends by volume and the loops
of every stage come out as they will; nothing about a procedure is repeated here.

The first pilot is the smallest one. Each further one is twice its size, until two of them agree or
the next would take longer than allowed. What a small drive does differently (its buffer is large
for the steps, so are the I/Os outstanding at their ends) grows with k; so the last two pilots are
extrapolated to k = 1, and how far they are apart is part of the estimate. A real drive has no
pilot; for it there are the bounds of `bounds.py` only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from writecliff.engines.base import ScalableEngine
from writecliff.procedures.framework import rehearse
from writecliff.procedures.model import Estimate, History, Plan, Procedure
from writecliff.procedures.progress import RunProgress

if TYPE_CHECKING:
    from writecliff.engines.base import Engine, Progress
    from writecliff.workload.model import Job

BUDGET_S = 10.0  # processor time of all pilots: on a busy machine they are the same ones
PATIENCE_S = 3.0  # before which agreement is not enough: small pilots may agree on wrong rounds
AGREEMENT = 0.005  # two pilots that are no further apart are not refined
ROUNDS_APART = 0.1  # of the rounds, up to which two pilots are extrapolated
SHORTEST_STEP_NS = 10_000_000  # of a pilot; below, single I/Os and the write buffer would count
GROWTH = 2.2  # time for a pilot to that for one half its size, with some margin
# Wall time that a run spends on a step besides simulating it (storing it, mostly).
STEP_WALL_S = 0.02


class _TooLongError(Exception):
    """The pilot is over its time."""


class _Deadline(RunProgress):
    """Ends a pilot at a reading of `clock`."""

    def __init__(self, at_s: float, clock: Callable[[], float]) -> None:
        self._at_s = at_s
        self._clock = clock

    def step_begin(self, phase: str, round_number: int, step: int, steps: int, name: str) -> None:
        self._check()

    def step_progress(self, progress: Progress) -> None:
        self._check()

    def _check(self) -> None:
        if self._clock() > self._at_s:
            raise _TooLongError


@dataclass(frozen=True)
class _Pilot:
    scale: float
    took_s: float
    history: History

    def totals(self) -> tuple[int, ...]:
        """Device time in ns, bytes written, bytes read, steps."""
        rows = self.history.rows
        written = sum(row.host_write_bytes for row in rows)
        read = sum(row.read_bytes for row in rows)
        return self.history.elapsed_ns, written, read, len(rows)

    def rounds(self) -> dict[str, int]:
        stages = self.history.stages
        return {phase: stage.rounds_done for phase, stage in stages.items() if stage.rounds_done}

    def alike(self, other: _Pilot) -> bool:
        """Each stage took as many rounds, or about as many where they are many."""
        mine, theirs = self.rounds(), other.rounds()
        return mine.keys() == theirs.keys() and all(
            abs(count - theirs[phase]) <= ROUNDS_APART * count for phase, count in mine.items()
        )

    def apart(self, other: _Pilot) -> float:
        """The largest relative difference of time and volumes."""
        pairs = zip(self.totals()[:3], other.totals()[:3], strict=True)
        return max((abs(a - b) / max(a, b) if a != b else 0.0) for a, b in pairs)


def with_estimate(
    plan: Plan,
    procedure: Procedure,
    engine: Engine,
    *,
    budget_s: float = BUDGET_S,
    clock: Callable[[], float] = time.thread_time,
) -> Plan:
    """`plan` with an estimate where one can be had: on a drive of the simulator."""
    if not isinstance(engine, ScalableEngine):
        return plan
    return replace(plan, estimate=estimate(procedure, engine, budget_s=budget_s, clock=clock))


def estimate(
    procedure: Procedure,
    engine: ScalableEngine,
    *,
    budget_s: float = BUDGET_S,
    clock: Callable[[], float] = time.thread_time,
) -> Estimate | None:
    """Time and volume of the run of `procedure` on the drive of `engine`, which is not touched.

    None: not even the smallest pilot came to its end within `budget_s` seconds by `clock`. Raises
    what the run would raise (a workload that the drive cannot take).
    """
    began_s = clock()
    largest = _largest_io_bytes(procedure, engine)
    done: list[_Pilot] = []
    for scale in _scales(procedure, engine):
        left_s = budget_s - (clock() - began_s)
        if done and GROWTH * done[-1].took_s > left_s:
            break
        start_s = clock()
        try:
            small = engine.scaled(scale, largest_io_bytes=largest)
            history = rehearse(procedure, small, _Deadline(start_s + left_s, clock))
        except _TooLongError:
            break
        done.append(_Pilot(scale, clock() - start_s, history))
        spent_s = clock() - began_s
        if len(done) > 1 and spent_s >= PATIENCE_S and _agree(done[-2], done[-1]):
            break
    return _estimate(done, engine.identify().capacity_bytes, clock() - began_s) if done else None


def _agree(before: _Pilot, last: _Pilot) -> bool:
    return last.apart(before) <= AGREEMENT and last.rounds() == before.rounds()


def _scales(procedure: Procedure, engine: ScalableEngine) -> list[float]:
    """The scales to try in order. Short steps must not become too short; a drive that cannot be
    made smaller at all is tried as it is."""
    shortest_ns = _shortest_step_ns(procedure, engine)
    scales = engine.scales()
    possible = [k for k in scales if not shortest_ns or shortest_ns / k >= SHORTEST_STEP_NS]
    return possible or [1.0]


def _jobs(procedure: Procedure, engine: ScalableEngine) -> list[Job]:
    """Of all steps, as far as they are known before the run."""
    stages = procedure.stages(engine.identify())
    loads = [
        load
        for stage in stages
        for load in (
            *stage.state,
            *(step.workload for step in stage.prepare),
            *(step.workload for step in stage.steps(History(), 1 if stage.ends else 0)),
        )
    ]
    return [job for load in loads for job in load.jobs]


def _shortest_step_ns(procedure: Procedure, engine: ScalableEngine) -> int:
    """Of the steps that last for a time, 0 without any."""
    durations = [job.burst_ns or job.duration_ns for job in _jobs(procedure, engine)]
    return min((ns for ns in durations if ns), default=0)


def _largest_io_bytes(procedure: Procedure, engine: ScalableEngine) -> int:
    return max(size.bytes for job in _jobs(procedure, engine) for size in job.block_sizes)


def _estimate(done: list[_Pilot], capacity_bytes: int, took_s: float) -> Estimate:
    last = done[-1]
    elapsed_ns, written, read, steps = _at_full_scale(done)
    return Estimate(
        device_time_ns=elapsed_ns,
        write_bytes=written,
        read_bytes=read,
        drive_fills=written / capacity_bytes,
        steps=steps,
        rounds=last.rounds(),
        wall_time_s=_wall_s(done) + STEP_WALL_S * steps,
        scale=last.scale,
        pilots=len(done),
        took_s=took_s,
        apart_pct=100 * last.apart(done[-2]) if len(done) > 1 else None,
    )


def _at_full_scale(done: list[_Pilot]) -> tuple[int, ...]:
    """The totals on a line through the last two pilots, at scale 1; those of the last one if the
    two agree (what is left is chance) or did not do the same."""
    last = done[-1]
    if len(done) == 1 or _agree(done[-2], last) or not last.alike(done[-2]):
        return last.totals()
    before = done[-2]
    share = (last.scale - 1) / (before.scale - last.scale)
    pairs = zip(before.totals(), last.totals(), strict=True)
    return tuple(max(0, round(b + (b - a) * share)) for a, b in pairs)


def _wall_s(done: list[_Pilot]) -> float:
    """Time to simulate the whole: what does not depend on the scale is taken off where two pilots
    show it."""
    last = done[-1]
    simple = last.took_s * last.scale
    if len(done) == 1:
        return simple
    first = done[0]
    per_share = (last.took_s - first.took_s) / (1 / last.scale - 1 / first.scale)
    fixed = max(0.0, last.took_s - per_share / last.scale)
    return min(simple, fixed + per_share) if per_share > 0 else simple
