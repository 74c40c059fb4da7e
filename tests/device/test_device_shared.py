"""Protection of data that others use through a second path to the same device."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from writecliff.engines.blockdev import claim
from writecliff.engines.blockdev.tools import find_tool
from writecliff.engines.fio import FioEngine
from writecliff.errors import TargetError
from writecliff.workload.model import BlockSize, Job, Workload

MIB = 1 << 20
Attach = Callable[..., str]
FILL = Workload("fill", (Job(pattern="sequential", block_sizes=(BlockSize(65536),), ios=16),))


@contextmanager
def mounted(device: str, directory: Path) -> Iterator[None]:
    """Mount a new ext4 file system on the device."""
    mkfs = find_tool("mkfs.ext4")
    if mkfs is None:
        pytest.skip("mkfs.ext4 is not installed")
    subprocess.run([mkfs, "-q", "-F", device], check=True)
    directory.mkdir()
    subprocess.run(["mount", device, str(directory)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(directory)], check=True)


def head(path: str | Path) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read(MIB)


def run_on_file(path: Path, size_bytes: int | None = None) -> None:
    with FioEngine.open_file(path, size_bytes=size_bytes) as engine:
        engine.run(FILL)


def test_a_file_of_ours_is_not_written_while_it_is_mounted_nor_afterwards(
    tmp_path: Path, attach: Attach
) -> None:
    path = tmp_path / "x.img"
    run_on_file(path, 32 * MIB)
    run_on_file(path)  # The file may be reused until another program writes to it.
    device = attach(path)
    with pytest.raises(TargetError, match=r"in use: .* is behind the loop device loop"):
        run_on_file(path)
    with mounted(device, tmp_path / "mount"):
        before = head(path)
        with pytest.raises(TargetError, match="in use"):
            run_on_file(path)
        assert head(path) == before


def test_a_file_system_in_a_file_of_ours_is_not_written(tmp_path: Path) -> None:
    path, mkfs = tmp_path / "x.img", find_tool("mkfs.ext4")
    if mkfs is None:
        pytest.skip("mkfs.ext4 is not installed")
    run_on_file(path, 32 * MIB)
    subprocess.run([mkfs, "-q", "-F", str(path)], check=True)
    with pytest.raises(TargetError, match="not empty: ext4 filesystem"):
        run_on_file(path)


def test_a_file_that_is_attached_during_a_run_is_not_written_on(
    tmp_path: Path, attach: Attach
) -> None:
    path = tmp_path / "x.img"
    with FioEngine.open_file(path, size_bytes=32 * MIB) as engine:
        engine.run(FILL)
        attach(path)
        with pytest.raises(TargetError, match="is behind the loop device"):
            engine.run(FILL)


def test_two_loop_devices_over_parts_of_one_file_are_fine(image: Path, attach: Attach) -> None:
    lower = attach(image, "--sizelimit", str(64 * MIB))
    upper = attach(image, "--offset", str(64 * MIB))
    for device in (lower, upper):
        claim(device, device)[1].close()


def test_a_second_loop_device_that_appears_after_the_claim_is_noticed(
    image: Path, attach: Attach, loop: str
) -> None:
    _, held = claim(loop, loop)
    held.verify()
    attach(image)
    with pytest.raises(TargetError, match="is behind the loop device"):
        held.verify()
    held.close()


def test_a_link_that_is_pointed_elsewhere_after_the_claim_does_not_matter(
    tmp_path: Path, attach: Attach, loop: str
) -> None:
    other_image, link = tmp_path / "other.img", tmp_path / "link"
    other_image.write_bytes(bytes(128 * MIB))
    other = attach(other_image)
    link.symlink_to(loop)
    with FioEngine.open_device(link, destroy_serial=loop) as engine:
        link.unlink()
        link.symlink_to(other)
        assert f"filename={loop}\n" in engine.job_file(FILL)
        engine.run(FILL)
    assert not any(head(other))
    assert any(head(loop))


def test_a_loop_device_is_known_by_its_file(tmp_path: Path, attach: Attach, image: Path) -> None:
    copy = tmp_path / "copy.img"
    copy.write_bytes(bytes(os.stat(image).st_size))
    devices = [attach(image), attach(copy), attach(image, "--read-only")]
    backings = []
    for device in devices:
        with FioEngine.open_device(device, destroy_serial=None) as engine:
            backings.append(engine.identify().backing)
    first, other, again = backings
    assert first is not None
    assert first == again
    assert first != other
