"""The driver of every test, which runs purge, write cache, preconditioning, rounds and final steps.

The driver contains only the control flow. A `Procedure` defines the steps, an `Engine` runs the
steps, and a `Journal` stores each measured step in the run directory. New and resumed runs take the
same path, because the driver iterates over all steps in the procedure, and reads a stored step from
the store instead of running the step.

To resume a run, a simulated drive is restored from its newest checkpoint (or purged), and the steps
after the checkpoint run again. The repeated steps must reproduce the stored rows exactly. A real
drive preserves its state, so the run resumes at the next step, and the manifest discloses the
interruption.
"""

from __future__ import annotations

import itertools
import math
import re
import shlex
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from writecliff import units
from writecliff.engines.base import NOT_PURGED, DeviceIdentity, Engine, PowerStates, StepResult
from writecliff.engines.preconditioned import bring_to
from writecliff.engines.state_cache import StateCache
from writecliff.errors import EngineError, StoreError, WritecliffError
from writecliff.procedures.journal import Journal, NoJournal
from writecliff.procedures.measure import record_of, row_of
from writecliff.procedures.model import (
    End,
    History,
    Procedure,
    Stage,
    StageHistory,
    Step,
    StepPosition,
    StepRow,
)
from writecliff.procedures.progress import RunProgress
from writecliff.procedures.scaling import quick_engine
from writecliff.signals import handling
from writecliff.store.record import RoundRecord
from writecliff.store.rundir import CHECKPOINT_GLOB
from writecliff.store.tables import load_array_interface
from writecliff.workload.model import access_of

# -- checkpoints -----------------------------------------------------------------------------------

# Checkpoints of a simulated drive in the run directory, which allow the run to be resumed.
#
# The file name contains the number of steps before the checkpoint, so that state and steps always
# agree: `checkpoint-000042.wcs` is the drive state after 42 steps. `Engine.save` writes atomically.
# A newer file replaces the older file, and `finish` deletes the last file when the run is complete.

MIN_INTERVAL_S = 60.0  # Minimum time between checkpoints, which is the work that a kill may lose.
COST_LIMIT = 0.1  # Approximate maximum fraction of the wall-clock time that is spent saving.
_NAME = re.compile(r"checkpoint-(\d+)\.wcs")


