"""Kernel block devices: whole disks, partitions, holders and slaves.

The roots of /sys, /proc and /dev are parameters of `System`, so that tests can simulate a machine.
"""

from __future__ import annotations

import array
import fcntl
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from writecliff.engines.blockdev.scsi_commands import ScsiCommand, send_command
from writecliff.engines.blockdev.tools import Runner, run_tool
from writecliff.errors import TargetError

SECTOR = 512  # Bytes per sector in sysfs sizes, independent of the drive's sector size.
_LOOP_GET_STATUS64, _LOOP_INFO64_BYTES = 0x4C05, 232  # Constants from linux/loop.h.

DeviceNumber = tuple[int, int]


@dataclass(frozen=True)
class Node:
    """File type and device number at a path."""

    is_block: bool
    number: DeviceNumber
    kind: str  # File type: "block device", "regular file", "character device", ...


def stat_node(path: Path) -> Node | None:
    """Return the type of the file at `path` without opening it, or None if it does not exist."""
    try:
        info = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise TargetError(f"{path}: {error.strerror}") from error
    kinds = (
        (stat.S_ISBLK, "block device"),
        (stat.S_ISREG, "regular file"),
        (stat.S_ISCHR, "character device"),
        (stat.S_ISDIR, "directory"),
    )
    kind = next((name for test, name in kinds if test(info.st_mode)), "special file")
    return Node(stat.S_ISBLK(info.st_mode), (os.major(info.st_rdev), os.minor(info.st_rdev)), kind)


@dataclass(frozen=True)
class LoopStatus:
    """A loop device's backing, which is a file (file system device, inode) or a device."""

    file: tuple[DeviceNumber, int]
    device: DeviceNumber | None


