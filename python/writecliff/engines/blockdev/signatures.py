"""Signatures on a device: partition tables, file systems, and RAID, LVM, ZFS and LUKS members.

libblkid (`blkid -p`) detects the most formats. If blkid is missing, a table of magic numbers is
used, whose longer magics also supplement blkid.

Offsets and magic values are taken from the format definitions. For ext, the superblock is at 1024 +
0x38; XFS, LUKS and NTFS use the first bytes; LVM2 has a label in one of the first four sectors; md
has its 1.x superblock at 0, 4 KiB or 8 KiB before the end; and ZFS has uberblocks in the label's
second half.
"""

from __future__ import annotations

import errno
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from writecliff.engines.blockdev.topology import System
from writecliff.errors import TargetError

KIB = 1024
ACCESS_HINT = "run writecliff as root or as a member of the group 'disk'"


@dataclass(frozen=True)
class Signature:
    """A data signature on a device."""

    device: str  # Path of the device node.
    kind: str  # Kind: "partition table", "filesystem", "raid", "crypto" or "other".
    name: str  # Format name: "dos", "gpt", "ext4", "LVM2_member", ...

    def __str__(self) -> str:
        """Return the signature as text, such as "ext4 filesystem on /dev/sda"."""
        return f"{self.name} {self.kind} on {self.device}"


@dataclass(frozen=True)
class _Magic:
    kind: str
    name: str
    offset: int  # Offset in bytes; negative offsets count from the device end.
    value: bytes


_MAGICS: tuple[_Magic, ...] = (
    _Magic("partition table", "gpt", 512, b"EFI PART"),
    # GPT on drives with 4 KiB logical sectors.
    _Magic("partition table", "gpt", 4 * KIB, b"EFI PART"),
    _Magic("partition table", "gpt", -512, b"EFI PART"),  # Backup GPT header.
    _Magic("partition table", "gpt", -4 * KIB, b"EFI PART"),
    _Magic("partition table", "dos", 510, b"\x55\xaa"),
    _Magic("filesystem", "ext2/3/4", 1080, b"\x53\xef"),
    _Magic("filesystem", "xfs", 0, b"XFSB"),
    _Magic("filesystem", "btrfs", 64 * KIB + 64, b"_BHRfS_M"),
    _Magic("filesystem", "f2fs", 1024, b"\x10\x20\xf5\xf2"),
    _Magic("filesystem", "ntfs", 3, b"NTFS    "),
    _Magic("filesystem", "exfat", 3, b"EXFAT   "),
    _Magic("filesystem", "vfat", 82, b"FAT32   "),
    _Magic("filesystem", "vfat", 54, b"FAT1"),
    _Magic("filesystem", "squashfs", 0, b"hsqs"),
    _Magic("filesystem", "iso9660", 32 * KIB + 1, b"CD001"),
    _Magic("crypto", "crypto_LUKS", 0, b"LUKS\xba\xbe"),
    _Magic("raid", "linux_raid_member", 0, b"\xfc\x4e\x2b\xa9"),
    _Magic("raid", "linux_raid_member", 4 * KIB, b"\xfc\x4e\x2b\xa9"),
    _Magic("raid", "linux_raid_member", -8 * KIB, b"\xfc\x4e\x2b\xa9"),
    # md superblock version 0.90, at the aligned end of the device.
    _Magic("raid", "linux_raid_member", -64 * KIB, b"\xfc\x4e\x2b\xa9"),
    _Magic("raid", "bcache or bcachefs", 4 * KIB + 24, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca"),
    *(_Magic("raid", "LVM2_member", n * 512, b"LABELONE") for n in range(4)),
    *(_Magic("other", "swap", page - 10, b"SWAPSPACE2") for page in (4 * KIB, 16 * KIB, 64 * KIB)),
    _Magic("other", "bluestore", 0, b"bluestore block device"),
    _Magic("other", "drbd", -4 * KIB + 60, b"\x83\x74\x02\x6b"),
)
_WEAK_NAMES = frozenset(magic.name for magic in _MAGICS if len(magic.value) < 4)
_ZFS_UBERBLOCKS = (struct.pack("<Q", 0x00BAB10C), struct.pack(">Q", 0x00BAB10C))
_ZFS_RING = (128 * KIB, 256 * KIB)
_HEAD_BYTES = 256 * KIB
_TAIL_BYTES = 256 * KIB


def magic_signatures(fd: int, device: str) -> tuple[Signature, ...]:
    """Search the first and last 256 KiB of an open device or file for known magics."""
    size = os.lseek(fd, 0, os.SEEK_END)
    head = os.pread(fd, min(size, _HEAD_BYTES), 0)
    tail_start = max(0, size - _TAIL_BYTES)
    tail = os.pread(fd, size - tail_start, tail_start)
    signatures: dict[tuple[str, str], Signature] = {}
    for magic in _MAGICS:
        data, offset = (
            (head, magic.offset) if magic.offset >= 0 else (tail, len(tail) + magic.offset)
        )
        if offset >= 0 and data[offset : offset + len(magic.value)] == magic.value:
            key = (magic.kind, magic.name)
            signatures.setdefault(key, Signature(device, magic.kind, magic.name))
    if _has_zfs_uberblock(head):
        signatures["raid", "zfs_member"] = Signature(device, "raid", "zfs_member")
    return tuple(signatures.values())


def _has_zfs_uberblock(head: bytes) -> bool:
    """Return True if the first ZFS label's ring contains an uberblock in either byte order."""
    return any(head[offset : offset + 8] in _ZFS_UBERBLOCKS for offset in range(*_ZFS_RING, KIB))


def blkid_signatures(system: System, device: Path) -> tuple[Signature, ...] | None:
    """Return the signatures that libblkid finds on the device, or None if blkid is not installed.

    Raises:
        TargetError: If blkid failed. In this case, the device does not count as empty.
    """
    answer = system.run(["blkid", "-p", "-o", "export", str(device)])
    if answer.absent:
        return None
    if answer.returncode == 2:  # Documented exit status if no signature exists.
        return ()
    if answer.returncode == 8:
        return (Signature(str(device), "other", "several contradicting signatures"),)
    if not answer.ok:
        raise TargetError(
            f"{device}: blkid cannot determine the contents: {answer.message}",
            hint="see `blkid -p` and `dmesg`; until blkid succeeds, the device counts as not empty",
        )
    tags = dict(line.split("=", 1) for line in answer.stdout.splitlines() if "=" in line)
    signatures = []
    if "PTTYPE" in tags:
        signatures.append(Signature(str(device), "partition table", tags["PTTYPE"]))
    if "TYPE" in tags:
        usage = tags.get("USAGE", "other")
        signatures.append(Signature(str(device), usage, tags["TYPE"]))
    return tuple(signatures)


def signatures_of(system: System, device: Path) -> tuple[Signature, ...]:
    """Return all signatures on a device node, from libblkid and the magic number table."""
    try:
        fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
        try:
            by_magic = magic_signatures(fd, str(device))
        finally:
            os.close(fd)
    except OSError as error:
        hint = ACCESS_HINT if error.errno == errno.EACCES else None
        raise TargetError(f"{device} cannot be read: {error.strerror}", hint=hint) from error
    from_blkid = blkid_signatures(system, device)
    if from_blkid is None:
        return by_magic
    # Two-byte magics also occur in random test data, so blkid checks such formats thoroughly.
    kinds = {signature.kind for signature in from_blkid}
    extra = [s for s in by_magic if s.kind not in kinds and s.name not in _WEAK_NAMES]
    return (*from_blkid, *extra)
