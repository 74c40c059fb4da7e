"""Disturbances from two readings, and the end of an SLC cache in synthetic series."""

from __future__ import annotations

import random
import time

import pytest

from writecliff.engines.base import Operation
from writecliff.engines.blockdev.machine import CpuTimes, DiskIo, Sample
from writecliff.engines.blockdev.vitals import Vitals
from writecliff.engines.disturbance import (
    PREFIX,
    Reading,
    between,
    end_of_slc_cache,
    level_drop,
)

MB = 10**6
OF_JOB: dict[Operation, int] = {"read": 0, "write": 400 * MB, "trim": 0}
IDLE = CpuTimes(busy=1000, waiting=100, stolen=50, total=9000)


def reading(
    cpu: CpuTimes | None = None,
    *,
    throttles: int | None = None,
    read: int = 0,
    written: int = 0,
    scheduler: str | None = None,
    vitals: Vitals | None = None,
) -> Reading:
    disk = DiskIo({"read": read, "write": written, "trim": 0})
    return Reading(Sample(cpu, throttles, None, disk, scheduler), vitals or Vitals())


def texts(
    before: Reading, after: Reading, of_job: dict[Operation, int] | None = OF_JOB
) -> list[str]:
    drops, _ = between(before, after, of_job, "sda")
    assert all(text.startswith(PREFIX) for text in drops)
    return [text.removeprefix(PREFIX) for text in drops]


def test_a_quiet_step_has_figures_and_no_texts() -> None:
    after = CpuTimes(busy=1500, waiting=200, stolen=51, total=10_000)
    drops, figures = between(reading(IDLE), reading(after, written=400 * MB), OF_JOB, "sda")
    assert drops == []
    assert figures["cpu_busy_pct"] == 50.0
    assert figures["cpu_waiting_pct"] == 10.0
    assert figures["cpu_steal_pct"] == 0.2
    assert figures["foreign_bytes"] == {"read": 0, "write": 0, "trim": 0}


def test_a_scheduler_that_starves_jobs_is_named_where_io_goes_through_it() -> None:
    after = reading(IDLE, written=400 * MB, scheduler="bfq")
    (text,) = texts(reading(IDLE), after)
    assert text.startswith("I/O scheduler: bfq delays")
    assert "/sys/block/sda/queue/scheduler" in text
    assert texts(reading(IDLE), after, None) == []  # Passthrough I/Os bypass the block layer.
    usual = reading(IDLE, written=400 * MB, scheduler="mq-deadline")
    drops, figures = between(reading(IDLE), usual, OF_JOB, "sda")
    assert (drops, figures["io_scheduler"]) == ([], "mq-deadline")


def test_steal_counts_against_the_time_that_was_wanted() -> None:
    """With one of 64 CPUs busy, 100 stolen ticks of 1000 requested are 10 %, not 0.2 %."""
    after = CpuTimes(busy=1900, waiting=100, stolen=150, total=73_000)
    (text,) = texts(reading(IDLE), reading(after, written=400 * MB))
    assert text.startswith("CPU steal: 10 % of the CPU time that this machine needed")
    chance = CpuTimes(busy=1040, waiting=100, stolen=55, total=73_000)
    assert texts(reading(IDLE), reading(chance, written=400 * MB)) == []


def test_io_of_others_is_named_by_operation() -> None:
    (text,) = texts(reading(), reading(read=3 * MB, written=425_200_000))
    assert text == (
        "other I/O on sda: 3.0 MB read and 25.2 MB written that the test did not issue"
        " (the test transferred 400.0 MB)"
    )


@pytest.mark.parametrize(
    ("written", "of_job"),
    [
        (401 * MB, OF_JOB),  # udev reads a device after it is closed.
        (0, OF_JOB),  # Statistics are disabled.
        (900 * MB, None),  # The I/Os of a failed step are unknown.
    ],
)
def test_io_that_is_not_held_against_others(
    written: int, of_job: dict[Operation, int] | None
) -> None:
    assert texts(reading(), reading(written=written), of_job) == []


