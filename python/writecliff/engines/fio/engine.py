"""`FioEngine`, which uses fio to run workloads on a real block device or regular file.

The engine connects the target, job file, child process and results. A target can be written only if
it was opened for writing. A device opened without its serial number is read-only.
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
    """Engine for a real target, opened with `open_device` or `open_file`."""

    kind: Literal["sim", "fio"] = "fio"

    def __init__(self, target: FioTarget, fio: Fio, system: System) -> None:
        """Use an open target and an installed fio (see `open_device` and `open_file`)."""
        self._target = target
        self._fio = fio
        self._system = system
        self._opened_ns = time.monotonic_ns()
        self._data_placement: DataPlacement | str | None = None
        self._load: FioLoad | None = None  # Load that is running.
        self._speeds: dict[Workload, float | None] = {}
        self._watch = DisturbanceWatch(target.disk_name, target.for_command("").capacity_bytes)
        self._begun = False  # `True` once a load has run.
        self._closed = False
        # Description supplied by the user (see `open_target`).
        self.described: Mapping[str, str] = {}

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
        """Open a block device, read-only unless consent is given or if `look_only` is set.

        Args:
            path: Device node.
            destroy_serial: The drive's serial number, or else its full path, as consent to destroy
                the drive's data.
            allow_signatures: `True` to also allow the loss of file systems and partition tables.
            power_state: Power state for an NVMe drive. The original state is restored when the
                engine is closed.
            look_only: `True` to inspect the device without claiming it.
            system: The system's files and programs, which tests replace.

        Raises:
            TargetError: If the device must not be used.
            EngineError: If no usable fio is installed.
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
        """Open a regular file, or create a missing file if `size_bytes` is given."""
        system = system or System()
        fio = find_fio(system.run)
        return cls(FileBackedTarget.open(path, size_bytes, system), fio, system)

    @property
    def write_refusal(self) -> TargetError | None:
        """Error that a write run would raise, or None if writing is allowed."""
        return self._target.refusal

    @property
    def fio_program(self) -> str:
        """Path of the fio executable."""
        return self._fio.program

    def job_file(self, workload: Workload) -> str:
        """Return the job file that `run` passes to fio, or raise the errors of `run`."""
        return self._plan(split(workload).run).text

    def identify(self) -> DeviceIdentity:
        """Return the identity that the drive and the kernel report."""
        return described_as(self._target.identify(), self.described)

    def purge(self, on_progress: PurgeHook = unseen) -> PurgeReport:
        """Purge the target with the strongest supported method (see `purge_device`)."""
        self._require_open()
        self._target.require_writable()
        self.stop_load()
        report = self._target.purge(on_progress)
        self._watch.purged()
        return report

    def set_write_cache(self, enabled: bool) -> CacheReport:
        """Enable or disable the drive's volatile write cache (no effect on files)."""
        self._require_open()
        self._target.require_writable()
        return self._target.set_write_cache(enabled)

    def counters(self) -> Counters:
        """Return the counters in the drive's SMART log, which are all None for a file."""
        return self._target.reading().vitals.counters

    def health(self) -> Mapping[str, Any] | None:
        """Return the drive's SMART data as plain values, or None for a file."""
        return self._target.health()

    def log_events(self) -> None:
        """Do nothing, because the administrator of a real drive enables its events."""

    def power_states(self, *, settle: bool = False) -> PowerStates | None:
        """Return an NVMe drive's power states, after setting the requested state if `settle`."""
        self._require_open()
        return self._target.power_states(settle=settle)

    def precondition(
        self, workload: Workload, on_progress: ProgressHook | None = None
    ) -> StepResult:
        """Run the workload, because a real drive cannot be preconditioned faster."""
        return self.run(workload, on_progress)

    def run(
        self,
        workload: Workload,
        on_progress: ProgressHook | None = None,
        *,
        keep_running: bool = False,
    ) -> StepResult:
        """Run a workload through fio, or as timed I/O if all I/Os have intended times.

        See `Engine.run`. Ctrl-C also raises an EngineError that contains the partial result.

        Raises:
            TargetError: If the workload writes, but the target is read-only.
            EngineError: If the load failed or was interrupted.
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
        assert load is not None, "started above, or still running"
        step = load.begin(workload, load.reading or self._target.reading())
        with self._partial_kept(step):
            if self._follow(load, step, on_progress):
                if not keep_running:
                    self.stop_load()
                load.reading = self._target.reading(loaded=keep_running)
                result = self._checked(step, load.reading)
                if trouble := self._target.trouble():
                    # For example, a change in device size need not make any I/O fail.
                    raise EngineError(f"{self._target.name}: {trouble}", partial=result)
                return result
            return self._conclude(step, load.ended())

    def _continues(self, workload: Workload) -> bool:
        """Return True if the workload continues the running load."""
        return self._load is not None and self._load.continues(workload)

    def _run_timed(self, workload: Workload, on_progress: ProgressHook | None) -> StepResult:
        """Issue the I/Os at their intended times, with the same checks and limits as fio loads."""
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
            raise EngineError(f"job {names[0]} completed no I/O", partial=result)
        if trouble := self._target.trouble():
            raise EngineError(f"{self._target.name}: {trouble}", partial=result)
        return result

    def replay_timed(self, trace: TraceToIssue[P], hook: TraceHook = not_watched) -> TraceIssued:
        """Issue a trace's I/Os at their recorded times.

        Raises:
            TargetError: If the trace writes to a read-only target, or does not fit.
            ConfigError: If the trace is invalid.
            EngineError: If an I/O failed, or io_uring is not available.
            StoreError: If the trace cannot be read.
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
        """Return twice the throughput of similar reads (measured once), or None on failure."""
        reads = reads_like(workload)
        if reads not in self._speeds:
            self._speeds[reads] = measured_speed(self.run, reads)
        return self._speeds[reads]

    def stop_load(self) -> None:
        """Stop the load that a previous `run` left running, if any."""
        load, self._load = self._load, None
        if load is not None:
            load.stop()

    def save(self, path: Path) -> bool:
        """Return False, because the state of a real drive cannot be saved."""
        return False

    def restore(self, path: Path) -> None:
        """Raise EngineError, because the state of a real drive cannot be restored."""
        raise EngineError("a real drive cannot be restored to a saved state")

    def close(self) -> None:
        """Stop a running load, and release the target (further calls have no effect)."""
        self.stop_load()
        self._closed = True
        self._target.close()

    def __exit__(self, *_: object) -> None:
        """Close the engine."""
        self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise EngineError(f"{self._target.name}: the engine is already closed")

    def _plan(self, workload: Workload) -> command.FioPlan:
        """Return the job file, or the job file of the first burst.

        Raises:
            TargetError: If the target changed, or is read-only and the workload writes.
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
        """Raise an error if the path no longer refers to the opened target."""
        try:
            self._target.verify()
        except TargetError as error:
            if not self._begun:
                raise
            # After the first load, a changed target counts as a failed run rather than a wrong
            # target.
            raise EngineError(str(error)) from error
        self._begun = True

    def _command_target(self, workload: Workload) -> command.Target:
        if self._data_placement is None and any(job.stream or job.streams for job in workload.jobs):
            self._data_placement = self._target.data_placement(self._fio)
        return self._target.for_command(self._data_placement or "not requested")

    def _load_of(self, workload: Workload, *, goes_on: bool = False) -> FioLoad:
        """Return a load that is not started yet, and runs until stopped if `goes_on`."""
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

        with self._partial_kept(step):
            run_bursts(step, run_burst, partial(step.show, on_progress))
            return self._checked(step, self._target.reading())

    def _follow(self, load: FioLoad, step: Measured, on_progress: ProgressHook | None) -> bool:
        """Monitor the load, record stalls, and fail if the drive does not respond."""
        interval_s = step.workload.interval_ns / SECOND_NS
        stalls = StallWatch(
            self._target.name,
            self._target.io_counts,
            interval_s,
            never_idle=is_never_idle(step.workload),
        )

        def on_report() -> None:
            stalls.reported()
            step.show(on_progress)

        try:
            goes_on = load.follow(step, on_report, stalls.tick)
            stalls.finish()
            return goes_on
        finally:
            step.notes += stalls.notes

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self._opened_ns

    @contextmanager
    def _partial_kept(self, step: Measured) -> Iterator[None]:
        """If the block fails or is interrupted, stop fio and attach the partial result."""
        try:
            yield
        except BaseException as error:
            load, self._load = self._load, None
            with contextlib.suppress(Exception):
                for document in load.stop() if load is not None else ():
                    step.take(document)
            # Do not query the health of a drive that failed or does not respond.
            after = self._target.reading(loaded=True)
            if isinstance(error, KeyboardInterrupt):
                raise EngineError("interrupted", partial=self._result(step, after)) from error
            if isinstance(error, EngineError) and error.partial is None:
                error.partial = self._result(step, after)
            raise

    def _conclude(self, step: Measured, ended: Exit) -> StepResult:
        """Return the result of a run that finished by itself.

        Raises:
            EngineError: If fio or an I/O failed.
        """
        self._load = None
        self._require_success(step, ended)
        return self._checked(step, self._target.reading(), ended)

    def _require_success(self, step: Measured, ended: Exit) -> None:
        if reason := step.failure(ended):
            raise EngineError(cause_on(self._target, ended, reason))

    def _checked(self, step: Measured, after: Reading, ended: Exit | None = None) -> StepResult:
        """Return the result of a complete step.

        Raises:
            EngineError: If a job completed no I/O.
        """
        result = self._result(step, after, complete=True)
        if names := idle(step.workload.jobs, result.jobs):
            detail = f": {ended.message}" if ended is not None and ended.message else ""
            reason = f"job {names[0]} completed no I/O{detail}"
            cause = cause_on(self._target, ended or Exit(0, ""), reason)
            raise EngineError(cause, partial=result)
        return result

    def _result(self, step: Measured, after: Reading, *, complete: bool = False) -> StepResult:
        """Return the measurements taken so far."""
        return step.result(after, self._watch, self._target.notes, complete=complete)


# -- upper limit on the throughput of a drive, estimated from reads --------------------------------

# With many outstanding I/Os, flash writes no faster than it reads. Programming takes longer than
# reading, and both share the link and the controller's processors. A write buffer is faster until
# it is full, so the limit is twice the read rate.

WRITES_OVER_READS = 2.0
MEASURE_NS = 300_000_000
# Minimum queue depth. At lower depths, reads wait for flash but writes wait only for the buffer.
OUTSTANDING = 64


def reads_like(workload: Workload) -> Workload:
    """Return reads, equal for similar workloads, that use a workload's blocks and addresses."""
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
    """Measure and return the throughput of `reads` in bytes/s, or return None on failure."""
    try:
        result = run(replace(reads, seed=1))
    except (EngineError, TargetError):
        return None
    return WRITES_OVER_READS * result.total()[1] / (result.elapsed_ns / 1e9 or 1e-3)


