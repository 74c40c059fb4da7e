"""Recorded runs of WARP, the emulator of Song et al., "Characterizing and Emulating FDP SSDs with
WARP" (FAST 2026): the last values of logs in the paper's artifact (`archive/ops-log/`), and those
of four logs at about the volume of the paper's figures (`emulator_runs.csv`, column `within`).

A drive of 224 GiB with eight handles under the paper's three writers, reclaim units of 256 or
128 MiB, and the garbage collection that `crates/validate/src/handles.rs` describes. The
log shows whether the handles were initially or persistently isolated (the last handle takes the
survivors of all others, or none); the names of several logs say the opposite. Left out are runs
with another collection (`custom`, and those before the published one).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CAPACITY_GB = 224 * 1.024**3
_SEQUENTIAL_SHARE = 0.9  # of the capacity, filled by the first writer; the rest by the second


@dataclass(frozen=True)
class RecordedRun:
    """The bytes that each of the three writers had written at the end of a log (or at a line within
    it), and those that garbage collection had copied, in GB."""

    log: str
    unit_mib: int
    overprovision: float
    persistent: bool
    host_gb: tuple[float, float, float]
    copied_gb: float

    @property
    def capacities(self) -> float:
        """Capacities written, including the fill of the drive."""
        return sum(self.host_gb) / CAPACITY_GB

    @property
    def waf(self) -> float:
        """Write amplification since the empty drive."""
        return 1 + self.copied_gb / sum(self.host_gb)

    @property
    def rates(self) -> tuple[float, float, float]:
        """Shares of the three writers in the bytes written after the fill."""
        filled = (_SEQUENTIAL_SHARE, 1 - _SEQUENTIAL_SHARE, 0.0)
        after = [
            written - share * CAPACITY_GB
            for written, share in zip(self.host_gb, filled, strict=True)
        ]
        first, second, third = (written / sum(after) for written in after)
        return first, second, third


def _read() -> Iterator[tuple[RecordedRun, bool]]:
    """The runs of the table, and whether a row is a line within a log instead of its end."""
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            first, second, third, copied = (
                float(row[f"{name}_gb"]) for name in ("first", "second", "third", "copied")
            )
            unit_mib, op = int(row["unit_mib"]), float(row["overprovision"])
            persistent, writers = row["persistent"] == "yes", (first, second, third)
            run = RecordedRun(row["log"], unit_mib, op, persistent, writers, copied)
            yield run, row["within"] == "yes"


_ALL = tuple(_read())
RUNS = tuple(run for run, within in _ALL if not within)
WITHIN_RUNS = tuple(run for run, within in _ALL if within)
