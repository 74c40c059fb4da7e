"""`FioEngine`: the engine interface on a real block device or a regular file, through fio.

Joins target, job file, child process and results. A target can be written only if it was opened for
writing; a device that is opened without its serial number can only be read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from writecliff.engines.base import (
    CacheReport,
    DeviceIdentity,
    ProgressHook,
    PurgeReport,
    StepResult,
)
from writecliff.engines.blockdev.topology import System
from writecliff.engines.counters import Counters
from writecliff.engines.disturbance import Reading
from writecliff.engines.fio import command, parse
from writecliff.engines.fio.capability import DataPlacement, Fio, find_fio
from writecliff.engines.fio.intervals import IntervalSeries, progress_of
from writecliff.engines.fio.process import Exit, FioProcess
from writecliff.engines.fio.rates import is_rate_driven
from writecliff.engines.fio.targets import DeviceTarget, FileBackedTarget, FioTarget
from writecliff.engines.fio.watch import DisturbanceWatch
from writecliff.errors import EngineError, TargetError
from writecliff.workload.model import Workload

_NO_RESPONSE = (
    "job {name}: no response times: fio measures from the issue of an I/O, not from its"
    " scheduled arrival"
)


@dataclass
class _Step:
    """A step while it runs."""

    workload: Workload
    plan: command.FioPlan
    series: IntervalSeries
    started_ns: int
    before: Reading
    last: dict[str, Any] | None = None


class FioEngine(AbstractContextManager["FioEngine"]):
    """Engine for a real target. Open it with `open_device` or `open_file`; close it when done."""

    kind: Literal["sim", "fio"] = "fio"

    def __init__(self, target: FioTarget, fio: Fio, system: System) -> None:
        self._target = target
        self._fio = fio
        self._system = system
        self._opened_ns = time.monotonic_ns()
        self._data_placement: DataPlacement | str | None = None
        self._watch = DisturbanceWatch(target.disk_name, target.for_command("").capacity_bytes)
        self._closed = False

    @classmethod
    def open_device(
        cls,
        path: str | Path,
        *,
        destroy_serial: str | None,
        allow_signatures: bool = False,
        system: System | None = None,
    ) -> FioEngine:
        """Open a block device. Without `destroy_serial` it can only be read.

        `destroy_serial` must be the drive's serial number (its full path if it has none), and
        `allow_signatures` must be set as well if anything is found on it. Raises `TargetError` if
        the device must not be touched, `EngineError` if there is no usable fio.
        """
        system = system or System()
        fio = find_fio(system.run)
        target = DeviceTarget.open(str(path), destroy_serial, allow_signatures, system)
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
    def fio_program(self) -> str:
        return self._fio.program

    def job_file(self, workload: Workload) -> str:
        """The job file that `run` gives to fio. Raises as `run` does."""
        return self._plan(workload).text

    def identify(self) -> DeviceIdentity:
        return self._target.identify()

    def purge(self) -> PurgeReport:
        self._require_open()
        self._target.require_writable()
        report = self._target.purge()
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

    def precondition(
        self, workload: Workload, on_progress: ProgressHook | None = None
    ) -> StepResult:
        """Runs the workload; a real drive cannot be brought to a state faster."""
        return self.run(workload, on_progress)

    def run(self, workload: Workload, on_progress: ProgressHook | None = None) -> StepResult:
        """Run a workload through fio. See `Engine.run`; on Ctrl-C the partial result is kept too.

        Raises `TargetError` if it writes and the target may only be read.
        """
        plan = self._plan(workload)
        delays_ms = tuple(job.start_delay_ns / parse.MS for job in workload.jobs)
        burst_ns, pause_ns = plan.duty_ns
        duty_ms = (burst_ns / parse.MS, pause_ns / parse.MS)
        series = IntervalSeries(delays_ms, workload.interval_ns / parse.MS, duty_ms)
        before = self._target.reading()
        now_ns = time.monotonic_ns() - self._opened_ns
        step = _Step(workload, plan, series, now_ns, before)
        process = FioProcess(self._fio.program, plan.text, workload.interval_ns / parse.MS)

        def take(document: dict[str, Any]) -> None:
            step.last = document
            arrived_ms = time.monotonic_ns() / parse.MS
            series.add(parse.read_document(document), arrived_ms)
            if on_progress is not None and series.ios:
                on_progress(progress_of(workload, series))

        try:
            ended = process.run(take)
        except KeyboardInterrupt as interrupt:
            raise EngineError("interrupted", partial=self._result(step)) from interrupt
        except EngineError as error:
            error.partial = error.partial or self._result(step)
            raise
        return self._conclude(step, ended)

    def save(self, path: Path) -> bool:
        """Returns False: the drive itself is the state."""
        return False

    def restore(self, path: Path) -> None:
        raise EngineError("a real drive cannot be restored to a saved state")

    def close(self) -> None:
        """Release the target. Safe to call again."""
        self._closed = True
        self._target.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise EngineError(f"{self._target.name}: the engine is closed")

    def _plan(self, workload: Workload) -> command.FioPlan:
        """The job file. Raises if the target changed or must not be written."""
        self._require_open()
        plan = command.plan(workload, self._command_target(workload), self._fio)
        if plan.writes:
            self._target.require_writable()
        self._target.verify()
        return plan

    def _command_target(self, workload: Workload) -> command.Target:
        if self._data_placement is None and any(job.stream for job in workload.jobs):
            self._data_placement = self._target.data_placement(self._fio)
        return self._target.for_command(self._data_placement or "not requested")

    def _conclude(self, step: _Step, ended: Exit) -> StepResult:
        """The result of a run that ended by itself. Raises `EngineError` if it failed."""
        reason = self._failure(step, ended)
        result = self._result(step, complete=not reason)
        if not reason:
            idle = [job.name for job in result.jobs if not job.operations]
            if idle:
                detail = f": {ended.message}" if ended.message else ""
                reason = f"job {idle[0]} did no I/O{detail}"
        if reason:
            raise EngineError(f"{self._lost()}fio failed: {reason}", partial=result)
        return result

    @staticmethod
    def _failure(step: _Step, ended: Exit) -> str:
        """Why fio failed, "" if it did not."""
        errors = list(parse.job_errors(step.last or {}))
        if not ended.reason and errors:
            return ended.message or os.strerror(errors[0])
        if not ended.reason and step.last is None:
            return ended.message or "it reported nothing"
        return ended.reason

    def _lost(self) -> str:
        """A prefix for the error if the target is gone; "" if it is not."""
        try:
            self._target.verify()
        except TargetError as error:
            return f"{error}; "
        return ""

    def _result(self, step: _Step, *, complete: bool = False) -> StepResult:
        """What has been measured so far, as a result."""
        stats = step.series.stats
        names = tuple(job.name for job in step.workload.jobs)
        rated = [job.name for job in step.workload.jobs if is_rate_driven(job)]
        after = self._target.reading()
        disturbances, machine = self._watch.conclude(
            step.workload, step.plan, step.series, step.before, after, complete=complete
        )
        return StepResult(
            started_ns=step.started_ns,
            elapsed_ns=round(step.series.elapsed_ms * parse.MS),
            jobs=parse.job_results(names, stats),
            intervals=step.series.columns(),
            counters_before=step.before.vitals.counters,
            counters_after=after.vitals.counters,
            warnings=(
                *self._target.notes,
                *step.plan.warnings,
                *(_NO_RESPONSE.format(name=name) for name in rated),
                *parse.ceiling_warnings(names, stats),
                *disturbances,
            ),
            raw={"job_file": step.plan.text, "fio": step.last, "machine": machine},
        )
