"""Power cuts of small drives at random times, which must not violate any guarantee.

The test loop is in `crates/validate/src/power_cuts.rs`. This module distributes the drives over
processes and counts the results.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from writecliff import _native, units
from writecliff.errors import ConfigError
from writecliff.parallel import Task, run_side_by_side

CUTS_PER_DRIVE = 20
_DRIVES_PER_TASK, _DRIVES_AT_ONCE = 50, 2000
_MEMORY_BYTES = 100_000_000  # Memory for the largest of the small drives, rounded up.
_PROGRESS_EVERY_S = 10.0
# Drive kinds that are rejected if they lack power-loss protection.
NOT_COVERED = ("data reduction", "bad blocks")
_KIND = ("extra", "write_cache", "power_loss_protection", "data_placement")


@dataclass
class PowerCutsRow:
    """Results for the drives of one type, counted in slots of 4 KiB."""

    extra: str
    write_cache: bool
    power_loss_protection: bool
    data_placement: str
    cuts: int = 0
    commands: int = 0
    lost_slots: int = 0
    unconfirmed_slots: int = 0
    torn_units: int = 0
    interrupted_erases: int = 0
    saved_slots: int = 0
    rebuild_ns_max: int = 0

    def add(self, result: dict[str, Any]) -> None:
        """Add a drive's result."""
        for field in fields(self):
            if field.name == "rebuild_ns_max":
                self.rebuild_ns_max = max(self.rebuild_ns_max, result[field.name])
            elif field.name not in _KIND:
                setattr(self, field.name, getattr(self, field.name) + result[field.name])


@dataclass(frozen=True)
class PowerCutsReport:
    """Rows by type of drive, and the first drive that violated a guarantee."""

    rows: list[PowerCutsRow]
    failure: dict[str, Any] | None


def run(
    cuts: int,
    seed: int,
    *,
    drive: int | None = None,
    jobs: int | None = None,
    log: Callable[[str], None] = lambda _: None,
) -> PowerCutsReport:
    """Cut the power `cuts` times in total; `drive` restricts the cuts to a single drive.

    Raises:
        ConfigError: If there is less than one cut or job, or the seed or drive is negative.
    """
    for name, value, least in (("cuts", cuts, 1), ("seed", seed, 0), ("drive", drive, 0),
                               ("jobs", jobs, 1)):  # fmt: skip
        if value is not None and not least <= value < 1 << 63:
            raise ConfigError(f"{name} is {value}; it must be {least} or more")
    if drive is not None:
        todo = [(drive, CUTS_PER_DRIVE)]
    else:
        starts = range(0, cuts, CUTS_PER_DRIVE)
        todo = [(number, min(CUTS_PER_DRIVE, cuts - start)) for number, start in enumerate(starts)]
    rows: dict[tuple[Any, ...], PowerCutsRow] = {}
    begun = shown = time.monotonic()
    for first in range(0, len(todo), _DRIVES_AT_ONCE):  # The loop stops at the first violation.
        part = todo[first : first + _DRIVES_AT_ONCE]
        groups = (part[start : start + _DRIVES_PER_TASK]
                  for start in range(0, len(part), _DRIVES_PER_TASK))  # fmt: skip
        tasks = [_task(seed, group) for group in groups]
        results = run_side_by_side(tasks, workers=jobs)
        for result in itertools.chain.from_iterable(results):
            if result["violation"] is not None:
                kind = {name: result[name] for name in ("drive", "gc", *_KIND)}
                return PowerCutsReport(_sorted(rows), kind | {"violation": result["violation"]})
            key = tuple(result[name] for name in _KIND)
            rows.setdefault(key, PowerCutsRow(*key)).add(result)
        if (now := time.monotonic()) - shown >= _PROGRESS_EVERY_S:
            shown, done = now, first + len(part)
            left = (now - begun) * (len(todo) / done - 1)
            log(f"{done:,} of {len(todo):,} drives, {units.duration(left * 1e9)} left")
    return PowerCutsReport(_sorted(rows), None)


def _task(seed: int, group: list[tuple[int, int]]) -> Task[list[dict[str, Any]]]:
    run = partial(_cut, seed, group)
    return Task(f"drives from {group[0][0]}", _MEMORY_BYTES, run, run)


def _cut(seed: int, group: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """Results of the drives in a group (number, cuts), up to the first violation."""
    results = []
    for drive, cuts in group:
        results.append({"drive": drive, **_native.validate_power_cuts(seed, drive, cuts)})
        if results[-1]["violation"] is not None:
            break
    return results


def _sorted(rows: dict[tuple[Any, ...], PowerCutsRow]) -> list[PowerCutsRow]:
    return [rows[key] for key in sorted(rows)]
