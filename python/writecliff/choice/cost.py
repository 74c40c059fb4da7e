"""Time and memory of a choice, estimated before it runs.

A pilot run measures the load at the rough level on one drive of each class. The estimate assumes
that the time to prepare a drive is proportional to its simulated capacity, and the time to run the
load to the simulated time. The finer levels run only the drives that could still win, so the number
of drives at these levels is an upper bound.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from writecliff.choice.levels import ROUGH, Class, class_of
from writecliff.choice.plan import Contender, Plan, member_of
from writecliff.choice.question import Question
from writecliff.devices import show_device
from writecliff.engines.preconditioned import bring_to
from writecliff.engines.target import SIMULATED, open_target
from writecliff.procedures.framework import simulate
from writecliff.procedures.progress import PRECONDITIONING, RunProgress
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.procedures.scaling import quick_engine
from writecliff.suite.folder import Member
from writecliff.suite.memory import member_memory_bytes

LONGEST_PILOT_S = 20.0  # CPU time limit of a pilot run. If a pilot exceeds it, the cost is unknown.
RUN_S = 0.6  # Time to start and store a run, set after comparisons with measured choices.


@dataclass(frozen=True)
class LevelCost:
    """Cost of a level of simulation."""

    level: str  # Level name: `rough`, `medium` or `fine`.
    drives: int  # Number of drives; after the first level, the largest possible number.
    runs: int  # Number of runs of these drives.
    scale_min: float  # Smallest factor by which a drive is scaled down.
    scale_max: float  # Largest factor by which a drive is scaled down.
    time_s: float | None  # Expected time of all runs on this machine, in s; `None` if unknown.
    memory_bytes: int  # Peak memory of the simultaneous runs, in bytes.


@dataclass(frozen=True)
class _Unit:
    """Time to simulate a class of drives, per byte of prepared capacity and per second of load."""

    state_s: float
    load_s: float


class _TooLongError(Exception):
    """The pilot run has exceeded its time limit."""


class _Pilot(RunProgress):
    """Observer of a pilot run that records when the preparation of the drive ends."""

    def __init__(self, limit_s: float) -> None:
        self._end_s = time.thread_time() + limit_s
        self.prepared_s = time.thread_time()
        self.was_cached = False

    def phase(self, name: str, detail: str = "") -> None:
        self.was_cached |= name == PRECONDITIONING and "from the cache" in detail
        self.prepared_s = time.thread_time()

    def step_progress(self, progress: object) -> None:
        if time.thread_time() > self._end_s:
            raise _TooLongError


def level_costs(
    question: Question, plan: Plan, *, workers: int | None, note: Callable[[str], None]
) -> list[LevelCost]:
    """Return the cost of each level, after a pilot run for each class of drives.

    Args:
        question: The question, whose load is a workload or job file.
        plan: The planned runs of the question. Its device files must exist.
        workers: Number of simultaneous runs (default: one per core).
        note: Callback that receives the progress of the pilot runs.

    Raises:
        ConfigError: If the load or a drive cannot be simulated.
    """
    classes = {
        contender.name: class_of(show_device(contender.target.removeprefix(SIMULATED)))
        for contender in plan.contenders
    }
    units: dict[Class, _Unit | None] = {}
    for contender in plan.contenders:
        if classes[contender.name] not in units:
            note(f"estimating with a pilot run of {contender.name}")
            units[classes[contender.name]] = _pilot(question, contender)
    slots = workers or os.cpu_count() or 1
    by_level: dict[str, list[tuple[str, Member]]] = {}
    for number, step in enumerate(plan.steps):
        for (name, _), member in step.items():
            by_level.setdefault(plan.levels[name][number].name, []).append((name, member))
    return [
        _cost(level, runs, [units[classes[name]] for name, _ in runs], slots)
        for level, runs in by_level.items()
    ]


def _pilot(question: Question, contender: Contender) -> _Unit | None:
    """Measure a run at the rough level. Returns `None` if the run takes too long."""
    member = member_of(question, contender, 1, level=ROUGH)
    procedure = procedure_from_mapping(member.test, member.options, simulated=True)
    with closing(open_target(member.target, seed=1)) as opened:
        engine = quick_engine(procedure, opened)
        identity = engine.identify()
        state = procedure.stages(identity)[0].state
        try:
            pilot, began_s = _Pilot(LONGEST_PILOT_S), time.thread_time()
            simulate(procedure, engine, pilot)
            ended_s = time.thread_time()
            state_s = pilot.prepared_s - began_s
            if pilot.was_cached:
                again_s = time.thread_time()
                bring_to(engine, state, on_progress=_Pilot(LONGEST_PILOT_S).step_progress)
                state_s = time.thread_time() - again_s
        except _TooLongError:
            return None
    size, length = _size(member)
    return _Unit(state_s / size, (ended_s - pilot.prepared_s) / length)


def _size(member: Member) -> tuple[float, float]:
    """Return a run's simulated capacity in bytes, and its simulated time in seconds.

    A load without a duration counts as one second on the full-size drive.
    """
    scale = member.options.get("scale") or 1.0
    capacity = show_device(member.target.removeprefix(SIMULATED)).capacity_bytes
    lengths = [
        max((job.get("duration_ns") or 1e9) / 1e9 for job in step["workload"]["jobs"])
        for step in member.options["steps"]
    ]
    return capacity / scale, sum(lengths) / scale


def _cost(
    level: str, runs: Sequence[tuple[str, Member]], units: Sequence[_Unit | None], slots: int
) -> LevelCost:
    scales = [member.options.get("scale") or 1.0 for _, member in runs]
    times: list[float] = []
    for (_, member), unit in zip(runs, units, strict=True):
        if unit is not None:
            size, length = _size(member)
            times.append(unit.state_s * size + unit.load_s * length + RUN_S)
    is_known = len(times) == len(runs)
    longest = sorted((member_memory_bytes(member) for _, member in runs), reverse=True)
    return LevelCost(
        level=level,
        drives=len({name for name, _ in runs}),
        runs=len(runs),
        scale_min=min(scales),
        scale_max=max(scales),
        time_s=max(sum(times) / min(slots, len(times)), *times) if is_known else None,
        memory_bytes=sum(longest[:slots]),
    )
