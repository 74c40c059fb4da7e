"""Stalls and causes of failed steps, with a simulated clock and recorded responses."""

from __future__ import annotations

import pytest

from writecliff.engines.fio.faults import GIVE_UP_S, StallWatch, cause, io_error, is_never_idle
from writecliff.engines.fio.process import Exit
from writecliff.errors import EngineError
from writecliff.workload.model import Job, Workload

FIO_3_33 = (
    "fio: io_u error on file /dev/sdb: Input/output error: write offset=8192, buflen=4096",
    "fio: pid=71, err=5/file:io_u.c:1845, func=io_u error, error=Input/output error",
)


class Machine:
    """A simulated clock, and a drive that completes I/Os on request."""

    def __init__(self) -> None:
        self.now = 0.0
        self.counts: tuple[int, int] | None = (0, 0)

    def watch(self, interval_s: float = 1.0, *, never_idle: bool = False) -> StallWatch:
        counts, clock = (lambda: self.counts), (lambda: self.now)
        return StallWatch("/dev/sdb", counts, interval_s, clock, never_idle=never_idle)

    def wait(self, watch: StallWatch, seconds: float, *, report: bool = False) -> None:
        for _ in range(round(seconds * 2)):
            self.now += 0.5
            watch.reported() if report else watch.tick()


def test_a_stall_is_noted_when_it_ends() -> None:
    machine = Machine()
    watch = machine.watch()
    machine.counts = (100, 4)
    machine.wait(watch, 12)
    assert watch.notes == []
    machine.counts = (101, 4)
    machine.wait(watch, 1, report=True)
    (note,) = watch.notes
    assert note.startswith("disturbance: stall: the drive completed no I/O for 12")


@pytest.mark.parametrize("counts", [(100, 0), None], ids=["idle", "not counted"])
def test_a_pause_is_no_stall(counts: tuple[int, int] | None) -> None:
    machine = Machine()
    watch = machine.watch(interval_s=60)
    machine.counts = counts
    machine.wait(watch, 59)
    watch.finish()
    watch.reported()
    assert watch.notes == []


def test_a_load_that_is_never_idle_stalls_with_nothing_in_flight() -> None:
    """Check that a suspended device mapper delays I/Os during the load."""
    machine = Machine()
    watch = machine.watch(never_idle=True)
    machine.wait(watch, 30, report=True)  # fio prepares its jobs.
    machine.counts = (100, 0)
    machine.wait(watch, 12, report=True)
    assert watch.notes == []
    machine.counts = (101, 4)
    machine.wait(watch, 1)
    machine.counts = (200, 0)
    machine.wait(watch, 8, report=True)  # fio writes its results.
    watch.finish()
    (note,) = watch.notes
    assert note.startswith("disturbance: stall: the drive completed no I/O for 12")


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (Job(), True),
        (Job(rate_iops=100), False),
        (Job(rate_bytes_per_s=1e6), False),
        (Job(think_ns=1000), False),
        (Job(burst_ns=1000, pause_ns=1000), False),
        (Job(start_delay_ns=1000), False),
    ],
)
def test_a_load_with_pauses_of_its_own_may_be_idle(job: Job, expected: bool) -> None:
    assert is_never_idle(Workload("load", (job,))) is expected
    assert not is_never_idle(Workload("loads", (job, Job(rate_iops=1))))


def test_a_slow_drive_does_not_stall() -> None:
    machine = Machine()
    watch = machine.watch()
    for done in range(300):
        machine.counts = (done, 32)
        machine.wait(watch, 4)
    watch.finish()
    assert watch.notes == []


def test_a_drive_that_never_answers_is_given_up() -> None:
    machine = Machine()
    watch = machine.watch()
    machine.counts = (100, 4)
    with pytest.raises(EngineError, match="no I/O was completed for 10 min"):
        # The watch gives up although fio still reports.
        machine.wait(watch, GIVE_UP_S + 10, report=True)
    assert watch.notes != []


def test_a_fio_that_never_reports_is_given_up() -> None:
    machine = Machine()
    machine.counts = None
    watch = machine.watch(interval_s=30)
    machine.wait(watch, GIVE_UP_S + 20)
    with pytest.raises(EngineError, match="the drive does not respond"):
        machine.wait(watch, 20)


def test_the_first_io_error_is_named() -> None:
    assert io_error(FIO_3_33) == "write error at byte 8192 (of 4.1 kB): Input/output error"
    assert io_error(["fio: file hash not empty on exit"]) is None


@pytest.mark.parametrize(
    ("trouble", "lines", "logged", "expected"),
    [
        (None, (), [], "fio failed: exit status 1"),
        (None, (), ["out of memory"], "fio failed: exit status 1; kernel: out of memory"),
        (
            None,
            FIO_3_33,
            ["I/O error, dev sdb", "more"],
            "/dev/sdb: write error at byte 8192 (of 4.1 kB): Input/output error;"
            " kernel: I/O error, dev sdb",
        ),
        (
            "the drive vanished",
            FIO_3_33,
            [],
            "/dev/sdb: the drive vanished; write error at byte 8192 (of 4.1 kB):"
            " Input/output error",
        ),
        ("the drive vanished", (), [], "/dev/sdb: the drive vanished; fio failed: exit status 1"),
    ],
)
def test_causes(
    trouble: str | None, lines: tuple[str, ...], logged: list[str], expected: str
) -> None:
    ended = Exit(1, "", lines=lines)
    assert cause("/dev/sdb", trouble, ended, "exit status 1", logged) == expected
