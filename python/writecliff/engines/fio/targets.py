"""Targets of `FioEngine`: block devices and regular files.

A target is opened once, after symbolic links are resolved, and holds the device or file until the
target is closed.
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
_FRESH_S = 5.0  # Maximum age of a reading that the next step reuses.


class DeviceTarget:
    """A block device, claimed exclusively for writing or opened read-only.

    `name` is the path as the user wrote it, and `notes` are remarks that are stored with every
    step.
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
        """Use a checked device, where `held` is the claim for writing. See `open`."""
        self.name = protection.path
        self._power_state = power_state  # Requested power state.
        self._original_state: int | None = None  # Power state before the run.
        self.protection = protection
        self._claim = held
        self._consent = consent  # Serial number, and the user's consent to erase signatures.
        self._system = system
        self._log = KernelLog()
        self._log_names = names_in_log(protection.disk)
        self._nodes: HintNodes | None = None
        self._events_enabled = False
        self._nvme: NvmeDrive | None = None
        # Latest reading while the drive was idle, and the time of that reading.
        self._idle: tuple[float, Reading] | None = None

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
        """Open a device, claimed for writing if consent is given, or else read-only.

        Raises:
            TargetError: If the device must not be used, or lacks the requested power state.
        """
        if destroy_serial is None or look_only:
            guarded, held = inspect(path, system), None
        else:
            guarded, held = claim(
                path, destroy_serial, allow_signatures=allow_signatures, system=system
            )
        target = cls(guarded, held, system, power_state, (destroy_serial, allow_signatures))
        if power_state is not None:  # Check the power state before the run stores any file.
            try:
                working_states(target._nvme_drive(), target.name, power_state)
            except TargetError:
                target.close()
                raise
        return target

    @property
    def refusal(self) -> TargetError | None:
        """Error that a write run would raise, or None for a claimed device."""
        if self._claim is not None:
            return None
        destroy_serial, allow_signatures = self._consent
        refusal = self.protection.refusal(destroy_serial, allow_signatures=allow_signatures)
        return refusal or self.protection.claimable()

    @property
    def disk_name(self) -> str:
        """Kernel name of the whole disk, for use in messages."""
        return self.protection.disk.name

    def require_writable(self) -> None:
        """Raise TargetError if the target must not be written."""
        self._writing_claim()

    def _writing_claim(self) -> Claim:
        if self._claim is None:
            more = f" {SIGNATURE_FLAG}" if self.protection.loss() else ""
            raise TargetError(
                f"{self.name} is open for reading only, but this test writes",
                hint=f"to overwrite the drive, add {SERIAL_FLAG} "
                f"{self.protection.confirmation}{more}",
            )
        return self._claim

    def verify(self) -> None:
        """Raise TargetError if the path no longer refers to the opened device."""
        if self._claim is not None:
            self._claim.verify()
        else:
            node = self._system.stat_node(Path(self.protection.node))
            if node is None or not node.is_block or node.number != self.protection.device.number:
                raise TargetError(f"{self.name} is no longer the device that was opened")
        if reason := self.trouble():
            raise TargetError(f"{self.name}: {reason}")

    def trouble(self) -> str | None:
        """Return a phrase that describes any fault of the drive since it was opened, else None."""
        opened, device = self.protection, self.protection.device
        if reason := protection.trouble(opened.disk):
            return reason
        size = device.size_bytes
        if size == 0:
            # A removed drive may keep its device node until the last user closes it.
            return "the drive vanished: its capacity is now 0"
        if size != opened.size_bytes:
            return (
                f"the drive changed its size: it has {size} bytes now,"
                f" {opened.size_bytes} when it was opened"
            )
        if not opened.read_only and (device.read_only or opened.disk.read_only):
            return "the drive turned read-only"
        return None

    def io_counts(self) -> tuple[int, int] | None:
        """Return the counts of completed and in-flight I/Os, or None if they are not counted."""
        text = read_text(self.protection.disk.directory / "stat")
        if text is None or read_int(self.protection.disk.directory / "queue/iostats") == 0:
            return None
        values = [int(word) for word in text.split()]
        return values[0] + values[4] + sum(values[11:12]) + sum(values[15:16]), values[8]

    def logged(self) -> list[str]:
        """Return kernel messages about the drive since the previous call or the opening."""
        return self._log.about(self._log_names)

    def identify(self) -> DeviceIdentity:
        """Return the drive's identity, with the partition's size if the device is a partition."""
        disk = self.protection.disk
        whole = identity.identify_device(self._system, disk, self.protection.node)

        return replace(whole, target=self.name, capacity_bytes=self.protection.size_bytes)

    def reading(self, *, loaded: bool = False) -> Reading:
        """Read the machine and drive state, including the drive's counters.

        Under load (`loaded`), only values whose commands do not disturb the drive are read.
        """
        disk, drive = self.protection.disk, self._nvme_drive()
        if self._claim is not None and not self._events_enabled:
            self._enable_events(drive)
        read = vitals.read_under_load if loaded else vitals.read_vitals
        values = read(self._system, disk, self.protection.node, drive)
        reading = Reading(take_sample(self._system, disk.directory), values)
        self._idle = None if loaded else (time.monotonic(), reading)
        return reading

    def reading_before(self) -> Reading:
        """Return a reading taken before a load.

        The drive's values are reused if they were read seconds ago, after the previous load.
        """
        latest, self._idle = self._idle, None
        if latest is None or time.monotonic() - latest[0] > _FRESH_S:
            reading = self.reading()
            self._idle = None
            return reading
        return Reading(take_sample(self._system, self.protection.disk.directory), latest[1].vitals)

    def _nvme_drive(self) -> NvmeDrive | None:
        """Return the NVMe drive with cached properties, refreshed after controller changes."""
        disk = self.protection.disk
        if not is_nvme(disk):
            return None
        if self._nvme is None or self._nvme.controllers != controllers_of(disk):
            self._nvme = NvmeDrive(self._system, disk)
        return self._nvme

    def _enable_events(self, drive: NvmeDrive | None) -> None:
        """Enable FDP events before the first step that writes, so that dry runs change nothing."""
        self._events_enabled = True
        if drive is not None and (note := enable_events(drive)):
            self.notes = (*self.notes, note)

    def health(self) -> Mapping[str, Any] | None:
        """Return the SMART data as plain values, or None if the drive reports no SMART data."""
        return vitals.health_report(self._system, self.protection.disk, self.protection.node)

    def purge(self, on_progress: PurgeHook = unseen) -> PurgeReport:
        """Purge the drive (see `purge_device`)."""
        held = self._writing_claim()
        held.verify()
        opened = self.protection
        self._idle = self._nvme = None
        return purge.purge_device(self._system, opened.disk, opened.node, held.fd, on_progress)

    def set_write_cache(self, enabled: bool) -> CacheReport:
        """Enable or disable the drive's volatile write cache."""
        self._idle = None
        return cache.set_write_cache(
            self._system, self.protection.disk, self.protection.node, enabled
        )

    def power_states(self, *, settle: bool) -> PowerStates | None:
        """Return an NVMe drive's power states, after setting the requested state if `settle`.

        Setting a power state changes the drive, so it requires consent to write.
        """
        drive, wanted = self._nvme_drive(), self._power_state
        if wanted is None or not settle:
            states = None if drive is None else power_states(drive)
        else:
            self._writing_claim().verify()
            states = set_power_state(drive, self.name, wanted)
            if self._original_state is None:
                self._original_state = states.before
        return None if states is None else replace(states, before=self._original_state)

    def data_placement(self, fio: Fio) -> DataPlacement | str:
        """Return the method of placing writes in streams, or the reason why none is available."""
        placement = find_data_placement(self._system, fio, self.protection.disk)
        if isinstance(placement, str) or placement.kind != "hint":
            return placement
        try:
            self._nodes = self._nodes or HintNodes(self._system, self.protection.device)
        except OSError as error:
            return f"cannot create device nodes for hints: {error.filename}: {error.strerror}"
        return replace(placement, nodes=tuple(self._nodes.paths[hint] for hint in placement.hints))

    def for_command(self, how: DataPlacement | str) -> Target:
        """Return the properties that job files depend on, with `how` as from `data_placement`."""
        queue = self.protection.disk.directory / "queue/logical_block_size"
        sector = read_int(queue) or _DEFAULT_SECTOR
        fast = is_nvme(self.protection.disk)
        return Target(self.protection.node, self.protection.size_bytes, sector, False, how, fast)

    def close(self) -> None:
        """Restore the original power state, and release the device."""
        state, self._original_state = self._original_state, None
        drive = None if state in (None, self._power_state) else self._nvme_drive()
        if state is not None and drive is not None:
            failure = restore_power_state(drive, state)
            if failure:
                print(f"warning: {self.name} remains in power state {self._power_state}, because "
                f"state {state} could not be restored: {failure}", file=sys.stderr)  # fmt: skip
        self._log.close()
        if self._nodes is not None:
            self._nodes.close()
        if self._claim is not None:
            self._claim.close()


