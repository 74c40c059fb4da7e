"""Simulations of drives with certain values, each load of each set of values once.

All use the same seeds, so that differences are those of the values. A drive is simulated whatever
the values of other drives; fits and folds that come to the same values share what was simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from threading import Lock

from writecliff.devices import read_device_file
from writecliff.parallel import Task, run_side_by_side
from writecliff.published.conditions import Load
from writecliff.published.fit.device_text import with_numbers
from writecliff.published.measure import (
    ComparedDrive,
    MeasurementObserver,
    Results,
    drive_memory,
    measure,
)
from writecliff.published.states import PreparedDrives

SECONDS_MAX = 6.0
Seconds = Callable[[Load], float]


def at_most_long(load: Load) -> float:
    """The time for which fits of published figures simulate a load at most."""
    return SECONDS_MAX


@dataclass(frozen=True)
class Candidate:
    """A drive of `scale` times smaller size with other values, by key; a rival has none."""

    name: str
    scale: float
    values: tuple[tuple[str, float], ...]


class Simulations:
    """What was simulated so far. Several threads may use it. A load is simulated for `seconds` of
    it, or for its own time if that is shorter.
    """

    def __init__(
        self, observer: MeasurementObserver | None = None, *, seconds: Seconds = at_most_long
    ) -> None:
        self.count = 0
        self._seconds = seconds
        self._observer = observer or MeasurementObserver()
        self._files: dict[str, tuple[str, str]] = {}
        self._prepared = PreparedDrives()  # values are times: candidates share their states
        self._lock = Lock()
        self._results: dict[Candidate, dict[Load, Mapping[str, float]]] = {}

    def stop(self) -> None:
        """End what is being simulated, with `Stopped`."""
        self._observer.stop.set()

    def text(self, drive: str) -> str:
        """The device file of a drive, read once. Raises ConfigError."""
        return self._file(drive)[0]

    def run(self, wanted: Mapping[Candidate, Collection[Load]], workers: int | None = None) -> None:
        """Simulate what is not known yet, candidates side by side."""
        new = {one: loads for one, all_ in wanted.items() if (loads := self._missing(one, all_))}
        tasks = []
        for number, (one, loads) in enumerate(new.items()):
            drive = self._drive(one)
            run = partial(self._measure, drive, loads)
            remote = partial(_elsewhere, drive, self._brief(loads))
            tasks.append(Task(f"{drive.name} {number}", 2 * drive_memory(drive), run, remote))
        answers = run_side_by_side(tasks, workers=workers, stop=self._observer.stop)
        with self._lock:
            self.count += len(new)
            for one, found in zip(new, answers, strict=True):
                self._results[one] = {**self._results.get(one, {}), **found}

    def results(self, candidate: Candidate) -> Results:
        """What is known of a candidate."""
        return self._results.get(candidate, {})

    def memory_bytes(self, drive: str, scale: float) -> int:
        """What one candidate takes while it runs, with the drive whose state it copies."""
        return 2 * drive_memory(self._drive(Candidate(drive, scale, ())))

    def _missing(self, candidate: Candidate, loads: Collection[Load]) -> list[Load]:
        known = self._results.get(candidate, {})
        return [load for load in loads if load not in known]

    def _file(self, drive: str) -> tuple[str, str]:
        if drive not in self._files:
            self._files[drive] = read_device_file(drive)
        return self._files[drive]

    def _drive(self, one: Candidate) -> ComparedDrive:
        text, file_name = self._file(one.name)
        if one.values:
            text = with_numbers(text, dict(one.values))
        # Candidates of one drive in several sizes have states of their own.
        drive = ComparedDrive(f"{one.name} 1/{one.scale:g}", text, file_name)
        return drive.scaled(one.scale) if one.scale > 1 else drive

    def _measure(self, drive: ComparedDrive, loads: Collection[Load]) -> Results:
        return _measured(drive, self._brief(loads), self._observer, self._prepared)

    def _brief(self, loads: Collection[Load]) -> dict[Load, Load]:
        """Each load as it is simulated."""
        return {
            load: replace(load, seconds=min(load.seconds, self._seconds(load))) for load in loads
        }


def _measured(
    drive: ComparedDrive,
    short: Mapping[Load, Load],
    observer: MeasurementObserver | None,
    prepared: PreparedDrives,
) -> Results:
    measured = measure(drive, set(short.values()), observer=observer, prepared=prepared)
    return {load: measured[brief] for load, brief in short.items()}


@cache
def _prepared_here() -> PreparedDrives:
    """The states that candidates share in a process of a cluster."""
    return PreparedDrives()


def _elsewhere(drive: ComparedDrive, short: Mapping[Load, Load]) -> Results:
    return _measured(drive, short, None, _prepared_here())
