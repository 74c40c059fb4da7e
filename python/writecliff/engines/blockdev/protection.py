"""Protection of real drives by checks for existing data, user consent, and exclusive use.

writecliff writes to a device only if all of the following conditions hold:

* the path is the kernel's node of a block device (exact device number) and of a whole disk, not a
  partition;
* the disk responds, is not read-only, accepts writes at any address (not host-managed zoned) and is
  not below the root file system;
* neither the disk nor a partition is mounted in any mount namespace, used as swap, part of md, dm,
  LVM, bcache or another holder, behind a loop device, exported by the kernel's NVMe or SCSI target,
  or open in another process;
* these conditions also hold for other paths to the same drive, and for the device that a loop
  device maps; no other loop or dm device maps the same bytes;
* the disk has no signature (partition table, file system, RAID, LVM, ZFS, LUKS), unless a second,
  longer option allows the signatures to be lost;
* the user repeated the drive's serial number (or, for a device without one, its full path);
* the kernel granted exclusive use of every partition and neighbour in turn, then of the whole disk,
  which stays open with O_EXCL until the end of the run. Therefore, other programs cannot mount the
  disk or create devices on it, but fio can use the disk because fio does not open it with O_EXCL.

Symbolic links are resolved once, when the device is inspected. After this, only the resolved node
is used. A `TargetError` names the reason, and is raised before anything is written.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path

from writecliff import units
from writecliff.engines.blockdev import ata_erase
from writecliff.engines.blockdev.identity import is_ata
from writecliff.engines.blockdev.relatives import dm_name
from writecliff.engines.blockdev.signatures import ACCESS_HINT, Signature, signatures_of
from writecliff.engines.blockdev.topology import (
    BlockDevice,
    Label,
    System,
    device_at,
    label_of,
    read_int,
    read_text,
    whole_disk,
)
from writecliff.engines.blockdev.usage import Use, in_use, neighbours, uses_of
from writecliff.errors import TargetError

SERIAL_FLAG = "--destroy"
SIGNATURE_FLAG = "--wipe-signatures"


@dataclass(frozen=True)
class Protection:
    """Device properties, read by `inspect`, that determine whether the device may be written."""

    path: str  # Path as the user named it.
    node: str  # Device node that the path refers to.
    device: BlockDevice
    disk: BlockDevice
    label: Label
    size_bytes: int
    read_only: bool
    partitions: tuple[BlockDevice, ...]
    signatures: tuple[Signature, ...]
    uses: tuple[Use, ...]
    system: System = field(repr=False, compare=False, default_factory=System)

    @property
    def confirmation(self) -> str:
        """Text that the user repeats to give consent: the serial number, or else the full path."""
        return self.label.serial or self.node

    @property
    def has_serial(self) -> bool:
        """True if the drive reports a serial number."""
        return self.label.serial is not None

    def loss(self) -> tuple[str, ...]:
        """Return a line for each partition and signature that would be lost."""
        lines = [
            f"partition {part.name} ({units.size(part.size_bytes)})" for part in self.partitions
        ]
        return (*lines, *(str(signature) for signature in self.signatures))

    def _is_own_node(self) -> bool:
        """Return True if the kernel or libdevmapper created this device node."""
        nodes = {str(self.device.node(self.system))}
        if name := dm_name(self.device):
            nodes.add(str(self.system.dev / "mapper" / name))
        return self.node in nodes

    def refusal(self, destroy_serial: str | None, *, allow_signatures: bool) -> TargetError | None:
        """Return the error that writing to the device would raise, or None if writing is allowed.

        If there is no consent (`destroy_serial` is `None`), reasons that consent cannot override
        are reported first.
        """
        if self.device.is_partition:
            return TargetError(
                f"{self.path} is a partition; only whole drives can be tested",
                hint=f"specify the whole disk {self.disk.node(self.system)}, or file:PATH",
            )
        if self.uses:
            return in_use(self.path, self.uses)
        if not self._is_own_node():
            return TargetError(
                f"{self.path}: {self.node} is another device node for {self.device.name}",
                hint=f"specify {self.device.node(self.system)}, or a link to it",
            )
        if self.size_bytes == 0:
            return TargetError(
                f"{self.path} has a size of 0 bytes, because it contains no medium",
                hint="insert or attach a medium",
            )
        if self.read_only:
            return TargetError(
                f"{self.path}: read-only",
                hint="remove the write protection (if set in software: blockdev --setrw)",
            )
        if read_text(self.disk.directory / "queue/zoned") == "host-managed":
            return TargetError(
                f"{self.path} is a host-managed zoned drive, which does not accept random writes",
                hint="host-managed drives are not supported",
            )
        if destroy_serial is None:
            return self._without_consent()
        if destroy_serial != self.confirmation and (self.has_serial or destroy_serial != self.path):
            what = "serial" if self.has_serial else "path (it has no serial)"
            return TargetError(
                f"{self.path}: {SERIAL_FLAG} {destroy_serial!r} is not this device's {what}",
                hint=f"the device's {what} is {self.confirmation}; check that this is the "
                f"intended drive",
            )
        if (self.signatures or self.partitions) and not allow_signatures:
            return TargetError(
                f"{self.path} is not empty: {'; '.join(self.loss())}",
                hint=f"to erase all of its contents, add {SIGNATURE_FLAG}",
            )
        return None

    def _without_consent(self) -> TargetError:
        words = (self.label.vendor, self.label.model)
        who = " ".join(filter(None, words)) or "a drive"
        number = f"serial number {self.label.serial}" if self.has_serial else "no serial number"
        what = "serial number" if self.has_serial else "path"
        more = f" {SIGNATURE_FLAG}" if self.loss() else ""
        size = units.size(self.size_bytes)
        return TargetError(
            f"this run destroys all data on {self.path} ({who}, {size}, {number})",
            hint=f"confirm with the drive's {what}: {SERIAL_FLAG} {self.confirmation}{more}",
        )

    def claimable(self) -> TargetError | None:
        """Return the error for exclusive use, or None if the kernel would grant it.

        The function opens each device for reading, closes the device immediately, and changes
        nothing.
        """
        nodes = [self.disk.node(self.system)]
        for part in (*self.partitions, *neighbours(self.system, self.disk)):
            if part.size_bytes and self.system.stat_node(part.node(self.system)) is not None:
                nodes.append(part.node(self.system))
        try:
            for node in nodes:
                os.close(_open_exclusive(node, os.O_RDONLY))
        except TargetError as error:
            return error
        late = uses_of(self.system, self.disk, processes=True)
        return in_use(self.path, late) if late else None


def inspect(path: str | Path, system: System | None = None) -> Protection:
    """Inspect a block device, and change nothing.

    Raises:
        TargetError: If the path does not exist or is not a block device, or if the device contents
            cannot be read.
    """
    system = system or System()
    node = os.path.realpath(path)
    device = device_at(system, Path(node), str(path))
    disk = whole_disk(system, device)
    parts = disk.partitions()
    nodes = [Path(node)] if device == disk else [disk.node(system)]
    nodes += [part.node(system) for part in parts]
    uses = uses_of(system, disk)
    reason = trouble(disk)
    if reason is not None and not uses:
        raise TargetError(f"{path}: {reason}", hint="reconnect the drive, then start again")
    # A read from an unresponsive device may never return.
    readable = nodes if device.size_bytes and reason is None else []
    try:
        signatures = [signature for node in readable for signature in _signatures(system, node)]
    except TargetError:
        if not uses:
            if is_ata(disk):
                ata_erase.refuse_locked(system.run, str(path), node)
            raise
        signatures = []  # A device in use is rejected regardless of its contents.
    return Protection(
        path=str(path),
        node=node,
        device=device,
        disk=disk,
        label=label_of(disk),
        size_bytes=device.size_bytes,
        read_only=device.read_only or disk.read_only,
        partitions=parts,
        signatures=tuple(signatures),
        uses=uses,
        system=system,
    )


def _signatures(system: System, node: Path) -> tuple[Signature, ...]:
    """Return the signatures on a device node."""
    if system.stat_node(node) is None:
        # In containers, where a partition may have no device node, the existence of the partition
        # already counts as content.
        return ()
    return signatures_of(system, node)


class Claim:
    """Exclusive use of a whole disk until `close` (ioctls use the descriptor `fd`)."""

    def __init__(self, fd: int, inspected: Protection) -> None:
        """Hold the exclusive descriptor of an inspected disk (see `claim`)."""
        self.fd = fd
        self._inspected = inspected

    def verify(self, *, processes: bool = False) -> None:
        """Raise TargetError unless the node is the claimed device and no other program uses it.

        Exclusive use covers the device itself, but not a loop device's backing file.
        """
        opened_as, disk = self._inspected, self._inspected.disk
        opened = os.fstat(self.fd).st_rdev
        node = opened_as.system.stat_node(Path(opened_as.node))
        seen = node.number if node is not None and node.is_block else None
        if not (os.major(opened), os.minor(opened)) == disk.number == seen:
            raise TargetError(f"{opened_as.path} is no longer the device that was claimed")
        if late := uses_of(opened_as.system, disk, processes=processes):
            raise in_use(opened_as.path, late)

    def close(self) -> None:
        """Release the disk (further calls have no effect)."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _open_exclusive(path: str | Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_EXCL | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise TargetError(
                f"{path} is in use: the kernel refuses exclusive access",
                hint="a mount that no process sees, a file system's journal or additional device, "
                "ZFS, DRBD or a SCSI target may use it: stop that first",
            ) from error
        hint = ACCESS_HINT if error.errno == errno.EACCES else None
        raise TargetError(f"cannot open {path}: {error.strerror}", hint=hint) from error


