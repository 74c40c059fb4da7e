"""Finds who uses a block device or file now: mounts, swap, holders, loop devices, processes.

Mounts of every mount namespace count, and so does what is done through another path to the same
drive. A `Use` is a reason not to write; an empty result means that nothing on this machine uses the
target.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from writecliff.engines.blockdev.file_identity import FileId, file_id, path_id
from writecliff.engines.blockdev.loops import Below, Loop, attached_loops, below
from writecliff.engines.blockdev.mounts import all_mounts, process_ids, root_disks, unescape
from writecliff.engines.blockdev.relatives import dm_name, mapped_twice, other_paths
from writecliff.engines.blockdev.topology import (
    BlockDevice,
    DeviceNumber,
    System,
    number_at,
    read_text,
)
from writecliff.errors import TargetError

UseKind = Literal["root", "mount", "swap", "holder", "loop", "export", "process"]

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


@dataclass(frozen=True)
class _Targets:
    """The devices and files whose users are looked for, and how errors name them.

    `mapped` are the parts of files and devices that are written through loop devices (or, for a
    file, directly). `claimed` are devices that the kernel keeps for a device above them: only
    processes that write them matter.
    """

    system: System
    devices: Mapping[DeviceNumber, str]
    mapped: Sequence[Loop]
    claimed: Mapping[DeviceNumber, str] = field(default_factory=dict)

    def at(self, path: str) -> str | None:
        """The name of the target that a path leads to; None for all other paths."""
        number = number_at(self.system, path)
        return self._file(path_id(path)) if number is None else self.devices.get(number)

    def of(self, info: os.stat_result) -> str | None:
        """The name of the target that an open file is; None for all other files."""
        if stat.S_ISBLK(info.st_mode):
            return self.devices.get((os.major(info.st_rdev), os.minor(info.st_rdev)))
        return self._file(file_id(info))

    def claimed_of(self, info: os.stat_result) -> str | None:
        """The same for devices that only an opener for writing could harm."""
        if not stat.S_ISBLK(info.st_mode):
            return None
        return self.claimed.get((os.major(info.st_rdev), os.minor(info.st_rdev)))

    def _file(self, file: FileId | None) -> str | None:
        return next((one.path for one in self.mapped if file and one.file == file), None)

    def uses(self, *, processes: bool) -> Iterator[Use]:
        for mount in sorted(all_mounts(self.system), key=lambda mount: mount.mount_point):
            name = self.devices.get(mount.number) or self.at(mount.source)
            if name is not None:
                yield Use("mount", name, f"is mounted at {mount.mount_point}")
        for line in (read_text(self.system.proc / "swaps") or "").splitlines()[1:]:
            name = self.at(unescape(line.split()[0]))
            if name is not None:
                yield Use("swap", name, "is active swap space")
        yield from self._loop_uses()
        yield from self._export_uses()
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

    def _export_uses(self) -> Iterator[Use]:
        ours = {loop.path for loop in self.mapped if loop.name.startswith("nvme")}
        for path, where in exports(self.system):
            name = self.at(path)
            if name is not None and path not in ours:
                yield Use("export", name, f"is exported to other machines as {where}")

    def _process_uses(self) -> list[Use]:
        """Other processes that have a target open."""
        return [
            Use("process", found.name, f"is open in process {found.pid} ({found.comm})")
            for found in openers(self.system.proc, self.of, self.claimed_of)
        ]


def neighbours(system: System, disk: BlockDevice) -> tuple[BlockDevice, ...]:
    """Other devices whose users a write to the disk would harm, partitions included: those behind
    loop devices, and those that are another path to the same drive.
    """
    beneath = below(system, disk)
    return (*beneath.devices, *_other_paths(system, beneath))


def _other_paths(system: System, beneath: Below) -> tuple[BlockDevice, ...]:
    disks = [one for one in beneath.stack if not one.is_partition]
    paths = other_paths(system, disks)
    return tuple(one for path in paths for one in (path, *path.partitions()))


def uses_of(system: System, disk: BlockDevice, *, processes: bool = True) -> tuple[Use, ...]:
    """Everything that uses the disk, one of its partitions, or one of its neighbours.

    Without `processes` the open files of other processes are not searched, which takes longest.
    """
    beneath = below(system, disk)
    family = {one.number: one for one in (disk, *disk.partitions(), *beneath.devices)}
    names = {number: device.name for number, device in family.items()}
    for device in _other_paths(system, beneath):
        if family.setdefault(device.number, device) is device:
            names[device.number] = f"{device.name} (another path to the same drive)"
    claimed = {one.number: one.name for one in beneath.stack if one.number not in names}
    targets = _Targets(system, names, beneath.loops, claimed)
    return (
        *_kernel_uses(system, family, names),
        *(
            Use("holder", lower.name, f"is also mapped by {other.name} ({dm_name(other)})")
            for lower, other in mapped_twice(system, beneath.stack)
        ),
        *targets.uses(processes=processes),
    )


def _kernel_uses(
    system: System,
    family: Mapping[DeviceNumber, BlockDevice],
    names: Mapping[DeviceNumber, str],
) -> Iterator[Use]:
    below_root = root_disks(system)
    for number in family:
        if number in below_root:
            yield Use("root", names[number], "carries the root file system of this machine")
    for number, device in family.items():
        if device.holders:
            yield Use("holder", names[number], f"is part of {', '.join(device.holders)}")
        for detail in (bcache_use(device), file_system_use(system, device)):
            if detail is not None:
                yield Use("holder", names[number], detail)


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
    "holder": "stop the md, dm, LVM, bcache or ZFS device or unmount the file system first",
    "loop": "detach the loop device (losetup --detach)",
    "export": "take it out of the kernel's target (nvmetcli or targetcli)",
    "process": "end that process",
}


def in_use(path: str, uses: Sequence[Use]) -> TargetError:
    """The refusal of a target with these uses."""
    more = f" (and {len(uses) - 1} more)" if len(uses) > 1 else ""
    return TargetError(f"{path}: in use: {uses[0]}{more}", hint=FREE_HINTS[uses[0].kind])


# -- processes that use a disk ---------------------------------------------------------------------

# Processes that have a device or file open, or still mapped after closing it.

NameOf = Callable[[os.stat_result], str | None]
_FLAGS = re.compile(r"^flags:\s*([0-7]+)", re.MULTILINE)


@dataclass(frozen=True)
class Opener:
    """Another process that has one of the targets open. `name` is the target's."""

    name: str
    pid: str
    comm: str


