"""Regular files as targets, created on request, and written only if no user data is lost.

An existing file is overwritten only if all of the following conditions hold:

* the file is on a file system of a drive, not on a kernel file system (/proc, /sys, /dev);
* the file system has enough space for the whole file, including the holes of a sparse file;
* the file is not in use: no loop device maps it, and it is not mounted, used as swap or open
  elsewhere;
* the file has no signature of a file system, partition table, RAID or encryption;
* the file has no data (a single hole), or is marked as written by a test.

The mark is an extended attribute that records the file system, inode, creation time, and the time
of the last write when a run closed the file. A copy of a marked file has a different inode, and a
file that another program has since modified is newer than its mark. Neither a copy nor a modified
file counts as marked. While a run has the file open, the mark contains a state instead of a time,
so that a killed run can be resumed. An advisory lock prevents two runs from using the file at the
same time.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import Self

from writecliff import units
from writecliff.engines.blockdev.file_identity import creation_id, file_id, path_id
from writecliff.engines.blockdev.mounts import file_system_type
from writecliff.engines.blockdev.signatures import signatures_of
from writecliff.engines.blockdev.topology import System, read_text, stat_node
from writecliff.engines.blockdev.usage import file_uses, in_use
from writecliff.errors import TargetError

_MARK = "user.writecliff.target"
_OPEN = "open"  # Value of the mark while a run writes the file.
_ALIGN = 4096


class FileTarget:
    """An open, locked regular file.

    `refusal` is the error for writes to the file, or `None`. All symbolic links in `path` are
    resolved. `notes` are remarks for the user.
    """

    def __init__(self, path: str, fd: int, system: System, notes: tuple[str, ...]) -> None:
        """Take over an open and locked file (see `open`)."""
        self.path = path
        self.fd = fd
        self.notes = notes
        self.system = system
        info = os.fstat(fd)
        self.size_bytes = info.st_size
        self._file = file_id(info)
        self.refusal = (
            self._in_use(processes=True)
            or _contents_refusal(system, path, fd)
            or room_refusal(path, fd)
        )
        self._written = False

    @classmethod
    def open(cls, path: str | Path, size_bytes: int | None, system: System | None = None) -> Self:
        """Open a regular file as a target, creating it with `size_bytes` if it does not exist.

        The size is rounded down to whole sectors of 4096 bytes, and `notes` mentions the rounding.

        Raises:
            TargetError: If the file does not exist and no size is given, or if it has another size,
                is not a regular file, is in use by another run, or is too large for its file
                system.
        """
        name = os.path.realpath(path)
        notes: tuple[str, ...] = ()
        sizes: tuple[int, ...] = ()
        if size_bytes is not None:
            whole = size_bytes - size_bytes % _ALIGN
            if whole <= 0:
                raise TargetError(
                    f"{path}: the size of {size_bytes} bytes is smaller than one sector "
                    f"({_ALIGN} bytes)"
                )
            if not os.path.lexists(name):
                check_place(system or System(), str(path), name)
                check_room(str(path), os.path.dirname(name), whole)
                _create(name, whole)
            sizes = (whole, size_bytes)
            if whole != size_bytes:
                notes = (f"{path}: the size was rounded down to whole sectors: {whole} bytes",)
        elif not os.path.lexists(name):
            raise TargetError(
                f"the file {path} does not exist", hint="to create the file, add its size"
            )
        node = stat_node(Path(name))  # Do not open devices, because opening a watchdog starts it.
        if node is not None and node.kind != "regular file":
            raise TargetError(
                f"{path} is a {node.kind}, not a regular file",
                hint="omit the file: prefix for block devices",
            )
        check_place(system or System(), str(path), name)
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
        try:
            fd = os.open(name, flags)
        except OSError as error:
            raise TargetError(f"cannot open {path}: {error.strerror}") from error
        try:
            _check(str(path), fd, sizes)
            return cls(name, fd, system or System(), notes)
        except BaseException:
            os.close(fd)
            raise

    @property
    def backing(self) -> str:
        """File identity that persists across reboots and renumbered devices."""
        return creation_id(self.fd)

    def _in_use(self, *, processes: bool = False) -> TargetError | None:
        uses = file_uses(self.system, self._file, self.path, processes=processes)
        return in_use(self.path, uses) if uses else None

    def require_writable(self) -> None:
        """Mark the file as written by a test, or raise TargetError if it must not be written."""
        refusal = self.refusal or self._in_use()
        if refusal is not None:
            raise refusal
        self.verify()
        if not self._written:
            _mark(self.fd, _OPEN)
            self._written = True

    def verify(self) -> None:
        """Raise TargetError if the path no longer refers to the opened file."""
        if path_id(self.path) != self._file:
            raise TargetError(f"{self.path} is no longer the file that was opened")

    def close(self) -> None:
        """Store the time of the last write in the mark, and release the file."""
        if self.fd >= 0:
            if self._written:
                _mark(self.fd, str(os.fstat(self.fd).st_mtime_ns))
            os.close(self.fd)  # Closing the file also releases the lock.
            self.fd = -1


def _check(name: str, fd: int, sizes: tuple[int, ...]) -> None:
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        raise TargetError(
            f"{name} is not a regular file", hint="specify block devices without the prefix file:"
        )
    if sizes and info.st_size not in sizes:
        raise TargetError(
            f"{name} exists with {info.st_size} bytes, not the requested {sizes[0]}",
            hint="delete the file, or omit the size",
        )
    if info.st_size < _ALIGN:
        raise TargetError(f"{name} is too small ({info.st_size} bytes)")
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise TargetError(f"{name} is in use by another run") from error


def _create(name: str, size_bytes: int) -> None:
    """Create the file under a temporary name, and link it, so that no incomplete file remains."""
    parent = os.path.dirname(os.path.abspath(name))
    temporary = os.path.join(parent, f".{os.path.basename(name)}.{os.getpid()}.new")
    try:
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise TargetError(f"cannot create {name}: {error.strerror}") from error
    try:
        try:
            os.posix_fallocate(fd, 0, size_bytes)
            _mark(fd, str(os.fstat(fd).st_mtime_ns))
        finally:
            os.close(fd)
        os.link(temporary, name)  # Unlike a rename, a link does not replace an existing file.
    except OverflowError:  # The size exceeds 64 bits.
        raise TargetError(f"cannot create {name} with {units.size(size_bytes)}") from None
    except OSError as error:
        wanted = f" ({units.size(size_bytes)})" if error.errno == errno.ENOSPC else ""
        raise TargetError(f"cannot create {name}{wanted}: {error.strerror}") from error
    finally:
        os.unlink(temporary)


def _mark(fd: int, state: str) -> None:
    """Mark a file as written by a test.

    `state` is `_OPEN`, or the time of the last write.

    If the file system is full or does not support extended attributes, the file remains unmarked
    and is later rejected.
    """
    with contextlib.suppress(OSError):
        os.setxattr(fd, _MARK, f"{creation_id(fd)} {state}".encode())


def _is_marked(fd: int) -> bool:
    try:
        mark = os.getxattr(fd, _MARK).decode(errors="replace")
    except OSError:
        return False
    states = (_OPEN, str(os.fstat(fd).st_mtime_ns))
    return mark in {f"{creation_id(fd)} {state}" for state in states}


def _holds_data(fd: int) -> bool:
    try:
        os.lseek(fd, 0, os.SEEK_DATA)
    except OSError as error:
        return error.errno != errno.ENXIO  # ENXIO means that the file is a single hole.
    return True


def _contents_refusal(system: System, name: str, fd: int) -> TargetError | None:
    """Return the error for overwriting the contents, or None if no user data is lost."""
    if not _holds_data(fd):
        return None
    hint = "delete the file, or specify a new file and its size"
    try:
        signatures = signatures_of(system, Path(name))
    except TargetError as error:
        return error
    if signatures:
        return TargetError(f"{name} is not empty: {'; '.join(map(str, signatures))}", hint=hint)
    if not _is_marked(fd):
        return TargetError(
            f"{name} holds data that was not written by a test, or that was modified or copied "
            f"since",
            hint=hint,
        )
    return None


# -- file system of a test file --------------------------------------------------------------------

# Kernel file systems, where a write is a kernel command or occupies kernel memory.
_OF_THE_KERNEL = frozenset({
    "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "cpuset", "debugfs", "devpts",
    "devtmpfs", "efivarfs", "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "ramfs",
    "resctrl", "rpc_pipefs", "securityfs", "selinuxfs", "sysfs", "tracefs",
})  # fmt: skip
_IN_MEMORY = "tmpfs"
_BLOCK = 512  # Unit of st_blocks in bytes.


def check_place(system: System, shown: str, name: str) -> None:
    """Raise TargetError if a resolved path is on a kernel file system or below /dev.

    If the path does not exist, the function checks the path's folder instead.
    """
    above = name if os.path.lexists(name) else os.path.dirname(name)
    try:
        device = os.stat(above).st_dev
    except OSError:
        return  # Creating or opening the file reports the error.
    kind = file_system_type(system, (os.major(device), os.minor(device)))
    if name.startswith(f"{system.dev}/"):
        where = f"below {system.dev}"
    elif kind in _OF_THE_KERNEL:
        where = f"on {kind}, a file system of the kernel"
    else:
        return
    raise TargetError(f"{shown}: {where}", hint="specify a file on the drive that you want to test")


def check_room(shown: str, folder: str, size_bytes: int) -> None:
    """Raise TargetError if the file system of `folder` has less than `size_bytes` free."""
    try:
        volume = os.statvfs(folder)
    except OSError:
        return
    free = volume.f_bavail * volume.f_frsize
    of_memory = _free_memory() if _is_in_memory(folder) else free
    if size_bytes > min(free, of_memory):
        what = "memory, where it would be," if of_memory < free else "its file system"
        raise TargetError(
            f"{shown} cannot be created with {units.size(size_bytes)}: {what} has "
            f"{units.size(min(free, of_memory))} free",
            hint="choose a smaller size, or free some space",
        )


def room_refusal(name: str, fd: int) -> TargetError | None:
    """Return the error for filling a file's holes, or None if the file system has enough space."""
    info, volume = os.fstat(fd), os.fstatvfs(fd)
    missing = info.st_size - info.st_blocks * _BLOCK
    free = volume.f_bavail * volume.f_frsize
    if missing <= free:
        return None
    return TargetError(
        f"{name} is sparse: its holes need {units.size(missing)}, but its file system has "
        f"{units.size(free)} free",
        hint="free some space, or specify a smaller file",
    )


def _is_in_memory(folder: str) -> bool:
    device = os.stat(folder).st_dev
    return file_system_type(System(), (os.major(device), os.minor(device))) == _IN_MEMORY


def _free_memory() -> int:
    """Return half of the available memory, which leaves enough for the rest of the system."""
    for line in (read_text(System().proc / "meminfo") or "").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024 // 2
    return 0
