"""A fio process, and the steps that are measured with it: one, or many in succession.

A load that goes on from step to step (WSAT, ACT) runs in one process: with a process for each
minute the drive would rest a thousand times a day. Steps are cut out of fio's cumulative reports,
at multiples of their length on fio's own clock, so the cuts do not drift and no I/O is lost between
two steps. The drive does not notice a cut: fio answers the request for a report while its
threads go on, and a thread of ours takes it in while the driver still stores the step before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from writecliff.engines.disturbance import Reading
from writecliff.engines.fio import parse
from writecliff.engines.fio.command import FioPlan
from writecliff.engines.fio.intervals import Stats
from writecliff.engines.fio.measured import Measured
from writecliff.engines.fio.process import Document, Exit, FioProcess
from writecliff.workload.model import SECOND_NS, Workload

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
        either leaves fio running."""
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
