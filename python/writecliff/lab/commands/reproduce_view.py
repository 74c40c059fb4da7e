"""Progress of `writecliff lab reproduce` on stderr (completed work and remaining time)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock

from writecliff import units
from writecliff.cli import output
from writecliff.devices import show_device
from writecliff.progress import Silence
from writecliff.published.conditions import KIB, Load, State
from writecliff.published.measure import MeasurementObserver

# Estimated IOPS, used only as weights for the loads.
_READS, _READS_ALONE, _WRITES = 60_000, 8_000, 25_000
_PREPARED_SLOTS = 0.3  # Cost of writing a slot during preconditioning, in timed I/Os.
_SILENCE_S = 30.0  # A finished load is reported only after this period without other output.
_FIRST_GUESS = 0.03  # Minimum completed fraction before the time left is estimated.


class ReproduceView(MeasurementObserver):
    """A logger of drive states and completions, and of the progress in between.

    Each line includes an estimate of the remaining time.
    """

    def __init__(self, loads: Mapping[str, Iterable[Load]], *, quiet: bool = False) -> None:
        """Estimate the work of each drive's `loads`."""
        super().__init__()
        self._quiet = quiet
        self._lock = Lock()
        self._began_s = self._output_s = time.monotonic()
        self._silence = Silence()
        self._left = {
            name: {load: _work(load) for load in drive_loads} for name, drive_loads in loads.items()
        }
        self._ready = {
            name: _preparing(show_device(name).capacity_bytes, drive_loads)
            for name, drive_loads in loads.items()
        }
        self._preparing = {name: dict(states) for name, states in self._ready.items()}
        self._drives, self._all_done = len(self._left), 0
        self._whole = self._remaining()

    def log(self, text: str) -> None:
        """Log a line, prefixed with the progress."""
        if not self._quiet:
            with self._lock:
                self._output_s = time.monotonic()
                self._silence.note_line()
                output.log(f"{self._head()}  {text}")

    def preparing(self, drive: str, state: State, share: float) -> None:
        """Log the progress of preconditioning after a period without output."""
        with self._lock:
            self._ready[drive][state] = self._preparing[drive][state] * (1 - share)
        self._log_after_silence(f"{drive}: preparing {state}", share)

    def running(self, drive: str, loads: Sequence[Load], share: float) -> None:
        """Log the progress of a run after a period without output."""
        with self._lock:
            left = self._left[drive]
            left |= {load: _work(load) * (1 - share) for load in loads if load in left}
        count = f", {len(loads)} loads" if len(loads) > 1 else ""
        self._log_after_silence(f"{drive}: {loads[0].state}{count}", share)

    def _log_after_silence(self, what: str, share: float) -> None:
        if self._silence.too_long():
            self.log(f"{what}, {100 * share:.0f} %")

    def load(self, drive: str, load: Load) -> None:
        """Log a drive's number of remaining loads after a period without output."""
        with self._lock:
            self._left[drive].pop(load, None)
            self._ready[drive].pop(load.state, None)
            left = len(self._left[drive])
            quiet = time.monotonic() - self._output_s < _SILENCE_S
        if left and not quiet:
            self.log(f"{drive}: {units.plural(left, 'load')} left")

    def drive(self, drive: str, wall_s: float) -> None:
        """Log a finished drive and the time taken."""
        super().drive(drive, wall_s)
        with self._lock:
            self._all_done += 1
        self.log(f"{drive}: done in {units.duration(round(wall_s) * 1e9)}")

    def _remaining(self) -> float:
        return sum(
            sum(work.values()) for part in (self._left, self._ready) for work in part.values()
        )

    def _head(self) -> str:
        elapsed_s = time.monotonic() - self._began_s
        text = f"[{self._all_done}/{self._drives} drives, {units.duration(round(elapsed_s) * 1e9)}"
        done = 1 - self._remaining() / self._whole if self._whole else 1.0
        if _FIRST_GUESS <= done < 1:
            left_s = elapsed_s * (1 - done) / done
            text += f", about {units.duration(round(left_s) * 1e9)} left"
        return f"{text}]"


def _work(load: Load) -> float:
    """Estimated number of I/Os in a load."""
    reads = _READS if load.outstanding != 1 else _READS_ALONE
    share = (50.0 if load.read_pct is None else load.read_pct) / 100
    rate = share * reads + (1 - share) * _WRITES
    return load.seconds * rate * 4 * KIB / max(load.block_bytes or 0, 4 * KIB)


def _preparing(capacity_bytes: int, loads: Iterable[Load]) -> dict[State, float]:
    """Estimated number of I/Os to bring a drive to each state that the loads require."""
    capacities: dict[State, float] = {"fresh": 0.0, "fill": 1.0, "sustained": 3.0, "client": 2.0}
    slots = capacity_bytes / (4 * KIB) * _PREPARED_SLOTS
    return {load.state: capacities[load.state] * slots for load in loads}
