"""Permanent streams of SCSI drives: how many there are, and how a write gets into one.

From Linux 6.10 the disk driver puts the lifetime hint of a write into the GROUP NUMBER field of
WRITE commands: the smaller of the hint's number and the number of permanent streams (`sd.c`,
`sd_group_number`), if the drive says that it has reduced stream control. What the kernel found is
in no file of sysfs, so the drive is asked the same questions.

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
    """What a drive has. `lifetimes` holds the relative lifetime of each permanent stream, 0 to 63
    (63: the longest).
    """

    reduced_control: bool  # RSCS; without it the kernel sends group number 0
    lifetimes: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.lifetimes)

    @property
    def steered(self) -> int:
        """Streams that a write hint of this kernel reaches."""
        return self.count if self.reduced_control else 0


def read_streams(send: ScsiCommand, path: Path) -> PermanentStreams:
    """Ask a drive; nothing is changed. A drive without streams has none."""
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
    """The relative lifetime of a permanent stream; None if the stream is not one."""
    command = bytes([0x9E, 0x16, 0, 0, *stream.to_bytes(2, "big"), 0, 0, 0, 0, 0, 0, 0, 16, 0, 0])
    answer = send(path, command, 16)
    if not answer.ok or len(answer.data) < 16:
        return None
    status = answer.data[8:16]
    same = int.from_bytes(status[2:4], "big") == stream
    return status[4] & 0x3F if same and status[0] & _PERMANENT else None