def loop_status(node: Path) -> LoopStatus | None:
    """Read a loop device's backing, or None if it cannot be opened or is detached."""
    info = array.array("Q", bytes(_LOOP_INFO64_BYTES))
    try:
        fd = os.open(node, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            fcntl.ioctl(fd, _LOOP_GET_STATUS64, info)
        finally:
            os.close(fd)
    except OSError:
        return None
    device, inode, backing = info[:3]  # Fields lo_device, lo_inode and lo_rdevice.
    number = (os.major(backing), os.minor(backing)) if backing else None
    return LoopStatus(((os.major(device), os.minor(device)), inode), number)


@dataclass(frozen=True)
class System:
    """A machine's directories, tools and ioctls, with defaults for this machine."""

    sys: Path = Path("/sys")
    proc: Path = Path("/proc")
    dev: Path = Path("/dev")
    run: Runner = run_tool
    stat_node: Callable[[Path], Node | None] = field(default=stat_node)
    loop_status: Callable[[Path], LoopStatus | None] = field(default=loop_status)
    scsi: ScsiCommand = field(default=send_command)


def number_at(system: System, path: str) -> DeviceNumber | None:
    """Return the number of the block device at an absolute path.

    Returns:
        The device number, or `None` if the device does not exist or cannot be reached, for example
        on a mount whose server is down.
    """
    if not path.startswith("/"):
        return None
    try:
        node = system.stat_node(Path(path))
    except TargetError:
        return None
    return node.number if node is not None and node.is_block else None


def read_text(path: Path) -> str | None:
    """Return a sysfs file's stripped contents, or None if it is missing, unreadable or empty."""
    try:
        return path.read_text(errors="replace").strip(" \t\n\0") or None
    except OSError:
        return None


def read_int(path: Path) -> int | None:
    """Return the number in a sysfs file, or None if it is missing or not a number."""
    text = read_text(path)
    return int(text) if text is not None and text.lstrip("-").isdigit() else None


def _listing(path: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted(entry.name for entry in path.iterdir()))
    except OSError:
        return ()


def parse_number(text: str) -> DeviceNumber:
    """Parse a device number "MAJOR:MINOR"."""
    major, minor = text.split(":")
    return int(major), int(minor)


@dataclass(frozen=True)
class BlockDevice:
    """A whole disk or a partition."""

    name: str  # Kernel name, such as "sda" or "nvme0n1p2".
    number: DeviceNumber
    directory: Path  # Device directory in sysfs.
    whole_name: str  # Kernel name of the whole disk; equal to `name` for a whole disk.

    @property
    def is_partition(self) -> bool:
        """True for a partition, False for a whole disk."""
        return self.name != self.whole_name

    @property
    def size_bytes(self) -> int:
        """Current size in bytes, or 0 if the kernel does not report a size."""
        return (read_int(self.directory / "size") or 0) * SECTOR

    @property
    def read_only(self) -> bool:
        """True if the kernel rejects writes to the device."""
        return read_int(self.directory / "ro") == 1

    @property
    def holders(self) -> tuple[str, ...]:
        """Kernel names of the md, dm, bcache and other devices that use this device."""
        return _listing(self.directory / "holders")

    @property
    def slaves(self) -> tuple[str, ...]:
        """Kernel names of the devices that this device uses."""
        return _listing(self.directory / "slaves")

    @property
    def whole_directory(self) -> Path:
        """The whole disk's sysfs directory."""
        return self.directory.parent if self.is_partition else self.directory

    def node(self, system: System) -> Path:
        """Return the device node's path, converting `!` in the kernel name to `/`."""
        return system.dev / self.name.replace("!", "/")

    def partitions(self) -> tuple[BlockDevice, ...]:
        """Return a whole disk's partitions, ordered by start position."""
        if self.is_partition:
            return ()
        parts: list[tuple[int, BlockDevice]] = []
        for name in _listing(self.directory):
            directory = self.directory / name
            if not (directory / "partition").exists():
                continue
            number = read_text(directory / "dev")
            if number is not None:
                start = read_int(directory / "start") or 0
                part = BlockDevice(name, parse_number(number), directory, self.name)
                parts.append((start, part))
        return tuple(part for _, part in sorted(parts, key=lambda item: (item[0], item[1].name)))


def device_at(system: System, path: Path, shown: str = "") -> BlockDevice:
    """Return the block device at `path`, which errors call `shown`.

    Raises:
        TargetError: If the path does not exist, is not a block device, or has a device number
            unknown to the kernel.
    """
    node = system.stat_node(path)
    name = shown or str(path)
    if node is None:
        raise TargetError(f"the device {name} does not exist", hint=_absent_hint(system, path.name))
    if not node.is_block:
        disks = _disks_behind(system, node) if node.kind == "character device" else ()
        hint = f"specify its block device {' or '.join(disks)}" if disks else _NAME_ONE
        if node.kind == "regular file":
            hint = f"to test a file, specify file:{name}"
        raise TargetError(f"{name} is a {node.kind}, not a block device", hint=hint)
    return device_by_number(system, node.number, name)


_NAME_ONE = "name an existing block device such as /dev/nvme0n1 or /dev/sdb, or file:PATH"


def _absent_hint(system: System, name: str) -> str:
    if read_int(system.sys / "block" / name / "hidden") == 1:
        whole = re.sub(r"c\d+(?=n\d+$)", "", name)
        return f"{name} is one path of a multipath drive, without a node: name /dev/{whole}"
    return _NAME_ONE


def _disks_behind(system: System, node: Node) -> tuple[str, ...]:
    """Return the block devices of a drive's character device (/dev/ng0n1, /dev/sg0).

    A controller (/dev/nvme0) has one block device per namespace.
    """
    directory = (system.sys / "dev/char" / f"{node.number[0]}:{node.number[1]}").resolve()
    name = directory.name
    if name.startswith("ng"):
        names = [f"nvme{name.removeprefix('ng')}"]
    elif name.startswith("nvme"):
        names = [path.parent.name for path in directory.glob("nvme*n*/dev")]
        names += [path.parent.name for path in directory.glob("device/nvme*n*/dev")]
    else:
        names = [path.name for path in directory.glob("device/block/*")]
    existing = {name for name in names if (system.sys / "block" / name).exists()}
    return tuple(f"/dev/{name}" for name in sorted(existing))


def device_by_number(system: System, number: DeviceNumber, label: str = "") -> BlockDevice:
    """Return the block device that has this number in /sys/dev/block."""
    link = system.sys / "dev" / "block" / f"{number[0]}:{number[1]}"
    directory = link.resolve()
    if not directory.is_dir():
        raise TargetError(
            f"{label or link.name}: the kernel has no device {link.name}",
            hint="the drive was removed, or the node was created manually; delete the node",
        )
    whole = directory.parent.name if (directory / "partition").exists() else directory.name
    return BlockDevice(directory.name, number, directory, whole)


def whole_disk(system: System, device: BlockDevice) -> BlockDevice:
    """Return a partition's whole disk, or the device itself if it is a whole disk."""
    if not device.is_partition:
        return device
    number = read_text(device.whole_directory / "dev")
    if number is None:
        raise TargetError(
            f"the disk {device.whole_name}, which contains {device.name}, is missing from sysfs"
        )
    return device_by_number(system, parse_number(number), device.whole_name)


@dataclass(frozen=True)
class Label:
    """Vendor, model, serial number and firmware of a drive, where unknown fields are `None`."""

    vendor: str | None
    model: str | None
    serial: str | None
    firmware: str | None


def _scsi_serial(device: Path) -> str | None:
    """Return the unit serial number in the cached VPD page 80h, after its 4-byte header."""
    try:
        page = (device / "vpd_pg80").read_bytes()
    except OSError:
        return None
    length = int.from_bytes(page[2:4], "big")
    return page[4 : 4 + length].decode("ascii", "replace").strip(" \0") or None


def label_of(disk: BlockDevice) -> Label:
    """Return the sysfs label of a whole NVMe, SCSI/SATA, virtio or MMC disk.

    The protection checks can use the label, because reading it runs no tool and sends no command to
    the drive.
    """
    device = disk.directory / "device"
    serial = (
        read_text(device / "serial") or _scsi_serial(device) or read_text(disk.directory / "serial")
    )
    firmware = read_text(device / "firmware_rev") or read_text(device / "rev")
    vendor = read_text(device / "vendor")
    if vendor is not None and (vendor == "ATA" or vendor.startswith("0x")):
        vendor = None  # The string is libata's placeholder name or a PCI ID.
    return Label(vendor, read_text(device / "model"), serial, firmware)
