"""A SATA drive behind a SCSI/ATA translation layer (ACS-4, SAT-4), for `tcmu.attached`.

The drive has ATA security and sanitize, which no emulated drive supports; hdparm reaches them with
ATA PASS-THROUGH.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from tests.support.scsi_drive import GOOD, ILLEGAL_REQUEST, INVALID_OPCODE, ScsiDrive, sense
from tests.support.tcmu import Reply

_ABORTED, _READY = (0x51, 0x04), (0x50, 0x00)  # Status and error registers.
_KEYS = {0x11: 0x43727970, 0x12: 0x426B4572, 0x14: 0x4F57}  # Keys by sanitize feature.
_BITS = {"crypto": 13, "block": 15}  # Bit numbers in word 59.


@dataclass(frozen=True)
class _Taskfile:
    command: int
    feature: int
    count: int
    lba: int
    wants_registers: bool

    @classmethod
    def of(cls, block: bytes) -> _Taskfile:
        """Decode an ATA PASS-THROUGH(16) or (12) command block (SAT-4 12.2)."""
        if block[0] == 0xA1:
            lba = int.from_bytes(bytes(block[index] for index in (7, 6, 5)), "big")
            return cls(block[9], block[3], block[4], lba, bool(block[2] & 0x20))
        high = block[1] & 1
        order = (11, 9, 7, 12, 10, 8) if high else (12, 10, 8)
        return cls(
            block[14],
            block[4],
            block[6] | (block[5] << 8 if high else 0),
            int.from_bytes(bytes(block[index] for index in order), "big"),
            bool(block[2] & 0x20),
        )


@dataclass
class AtaDrive(ScsiDrive):
    """A SATA drive with the security and sanitize feature sets.

    `frozen` and `sanitize_frozen` freeze one feature set each. `drops_registers` emulates a bridge
    that returns no sense data with the ATA registers.
    """

    vendor: str = "ATA"
    serial: str = "ATADRIVE01"
    supports: tuple[str, ...] = ("block", "crypto", "security", "enhanced")
    sanitize_frozen: bool = False
    frozen: bool = False
    password: bytes | None = None
    locked: bool = False
    drops_registers: bool = False
    refuses_normal_erase: bool = False
    commands: list[int] = field(default_factory=list)
    model: ClassVar[str] = "EMULATED SATA"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._prepared = False
        self._succeeded = False
        self._ata: dict[int, Callable[[_Taskfile, bytes], tuple[tuple[int, int], int, int]]] = {
            0xB4: self._ata_sanitize,
            **dict.fromkeys((0xF1, 0xF2, 0xF3, 0xF4, 0xF6), self._security),
        }
        self._answers |= {0x85: self._pass_through, 0xA1: self._pass_through}
        del self._answers[0x48]

    def power_cycle(self) -> None:
        """Lock the drive if it has a password; a running sanitize continues."""
        self.locked = self.password is not None
        self.frozen = self._prepared = False

    def _pass_through(self, block: bytes, data: bytes) -> Reply:
        task = _Taskfile.of(block)
        self.commands.append(task.command)
        registers = (_READY, 0, 0)
        if task.command == 0xEC:
            return Reply(self._identify())
        if task.command == 0xEF and task.feature in (0x02, 0x82):
            self.cache = task.feature == 0x02
        elif task.command in self._ata:
            registers = self._ata[task.command](task, data)
        elif task.command not in (0xE7, 0xEA, 0xE5):
            registers = (_ABORTED, 0, 0)
        return self._returned(task, *registers)

    def _returned(self, task: _Taskfile, state: tuple[int, int], count: int, lba: int) -> Reply:
        """Return the ATA status return descriptor (SAT-4 12.2.6) if requested or after an error."""
        failed = state == _ABORTED
        if self.drops_registers:
            missing = sense(ILLEGAL_REQUEST, INVALID_OPCODE)
            return Reply(sense=missing) if task.wants_registers or failed else GOOD
        if not (failed or task.wants_registers):
            return GOOD
        low, middle, high = (lba >> shift & 0xFF for shift in (0, 8, 16))
        status, error = state
        descriptor = bytes([0x09, 12, 1, error, count >> 8, count & 0xFF, 0, low, 0, middle, 0])
        descriptor += bytes([high, 0x40, status])
        head = [0x72, 0x0B, 0, 0] if failed else [0x72, 0x01, 0x00, 0x1D]
        return Reply(sense=bytes([*head, 0, 0, 0, len(descriptor)]) + descriptor)

    def _ata_sanitize(self, task: _Taskfile, data: bytes) -> tuple[tuple[int, int], int, int]:
        pending = self._pending()
        if task.feature == 0x00:
            if self._failed is not None:
                return _ABORTED, 0, 0x01  # The last command completed unsuccessfully.
            flags = 0x2000 if self.sanitize_frozen else 0
            flags |= 0x8000 if self.erases and not self._running else 0
            flags |= 0x4000 if self._running else 0
            progress = 0xFFFF
            if self._running:
                progress = int((time.monotonic() - self._running[1]) / self.seconds * 65535)
            return _READY, flags, progress
        what = {0x11: "crypto", 0x12: "block"}.get(task.feature, "")
        if what not in self.supports or task.lba != _KEYS[task.feature]:
            return _ABORTED, 0, 0x02
        if self.sanitize_frozen or self.locked or (pending and self._running):
            return _ABORTED, 0, 0x03
        self._begin(what, immediate=True)
        return _READY, 0, 0

    def _security(self, task: _Taskfile, data: bytes) -> tuple[tuple[int, int], int, int]:
        given, aborted = data[2:34], (_ABORTED, 0, 0)
        if "security" not in self.supports or self.frozen:
            return aborted
        match task.command:
            case 0xF1:
                if self.locked:
                    return aborted
                self.password = given
            case 0xF3:
                self._prepared = True
            case 0xF4:
                if not self._prepared or given != self.password:
                    return aborted
                self._prepared, enhanced = False, bool(data[0] & 2)
                if self.refuses_normal_erase and not enhanced:
                    return aborted
                self.password, self.locked = None, False
                self._end("enhanced" if enhanced else "security")
            case 0xF2 | 0xF6:
                if given != self.password:
                    return aborted
                self.locked = False
                if task.command == 0xF6:
                    self.password = None
        return _READY, 0, 0

    def _identify(self) -> bytes:
        words = [0] * 256
        words[0], words[49], words[53] = 0x0040, 0x0F00, 0x0006
        _put_text(words, 10, 20, self.serial)
        _put_text(words, 23, 8, "1.0")
        _put_text(words, 27, 40, self.model)
        bits = sum(1 << bit for name, bit in _BITS.items() if name in self.supports)
        words[59] = bits | 1 << 12 if bits else 0
        sectors = self.size_bytes // 512
        words[60], words[61] = sectors & 0xFFFF, sectors >> 16
        words[80] = 0x03F0
        secure = "security" in self.supports
        words[82], words[83], words[84] = 0x0021 | secure << 1, 0x7400, 0x4000
        words[85] = 0x0001 | self.cache << 5 | (self.password is not None) << 1
        words[86], words[87] = 0x3400, 0x4000
        words[100], words[101] = sectors & 0xFFFF, sectors >> 16
        words[217] = 1
        if secure:
            words[89], words[90], words[92] = 1, 4, 0xFFFE
            words[128] = (
                1
                | (self.password is not None) << 1
                | self.locked << 2
                | self.frozen << 3
                | ("enhanced" in self.supports) << 5
            )
        return b"".join(word.to_bytes(2, "little") for word in words)


def _put_text(words: list[int], first: int, length: int, text: str) -> None:
    padded = f"{text:{length}}".encode()
    for index in range(0, length, 2):
        words[first + index // 2] = padded[index] << 8 | padded[index + 1]
