"""`FioEngine`: the engine interface on a real block device or a regular file, through fio.

Joins target, job file, child process and results. A target can be written only if it was opened for
writing; a device that is opened without its serial number can only be read.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from writecliff.engines.base import (
    CacheReport,
    DeviceIdentity,
    PowerStates,
    ProgressHook,
    PurgeHook,
    PurgeReport,
    StepResult,
    described_as,
    unseen,
)
from writecliff.engines.blockdev.topology import System
from writecliff.engines.counters import Counters
from writecliff.engines.disturbance import Reading
from writecliff.engines.fio import command, parse
from writecliff.engines.fio.bursts import burst_of, has_bursts, run_bursts
from writecliff.engines.fio.capability import DataPlacement, Fio, find_fio
from writecliff.engines.fio.command import FioPlan
from writecliff.engines.fio.faults import GIVE_UP_S, StallWatch, cause_on, is_never_idle
from writecliff.engines.fio.intervals import Stats
from writecliff.engines.fio.measured import Measured
from writecliff.engines.fio.mix import idle, split
from writecliff.engines.fio.process import Document, Exit, FioProcess
from writecliff.engines.fio.targets import DeviceTarget, FileBackedTarget, FioTarget
from writecliff.engines.fio.watch import DisturbanceWatch
from writecliff.engines.timed.issuing import (
    P,
    TraceHook,
    TraceIssued,
    TraceToIssue,
    failure_text,
    not_watched,
)
from writecliff.engines.timed.loads import TimedLoad, is_timed, writes
from writecliff.errors import EngineError, TargetError
from writecliff.workload.model import SECOND_NS, Job, Workload


class FioEngine(AbstractContextManager["FioEngine"]):
    """Engine for a real target. Open it with `open_device` or `open_file`; close it when done."""

    kind: Literal["sim", "fio"] = "fio"

    def __init__(self, target: FioTarget, fio: Fio, system: System) -> None:
        self._target = target
        self._fio = fio
        self._system = system
        self._opened_ns = time.monotonic_ns()
        self._data_placement: DataPlacement | str | None = None
        self._load: FioLoad | None = None  # what runs now
        self._speeds: dict[Workload, float | None] = {}
        self._watch = DisturbanceWatch(target.disk_name, target.for_command("").capacity_bytes)
        self._begun = False  # something has run
        self._closed = False
        self.described: Mapping[str, str] = {}  # by the user; see `open_target`

    @classmethod
    def open_device(
        cls,
        path: str | Path,
        *,
        destroy_serial: str | None,
        allow_signatures: bool = False,
        power_state: int | None = None,
        look_only: bool = False,
        system: System | None = None,
    ) -> FioEngine:
        """Open a block device. Without `destroy_serial` or with `look_only` it can only be read.

        `destroy_serial` must be the drive's serial number (its full path if it has none), and
        `allow_signatures` must be set as well if anything is found on it. `power_state` is one
        of an NVMe drive's, to be set for a test and set back when it is closed. Raises
        `TargetError` if the device must not be touched, `EngineError` if there is no usable fio.
        """
        system = system or System()
        fio = find_fio(system.run)
        target = DeviceTarget.open(
            str(path), destroy_serial, allow_signatures, system, power_state=power_state,
            look_only=look_only,
        )  # fmt: skip
        return cls(target, fio, system)

    @classmethod
    def open_file(
        cls, path: str | Path, *, size_bytes: int | None, system: System | None = None
    ) -> FioEngine:
        """Open a regular file; with `size_bytes` it is created if it is not there."""
        system = system or System()
        fio = find_fio(system.run)
        return cls(FileBackedTarget.open(path, size_bytes, system), fio, system)

    @property
    def write_refusal(self) -> TargetError | None:
        """Error that refuses a run that writes; None if it may run."""
        return self._target.refusal

    @property
    def fio_program(self) -> str:
        return self._fio.program

    def job_file(self, workload: Workload) -> str:
        """The job file that `run` gives to fio. Raises as `run` does."""
        return self._plan(split(workload).run).text

    def identify(self) -> DeviceIdentity:
        return described_as(self._target.identify(), self.described)

    def purge(self, on_progress: PurgeHook = unseen) -> PurgeReport:
        self._require_open()
        self._target.require_writable()
        self.stop_load()
        report = self._target.purge(on_progress)
        self._watch.purged()
        return report

    def set_write_cache(self, enabled: bool) -> CacheReport:
        self._require_open()
        self._target.require_writable()
        return self._target.set_write_cache(enabled)

    def counters(self) -> Counters:
        return self._target.reading().vitals.counters

    def health(self) -> Mapping[str, Any] | None:
        """The drive's SMART data as plain values; None if it has none, as for a file."""
        return self._target.health()

    def log_events(self) -> None:
        """Leave the drive's events as they are."""

    def power_states(self, *, settle: bool = False) -> PowerStates | None:
        self._require_open()
        return self._target.power_states(settle=settle)

    def precondition(
        self, workload: Workload, on_progress: ProgressHook | None = None
    ) -> StepResult:
        """Runs the workload; a real drive cannot be brought to a state faster."""
        return self.run(workload, on_progress)

    def run(
        self,
        workload: Workload,
        on_progress: ProgressHook | None = None,
        *,
        keep_running: bool = False,
    ) -> StepResult:
        """Run a workload: through fio, or as timed I/O if all its I/Os have times of their own. See
        `Engine.run`; on Ctrl-C the partial result is kept too.

        Raises `TargetError` if it writes and the target may only be read.
        """
        if is_timed(workload) and not keep_running and not self._continues(workload):
            return self._run_timed(workload, on_progress)
        mixed = split(workload)
        try:
            return mixed.joined(self._run(mixed.run, on_progress, keep_running=keep_running))
        except EngineError as error:
            if isinstance(error.partial, StepResult):
                error.partial = mixed.joined(error.partial)
            raise

    def _run(
        self, workload: Workload, on_progress: ProgressHook | None, *, keep_running: bool
    ) -> StepResult:
        if not self._continues(workload):
            self.stop_load()
            if has_bursts(workload):
                return self._run_bursts(workload, on_progress)
            begun = self._load_of(workload, goes_on=keep_running and can_go_on(workload))
            begun.reading = self._target.reading_before()
            begun.start(self._now_ns())
            self._load = begun
        load = self._load
        assert load is not None, "one was started, or goes on"
        step = load.begin(workload, load.reading or self._target.reading())
        with self._kept(step):
            if self._follow(load, step, on_progress):
                if not keep_running:
                    self.stop_load()
                load.reading = self._target.reading(loaded=keep_running)
                result = self._checked(step, load.reading)
                if trouble := self._target.trouble():
                    # Such as another size: no I/O needs to have failed of it.
                    raise EngineError(f"{self._target.name}: {trouble}", partial=result)
                return result
            return self._conclude(step, load.ended())

    def _continues(self, workload: Workload) -> bool:
        """Whether the load that runs now is this one."""
        return self._load is not None and self._load.continues(workload)

    def _run_timed(self, workload: Workload, on_progress: ProgressHook | None) -> StepResult:
        """Issue the I/Os at their times, by the rules that fio's loads have."""
        self.stop_load()
        self._require_open()
        if writes(workload):
            self._target.require_writable()
        self._verify()
        where = self._target.for_command("not requested")
        load = TimedLoad(workload, self._now_ns(), self._target.reading_before(), True)
        stalls = StallWatch(self._target.name, load.counts, GIVE_UP_S)
        try:
            load.run(where, stalls.reported, on_progress)
        except BaseException as error:
            after = self._target.reading(loaded=True)
            partial = self._timed_result(load, stalls, after, complete=False)
            if isinstance(error, KeyboardInterrupt):
                raise EngineError("interrupted", partial=partial) from error
            if isinstance(error, EngineError) and error.partial is None:
                error.partial = partial
            raise
        stalls.finish()
        result = self._timed_result(load, stalls, self._target.reading(), complete=True)
        if load.raw is not None and load.raw["failure"] is not None:
            text = failure_text(self._target.name, load.raw["failure"])
            raise EngineError(self._target.trouble() or text, partial=result)
        if names := [job.name for job in result.jobs if not job.operations]:
            raise EngineError(f"job {names[0]} did no I/O", partial=result)
        if trouble := self._target.trouble():
            raise EngineError(f"{self._target.name}: {trouble}", partial=result)
        return result

    def replay_timed(self, trace: TraceToIssue[P], hook: TraceHook = not_watched) -> TraceIssued:
        """Issue the I/Os of a trace at their times. Raises TargetError
        (it would write and may not, or the trace does not fit), ConfigError, EngineError,
        StoreError.
        """
        self.stop_load()
        self._require_open()
        where = self._target.for_command("not requested")
        plan = trace.plan(where)
        if plan.writes:
            self._target.require_writable()
        self._verify()
        seen: Mapping[str, int] = {"ios": 0, "in_flight": 0}
        stalls = StallWatch(self._target.name, lambda: (seen["ios"], seen["in_flight"]), GIVE_UP_S)

        def on_tick(live: Mapping[str, int]) -> None:
            nonlocal seen
            seen = live
            stalls.reported()
            hook(live, plan.due_ns)

        done = trace.issue(where, plan, on_tick)
        stalls.finish()
        done.notes[:] = [*self._target.notes, *stalls.notes, *done.notes]
        if done.failure is not None:
            text = failure_text(self._target.name, done.failure)
            raise EngineError(self._target.trouble() or text, partial=done)
        return done

    def _timed_result(
        self, load: TimedLoad, stalls: StallWatch, after: Reading, *, complete: bool
    ) -> StepResult:
        load.notes += stalls.notes
        return load.result(after, self._watch, self._target.notes, complete=complete)

    def speed_limit(self, workload: Workload) -> float | None:
        """Twice the speed of reads of the same kind, measured once; None if they fail."""
        reads = reads_like(workload)
        if reads not in self._speeds:
            self._speeds[reads] = measured_speed(self.run, reads)
        return self._speeds[reads]

    def stop_load(self) -> None:
        """End a load that `run` has left running. Safe to call again."""
        load, self._load = self._load, None
        if load is not None:
            load.stop()

    def save(self, path: Path) -> bool:
        """Returns False: the drive itself is the state."""
        return False

    def restore(self, path: Path) -> None:
        raise EngineError("a real drive cannot be restored to a saved state")

    def close(self) -> None:
        """End what runs and release the target. Safe to call again."""
        self.stop_load()
        self._closed = True
        self._target.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise EngineError(f"{self._target.name}: the engine is closed")

    def _plan(self, workload: Workload) -> command.FioPlan:
        """The job file, that of the first burst if there are more. Raises if the target changed or
        must not be written.
        """
        self._require_open()
        if has_bursts(workload):
            workload = burst_of(workload) or workload
        plan = command.plan(workload, self._command_target(workload), self._fio)
        if plan.writes:
            self._target.require_writable()
        self._verify()
        return plan

    def _verify(self) -> None:
        """Raise if the target is no longer what was opened."""
        try:
            self._target.verify()
        except TargetError as error:
            if not self._begun:
                raise
            # Midway it is the run that failed, not the choice of a target.
            raise EngineError(str(error)) from error
        self._begun = True

    def _command_target(self, workload: Workload) -> command.Target:
        if self._data_placement is None and any(job.stream or job.streams for job in workload.jobs):
            self._data_placement = self._target.data_placement(self._fio)
        return self._target.for_command(self._data_placement or "not requested")

    def _load_of(self, workload: Workload, *, goes_on: bool = False) -> FioLoad:
        """A load that ends by itself unless it `goes_on`; it has not been started."""
        plan = self._plan(endless(workload) if goes_on else workload)
        return FioLoad(self._fio.program, workload, plan, goes_on)

    def _run_bursts(self, workload: Workload, on_progress: ProgressHook | None) -> StepResult:
        plan = self._plan(workload)
        before = self._target.reading_before()
        step = Measured(workload, plan, self._now_ns(), before)

        def run_burst(burst: Workload) -> None:
            load = self._load = self._load_of(burst)
            load.start(self._now_ns())
            self._follow(load, step, on_progress)
            self._require_success(step, load.ended())

        with self._kept(step):
            run_bursts(step, run_burst, partial(step.tell, on_progress))
            return self._checked(step, self._target.reading())

    def _follow(self, load: FioLoad, step: Measured, on_progress: ProgressHook | None) -> bool:
        """As `FioLoad.follow`; notes stalls, and gives up on a drive that does not answer."""
        interval_s = step.workload.interval_ns / SECOND_NS
        stalls = StallWatch(
            self._target.name,
            self._target.io_counts,
            interval_s,
            never_idle=is_never_idle(step.workload),
        )

        def on_report() -> None:
            stalls.reported()
            step.tell(on_progress)

        try:
            goes_on = load.follow(step, on_report, stalls.tick)
            stalls.finish()
            return goes_on
        finally:
            step.notes += stalls.notes

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self._opened_ns

    @contextmanager
    def _kept(self, step: Measured) -> Iterator[None]:
        """If the block fails or is interrupted, stop fio and keep what was measured."""
        try:
            yield
        except BaseException as error:
            load, self._load = self._load, None
            with contextlib.suppress(Exception):
                for document in load.stop() if load is not None else ():
                    step.take(document)
            # A drive that failed or does not answer is not asked for its health.
            after = self._target.reading(loaded=True)
            if isinstance(error, KeyboardInterrupt):
                raise EngineError("interrupted", partial=self._result(step, after)) from error
            if isinstance(error, EngineError) and error.partial is None:
                error.partial = self._result(step, after)
            raise

    def _conclude(self, step: Measured, ended: Exit) -> StepResult:
        """The result of a run that ended by itself. Raises `EngineError` if it failed."""
        self._load = None
        self._require_success(step, ended)
        return self._checked(step, self._target.reading(), ended)

    def _require_success(self, step: Measured, ended: Exit) -> None:
        if reason := step.failure(ended):
            raise EngineError(cause_on(self._target, ended, reason))

    def _checked(self, step: Measured, after: Reading, ended: Exit | None = None) -> StepResult:
        """The result of a complete step. Raises `EngineError` if a job did nothing."""
        result = self._result(step, after, complete=True)
        if names := idle(step.workload.jobs, result.jobs):
            detail = f": {ended.message}" if ended is not None and ended.message else ""
            reason = f"job {names[0]} did no I/O{detail}"
            cause = cause_on(self._target, ended or Exit(0, ""), reason)
            raise EngineError(cause, partial=result)
        return result

    def _result(self, step: Measured, after: Reading, *, complete: bool = False) -> StepResult:
        """What has been measured so far, as a result."""
        return step.result(after, self._watch, self._target.notes, complete=complete)


