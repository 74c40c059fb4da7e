"""The two kinds of targets of `FioEngine`: a block device and a regular file.

Each is opened once, with symbolic links resolved, and keeps hold of the device or file until it is
closed. It says what can be done with it and whether it may be written.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import struct
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from writecliff.engines.base import (
    CacheReport,
    DeviceIdentity,
    PowerStates,
    PurgeHook,
    PurgeReport,
    unseen,
)
from writecliff.engines.blockdev import cache, identity, protection, purge, vitals
from writecliff.engines.blockdev.data_placement_probe import ask_nvme
from writecliff.engines.blockdev.identity import is_nvme, is_scsi
from writecliff.engines.blockdev.kernel_log import KernelLog, names_in_log
from writecliff.engines.blockdev.machine import take_sample
from writecliff.engines.blockdev.nvme.drive import NvmeDrive
from writecliff.engines.blockdev.nvme.fdp import enable_events
from writecliff.engines.blockdev.nvme.power import (
    power_states,
    restore_power_state,
    set_power_state,
    working_states,
)
from writecliff.engines.blockdev.nvme.streams import usable_streams
from writecliff.engines.blockdev.nvme.topology import controllers_of, generic_device
from writecliff.engines.blockdev.protection import (
    SERIAL_FLAG,
    SIGNATURE_FLAG,
    Claim,
    Protection,
    claim,
    inspect,
)
from writecliff.engines.blockdev.regular_file import FileTarget
from writecliff.engines.blockdev.scsi_streams import KERNEL_SINCE, read_streams
from writecliff.engines.blockdev.topology import (
    BlockDevice,
    System,
    read_int,
    read_text,
    whole_disk,
)
from writecliff.engines.disturbance import Reading
from writecliff.engines.fio.capability import PLIDS_SINCE, DataPlacement, Fio, Version
from writecliff.engines.fio.command import Target
from writecliff.errors import TargetError

_DEFAULT_SECTOR = 512
_FRESH_S = 5.0  # of a reading between two steps


class DeviceTarget:
    """A block device: claimed exclusively for writing, or only looked at for reading.

    `name` is what the user wrote; `notes` are remarks to be stored with every step.
    """

    notes: tuple[str, ...] = ()

    def __init__(
        self,
        protection: Protection,
        held: Claim | None,
        system: System,
        power_state: int | None = None,
        consent: tuple[str | None, bool] = (None, False),
    ) -> None:
        self.name = protection.path
        self._power_state = power_state  # to be set
        self._state_found: int | None = None  # before one was set
        self.protection = protection
        self._claim = held
        self._consent = consent  # serial number and whether signatures may be lost
        self._system = system
        self._log = KernelLog()
        self._log_names = names_in_log(protection.disk)
        self._nodes: HintNodes | None = None
        self._events_enabled = False
        self._nvme: NvmeDrive | None = None
        self._idle: tuple[float, Reading] | None = None  # the latest reading at rest, and when

    @classmethod
    def open(
        cls,
        path: str,
        destroy_serial: str | None,
        allow_signatures: bool,
        system: System,
        *,
        power_state: int | None = None,
        look_only: bool = False,
    ) -> DeviceTarget:
        if destroy_serial is None or look_only:
            found, held = inspect(path, system), None
        else:
            found, held = claim(
                path, destroy_serial, allow_signatures=allow_signatures, system=system
            )
        target = cls(found, held, system, power_state, (destroy_serial, allow_signatures))
        if power_state is not None:  # refused before anything is stored of a run
            try:
                working_states(target._nvme_drive(), target.name, power_state)
            except TargetError:
                target.close()
                raise
        return target

    @property
    def refusal(self) -> TargetError | None:
        """Error that refuses a run that writes; None for a claimed device."""
        if self._claim is not None:
            return None
        destroy_serial, allow_signatures = self._consent
        refusal = self.protection.refusal(destroy_serial, allow_signatures=allow_signatures)
        return refusal or self.protection.claimable()

    @property
    def disk_name(self) -> str:
        """The kernel's name of the whole disk, for messages."""
        return self.protection.disk.name

    def require_writable(self) -> None:
        """Raise `TargetError` if it must not be written."""
        self._writing_claim()

    def _writing_claim(self) -> Claim:
        if self._claim is None:
            more = f" {SIGNATURE_FLAG}" if self.protection.loss() else ""
            raise TargetError(
                f"{self.name}: opened for reading only; this would write to it",
                hint=f"to overwrite it: {SERIAL_FLAG} {self.protection.confirmation}{more}",
            )
        return self._claim

    def verify(self) -> None:
        """Raise `TargetError` if the path no longer leads to what was opened."""
        if self._claim is not None:
            self._claim.verify()
        else:
            node = self._system.stat_node(Path(self.protection.node))
            if node is None or not node.is_block or node.number != self.protection.device.number:
                raise TargetError(f"{self.name}: no longer the device that was opened")
        if reason := self.trouble():
            raise TargetError(f"{self.name}: {reason}")

    def trouble(self) -> str | None:
        """What is wrong with the drive itself since it was opened, in one phrase."""
        found, device = self.protection, self.protection.device
        if reason := protection.trouble(found.disk):
            return reason
        size = device.size_bytes
        if size == 0:
            # A drive that drops out may keep its node until the last user has closed it.
            return "the drive vanished: it has no capacity any more"
        if size != found.size_bytes:
            return (
                f"the drive changed its size: it has {size} bytes now,"
                f" {found.size_bytes} when it was opened"
            )
        if not found.read_only and (device.read_only or found.disk.read_only):
            return "the drive turned read-only"
        return None

    def io_counts(self) -> tuple[int, int] | None:
        """I/Os that the drive has completed, and those in flight; None if it is not counted."""
        text = read_text(self.protection.disk.directory / "stat")
        if text is None or read_int(self.protection.disk.directory / "queue/iostats") == 0:
            return None
        values = [int(word) for word in text.split()]
        return values[0] + values[4] + sum(values[11:12]) + sum(values[15:16]), values[8]

    def logged(self) -> list[str]:
        """What the kernel has logged about the drive since it was opened or last asked."""
        return self._log.about(self._log_names)

    def identify(self) -> DeviceIdentity:
        disk = self.protection.disk
        found = identity.identify_device(self._system, disk, self.protection.node)
        # A partition is part of a drive: the drive's label, the partition's size.
        return replace(found, target=self.name, capacity_bytes=self.protection.size_bytes)

    def reading(self, *, loaded: bool = False) -> Reading:
        """The machine and the drive now, its counters included. Of a drive under load (`loaded`)
        only what does not disturb it.
        """
        disk, drive = self.protection.disk, self._nvme_drive()
        if self._claim is not None and not self._events_enabled:
            self._enable_events(drive)
        read = vitals.read_under_load if loaded else vitals.read_vitals
        found = read(self._system, disk, self.protection.node, drive)
        reading = Reading(take_sample(self._system, disk.directory), found)
        self._idle = None if loaded else (time.monotonic(), reading)
        return reading

    def reading_before(self) -> Reading:
        """As `reading`, before a load. A drive that was read a moment ago, after the load before,
        is not asked again: only the machine is.
        """
        kept, self._idle = self._idle, None
        if kept is None or time.monotonic() - kept[0] > _FRESH_S:
            reading = self.reading()
            self._idle = None
            return reading
        return Reading(take_sample(self._system, self.protection.disk.directory), kept[1].vitals)

    def _nvme_drive(self) -> NvmeDrive | None:
        """The drive and what is known of it, until its namespace goes another way."""
        disk = self.protection.disk
        if not is_nvme(disk):
            return None
        if self._nvme is None or self._nvme.controllers != controllers_of(disk):
            self._nvme = NvmeDrive(self._system, disk)
        return self._nvme

    def _enable_events(self, drive: NvmeDrive | None) -> None:
        """Before the first step that writes, not on opening: a dry run changes no setting."""
        self._events_enabled = True
        if drive is not None and (note := enable_events(drive)):
            self.notes = (*self.notes, note)

    def health(self) -> Mapping[str, Any] | None:
        return vitals.health_report(self._system, self.protection.disk, self.protection.node)

    def purge(self, on_progress: PurgeHook = unseen) -> PurgeReport:
        held = self._writing_claim()
        held.verify()
        found = self.protection
        self._idle = self._nvme = None
        return purge.purge_device(self._system, found.disk, found.node, held.fd, on_progress)

    def set_write_cache(self, enabled: bool) -> CacheReport:
        self._idle = None
        return cache.set_write_cache(
            self._system, self.protection.disk, self.protection.node, enabled
        )

    def power_states(self, *, settle: bool) -> PowerStates | None:
        """The states of an NVMe drive. To set one is to change the drive: it needs the consent to
        write.
        """
        drive, wanted = self._nvme_drive(), self._power_state
        if wanted is None or not settle:
            found = None if drive is None else power_states(drive)
        else:
            self._writing_claim().verify()
            found = set_power_state(drive, self.name, wanted)
            if self._state_found is None:
                self._state_found = found.before
        return None if found is None else replace(found, before=self._state_found)

    def data_placement(self, fio: Fio) -> DataPlacement | str:
        found = find_data_placement(self._system, fio, self.protection.disk)
        if isinstance(found, str) or found.kind != "hint":
            return found
        try:
            self._nodes = self._nodes or HintNodes(self._system, self.protection.device)
        except OSError as error:
            return f"no device node for each hint: {error.filename}: {error.strerror}"
        return replace(found, nodes=tuple(self._nodes.paths[hint] for hint in found.hints))

    def for_command(self, how: DataPlacement | str) -> Target:
        queue = self.protection.disk.directory / "queue/logical_block_size"
        sector = read_int(queue) or _DEFAULT_SECTOR
        fast = is_nvme(self.protection.disk)
        return Target(self.protection.node, self.protection.size_bytes, sector, False, how, fast)

    def close(self) -> None:
        state, self._state_found = self._state_found, None
        drive = None if state in (None, self._power_state) else self._nvme_drive()
        if state is not None and drive is not None:
            failure = restore_power_state(drive, state)
            if failure:
                print(f"warning: {self.name} stays in power state {self._power_state}, it was in "
                      f"{state}: {failure}", file=sys.stderr)  # fmt: skip
        self._log.close()
        if self._nodes is not None:
            self._nodes.close()
        if self._claim is not None:
            self._claim.close()