class FileBackedTarget(FileTarget):
    """A regular file, locked while it is open."""

    @property
    def name(self) -> str:
        """Target name in the user's form, "file:PATH"."""
        return f"file:{self.path}"

    disk_name = name

    @property
    def _sector_bytes(self) -> int:
        """Sector size in bytes of the file system's device, for aligned direct I/O."""
        device = os.fstat(self.fd).st_dev
        number = f"{os.major(device)}:{os.minor(device)}"
        directory = (self.system.sys / "dev/block" / number).resolve()
        for folder in (directory, directory.parent):  # A partition uses the queue of its disk.
            sector = read_int(folder / "queue/logical_block_size")
            if sector is not None:
                return sector
        return _DEFAULT_SECTOR

    def identify(self) -> DeviceIdentity:
        """Return the file's identity."""
        whole = identity.identify_file(self.path, self.size_bytes, self._sector_bytes)
        return replace(whole, backing=self.backing)

    def trouble(self) -> str | None:
        """Return a phrase that describes any fault of the file since it was opened, else None."""
        size = os.fstat(self.fd).st_size
        if size != self.size_bytes:
            return f"the file has {size} bytes now, {self.size_bytes} when it was opened"
        return None

    def io_counts(self) -> None:
        """Return None, because the disk below the file also serves other programs."""

    def logged(self) -> list[str]:
        """Return no messages, because the kernel does not log file errors."""
        return []

    def reading(self, *, loaded: bool = False) -> Reading:
        """Read only the machine's state, because the disk also serves other programs."""
        return Reading(take_sample(self.system, None), vitals.Vitals())

    def reading_before(self) -> Reading:
        """Return a reading taken before a load."""
        return self.reading()

    def health(self) -> Mapping[str, Any] | None:
        """Return None, because a file has no SMART data."""
        return None

    def purge(self, on_progress: PurgeHook = unseen) -> PurgeReport:
        """Deallocate the file's blocks."""
        return purge.purge_file(self.path, self.fd, self.size_bytes)

    def power_states(self, *, settle: bool) -> None:
        """Return None, because the power state of the drive below the file is not changed."""

    def set_write_cache(self, enabled: bool) -> CacheReport:
        """Do nothing, which leaves the write cache of the drive below the file unchanged."""
        return CacheReport(None, "a file: the cache of the drive below it is not changed")

    def data_placement(self, fio: Fio) -> DataPlacement | str:
        """Return the reason why writes to a file cannot be placed."""
        return find_data_placement(self.system, fio, None)

    def for_command(self, how: DataPlacement | str) -> Target:
        """Return the properties that job files depend on."""
        return Target(self.path, self.size_bytes, self._sector_bytes, True, how)