def test_heat_errors_and_links() -> None:
    before = Vitals(marks={"thm_temp1_trans_count": 1, "media_errors": 2}, link="16 GT/s x4")
    after = Vitals(
        temperature_c=84.0,
        limit_c=82.0,
        marks={"thm_temp1_trans_count": 4, "media_errors": 2, "iotmo_cnt": 1},
        link="8 GT/s x4",
    )
    drops = texts(
        reading(throttles=5, vitals=before),
        reading(throttles=7, written=400 * MB, vitals=after),
    )
    assert drops == [
        "CPU throttling: the CPUs were throttled 2 times",
        "the drive throttled lightly 3 times for its temperature",
        "the drive is at 84 °C; its limit is 82 °C",
        "the drive's link changed from 16 GT/s x4 to 8 GT/s x4",
    ]


def noisy(level: float, count: int, spread: float = 0.03, seed: int = 1) -> list[float]:
    draw = random.Random(seed)
    return [level * (1 + draw.uniform(-spread, spread)) for _ in range(count)]


def test_the_end_of_a_cache_is_found_where_it_is() -> None:
    series = [*noisy(1000, 20), 700.0, *noisy(300, 39, seed=2)]  # The drop takes a single value.
    drops = level_drop(series)
    assert drops is not None
    assert drops.index == 20
    assert drops.drop == pytest.approx(0.7, abs=0.02)
    assert drops.before == pytest.approx(1000, rel=0.03)


def test_a_cache_that_is_folded_in_bursts_has_ended_too() -> None:
    behind = noisy(300, 100, seed=2)
    behind[30] = behind[70] = 900.0
    drops = level_drop([*noisy(1000, 20), *behind])
    assert drops is not None
    assert (drops.index, drops.after) == (20, pytest.approx(300, rel=0.03))


def test_a_long_series_is_looked_through_quickly() -> None:
    begin = time.process_time()
    assert level_drop(noisy(1000, 20_000, spread=0.9)) is None
    assert time.process_time() - begin < 10


@pytest.mark.parametrize(
    "series",
    [
        noisy(1000, 60),
        [*noisy(1000, 20), *noisy(800, 40)],  # A drop of a fifth is too small.
        [*noisy(1000, 20), 100.0, 90.0, *noisy(1000, 30)],  # The series has a stall.
        [*noisy(1000, 20), *noisy(300, 20), *noisy(1000, 20)],  # The rate recovers.
        [1000 * 0.97**i for i in range(60)],  # The series declines slowly.
        # Rates during garbage collection are not steady.
        [*noisy(1000, 20), *noisy(400, 40, spread=0.6)],
        [*noisy(1000, 3), *noisy(300, 40)],  # There is no steady period before the drop.
        [*noisy(1000, 40), *noisy(300, 3)],  # There is no steady period after the drop.
        [0.0] * 40,
        [],
    ],
    ids=[
        "steady",
        "fifth",
        "stall",
        "back",
        "slow",
        "collection",
        "early",
        "late",
        "idle",
        "empty",
    ],
)
def test_what_is_no_end_of_a_cache(series: list[float]) -> None:
    assert level_drop(series) is None


def test_only_early_after_a_purge() -> None:
    sizes = [round(MB * value) for value in [*noisy(1000, 20), *noisy(300, 40, seed=2)]]
    ends = [10**9 * (second + 1) for second in range(60)]
    text = end_of_slc_cache(ends, sizes, 0, 500 * 10**9)
    assert text is not None
    assert text.startswith(
        f"{PREFIX}looks like the end of an SLC cache: 21 s into the step, 20.0 GB after the purge,"
    )
    assert end_of_slc_cache(ends, sizes, 490 * 10**9, 500 * 10**9) is None
