"""Runs of a suite or sweep in child processes.

Processes are used instead of threads because storing and judging are implemented in Python, so two
simultaneous tests require two interpreters. A process runs several members in sequence, because
starting a process takes as long as a short run. Only the parent handles Ctrl-C. The parent stops
its children, each of which stores its complete steps. A child also stops if its parent dies. Events
are returned through a pipe.

A child is started as a program (`member.py`) instead of by `multiprocessing`. The reason is that
cluster workers are daemonic processes, which cannot have `multiprocessing` children.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from writecliff.engines.base import DeviceIdentity, Progress
from writecliff.errors import ConfigError, EngineError, WritecliffError
from writecliff.procedures.model import History, Plan, Procedure, Stage, StepRow
from writecliff.procedures.progress import FollowedRun
from writecliff.procedures.steady import Decision
from writecliff.quiet import silence_libraries
from writecliff.signals import die_with_parent
from writecliff.store.manifest import command_line
from writecliff.suite.folder import Member

MEMBER = "writecliff.suite.member"  # Module name of the child program.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_POLL_S = 0.1
_REPEAT_S = 5.0
_LOOK_S = 1.0  # Time between two progress events of a step.


@dataclass(frozen=True)
class ChildSpec:
    """Arguments for a process that runs one member.

    `opening` holds keyword arguments of `open_target`. When a run is complete, the process calls
    `finish` with the run directory. `command` is the user's command line, which is recorded in
    manifests.
    """

    name: str
    member: Member
    opening: Mapping[str, Any]
    directory: Path
    resume: bool
    finish: Callable[[Path], object]
    command: tuple[str, ...] = field(default_factory=command_line)


class Stop(Protocol):
    """A stop request, either a `threading.Event` or a flag set by another machine."""

    def is_set(self) -> bool:
        """Return `True` once the run should stop."""
        ...


@dataclass(frozen=True)
class ChildEvent:
    """A member's event, which is a line for the log or a progress report.

    `fraction` is the completed fraction of the run from 0 to 1, or `None` during preconditioning.
    """

    name: str
    kind: Literal["line", "progress"]
    text: str
    fraction: float | None = None


@dataclass(frozen=True)
class Outcome:
    """Outcome of a member.

    After a failure, `error` holds the error message, accompanied by `hint` and `exit_code`.
    """

    name: str
    ok: bool
    error: str = ""
    hint: str | None = None
    exit_code: int = 0

    def check(self) -> None:
        """Raise a failed member's error.

        Raises:
            ConfigError: If the failure was caused by an option or the target.
            EngineError: If the run failed.
        """
        if not self.ok:
            kind = ConfigError if self.exit_code == ConfigError.exit_code else EngineError
            raise kind(f"{self.name}: {self.error}", hint=self.hint)


class MemberProcess:
    """A process that runs members in sequence until it is closed."""

    def __init__(self) -> None:
        """Start the process, which then waits for its first member."""
        self._pipe, theirs = Pipe()
        # Signals stay blocked in the child until it can handle them.
        with theirs, _signals_blocked():
            words = [sys.executable, "-m", MEMBER, str(theirs.fileno()), str(os.getpid())]
            self._process = subprocess.Popen(words, pass_fds=[theirs.fileno()])

    def run(self, spec: ChildSpec, log: Callable[[ChildEvent], None], stop: Stop) -> Outcome:
        """Run a test and wait for it to end, calling `log` with its events as they arrive.

        Once `stop` is set, the process stores the complete steps and stops the run. In this case,
        the outcome has exit code 130.
        """
        next_s = 0.0
        with suppress(EOFError, BrokenPipeError):  # The process has exited.
            self._pipe.send(spec)
            while True:
                if stop.is_set() and time.monotonic() >= next_s:
                    self._process.terminate()
                    # Python discards exceptions that a destructor raises, so the signal is
                    # repeated.
                    next_s = time.monotonic() + _REPEAT_S
                if not self._pipe.poll(_POLL_S):
                    continue
                message = self._pipe.recv()
                if isinstance(message, Outcome):
                    return message
                log(message)
        error = f"worker exited without a result (exit code {self._process.wait()})"
        return Outcome(spec.name, False, error, None, 1)

    def close(self) -> None:
        """Stop the idle process, and wait for its exit."""
        self._pipe.close()
        self._process.wait()


class MemberProcesses:
    """A pool of processes, one for each member running at the same time.

    The pool is thread-safe.
    """

    def __init__(self) -> None:
        """Create an empty pool, whose processes start on demand."""
        self._idle: list[MemberProcess] = []

    def __enter__(self) -> Self:
        """Return the pool."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the idle processes."""
        self.close_idle()

    def close_idle(self) -> None:
        """Stop the idle processes."""
        with suppress(IndexError):  # Another thread may take the last process.
            while True:
                self._idle.pop().close()

    def run(self, spec: ChildSpec, log: Callable[[ChildEvent], None], stop: Stop) -> Outcome:
        """Run a test like `MemberProcess.run`, in an idle process or a new process.

        A process whose member fails is closed, not reused.
        """
        try:
            process = self._idle.pop()
        except IndexError:
            process = MemberProcess()
        outcome = None
        try:
            outcome = process.run(spec, log, stop)
            return outcome
        finally:
            if outcome is not None and outcome.ok:
                self._idle.append(process)
            else:
                process.close()