class FileBackedTarget(FileTarget):
    """A regular file, locked while it is open."""

    @property
    def name(self) -> str:
        return f"file:{self.path}"

    disk_name = name

    @property
    def _sector_bytes(self) -> int:
        """Sector of the device below the file system, which direct I/O must respect."""
        device = os.fstat(self.fd).st_dev
        number = f"{os.major(device)}:{os.minor(device)}"
        directory = (self.system.sys / "dev/block" / number).resolve()
        for one in (directory, directory.parent):  # a partition has its disk's queue
            sector = read_int(one / "queue/logical_block_size")
            if sector is not None:
                return sector
        return _DEFAULT_SECTOR

    def identify(self) -> DeviceIdentity:
        found = identity.identify_file(self.path, self.size_bytes, self._sector_bytes)
        return replace(found, backing=self.backing)

    def trouble(self) -> str | None:
        """What is wrong with the file since it was opened, in one phrase."""
        size = os.fstat(self.fd).st_size
        if size != self.size_bytes:
            return f"the file has {size} bytes now, {self.size_bytes} when it was opened"
        return None

    def io_counts(self) -> None:
        """Returns None: the disk below also does I/O for others."""

    def logged(self) -> list[str]:
        """Nothing: the kernel does not log errors of files."""
        return []

    def reading(self, *, loaded: bool = False) -> Reading:
        """The machine only: the disk below also does I/O for others."""
        return Reading(take_sample(self.system, None), vitals.Vitals())

    def reading_before(self) -> Reading:
        return self.reading()

    def health(self) -> Mapping[str, Any] | None:
        return None

    def purge(self, on_progress: PurgeHook = unseen) -> PurgeReport:
        return purge.purge_file(self.path, self.fd, self.size_bytes)

    def power_states(self, *, settle: bool) -> None:
        """None: a file has none, and the drive below it is left as it is."""

    def set_write_cache(self, enabled: bool) -> CacheReport:
        return CacheReport(None, "a file: the cache of the drive below it is left as it is")

    def data_placement(self, fio: Fio) -> DataPlacement | str:
        return find_data_placement(self.system, fio, None)

    def for_command(self, how: DataPlacement | str) -> Target:
        return Target(self.path, self.size_bytes, self._sector_bytes, True, how)


