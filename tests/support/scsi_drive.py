"""A SAS drive in memory for `tcmu.attached` (SPC-5, SBC-4).

The drive supports background SANITIZE and FORMAT UNIT, a format with protection information, and a
caching mode page.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from tests.support.tcmu import Reply

GOOD = Reply()
NOT_READY, MEDIUM_ERROR, ILLEGAL_REQUEST = 2, 3, 5
INVALID_OPCODE, INVALID_FIELD = (0x20, 0), (0x24, 0)
FORMATTING, SANITIZING = (0x04, 0x04), (0x04, 0x1B)
FORMAT_FAILED, SANITIZE_FAILED = (0x31, 0x01), (0x31, 0x03)


def sense(key: int, code: tuple[int, int], progress: float | None = None) -> bytes:
    """Return fixed format sense data, with a progress indication if `progress` is given."""
    data = bytearray(18)
    data[0], data[2], data[7] = 0x70, key, 10
    data[12:14] = code
    if progress is not None:
        data[15:18] = bytes([0x80, *int(progress * 65535).to_bytes(2, "big")])
    return bytes(data)


@dataclass
class ScsiDrive:
    """A SAS drive.

    `seconds` is the erase duration. With `lies`, an erase reports success without erasing; with
    `fails`, it reports failure. `erases` lists the completed erases.
    """

    size_bytes: int = 512 << 10
    block_bytes: int = 512
    protection: int = 0
    vendor: str = "TESTS"
    serial: str = "SASDRIVE01"
    supports: tuple[str, ...] = ("block", "crypto", "format")
    seconds: float = 1.5
    lies: bool = False
    fails: bool = False
    cache: bool = True
    cache_fixed: bool = False
    erases: list[str] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    model: ClassVar[str] = "SAS DRIVE"

    def __post_init__(self) -> None:
        self.medium = bytearray(self.size_bytes)
        self._running: tuple[str, float] | None = None  # Operation and start time.
        self._failed: tuple[int, int] | None = None
        self._answers: dict[int, Callable[[bytes, bytes], Reply]] = {
            0x00: lambda command, data: self._guarded() or GOOD,
            0x03: self._request_sense,
            0x04: self._format_unit,
            0x12: self._inquiry,
            0x1B: lambda command, data: GOOD,
            0x1A: self._mode_sense,
            0x5A: self._mode_sense,
            0x15: self._mode_select,
            0x55: self._mode_select,
            0x25: self._read_capacity_10,
            0x9E: self._read_capacity_16,
            0x35: lambda command, data: self._guarded() or GOOD,
            0x91: lambda command, data: self._guarded() or GOOD,
            0x48: self._sanitize,
            **dict.fromkeys((0x08, 0x28, 0x88), self._read),
            **dict.fromkeys((0x0A, 0x2A, 0x8A), self._write),
        }

    def answer(self, command: bytes, data: bytes) -> Reply:
        handler = self._answers.get(command[0])
        if handler is None:
            return Reply(sense=sense(ILLEGAL_REQUEST, INVALID_OPCODE))
        return handler(command, data)

    # -- background erase -----------------------------------------------------------------------

    def _pending(self) -> bytes:
        """Return the sense data of a running or failed erase, or empty bytes if there is none."""
        if self._running is not None:
            what, began = self._running
            progress = (time.monotonic() - began) / self.seconds
            if progress < 1:
                code = FORMATTING if what == "format" else SANITIZING
                return sense(NOT_READY, code, progress)
            self._running = None
            self._end(what)
        return b"" if self._failed is None else sense(MEDIUM_ERROR, self._failed)

    def _end(self, what: str) -> None:
        if self.fails:
            self._failed = FORMAT_FAILED if what == "format" else SANITIZE_FAILED
            return
        self.erases.append(what)
        if not self.lies:
            self.medium[:] = (
                os.urandom(8) * (self.size_bytes // 8)
                if what == "crypto"
                else bytes(self.size_bytes)
            )

    def _guarded(self) -> Reply | None:
        pending = self._pending()
        return Reply(sense=pending) if pending else None

    def _begin(self, what: str, *, immediate: bool) -> Reply:
        if what not in self.supports:
            return Reply(sense=sense(ILLEGAL_REQUEST, INVALID_FIELD))
        self._failed = None
        self._running = (what, time.monotonic())
        if not immediate:
            time.sleep(self.seconds)
        return GOOD

    def _request_sense(self, command: bytes, data: bytes) -> Reply:
        answer = self._pending() or sense(0, (0, 0))
        return Reply(answer[: command[4]])

    def _sanitize(self, command: bytes, data: bytes) -> Reply:
        action = {2: "block", 3: "crypto"}.get(command[1] & 0x1F, "")
        return self._begin(action, immediate=bool(command[1] & 0x80))

    def _format_unit(self, command: bytes, data: bytes) -> Reply:
        """Format the drive.

        Only FMTPINFO and PROTECTION FIELD USAGE determine the new protection type (SBC-4 table 38).
        """
        information, usage = command[1] >> 6, data[0] & 7 if data else 0
        kinds = {(0, 0): 0, (2, 0): 1, (3, 0): 2, (3, 1): 3}
        if (information, usage) not in kinds:
            return Reply(sense=sense(ILLEGAL_REQUEST, INVALID_FIELD))
        reply = self._begin("format", immediate=bool(data) and bool(data[1] & 0x02))
        if not reply.sense:
            self.protection = kinds[information, usage]
        return reply

    # -- identity and mode ------------------------------------------------------------------------

    def _inquiry(self, command: bytes, data: bytes) -> Reply:
        length = int.from_bytes(command[3:5], "big")
        if not command[1] & 1:
            names = f"{self.vendor:8}{self.model:16}{'1.0':4}".encode()
            # PROTECT stays 0, because the kernel's loopback would otherwise request protection
            # information.
            head = bytes([0, 0, 6, 0x12, 31, 0, 0, 2])
            return Reply((head + names)[:length])
        pages = {
            0x00: bytes([0x00, 0x80, 0x83]),
            0x80: self.serial.encode(),
            0x83: bytes([0x01, 0x03, 0, 8]) + bytes.fromhex("5000c50012345678"),
        }
        body = pages.get(command[2])
        if body is None:
            return Reply(sense=sense(ILLEGAL_REQUEST, INVALID_FIELD))
        return Reply((bytes([0, command[2], *len(body).to_bytes(2, "big")]) + body)[:length])

    @property
    def _last(self) -> int:
        return self.size_bytes // self.block_bytes - 1

    def _read_capacity_10(self, command: bytes, data: bytes) -> Reply:
        return self._guarded() or Reply(
            self._last.to_bytes(4, "big") + self.block_bytes.to_bytes(4, "big")
        )

    def _read_capacity_16(self, command: bytes, data: bytes) -> Reply:
        if command[1] & 0x1F != 0x10:
            return Reply(sense=sense(ILLEGAL_REQUEST, INVALID_FIELD))
        kind = 1 | (self.protection - 1) << 1 if self.protection else 0
        sizes = self._last.to_bytes(8, "big") + self.block_bytes.to_bytes(4, "big")
        length = int.from_bytes(command[10:14], "big")
        return self._guarded() or Reply((sizes + bytes([kind]) + bytes(19))[:length])

    def _mode_sense(self, command: bytes, data: bytes) -> Reply:
        ten = command[0] == 0x5A
        length = int.from_bytes(command[7:9], "big") if ten else command[4]
        recovery = bytes([0x01, 10, *bytes(10)])
        caching = bytes([0x08, 18, 0x04 if self.cache else 0, *bytes(17)])
        pages = {0x01: recovery, 0x08: caching, 0x3F: recovery + caching}
        page = pages.get(command[2] & 0x3F)
        if page is None or command[3]:
            return Reply(sense=sense(ILLEGAL_REQUEST, INVALID_FIELD))
        block = b""
        if not command[1] & 0x08:
            count = (self._last + 1).to_bytes(4, "big")
            block = count + bytes([0, *self.block_bytes.to_bytes(3, "big")])
        if ten:
            size = (6 + len(block) + len(page)).to_bytes(2, "big")
            head = size + bytes([0, 0, 0, 0]) + len(block).to_bytes(2, "big")
        else:
            head = bytes([3 + len(block) + len(page), 0, 0, len(block)])
        return Reply((head + block + page)[:length])

    def _mode_select(self, command: bytes, data: bytes) -> Reply:
        start = 8 + int.from_bytes(data[6:8], "big") if command[0] == 0x55 else 4 + data[3]
        if data[start] & 0x3F == 0x08:
            if self.cache_fixed:
                return Reply(sense=sense(ILLEGAL_REQUEST, (0x26, 0)))
            self.cache = bool(data[start + 2] & 0x04)
        return GOOD

    # -- media access -------------------------------------------------------------------------------

    def _span(self, command: bytes) -> tuple[int, int]:
        group = command[0] >> 5
        if group == 0:
            first = int.from_bytes(command[1:4], "big") & 0x1FFFFF
            count = command[4] or 256
        elif group == 1:
            first = int.from_bytes(command[2:6], "big")
            count = int.from_bytes(command[7:9], "big")
        else:
            first = int.from_bytes(command[2:10], "big")
            count = int.from_bytes(command[10:14], "big")
        return first * self.block_bytes, (first + count) * self.block_bytes

    def _read(self, command: bytes, data: bytes) -> Reply:
        start, end = self._span(command)
        with memoryview(self.medium) as medium:
            return self._guarded() or Reply(bytes(medium[start:end]))

    def _write(self, command: bytes, data: bytes) -> Reply:
        start, end = self._span(command)
        blocked = self._guarded()
        if blocked is None:
            self.medium[start:end] = data[: end - start]
        return blocked or GOOD