@contextmanager
def _signals_blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def main_of_member(pipe: Connection, parent: int) -> None:
    """Run members in a child process until the parent closes the pipe or a member fails."""
    with suppress(EOFError, KeyboardInterrupt):
        spec: ChildSpec = pipe.recv()
        # The terminal sends SIGINT to both parent and child.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        silence_libraries()
        die_with_parent(parent, signal.SIGTERM)
        while _run_and_report(spec, pipe):
            gc.collect()  # Free the drive, its engine and its tables.
            spec = pipe.recv()


def _run_and_report(spec: ChildSpec, pipe: Connection) -> bool:
    """Run a member, send its outcome, and return `False` if the member failed.

    Errors caused by users are sent as messages without a traceback.
    """
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        outcome = _run(spec, pipe)
    except WritecliffError as error:
        outcome = Outcome(spec.name, False, str(error), error.hint, error.exit_code)
    except KeyboardInterrupt:
        outcome = Outcome(spec.name, False, "stopped", None, 130)
    # Signals stay blocked until the next member starts.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        pipe.send(outcome)
    except BrokenPipeError:  # The parent has exited.
        return False
    return outcome.ok


def _run(spec: ChildSpec, pipe: Connection) -> Outcome:
    from writecliff.engines.target import is_simulated, open_target
    from writecliff.procedures.framework import run_procedure
    from writecliff.procedures.registry import procedure_from_mapping

    sys.argv = list(spec.command)  # Manifests must not name this process.
    member = spec.member
    simulated = is_simulated(member.target)
    procedure = procedure_from_mapping(member.test, member.options, simulated=simulated)
    engine = open_target(member.target, seed=procedure.seed, **spec.opening)
    try:
        progress = _PipeProgress(spec.name, pipe)
        run_procedure(procedure, engine, spec.directory, progress, resume=spec.resume)
    except EngineError as error:
        # The result contains native objects, which cannot be sent through the pipe.
        error.partial = None
        raise
    finally:
        engine.close()
    spec.finish(spec.directory)
    return Outcome(spec.name, True)


class _PipeProgress(FollowedRun):
    """Sender that passes a run's events through a pipe."""

    def __init__(self, name: str, pipe: Connection) -> None:
        super().__init__()
        self._name = name
        self._pipe = pipe
        self._looked_s = time.monotonic()

    def _send(
        self, kind: Literal["line", "progress"], text: str, fraction: float | None = None
    ) -> None:
        try:
            self._pipe.send(ChildEvent(self._name, kind, text, fraction))
        except BrokenPipeError:
            raise KeyboardInterrupt from None  # The parent has exited.

    def _line(self, text: str) -> None:
        self._send("line", text)

    def begin(
        self, procedure: Procedure, identity: DeviceIdentity, plan: Plan, run_directory: Path
    ) -> None:
        super().begin(procedure, identity, plan, run_directory)
        scaled = f", {identity.scale_text}" if identity.scale_text else ""
        self._line(f"started: {plan.title}{scaled}")

    def resumed(self, rows_stored: int, rows_again: int) -> None:
        self._line(f"resumed after {rows_stored} stored steps")

    def phase(self, name: str, detail: str = "") -> None:
        super().phase(name, detail)
        if detail:
            self._line(f"{name}: {detail}")

    def purge_progress(self, share: float) -> None:
        self._send("progress", f"purge: {share:.0%} done")

    def stage_begin(self, stage: Stage) -> None:
        super().stage_begin(stage)
        self._line(stage.title)

    def step_progress(self, progress: Progress) -> None:
        super().step_progress(progress)
        if (now_s := time.monotonic()) >= self._looked_s + _LOOK_S:
            self._looked_s = now_s
            self._report(self.where)

    def step_end(self, row: StepRow, history: History, *, again: bool) -> None:
        super().step_end(row, history, again=again)
        where = f"round {row.round}" if row.round else row.phase
        self._report(f"{where}, {row.label}: {row.iops:,.0f} IOPS  {self.how_far}")

    def _report(self, text: str) -> None:
        self._send("progress", text, None if self.preconditions else self.fraction)

    def round_end(self, round_number: int, decision: Decision | None) -> None:
        if decision is not None:
            for name, state in decision.states.items():
                verdict = "steady" if state.steady else "not steady"
                self._line(f"round {round_number}: {verdict}; {name}: average {state.average:,.0f}")

    def note(self, text: str) -> None:
        self._line(f"warning: {text}")