FioTarget = DeviceTarget | FileBackedTarget


# -- data placement --------------------------------------------------------------------------------

# Checks whether fio can direct writes to streams or placement handles of a drive.
#
# There are three ways. fio 3.38 and later places writes with its io_uring_cmd engine on the NVMe
# generic device, on drives with flexible data placement or an enabled Streams directive. If the
# kernel's queue has write streams (Linux 6.16), the write hint of a block device is the number of
# the stream. io_uring has since had a stream per I/O, which fio does not use up to 3.42. On a SCSI
# drive with permanent streams, the kernel writes the hint into the group number of the write (Linux
# 6.10). If no way is possible, the reason is returned.

HINT_STREAMS = 5  # RWH_WRITE_LIFE_NONE to _EXTREME are hints 1 to 5


def find_data_placement(system: System, fio: Fio, disk: BlockDevice | None) -> DataPlacement | str:
    """How to steer writes on this drive; a string says why it is not possible."""
    if disk is None:
        return "a file has no streams"
    whole = whole_disk(system, disk)
    found = _passthrough(system, fio, disk) if is_nvme(whole) else ""
    if isinstance(found, DataPlacement):
        return found
    streams = read_int(whole.directory / "queue/max_write_streams") or 0
    if streams:
        return _by_hints((0, *range(2, min(streams, HINT_STREAMS) + 1)))
    if is_scsi(whole):
        return _scsi(system, whole)
    return found or f"{disk.name} is neither an NVMe nor a SCSI drive"


