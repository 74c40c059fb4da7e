"""Detection of users of a block device or file: mounts, swap, holders, loop devices and processes.

Detection covers mounts in all mount namespaces, and use through another path to the same drive. A
`Use` is a reason not to write to the target. An empty result means that nothing on this machine
uses the target.
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

# udev opens a device for a few milliseconds after every close; this does not count as use.
_PROCESS_SETTLE_S = 2.0
_PROCESS_POLL_S = 0.1


@dataclass(frozen=True)
class Use:
    """A use of a device or file that forbids writing to the device or file."""

    kind: UseKind
    device: str  # Kernel name of the disk or partition, or path of the file.
    detail: str

    def __str__(self) -> str:
        """Return the use as a sentence, such as "sda1 is mounted at /"."""
        return f"{self.device} {self.detail}"


@dataclass(frozen=True)
class _Targets:
    """Devices and files to search for users, including their names in errors.

    `mapped` lists the file and device ranges that are written through loop devices or, for a file,
    directly. `claimed` lists devices that the kernel reserves for a device above; for these
    devices, only processes that write to the device matter.
    """

    system: System
    devices: Mapping[DeviceNumber, str]
    mapped: Sequence[Loop]
    claimed: Mapping[DeviceNumber, str] = field(default_factory=dict)

    def at(self, path: str) -> str | None:
        """Return the name of the target at a path, or None if no target has this path."""
        number = number_at(self.system, path)
        return self._file(path_id(path)) if number is None else self.devices.get(number)

    def of(self, info: os.stat_result) -> str | None:
        """Return the name of the target that an open file belongs to, or None for other files."""
        if stat.S_ISBLK(info.st_mode):
            return self.devices.get((os.major(info.st_rdev), os.minor(info.st_rdev)))
        return self._file(file_id(info))

    def claimed_of(self, info: os.stat_result) -> str | None:
        """Return the name of an open claimed device, or None for other files."""
        if not stat.S_ISBLK(info.st_mode):
            return None
        return self.claimed.get((os.major(info.st_rdev), os.minor(info.st_rdev)))

    def _file(self, file: FileId | None) -> str | None:
        return next((loop.path for loop in self.mapped if file and loop.file == file), None)

    def uses(self, *, processes: bool) -> Iterator[Use]:
        """Yield all uses, and search the open files of processes if `processes` is set."""
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
            name = name or next((part.path for part in self.mapped if part.overlaps(loop)), None)
            if name is not None and loop.name not in ours:
                yield Use("loop", name, f"is behind the loop device {loop.name}")

    def _export_uses(self) -> Iterator[Use]:
        ours = {loop.path for loop in self.mapped if loop.name.startswith("nvme")}
        for path, where in exports(self.system):
            name = self.at(path)
            if name is not None and path not in ours:
                yield Use("export", name, f"is exported to other machines as {where}")

    def _process_uses(self) -> list[Use]:
        """Return the other processes that have a target open."""
        return [
            Use("process", opener.name, f"is open in process {opener.pid} ({opener.comm})")
            for opener in openers(self.system.proc, self.of, self.claimed_of)
        ]


def neighbours(system: System, disk: BlockDevice) -> tuple[BlockDevice, ...]:
    """Return other devices and partitions whose users a write to the disk would harm.

    The other devices are the backing devices of loop devices, and other paths to the same drive.
    """
    beneath = below(system, disk)
    return (*beneath.devices, *_other_paths(system, beneath))


def _other_paths(system: System, beneath: Below) -> tuple[BlockDevice, ...]:
    disks = [device for device in beneath.stack if not device.is_partition]
    paths = other_paths(system, disks)
    return tuple(device for path in paths for device in (path, *path.partitions()))


def uses_of(system: System, disk: BlockDevice, *, processes: bool = True) -> tuple[Use, ...]:
    """Return all uses of the disk, its partitions and its neighbours.

    The open files of other processes, whose search takes longest, are searched only if `processes`
    is set.
    """
    beneath = below(system, disk)
    family = {member.number: member for member in (disk, *disk.partitions(), *beneath.devices)}
    names = {number: device.name for number, device in family.items()}
    for device in _other_paths(system, beneath):
        if family.setdefault(device.number, device) is device:
            names[device.number] = f"{device.name} (another path to the same drive)"
    claimed = {member.number: member.name for member in beneath.stack if member.number not in names}
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
    """Return all uses of a regular file that writing to it would harm."""
    whole = Loop("", (0, 0), name, file, None, 0, sys.maxsize)
    return tuple(_Targets(system, {}, [whole]).uses(processes=processes))


FREE_HINTS: Mapping[UseKind, str] = {
    "root": "writecliff never writes to this device; choose another",
    "mount": "unmount it (also in other mount namespaces, such as containers)",
    "swap": "run swapoff on it",
    "holder": "stop the md, dm, LVM, bcache or ZFS device or unmount the file system first",
    "loop": "detach the loop device (losetup --detach)",
    "export": "take it out of the kernel's target (nvmetcli or targetcli)",
    "process": "end that process",
}


def in_use(path: str, uses: Sequence[Use]) -> TargetError:
    """Return the error for a target that has these uses."""
    more = f" (and {len(uses) - 1} more)" if len(uses) > 1 else ""
    return TargetError(f"{path} is in use: {uses[0]}{more}", hint=FREE_HINTS[uses[0].kind])


# -- processes that use a disk ---------------------------------------------------------------------


NameOf = Callable[[os.stat_result], str | None]
_FLAGS = re.compile(r"^flags:\s*([0-7]+)", re.MULTILINE)


@dataclass(frozen=True)
class Opener:
    """A process that has a target open."""

    name: str
    pid: str
    comm: str


def openers(proc: Path, name_of: NameOf, written_name_of: NameOf) -> list[Opener]:
    """Return the other processes that have a target open or mapped.

    `name_of` returns a target's name. `written_name_of` returns the name of a target for which only
    files open for writing matter.
    """
    processes = []
    # Check each library once, because most processes map the same libraries.
    mapped: set[tuple[str, str]] = set()
    for process in process_ids(proc):
        if int(process) == os.getpid():
            continue
        directory = proc / process
        names = _opened(directory, name_of, written_name_of)
        name = next(names, None) or next(_mapped(directory, name_of, mapped), None)
        if name is not None:
            processes.append(Opener(name, process, read_text(directory / "comm") or "?"))
    return processes


def _opened(directory: Path, name_of: NameOf, written_name_of: NameOf) -> Iterator[str]:
    try:
        descriptors = list((directory / "fd").iterdir())
    except OSError:
        return  # The process exited, or belongs to another user.
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
    """Yield the targets that the process maps; `seen` contains files that are not targets."""
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

# Kernel components that use a device but are not listed among its holders.
#
# * bcache may register a device long before, or without, building a bcache device on it.
# * btrfs and bcachefs mount several devices, but mountinfo names only one of them.
# * The kernel's NVMe and SCSI targets export devices and files to other machines. The NVMe target
#   does not claim its exported devices.

_FILE_SYSTEMS = (("btrfs", "devices/{name}"), ("bcachefs", "dev-*/block"))


def bcache_use(device: BlockDevice) -> str | None:
    """Return bcache's use of the device, or None if bcache does not use it."""
    if not (device.directory / "bcache").is_dir() or device.holders:
        return None
    return "is registered with bcache"


def file_system_use(system: System, device: BlockDevice) -> str | None:
    """Return a mounted multi-device file system's use of the device, or None if unused.

    The file system's sysfs directories exist only while the file system is mounted.
    """
    for kind, pattern in _FILE_SYSTEMS:
        for member in (system.sys / "fs" / kind).glob(f"*/{pattern.format(name=device.name)}"):
            if member.resolve() == device.directory.resolve():
                directory = member.parents[len(Path(pattern).parts) - 1]
                return f"is part of the mounted {kind} file system {directory.name}"
    return None


def exports(system: System) -> Iterator[tuple[str, str]]:
    """Yield the path and exported name of each device or file that this kernel exports."""
    config = system.sys / "kernel/config"
    for path in sorted(config.glob("nvmet/subsystems/*/namespaces/*/device_path")):
        exported = read_text(path)
        if exported and read_text(path.with_name("enable")) == "1":
            yield exported, f"NVMe subsystem {path.parents[2].name}"
    for path in sorted(config.glob("target/core/*/*/udev_path")):
        exported = read_text(path)
        if exported and read_text(path.with_name("enable")) == "1":
            yield exported, f"SCSI target {path.parent.name}"
