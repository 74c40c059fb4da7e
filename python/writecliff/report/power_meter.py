"""Power meter readings at a real drive's supply, recorded during a run.

A power meter is required because fio does not measure power. A meter log is a CSV file with two
columns, seconds and watts. Time 0 is the start of the run's first step; a meter that was started
earlier requires an offset. `keep` checks a log and stores it in the run directory, where reports
read it.
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
LOG_BYTES_MAX = 256 << 20  # Maximum log size; a week of ten readings per second takes 100 MB.
HEAD = ("seconds", "watts")


@dataclass(frozen=True)
class Readings:
    """Readings in W, with ascending times in s from the start of the run's first step."""

    times_s: Numbers
    watts: Numbers


def keep(log: Path, run: Path, *, offset_s: float = 0.0) -> Readings:
    """Read the meter's `log`, and store it in the run directory `run`.

    Args:
        log: CSV file written by the meter.
        run: Run directory.
        offset_s: Log time in s at which the run's first step starts.

    Raises:
        ConfigError: If `log` is not a power meter log.
    """
    readings = _read(log, offset_s)
    lines = [",".join(HEAD)]
    lines += [f"{t:.6f},{w:.6g}" for t, w in zip(readings.times_s, readings.watts, strict=True)]
    write_atomically(run / METER_CSV, encoded("\n".join(lines) + "\n"))
    return readings


def readings_of(run: Path) -> Readings | None:
    """Return a run's meter readings, or None."""
    path = run / METER_CSV
    return _read(path, 0.0) if path.is_file() else None


def _read(path: Path, offset_s: float) -> Readings:
    times: list[float] = []
    watts: list[float] = []
    try:
        for number, row in enumerate(csv.reader(read_text(path, LOG_BYTES_MAX).splitlines()), 1):
            if not row or (number == 1 and not _is_number(row[0])):
                continue  # The line is empty or a header.
            if len(row) < 2 or not (_is_number(row[0]) and _is_number(row[1])):
                raise ConfigError(
                    f"{path}:{number}: '{shortened(','.join(row))}' is not a time in seconds and "
                    f"a power in watts",
                    hint="write two columns: the time in seconds and the power in watts",
                )
            times.append(float(row[0]) - offset_s)
            watts.append(float(row[1]))
    except csv.Error as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    if not times:
        raise ConfigError(
            f"{path} contains no readings",
            hint="the file must have two columns: the time in seconds and the power in watts",
        )
    if any(after <= before for before, after in pairwise(times)):
        raise ConfigError(
            f"{path}: timestamps are not in ascending order", hint="sort the log by time"
        )
    if min(watts) < 0:
        raise ConfigError(f"{path}: {min(watts):g} W is below 0")
    return Readings(np.array(times), np.array(watts))


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
