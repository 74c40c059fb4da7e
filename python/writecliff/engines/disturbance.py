"""Detection of measurement disturbances caused by the machine or the drive state.

The functions have no side effects. They compare two samples taken around a step, or search a series
for the point where an SLC cache is full. `engines.blockdev` takes the samples. All texts start with
`PREFIX`, so that reports can separate disturbances from other remarks on a step.

The PTS calls a drive steady if the slope is at most 10 % over five rounds, so a disturbance is
reported if it can change a figure by 5 %.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from writecliff.engines.base import Operation
    from writecliff.engines.blockdev.machine import CpuTimes, DiskIo, Sample
    from writecliff.engines.blockdev.vitals import Vitals

PREFIX = "disturbance: "

# Threshold as a fraction of the requested CPU time. If the CPU is the bottleneck, IOPS fall by this
# fraction.
STEAL_SHARE = 0.05
# Minimum tick count (10 ms per tick); fewer ticks are noise.
STEAL_TICKS_MIN = 10
# udev and blkid read the start and end of a device whenever a process that wrote to it closes it.
FOREIGN_BYTES_MIN = 1 << 20
# For an undisturbed step, the byte counts of the kernel and fio are identical. This fraction is far
# above any counting error, but low enough to detect small I/Os from other programs among the test's
# large I/Os.
FOREIGN_SHARE = 0.001
# BFQ allots time slices. On a loop device, BFQ delayed one of two jobs by a second, but other
# schedulers delayed it by 20 ms. The scheduler, not the drive, causes such latencies.
_BFQ = (
    "I/O scheduler: bfq delays the I/O of some jobs in favour of others; to measure the drive:"
    " echo none > /sys/block/{disk}/queue/scheduler"
)


@dataclass(frozen=True)
class Reading:
    """The machine and drive state at one point in time."""

    machine: Sample
    vitals: Vitals


def between(
    before: Reading,
    after: Reading,
    own_bytes: Mapping[Operation, int] | None,
    disk: str,
    slack_bytes: int = 0,
) -> tuple[list[str], dict[str, object]]:
    """Return descriptions of the disturbances between two samples, and the step's figures.

    Args:
        before: Sample taken before the step.
        after: Sample taken after the step.
        own_bytes: The test's own bytes by operation, or None if they are unknown or if the kernel
            does not count them.
        disk: Disk name, for use in texts.
        slack_bytes: Bytes that the test may have transferred after `own_bytes` was counted and
            before the sample `after` was taken. If `slack_bytes` is not 0, the exact
            `foreign_bytes` are unknown.

    Returns:
        The disturbance texts, and the following plain values, which are `None` if unknown:
        `cpu_busy_pct`, `cpu_waiting_pct`, `cpu_steal_pct` (of the requested time), `cpu_mhz`,
        `cpu_throttles`, `io_scheduler`, `foreign_bytes` (by operation), `temperature_c` (before and
        after).
    """
    texts: list[str] = []
    figures: dict[str, object] = {"cpu_mhz": after.machine.cpu_mhz}
    figures |= _cpu(before.machine.cpu, after.machine.cpu, texts)
    figures["cpu_throttles"] = _throttles(before.machine, after.machine, texts)
    figures["io_scheduler"] = after.machine.io_scheduler
    # If the step has no byte count, I/Os may bypass the scheduler.
    if after.machine.io_scheduler == "bfq" and own_bytes is not None:
        texts.append(_BFQ.format(disk=disk))
    figures |= _foreign(
        before.machine.disk, after.machine.disk, own_bytes, disk, slack_bytes, texts
    )
    figures["temperature_c"] = [before.vitals.temperature_c, after.vitals.temperature_c]
    texts += _vitals(before.vitals, after.vitals)
    return [PREFIX + text for text in texts], figures


def _cpu(before: CpuTimes | None, after: CpuTimes | None, texts: list[str]) -> dict[str, object]:
    names = ("cpu_busy_pct", "cpu_waiting_pct", "cpu_steal_pct")
    if before is None or after is None or after.total <= before.total:
        return dict.fromkeys(names)
    total = after.total - before.total
    busy, stolen = after.busy - before.busy, after.stolen - before.stolen
    share = stolen / (busy + stolen) if busy + stolen > 0 else 0.0
    if share > STEAL_SHARE and stolen >= STEAL_TICKS_MIN:
        texts.append(
            f"CPU steal: {100 * share:.0f} % of the CPU time that this machine needed"
            " went to other guests of its host"
        )
    waiting = after.waiting - before.waiting
    shares = (busy / total, waiting / total, share)
    return {name: round(100 * value, 2) for name, value in zip(names, shares, strict=True)}


def _throttles(before: Sample, after: Sample, texts: list[str]) -> int | None:
    if before.cpu_throttles is None or after.cpu_throttles is None:
        return None
    count = after.cpu_throttles - before.cpu_throttles
    if count > 0:
        texts.append(f"CPU throttling: the CPUs were throttled {count} times")
    return count


def _foreign(
    before: DiskIo | None,
    after: DiskIo | None,
    own_bytes: Mapping[Operation, int] | None,
    disk: str,
    slack: int,
    texts: list[str],
) -> dict[str, object]:
    """Return the bytes that other programs transferred on the disk and its partitions."""
    unknown: dict[str, object] = {"foreign_bytes": None}
    if before is None or after is None or own_bytes is None:
        return unknown
    done = {op: after.bytes[op] - before.bytes.get(op, 0) for op in after.bytes}
    if any(done.get(op, 0) < size - slack for op, size in own_bytes.items() if op != "trim"):
        return unknown  # Statistics are disabled, or the I/Os bypass the block layer.
    foreign = {op: size - own_bytes.get(op, 0) for op, size in done.items()}
    issued = sum(own_bytes.values())
    others = {op: size for op, size in foreign.items() if size > 0}
    if sum(others.values()) > max(FOREIGN_BYTES_MIN, FOREIGN_SHARE * issued, slack):
        parts = [f"{_megabytes(size)} {_DONE[op]}" for op, size in others.items()]
        texts.append(
            f"other I/O on {disk}: {' and '.join(parts)} that the test did not issue"
            f" (the test transferred {_megabytes(issued)})"
        )
    return unknown if slack else {"foreign_bytes": foreign}


_DONE: Mapping[Operation, str] = {"read": "read", "write": "written", "trim": "discarded"}


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _vitals(before: Vitals, after: Vitals) -> Iterator[str]:
    from writecliff.engines.blockdev.vitals import MARKS

    for name, text in MARKS.items():
        if name in before.marks and name in after.marks:
            rise = after.marks[name] - before.marks[name]
            if rise > 0:
                yield text.format(n=rise)
    heat, limit = after.temperature_c, after.limit_c
    if heat is not None and limit is not None and heat >= limit:
        yield f"the drive is at {heat:.0f} °C; its limit is {limit:.0f} °C"
    if before.link is not None and after.link is not None and before.link != after.link:
        yield f"the drive's link changed from {before.link} to {after.link}"


# -- SLC cache exhaustion ---------------------------------------------------------------------

# A drop is a change between two stretches of steady values, which distinguishes a drop from noise.
CACHE_DROP = 0.25
STEADY_VALUES_MIN = 5
# At least three quarters of a stretch's values must lie this close to its median. The rates of
# writes to an SLC cache, and to the flash behind it, meet this criterion, but writes during garbage
# collection do not.
STRETCH_SPREAD = 0.15
STRETCH_SHARE = 0.75
# Number of values to examine after the drop (ten minutes of one-second values). Because drives fold
# their cache in bursts, this fraction of the examined values may exceed the mean of both levels.
BEHIND_VALUES_MAX = 600
BACK_SHARE = 0.05


@dataclass(frozen=True)
class LevelDrop:
    """Drop in a series from one level to a lower level."""

    index: int  # Index of the first value after the drop.
    before: float  # Median before the drop, in the series unit.
    after: float  # Median after the drop, in the series unit.

    @property
    def drop(self) -> float:
        """Drop as a fraction of the preceding level."""
        return 1 - self.after / self.before


def level_drop(values: Sequence[float]) -> LevelDrop | None:
    """Find the first lasting drop of more than a quarter from a steady stretch in a series.

    `values` contains the throughputs of equal intervals. Both sides of the drop must be steady and
    have at least five values. The drop must occur within a single interval, whose value may mix
    both levels. The series must not recover, because neither a stall nor a slow decline means that
    a cache is full.
    """
    for index in range(STEADY_VALUES_MIN, len(values) - STEADY_VALUES_MIN + 1):
        head = values[max(0, index - 4 * STEADY_VALUES_MIN) : index]
        level = statistics.median(head)
        if level <= 0 or values[index] >= (1 - CACHE_DROP) * level:
            continue
        # The value at the drop may mix both levels, so it belongs to neither level.
        first = index + 1 if len(values) - index > STEADY_VALUES_MIN else index
        tail = values[first : first + BEHIND_VALUES_MAX]
        lower = statistics.median(tail)
        back = sum(value >= (level + lower) / 2 for value in tail)
        if lower >= (1 - CACHE_DROP) * level or back > BACK_SHARE * len(tail):
            continue
        if _is_steady(head, level) and _is_steady(tail, lower):
            return LevelDrop(index, level, lower)
    return None


def _is_steady(values: Sequence[float], level: float) -> bool:
    near = sum(abs(value - level) <= STRETCH_SPREAD * level for value in values)
    return near >= STRETCH_SHARE * len(values)


def end_of_slc_cache(
    ends_ns: Sequence[int],
    write_bytes: Sequence[int],
    written_before: int,
    capacity_bytes: int,
) -> str | None:
    """Describe where a write step probably exhausted the SLC cache, or return None.

    `ends_ns` and `write_bytes` are the step's intervals, and `written_before` is the number of
    bytes written between the purge and the step. Only the first drive capacity written after a
    purge is examined. A cache is smaller than the drive, and later drops are due to garbage
    collection (the write cliff).
    """
    rates, begins = [], 0
    for end, size in zip(ends_ns, write_bytes, strict=True):
        rates.append(size / max(1, end - begins) * 1e3)  # The rates are in MB/s.
        begins = end
    drop = level_drop(rates)
    if drop is None:
        return None
    behind = written_before + sum(write_bytes[: drop.index])
    if behind >= capacity_bytes:
        return None
    return (
        f"{PREFIX}looks like the end of an SLC cache: {ends_ns[drop.index] / 1e9:.0f} s into the"
        f" step, {behind / 1e9:,.1f} GB after the purge, writes fell from {drop.before:,.0f} to"
        f" {drop.after:,.0f} MB/s and stayed there"
    )