# -- running load ----------------------------------------------------------------------------------

# A fio process runs either a single step or many successive steps.
#
# A load that spans many steps (WSAT, ACT) runs in a single process. With a separate process for
# each minute, the drive would idle a thousand times a day. The engine cuts steps out of fio's
# cumulative reports at multiples of the step length on fio's clock. The cuts therefore do not
# drift, and no I/O is lost between two steps. Cutting a step does not disturb the load. fio reports
# while its threads continue, and a reader thread receives the report while the previous step is
# still being stored.

ENDLESS_NS = 365 * 86400 * SECOND_NS
SHORTEST_NS = 200_000_000  # Shortest step that can be cut, because fio reports at most every 0.1 s.


def can_go_on(workload: Workload) -> bool:
    """Return True if steps can be cut out of a continuous load, because only time ends them."""
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
    """Return the load without an end time, with a report at each multiple of its duration."""
    length_ns = workload.jobs[0].duration_ns or workload.interval_ns
    reports = max(1, -(-length_ns // workload.interval_ns))
    interval_ns = max(length_ns // reports, SHORTEST_NS // 2)
    jobs = tuple(replace(job, duration_ns=ENDLESS_NS) for job in workload.jobs)
    return replace(workload, jobs=jobs, interval_ns=interval_ns)


def _load_alone(workload: Workload) -> Workload:
    """Return the load without the fields that may differ between steps (name, seed, duration)."""
    jobs = tuple(replace(job, duration_ns=None) for job in workload.jobs)
    return replace(workload, name="", seed=0, jobs=jobs)


class FioLoad:
    """A load that runs in a single fio process until it completes or is stopped."""

    def __init__(self, program: str, workload: Workload, plan: FioPlan, goes_on: bool) -> None:
        """Prepare a load, where `plan` is that of `endless(workload)` if the load `goes_on`."""
        self.plan = plan
        self.goes_on = goes_on
        self.reading: Reading | None = None  # Drive reading at the latest cut.
        self._workload = _load_alone(workload)
        self._began_ns = 0
        interval_ns = (endless(workload) if goes_on else workload).interval_ns
        self._interval_ms = interval_ns / parse.MS
        self._process = FioProcess(program, plan.text, self._interval_ms)
        self._report: tuple[float, Stats] = (0.0, {})  # fio report at the latest cut.
        self._due_ms = 0.0  # Time of the next cut.
        self._late_ms = 0.0  # Delay from a cut's report to its processing.

    def start(self, now_ns: int) -> None:
        """Start fio at `now_ns` on the engine's clock.

        Raises:
            EngineError: If fio cannot be started.
        """
        self._began_ns = now_ns
        self._process.start()

    def continues(self, workload: Workload) -> bool:
        """Return True if a step of `workload` can be cut out of this load."""
        return self.goes_on and can_go_on(workload) and _load_alone(workload) == self._workload

    def begin(self, workload: Workload, before: Reading) -> Measured:
        """Start a step at the latest cut, where `before` is the drive reading at this cut."""
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
        """Process reports until the step is complete.

        While no report arrives, `on_tick` is called twice a second. fio keeps running if a callback
        raises an exception.

        Returns:
            True if the step ended at a cut and the load continues, or False if fio exited.
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
        """Wait for fio, and return the exit result."""
        ended = self._process.ended()
        if self.goes_on and not ended.reason:
            return replace(ended, fault="it ended early")
        return ended

    def stop(self) -> list[Document]:
        """Stop any running fio, and return the reports that no step has processed."""
        try:
            return self._process.stop()
        finally:
            self._process.close()
