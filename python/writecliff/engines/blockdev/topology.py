"""What the kernel knows of a block device: whole disk, partitions, holders, slaves.

The roots of /sys, /proc and /dev are parameters of `System`, so that the protection can be
tested on a simulated machine.
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

SECTOR = 512  # the unit of every size in sysfs, whatever the drive's own sector
_LOOP_GET_STATUS64, _LOOP_INFO64_BYTES = 0x4C05, 232  # linux/loop.h

DeviceNumber = tuple[int, int]


@dataclass(frozen=True)
class Node:
    """What a path is: a block device (with its number) or something else."""

    is_block: bool
    number: DeviceNumber
    kind: str  # "block device", "regular file", "character device", ...


def stat_node(path: Path) -> Node | None:
    """None if there is nothing at `path`. Never creates anything."""
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
    """What a loop device stands on: a file (device of its file system, inode) or a device."""

    file: tuple[DeviceNumber, int]
    device: DeviceNumber | None


def loop_status(node: Path) -> LoopStatus | None:
    """Ask the kernel what is behind a loop device; None if it cannot be opened or is detached."""
    info = array.array("Q", bytes(_LOOP_INFO64_BYTES))
    try:
        fd = os.open(node, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            fcntl.ioctl(fd, _LOOP_GET_STATUS64, info)
        finally:
            os.close(fd)
    except OSError:
        return None
    device, inode, backing = info[:3]  # lo_device, lo_inode, lo_rdevice
    number = (os.major(backing), os.minor(backing)) if backing else None
    return LoopStatus(((os.major(device), os.minor(device)), inode), number)


@dataclass(frozen=True)
class System:
    """Where to look. The defaults are this machine."""

    sys: Path = Path("/sys")
    proc: Path = Path("/proc")
    dev: Path = Path("/dev")
    run: Runner = run_tool
    stat_node: Callable[[Path], Node | None] = field(default=stat_node)
    loop_status: Callable[[Path], LoopStatus | None] = field(default=loop_status)
    scsi: ScsiCommand = field(default=send_command)


def number_at(system: System, path: str) -> DeviceNumber | None:
    """Device number of the block device at an absolute path: the source of a mount, or what a loop
    device of others stands on. None if there is none or it cannot be reached, as on a mount whose
    server has died.
    """
    if not path.startswith("/"):
        return None
    try:
        node = system.stat_node(Path(path))
    except TargetError:
        return None
    return node.number if node is not None and node.is_block else None


def read_text(path: Path) -> str | None:
    """Contents of a small sysfs file, stripped; None if it is absent, unreadable or empty."""
    try:
        return path.read_text(errors="replace").strip(" \t\n\0") or None
    except OSError:
        return None


def read_int(path: Path) -> int | None:
    text = read_text(path)
    return int(text) if text is not None and text.lstrip("-").isdigit() else None


def _listing(path: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted(entry.name for entry in path.iterdir()))
    except OSError:
        return ()


def parse_number(text: str) -> DeviceNumber:
    major, minor = text.split(":")
    return int(major), int(minor)


@dataclass(frozen=True)
class BlockDevice:
    """One node of the kernel's block tree: a whole disk or a partition."""

    name: str  # kernel name: "sda", "nvme0n1p2"
    number: DeviceNumber
    directory: Path  # its directory in sysfs
    whole_name: str  # kernel name of the whole disk; equal to `name` for a whole disk

    @property
    def is_partition(self) -> bool:
        return self.name != self.whole_name

    @property
    def size_bytes(self) -> int:
        return (read_int(self.directory / "size") or 0) * SECTOR

    @property
    def read_only(self) -> bool:
        return read_int(self.directory / "ro") == 1

    @property
    def holders(self) -> tuple[str, ...]:
        """Kernel names of the md, dm, bcache... devices that are built on this one."""
        return _listing(self.directory / "holders")

    @property
    def slaves(self) -> tuple[str, ...]:
        """Kernel names of the devices that this one is built on."""
        return _listing(self.directory / "slaves")

    @property
    def whole_directory(self) -> Path:
        return self.directory.parent if self.is_partition else self.directory

    def node(self, system: System) -> Path:
        """Path of the device node (the kernel writes `/` in a name as `!`)."""
        return system.dev / self.name.replace("!", "/")

    def partitions(self) -> tuple[BlockDevice, ...]:
        """The partitions of a whole disk, in the order of their start on the disk."""
        if self.is_partition:
            return ()
        found: list[tuple[int, BlockDevice]] = []
        for name in _listing(self.directory):
            directory = self.directory / name
            if not (directory / "partition").exists():
                continue
            number = read_text(directory / "dev")
            if number is not None:
                start = read_int(directory / "start") or 0
                part = BlockDevice(name, parse_number(number), directory, self.name)
                found.append((start, part))
        return tuple(part for _, part in sorted(found, key=lambda item: (item[0], item[1].name)))


