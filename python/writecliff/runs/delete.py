"""Deletion of runs.

A run is first renamed to a hidden name, so every visible run is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from writecliff.errors import StoreError
from writecliff.runs.place import Place


def check_deletable(place: Place, runs: Iterable[str]) -> None:
    """Check that no process is writing to any of `runs`.

    Raises:
        StoreError: If a process is writing to a run or to a suite member.
    """
    chosen = set(runs)
    for stored in place.find():
        if not chosen.isdisjoint((stored.run, stored.member_of)) and place.is_running(stored.run):
            raise StoreError(
                f"{stored.run} is being written by another process",
                hint="stop the process, or wait until it exits",
            )


def delete_runs(place: Place, runs: Sequence[str]) -> list[str]:
    """Delete `runs`, and return those that existed.

    Raises:
        StoreError: If a process is writing to a run, or a run cannot be removed.
    """
    check_deletable(place, runs)
    deleted = []
    for run in runs:
        try:
            place.remove(run)
        except FileNotFoundError:
            continue  # Another process deleted the run first.
        deleted.append(run)
    place.sweep()
    return deleted
