"""Progress messages of a fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from writecliff.progress import PacedLog
from writecliff.published.conditions import Load, State
from writecliff.published.measure import MeasurementObserver


class FitProgress(MeasurementObserver):
    """Reports the preconditioning progress or the simulated loads every few seconds."""

    def __init__(self, log: Callable[[str], None]) -> None:
        """Create an observer that passes messages to `log`."""
        super().__init__()
        self._log = PacedLog(log)
        self._numbers = count(1)  # Counter that several threads share.
        self._loads = 0

    def preparing(self, drive: str, state: State, share: float) -> None:
        """Report the progress of preconditioning."""
        self._log(f"preparing {drive}: {state}, {100 * share:.0f} %")

    def running(self, drive: str, loads: Sequence[Load], share: float) -> None:
        """Report the number of simulated loads and the progress of the next load."""
        self._log(f"{self._loads} loads simulated, the next {100 * share:.0f} %")

    def load(self, drive: str, load: Load) -> None:
        """Report the number of simulated loads."""
        self._loads = next(self._numbers)
        self._log(f"{self._loads} loads simulated")

    def searching(self, what: str, tries_most: int, share: float) -> None:
        """Report the progress (0 to 1) of a search that makes at most `tries_most` tries."""
        left = self._log.pace.left(share)
        text = f"{what}: {100 * share:.0f} % of at most {tries_most} tries"
        self._log(", ".join(filter(None, (text, left))))
