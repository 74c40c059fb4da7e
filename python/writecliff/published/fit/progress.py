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

    def _say(self, text: str) -> None:
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._said_s < _EVERY_S:
                return
            self._said_s = now_s
        self._log(f"[{units.duration(round(now_s - self._began_s) * 1e9)}] {text}")
