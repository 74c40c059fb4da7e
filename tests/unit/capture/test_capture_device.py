"""Captured devices, on a simulated sysfs."""

from __future__ import annotations

from pathlib import Path

import pytest

from writecliff.capture.block.device import BIO_EVENTS, REQUEST_EVENTS, TracedDevice, traced_device
from writecliff.engines.blockdev.topology import Node, System

NUMBERS = {"nvme0n1": (259, 0), "nvme0n1p2": (259, 2), "sda": (8, 0), "dm-0": (253, 0)}
DISKSTATS = """
   8       0 sda 1 2 3
 259       1 nvme0c0n1 1 2 3
 259       0 nvme0n1 1 2 3
 259       3 nvme0c1n1 1 2 3
 259       4 nvme0c0n12 1 2 3
"""


@pytest.fixture
def system(tmp_path: Path) -> System:
    for name, (major, minor) in NUMBERS.items():
        whole = "nvme0n1" if name.startswith("nvme0n1p") else name
        folder = tmp_path / "sys/block" / whole / (name if name != whole else "")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "dev").write_text(f"{major}:{minor}\n")
        (folder / "size").write_text("1000\n")
        if name != whole:
            (folder / "partition").write_text("2\n")
            (folder / "start").write_text("64\n")
        link = tmp_path / "sys/dev/block" / f"{major}:{minor}"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(folder)
    (tmp_path / "sys/block/sda/mq").mkdir()
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/diskstats").write_text(DISKSTATS)
    return System(
        sys=tmp_path / "sys",
        proc=tmp_path / "proc",
        stat_node=lambda path: Node(True, NUMBERS[path.name], "block device"),
    )


def _traced(system: System, name: str) -> TracedDevice:
    return traced_device(Path("/dev") / name, system)


def test_a_disk_with_queues_has_requests(system: System) -> None:
    device = _traced(system, "sda")
    assert (device.events, device.filter) == (REQUEST_EVENTS, f"dev == {8 << 20}")
    assert (device.first_sector, device.end_sector) == (0, 1000)


def test_a_partition_is_known_by_the_number_of_its_disk(system: System) -> None:
    device = _traced(system, "nvme0n1p2")
    assert device.bio_filter == f"dev == {259 << 20}"
    assert (device.first_sector, device.end_sector) == (64, 1064)


def test_a_multipath_drive_has_the_requests_of_its_paths(system: System) -> None:
    device = _traced(system, "nvme0n1")
    assert device.paths == ((259, 1), (259, 3))
    assert device.events == REQUEST_EVENTS
    assert device.filter == f"dev == {259 << 20 | 1} || dev == {259 << 20 | 3}"
    assert device.bio_filter == f"dev == {259 << 20}"


def test_a_mapped_device_has_bios(system: System) -> None:
    device = _traced(system, "dm-0")
    assert (device.events, device.paths) == (BIO_EVENTS, ())
    assert not device.describe()["requests"]
