"""A suite or sweep: which of its members still have to run, and how many at a time.

Every test starts from a purge, so on simulated drives they are independent and run side by side
within a memory budget, with the same results as one after the other. On a real drive they run one
after the other, and a failure ends the suite.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from writecliff.errors import WritecliffError
from writecliff.parallel import Stopped, Task, run_side_by_side
from writecliff.signals import handling
from writecliff.suite.children import ChildEvent, ChildSpec, MemberProcesses, Outcome
from writecliff.suite.folder import Member, SuiteFolder
from writecliff.suite.memory import member_memory_bytes
from writecliff.suite.remote import run_members

if TYPE_CHECKING:
    from writecliff.cluster import Cluster

Log = Callable[[ChildEvent], None]
# Longest first, as they took on `sata-tlc-120`: then no core waits for the other at the end.
_LONGEST = ("ecw", "dirth", "hir", "wsat", "iops", "xsr", "lat", "tp")


class SuiteStopped(WritecliffError):
    """Stopped by the user; the complete steps of all tests are stored."""

    exit_code = 130


def run_suite(
    folder: SuiteFolder,
    log: Log,
    *,
    opening: Mapping[str, Any],
    finish: Callable[[Path], object],
    workers: int | None = None,
    memory_budget_bytes: int | None = None,
    cluster: Cluster | None = None,
) -> list[Outcome]:
    """Run every member that is not complete, here or on a cluster, and return their outcomes.

    `log` gets what happens, from several threads. `opening` are the keyword arguments of
    `open_target` beside the target. `finish` is called with the directory of each complete run, in
    the process that ran it. Raises SuiteStopped, EngineError (a test failed; the others are kept),
    ConfigError.
    """
    stop = Event()
    specs = [
        (spec, member_memory_bytes(spec.member))
        for spec in (_spec(folder, name, opening, finish) for name in _left(folder))
    ]
    outcomes: list[Outcome] = []
    try:
        with handling((signal.SIGINT, signal.SIGTERM), lambda number, frame: stop.set()):
            if cluster is not None:
                outcomes = run_members(cluster, specs, log, stop)
            else:
                with MemberProcesses() as processes:
                    outcomes = run_side_by_side(
                        [
                            Task(one.name, need, partial(_checked, processes, one, log, stop))
                            for one, need in specs
                        ],
                        workers=workers if folder.simulated else 1,
                        memory_budget_bytes=memory_budget_bytes,
                    )
    except WritecliffError:
        if not stop.is_set():
            raise
    if stop.is_set():
        raise SuiteStopped(
            f"stopped; complete: {len(folder.complete())} of {len(folder.members)}",
            hint=f"resume with `writecliff {folder.command} --resume {folder.path}`",
        )
    return outcomes


def _checked(processes: MemberProcesses, spec: ChildSpec, log: Log, stop: Event) -> Outcome:
    outcome = None if stop.is_set() else processes.run(spec, log, stop)
    if outcome is None or outcome.exit_code == SuiteStopped.exit_code:
        raise Stopped(f"{spec.name} was stopped")
    outcome.check()
    log(ChildEvent(spec.name, "line", "complete", 1.0))
    return outcome


def _left(folder: SuiteFolder) -> Sequence[str]:
    """The members that are not complete; those that run side by side, the longest first."""
    left = folder.left()
    return sorted(left, key=lambda name: _rank(folder.members[name])) if folder.simulated else left


def _rank(member: Member) -> int:
    return _LONGEST.index(member.test) if member.test in _LONGEST else len(_LONGEST)


def _spec(
    folder: SuiteFolder, name: str, opening: Mapping[str, Any], finish: Callable[[Path], object]
) -> ChildSpec:
    member = folder.members[name]
    return ChildSpec(
        name=name,
        member=replace(member, target=folder.target_now(member.target)),
        opening=opening,
        directory=folder.run_directory(name),
        resume=folder.status(name) is not None,
        finish=finish,
    )
