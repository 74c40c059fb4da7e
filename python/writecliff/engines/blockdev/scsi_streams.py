"""Permanent streams of SCSI drives.

Since Linux 6.10 the disk driver sets the GROUP NUMBER field of WRITE commands to the lifetime hint
of the write, limited to the number of permanent streams (`sd.c`, `sd_group_number`), if the drive
supports reduced stream control. sysfs does not show these properties, so this module sends the
kernel's queries again.

Sources: SBC-5 "Constrained Streams with Data Lifetimes": the I/O advice hints grouping mode page
(0Ah, subpage 05h, ST_ENBLE), GET STREAM STATUS (PERM, RELATIVE LIFETIME), the block limits
extension VPD page (B7h, RSCS).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from writecliff.engines.blockdev.scsi_commands import (
    ScsiCommand,
    mode_page,
    vital_product_data,
)

KERNEL_SINCE = (6, 10)
_HEADER, _DESCRIPTOR = 16, 16  # bytes, of the mode page and of each of its descriptors
_ST_ENABLE = 0x04
_GROUPS = 64  # a GROUP NUMBER has six bits
_PERMANENT = 0x80


@dataclass(frozen=True)
class PermanentStreams:
    """Permanent streams of a drive."""

    reduced_control: bool  # RSCS; without it the kernel sends group number 0
    lifetimes: tuple[int, ...]  # relative lifetime of each stream, 0 to 63 (the longest)

    @property
    def count(self) -> int:
        """Number of permanent streams."""
        return len(self.lifetimes)

    @property
    def steered(self) -> int:
        """Number of streams that write hints reach."""
        return self.count if self.reduced_control else 0


def read_streams(send: ScsiCommand, path: Path) -> PermanentStreams:
    """Read the permanent streams of a drive, without changing anything."""
    page = mode_page(send, path, 0x0A, 0x05, _HEADER + _GROUPS * _DESCRIPTOR + 8)
    lifetimes = []
    for stream, start in enumerate(range(_HEADER, len(page) - _DESCRIPTOR + 1, _DESCRIPTOR)):
        lifetime = _lifetime(send, path, stream) if page[start] & _ST_ENABLE else None
        if lifetime is None:  # as in the kernel: permanent streams have the lowest numbers
            break
        lifetimes.append(lifetime)
    limits = vital_product_data(send, path, 0xB7)
    reduced = len(limits) > 5 and bool(limits[5] & 0x01)
    return PermanentStreams(reduced, tuple(lifetimes))


def _lifetime(send: ScsiCommand, path: Path, stream: int) -> int | None:
    """Return the relative lifetime of a stream; None if it is not permanent."""
    command = bytes([0x9E, 0x16, 0, 0, *stream.to_bytes(2, "big"), 0, 0, 0, 0, 0, 0, 0, 16, 0, 0])
    answer = send(path, command, 16)
    if not answer.ok or len(answer.data) < 16:
        return None
    status = answer.data[8:16]
    same = int.from_bytes(status[2:4], "big") == stream
    return status[4] & 0x3F if same and status[0] & _PERMANENT else None
