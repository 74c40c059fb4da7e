"""What a running procedure tells whoever watches it. The CLI draws it; tests record it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from writecliff.engines.base import DeviceIdentity, Progress
    from writecliff.procedures.model import History, Plan, Procedure, Stage, StepRow
    from writecliff.procedures.steady import Decision


class RunProgress:
    """Receives the events of a run; every method may be left as it is (it does nothing)."""

    def begin(
        self, procedure: Procedure, identity: DeviceIdentity, plan: Plan, run_directory: Path
    ) -> None:
        """Once, before the drive is touched."""

    def resumed(self, rows_stored: int, rows_again: int) -> None:
        """The run goes on after `rows_stored` steps, of which `rows_again` are run once more."""

    def phase(self, name: str, detail: str = "") -> None:
        """A phase begins, or has ended as `detail` says.

        Names: "purge", "write cache", and what the stages of the procedure are called.
        """

    def stage_begin(self, stage: Stage) -> None:
        """The steps of a stage follow."""

    def step_begin(self, phase: str, round_number: int, step: int, steps: int, name: str) -> None:
        """A step starts: the `step`-th of `steps` of its round or phase."""

    def step_progress(self, progress: Progress) -> None:
        """A live look at the running step."""

    def step_end(self, row: StepRow, history: History, *, again: bool) -> None:
        """A step is measured and stored; `again`: it was stored before and came out the same."""

    def round_end(self, round_number: int, decision: Decision | None) -> None:
        """A round is complete; `decision` is None before the fifth."""

    def note(self, text: str) -> None:
        """A warning for the user."""

    def end(self, status: str, reason: str) -> None:
        """Always the last event."""
