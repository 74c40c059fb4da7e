"""What a fit is doing, in lines for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from writecliff.progress import PacedLog
from writecliff.published.conditions import Load, State
from writecliff.published.measure import MeasurementObserver


class FitProgress(MeasurementObserver):
    """Says every few seconds which drive is prepared, how far a load is, or how many were
    simulated.
    """

    def __init__(self, log: Callable[[str], None]) -> None:
        super().__init__()
        self._log = PacedLog(log)
        self._numbers = count(1)  # used by several threads
        self._loads = 0

    def preparing(self, drive: str, state: State, share: float) -> None:
        self._log(f"preparing {drive}: {state}, {100 * share:.0f} %")

    def running(self, drive: str, loads: Sequence[Load], share: float) -> None:
        self._log(f"{self._loads} loads simulated, the next {100 * share:.0f} %")

    def load(self, drive: str, load: Load) -> None:
        self._loads = next(self._numbers)
        self._log(f"{self._loads} loads simulated")

    def searching(self, what: str, tries_most: int, share: float) -> None:
        """How far a search is that ends after `tries_most` tries or before, 0 to 1 of all."""
        left = self._log.pace.left(share)
        said = f"{what}: {100 * share:.0f} % of at most {tries_most} tries"
        self._log(", ".join(filter(None, (said, left))))