class Checkpoints:
    """Periodic checkpoints of a drive. `clock` returns monotonic wall-clock seconds."""

    def __init__(
        self,
        directory: Path,
        engine: Engine,
        *,
        interval_s: float = MIN_INTERVAL_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Store the files in `directory`, with the first checkpoint due after `interval_s`."""
        self._directory = directory
        self._engine = engine
        self._clock = clock
        self._interval_s = interval_s
        self._cost_s = 0.0
        self._last_s = clock()
        self._position = -1

    def _files(self) -> dict[int, Path]:
        paths = self._directory.glob(CHECKPOINT_GLOB)
        return {int(match[1]): path for path in paths if (match := _NAME.fullmatch(path.name))}

    def restore(self, steps_stored: int) -> int | None:
        """Restore the newest state that is not later than `steps_stored`.

        Returns:
            The number of steps before the restored state, or `None` if no state can be restored.
        """
        files = self._files()
        position = max((n for n in files if n <= steps_stored), default=None)
        if position is not None:
            self._engine.restore(files[position])
            self._position = position
        return position

    def due(self) -> bool:
        """Return `True` if the next checkpoint is due."""
        wait_s = max(self._interval_s, self._cost_s / COST_LIMIT)
        return self._clock() - self._last_s >= wait_s

    def save(self, position: int) -> None:
        """Save the state of a simulated drive after `position` steps."""
        if self._engine.kind != "sim" or position == self._position:
            return
        begin_s = self._clock()
        path = self._directory / f"checkpoint-{position:06d}.wcs"
        if not self._engine.save(path):
            return
        self._position = position
        self._last_s = self._clock()
        self._cost_s = self._last_s - begin_s
        for number, path in self._files().items():
            if number != position:
                path.unlink(missing_ok=True)


# -- framework -------------------------------------------------------------------------------------


class RunInterrupted(WritecliffError):
    """Raised when Ctrl-C or SIGTERM stops a run; the completed steps are stored."""

    exit_code = 130


@dataclass(frozen=True)
class RunOutcome:
    """Result of a run. `ended_by` is the name of the end condition that the run reached."""

    run_directory: Path
    ended_by: str
    reason: str
    history: History
    warnings: tuple[str, ...]


def run_procedure(
    procedure: Procedure,
    engine: Engine,
    run_directory: Path,
    progress: RunProgress | None = None,
    *,
    resume: bool = False,
    checkpoint_interval_s: float = MIN_INTERVAL_S,
    clock: Callable[[], float] = time.monotonic,
) -> RunOutcome:
    """Run `procedure` on the drive of `engine`, and store everything in `run_directory`.

    A quick test of a simulated drive runs on a scaled-down drive (`scaling.py`). If `resume` is
    set, the directory must contain an unfinished run of the same procedure on the same drive.

    Raises:
        EngineError: If the drive fails. The run is preserved, with the status "failed".
        RunInterrupted: If the user stops the run. The run can be resumed.
        StoreError: If the run directory cannot be written, or its contents do not match.
        TargetError: If the drive is not the drive that the run was measured on.
        ConfigError: If there is nothing to resume.
    """
    engine = quick_engine(procedure, engine)
    checkpoints = Checkpoints(run_directory, engine, interval_s=checkpoint_interval_s, clock=clock)
    identity = engine.identify()
    journal = Journal(run_directory, procedure, identity, clock)
    driver = _Driver(procedure, engine, identity, progress, run_directory, journal, checkpoints)
    with terminate_as_interrupt():
        with interrupt_deferred():
            load_array_interface()
        return driver.run(resume)


def simulate(procedure: Procedure, engine: Engine, progress: RunProgress | None = None) -> History:
    """Run all steps of `procedure` on the drive of `engine`, but store nothing.

    Raises the exceptions of the engine and of `progress`.
    """
    here = Path()
    checkpoints = Checkpoints(here, engine, interval_s=math.inf)
    journal = NoJournal()
    driver = _Driver(procedure, engine, engine.identify(), progress, here, journal, checkpoints)
    driver.walk()
    return driver.history


_CACHE_STATES = {True: "on", False: "off", None: "unknown"}


class _Driver:
    def __init__(
        self,
        procedure: Procedure,
        engine: Engine,
        identity: DeviceIdentity,
        progress: RunProgress | None,
        run_directory: Path,
        journal: Journal,
        checkpoints: Checkpoints,
    ) -> None:
        self.procedure = procedure
        self.engine = engine
        self.progress = progress or RunProgress()
        self.directory = run_directory
        self.journal = journal
        self.checkpoints = checkpoints
        self.identity = identity
        self.history = History()
        self.stored: list[StepRow] = []  # Rows from earlier sessions, in execution order.
        self.engine_at = 0  # Number of steps that the drive has executed.
        self.device_zero_ns: int | None = None  # Device clock reading at time 0 of the rows.
        # `True` if the drive was restored to a state that has a separate clock.
        self.new_clock = False
        self.running: tuple[StepPosition, Step] | None = None
        self.complete = False  # `True` once all rows are stored.
        self.at_rest = False  # `True` if the drive is in the state after its last complete step.
        self.warnings: list[str] = []
        self.power: PowerStates | None = None  # Power states of an NVMe drive in this session.

    # -- session ----------------------------------------------------------------------------

    def run(self, resume: bool) -> RunOutcome:
        plan = self.procedure.plan(self.identity, self.engine.speed_limit)
        with self.journal.opened(resume):
            self.progress.begin(self.procedure, self.identity, plan, self.directory)
            try:
                return self._session(resume)
            except KeyboardInterrupt:
                if self.complete:  # The run is over, so there is nothing to stop.
                    raise
                raise self._interrupted() from None
            except Exception as error:
                # The engine has wrapped the interrupt.
                if isinstance(error.__cause__, KeyboardInterrupt):
                    raise self._interrupted() from None
                self._failed(error)
                raise

    def _session(self, resume: bool) -> RunOutcome:
        self.journal.health("before", self.engine.health())
        self._settle_power()
        if resume:
            self._resume()
        ended = self.walk()
        self._look_at_power()
        for text in self.procedure.warnings(self.history):
            self._warn(text)
        reason = "; ".join(dict.fromkeys(end.text for end in ended)) or "all steps done"
        name = ended[-1].name if ended else "done"
        self.journal.health("after", self.engine.health())
        with interrupt_deferred():
            self.journal.complete(name, reason, self.warnings)
            self.complete = True
        self.progress.end("complete", reason)
        return RunOutcome(self.directory, name, reason, self.history, tuple(self.warnings))

    def walk(self) -> list[End]:
        """Run all stages in order, and return the end conditions that they reached."""
        try:
            ends = [self._stage(stage) for stage in self.procedure.stages(self.identity)]
        finally:  # No load may continue after the session.
            self.engine.stop_load()
        return [end for end in ends if end is not None]

    def _settle_power(self) -> None:
        """Set the requested power state, and record the effective state."""
        self.power = self.engine.power_states(settle=True)
        before = self.journal.power(self.power)
        if self.power is None:
            return
        self.progress.phase("power state", self.power.text)
        if before is not None and before.state != self.power.state:
            self.warnings = self.journal.warnings()
            self._warn(
                f"the drive was in power state {before.state} before the interruption and has been "
                f"in {self.power.state} since the run was resumed"
            )

    def _look_at_power(self) -> None:
        """Warn if a reset or the firmware has changed the drive's power state."""
        now = None if self.power is None else self.engine.power_states()
        if self.power is not None and now is not None and now.state != self.power.state:
            self._warn(
                f"the drive was in power state {self.power.state} at the start and in {now.state} "
                f"at the end of the run, because of a controller reset or its firmware"
            )

    def _resume(self) -> None:
        """Resume after the last step that the drive executed in an earlier session."""
        self.stored = self.journal.rows()
        simulated = self.engine.kind == "sim"
        # A simulated drive that has no checkpoint starts over, and its steps must match the stored
        # rows.
        position = self.checkpoints.restore(len(self.stored)) if simulated else len(self.stored)
        self.engine_at = position or 0
        if self.stored:
            self.journal.resumed(len(self.stored), exact=simulated)
        self.progress.resumed(len(self.stored), len(self.stored) - self.engine_at)
        if not self.engine_at:
            return
        self.warnings = self.journal.warnings()
        if not simulated and self.journal.prepares:
            # A power cycle between sessions may have reset the write cache.
            self.engine.set_write_cache(self.procedure.write_cache)

    def _interrupted(self) -> RunInterrupted:
        with interrupt_deferred():
            if self.at_rest and self.history.rows:
                # The drive state corresponds to a step count only between steps.
                self.journal.store()
                self.checkpoints.save(self.engine_at)
            self.journal.close("interrupted", "stopped by the user")
        self.progress.end("interrupted", "stopped by the user")
        return RunInterrupted(
            f"stopped; {units.plural(len(self.history.rows), 'complete step')} stored in "
            f"{self.directory}",
            hint=f"resume the run with `{self._resume_command()}`",
        )

    def _resume_command(self) -> str:
        words = [*self.procedure.command, "--resume", str(self.directory)]
        if self.identity.target.startswith("/dev/"):
            # The user confirms a drive that has no serial number by the drive's path.
            words += ["--destroy", self.identity.serial or self.identity.target]
        if self.power is not None and self.power.before is not None:
            words += ["--power-state", str(self.power.state)]
        return shlex.join(words)

    def _failed(self, error: Exception) -> None:
        """Store the failure, but never mask the original error by an error of the store."""
        partial = error.partial if isinstance(error, EngineError) else None
        try:
            with interrupt_deferred():
                self.journal.close("failed", str(error), partial=self._partial_row(partial))
        except (OSError, StoreError):
            pass
        self.progress.end("failed", str(error))
        if isinstance(error, EngineError | StoreError) and error.hint is None:
            error.hint = (
                f"{units.plural(self.journal.steps, 'complete step')} stored; after removing the "
                f"cause, resume with `{self._resume_command()}`"
            )

    def _partial_row(self, partial: StepResult | None) -> StepRow | None:
        if partial is None or self.running is None:
            return None
        return row_of(self._record(partial, *self.running).columns)

    def _phase(self, name: str) -> None:
        self.progress.phase(name)
        self.journal.phase(name)

    def _warn(self, text: str) -> None:
        # A test with several purges would otherwise repeat a warning.
        if text not in self.warnings:
            self.warnings.append(text)
            self.progress.note(text)

    # -- stages -----------------------------------------------------------------------------

    def _stage(self, stage: Stage) -> End | None:
        """Run a stage, and return the end that its rounds reached (`None` for a single pass)."""
        # If the drive has executed a step of the stage, the purge of the stage is complete.
        ahead = self.engine_at <= len(self.history.rows)
        if stage.purge and ahead:
            self._purge()
        if stage.purge:
            self.history.host_write_bytes_total = 0
        simulated = self.identity.simulated
        prepare = stage.preparation(simulated=simulated)
        if prepare or stage.state:
            self._phase("preconditioning")
        if stage.state and simulated:
            self._bring_to_state(stage, ahead)
        self._pass(stage.prepare_phase, prepare)
        here = self.history.begin(stage)
        self._phase(stage.title)
        self.engine.log_events()
        self.progress.stage_begin(stage)
        if stage.ends:
            end = self._rounds(stage, here)
            self.engine.stop_load()
            return end
        self._pass(stage.phase, stage.steps(self.history, 0), continuous=stage.continuous)
        return None

    def _pass(self, phase: str, steps: Sequence[Step], *, continuous: bool = False) -> None:
        for number, step in enumerate(steps, 1):
            keep_running = continuous and number < len(steps)
            position = StepPosition(phase, 0, number)
            self._take(position, len(steps), step, keep_running=keep_running)

    def _purge(self) -> None:
        self._phase("purge")
        self.at_rest = False
        purge = (
            self.engine.purge(self.progress.purge_progress) if self.procedure.purges else NOT_PURGED
        )
        self.progress.phase("purge", purge.method)
        if not purge.conformant and self.procedure.purges:
            self._warn(f"the purge ({purge.method}) is weaker than the standard's: {purge.note}")
        wanted = self.procedure.write_cache
        cache = self.engine.set_write_cache(wanted)
        state = _CACHE_STATES[cache.enabled]
        self.progress.phase("write cache", "; ".join(filter(None, (state, cache.note))))
        if cache.enabled is not wanted:
            self._warn(
                f"the write cache is {state}, but the test requires it to be "
                f"{_CACHE_STATES[wanted]}"
            )
        self.journal.prepared(purge, cache, self.warnings)
        if self.power is not None:  # A purge may reset the controller.
            self.engine.power_states(settle=True)

    def _bring_to_state(self, stage: Stage, ahead: bool) -> None:
        """Bring a simulated drive into the initial state of the stage, without device time.

        The writes that create the state count in the same way as preconditioning writes.
        """
        if ahead:
            cache = StateCache.of_user()
            hook = self.progress.step_progress
            self.progress.phase(
                "preconditioning",
                "preparing the initial state of the stage (cached for later runs)",
            )
            cached = bring_to(self.engine, stage.state, cache=cache, on_progress=hook)
            self.progress.phase("preconditioning", "state from the cache" if cached else "prepared")
            self.device_zero_ns, self.new_clock = None, True
        jobs = [job for load in stage.state for job in load.jobs]
        self.history.host_write_bytes_total = sum(job.volume_bytes or 0 for job in jobs)

    def _rounds(self, stage: Stage, here: StageHistory) -> End:
        for round_number in itertools.count(1):
            steps = stage.steps(self.history, round_number)
            if not steps:  # The results so far leave nothing to measure.
                return stage.ends[0]
            for number, step in enumerate(steps, 1):
                position = StepPosition(stage.phase, round_number, number)
                self._take(position, len(steps), step, keep_running=stage.continuous)
                last = number == len(steps)
                if last:
                    self.progress.round_end(round_number, here.round_complete(round_number))
                for end in stage.ends:
                    if (last or not end.per_round) and end.reached(here):
                        return end
        raise AssertionError(
            "unreachable: rounds stop only when the stage reaches an end condition"
        )

    # -- steps ------------------------------------------------------------------------------

    def _take(
        self, position: StepPosition, steps: int, step: Step, *, keep_running: bool = False
    ) -> None:
        """Add the step's row to the history, either from the store or by running the step.

        If `keep_running` is set, the load continues into the next step.
        """
        index = len(self.history.rows)
        stored = self.stored[index] if index < len(self.stored) else None
        if stored is not None and index < self.engine_at:
            self._check_position(stored, position)
            self.history.add(replace(stored, role=step.role))
            return
        self.progress.step_begin(*position, steps, step.name)
        if step.continues and self.identity.simulated:
            rows = self.history.current.rows if self.history.stages else ()
            step = continued(step, rows, self.identity.capacity_bytes)
        self.running, self.at_rest = (position, step), False
        hook = self.progress.step_progress
        if step.untimed:
            result = self.engine.precondition(step.workload, hook)
        else:
            result = self.engine.run(step.workload, hook, keep_running=keep_running)
        self.progress.step_result(result, sample=step.sample)
        record = self._record(result, position, step, stored)
        row = row_of(record.columns)
        if stored is None:
            with interrupt_deferred():
                self.journal.append(record)
        elif row != stored:
            raise _differs(stored, row)
        self.engine_at = index + 1
        self.running, self.at_rest = None, True
        self.history.add(replace(row, role=step.role))
        self.progress.step_end(row, self.history, again=stored is not None)
        if self.checkpoints.due():
            # A checkpoint that is later than the stored steps would be useless.
            self.journal.store()
            self.checkpoints.save(self.engine_at)

    def _record(
        self,
        result: StepResult,
        position: StepPosition,
        step: Step,
        stored: StepRow | None = None,
    ) -> RoundRecord:
        if self.device_zero_ns is None:
            self.device_zero_ns = self._device_zero(result, stored)
        return record_of(
            result,
            position,
            step,
            started_ns=result.started_ns - self.device_zero_ns,
            written_before_bytes=self.history.host_write_bytes_total,
            capacity_bytes=self.identity.capacity_bytes,
        )

    def _device_zero(self, result: StepResult, row: StepRow | None) -> int:
        """Return the device clock at time 0 of the rows, from the first result of a session.

        `row` is the stored row of a repeated step.
        """
        simulated = self.engine.kind == "sim"
        stored = self.journal.device_zero_ns
        if not self.history.rows:
            zero = result.started_ns
        elif simulated and row is not None:
            zero = result.started_ns - row.started_ns
        elif simulated and stored is not None and not self.new_clock:
            return stored
        else:
            # The clock of a real drive restarts in every session, so the code continues where the
            # last row ended.
            zero = result.started_ns - self.history.rows[-1].ended_ns
        self.journal.device_zero_ns, self.new_clock = zero, False
        return zero

    def _check_position(self, row: StepRow, position: StepPosition) -> None:
        if (row.phase, row.round, row.step) != position:
            raise StoreError(
                f"{self.directory} contains step {row.step} of round {row.round}, but step "
                f"{position.step} of round {position.round} is expected",
                hint="the run used other options or is damaged; start a new run",
            )


def _differs(stored: StepRow, again: StepRow) -> StoreError:
    """Return the error for a simulated step whose repetition differs from the stored row."""
    names = [name for name, old in vars(stored).items() if getattr(again, name) != old]
    return StoreError(
        f"round {stored.round} step {stored.step} ({stored.label}) was repeated with a different "
        f"result: {names[0]} is {getattr(again, names[0])}, but {getattr(stored, names[0])} is "
        f"stored",
        hint="the run was made with another version of the simulator; start a new run",
    )


# -- sequential streams that continue from step to step --------------------------------------------

# A stream that started at the first address in every step would access the same region of the drive
# repeatedly. On a real drive, a stage is one load without a gap (`Stage.continuous`), or its steps
# start where the previous steps ended (`tp.next_start`, as far as fio allows). On a simulated
# drive, the streams of a step start where earlier steps of the same kind ended.


def continued(step: Step, rows: Iterable[StepRow], range_bytes: int) -> Step:
    """Return `step` with streams that continue the streams of `rows`, the earlier steps.

    Only steps with the same access are considered, and reads and writes have separate streams.
    `range_bytes` is a job's default range.
    """
    access = access_of(step.workload)
    if access.pattern != "sequential" or access.block_bytes is None:
        return step
    earlier = [row for row in rows if _same(row, access)]
    if not earlier:
        return step
    (job,) = step.workload.jobs
    block = access.block_bytes
    passed = job.range_bytes or range_bytes
    if job.segments is not None:  # The stream passes through the ranges in order.
        passed = job.segments.count * job.segments.length(block)
    blocks = max(1, passed // block)

    def position(done_bytes: int) -> int:
        return done_bytes // job.threads // block % blocks * block

    read = sum(row.read_bytes for row in earlier)
    written = sum(row.bytes for row in earlier) - read
    job = replace(job, start_bytes=position(read), write_start_bytes=position(written))
    return replace(step, workload=replace(step.workload, jobs=(job,)))


def _same(row: StepRow, access: object) -> bool:
    names = ("pattern", "block_bytes", "read_pct", "threads", "queue_depth")
    return all(getattr(row, name) == getattr(access, name) for name in names)


# -- interrupts ------------------------------------------------------------------------------------

# Ctrl-C and SIGTERM are deferred while a record is being written.

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def terminate_as_interrupt() -> AbstractContextManager[None]:
    """Make SIGTERM raise KeyboardInterrupt, like Ctrl-C, so that a stopped run can be resumed."""
    return handling((signal.SIGTERM,), signal.default_int_handler)


@contextmanager
def interrupt_deferred() -> Iterator[None]:
    """Defer Ctrl-C and SIGTERM until the block ends, then deliver every deferred signal.

    An ignored signal remains ignored.
    """
    held: list[int] = []
    numbers = [n for n in _SIGNALS if signal.getsignal(n) != signal.SIG_IGN]
    try:
        with handling(numbers, lambda number, frame: held.append(number)):
            yield
    finally:
        for number in held:
            signal.raise_signal(number)
