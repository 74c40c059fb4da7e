"""Resolution of user input to run names in the store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from writecliff.errors import ConfigError, did_you_mean, printable
from writecliff.runs.place import Place

_SHOWN = 5


def known_runs(place: Place, *, suites: bool = False) -> list[str]:
    """Return the names of all runs in the store, and with `suites` also of suites and sweeps."""
    stored = list(place.find())
    sets = {run.member_of for run in stored if run.member_of is not None} if suites else ()
    return [*(run.run for run in stored), *sorted(sets)]


def run_named(text: str, place: Place, runs: Sequence[str]) -> str:
    """Return the run that `text` identifies.

    `text` is the run's name in the store, the run's path, the last component of the name, or a
    unique prefix.

    Raises:
        ConfigError: If no run matches or several match; the message lists the matches or suggests a
            name.
    """
    exact = text.rstrip("/")
    if exact in runs:
        return exact
    below = _below(Path(text), place)
    if below is not None and below in runs:
        return below
    last = [run for run in runs if run.rpartition("/")[2] == exact]
    begin = [r for r in runs if r.startswith(exact) or r.rpartition("/")[2].startswith(exact)]
    for matches in (last, begin if exact else []):
        if len(matches) == 1:
            return matches[0]
        if matches:
            shown = ", ".join(map(printable, sorted(matches)[:_SHOWN]))
            more = f" and {len(matches) - _SHOWN} more" if len(matches) > _SHOWN else ""
            raise ConfigError(
                f"'{printable(text)}' matches the names of {len(matches)} runs: {shown}{more}",
                hint="specify more characters of the run's name",
            )
    otherwise = f"`writecliff runs list` shows the runs of {place.location}"
    raise ConfigError(
        f"{place.location} does not contain a run '{printable(text)}'",
        hint=did_you_mean(exact, _names(runs), otherwise),
    )


def runs_named(texts: Iterable[str], place: Place) -> list[str]:
    """Return the runs identified by `texts`, in order and without duplicates.

    Raises:
        ConfigError: If a text matches no run or several runs.
    """
    runs = known_runs(place)
    return list(dict.fromkeys(run_named(text, place, runs) for text in texts))


def _below(path: Path, place: Place) -> str | None:
    """Return the path relative to the store root if `path` is a local folder."""
    root = place.path_of("")
    try:
        return os.path.relpath(path.resolve(), root.resolve()) if path.is_dir() else None
    except OSError:
        return None


def _names(runs: Sequence[str]) -> list[str]:
    return [printable(name) for run in runs for name in (run, run.rpartition("/")[2])]
