"""The table of faults that loop devices can stand for: what was measured is kept, the cause is named.

The exit code says that the run failed, and it can be resumed where the drive is still the same one.
Real drives and device mapper are in tests/drives, a drive that loses its medium in
test_device_vanish.py.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dangers import MIB, Bench, run, wait_for
from tests.support.faults import FailingRun
from writecliff.engines.base import Progress
from writecliff.engines.fio import FioEngine, faults
from writecliff.errors import EngineError
from writecliff.workload.model import BlockSize, Job, Workload

pytest.importorskip("writecliff._native", reason="the native module is not built")
pytestmark = pytest.mark.usefixtures("no_fio_left")

SECOND = 1_000_000_000
Capture = pytest.CaptureFixture[str]


def fio_children() -> list[int]:
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return [int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text() == "fio\n"]


# -- faults in the middle of a run ----------------------------------------------------------------


def test_fio_is_killed(loop: str, tmp_path: Path, capsys: Capture) -> None:
    failing = FailingRun(loop, loop, tmp_path / "run", capsys)

    def kill() -> None:
        wait_for(fio_children)
        os.kill(fio_children()[0], signal.SIGKILL)

    rows = failing.assert_kept(failing.fails_by(kill), "^fio failed: killed by SIGKILL")
    failing.assert_resumes(rows)


@pytest.mark.parametrize("size", [96 * MIB, 160 * MIB], ids=["smaller", "larger"])
def test_the_drive_changes_its_size(
    loop: str, image: Path, tmp_path: Path, capsys: Capture, size: int
) -> None:
    failing = FailingRun(loop, loop, tmp_path / "run", capsys)
    whole = image.stat().st_size

    def resize(to: int) -> None:
        os.truncate(image, to)
        run("losetup", "--set-capacity", loop)

    ended = failing.fails_by(lambda: resize(size))
    # Writes in flight may make a file longer again that was cut.
    text = rf"{loop}: the drive changed its size: it has \d+ bytes now, {whole} when"
    rows = failing.assert_kept(ended, text)
    other = failing.resume()
    assert other.code == 2
    assert "is not the drive of the run: its capacity bytes is" in other.error
    resize(whole)
    failing.assert_resumes(rows)


def test_the_drive_turns_read_only(loop: str, tmp_path: Path, capsys: Capture) -> None:
    failing = FailingRun(loop, loop, tmp_path / "run", capsys)
    ended = failing.fails_by(lambda: run("blockdev", "--setro", loop))
    rows = failing.assert_kept(ended, f"{loop}: the drive turned read-only")
    assert failing.resume().error == f"{loop}: read-only"
    run("blockdev", "--setrw", loop)
    failing.assert_resumes(rows)


def test_another_drive_of_the_same_size_is_not_resumed(
    bench: Bench, tmp_path: Path, capsys: Capture
) -> None:
    first, second = bench.zeros(64 * MIB), bench.zeros(64 * MIB)
    device = run("losetup", "--find", "--show", first)
    bench.callback(lambda: run("losetup", "--detach", device))
    failing = FailingRun(device, device, tmp_path / "run", capsys)

    def kill() -> None:
        wait_for(fio_children)
        os.kill(fio_children()[0], signal.SIGKILL)

    rows = failing.assert_kept(failing.fails_by(kill), "killed by SIGKILL")
    run("losetup", "--detach", device)
    run("losetup", device, second)
    refused = failing.resume()
    assert refused.code == 2
    assert f"{device} is not the drive of the run: its backing is" in refused.error
    assert not any(second.read_bytes())
    run("losetup", "--detach", device)
    run("losetup", device, first)
    failing.assert_resumes(rows)


# -- faults of the disk that the run is stored on -------------------------------------------------


@pytest.fixture
def small_disk(bench: Bench) -> Path:
    """A file system of 8 MiB."""
    device = bench.loop(bench.zeros(8 * MIB))
    bench.mkfs(device)
    return bench.mount(device, "-o", "rw")


def test_the_disk_of_the_run_is_full(loop: str, small_disk: Path, capsys: Capture) -> None:
    failing = FailingRun(loop, loop, small_disk / "run", capsys)
    filler = small_disk / "filler"

    def fill() -> None:
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(512))

    ended = failing.fails_by(fill)
    assert ended.code == 1
    assert re.search(r"cannot write .*/run/.*: no space left on device", ended.error)
    assert ended.hint == "complete steps are kept; free some space, then resume the run"
    filler.unlink()
    _, rows = failing.kept()
    assert rows >= 2
    failing.assert_resumes(rows)


def test_the_directory_of_the_run_vanishes(loop: str, tmp_path: Path, capsys: Capture) -> None:
    directory = tmp_path / "run"
    failing = FailingRun(loop, loop, directory, capsys)
    ended = failing.fails_by(lambda: shutil.move(directory, tmp_path / "elsewhere"))
    assert ended.code == 1
    assert re.search(rf"cannot write {directory}/.*: no such file or directory", ended.error)
    shutil.rmtree(directory, ignore_errors=True)
    shutil.move(tmp_path / "elsewhere", directory)
    _, rows = failing.kept()
    assert rows >= 2
    failing.assert_resumes(rows)


# -- errors and hangs -----------------------------------------------------------------------------


@pytest.fixture
def thin(bench: Bench) -> Iterator[tuple[str, Path]]:
    """A drive of 1 GiB that has room for 48 MiB, and the file system that its image lies on."""
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
        assert f"dev {Path(device).name}, sector " in str(caught.value)  # the kernel's words
        assert caught.value.partial.total()[0] > 0
        assert caught.value.exit_code == 1
    assert "\n" not in str(caught.value)


def frozen_while_running(thin: tuple[str, Path], bench: Bench, seconds: float | None) -> FioEngine:
    """An engine whose drive hangs from the first report on: `seconds`, or to the end."""
    device, folder = thin
    engine = FioEngine.open_device(device, destroy_serial=device)
    bench.callback(engine.close)

    def thaw() -> None:
        with contextlib.suppress(AssertionError):
            run("fsfreeze", "--unfreeze", folder)

    bench.callback(thaw)

    def freeze(progress: Progress) -> None:
        if not frozen:
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
    """A stall is no failure: the step goes on and says that the drive stalled."""
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
    """The run ends although its fio cannot even be killed."""
    monkeypatch.setattr(faults, "GIVE_UP_S", 3.0)
    engine = frozen_while_running(thin, bench, seconds=None)
    begin = time.monotonic()
    with pytest.raises(EngineError, match=r": the drive does not answer: no I/O was") as caught:
        engine.run(Workload("w", (LITTLE,), interval_ns=SECOND // 2), engine.__dict__["freeze"])
    assert time.monotonic() - begin < 45
    assert caught.value.partial.total()[0] > 0
    run("fsfreeze", "--unfreeze", thin[1])
    wait_for(lambda: not fio_children(), 30)
