"""Protection of real block devices, which must remain unchanged in every byte."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.processes import wait_for
from writecliff.engines.blockdev import claim
from writecliff.engines.blockdev.tools import find_tool
from writecliff.engines.fio import FioEngine
from writecliff.errors import TargetError

MIB = 1 << 20


def write_mbr(image: Path) -> None:
    """Write a partition table with one Linux partition from 1 MiB to the end."""
    start, sectors = 2048, image.stat().st_size // 512 - 2048
    entry = struct.pack("<B3sB3sII", 0, b"\0\0\0", 0x83, b"\0\0\0", start, sectors)
    with image.open("r+b") as file:
        file.seek(446)
        file.write(entry)
        file.seek(510)
        file.write(b"\x55\xaa")


@pytest.fixture
def partitioned(attach: Callable[..., str], image: Path) -> Iterator[str]:
    """Yield a loop device with an ext4 file system on its partition."""
    mkfs, partx = find_tool("mkfs.ext4"), find_tool("partx")
    if mkfs is None or partx is None:
        pytest.skip("device tests: mkfs.ext4 or partx is not installed")
    write_mbr(image)
    device = attach(image)
    # partx parses the partition table itself, because not every kernel supports DOS partitions.
    subprocess.run([partx, "--add", device], check=True, capture_output=True)
    if not wait_for(lambda: os.path.exists(f"{device}p1"), 30):
        pytest.skip("device tests: no partitions on loop devices here")
    subprocess.run([mkfs, "-q", "-F", f"{device}p1"], check=True)
    yield device
    subprocess.run([partx, "--delete", device], check=True)


def first_mebibyte(device: str) -> bytes:
    with open(device, "rb", buffering=0) as file:
        return file.read(MIB)


def test_contents_need_both_flags(partitioned: str) -> None:
    before = first_mebibyte(partitioned)
    with pytest.raises(TargetError, match=r"not empty: partition .*dos partition table.*ext4"):
        claim(partitioned, partitioned)
    assert first_mebibyte(partitioned) == before
    usage, held = claim(partitioned, partitioned, allow_signatures=True)
    held.close()
    assert [part.name for part in usage.partitions] == [f"{Path(partitioned).name}p1"]


def test_the_claim_keeps_others_out_but_not_fio(partitioned: str, tmp_path: Path) -> None:
    _, held = claim(partitioned, partitioned, allow_signatures=True)
    try:
        with pytest.raises(TargetError, match="in use"):
            claim(partitioned, partitioned, allow_signatures=True)
        mount = tmp_path / "mount"
        mount.mkdir()
        tried = subprocess.run(
            ["mount", f"{partitioned}p1", str(mount)], capture_output=True, check=False
        )
        assert tried.returncode != 0
        os.close(os.open(partitioned, os.O_RDWR))  # fio opens the device with the same flags.
    finally:
        held.close()


def test_a_missing_node_is_not_created() -> None:
    path = "/dev/writecliff-no-such-device"
    with pytest.raises(TargetError, match="does not exist"):
        FioEngine.open_device(path, destroy_serial=path)
    with pytest.raises(TargetError, match="does not exist"):
        FioEngine.open_device(path, destroy_serial=None)
    assert not os.path.lexists(path)
