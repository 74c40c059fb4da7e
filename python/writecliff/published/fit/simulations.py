"""Simulations of drives with given values; each load is run once for each set of values.

All simulations use the same seeds, so differences are due only to the values. A result depends only
on the drive's own values, so fits and folds that have equal values share simulations.
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
    """Return the maximum simulated time of a load in fits of published figures, in seconds."""
    return SECONDS_MAX


@dataclass(frozen=True)
class Candidate:
    """A drive scaled down by `scale`, with its modified values by key; a rival has none."""

    name: str
    scale: float
    values: tuple[tuple[str, float], ...]


class Simulations:
    """Simulation results, which several threads may share.

    A load is simulated for at most `seconds(load)`.
    """

    def __init__(
        self, observer: MeasurementObserver | None = None, *, seconds: Seconds = at_most_long
    ) -> None:
        """Create an empty set of results; `observer` receives the progress."""
        self.count = 0
        self._seconds = seconds
        self._observer = observer or MeasurementObserver()
        self._files: dict[str, tuple[str, str]] = {}
        # Candidates differ only in times, so they share prepared states.
        self._prepared = PreparedDrives()
        self._lock = Lock()
        self._results: dict[Candidate, dict[Load, Mapping[str, float]]] = {}

    def stop(self) -> None:
        """Stop the running simulations, which then raise `Stopped`."""
        self._observer.stop.set()

    def text(self, drive: str) -> str:
        """Return a drive's device file; each file is read only once.

        Raises:
            ConfigError: If the file cannot be read.
        """
        return self._file(drive)[0]

    def run(self, wanted: Mapping[Candidate, Collection[Load]], workers: int | None = None) -> None:
        """Simulate the loads without results, running several candidates in parallel."""
        new = {
            candidate: loads
            for candidate, all_ in wanted.items()
            if (loads := self._missing(candidate, all_))
        }
        tasks = []
        for number, (candidate, loads) in enumerate(new.items()):
            drive = self._drive(candidate)
            run = partial(self._measure, drive, loads)
            remote = partial(_elsewhere, drive, self._brief(loads))
            tasks.append(Task(f"{drive.name} {number}", 2 * drive_memory(drive), run, remote))
        answers = run_side_by_side(tasks, workers=workers, stop=self._observer.stop)
        with self._lock:
            self.count += len(new)
            for candidate, results in zip(new, answers, strict=True):
                self._results[candidate] = {**self._results.get(candidate, {}), **results}

    def results(self, candidate: Candidate) -> Results:
        """Return a candidate's results."""
        return self._results.get(candidate, {})

    def memory_bytes(self, drive: str, scale: float) -> int:
        """Return a running candidate's memory size in bytes, including the drive that it copies."""
        return 2 * drive_memory(self._drive(Candidate(drive, scale, ())))

    def _missing(self, candidate: Candidate, loads: Collection[Load]) -> list[Load]:
        results = self._results.get(candidate, {})
        return [load for load in loads if load not in results]

    def _file(self, drive: str) -> tuple[str, str]:
        if drive not in self._files:
            self._files[drive] = read_device_file(drive)
        return self._files[drive]

    def _drive(self, candidate: Candidate) -> ComparedDrive:
        text, file_name = self._file(candidate.name)
        if candidate.values:
            text = with_numbers(text, dict(candidate.values))
        # Candidates for a drive at different scales have different states.
        drive = ComparedDrive(f"{candidate.name} 1/{candidate.scale:g}", text, file_name)
        return drive.scaled(candidate.scale) if candidate.scale > 1 else drive

    def _measure(self, drive: ComparedDrive, loads: Collection[Load]) -> Results:
        return _measured(drive, self._brief(loads), self._observer, self._prepared)

    def _brief(self, loads: Collection[Load]) -> dict[Load, Load]:
        """Return each load with the shortened copy that is simulated."""
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
    """Return the drive states shared by the candidates in a cluster process."""
    return PreparedDrives()


def _elsewhere(drive: ComparedDrive, short: Mapping[Load, Load]) -> Results:
    return _measured(drive, short, None, _prepared_here())