# -- upper limit of the speed of a drive, estimated by reads ---------------------------------------

# With many outstanding I/Os, flash writes no faster than it reads: programming takes longer than
# reading, and both share the link and the processors of the controller. A write buffer is faster
# until it is full, so the limit is twice the read rate.

WRITES_OVER_READS = 2.0
MEASURE_NS = 300_000_000
OUTSTANDING = 64  # at least: a read alone waits for the flash, a write alone for the buffer only


def reads_like(workload: Workload) -> Workload:
    """Reads of the same blocks and addresses as fast as they go; equal for alike workloads."""
    jobs = tuple(dict.fromkeys(_reads(job) for job in workload.jobs))
    return Workload("speed of reads", jobs, interval_ns=MEASURE_NS)


def _reads(job: Job) -> Job:
    return Job(
        name="reads",
        pattern=job.pattern,
        read_pct=100.0,
        block_sizes=job.block_sizes,
        threads=job.threads,
        queue_depth=max(job.queue_depth, -(-OUTSTANDING // job.threads)),
        align_bytes=job.align_bytes,
        duration_ns=MEASURE_NS,
    )


def measured_speed(run: Callable[[Workload], StepResult], reads: Workload) -> float | None:
    """The limit by running `reads`; None if they cannot be run."""
    try:
        result = run(replace(reads, seed=1))
    except (EngineError, TargetError):
        return None
    return WRITES_OVER_READS * result.total()[1] / (result.elapsed_ns / 1e9 or 1e-3)


# -- running load ----------------------------------------------------------------------------------

# A fio process, and the steps that are measured with it: one, or many in succession.
#
# A load that goes on from step to step (WSAT, ACT) runs in one process: with a process for each
# minute the drive would rest a thousand times a day. Steps are cut out of fio's cumulative reports,
# at multiples of their length on fio's own clock, so the cuts do not drift and no I/O is lost
# between two steps. The drive does not notice a cut: fio answers the request for a report while its
# threads go on, and a thread of ours takes it in while the driver still stores the step before.

ENDLESS_NS = 365 * 86400 * SECOND_NS
SHORTEST_NS = 200_000_000  # of a step that can be cut: fio reports every 0.1 s at most


def can_go_on(workload: Workload) -> bool:
    """Whether steps of the workload can be cut out of one load: they end by time alone."""
    job = workload.jobs[0]
    return (job.duration_ns or 0) >= SHORTEST_NS and all(
        other.duration_ns == job.duration_ns
        and other.volume_bytes is None
        and other.ios is None
        and not other.start_delay_ns
        and not other.ramp_ns
        for other in workload.jobs
    )


def endless(workload: Workload) -> Workload:
    """The same load without an end, and with a report at each multiple of its duration."""
    length_ns = workload.jobs[0].duration_ns or workload.interval_ns
    reports = max(1, -(-length_ns // workload.interval_ns))
    interval_ns = max(length_ns // reports, SHORTEST_NS // 2)
    jobs = tuple(replace(job, duration_ns=ENDLESS_NS) for job in workload.jobs)
    return replace(workload, jobs=jobs, interval_ns=interval_ns)


def _load_alone(workload: Workload) -> Workload:
    """Without what may differ from step to step: name, seed, and the length of the step."""
    jobs = tuple(replace(job, duration_ns=None) for job in workload.jobs)
    return replace(workload, name="", seed=0, jobs=jobs)


class FioLoad:
    """A load that runs in one fio process until it ends by itself or is stopped."""

    def __init__(self, program: str, workload: Workload, plan: FioPlan, goes_on: bool) -> None:
        """`plan` is that of `endless(workload)` if the load `goes_on` after its first step."""
        self.plan = plan
        self.goes_on = goes_on
        self.reading: Reading | None = None  # at the latest cut
        self._workload = _load_alone(workload)
        self._began_ns = 0
        interval_ns = (endless(workload) if goes_on else workload).interval_ns
        self._interval_ms = interval_ns / parse.MS
        self._process = FioProcess(program, plan.text, self._interval_ms)
        self._report: tuple[float, Stats] = (0.0, {})  # at the latest cut
        self._due_ms = 0.0  # of the latest cut
        self._late_ms = 0.0  # by which it was taken after it had been made

    def start(self, now_ns: int) -> None:
        """Start fio, at `now_ns` on the engine's clock. Raises `EngineError` if it cannot be."""
        self._began_ns = now_ns
        self._process.start()

    def continues(self, workload: Workload) -> bool:
        """Whether a step of `workload` can be cut out of this load."""
        return self.goes_on and can_go_on(workload) and _load_alone(workload) == self._workload

    def begin(self, workload: Workload, before: Reading) -> Measured:
        """A step that begins at the latest cut; `before` is the reading there."""
        elapsed_ms = self._report[0]
        started_ns = self._began_ns + round(elapsed_ms * parse.MS)
        step = Measured(workload, self.plan, started_ns, before, elapsed_ms, self.goes_on)
        step.late_ms = self._late_ms
        step.begin_part(begin=self._report)
        self._due_ms += (workload.jobs[0].duration_ns or 0) / parse.MS
        return step

    def follow(
        self,
        step: Measured,
        on_report: Callable[[], None],
        on_tick: Callable[[], None] = lambda: None,
    ) -> bool:
        """Take reports until the step is over. True: at a cut, and the load goes on; False: fio
        has ended. `on_tick` is called twice a second while there is no report. An exception of
        either leaves fio running.
        """
        while (document := self._process.next(on_tick)) is not None:
            step.take(document)
            on_report()
            if self.goes_on and step.series.latest[0] >= self._due_ms - self._interval_ms / 2:
                self._report = step.series.latest
                step.late_ms = max(step.late_ms, self._process.waited_ns / parse.MS)
                self._late_ms = self._process.waited_ns / parse.MS
                return True
        return False

    def ended(self) -> Exit:
        """How fio ended; waits for it."""
        ended = self._process.ended()
        if self.goes_on and not ended.reason:
            return replace(ended, fault="it ended before its time")
        return ended

    def stop(self) -> list[Document]:
        """Stop fio if it runs; returns the reports that no step has taken."""
        try:
            return self._process.stop()
        finally:
            self._process.close()