FioTarget = DeviceTarget | FileBackedTarget


# -- data placement --------------------------------------------------------------------------------

# fio has three ways to direct writes to a drive's streams or placement handles. fio 3.38 and later
# places writes with its io_uring_cmd engine on the NVMe generic device, if the drive has flexible
# data placement or an enabled Streams directive. If the kernel's block queue has write streams
# (Linux 6.16), a block device's write hint selects the stream. fio up to version 3.42 does not use
# the per-I/O stream that io_uring has provided since Linux 6.16. For a SCSI drive that has
# permanent streams, the kernel writes the hint into the write's group number (Linux 6.10).

HINT_STREAMS = 5  # Hints RWH_WRITE_LIFE_NONE to _EXTREME have the values 1 to 5.


def find_data_placement(system: System, fio: Fio, disk: BlockDevice | None) -> DataPlacement | str:
    """Return the method of placing writes on this drive, or the reason why there is none."""
    if disk is None:
        return "a file has no streams"
    whole = whole_disk(system, disk)
    placement = _passthrough(system, fio, disk) if is_nvme(whole) else ""
    if isinstance(placement, DataPlacement):
        return placement
    streams = read_int(whole.directory / "queue/max_write_streams") or 0
    if streams:
        return _by_hints((0, *range(2, min(streams, HINT_STREAMS) + 1)))
    if is_scsi(whole):
        return _scsi(system, whole)
    return placement or f"{disk.name} is neither an NVMe nor a SCSI drive"


