"""Per-second figures of a load, for the consistency figures in reviews and white papers.

average      mean of the per-second IOPS
deviation    standard deviation of the per-second IOPS
sd_ns        standard deviation of the response times in each second
array        an array of `count` such drives whose seconds are independent of each other; a striped
             request completes with the slowest drive
worst case   queue depth divided by the longest latency that ended in a second, which is the rate if
             every I/O were as slow (AnandTech)
consistency  the IOPS that 99.9 % of the seconds reach, divided by the average (Samsung PM863 white
             paper, 2015); the rank is the nearest rank, so below 1,000 seconds it selects the
             slowest second
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from writecliff.procedures.model import StepRow
from writecliff.report.series import samples, series
from writecliff.report.testdata import TestData

if TYPE_CHECKING:
    from writecliff.report.axes import Numbers

SECOND_NS = 1e9
SLOW_SHARE = 0.001  # Fraction of seconds beyond the 99.9th percentile.
SECONDS_NEEDED = round(1 / SLOW_SHARE)
SECONDS_LEAST = 10  # Minimum number of seconds for consistency figures.


@dataclass(frozen=True)
class Seconds:
    """One value per second, where NaN marks unknown values."""

    time_ns: Numbers  # Middle of the second, relative to the start of the load.
    iops: Numbers
    worst_iops: Numbers
    sd_ns: Numbers

    def __len__(self) -> int:
        """Return the number of seconds."""
        return len(self.iops)

    def since(self, begin_ns: float) -> Seconds:
        """Return the seconds that start at or after `begin_ns`."""
        keep = self.time_ns >= begin_ns
        return Seconds(self.time_ns[keep], self.iops[keep], self.worst_iops[keep], self.sd_ns[keep])

    @property
    def average(self) -> float | None:
        """Mean of the per-second IOPS."""
        return float(self.iops.mean()) if len(self) else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the per-second IOPS."""
        return float(self.iops.std()) if len(self) else None

    @property
    def lowest(self) -> float | None:
        """IOPS of the slowest second."""
        return float(self.iops.min()) if len(self) else None

    @property
    def lowest_worst(self) -> float | None:
        """Lowest worst case in any second, in IOPS."""
        measured = self.worst_iops[np.isfinite(self.worst_iops)]
        return float(measured.min()) if len(measured) else None

    @property
    def slow(self) -> float | None:
        """IOPS that all but one second in a thousand reach."""
        if not len(self):
            return None
        rank = max(1, math.ceil(SLOW_SHARE * len(self)))
        return float(np.sort(self.iops)[rank - 1])

    def array_iops(self, count: int) -> float | None:
        """Return the mean IOPS of an array of `count` such drives.

        The mean is `count` times the expected minimum of `count` random seconds, computed exactly
        by order statistics.
        """
        if not len(self):
            return None
        # The slowest of the random seconds is at least the k-th of n with probability ((n - k) / n)
        # ** count.
        left = (np.arange(len(self), -1, -1) / len(self)) ** count
        return float(count * (np.sort(self.iops) * -np.diff(left)).sum())

    @property
    def consistency_pct(self) -> float | None:
        """`slow`, as a percentage of the average."""
        average, slow = self.average, self.slow
        return None if not average or slow is None else 100 * slow / average


def seconds_of(
    data: TestData, rows: Sequence[StepRow], outstanding: int, operation: str | None = None
) -> Seconds:
    """Return the seconds in consecutive steps, for one operation or for all operations.

    `outstanding` is the number of outstanding I/Os.
    """
    seconds = samples(series(data, rows, operation), SECOND_NS)
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = outstanding / (seconds.max_ns / SECOND_NS)
    return Seconds(seconds.time_ns, seconds.iops, worst, seconds.sd_ns)
