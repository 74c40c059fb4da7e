"""Where a file that is to be written may be: on a drive with room for it."""

from __future__ import annotations

import os

from writecliff import units
from writecliff.engines.blockdev.mounts import file_system_type
from writecliff.engines.blockdev.topology import System, read_text
from writecliff.errors import TargetError

# File systems whose files are the kernel's: a write is a command to it, or takes its memory.
_OF_THE_KERNEL = frozenset({
    "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "cpuset", "debugfs", "devpts",
    "devtmpfs", "efivarfs", "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "ramfs",
    "resctrl", "rpc_pipefs", "securityfs", "selinuxfs", "sysfs", "tracefs",
})  # fmt: skip
_IN_MEMORY = "tmpfs"
_BLOCK = 512  # the unit of st_blocks


def check_place(system: System, shown: str, name: str) -> None:
    """Raise TargetError if the path `name`, with links resolved, is among the kernel's own files
    or below /dev. What is not there is judged by its folder."""
    above = name if os.path.lexists(name) else os.path.dirname(name)
    try:
        device = os.stat(above).st_dev
    except OSError:
        return  # creating or opening it says why
    kind = file_system_type(system, (os.major(device), os.minor(device)))
    if name.startswith(f"{system.dev}/"):
        where = f"below {system.dev}"
    elif kind in _OF_THE_KERNEL:
        where = f"on {kind}, which has the kernel's own files"
    else:
        return
    raise TargetError(f"{shown}: {where}", hint="name a file on the drive that is to be tested")


def check_room(shown: str, folder: str, size_bytes: int) -> None:
    """Raise TargetError if the file system of `folder` has no room for so many bytes more."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return
    free = found.f_bavail * found.f_frsize
    of_memory = _free_memory() if _is_in_memory(folder) else free
    if size_bytes > min(free, of_memory):
        what = "memory, where it would be," if of_memory < free else "its file system"
        raise TargetError(
            f"{shown}: cannot be created with {units.size(size_bytes)}: {what} has "
            f"{units.size(min(free, of_memory))} free",
            hint="give a smaller size, or make room",
        )


def room_refusal(name: str, fd: int) -> TargetError | None:
    """Why the holes of an existing file must not be filled; None if there is room for them."""
    info, found = os.fstat(fd), os.fstatvfs(fd)
    missing = info.st_size - info.st_blocks * _BLOCK
    free = found.f_bavail * found.f_frsize
    if missing <= free:
        return None
    return TargetError(
        f"{name}: sparse: to write it takes {units.size(missing)} more, and its file system has "
        f"{units.size(free)} free",
        hint="make room, or name a smaller file",
    )


def _is_in_memory(folder: str) -> bool:
    device = os.stat(folder).st_dev
    return file_system_type(System(), (os.major(device), os.minor(device))) == _IN_MEMORY


def _free_memory() -> int:
    """Half of what the kernel says is available, so that the machine goes on."""
    for line in (read_text(System().proc / "meminfo") or "").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024 // 2
    return 0
