"""Disturbances of a step: the end of a cache is reported only if it is possible."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.fio_target import DISK, FIO
from writecliff.engines.base import Operation
from writecliff.engines.blockdev.machine import DiskIo, Sample
from writecliff.engines.blockdev.vitals import Vitals
from writecliff.engines.disturbance import Reading
from writecliff.engines.fio.command import plan
from writecliff.engines.fio.measured import Measured
from writecliff.engines.fio.parse import OperationStats
from writecliff.engines.fio.watch import DisturbanceWatch
from writecliff.workload.model import Job, Workload

MB = 10**6
S = 1_000_000_000
WRITE: Operation = "write"
FILL = Job(name="fill", duration_ns=60 * S)
QUIET = Reading(Sample(), Vitals())


def falling(job: Job = FILL, before: Reading = QUIET, seconds: int = 60) -> Measured:
    """Check a series with 1,000 MB/s for 20 s, then 300 MB/s."""
    workload = Workload("w", (job,))
    step = Measured(workload, plan(workload, DISK, FIO), 0, before)
    step.begin_part()
    size = 0
    for second in range(seconds):
        size += 1000 * MB if second < 20 else 300 * MB
        ios = size // 4096
        report = OperationStats(ios, size, 1000 * (second + 1), 1, 1, 1.0, 0.0, {1: ios})
        step.series.add({(0, WRITE): report})
    return step


def concluded(watch: DisturbanceWatch, job: Job = FILL, *, complete: bool = True) -> list[str]:
    step = falling(job)
    return watch.conclude(step, QUIET, step.columns(), complete=complete)[0]


def purged(capacity_bytes: int = 100_000 * MB) -> DisturbanceWatch:
    watch = DisturbanceWatch("sdx", capacity_bytes)
    watch.purged()
    return watch


def test_the_end_of_a_cache_is_said_early_after_a_purge_only() -> None:
    watch = purged()
    (text,) = concluded(watch)
    assert "looks like the end of an SLC cache: 21 s into the step, 20.0 GB after the purge" in text
    (text,) = concluded(watch)  # The rate dropped after another 32 GB.
    assert "52.0 GB after the purge" in text
    assert len(concluded(watch)) == 1
    assert concluded(watch) == []  # 96 GB plus 20 GB exceed the drive's capacity.
    watch.purged()
    assert len(concluded(watch)) == 1
    assert concluded(DisturbanceWatch("sdx", 100_000 * MB)) == []


@pytest.mark.parametrize(
    "job",
    [
        replace(FILL, rate_iops=1000),
        replace(FILL, read_pct=50),
        replace(FILL, think_ns=1000),
        replace(FILL, burst_ns=S, pause_ns=S),
    ],
    ids=["rate", "mix", "think", "pauses"],
)
def test_a_load_that_the_drive_does_not_limit_has_no_cache_end(job: Job) -> None:
    assert concluded(purged(), job) == []


def test_a_failed_step_blames_nobody_but_counts() -> None:
    watch = purged(60_000 * MB)
    assert concluded(watch, complete=False) == []
    (text,) = concluded(watch)
    assert "52.0 GB after the purge" in text


def test_other_io_of_a_failed_step_is_unknown() -> None:
    after = Reading(Sample(disk=DiskIo({"read": 0, "write": 90_000 * MB})), Vitals())
    before = Reading(Sample(disk=DiskIo({"read": 0, "write": 0})), Vitals())
    step, watch = falling(FILL, before), DisturbanceWatch("sdx", 10**12)
    complete, figures = watch.conclude(step, after, step.columns(), complete=True)
    assert ["other I/O on sdx" in text for text in complete] == [True]
    assert figures["foreign_bytes"] == {"read": 0, "write": 58_000 * MB}
    partial, figures = watch.conclude(step, after, step.columns(), complete=False)
    assert (partial, figures["foreign_bytes"]) == ([], None)


@pytest.mark.parametrize(("late_ms", "warned"), [(0.0, [True]), (60_000.0, [])])
def test_a_cut_forgives_what_was_done_until_the_drive_was_read(
    late_ms: float, warned: list[bool]
) -> None:
    """A load of 32,000 MB in 60 s, with 500 MB more in the kernel's count (0.25 s are 133 MB)."""
    step = falling(FILL, Reading(Sample(disk=DiskIo({"read": 0, "write": 0})), Vitals()))
    step.goes_on, step.late_ms = True, late_ms
    after = Reading(Sample(disk=DiskIo({"read": 0, "write": 32_500 * MB})), Vitals())
    watch = DisturbanceWatch("sdx", 10**12)
    texts, figures = watch.conclude(step, after, step.columns(), complete=True)
    assert ["other I/O on sdx" in text for text in texts] == warned
    assert figures["foreign_bytes"] is None
