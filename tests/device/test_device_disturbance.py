"""Detection of I/O by other programs on the device during a step, without false reports."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from writecliff.engines.base import StepResult
from writecliff.engines.disturbance import PREFIX
from writecliff.engines.fio import FioEngine
from writecliff.workload.model import Job, Workload

pytest.importorskip("writecliff._native", reason="the native module is not built")

MIB = 1 << 20
SECOND = 1_000_000_000
pytestmark = [pytest.mark.usefixtures("no_fio_left"), pytest.mark.measures]


def foreign_texts(result: StepResult) -> list[str]:
    return [text for text in result.warnings if text.startswith(f"{PREFIX}other I/O on ")]


def write_from_another_program(loop: str, size: int) -> None:
    """Write through the page cache, as most programs do, and flush the data to the device."""
    with open(loop, "r+b", buffering=0) as device:
        device.seek(64 * MIB)
        for _ in range(size // MIB):
            device.write(os.urandom(MIB))
        os.fsync(device.fileno())


def test_another_writer_is_named(loop: str) -> None:
    # The rate is limited so that the other writer's fraction does not depend on the machine.
    job = Job(duration_ns=2 * SECOND, rate_iops=500, range_bytes=32 * MIB)
    with FioEngine.open_device(loop, destroy_serial=loop) as engine:
        alone = engine.run(Workload("alone", (job,)))
        writer = threading.Timer(0.7, write_from_another_program, (loop, 16 * MIB))
        writer.start()
        disturbed = engine.run(Workload("disturbed", (job,)))
        writer.join()
    assert foreign_texts(alone) == []
    machine = alone.raw["machine"]
    assert isinstance(machine, dict)
    # The kernel's byte count equals fio's byte count exactly.
    assert machine["foreign_bytes"]["write"] == 0
    assert 0 < machine["cpu_busy_pct"] <= 100
    (text,) = foreign_texts(disturbed)
    name = Path(loop).name
    assert text.startswith(f"{PREFIX}other I/O on {name}: ")
    assert "16.8 MB written that the test did not issue" in text
    machine = disturbed.raw["machine"]
    assert isinstance(machine, dict)
    assert machine["foreign_bytes"]["write"] == 16 * MIB


def test_another_reader_is_named(attach: Callable[..., str], image: Path) -> None:
    loop = attach(image)
    job = Job(duration_ns=SECOND, rate_iops=500, read_pct=100)

    def read() -> None:
        descriptor = os.open(loop, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            for at in range(0, 8 * MIB, MIB):
                os.pread(descriptor, MIB, at)
        finally:
            os.close(descriptor)

    with FioEngine.open_device(loop, destroy_serial=None) as engine:
        reader = threading.Timer(0.5, read)
        reader.start()
        result = engine.run(Workload("r", (job,)))
        reader.join()
        assert engine.health() is None
    (text,) = foreign_texts(result)
    assert " MB read that the test did not issue" in text
