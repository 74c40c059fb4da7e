"""Power cuts of small drives at random moments: nothing that a drive has promised may be lost.

The loop is `crates/runner/src/validation/power_cuts.rs`; here drives are shared out and counted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any

from writecliff import _native, units
from writecliff.errors import ConfigError

CUTS_PER_DRIVE = 20
_PROGRESS_EVERY_S = 10.0
# Kinds of drives whose cuts are refused without power-loss protection.
NOT_COVERED = ("data reduction", "bad blocks")
_KIND = ("extra", "write_cache", "power_loss_protection", "data_placement")


@dataclass
class PowerCutsRow:
    """What happened to the drives of one kind; slots are of 4 KiB."""

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

    def add(self, found: dict[str, Any]) -> None:
        """Count what happened to one drive."""
        for field in fields(self):
            if field.name == "rebuild_ns_max":
                self.rebuild_ns_max = max(self.rebuild_ns_max, found[field.name])
            elif field.name not in _KIND:
                setattr(self, field.name, getattr(self, field.name) + found[field.name])


@dataclass(frozen=True)
class PowerCutsReport:
    """Rows by kind of drive, and the first drive that broke a promise."""

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
    """Cut the power `cuts` times, in all; `drive` is the only drive to try, if given.

    Raises:
        ConfigError: for fewer than one cut or job, or a negative seed or drive.
    """
    for name, value, least in (("cuts", cuts, 1), ("seed", seed, 0), ("drive", drive, 0),
                               ("jobs", jobs, 1)):  # fmt: skip
        if value is not None and not least <= value < 1 << 63:
            raise ConfigError(f"{name} is {value}; it must be {least} or more")
    drives = -(-cuts // CUTS_PER_DRIVE)
    numbers: Iterable[int] = range(drives) if drive is None else [drive]
    drives = drives if drive is None else 1
    rows: dict[tuple[Any, ...], PowerCutsRow] = {}
    begun = shown = time.monotonic()

    def one(number: int) -> dict[str, Any]:
        left = cuts - number * CUTS_PER_DRIVE
        each = CUTS_PER_DRIVE if drive is not None else min(CUTS_PER_DRIVE, left)
        return _native.validate_power_cuts(seed, number, each)

    pool = ThreadPoolExecutor(jobs or os.cpu_count())
    try:
        for done, (number, found) in enumerate(zip(numbers, pool.map(one, numbers), strict=True)):
            if found["violation"] is not None:
                kind = {name: found[name] for name in ("gc", *_KIND)}
                failure = {"drive": number, **kind, "violation": found["violation"]}
                return PowerCutsReport(_sorted(rows), failure)
            key = tuple(found[name] for name in _KIND)
            rows.setdefault(key, PowerCutsRow(*key)).add(found)
            if (now := time.monotonic()) - shown >= _PROGRESS_EVERY_S:
                shown = now
                left = (now - begun) * (drives / (done + 1) - 1)
                log(f"{done + 1:,} of {drives:,} drives, {units.duration(left * 1e9)} left")
    finally:
        pool.shutdown(cancel_futures=True)
    return PowerCutsReport(_sorted(rows), None)


def _sorted(rows: dict[tuple[Any, ...], PowerCutsRow]) -> list[PowerCutsRow]:
    return [rows[key] for key in sorted(rows)]
