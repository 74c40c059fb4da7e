"""Open-loop workloads on a real target, where each I/O has an intended time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from writecliff import _native
from writecliff.engines.base import (
    OPERATIONS,
    Adherence,
    JobResult,
    Operation,
    OperationResult,
    Progress,
    ProgressHook,
    StepResult,
)
from writecliff.engines.timed.issuing import follow, opened, timing, timing_texts
from writecliff.native_errors import as_user_errors

if TYPE_CHECKING:
    from writecliff.engines.disturbance import Reading
    from writecliff.engines.fio.command import Target
    from writecliff.engines.fio.watch import DisturbanceWatch
    from writecliff.workload.model import Job, Workload


def is_timed(workload: Workload) -> bool:
    """Return True if the arrival times of all I/Os are independent of the drive."""
    return all(job.is_scheduled and not _needs_fio(job) for job in workload.jobs)


def _needs_fio(job: Job) -> bool:
    """Return True for features that require fio or a simulated drive."""
    return bool(
        job.stream or job.streams or job.burst_ns or job.think_ns or job.flow_weight
        or job.until_steady or job.latency_target or job.least_rates or job.host_zones
    )  # fmt: skip


def writes(workload: Workload) -> bool:
    """Return True if the workload changes the target's data."""

    def changes(job: Job) -> bool:
        if job.log is not None:
            return bool(set(job.log.operations) - {"r"})
        if job.model is not None:
            return bool(set(job.model.streams.operations) - {"r"})
        return job.read_pct < 100 or job.trim_pct > 0

    return any(map(changes, workload.jobs))


@dataclass
class TimedLoad:
    """A running or completed open-loop workload, with the step interface of `DisturbanceWatch`."""

    workload: Workload
    started_ns: int  # Start time on the engine's clock.
    before: Reading
    counted: bool  # `True` if the kernel counts the I/Os.
    raw: Mapping[str, Any] | None = None
    notes: list[str] = field(default_factory=list)
    goes_on: bool = False
    since_ms: float = 0.0
    late_ms: float = 0.0
    _live: Mapping[str, int] = field(default_factory=dict)

    def counts(self) -> tuple[int, int]:
        """Return the counts of completed I/Os and I/Os in flight."""
        return self._live.get("ios", 0), self._live.get("in_flight", 0)

    def run(self, target: Target, on_tick: Callable[[], None], hook: ProgressHook | None) -> None:
        """Issue the workload, and store the measurements in `raw` even if issuing fails.

        `on_tick` is called ten times a second.

        Raises:
            TargetError: If the target cannot be opened for direct I/O.
            ConfigError: If the workload does not fit the target.
            EngineError: If io_uring is not available.
        """
        with opened(target, writes=writes(self.workload)) as fd:
            with as_user_errors():
                issuer = _native.Issuer.of_workload(
                    fd,
                    self.workload.to_json(),
                    is_file=target.is_file,
                    capacity_bytes=target.capacity_bytes,
                )
            issuer.begin()

            def tick() -> None:
                self._live = issuer.live()
                on_tick()
                if hook is not None:
                    hook(self._progress(self._live))

            try:
                self.raw = follow(issuer, tick)
            except BaseException:
                if self.raw is None and issuer.is_done():
                    self.raw = issuer.finish()
                raise

    def _progress(self, live: Mapping[str, int]) -> Progress:
        elapsed_ns = live["elapsed_ns"]
        lengths = [job.duration_ns for job in self.workload.jobs]
        longest = max((length or 0 for length in lengths), default=0)
        fraction = min(elapsed_ns / longest, 1.0) if longest and all(lengths) else None
        iops = live["ios"] / (elapsed_ns / 1e9) if elapsed_ns else 0.0
        return Progress(fraction=fraction, elapsed_ns=elapsed_ns, ios=live["ios"], iops=iops)

    @property
    def elapsed_ms(self) -> float:
        """Length of the completed load in ns, or 0 while the load is running."""
        return self.raw["elapsed_ns"] / 1e6 if self.raw is not None else 0.0

    def own_bytes(self) -> dict[Operation, int]:
        """Return the bytes of all jobs by operation."""
        total: dict[Operation, int] = dict.fromkeys(OPERATIONS, 0)
        for job in self.raw["jobs"] if self.raw is not None else ():
            for name, done in job["operations"].items():
                total[name] += done["bytes"]
        return total

    def _seen(self) -> tuple[JobResult, ...]:
        """Return the live counts of a load whose drive hangs, because no final results exist.

        The result is empty if the counts mix several jobs or operations.
        """
        (first, *others), live = self.workload.jobs, self._live
        operations: dict[float, Operation] = {0.0: "write", 100.0: "read"}
        only = operations.get(first.read_pct)
        if others or only is None or first.log or first.model or not live.get("ios"):
            return ()
        done = OperationResult(live["ios"], live["bytes"], _native.Histogram(), scheduled=True)
        began_ns = min(first.start_delay_ns + first.ramp_ns, live["elapsed_ns"])
        took_ns = live["elapsed_ns"] - began_ns
        return (JobResult(first.name, took_ns, {only: done}, began_ns=began_ns),)

    def result(
        self, after: Reading, watch: DisturbanceWatch, notes: tuple[str, ...], *, complete: bool
    ) -> StepResult:
        """Return the measurements, given the final reading `after` and the target's `notes`."""
        from writecliff.engines.fio.measured import counted_since

        raw = self.raw
        intervals = dict(raw["intervals"]) if raw is not None else {}
        disturbances: list[str] = []
        machine: dict[str, object] = {}
        figures: dict[str, Any] = {}
        if raw is not None:
            disturbances, machine = watch.conclude(self, after, intervals, complete=complete)
            figures = timing(raw)
        texts = (*notes, *self.notes, *(timing_texts(figures) if figures else ()), *disturbances)
        before = self.before.vitals
        return StepResult(
            started_ns=self.started_ns,
            elapsed_ns=raw["elapsed_ns"] if raw is not None else 0,
            jobs=tuple(_job(job) for job in raw["jobs"]) if raw is not None else self._seen(),
            intervals=intervals,
            counters_before=before.counters,
            counters_after=counted_since(before.counters, after.vitals.counters),
            warnings=tuple(dict.fromkeys(texts)),
            raw={"timing": figures, "machine": machine},
        )


def _job(raw: Mapping[str, Any]) -> JobResult:
    return JobResult(
        name=raw["name"],
        began_ns=raw["began_ns"],
        elapsed_ns=raw["elapsed_ns"],
        adherence=None if raw["adherence"] is None else Adherence(**raw["adherence"]),
        operations={
            name: OperationResult(
                done["ios"], done["bytes"], done["service"], done["response"], scheduled=True
            )
            for name, done in raw["operations"].items()
        },
        flush=None
        if (flush := raw["flush"]) is None
        else OperationResult(flush["ios"], 0, flush["service"]),
    )
