"""What a fit is doing, in lines for people."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Lock

from writecliff import units
from writecliff.published.conditions import Load, State
from writecliff.published.measure import MeasurementObserver

_EVERY_S = 3.0


class FitProgress(MeasurementObserver):
    """Says every few seconds which drive is prepared, how far a load is, or how many were
    simulated."""

    def __init__(self, log: Callable[[str], None]) -> None:
        super().__init__()
        self._log = log
        self._lock = Lock()
        self._began_s = self._said_s = time.monotonic()
        self._loads = 0

    def preparing(self, drive: str, state: State, share: float) -> None:
        self._say(f"preparing {drive}: {state}, {100 * share:.0f} %")

    def running(self, drive: str, loads: Sequence[Load], share: float) -> None:
        self._say(f"{self._loads} loads simulated, the next {100 * share:.0f} %")

    def load(self, drive: str, load: Load) -> None:
        with self._lock:
            self._loads += 1
        self._say(f"{self._loads} loads simulated")

    def searching(self, what: str, tries_most: int, share: float) -> None:
        """How far a search is that ends after `tries_most` tries or before, 0 to 1 of all."""
        left_s = (time.monotonic() - self._began_s) * (1 / share - 1) if share > 0 else 0.0
        left = f", at most {units.duration(round(left_s) * 1e9)} left" if left_s else ""
        self._say(f"{what}: {100 * share:.0f} % of at most {tries_most} tries{left}")

    def _say(self, text: str) -> None:
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._said_s < _EVERY_S:
                return
            self._said_s = now_s
        self._log(f"[{units.duration(round(now_s - self._began_s) * 1e9)}] {text}")
