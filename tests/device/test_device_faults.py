"""Faults that loop devices can emulate, where measurements survive and the error names the cause.

The exit code reports the failure, and the run can be resumed if the drive is unchanged. Faults of
real drives and device mapper are tested in tests/drives, the loss of the medium is tested in
test_device_vanish.py, and errors and hangs are tested in test_device_hangs.py.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from tests.support.dangers import MIB, Bench, require, run
from tests.support.faults import LIGHT, FailingRun
from tests.support.processes import fio_children
from writecliff.errors import NO_SPACE_HINT

pytest.importorskip("writecliff._native", reason="the native module is not built")
pytestmark = pytest.mark.usefixtures("no_fio_left")

Capture = pytest.CaptureFixture[str]


def test_fio_is_killed(loop: str, tmp_path: Path, capsys: Capture) -> None:
    failing = FailingRun(loop, loop, tmp_path / "run", capsys)

    def kill() -> None:
        require(fio_children)
        os.kill(fio_children()[0], signal.SIGKILL)

    rows = failing.assert_kept(
        failing.fails_by(kill, options=LIGHT), "^fio failed: killed by SIGKILL"
    )
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

    def changed() -> bool:
        """Truncate the file until it stays short: writes in flight may extend it to its old size."""
        resize(size)
        return run("blockdev", "--getsize64", loop) != str(whole)

    ended = failing.fails_by(lambda: require(changed))
    text = rf"{loop}: the drive changed its size: it has \d+ bytes now, {whole} when"
    rows = failing.assert_kept(ended, text)
    other = failing.resume()
    assert other.code == 2
    assert "is not the drive that the run was started on: its capacity bytes is" in other.error
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
        require(fio_children)
        os.kill(fio_children()[0], signal.SIGKILL)

    rows = failing.assert_kept(failing.fails_by(kill, options=LIGHT), "killed by SIGKILL")
    run("losetup", "--detach", device)
    run("losetup", device, second)
    refused = failing.resume()
    assert refused.code == 2
    assert f"{device} is not the drive that the run was started on: its backing is" in refused.error
    assert not any(second.read_bytes())
    run("losetup", "--detach", device)
    run("losetup", device, first)
    failing.assert_resumes(rows)


# -- faults of the disk that stores the run -------------------------------------------------------


@pytest.fixture
def small_disk(bench: Bench) -> Path:
    """Return the mount point of an 8 MiB file system."""
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

    ended = failing.fails_by(fill, options=LIGHT)
    assert ended.code == 1
    assert re.search(r"cannot write .*/run/.*: no space left on device", ended.error)
    assert ended.hint == NO_SPACE_HINT
    filler.unlink()
    _, rows = failing.stored_steps()
    assert rows >= 2
    failing.assert_resumes(rows)


def test_the_directory_of_the_run_vanishes(loop: str, tmp_path: Path, capsys: Capture) -> None:
    directory = tmp_path / "run"
    failing = FailingRun(loop, loop, directory, capsys)
    ended = failing.fails_by(lambda: shutil.move(directory, tmp_path / "elsewhere"), options=LIGHT)
    assert ended.code == 1
    assert re.search(rf"cannot write {directory}/.*: no such file or directory", ended.error)
    shutil.rmtree(directory, ignore_errors=True)
    shutil.move(tmp_path / "elsewhere", directory)
    _, rows = failing.stored_steps()
    assert rows >= 2
    failing.assert_resumes(rows)
