"""Checkpoints of a simulated drive beside its run, so that the run can be resumed.

The number of stored steps that a state belongs to is in the file's name, so that the two cannot
disagree: `checkpoint-000042.wcs` is the drive after 42 steps. `Engine.save` writes atomically; an
older file is removed once a newer one exists, the last one when the run is complete (`finish`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from writecliff.engines.base import Engine
from writecliff.store.rundir import CHECKPOINT_GLOB

MIN_INTERVAL_S = 60.0  # of work that a kill may cost
COST_LIMIT = 0.1  # saving may take at most about this share of the wall time
_NAME = re.compile(r"checkpoint-(\d+)\.wcs")


class Checkpoints:
    """Saves the drive from time to time. `clock` returns monotonic seconds of wall time."""

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
        paths = self._directory.glob(CHECKPOINT_GLOB)
        return {int(match[1]): path for path in paths if (match := _NAME.fullmatch(path.name))}

    def restore(self, steps_stored: int) -> int | None:
        """Restore the newest state that is not past `steps_stored`; its position, or None if there
        is none."""
        files = self._files()
        position = max((n for n in files if n <= steps_stored), default=None)
        if position is not None:
            self._engine.restore(files[position])
            self._position = position
        return position

    def due(self) -> bool:
        """Whether it is time for the next checkpoint."""
        wait_s = max(self._interval_s, self._cost_s / COST_LIMIT)
        return self._clock() - self._last_s >= wait_s

    def save(self, position: int) -> None:
        """Save a simulated drive as it is after `position` steps."""
        if self._engine.kind != "sim" or position == self._position:
            return
        begin_s = self._clock()
        path = self._directory / f"checkpoint-{position:06d}.wcs"
        if not self._engine.save(path):
            return
        self._position = position
        self._last_s = self._clock()
        self._cost_s = self._last_s - begin_s
        for number, path in self._files().items():
            if number != position:
                path.unlink(missing_ok=True)
