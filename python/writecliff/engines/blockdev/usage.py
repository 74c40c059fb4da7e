"""Finds who uses a block device or file now: mounts, swap, holders, loop devices, processes.

Mounts of every mount namespace count. A `Use` is a reason not to write; an empty result means that
nothing on this machine uses the target.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from writecliff.engines.blockdev.file_identity import FileId, file_id, path_id
from writecliff.engines.blockdev.loops import Loop, attached_loops, below
from writecliff.engines.blockdev.topology import (
    BlockDevice,
    DeviceNumber,
    System,
    device_by_number,
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
    device: str  # kernel name of the disk or partition, or path of the file
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
                    disks |= below(system, device_by_number(system, number)).all_numbers
                except TargetError:
                    continue  # overlay, tmpfs: no block device of its own
    return frozenset(disks)


def _swap_paths(system: System) -> list[str]:
    lines = (read_text(system.proc / "swaps") or "").splitlines()[1:]
    return [_unescape(line.split()[0]) for line in lines]


def _mount_uses(system: System, devices: dict[DeviceNumber, str]) -> Iterator[Use]:
    for mount in sorted(all_mounts(system), key=lambda mount: mount.mount_point):
        number = mount.number
        if number not in devices:
            number = _number_of_source(system, mount.source) or number
        if number in devices:
            yield Use("mount", devices[number], f"is mounted at {mount.mount_point}")


def _swap_uses(system: System, devices: dict[DeviceNumber, str]) -> Iterator[Use]:
    for path in _swap_paths(system):
        number = _number_of_source(system, path)
        if number in devices:
            yield Use("swap", devices[number], "is active swap space")


_Descriptor = Callable[[os.stat_result], str | None]


def _process_uses(system: System, used: _Descriptor) -> list[Use]:
    """Other processes with an open file for which `used` gives the name of our target."""
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
                name = used(descriptor.stat())
            except OSError:
                continue
            if name is not None:
                comm = read_text(system.proc / process / "comm") or "?"
                uses.append(Use("process", name, f"is open in process {process} ({comm})"))
                break
    return uses


def _settled_process_uses(system: System, used: _Descriptor) -> list[Use]:
    """Processes that have the target open and keep it open."""
    deadline = time.monotonic() + _PROCESS_SETTLE_S
    while (uses := _process_uses(system, used)) and time.monotonic() < deadline:
        time.sleep(_PROCESS_POLL_S)
    return uses


def uses_of(
    system: System, disk: BlockDevice, parts: Iterable[BlockDevice], *, processes: bool = True
) -> tuple[Use, ...]:
    """Everything that uses the disk, one of its partitions, or what loop devices below it map.

    Without `processes` the open files of other processes are not searched, which takes longest.
    """
    beneath = below(system, disk)
    everything = {one.number: one for one in (disk, *parts, *beneath.devices)}.values()
    devices = {device.number: device.name for device in everything}
    ours = {loop.name for loop in beneath.loops}
    below_root = root_disks(system)
    uses = [
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
    for loop in attached_loops(system):
        if loop.name not in ours and loop.device in devices:
            text = f"is behind the loop device {loop.name}"
            uses.append(Use("loop", devices[loop.device], text))
    for mine in beneath.loops:
        uses += _backing_uses(system, mine, ours)

    def device_of(info: os.stat_result) -> str | None:
        number = (os.major(info.st_rdev), os.minor(info.st_rdev))
        return devices.get(number) if stat.S_ISBLK(info.st_mode) else None

    return (*uses, *(_settled_process_uses(system, device_of) if processes else ()))


def _backing_uses(system: System, mine: Loop, ours: set[str]) -> Iterator[Use]:
    """Who else uses the bytes that a loop device maps."""
    if mine.file is None and mine.device is None:
        yield Use("loop", mine.name, f"maps {mine.path}, which cannot be identified")
    for other in attached_loops(system):
        if other.name not in ours and other.overlaps(mine):
            text = f"shares bytes of {mine.path} with the loop device {other.name}"
            yield Use("loop", mine.name, text)
    if mine.file is not None:
        yield from _direct_file_uses(system, mine.file, mine.path)


def _direct_file_uses(system: System, file: FileId, name: str) -> Iterator[Use]:
    """Active swap files, and file systems (erofs) that are mounted from a file itself."""
    if any(path_id(path) == file for path in _swap_paths(system)):
        yield Use("swap", name, "is active swap space")
    for mount in all_mounts(system):
        if mount.source not in ("", "/") and path_id(mount.source) == file:
            yield Use("mount", name, f"is mounted at {mount.mount_point}")


def file_uses(
    system: System, file: FileId, name: str, *, processes: bool = True
) -> tuple[Use, ...]:
    """Everything that uses a regular file in a way that a write to it would harm."""
    uses = [
        Use("loop", name, f"is behind the loop device {loop.name}")
        for loop in attached_loops(system)
        if loop.file == file
    ]
    uses += _direct_file_uses(system, file, name)

    def ours(info: os.stat_result) -> str | None:
        return name if file_id(info) == file else None

    return (*uses, *(_settled_process_uses(system, ours) if processes else ()))


def free_hint(use: Use) -> str:
    """What the user can do about a use."""
    hints = {
        "root": "this device is never written, whatever the options",
        "mount": "unmount it (also in other mount namespaces, such as containers)",
        "swap": "swapoff it",
        "holder": "take the md, dm, LVM or ZFS device apart first",
        "loop": "detach the loop device (losetup --detach)",
        "process": "end that process",
    }
    return hints[use.kind]
