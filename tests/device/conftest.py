"""Loop devices for tests that need a real block device; skipped with a reason if unavailable."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = str(Path(__file__).resolve().parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from tests.support.dangers import Bench  # noqa: E402
from tests.support.processes import fio_children  # noqa: E402

MIB = 1 << 20


def _why_not() -> str | None:
    if os.geteuid() != 0:
        return "loop devices need root"
    if shutil.which("losetup") is None:
        return "losetup is not installed"
    if shutil.which("fio") is None:
        return "fio is not installed"
    if not os.path.exists("/dev/loop-control"):
        return "this kernel or container offers no loop devices"
    return None


@pytest.fixture(scope="session", autouse=True)
def _needs_loop_devices() -> None:
    reason = _why_not()
    if reason is not None:
        pytest.skip(f"device tests: {reason}")


def _run(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def attach(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Yield a function that attaches image files as loop devices, which are detached afterwards."""
    attached: list[str] = []

    def make(image: Path, *options: str) -> str:
        try:
            device = _run("losetup", *options, "--find", "--show", str(image))
        except subprocess.CalledProcessError as error:
            pytest.skip(f"device tests: losetup: {error.stderr.strip()}")
        attached.append(device)
        # If BFQ is the default scheduler, it may delay one of two jobs by a second.
        Path("/sys/block", Path(device).name, "queue/scheduler").write_text("none")
        return device

    yield make
    for device in attached:
        _run("losetup", "--detach", device)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "disk.img"
    with path.open("wb") as file:
        file.truncate(128 * MIB)
    return path


@pytest.fixture
def loop(attach: Callable[..., str], image: Path) -> str:
    """Return an empty loop device of 128 MiB."""
    return attach(image)


@pytest.fixture
def no_fio_left() -> Iterator[None]:
    """Check after the test that this process has no running or zombie fio child."""
    yield
    assert not fio_children()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Yield a bench for building dangerous targets, and remove everything after the test."""
    with Bench(tmp_path) as bench:
        yield bench


@pytest.fixture
def needs_tracefs() -> None:
    from writecliff.capture.block import run
    from writecliff.errors import TargetError

    try:
        run.find_tracefs()
    except TargetError as error:
        pytest.skip(f"no tracefs: {error}")