def claim(
    path: str | Path,
    destroy_serial: str,
    *,
    allow_signatures: bool = False,
    system: System | None = None,
) -> tuple[Protection, Claim]:
    """Inspect a device and claim it exclusively for writing, but write nothing.

    Raises:
        TargetError: If a condition in the module docstring is not met.
    """
    system = system or System()
    inspected = inspect(path, system)
    refusal = inspected.refusal(destroy_serial, allow_signatures=allow_signatures)
    if refusal is not None:
        raise refusal
    if is_ata(inspected.disk):
        ata_erase.clear_password(system.run, inspected.node)
    for part in (*inspected.partitions, *neighbours(system, inspected.disk)):
        # Open and close each device in turn, because an open partition would prevent an exclusive
        # open of the disk.
        if part.size_bytes and system.stat_node(part.node(system)) is not None:
            os.close(_open_exclusive(part.node(system), os.O_RDONLY))
    held = Claim(_open_exclusive(inspected.node, os.O_RDWR), inspected)
    try:
        # Another program may have opened the device before the exclusive open.
        held.verify(processes=True)
    except BaseException:
        held.close()
        raise
    return inspected, held


# -- drive availability ----------------------------------------------------------------------------

# The code only reads sysfs, because a drive that no longer responds must not receive commands.

# States where the controller responds or will soon respond ("resetting", "connecting").
_ANSWERS = ("running", "live", "new", "created", "resetting", "connecting")


def trouble(disk: BlockDevice) -> str | None:
    """Return a phrase that explains why a whole disk does not respond, or None if unknown."""
    if not disk.directory.is_dir():
        return "the drive vanished: the kernel has removed the device"
    if read_int(disk.directory / "dm/suspended") == 1:
        return "suspended by device mapper: I/Os are not processed"
    states = {
        path.parent.name: state
        for path in (disk.directory / "device/state", *disk.directory.glob("device/nvme*/state"))
        if (state := read_text(path)) is not None
    }
    if states and all(state not in _ANSWERS for state in states.values()):
        return f"the kernel cannot reach the drive: its state is {', '.join(states.values())}"
    return None
