"""List and remove cached states of prepared drives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cyclopts import App

from writecliff import units
from writecliff.cli.output import JsonFlag, emit_json, table
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from writecliff.api.answers.devices import CachedDrive

app = App(name="cache", help=__doc__)


@app.command(name="list")
def list_(*, json: JsonFlag = False) -> int:
    """List the cached states of prepared drives, least recently used first."""
    from writecliff.api.machine import cached_drives

    cache = cached_drives()
    if json:
        emit_json(cache)
        return 0
    if cache.states:
        print(_table(cache.states))
    print(f"{_sum(cache.states)} of at most {units.size(cache.limit_bytes)} in {cache.folder}")
    return 0


@app.command
def prune(size: str | None = None, *, all_: bool = False, json: JsonFlag = False) -> int:
    """Remove cached drive states: states from other simulator builds first, then the oldest states.

    A later command that needs a removed state prepares the drive again.

    Parameters
    ----------
    size
        Target cache size, such as "5 GB" (default: the cache limit, which is WRITECLIFF_CACHE_LIMIT
        or 20 GB).
    all_
        Remove all cached states.
    """
    from writecliff.api.machine import cached_drives, prune_cache

    if all_ and size is not None:
        raise ConfigError(
            "--all and a size are mutually exclusive", hint="specify either --all or a size"
        )
    done = prune_cache(0 if all_ else None if size is None else units.parse_size(size))
    if json:
        emit_json(done)
        return 0
    if done.removed:
        print(_table(done.removed))
    print(f"{_sum(done.removed)} removed, {_sum(cached_drives().states)} left in {done.folder}")
    return 0


def _table(drives: Sequence[CachedDrive]) -> str:
    rows = [
        (
            drive.drive,
            ", ".join(drive.steps),
            units.size(drive.size_bytes),
            drive.used,
            "" if drive.current else "from another build",
        )
        for drive in drives
    ]
    return table(("drive", "after", "size", "last used", ""), rows, "llr")


def _sum(drives: Sequence[CachedDrive]) -> str:
    size_bytes = sum(drive.size_bytes for drive in drives)
    return f"{units.plural(len(drives), 'state')}, {units.size(size_bytes)}"
