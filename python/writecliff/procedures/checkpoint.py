"""Checkpoints of a simulated drive beside its run, so that a run can be taken up again.

The file name carries the number of stored steps that the state belongs to, so that a state and its
place can never disagree: `checkpoint-000042.wcs` is the drive after 42 steps. `Engine.save` writes
atomically; older files are removed only after a newer one exists.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from writecliff.engines.base import Engine

MIN_INTERVAL_S = 20.0
COST_LIMIT = 0.1  # saving may take at most about this share of the wall time
_NAME = re.compile(r"checkpoint-(\d+)\.wcs")


class Checkpoints:
    """Saves the drive now and then. `clock` is monotonic seconds of wall time."""

    def __init__(
        self,
        directory: Path,
        engine: Engine,
        *,
        interval_s: float = MIN_INTERVAL_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory
        self._engine = engine
        self._clock = clock
        self._interval_s = interval_s
        self._cost_s = 0.0
        self._last_s = clock()
        self._position = -1

    def _files(self) -> dict[int, Path]:
        found = {}
        for path in self._directory.glob("checkpoint-*.wcs"):
            match = _NAME.fullmatch(path.name)
            if match:
                found[int(match[1])] = path
        return found

    def restore(self, steps_stored: int) -> int | None:
        """Bring the engine to the newest state that is not past `steps_stored`; its position, or
        None if there is none."""
        positions = [n for n in self._files() if n <= steps_stored]
        if not positions:
            return None
        self._position = max(positions)
        self._engine.restore(self._files()[self._position])
        return self._position

    def due(self) -> bool:
        wait_s = max(self._interval_s, self._cost_s / COST_LIMIT)
        return self._clock() - self._last_s >= wait_s

    def save(self, position: int) -> None:
        """Save the drive as it is after `position` steps (nothing to do for a real drive)."""
        if self._engine.kind != "sim" or position == self._position:
            return
        begin_s = self._clock()
        path = self._directory / f"checkpoint-{position:06d}.wcs"
        if not self._engine.save(path):
            return
        self._position = position
        self._last_s = self._clock()
        self._cost_s = self._last_s - begin_s
        self._remove_except(position)

    def clear(self) -> None:
        """Remove all states: the run is complete."""
        self._remove_except(None)

    def _remove_except(self, position: int | None) -> None:
        for number, path in self._files().items():
            if number != position:
                path.unlink(missing_ok=True)
