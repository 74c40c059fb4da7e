"""Readings of a power meter on a real drive's supply, beside the run that it was measured during.

fio knows nothing of power. A meter's log is a CSV file with two columns: seconds, and watts. Time 0
is the begin of the run's first step; meters that were started earlier have an offset. `keep` checks
a log and puts it into the run directory, from where reports read it.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from writecliff.errors import ConfigError, encoded
from writecliff.input_files import read_text, shortened
from writecliff.store.files import write_atomically

if TYPE_CHECKING:
    from writecliff.report.axes import Numbers

METER_CSV = "meter.csv"
LOG_BYTES_MAX = 256 << 20  # ten readings a second for a week have 100 MB
HEAD = ("seconds", "watts")


@dataclass(frozen=True)
class Readings:
    """Watts from a time on, in s since the run's first step began; ascending."""

    times_s: Numbers
    watts: Numbers


def keep(log: Path, run: Path, *, offset_s: float = 0.0) -> Readings:
    """Read the meter's `log`, whose time is `offset_s` at the begin of the run's first step, and
    store it in the directory `run`. Raises ConfigError: not a log.
    """
    found = _read(log, offset_s)
    lines = [",".join(HEAD)]
    lines += [f"{t:.6f},{w:.6g}" for t, w in zip(found.times_s, found.watts, strict=True)]
    write_atomically(run / METER_CSV, encoded("\n".join(lines) + "\n"))
    return found


def readings_of(run: Path) -> Readings | None:
    """The readings that belong to a run; None: there are none."""
    path = run / METER_CSV
    return _read(path, 0.0) if path.is_file() else None


def _read(path: Path, offset_s: float) -> Readings:
    times: list[float] = []
    watts: list[float] = []
    try:
        for number, row in enumerate(csv.reader(read_text(path, LOG_BYTES_MAX).splitlines()), 1):
            if not row or (number == 1 and not _is_number(row[0])):
                continue  # an empty line, the head
            if len(row) < 2 or not (_is_number(row[0]) and _is_number(row[1])):
                raise ConfigError(
                    f"{path}:{number}: '{shortened(','.join(row))}' is not a time in s and watts",
                    hint="two columns: seconds, watts",
                )
            times.append(float(row[0]) - offset_s)
            watts.append(float(row[1]))
    except csv.Error as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    if not times:
        raise ConfigError(f"{path} has no readings", hint="two columns: seconds, watts")
    if any(after <= before for before, after in pairwise(times)):
        raise ConfigError(f"{path}: times do not ascend", hint="sort the log by time")
    if min(watts) < 0:
        raise ConfigError(f"{path}: {min(watts):g} W is below 0")
    return Readings(np.array(times), np.array(watts))


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
