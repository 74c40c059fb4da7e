"""Signatures: writecliff's own table of magic numbers, and its agreement with libblkid."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import pytest

from tests.support.block_machine import MIB, Machine
from writecliff.engines.blockdev.signatures import magic_signatures, signatures_of
from writecliff.engines.blockdev.tools import find_tool
from writecliff.engines.blockdev.topology import System


def names(path: Path) -> set[str]:
    fd = os.open(path, os.O_RDONLY)
    try:
        return {signature.name for signature in magic_signatures(fd, str(path))}
    finally:
        os.close(fd)


def written(path: Path, offset: int, value: bytes) -> Path:
    data = bytearray(MIB)
    start = offset if offset >= 0 else MIB + offset
    data[start : start + len(value)] = value
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("offset", "value", "name"),
    [
        (510, b"\x55\xaa", "dos"),
        (512, b"EFI PART", "gpt"),
        (-512, b"EFI PART", "gpt"),
        (1024 + 56, b"\x53\xef", "ext2/3/4"),
        (0, b"XFSB", "xfs"),
        (65536 + 64, b"_BHRfS_M", "btrfs"),
        (0, b"LUKS\xba\xbe\x00\x02", "crypto_LUKS"),
        (512, b"LABELONE", "LVM2_member"),
        (4096, struct.pack("<I", 0xA92B4EFC), "linux_raid_member"),
        (-65536, struct.pack("<I", 0xA92B4EFC), "linux_raid_member"),
        (128 * 1024 + 3 * 1024, struct.pack("<Q", 0x00BAB10C), "zfs_member"),
        (128 * 1024, struct.pack(">Q", 0x00BAB10C), "zfs_member"),
        (4096 - 10, b"SWAPSPACE2", "swap"),
    ],
)
def test_magic(tmp_path: Path, offset: int, value: bytes, name: str) -> None:
    assert names(written(tmp_path / "image", offset, value)) == {name}


def test_nothing_on_zeros_or_a_tiny_device(tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(bytes(MIB))
    assert names(tmp_path / "image") == set()
    (tmp_path / "image").write_bytes(b"")
    assert names(tmp_path / "image") == set()


def test_without_blkid_the_own_table_decides(machine: Machine) -> None:
    path = machine.disk("sda", (8, 0))
    written(path, 510, b"\x55\xaa")
    assert [s.name for s in signatures_of(machine.system, path)] == ["dos"]


def test_with_blkid_two_byte_magics_are_left_to_it(machine: Machine) -> None:
    """Check that random data at the end of a test, even with 55aa, are no partition table."""
    path = machine.disk("sda", (8, 0))
    written(path, 510, b"\x55\xaa")
    machine.answer("blkid", "", returncode=2)
    assert signatures_of(machine.system, path) == ()
    written(path, 0, b"LUKS\xba\xbe")
    assert [s.name for s in signatures_of(machine.system, path)] == ["crypto_LUKS"]


def test_a_real_file_system_is_seen_by_both(tmp_path: Path) -> None:
    mkfs = find_tool("mkfs.ext4")
    if mkfs is None:
        pytest.skip("mkfs.ext4 is not installed")
    image = tmp_path / "image"
    image.write_bytes(bytes(4 * MIB))
    subprocess.run([mkfs, "-q", "-F", str(image)], check=True, capture_output=True)
    assert names(image) == {"ext2/3/4"}
    if find_tool("blkid"):
        assert [s.name for s in signatures_of(System(), image)] == ["ext4"]
