"""Finds who uses a block device or file now: mounts, swap, holders, loop devices, processes.

Mounts of every mount namespace count. A `Use` is a reason not to write; an empty result means that
nothing on this machine uses the target.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
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


@dataclass(frozen=True)
class _Targets:
    """The devices and files whose users are looked for, and how errors name them.

    `mapped` are the parts of files and devices that are written through loop devices (or, for a
    file, directly).
    """

    system: System
    devices: Mapping[DeviceNumber, str]
    mapped: Sequence[Loop]

    def at(self, path: str) -> str | None:
        """The name of the target that a path leads to; None for all other paths."""
        number = _number_of_source(self.system, path)
        return self._file(path_id(path)) if number is None else self.devices.get(number)

    def of(self, info: os.stat_result) -> str | None:
        """The name of the target that an open file is; None for all other files."""
        if stat.S_ISBLK(info.st_mode):
            return self.devices.get((os.major(info.st_rdev), os.minor(info.st_rdev)))
        return self._file(file_id(info))

    def _file(self, file: FileId | None) -> str | None:
        return next((one.path for one in self.mapped if file and one.file == file), None)

    def uses(self, *, processes: bool) -> Iterator[Use]:
        for mount in sorted(all_mounts(self.system), key=lambda mount: mount.mount_point):
            name = self.devices.get(mount.number) or self.at(mount.source)
            if name is not None:
                yield Use("mount", name, f"is mounted at {mount.mount_point}")
        for line in (read_text(self.system.proc / "swaps") or "").splitlines()[1:]:
            name = self.at(_unescape(line.split()[0]))
            if name is not None:
                yield Use("swap", name, "is active swap space")
        yield from self._loop_uses()
        if processes:
            deadline = time.monotonic() + _PROCESS_SETTLE_S
            while (uses := self._process_uses()) and time.monotonic() < deadline:
                time.sleep(_PROCESS_POLL_S)
            yield from uses

    def _loop_uses(self) -> Iterator[Use]:
        ours = {loop.name for loop in self.mapped}
        for mine in self.mapped:
            if mine.file is None and mine.device is None:
                yield Use("loop", mine.name, f"maps {mine.path}, which cannot be identified")
        for loop in attached_loops(self.system):
            name = self.devices.get(loop.device) if loop.device is not None else None
            name = name or next((one.path for one in self.mapped if one.overlaps(loop)), None)
            if name is not None and loop.name not in ours:
                yield Use("loop", name, f"is behind the loop device {loop.name}")

    def _process_uses(self) -> list[Use]:
        """Other processes that have a target open."""
        uses = []
        for process in _pids(self.system.proc):
            if int(process) == os.getpid():
                continue
            directory = self.system.proc / process
            try:
                descriptors = list((directory / "fd").iterdir())
            except OSError:
                continue  # ended meanwhile, or another user's
            for descriptor in descriptors:
                try:
                    name = self.of(descriptor.stat())
                except OSError:
                    continue
                if name is not None:
                    comm = read_text(directory / "comm") or "?"
                    uses.append(Use("process", name, f"is open in process {process} ({comm})"))
                    break
        return uses


def uses_of(system: System, disk: BlockDevice, *, processes: bool = True) -> tuple[Use, ...]:
    """Everything that uses the disk, one of its partitions, or what loop devices below it map.

    Without `processes` the open files of other processes are not searched, which takes longest.
    """
    beneath = below(system, disk)
    everything = {one.number: one for one in (disk, *disk.partitions(), *beneath.devices)}
    below_root = root_disks(system)
    grave = [
        Use("root", device.name, "carries the root file system of this machine")
        for number, device in everything.items()
        if number in below_root
    ]
    grave += (
        Use("holder", device.name, f"is part of {', '.join(device.holders)}")
        for device in everything.values()
        if device.holders
    )
    names = {number: device.name for number, device in everything.items()}
    targets = _Targets(system, names, beneath.loops)
    return (*grave, *targets.uses(processes=processes))


def file_uses(
    system: System, file: FileId, name: str, *, processes: bool = True
) -> tuple[Use, ...]:
    """Everything that uses a regular file in a way that a write to it would harm."""
    whole = Loop("", (0, 0), name, file, None, 0, sys.maxsize)
    return tuple(_Targets(system, {}, [whole]).uses(processes=processes))


FREE_HINTS: Mapping[UseKind, str] = {
    "root": "this device is never written, whatever the options",
    "mount": "unmount it (also in other mount namespaces, such as containers)",
    "swap": "run swapoff on it",
    "holder": "stop the md, dm, LVM or ZFS device first",
    "loop": "detach the loop device (losetup --detach)",
    "process": "end that process",
}


def in_use(path: str, uses: Sequence[Use]) -> TargetError:
    """The refusal of a target with these uses."""
    more = f" (and {len(uses) - 1} more)" if len(uses) > 1 else ""
    return TargetError(f"{path}: in use: {uses[0]}{more}", hint=FREE_HINTS[uses[0].kind])
