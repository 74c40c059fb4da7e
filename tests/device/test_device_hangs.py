"""Drives that return errors or hang: a short stall is reported, a long stall ends the run."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dangers import MIB, Bench, require, run
from tests.support.processes import fio_children
from writecliff.engines.base import Progress
from writecliff.engines.fio import FioEngine, faults
from writecliff.errors import EngineError
from writecliff.workload.model import BlockSize, Job, Workload

pytest.importorskip("writecliff._native", reason="the native module is not built")
pytestmark = pytest.mark.usefixtures("no_fio_left")

SECOND = 1_000_000_000


@pytest.fixture
def thin(bench: Bench) -> Iterator[tuple[str, Path]]:
    """Yield a thin-provisioned 1 GiB drive with 48 MiB of space, and its image's file system."""
    lower = bench.loop(bench.zeros(64 * MIB))
    bench.mkfs(lower)
    folder = bench.mount(lower, "-o", "rw")
    image = folder / "image"
    with image.open("wb") as file:
        file.truncate(1024 * MIB)
    yield bench.loop(image), folder


def test_the_drive_returns_write_errors(thin: tuple[str, Path]) -> None:
    device, _ = thin
    job = Job(pattern="sequential", block_sizes=(BlockSize(64 << 10),), duration_ns=60 * SECOND)
    with FioEngine.open_device(device, destroy_serial=device) as engine:
        with pytest.raises(EngineError) as caught:
            engine.run(Workload("w", (job,), interval_ns=SECOND // 5))
        assert re.match(
            rf"{device}: write error at byte \d+ \(of 65\.\d+ kB\): ", str(caught.value)
        )
        # This text is the kernel's message.
        assert f"dev {Path(device).name}, sector " in str(caught.value)
        assert caught.value.partial.total()[0] > 0
        assert caught.value.exit_code == 1
    assert "\n" not in str(caught.value)


def frozen_while_running(thin: tuple[str, Path], bench: Bench, seconds: float | None) -> FioEngine:
    """Return an engine whose drive hangs after its first I/O, for `seconds` or forever."""
    device, folder = thin
    engine = FioEngine.open_device(device, destroy_serial=device)
    bench.callback(engine.close)

    def thaw() -> None:
        with contextlib.suppress(AssertionError):
            run("fsfreeze", "--unfreeze", folder)

    bench.callback(thaw)

    def freeze(progress: Progress) -> None:
        # A busy machine may report before the first I/O is counted.
        if progress.ios and not frozen:
            frozen.append(True)
            run("fsfreeze", "--freeze", folder)
            if seconds is not None:
                timer = threading.Timer(seconds, thaw)
                timer.start()
                bench.callback(timer.join)

    frozen: list[bool] = []
    engine.__dict__["freeze"] = freeze
    return engine


LITTLE = Job(
    pattern="sequential",
    block_sizes=(BlockSize(4 << 10),),
    duration_ns=6 * SECOND,
    rate_iops=200,
)


def test_the_drive_hangs_for_a_time(
    thin: tuple[str, Path], bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a stall is not a failure, so the step continues and reports the stall."""
    monkeypatch.setattr(faults, "STALL_S", 1.5)
    engine = frozen_while_running(thin, bench, seconds=3)
    result = engine.run(
        Workload("w", (LITTLE,), interval_ns=SECOND // 2), engine.__dict__["freeze"]
    )
    (note,) = [text for text in result.warnings if "stall" in text]
    match = re.fullmatch(r"disturbance: stall: the drive completed no I/O for (\S+) s", note)
    assert match is not None
    assert 2 < float(match[1]) < 5
    service = result.service()
    assert service is not None
    assert service.max_ns > 2 * SECOND


def test_the_drive_hangs_for_ever(
    thin: tuple[str, Path], bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that the run ends although its fio process cannot be killed."""
    monkeypatch.setattr(faults, "GIVE_UP_S", 3.0)
    engine = frozen_while_running(thin, bench, seconds=None)
    begin = time.monotonic()
    with pytest.raises(EngineError, match=r": the drive does not respond: no I/O was") as caught:
        engine.run(Workload("w", (LITTLE,), interval_ns=SECOND // 2), engine.__dict__["freeze"])
    assert time.monotonic() - begin < 45
    assert caught.value.partial.total()[0] > 0
    run("fsfreeze", "--unfreeze", thin[1])
    require(lambda: not fio_children(), 30)
