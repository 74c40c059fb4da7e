"""Deleting runs. A run is renamed out of sight first, so that it is whole or gone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from writecliff.errors import StoreError
from writecliff.runs.place import Place


def check_deletable(place: Place, runs: Iterable[str]) -> None:
    """Raises StoreError for a run, or a suite with a run, that a process is writing."""
    chosen = set(runs)
    for found in place.find():
        if not chosen.isdisjoint((found.run, found.member_of)) and place.is_running(found.run):
            raise StoreError(
                f"{found.run} is being written by another process",
                hint="stop it, or wait until it ends",
            )


def delete_runs(place: Place, runs: Sequence[str]) -> list[str]:
    """Delete runs; those that were there. Raises StoreError: in use, or no permission."""
    check_deletable(place, runs)
    deleted = []
    for run in runs:
        try:
            place.remove(run)
        except FileNotFoundError:
            continue  # another process was faster
        deleted.append(run)
    place.sweep()
    return deleted
