"""A new drive written once from end to end: how much is fast, and how fast what comes after is.

One thread writes 1 MiB in order, as reviewers of drives with SLC caches do. The volume is divided
into 200 equal parts. The cache ends where a part takes a third longer than the first ones do; the
rate after it is the median of the next parts, and a late phase begins where three parts in a row
are as much slower again.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np

from writecliff.engines.sim import SimEngine
from writecliff.published.measure import ComparedDrive
from writecliff.workload.model import BlockSize, Job, Workload

PARTS = 200
_FIRST, _NEXT, _ROW = 10, 10, 3  # parts: of the burst, of the rate after it, of a lasting change
_SLOWER = 0.75  # of a rate: another phase
_FASTEST = 8e9  # bytes/s; the series resolves a part at this rate
_SEED = 3001


def fill_metrics(drive: ComparedDrive) -> dict[str, float]:
    """`fill_volume`, `fill_volume_after` (GB of the whole drive), `fill_throughput`,
    `fill_throughput_after` and `fill_throughput_late` (MB/s). Phases that the drive does not have
    are absent."""
    engine = SimEngine.from_text(drive.text, drive.file_name)
    capacity = engine.identify().capacity_bytes >> 20 << 20
    job = Job(pattern="sequential", block_sizes=(BlockSize(1 << 20),), volume_bytes=capacity)
    interval_ns = max(1_000_000, int(capacity / PARTS / _FASTEST * 1e9 / 4))
    result = engine.run(Workload("fill", (job,), seed=_SEED, interval_ns=interval_ns))
    ends_s = result.intervals["end_ns"] / 1e9
    volumes = np.cumsum(result.intervals["bytes"])
    marks = np.linspace(0, volumes[-1], PARTS + 1)
    times = np.interp(marks, np.concatenate(([0], volumes)), np.concatenate(([0.0], ends_s)))
    rates = (np.diff(marks) / np.diff(times) / 1e6).tolist()
    return phases(rates, capacity * drive.scale / 1e9, result.elapsed_ns / 1e9 * drive.scale)


def phases(rates: Sequence[float], capacity_gb: float, seconds: float) -> dict[str, float]:
    """The metrics of a drive of `capacity_gb` written in `seconds`, at these rates (MB/s) over
    equal parts of it."""
    found = {"fill_throughput": capacity_gb * 1e3 / seconds}
    end = _slower(rates, 0, median(rates[:_FIRST]), 1)
    if end is None:
        return found | {"fill_volume": capacity_gb}
    found["fill_volume"] = capacity_gb * end / len(rates)
    after = list(rates[end + 1 : end + 1 + _NEXT])  # without the part in which the cache ends
    if not after:
        return found
    found["fill_throughput_after"] = median(after)
    late = _slower(rates, end + 1, median(after), _ROW)
    if late is not None:
        found["fill_volume_after"] = capacity_gb * late / len(rates)
        found["fill_throughput_late"] = median(rates[late:])
    return found


def _slower(rates: Sequence[float], begin: int, usual: float, row: int) -> int | None:
    """The first part from `begin` on that begins `row` parts slower than `usual`."""
    slow = [rate < _SLOWER * usual for rate in rates]
    return next((n for n in range(begin, len(slow) - row + 1) if all(slow[n : n + row])), None)
