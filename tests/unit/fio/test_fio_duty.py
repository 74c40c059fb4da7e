"""Bursts and pauses in fio's options, and the series around reports that a pause held back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.fio_target import DISK, FIO
from writecliff.engines.base import Operation
from writecliff.engines.fio.capability import Fio
from writecliff.engines.fio.command import plan
from writecliff.engines.fio.intervals import IntervalSeries
from writecliff.engines.fio.parse import OperationStats
from writecliff.errors import EngineError
from writecliff.workload.model import Job, Workload

S = 1_000_000_000
HIR = Job(name="hir", burst_ns=5 * S, pause_ns=50 * S, duration_ns=1000 * S)
NEW = Fio("/usr/bin/fio", (3, 34), "fio-3.34", "io_uring")
WRITE: Operation = "write"


def test_bursts_and_pauses_are_think_times() -> None:
    made = plan(Workload("w", (HIR,)), DISK, NEW)
    assert "thinktime=50000000us\nthinktime_iotime=5000000us\n" in made.text
    assert (made.warnings, made.duty_ns) == ((), (5 * S, 50 * S))
    (warning,) = plan(Workload("w", (HIR,)), DISK, FIO).warnings
    assert warning.startswith("job hir: fio-3.33 makes the first burst last 55 s instead of 5 s")


@pytest.mark.parametrize(
    ("jobs", "version", "message"),
    [
        ((HIR,), (3, 27), "has no bursts and pauses"),
        ((replace(HIR, burst_ns=0),), (3, 34), "burst_ns is 0: bursts and pauses go together"),
        ((replace(HIR, pause_ns=0),), (3, 34), "pause_ns is 0: bursts and pauses go together"),
        ((replace(HIR, pause_ns=1500),), (3, 34), "whole microseconds"),
        ((replace(HIR, pause_ns=3000 * S),), (3, 34), "up to 2147 s"),
        ((replace(HIR, rate_iops=10),), (3, 34), "no rate within bursts"),
        ((replace(HIR, think_ns=1000),), (3, 34), "exclude each other"),
        ((HIR, replace(HIR, burst_ns=6 * S)), (3, 34), "pause differently"),
        ((HIR, Job(duration_ns=S)), (3, 34), "pause differently"),
    ],
)
def test_what_fio_cannot_pause_is_refused(
    jobs: tuple[Job, ...], version: tuple[int, int], message: str
) -> None:
    fio = Fio("/usr/bin/fio", version, f"fio-{version[0]}.{version[1]}", "io_uring")
    with pytest.raises(EngineError, match=message):
        plan(Workload("w", jobs), DISK, fio)


def stats(runtime_ms: int, ios: int) -> dict[tuple[int, Operation], OperationStats]:
    one = OperationStats(ios, ios * 4096, runtime_ms, 1000, 1000, 1000.0, 0.0, {1000: ios})
    return {(0, WRITE): one}


def rows(series: IntervalSeries) -> list[tuple[int, int]]:
    columns = series.columns()
    return list(zip((columns["end_ns"] // 10**6).tolist(), columns["ios"].tolist(), strict=True))


def test_a_report_that_a_pause_held_back_marks_the_pause() -> None:
    """Bursts of 500 ms, pauses of 400 ms, a report every 200 ms; ours arrive 70 ms after fio's."""
    series = IntervalSeries((0.0,), 200.0, (500.0, 400.0))
    series.add(stats(200, 20), 270.0)
    series.add(stats(400, 40), 470.0)
    series.add(stats(600, 50), 970.0)  # asked for at 600, answered when the pause was over
    series.add(stats(903, 51), 973.0)
    series.add(stats(1100, 70), 1172.0)
    series.add(stats(1300, 90), 1372.0)
    series.add(stats(1500, 100), 1870.0)
    series.add(stats(1801, 100), 1871.0)  # the last one, nothing new in it
    assert rows(series) == [
        (200, 20),
        (400, 20),
        (500, 10),
        (900, 0),
        (903, 1),
        (1100, 19),
        (1300, 20),
        (1400, 10),
        (1800, 0),
    ]
    assert np.isnan(series.columns()["latency_mean_ns"][3])


def test_a_report_late_for_other_reasons_is_no_pause() -> None:
    series = IntervalSeries((0.0,), 200.0, (5000.0, 1000.0))
    series.add(stats(200, 20), 270.0)
    series.add(stats(400, 40), 900.0)  # this machine was busy
    assert rows(series) == [(200, 20), (400, 20)]
    plain = IntervalSeries((0.0,), 200.0)
    plain.add(stats(200, 20), 270.0)
    plain.add(stats(400, 40), 900.0)
    assert rows(plain) == rows(series)
