"""SCSI drives of the kernel whose commands are handled in Python.

The kernel's user-space target (target_core_user) passes every command block to a ring in shared
memory; its loopback (tcm_loop) shows the target as a disk of this machine. The real hdparm and
sg3-utils thus communicate through the real SCSI stack with drives that no emulator provides.
Requires root, configfs and the two modules.

Sources: linux/Documentation/target/tcmu-design.rst, include/uapi/linux/target_core_user.h
(mailbox version 2).
"""

from __future__ import annotations

import mmap
import os
import select
import struct
import subprocess
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.support.processes import WAIT_LIMIT_S

_CONFIG = Path("/sys/kernel/config/target")
_COMMAND_HEAD, _COMMAND_TAIL = 12, 64  # Offsets in the mailbox.
_PAD, _COMMAND = 0, 1
_HAS_READ_LENGTH = 1 << 1
_READ_LENGTH, _UNKNOWN = 0x2, 0x1
_FIRST_IOVEC = 48
_SENSE_BYTES = 96
_CHECK_CONDITION = 0x02
_MEDIA_READS = (0x08, 0x28, 0x88)  # Operation codes of reads, which carry no data from the host.


@dataclass(frozen=True)
class Reply:
    """Data for the host, or sense data with status CHECK CONDITION."""

    data: bytes = b""
    sense: bytes = b""


class Answers(Protocol):
    """A drive that executes a command block with its data and returns a response."""

    def answer(self, command: bytes, data: bytes) -> Reply: ...


class _Ring:
    """Serves the ring of one target until it is closed.

    Head and tail are read and written in native format: struct moves "<I" byte by byte, so a head
    that the kernel moves at the same time would be read half old and half new.
    """

    def __init__(self, name: str, drive: Answers) -> None:
        self._drive = drive
        uio = self._find(name)
        size = int((Path("/sys/class/uio") / uio / "maps/map0/size").read_text(), 16)
        self._fd = os.open(f"/dev/{uio}", os.O_RDWR | os.O_CLOEXEC)
        self._memory = mmap.mmap(self._fd, size)
        self._flags, self._start, self._size = struct.unpack_from("<2xHII", self._memory)
        self._stop = threading.Event()
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True, name=f"tcmu {name}")
        self._thread.start()

    @staticmethod
    def _find(name: str) -> str:
        for entry in Path("/sys/class/uio").iterdir():
            if f"/{name}/" in (entry / "name").read_text() + "/":
                return entry.name
        raise FileNotFoundError(f"no uio device of the target {name}")

    def close(self) -> None:
        self._stop.set()
        self._thread.join(WAIT_LIMIT_S)
        self._memory.close()
        os.close(self._fd)

    def _serve(self) -> None:
        while not self._stop.is_set():
            if self._handle_all():
                os.write(self._fd, struct.pack("I", 0))
            ready, _, _ = select.select([self._fd], [], [], 0.1)
            if ready:
                os.read(self._fd, 4)

    def _handle_all(self) -> bool:
        done = False
        while True:
            (head,) = struct.unpack_from("I", self._memory, _COMMAND_HEAD)
            (tail,) = struct.unpack_from("I", self._memory, _COMMAND_TAIL)
            if head == tail:
                return done
            entry = self._start + tail
            (word,) = struct.unpack_from("I", self._memory, entry)
            if word & 7 == _COMMAND:
                self._handle(entry)
            elif word & 7 != _PAD:
                self._memory[entry + 7] |= _UNKNOWN
            struct.pack_into("I", self._memory, _COMMAND_TAIL, (tail + (word & ~7)) % self._size)
            done = True

    def _handle(self, entry: int) -> None:
        (count,) = struct.unpack_from("I", self._memory, entry + 8)
        (command_at,) = struct.unpack_from("<Q", self._memory, entry + 24)
        parts = [
            struct.unpack_from("<QQ", self._memory, entry + _FIRST_IOVEC + 16 * index)
            for index in range(count)
        ]
        command = self._memory[command_at : command_at + 16]
        data = b""
        if command[0] not in _MEDIA_READS:
            data = b"".join(self._memory[at : at + length] for at, length in parts)
        try:
            reply = self._drive.answer(command, data)
        except Exception as error:  # Every command needs a response, even after an error.
            self.failure = error
            reply = Reply(sense=bytes([0x70, 0, 0x04, 0, 0, 0, 0, 10, *bytes(10)]))
        rest = memoryview(reply.data)
        for at, length in parts:
            part, rest = rest[:length], rest[length:]
            self._memory[at : at + len(part)] = part
        status = _CHECK_CONDITION if reply.sense else 0
        sense = reply.sense[:_SENSE_BYTES].ljust(_SENSE_BYTES, b"\0")
        if self._flags & _HAS_READ_LENGTH and reply.data:
            self._memory[entry + 7] |= _READ_LENGTH
        struct.pack_into("<BxHI", self._memory, entry + 8, status, 0, len(reply.data))
        self._memory[entry + 16 : entry + 16 + _SENSE_BYTES] = sense


def available() -> str:
    """Return why this machine cannot emulate SCSI drives, or "" if it can."""
    if os.geteuid() != 0:
        return "only root can make a SCSI target"
    for module in ("target_core_user", "tcm_loop"):
        done = subprocess.run(["modprobe", module], capture_output=True, text=True, check=False)
        if done.returncode:
            return f"no module {module}: {done.stderr.strip()}"
    return "" if _CONFIG.is_dir() else f"{_CONFIG} is missing: configfs is not mounted"


@contextmanager
def attached(drive: Answers, name: str, size_bytes: int) -> Iterator[Path]:
    """Attach `drive` and yield its block device; reraise the drive's exceptions at the end."""
    backing = _CONFIG / "core/user_0" / name
    number = f"naa.5001405{zlib.crc32(name.encode()):09x}"
    group = _CONFIG / "loopback" / number / "tpgt_1"
    unit = group / "lun/lun_0"
    before = set(Path("/sys/block").glob("sd*"))
    backing.mkdir(parents=True)
    (backing / "control").write_text(f"dev_size={size_bytes},dev_config=python/{name}")
    (backing / "enable").write_text("1")
    ring = _Ring(name, drive)
    try:
        unit.mkdir(parents=True)
        (group / "nexus").write_text(number)
        (unit / name).symlink_to(backing)
        yield _new_disk(before)
    finally:
        (unit / name).unlink(missing_ok=True)
        for folder in (unit, group, group.parent):
            if folder.exists():
                folder.rmdir()
        ring.close()
        backing.rmdir()
    if ring.failure is not None:
        raise ring.failure


def _new_disk(before: set[Path]) -> Path:
    deadline = time.monotonic() + WAIT_LIMIT_S
    while time.monotonic() < deadline:
        for entry in set(Path("/sys/block").glob("sd*")) - before:
            path = Path("/dev") / entry.name
            if path.exists() and int((entry / "size").read_text()):
                return path
        time.sleep(0.1)
    raise TimeoutError("the kernel does not show the target as a disk")