def _scsi(system: System, disk: BlockDevice) -> DataPlacement | str:
    """Return streams 1 to 5, which Linux hints select as the group numbers of writes."""
    streams = read_streams(system.scsi, disk.node(system))
    if not streams.steered:
        return f"{disk.name} has no permanent streams to which writes could be directed"
    release = os.uname().release
    if _version(release) < KERNEL_SINCE:
        return (
            f"Linux {release} does not set group numbers of SCSI writes; {_text(KERNEL_SINCE)} does"
        )
    return _by_hints(tuple(range(min(streams.steered, HINT_STREAMS) + 1)))


def _by_hints(hints: tuple[int, ...]) -> DataPlacement:
    """Return a map from streams to hints.

    The kernel's write stream n uses placement handle n - 1 of an NVMe drive (`nvme_setup_rw`, Linux
    6.16). Placement handle 0 receives writes that specify no stream. Stream 1, which passthrough
    directs to handle 1, therefore uses hint 2.
    """
    return DataPlacement("hint", "", len(hints), hints=hints)


def _version(release: str) -> Version:
    major, minor = (int(word) for word in re.findall(r"\d+", release)[:2])
    return major, minor


def _passthrough(system: System, fio: Fio, disk: BlockDevice) -> DataPlacement | str:
    if fio.version < PLIDS_SINCE:
        return f"{fio.version_text} cannot place writes; install {_text(PLIDS_SINCE)} or later"
    if fio.ioengine != "io_uring":
        return f"passthrough needs io_uring, which {fio.version_text} or this kernel does not allow"
    generic = generic_device(system, disk)
    if generic is None:
        return f"the kernel has no generic device for {disk.name}"
    answers = ask_nvme(system, disk)
    if answers.fdp_handles:
        return DataPlacement("fdp", str(generic), answers.fdp_handles)
    available = usable_streams(answers.streams) if answers.streams else 0
    if available:
        return DataPlacement("streams", str(generic), available + 1)
    return "; ".join(answers.notes) or "the drive has neither flexible data placement nor streams"


def _text(version: Version) -> str:
    return ".".join(map(str, version))


# -- block device nodes for write hints ------------------------------------------------------------

# Each write hint has a separate device node, because jobs with different hints must not share an
# inode.
#
# Linux stores the hint of F_SET_RW_HINT in the inode. Therefore, all jobs that open the same node
# write with the most recently set hint, regardless of their `write_hint` (fio 3.37 and later).
# Direct writes use the hint of the inode through which the device was opened (`file_inode`,
# block/fops.c from Linux 6.10), so a node per hint, created with mknod, separates the hints. This
# module sets the hints, so any version of fio works.

HINTS = 6  # Number of hints: RWH_WRITE_LIFE_NOT_SET, _NONE, _SHORT, _MEDIUM, _LONG, _EXTREME.
_SET_RW_HINT = 1036  # fcntl command that sets the inode's hint.
_NAME = re.compile(r"^writecliff-(\d+)-")


class HintNodes:
    """Device nodes in a folder below /dev, where writes to `paths[n]` have hint n."""

    def __init__(self, system: System, device: BlockDevice) -> None:
        """Create the device nodes, and set their hints.

        Raises:
            OSError: If nodes cannot be created, or the kernel rejects hints.
        """
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
        """Remove the device nodes (further calls have no effect)."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _remove_stale(dev: Path) -> None:
    """Remove device nodes left behind by killed processes."""
    for folder in dev.glob("writecliff-*"):
        owner = _NAME.match(folder.name)
        if owner is not None and not Path("/proc", owner[1]).exists():
            shutil.rmtree(folder, ignore_errors=True)
