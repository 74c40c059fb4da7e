"""From what a user types to a run of the store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from writecliff.errors import ConfigError, did_you_mean, printable
from writecliff.runs.place import Place

_SHOWN = 5


def known_runs(place: Place, *, suites: bool = False) -> list[str]:
    """The names of all runs of the store; with `suites`, those of suites and sweeps follow."""
    found = list(place.find())
    sets = {one.member_of for one in found if one.member_of is not None} if suites else ()
    return [*(one.run for one in found), *sorted(sets)]


def run_named(text: str, place: Place, runs: Sequence[str]) -> str:
    """The run that `text` names: its name in the store, its path, the last part of its name, or
    what only one name begins with or ends in.

    Raises ConfigError, with the nearest or the possible names.
    """
    exact = text.rstrip("/")
    if exact in runs:
        return exact
    below = _below(Path(text), place)
    if below is not None and below in runs:
        return below
    last = [run for run in runs if run.rpartition("/")[2] == exact]
    begin = [r for r in runs if r.startswith(exact) or r.rpartition("/")[2].startswith(exact)]
    for found in (last, begin if exact else []):
        if len(found) == 1:
            return found[0]
        if found:
            shown = ", ".join(map(printable, sorted(found)[:_SHOWN]))
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            raise ConfigError(f"'{printable(text)}' may be {len(found)} runs: {shown}{more}")
    otherwise = f"`writecliff runs list` shows the runs of {place.location}"
    raise ConfigError(
        f"there is no run '{printable(text)}' in {place.location}",
        hint=did_you_mean(exact, _names(runs), otherwise),
    )


def runs_named(texts: Iterable[str], place: Place) -> list[str]:
    """The runs that are named, each once, in order. Raises ConfigError."""
    runs = known_runs(place)
    return list(dict.fromkeys(run_named(text, place, runs) for text in texts))


def _below(path: Path, place: Place) -> str | None:
    """The path below the root of the store, if it is one on this machine."""
    root = place.path_of("")
    try:
        return os.path.relpath(path.resolve(), root.resolve()) if path.is_dir() else None
    except OSError:
        return None


def _names(runs: Sequence[str]) -> list[str]:
    return [printable(name) for run in runs for name in (run, run.rpartition("/")[2])]
