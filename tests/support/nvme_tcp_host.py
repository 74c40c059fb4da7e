"""NVMe/TCP hosts that write with placement identifiers, for tests of served drives."""

from __future__ import annotations

import re
import socket
import struct
from types import TracebackType
from typing import Self

from tests.support.processes import WAIT_LIMIT_S

HOST_NQN = b"nqn.2014-08.org.nvmexpress:uuid:python-tests"
_ENABLE = 0x0046_0001  # CC value: 64-byte entries, 16-byte completions, enabled.
_DATA_PLACEMENT = 2  # Directive type (Base 2.1, 8.1.8).


class _Queue:
    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=WAIT_LIMIT_S)
        self._socket.sendall(bytes([0, 0, 128, 0, 128]).ljust(128, b"\0"))
        self._take(128)

    def _take(self, count: int) -> bytes:
        data = self._socket.recv(count, socket.MSG_WAITALL)
        if len(data) != count:
            raise ConnectionError("the server has closed the connection")
        return data

    def run(self, opcode: int, dwords: dict[int, int], data: bytes = b"") -> int:
        """Send a command with its data, if any, in the capsule; return its completion's result."""
        entry = bytearray(64)
        entry[:2] = opcode, 0x40
        entry[32:36], entry[39] = struct.pack("<I", len(data)), 1
        for number, value in dwords.items():
            entry[4 * number : 4 * number + 4] = struct.pack("<I", value)
        head = struct.pack("<BBBBI", 4, 0, 72, 72 if data else 0, 72 + len(data))
        self._socket.sendall(head + entry + data)
        pdu = self._take(24)
        result, status = struct.unpack_from("<I", pdu, 8)[0], struct.unpack_from("<H", pdu, 22)[0]
        assert pdu[0] == 5, "a response capsule"
        assert status >> 1 == 0, f"status {status >> 1:#x}"
        return int(result)

    def connect(self, subsystem: bytes, controller: int, queue: int) -> int:
        names = struct.pack("<16sH238x256s256s256x", b"h" * 16, controller, subsystem, HOST_NQN)
        return self.run(0x7F, {1: 1, 10: queue << 16, 11: 31}, names)

    def close(self) -> None:
        self._socket.close()


class NvmeTcpHost:
    """An admin queue and an I/O queue connected to a URI of `DriveServer.listen_nvme`."""

    def __init__(self, uri: str) -> None:
        match = re.fullmatch(r"nvme\+tcp://(.*):(\d+)/(.*)", uri)
        assert match is not None
        at, subsystem = (match[1], int(match[2])), match[3].encode()
        self._admin = _Queue(*at)
        controller = self._admin.connect(subsystem, 0xFFFF, 0) & 0xFFFF
        self._admin.run(0x7F, {1: 0, 10: 0, 11: 0x14, 12: _ENABLE})
        self._io = _Queue(*at)
        self._io.connect(subsystem, controller, 1)

    def write(self, offset: int, data: bytes, placement: int | None = None) -> None:
        """Write whole 512-byte blocks, at most 8 KiB, with a placement identifier."""
        lba, count = offset // 512, len(data) // 512
        dwords = {1: 1, 10: lba & 0xFFFF_FFFF, 11: lba >> 32, 12: count - 1}
        if placement is not None:
            dwords |= {12: (count - 1) | _DATA_PLACEMENT << 20, 13: placement << 16}
        self._io.run(0x01, dwords, data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._io.close()
        self._admin.close()
