"""Loads that read unwritten data are detected, and other loads are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from writecliff.workload.load import LoadStep
from writecliff.workload.model import BlockSize, Job, Workload
from writecliff.workload.unwritten import reads_unwritten

MIB = 1 << 20
CAPACITY = 100 * MIB
READS = Job(name="reads", read_pct=100, ios=10)
FILL = Job(name="fill", pattern="sequential", block_sizes=(BlockSize(MIB),), volume_bytes=CAPACITY)


def step(*jobs: Job, rest_ns: int = 0) -> LoadStep:
    return LoadStep(Workload("step", jobs), rest_ns=rest_ns)


def part(job: Job, offset_mib: int, length_mib: int) -> Job:
    """Return a job on a section of the drive, which it passes once."""
    volume = None if job.volume_bytes is None else length_mib * MIB
    there = {"offset_bytes": offset_mib * MIB, "range_bytes": length_mib * MIB}
    return replace(job, volume_bytes=volume, **there)


@pytest.mark.parametrize(
    ("steps", "reads"),
    [
        ([step(READS)], True),
        ([step(FILL), step(READS)], False),
        ([step(FILL, READS)], True),  # The writes and reads run at the same time.
        ([step(Job(volume_bytes=2 * CAPACITY)), step(READS)], True),  # Random writes leave gaps.
        ([step(replace(FILL, volume_bytes=50 * MIB)), step(READS)], True),
        ([step(replace(FILL, duration_ns=1)), step(READS)], True),
        ([step(replace(READS, ios=1), rest_ns=1)], False),
        (
            [
                step(part(FILL, 50, 50)),
                step(part(FILL, 20, 40)),
                step(part(READS, 20, 80)),
            ],
            False,
        ),
        ([step(Job(ios=5))], False),
    ],
)
def test_of_a_new_drive(steps: list[LoadStep], reads: bool) -> None:
    assert reads_unwritten(steps, CAPACITY) is reads
