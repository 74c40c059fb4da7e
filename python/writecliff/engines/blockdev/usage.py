"""Who uses a block device now: mounts in every mount namespace, swap, holders, loops, processes.

Owns: the live half of the protection. A `Use` is a reason to keep off; an empty result means that
nothing on this machine has the device in its hands.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from writecliff.engines.blockdev.topology import (
    BlockDevice,
    DeviceNumber,
    System,
    device_by_number,
    disks_below,
    parse_number,
    read_text,
)
from writecliff.errors import TargetError

UseKind = Literal["root", "mount", "swap", "holder", "loop", "process"]

# udev opens a device for some milliseconds after every close; that is not a user of the drive.
_PROCESS_SETTLE_S = 2.0
_PROCESS_POLL_S = 0.1


@dataclass(frozen=True)
class Use:
    kind: UseKind
    device: str  # kernel name of the disk or partition
    detail: str

    def __str__(self) -> str:
        return f"{self.device} {self.detail}"


def _unescape(text: str) -> str:
    """mountinfo and swaps write blanks in paths as octal escapes."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)


@dataclass(frozen=True)
class Mount:
    number: DeviceNumber
    mount_point: str
    source: str


def _parse_mountinfo(text: str) -> Iterator[Mount]:
    for line in text.splitlines():
        left, separator, right = line.partition(" - ")
        fields, rest = left.split(), right.split()
        if separator and len(fields) >= 5 and len(rest) >= 2:
            yield Mount(parse_number(fields[2]), _unescape(fields[4]), _unescape(rest[1]))


def all_mounts(system: System) -> frozenset[Mount]:
    """The mounts of every mount namespace that any process of this machine lives in."""
    mounts: set[Mount] = set()
    namespaces: set[str] = set()
    for process in ["self", *_pids(system.proc)]:
        directory = system.proc / process
        try:
            namespace = os.readlink(directory / "ns" / "mnt")
        except OSError:
            namespace = process  # not readable: look at its mounts anyway
        if namespace in namespaces:
            continue
        text = read_text(directory / "mountinfo")
        if text is not None:
            namespaces.add(namespace)
            mounts.update(_parse_mountinfo(text))
    return frozenset(mounts)


def _pids(proc: Path) -> list[str]:
    try:
        return sorted((e.name for e in proc.iterdir() if e.name.isdigit()), key=int)
    except OSError:
        return []


def _number_of_source(system: System, source: str) -> DeviceNumber | None:
    """Device number of a mount's source; file systems such as btrfs hide it behind 0:N."""
    if not source.startswith("/"):
        return None
    try:
        node = system.stat_node(Path(source))
    except TargetError:
        return None
    return node.number if node is not None and node.is_block else None


def root_disks(system: System) -> frozenset[DeviceNumber]:
    """Every device below the root file system of init's and of our own namespace."""
    disks: set[DeviceNumber] = set()
    for process in ("self", "1"):
        text = read_text(system.proc / process / "mountinfo") or ""
        for mount in _parse_mountinfo(text):
            if mount.mount_point != "/":
                continue
            for number in {mount.number, _number_of_source(system, mount.source)} - {None}:
                assert number is not None
                try:
                    disks |= disks_below(system, device_by_number(system, number))
                except TargetError:
                    continue  # overlay, tmpfs: no block device of its own
    return frozenset(disks)


def _mount_uses(system: System, devices: dict[DeviceNumber, str]) -> Iterator[Use]:
    for mount in sorted(all_mounts(system), key=lambda mount: mount.mount_point):
        number = mount.number
        if number not in devices:
            number = _number_of_source(system, mount.source) or number
        if number in devices:
            yield Use("mount", devices[number], f"is mounted at {mount.mount_point}")


def _swap_uses(system: System, devices: dict[DeviceNumber, str]) -> Iterator[Use]:
    for line in (read_text(system.proc / "swaps") or "").splitlines()[1:]:
        number = _number_of_source(system, _unescape(line.split()[0]))
        if number in devices:
            yield Use("swap", devices[number], "is active swap space")


def _loop_uses(system: System, devices: dict[DeviceNumber, str]) -> Iterator[Use]:
    for backing in sorted((system.sys / "block").glob("loop*/loop/backing_file")):
        number = _number_of_source(system, read_text(backing) or "")
        if number in devices:
            loop = backing.parent.parent.name
            yield Use("loop", devices[number], f"is behind the loop device {loop}")


def _process_uses(system: System, devices: dict[DeviceNumber, str]) -> list[Use]:
    uses = []
    for process in _pids(system.proc):
        if int(process) == os.getpid():
            continue
        try:
            descriptors = list((system.proc / process / "fd").iterdir())
        except OSError:
            continue  # ended meanwhile, or another user's
        for descriptor in descriptors:
            try:
                info = descriptor.stat()
            except OSError:
                continue
            number = (os.major(info.st_rdev), os.minor(info.st_rdev))
            if stat.S_ISBLK(info.st_mode) and number in devices:
                name = read_text(system.proc / process / "comm") or "?"
                uses.append(
                    Use("process", devices[number], f"is open in process {process} ({name})")
                )
                break
    return uses


def _settled_process_uses(system: System, devices: dict[DeviceNumber, str]) -> list[Use]:
    """Processes that have the device open and keep it open."""
    deadline = time.monotonic() + _PROCESS_SETTLE_S
    while (uses := _process_uses(system, devices)) and time.monotonic() < deadline:
        time.sleep(_PROCESS_POLL_S)
    return uses


def uses_of(system: System, disk: BlockDevice, parts: Iterable[BlockDevice]) -> tuple[Use, ...]:
    """Everything that uses the disk or one of its partitions, the gravest first."""
    everything = [disk, *parts]
    devices = {device.number: device.name for device in everything}
    uses: list[Use] = []
    below_root = root_disks(system)
    uses += [
        Use("root", name, "carries the root file system of this machine")
        for number, name in devices.items()
        if number in below_root
    ]
    uses += _mount_uses(system, devices)
    uses += _swap_uses(system, devices)
    uses += [
        Use("holder", device.name, f"is part of {', '.join(device.holders)}")
        for device in everything
        if device.holders
    ]
    uses += _loop_uses(system, devices)
    uses += _settled_process_uses(system, devices)
    return tuple(uses)
