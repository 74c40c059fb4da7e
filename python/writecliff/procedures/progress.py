"""The events of a running procedure. The command line shows them; tests record them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff import units

if TYPE_CHECKING:
    from writecliff.engines.base import DeviceIdentity, Progress, StepResult
    from writecliff.procedures.model import End, History, Plan, Procedure, Stage, StepRow
    from writecliff.procedures.steady import Decision

PRECONDITIONING = "preconditioning"


class RunProgress:
    """Receives the events of a run. Override the methods of interest; the others do nothing."""

    def begin(
        self, procedure: Procedure, identity: DeviceIdentity, plan: Plan, run_directory: Path
    ) -> None:
        """The run begins; the drive has not been touched."""

    def resumed(self, rows_stored: int, rows_again: int) -> None:
        """The run resumes after `rows_stored` steps, the last `rows_again` of which run again."""

    def phase(self, name: str, detail: str = "") -> None:
        """A phase begins, or has ended with the result `detail`.

        Phases are "purge", "write cache", "preconditioning" and the titles of the stages.
        """

    def purge_progress(self, share: float) -> None:
        """The share of the purge that is done, 0..1, where the drive tells."""

    def stage_begin(self, stage: Stage) -> None:
        """A stage begins; its steps follow."""

    def step_begin(self, phase: str, round_number: int, step: int, steps: int, name: str) -> None:
        """A step begins, number `step` of `steps` in its round or phase."""

    def step_progress(self, progress: Progress) -> None:
        """The running step has progressed."""

    def step_result(self, result: StepResult, *, sample: bool) -> None:
        """A step is measured; `result` is all of it. `sample` as in its `Step`."""

    def step_end(self, row: StepRow, history: History, *, again: bool) -> None:
        """A step is measured and stored. `again`: it was stored before, with the same row."""

    def round_end(self, round_number: int, decision: Decision | None) -> None:
        """A round is complete; `decision` is None before the fifth."""

    def note(self, text: str) -> None:
        """A warning for the user."""

    def end(self, status: str, reason: str) -> None:
        """The run has ended; this is the last event."""


class FollowedRun(RunProgress):
    """Knows where a run is: what it does, how far that is, and how long it may still take."""

    def __init__(self) -> None:
        self._phase, self._step = "starting", ""
        self._progress: Progress | None = None
        self._history: History | None = None
        self._ends: Sequence[End] = ()
        self._total_ns: int | None = None  # device time of the run, where the plan knows it
        self._place = (1, 1)  # number of the step in its round or phase, of how many
        self._row_s = self._paced_from_s = time.monotonic()
        self._fraction_at_start: float | None = None

    def begin(
        self, procedure: Procedure, identity: DeviceIdentity, plan: Plan, run_directory: Path
    ) -> None:
        if plan.device_time_min_ns == plan.device_time_max_ns:
            self._total_ns = plan.device_time_max_ns or None

    def phase(self, name: str, detail: str = "") -> None:
        self._phase, self._step, self._progress = name, "", None
        if self.preconditions:
            self._pace_from(0.0)

    def purge_progress(self, share: float) -> None:
        self._step = f"{share:.0%} done"

    def stage_begin(self, stage: Stage) -> None:
        self._ends, self._fraction_at_start = stage.ends, None
        if self._live:
            self._pace_from(self.fraction)

    def step_begin(self, phase: str, round_number: int, step: int, steps: int, name: str) -> None:
        self._progress = None
        where = f"round {round_number}, " if round_number else ""
        self._step, self._place = f"{where}step {step} of {steps}: {name}", (step, steps)
        if self.preconditions:
            self._pace_from(0.0)

    def step_progress(self, progress: Progress) -> None:
        self._progress = progress

    def step_end(self, row: StepRow, history: History, *, again: bool) -> None:
        self._history, self._progress, self._row_s = history, None, time.monotonic()
        if self._fraction_at_start is None:
            self._pace_from(self.fraction)

    @property
    def preconditions(self) -> bool:
        """Whether the drive is brought to the state that a stage begins in."""
        return self._phase == PRECONDITIONING

    @property
    def where(self) -> str:
        """What runs, and how far that is."""
        return f"{': '.join(filter(None, (self._phase, self._step)))}  {self.how_far}"

    @property
    def how_far(self) -> str:
        """The share that is done, and how long the rest may take."""
        return "  ".join(filter(None, (f"{100 * self.fraction:.0f} %", self.time_left)))

    @property
    def fraction(self) -> float:
        """How far the run is: in device time where that is known, else towards the nearest end of
        its stage that can be foreseen, else in steps. While it preconditions, how far the step of
        that is.
        """
        now = self._progress
        if self.preconditions:
            return (now.fraction if now else None) or 0.0
        if self._total_ns is not None:
            past = self._history.elapsed_ns if self._history is not None else 0
            return min(1.0, (past + (now.elapsed_ns if now else 0)) / self._total_ns)
        if self._live:
            step, steps = self._place
            return (step - 1 + ((now.fraction if now else None) or 0.0)) / steps
        if self._history is None or not self._history.stages:
            return 0.0
        stage = self._history.current
        known = [end.fraction(stage) for end in self._ends if end.fraction is not None]
        return min(1.0, max(known, default=0.0))

    @property
    def time_left(self) -> str:
        """How long the rest may take at the pace so far; empty if none is known yet."""
        begun, fraction = self._fraction_at_start, self.fraction
        if begun is None or fraction <= begun:
            return ""
        # The fraction is that of the last finished step, or of this moment: count down from there.
        now_s = time.monotonic()
        known_s = now_s if self._live else self._row_s
        per_fraction_s = (known_s - self._paced_from_s) / (fraction - begun)
        left_s = per_fraction_s * (1 - fraction) - (now_s - known_s)
        left = units.duration(max(0.0, left_s) * 1e9)
        return f"{'about' if self._live else 'at most'} {left} left"

    @property
    def _live(self) -> bool:
        """Whether the fraction grows within steps, not only from step to step."""
        foreseen = any(end.fraction for end in self._ends)
        return self.preconditions or self._total_ns is not None or not foreseen

    def _pace_from(self, fraction: float) -> None:
        self._fraction_at_start, self._paced_from_s = fraction, time.monotonic()
