"""SCSI commands sent with SG_IO, and sense data.

The module implements queries whose sg3-utils output is wrong or hard to parse. `sg_sanitize`
reports success at the first poll that returns no progress indication, even if the drive reports
that the sanitize failed. Sources: References: Sources: SPC-5 4.4 (sense data), 6.31 (REQUEST
SENSE), SAM-5 5.3.1 (status); linux/Documentation/scsi/scsi-generic.rst and scsi/sg.h (`sg_io_hdr`).
"""

from __future__ import annotations

import ctypes
import fcntl
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_SG_IO = 0x2285
_FROM_DEVICE, _NO_DATA = -3, -1  # SG_DXFER_FROM_DEV, SG_DXFER_NONE
_TIMEOUT_MS = 20_000
_SENSE_BYTES = 96

NO_SENSE, RECOVERED, NOT_READY, MEDIUM_ERROR = 0x0, 0x1, 0x2, 0x3
ILLEGAL_REQUEST, UNIT_ATTENTION = 0x5, 0x6


class _SgIoHeader(ctypes.Structure):
    _fields_ = (
        ("interface_id", ctypes.c_int),
        ("dxfer_direction", ctypes.c_int),
        ("cmd_len", ctypes.c_ubyte),
        ("mx_sb_len", ctypes.c_ubyte),
        ("iovec_count", ctypes.c_ushort),
        ("dxfer_len", ctypes.c_uint),
        ("dxferp", ctypes.c_void_p),
        ("cmdp", ctypes.c_void_p),
        ("sbp", ctypes.c_void_p),
        ("timeout", ctypes.c_uint),
        ("flags", ctypes.c_uint),
        ("pack_id", ctypes.c_int),
        ("usr_ptr", ctypes.c_void_p),
        ("status", ctypes.c_ubyte),
        ("masked_status", ctypes.c_ubyte),
        ("msg_status", ctypes.c_ubyte),
        ("sb_len_wr", ctypes.c_ubyte),
        ("host_status", ctypes.c_ushort),
        ("driver_status", ctypes.c_ushort),
        ("resid", ctypes.c_int),
        ("duration", ctypes.c_uint),
        ("info", ctypes.c_uint),
    )


@dataclass(frozen=True)
class Sense:
    """Sense key, additional sense code and qualifier."""

    key: int
    asc: int
    ascq: int
    progress: float | None = None  # Progress from 0 to 1; `None` if not reported.

    def __str__(self) -> str:
        """Return the codes as text, such as "sense key 5h, 20h/00h"."""
        return f"sense key {self.key:X}h, {self.asc:02X}h/{self.ascq:02X}h"


@dataclass(frozen=True)
class ScsiAnswer:
    """Result of a SCSI command."""

    data: bytes = b""
    sense: Sense | None = None
    error: str = ""  # Reason why the command did not reach the drive.

    @property
    def ok(self) -> bool:
        """True if the drive executed the command successfully."""
        good = self.sense is None or self.sense.key in (NO_SENSE, RECOVERED)
        return not self.error and good

    @property
    def message(self) -> str:
        """Reason for a failure, for use in messages."""
        return self.error or (f"the drive reports {self.sense}" if self.sense else "")


ScsiCommand = Callable[[Path, bytes, int], ScsiAnswer]
"""Send a command block to the device at a path and read up to a number of bytes."""


def parse_sense(data: bytes) -> Sense | None:
    """Parse sense data in fixed (70h, 71h) or descriptor format (72h, 73h), or None if invalid.

    The sense key specific field (fixed bytes 15 to 17, or descriptor type 02h) contains the
    progress.
    """
    code = data[0] & 0x7F if data else 0
    if code in (0x70, 0x71) and len(data) >= 14:
        progress = _progress(data[15:18]) if len(data) >= 18 else None
        return Sense(data[2] & 0xF, data[12], data[13], progress)
    if code in (0x72, 0x73) and len(data) >= 8:
        progress, position = None, 8
        while position + 1 < min(len(data), 8 + data[7]):
            if data[position] == 0x02:
                progress = _progress(data[position + 4 : position + 7])
            position += 2 + data[position + 1]
        return Sense(data[1] & 0xF, data[2], data[3], progress)
    return None


def _progress(field: bytes) -> float | None:
    valid = len(field) == 3 and field[0] & 0x80
    return int.from_bytes(field[1:3], "big") / 65536 if valid else None


def send_command(path: Path, command: bytes, length: int) -> ScsiAnswer:
    """Send a command that reads `length` bytes (or none), and report errors in the result."""
    block = ctypes.create_string_buffer(command, len(command))
    data = ctypes.create_string_buffer(max(length, 1))
    sense = ctypes.create_string_buffer(_SENSE_BYTES)
    header = _SgIoHeader(
        interface_id=ord("S"),
        dxfer_direction=_FROM_DEVICE if length else _NO_DATA,
        cmd_len=len(command),
        mx_sb_len=_SENSE_BYTES,
        dxfer_len=length,
        dxferp=ctypes.addressof(data) if length else None,
        cmdp=ctypes.addressof(block),
        sbp=ctypes.addressof(sense),
        timeout=_TIMEOUT_MS,
    )
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.ioctl(fd, _SG_IO, header)
        finally:
            os.close(fd)
    except OSError as error:
        return ScsiAnswer(error=f"{path}: {error.strerror}")
    if header.host_status:
        return ScsiAnswer(error=f"{path}: host adapter status {header.host_status:#x}")
    reported = parse_sense(sense.raw[: header.sb_len_wr])
    if header.status and reported is None:
        return ScsiAnswer(error=f"{path}: SCSI status {header.status:#x}")
    return ScsiAnswer(data.raw[: max(length - header.resid, 0)], reported)


TEST_UNIT_READY = bytes(6)
REQUEST_SENSE = bytes([0x03, 0, 0, 0, 252, 0])  # The DESC bit is 0.


def read_capacity_16(send: ScsiCommand, path: Path) -> bytes:
    """Return the 32 bytes from READ CAPACITY(16) (SBC-4 5.21), or b"" if the command fails."""
    answer = send(path, bytes([0x9E, 0x10, *bytes(8), 0, 0, 0, 32, 0, 0]), 32)
    return answer.data if answer.ok and len(answer.data) >= 32 else b""


def vital_product_data(send: ScsiCommand, path: Path, page: int) -> bytes:
    """Return a VPD page and its header (SPC-5 6.7.2), or b"" if the drive lacks the page."""
    answer = send(path, bytes([0x12, 0x01, page, 0, 252, 0]), 252)
    whole = answer.ok and len(answer.data) >= 4 and answer.data[1] == page
    return answer.data if whole else b""


def mode_page(send: ScsiCommand, path: Path, page: int, subpage: int, length: int = 512) -> bytes:
    """Return the current values of a mode page (MODE SENSE(10), SPC-5 6.14).

    The result starts with the page code, and is empty if the drive lacks the page.
    """
    disable_block_descriptors = 0x08
    command = bytes(
        [0x5A, disable_block_descriptors, page, subpage, 0, 0, 0, *length.to_bytes(2, "big"), 0]
    )
    answer = send(path, command, length)
    if not answer.ok or len(answer.data) < 8:
        return b""
    end = 2 + int.from_bytes(answer.data[:2], "big")
    start = 8 + int.from_bytes(answer.data[6:8], "big")
    return answer.data[start:end]
