"""One run of a suite or sweep in a process of its own.

A process rather than a thread: storing and judging are Python, so two tests at a time need two
interpreters. Ctrl-C is the parent's to hear; it asks its children to stop, and each of them stores
what it has. Events come back through a pipe.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from writecliff.engines.base import DeviceIdentity
from writecliff.errors import EngineError, WritecliffError
from writecliff.procedures.model import History, Plan, Procedure, Stage, StepRow
from writecliff.procedures.progress import RunProgress
from writecliff.procedures.steady import Decision
from writecliff.suite.folder import Member


@dataclass(frozen=True)
class ChildSpec:
    """What a process needs to run one member. `opening` are keyword arguments of `open_target`."""

    name: str
    member: Member
    opening: Mapping[str, Any]
    directory: Path
    resume: bool


@dataclass(frozen=True)
class Event:
    """What happens in a member: a line for a log, or a look at how far it is."""

    name: str
    kind: Literal["line", "look"]
    text: str
    fraction: float | None = None


@dataclass(frozen=True)
class Outcome:
    """How a member ended. `error` is the message of a failure, with `hint` and `exit_code`."""

    name: str
    ok: bool
    error: str = ""
    hint: str | None = None
    exit_code: int = 0


def run_child(spec: ChildSpec, tell: Callable[[Event], None]) -> Outcome:
    """Run a test in a new process and wait for it; events are told as they come."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_main, args=(spec, theirs), name=spec.name)
    process.start()
    theirs.close()
    outcome = Outcome(spec.name, False, f"{spec.name}: its process ended without a word", None, 1)
    try:
        while True:
            message = ours.recv()
            if isinstance(message, Outcome):
                outcome = message
            else:
                tell(message)
    except EOFError:
        pass
    process.join()
    return outcome


@contextmanager
def stopping_children() -> Iterator[None]:
    """Hand Ctrl-C and SIGTERM on to the children: they end as stopped, and so does the parent."""

    def stop(number: int, frame: FrameType | None) -> None:
        for process in multiprocessing.active_children():
            process.terminate()

    before = {n: signal.signal(n, stop) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _main(spec: ChildSpec, pipe: Connection) -> None:
    """The child: run, report, and say how it ended; never a traceback for what users can cause."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to parent and child
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        pipe.send(_run(spec, pipe))
    except WritecliffError as error:
        pipe.send(Outcome(spec.name, False, str(error), error.hint, error.exit_code))
    except KeyboardInterrupt:
        pipe.send(Outcome(spec.name, False, "stopped", None, 130))
    finally:
        pipe.close()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _run(spec: ChildSpec, pipe: Connection) -> Outcome:
    from writecliff.engines.target import open_target
    from writecliff.procedures.framework import run_procedure
    from writecliff.procedures.registry import procedure_from_mapping
    from writecliff.report import write_report

    procedure = procedure_from_mapping(spec.member.test, spec.member.options)
    engine = open_target(spec.member.target, seed=procedure.seed, **spec.opening)
    try:
        progress = _PipeProgress(spec.name, pipe)
        run_procedure(procedure, engine, spec.directory, progress, resume=spec.resume)
    except EngineError as error:
        error.partial = None  # holds native objects, which do not cross the pipe
        raise
    finally:
        engine.close()
    write_report(spec.directory)
    return Outcome(spec.name, True)


class _PipeProgress(RunProgress):
    """Events of a run as tuples through a pipe."""

    def __init__(self, name: str, pipe: Connection) -> None:
        self._name = name
        self._pipe = pipe
        self._stage: Stage | None = None

    def _line(self, text: str) -> None:
        self._pipe.send(Event(self._name, "line", text))

    def begin(
        self, procedure: Procedure, identity: DeviceIdentity, plan: Plan, run_directory: Path
    ) -> None:
        self._line(f"begun: {plan.title}")

    def resumed(self, rows_stored: int, rows_again: int) -> None:
        self._line(f"going on after {rows_stored} stored steps")

    def phase(self, name: str, detail: str = "") -> None:
        if detail:
            self._line(f"{name}: {detail}")

    def stage_begin(self, stage: Stage) -> None:
        self._stage = stage
        self._line(stage.title)

    def step_end(self, row: StepRow, history: History, *, again: bool) -> None:
        where = f"round {row.round}" if row.round else row.phase
        text = f"{where}, {row.label}: {row.iops:,.0f} IOPS"
        self._pipe.send(Event(self._name, "look", text, self._fraction(history)))

    def _fraction(self, history: History) -> float | None:
        if self._stage is None or self._stage.phase not in history.stages:
            return None
        here = history.stages[self._stage.phase]
        known = [end.fraction(here) for end in self._stage.ends if end.fraction is not None]
        return max(known, default=None)

    def round_end(self, round_number: int, decision: Decision | None) -> None:
        if decision is not None:
            for name, state in decision.states.items():
                verdict = "steady" if state.steady else "not steady"
                self._line(f"round {round_number}: {verdict}; {name}: average {state.average:,.0f}")

    def note(self, text: str) -> None:
        self._line(f"warning: {text}")
