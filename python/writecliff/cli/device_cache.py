"""List and remove the prepared drives that are kept."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import App

from writecliff import units
from writecliff.cli.output import JsonFlag, emit_json, table
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from writecliff.api.answers.devices import CachedDrive
    from writecliff.engines.state_cache import CachedState

app = App(name="cache", help=__doc__)


@app.command(name="list")
def list_(*, json: JsonFlag = False) -> int:
    """List the prepared states of simulated drives that are kept, the least recently used first."""
    from writecliff.engines.state_cache import StateCache

    cache = StateCache.of_user()
    states = cache.states()
    if json:
        from writecliff.api.answers.devices import CacheList

        emit_json(CacheList(cache.folder, cache.bytes_max, _size(states), _states(states)))
        return 0
    if states:
        print(_table(states))
    print(f"{_sum(states)} of at most {units.size(cache.bytes_max)} in {cache.folder}")
    return 0


@app.command
def prune(size: str | None = None, *, all_: bool = False, json: JsonFlag = False) -> int:
    """Remove prepared states: those that another build of the simulator made, then the oldest.

    A state that is missing is made again by the next command that needs it.

    Parameters
    ----------
    size
        What may stay, such as "5 GB" (default: the limit of the cache, WRITECLIFF_CACHE_LIMIT or
        20 GB).
    all_
        Remove every state.
    """
    from writecliff.engines.state_cache import StateCache

    if all_ and size is not None:
        raise ConfigError("--all leaves no size", hint="give one of them")
    cache = StateCache.of_user()
    keep = cache.bytes_max if size is None else units.parse_size(size)
    removed = cache.prune(0 if all_ else keep)
    left = cache.states()
    if json:
        from writecliff.api.answers.devices import CachePruned

        emit_json(CachePruned(cache.folder, cache.bytes_max, _size(left), _states(removed)))
        return 0
    if removed:
        print(_table(removed))
    print(f"{_sum(removed)} removed, {_sum(left)} left in {cache.folder}")
    return 0


def _size(states: list[CachedState]) -> int:
    return sum(state.size_bytes for state in states)


def _states(states: list[CachedState]) -> list[CachedDrive]:
    from writecliff.api.answers.devices import CachedDrive

    return [
        CachedDrive(
            Path(state.path).name,
            state.drive,
            state.steps,
            state.size_bytes,
            _time(state),
            state.current,
        )
        for state in states
    ]


def _table(states: list[CachedState]) -> str:
    rows = [
        (
            one.drive,
            ", ".join(one.steps),
            units.size(one.size_bytes),
            _time(one),
            "" if one.current else "of another build",
        )
        for one in states
    ]
    return table(("drive", "after", "size", "last used", ""), rows, "llr")


def _time(one: CachedState) -> str:
    return datetime.fromtimestamp(one.used_s).astimezone().isoformat(timespec="seconds")


def _sum(states: list[CachedState]) -> str:
    count = len(states)
    return f"{units.plural(count, 'state')}, {units.size(_size(states))}"
