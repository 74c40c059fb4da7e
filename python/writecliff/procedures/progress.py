"""The events of a running procedure. The command line shows them; tests record them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from writecliff.engines.base import DeviceIdentity, Progress, StepResult
    from writecliff.procedures.model import History, Plan, Procedure, Stage, StepRow
    from writecliff.procedures.steady import Decision


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
