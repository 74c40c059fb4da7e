"""Devices backed by a file or another device: loop devices and kernel-exported NVMe drives.

The functions return the backing file or device, and other devices that map the same bytes.

sysfs exposes only the backing file's path, which is wrong if the file was deleted or renamed, or is
in another mount namespace. Therefore, LOOP_GET_STATUS64 is used to read the file system and inode.
The path is used only if the loop device cannot be opened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from writecliff.engines.blockdev.file_identity import FileId, path_id
from writecliff.engines.blockdev.topology import (
    SECTOR,
    BlockDevice,
    DeviceNumber,
    System,
    device_by_number,
    number_at,
    parse_number,
    read_int,
    read_text,
    whole_disk,
)
from writecliff.errors import TargetError


@dataclass(frozen=True)
class Loop:
    """An attached loop device, or an NVMe drive that this machine's kernel exports.

    `file` and `device` are both `None` if the backing is unknown.
    """

    name: str
    number: DeviceNumber
    path: str  # Backing file path in the kernel's notation.
    file: FileId | None  # Backing file, if it is a regular file.
    device: DeviceNumber | None  # Backing device, if the backing file is a device node.
    offset: int
    size_bytes: int

    def overlaps(self, other: Loop) -> bool:
        """Return True if two loop devices map overlapping bytes of a file or device."""
        same = (self.file, self.device) == (other.file, other.device)
        if self.file is None and self.device is None:
            same = self.path == other.path
        ends = self.offset + self.size_bytes, other.offset + other.size_bytes
        return same and self.offset < ends[1] and other.offset < ends[0]


def attached_loops(system: System) -> tuple[Loop, ...]:
    """Return all attached loop devices by name."""
    files = sorted((system.sys / "block").glob("loop*/loop/backing_file"))
    return tuple(_loop(system, file.parent.parent) for file in files)


def _loop(system: System, directory: Path) -> Loop:
    path = read_text(directory / "loop/backing_file") or ""
    asked = system.loop_status(system.dev / directory.name)
    if asked is not None:
        file, device = (asked.file, None) if asked.device is None else (None, asked.device)
    else:
        device = number_at(system, path)
        file = path_id(path) if device is None else None
    return Loop(
        directory.name,
        parse_number(read_text(directory / "dev") or "0:0"),
        path,
        file,
        device,
        read_int(directory / "loop/offset") or 0,
        (read_int(directory / "size") or 0) * SECTOR,
    )


def _exported(system: System, disk: BlockDevice) -> Loop | None:
    """Return the backing of an NVMe drive whose transport is "loop", or None for other devices."""
    controllers = (disk.directory / "device", *(disk.directory / "device").glob("nvme*"))
    if all(read_text(folder / "transport") != "loop" for folder in controllers):
        return None
    subsystem = read_text(disk.directory / "device/subsysnqn") or ""
    namespace = read_text(disk.directory / "nsid") or ""
    config = system.sys / "kernel/config/nvmet/subsystems" / subsystem / "namespaces" / namespace
    path = read_text(config / "device_path") or ""
    device = number_at(system, path)
    file = path_id(path) if device is None else None
    return Loop(disk.name, disk.number, path, file, device, 0, disk.size_bytes)


@dataclass(frozen=True)
class Below:
    """Devices that a write to a disk affects."""

    # The device stack includes block devices that back loop devices. Other programs can use the
    # backing device of a loop device at the same time. The kernel reserves dm and md slaves for the
    # device that holds them.
    devices: tuple[BlockDevice, ...]
    loops: tuple[Loop, ...]  # Loop devices between the disk and its backing devices.
    # Devices reached without passing through a file system, starting with the disk.
    stack: tuple[BlockDevice, ...]
    all_numbers: frozenset[DeviceNumber]  # Device numbers, including devices below file systems.


def below(system: System, device: BlockDevice) -> Below:
    """Walk down from a device through partitions, dm and md slaves, and loop devices."""
    attached = {loop.number: loop for loop in attached_loops(system)}
    devices: dict[DeviceNumber, BlockDevice] = {}
    loops: list[Loop] = []
    stack: list[BlockDevice] = []
    seen: set[DeviceNumber] = set()
    # `False` if a file system lies between the disk and the device and protects its data.
    pending = [(device, True)]
    while pending:
        current, direct = pending.pop()
        if current.number in seen:
            continue
        seen.add(current.number)
        if direct:
            stack.append(current)
        if current.is_partition:
            pending.append((whole_disk(system, current), direct))
        pending += ((slave, direct) for slave in _slaves(system, current))
        loop = attached.get(current.number) or _exported(system, current)
        if loop is None:
            continue
        if direct:
            loops.append(loop)
        if loop.device is not None:
            backing = device_by_number(system, loop.device, loop.path)
            if direct:
                family = (backing, whole_disk(system, backing), *backing.partitions())
                devices |= {device.number: device for device in family}
            pending.append((backing, direct))
        elif loop.file is not None:
            # Tmpfs and btrfs use numbers that belong to no device.
            with contextlib.suppress(TargetError):
                pending.append((device_by_number(system, loop.file[0]), False))
    return Below(tuple(devices.values()), tuple(loops), tuple(stack), frozenset(seen))


def _slaves(system: System, device: BlockDevice) -> Iterator[BlockDevice]:
    for slave in device.slaves:
        number = read_text(device.directory / "slaves" / slave / "dev")
        if number is not None:
            yield device_by_number(system, parse_number(number), slave)