def device_at(system: System, path: Path, shown: str = "") -> BlockDevice:
    """The block device at `path`, known by its exact device number; errors name it `shown`.

    Raises `TargetError` if nothing is there (nothing is ever created), if it is not a block
    device, or if the kernel has no such device.
    """
    node = system.stat_node(path)
    name = shown or str(path)
    if node is None:
        raise TargetError(f"{name}: no such device", hint=_absent_hint(system, path.name))
    if not node.is_block:
        disks = _disks_behind(system, node) if node.kind == "character device" else ()
        hint = f"name its block device {' or '.join(disks)}" if disks else _NAME_ONE
        if node.kind == "regular file":
            hint = f"for a file write file:{name}"
        raise TargetError(f"{name}: a {node.kind}, not a block device", hint=hint)
    return device_by_number(system, node.number, name)


_NAME_ONE = "name an existing block device such as /dev/nvme0n1 or /dev/sdb, or file:PATH"


def _absent_hint(system: System, name: str) -> str:
    if read_int(system.sys / "block" / name / "hidden") == 1:
        whole = re.sub(r"c\d+(?=n\d+$)", "", name)
        return f"{name} is one path of a multipath drive, without a node: name /dev/{whole}"
    return _NAME_ONE


def _disks_behind(system: System, node: Node) -> tuple[str, ...]:
    """Nodes of the block devices that a drive's character device (/dev/ng0n1, /dev/sg0) leads to.

    Also of a controller, which has one for each namespace.
    """
    directory = (system.sys / "dev/char" / f"{node.number[0]}:{node.number[1]}").resolve()
    name = directory.name
    if name.startswith("ng"):
        found = [f"nvme{name.removeprefix('ng')}"]
    elif name.startswith("nvme"):
        found = [path.parent.name for path in directory.glob("nvme*n*/dev")]
        found += [path.parent.name for path in directory.glob("device/nvme*n*/dev")]
    else:
        found = [path.name for path in directory.glob("device/block/*")]
    known = {name for name in found if (system.sys / "block" / name).exists()}
    return tuple(f"/dev/{name}" for name in sorted(known))


def device_by_number(system: System, number: DeviceNumber, label: str = "") -> BlockDevice:
    """The block device with this number, from /sys/dev/block."""
    link = system.sys / "dev" / "block" / f"{number[0]}:{number[1]}"
    directory = link.resolve()
    if not directory.is_dir():
        raise TargetError(
            f"{label or link.name}: the kernel has no device {link.name}",
            hint="the drive was removed, or the node was made by hand: delete the node",
        )
    whole = directory.parent.name if (directory / "partition").exists() else directory.name
    return BlockDevice(directory.name, number, directory, whole)


def whole_disk(system: System, device: BlockDevice) -> BlockDevice:
    """The whole disk of a partition; the device itself if it is one."""
    if not device.is_partition:
        return device
    number = read_text(device.whole_directory / "dev")
    if number is None:
        raise TargetError(f"{device.name}: its whole disk {device.whole_name} is not in sysfs")
    return device_by_number(system, parse_number(number), device.whole_name)


@dataclass(frozen=True)
class Label:
    """What is printed on the drive. None where the kernel does not know."""

    vendor: str | None
    model: str | None
    serial: str | None
    firmware: str | None


def _scsi_serial(device: Path) -> str | None:
    """Unit serial number from the cached VPD page 80h: 4 bytes of header, then the text."""
    try:
        page = (device / "vpd_pg80").read_bytes()
    except OSError:
        return None
    length = int.from_bytes(page[2:4], "big")
    return page[4 : 4 + length].decode("ascii", "replace").strip(" \0") or None


def label_of(disk: BlockDevice) -> Label:
    """Label of a whole disk as the kernel publishes it: NVMe, SCSI/SATA, virtio and MMC.

    Reads sysfs only. No tool is run and no command is sent to the drive, so the protection can rely
    on it.
    """
    device = disk.directory / "device"
    serial = (
        read_text(device / "serial") or _scsi_serial(device) or read_text(disk.directory / "serial")
    )
    firmware = read_text(device / "firmware_rev") or read_text(device / "rev")
    vendor = read_text(device / "vendor")
    if vendor is not None and (vendor == "ATA" or vendor.startswith("0x")):
        vendor = None  # libata's placeholder, or a PCI number: not a name
    return Label(vendor, read_text(device / "model"), serial, firmware)
