"""Permanent streams of SCSI drives.

Since Linux 6.10, the disk driver sets the GROUP NUMBER field of WRITE commands to the write's
lifetime hint if the drive supports reduced stream control. The value is limited to the number of
permanent streams (`sd.c`, `sd_group_number`). sysfs does not expose these properties, so this
module repeats the kernel's queries.

Sources: SBC-5 "Constrained Streams with Data Lifetimes" defines the I/O advice hints grouping mode
    page (0Ah, subpage 05h, ST_ENBLE), GET STREAM STATUS (PERM, RELATIVE LIFETIME), and the block
    limits extension VPD page (B7h, RSCS).
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
_HEADER, _DESCRIPTOR = 16, 16  # Sizes of the mode page header and of each descriptor, in bytes.
_ST_ENABLE = 0x04
_GROUPS = 64  # Number of groups, because GROUP NUMBER has six bits.
_PERMANENT = 0x80


@dataclass(frozen=True)
class PermanentStreams:
    """Permanent streams of a SCSI drive."""

    reduced_control: bool  # RSCS bit; if it is not set, the kernel sends group number 0.
    lifetimes: tuple[int, ...]  # Relative lifetime of each stream, from 0 to 63 (the longest).

    @property
    def count(self) -> int:
        """Number of permanent streams."""
        return len(self.lifetimes)

    @property
    def steered(self) -> int:
        """Number of streams that write hints can select."""
        return self.count if self.reduced_control else 0


def read_streams(send: ScsiCommand, path: Path) -> PermanentStreams:
    """Read a drive's permanent streams, and change nothing."""
    page = mode_page(send, path, 0x0A, 0x05, _HEADER + _GROUPS * _DESCRIPTOR + 8)
    lifetimes = []
    for stream, start in enumerate(range(_HEADER, len(page) - _DESCRIPTOR + 1, _DESCRIPTOR)):
        lifetime = _lifetime(send, path, stream) if page[start] & _ST_ENABLE else None
        if lifetime is None:  # Like the kernel, assign the lowest numbers to permanent streams.
            break
        lifetimes.append(lifetime)
    limits = vital_product_data(send, path, 0xB7)
    reduced = len(limits) > 5 and bool(limits[5] & 0x01)
    return PermanentStreams(reduced, tuple(lifetimes))


def _lifetime(send: ScsiCommand, path: Path, stream: int) -> int | None:
    """Return a stream's relative lifetime, or None if the stream is not permanent."""
    command = bytes([0x9E, 0x16, 0, 0, *stream.to_bytes(2, "big"), 0, 0, 0, 0, 0, 0, 0, 16, 0, 0])
    answer = send(path, command, 16)
    if not answer.ok or len(answer.data) < 16:
        return None
    status = answer.data[8:16]
    same = int.from_bytes(status[2:4], "big") == stream
    return status[4] & 0x3F if same and status[0] & _PERMANENT else None