def openers(proc: Path, name_of: NameOf, written_name_of: NameOf) -> list[Opener]:
    """Other processes that have a target open or mapped.

    `name_of` names the targets; `written_name_of` those that only an opener for writing uses.
    """
    found = []
    mapped: set[tuple[str, str]] = set()  # libraries are the same in most processes
    for process in process_ids(proc):
        if int(process) == os.getpid():
            continue
        directory = proc / process
        names = _opened(directory, name_of, written_name_of)
        name = next(names, None) or next(_mapped(directory, name_of, mapped), None)
        if name is not None:
            found.append(Opener(name, process, read_text(directory / "comm") or "?"))
    return found


def _opened(directory: Path, name_of: NameOf, written_name_of: NameOf) -> Iterator[str]:
    try:
        descriptors = list((directory / "fd").iterdir())
    except OSError:
        return  # ended meanwhile, or another user's
    for descriptor in descriptors:
        try:
            info = descriptor.stat()
        except OSError:
            continue
        name = name_of(info)
        if name is None and (name := written_name_of(info)) is not None:
            name = name if _for_writing(directory, descriptor.name) else None
        if name is not None:
            yield name


def _for_writing(directory: Path, descriptor: str) -> bool:
    match = _FLAGS.search(read_text(directory / "fdinfo" / descriptor) or "")
    return match is None or int(match[1], 8) & os.O_ACCMODE != os.O_RDONLY


def _mapped(directory: Path, name_of: NameOf, seen: set[tuple[str, str]]) -> Iterator[str]:
    """Targets that are mapped into the process; `seen` are files that are none, by number."""
    for line in (read_text(directory / "maps") or "").splitlines():
        addresses, _, _, device, inode, *path = line.split(maxsplit=5)
        if not path or inode == "0" or (device, inode) in seen:
            continue
        try:
            name = name_of((directory / "map_files" / addresses).stat())
        except OSError:
            continue
        if name is None:
            seen.add((device, inode))
        else:
            yield name


# -- kernel users ----------------------------------------------------------------------------------

# Users of a device inside the kernel that leave no entry among its holders.
#
# * bcache registers a device before (or without) building one on it.
# * btrfs and bcachefs mount several devices, of which mountinfo names only one.
# * The kernel's NVMe and SCSI targets export devices and files to other machines. The NVMe target
#   does not claim them.

_FILE_SYSTEMS = (("btrfs", "devices/{name}"), ("bcachefs", "dev-*/block"))


def bcache_use(device: BlockDevice) -> str | None:
    """What bcache does with the device; None if nothing."""
    if not (device.directory / "bcache").is_dir() or device.holders:
        return None
    return "is registered with bcache"


def file_system_use(system: System, device: BlockDevice) -> str | None:
    """The mounted file system of several devices that this one is part of; None if there is none.

    These directories exist in sysfs only while the file system is mounted.
    """
    for kind, pattern in _FILE_SYSTEMS:
        for member in (system.sys / "fs" / kind).glob(f"*/{pattern.format(name=device.name)}"):
            if member.resolve() == device.directory.resolve():
                directory = member.parents[len(Path(pattern).parts) - 1]
                return f"is part of the mounted {kind} file system {directory.name}"
    return None


def exports(system: System) -> Iterator[tuple[str, str]]:
    """Path of each device or file that this kernel exports, and under which name it does."""
    config = system.sys / "kernel/config"
    for path in sorted(config.glob("nvmet/subsystems/*/namespaces/*/device_path")):
        exported = read_text(path)
        if exported and read_text(path.with_name("enable")) == "1":
            yield exported, f"NVMe subsystem {path.parents[2].name}"
    for path in sorted(config.glob("target/core/*/*/udev_path")):
        exported = read_text(path)
        if exported and read_text(path.with_name("enable")) == "1":
            yield exported, f"SCSI target {path.parent.name}"
