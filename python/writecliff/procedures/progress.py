"""Events of a running procedure, which the command line displays and tests record."""

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
    """Receiver of a run's events. By default, its methods do nothing."""

    def begin(
        self, procedure: Procedure, identity: DeviceIdentity, plan: Plan, run_directory: Path
    ) -> None:
        """Handle the start of the run, before any drive access."""

    def resumed(self, rows_stored: int, rows_again: int) -> None:
        """Handle a resumed run: `rows_stored` steps are stored, the last `rows_again` run again."""

    def phase(self, name: str, detail: str = "") -> None:
        """Handle the start of a phase, or its completion with the result `detail`.

        Phases are "purge", "write cache", "preconditioning" and the titles of the stages.
        """

    def purge_progress(self, share: float) -> None:
        """Handle purge progress (`share` from 0 to 1), if the drive reports progress."""

    def stage_begin(self, stage: Stage) -> None:
        """Handle the start of a stage, whose steps follow."""

    def step_begin(self, phase: str, round_number: int, step: int, steps: int, name: str) -> None:
        """Handle the start of a step, number `step` of `steps` in its round or phase."""

    def step_progress(self, progress: Progress) -> None:
        """Handle progress of the running step."""

    def step_result(self, result: StepResult, *, sample: bool) -> None:
        """Handle the complete measurement of a step. `sample` is as in the measured `Step`."""

    def step_end(self, row: StepRow, history: History, *, again: bool) -> None:
        """Handle a measured and stored step, where `again` means repeated with the same row."""

    def round_end(self, round_number: int, decision: Decision | None) -> None:
        """Handle a complete round, where `decision` is `None` before the fifth round."""

    def note(self, text: str) -> None:
        """Handle a warning for the user."""

    def end(self, status: str, reason: str) -> None:
        """Handle the end of the run, which is the last event."""


class FollowedRun(RunProgress):
    """Tracker of a run's position and progress, which estimates the remaining time."""

    def __init__(self) -> None:
        """Start at a position before the first phase."""
        self._phase, self._step = "starting", ""
        self._progress: Progress | None = None
        self._history: History | None = None
        self._ends: Sequence[End] = ()
        self._total_ns: int | None = None  # Device time of the run, if the plan is exact.
        self._place = (1, 1)  # Number of the step in its round or phase, and the total.
        self._row_s = self._paced_from_s = time.monotonic()
        self._fraction_at_start: float | None = None

    def begin(
        self, procedure: Procedure, identity: DeviceIdentity, plan: Plan, run_directory: Path
    ) -> None:
        """Use the plan's device time as the total if it is exact."""
        if plan.device_time_min_ns == plan.device_time_max_ns:
            self._total_ns = plan.device_time_max_ns or None

    def phase(self, name: str, detail: str = "") -> None:
        """Make `name` the current phase."""
        self._phase, self._step, self._progress = name, "", None
        if self.preconditions:
            self._pace_from(0.0)

    def purge_progress(self, share: float) -> None:
        """Show purge progress as the current step."""
        self._step = f"{share:.0%} done"

    def stage_begin(self, stage: Stage) -> None:
        """Measure progress towards the stage's end conditions."""
        self._ends, self._fraction_at_start = stage.ends, None
        if self._live:
            self._pace_from(self.fraction)

    def step_begin(self, phase: str, round_number: int, step: int, steps: int, name: str) -> None:
        """Make `name` the current step."""
        self._progress = None
        where = f"round {round_number}, " if round_number else ""
        self._step, self._place = f"{where}step {step} of {steps}: {name}", (step, steps)
        if self.preconditions:
            self._pace_from(0.0)

    def step_progress(self, progress: Progress) -> None:
        """Update the progress of the current step."""
        self._progress = progress

    def step_end(self, row: StepRow, history: History, *, again: bool) -> None:
        """Update the progress of the run."""
        self._history, self._progress, self._row_s = history, None, time.monotonic()
        if self._fraction_at_start is None:
            self._pace_from(self.fraction)

    @property
    def preconditions(self) -> bool:
        """`True` while the initial state of a stage is being prepared."""
        return self._phase == PRECONDITIONING

    @property
    def where(self) -> str:
        """The current phase and step, including progress."""
        return f"{': '.join(filter(None, (self._phase, self._step)))}  {self.how_far}"

    @property
    def how_far(self) -> str:
        """Completed percentage and estimated remaining time."""
        return "  ".join(filter(None, (f"{100 * self.fraction:.0f} %", self.time_left)))

    @property
    def fraction(self) -> float:
        """Progress of the run, from 0 to 1.

        Progress is measured in device time if the total is known, else towards the nearest
        foreseeable end condition of the stage, else in steps. During preconditioning, the progress
        of the current step is used.
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
        fractions = [end.fraction(stage) for end in self._ends if end.fraction is not None]
        return min(1.0, max(fractions, default=0.0))

    @property
    def time_left(self) -> str:
        """Estimated time remaining at the current pace, which is empty if not known yet."""
        start, fraction = self._fraction_at_start, self.fraction
        if start is None or fraction <= start:
            return ""
        # The fraction refers either to the last complete step or to the current moment, so the
        # countdown starts there.
        now_s = time.monotonic()
        known_s = now_s if self._live else self._row_s
        per_fraction_s = (known_s - self._paced_from_s) / (fraction - start)
        left_s = per_fraction_s * (1 - fraction) - (now_s - known_s)
        left = units.duration(max(0.0, left_s) * 1e9)
        return f"{'about' if self._live else 'at most'} {left} left"

    @property
    def _live(self) -> bool:
        """`True` if the fraction grows within steps, not just from step to step."""
        foreseen = any(end.fraction for end in self._ends)
        return self.preconditions or self._total_ns is not None or not foreseen

    def _pace_from(self, fraction: float) -> None:
        self._fraction_at_start, self._paced_from_s = fraction, time.monotonic()