def _scsi(system: System, disk: BlockDevice) -> DataPlacement | str:
    """Streams n = 1 to 5 are the hints of Linux, which become group numbers n."""
    found = read_streams(system.scsi, disk.node(system))
    if not found.steered:
        return f"{disk.name} has no permanent streams that writes could be given to"
    release = os.uname().release
    if _version(release) < KERNEL_SINCE:
        return f"Linux {release} gives SCSI writes no group number; {_text(KERNEL_SINCE)} does"
    return _by_hints(tuple(range(min(found.steered, HINT_STREAMS) + 1)))


def _by_hints(hints: tuple[int, ...]) -> DataPlacement:
    """Streams by their hints. Write stream n of the kernel's is placement handle n - 1 of an NVMe
    drive (`nvme_setup_rw`, Linux 6.16), and handle 0 takes what names no stream: so stream 1, which
    passthrough gives to handle 1, is hint 2.
    """
    return DataPlacement("hint", "", len(hints), hints=hints)


def _version(release: str) -> Version:
    major, minor = (int(word) for word in re.findall(r"\d+", release)[:2])
    return major, minor


def _passthrough(system: System, fio: Fio, disk: BlockDevice) -> DataPlacement | str:
    if fio.version < PLIDS_SINCE:
        return f"{fio.version_text} cannot place writes; {_text(PLIDS_SINCE)} or later can"
    if fio.ioengine != "io_uring":
        return f"passthrough needs io_uring, which {fio.version_text} or this kernel does not allow"
    generic = generic_device(system, disk)
    if generic is None:
        return f"the kernel offers no generic device for {disk.name}"
    found = ask_nvme(system, disk)
    if found.fdp_handles:
        return DataPlacement("fdp", str(generic), found.fdp_handles)
    available = usable_streams(found.streams) if found.streams else 0
    if available:
        return DataPlacement("streams", str(generic), available + 1)
    return "; ".join(found.notes) or "the drive has neither flexible data placement nor streams"


def _text(version: Version) -> str:
    return ".".join(map(str, version))


# -- block devices of write hints ------------------------------------------------------------------

# One device node per write hint, so that jobs with different hints do not share an inode.
#
# Linux keeps the hint of F_SET_RW_HINT in the inode, so all jobs that open the same node write with
# the hint that was set last, whatever their `write_hint` (fio 3.37 and later set hints so). Direct
# writes use the hint of the inode through which the device was opened (`file_inode`, block/fops.c
# from Linux 6.10), so one node per hint, made with mknod, separates them. This module sets the
# hints once, so any version of fio works.

HINTS = 6  # RWH_WRITE_LIFE_NOT_SET, _NONE, _SHORT, _MEDIUM, _LONG, _EXTREME
_SET_RW_HINT = 1036  # fcntl of the inode
_NAME = re.compile(r"^writecliff-(\d+)-")


class HintNodes:
    """Nodes in a folder of /dev. `paths[n]` is the node whose writes have hint n."""

    def __init__(self, system: System, device: BlockDevice) -> None:
        """Raises OSError where nodes cannot be made or the kernel refuses hints."""
        _remove_stale(system.dev)
        self._folder = Path(tempfile.mkdtemp(prefix=f"writecliff-{os.getpid()}-", dir=system.dev))
        try:
            self.paths = tuple(self._make(device, hint) for hint in range(HINTS))
        except OSError:
            self.close()
            raise

    def _make(self, device: BlockDevice, hint: int) -> str:
        path = self._folder / f"{device.name.replace('!', '-')}-hint-{hint}"
        os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(*device.number))
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.fcntl(fd, _SET_RW_HINT, struct.pack("=Q", hint))
        finally:
            os.close(fd)
        return str(path)

    def close(self) -> None:
        """Remove the nodes. Safe to call again."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _remove_stale(dev: Path) -> None:
    """Remove the nodes of processes that were killed."""
    for folder in dev.glob("writecliff-*"):
        owner = _NAME.match(folder.name)
        if owner is not None and not Path("/proc", owner[1]).exists():
            shutil.rmtree(folder, ignore_errors=True)
