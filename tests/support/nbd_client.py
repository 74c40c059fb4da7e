"""An NBD client for tests of served drives: one connection, one request at a time."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.support.processes import WAIT_LIMIT_S

_GO, _ACK = 7, 1
_READ, _WRITE, _FLUSH, _TRIM = 0, 1, 3, 4


class NbdClient:
    """A client connected to a URI printed by `writecliff serve`."""

    def __init__(self, uri: str) -> None:
        parts = urlsplit(uri)
        if parts.scheme == "nbd+unix":
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(parse_qs(parts.query)["socket"][0])
        else:
            self._socket = socket.create_connection((parts.hostname, parts.port))
        self._socket.settimeout(WAIT_LIMIT_S)
        assert self._take(18) == b"NBDMAGICIHAVEOPT\0\3"
        self._socket.sendall(struct.pack(">I8sII6s", 3, b"IHAVEOPT", _GO, 6, bytes(6)))
        self.size = 0
        kind = 0
        while kind != _ACK:
            _, _, kind, length = struct.unpack(">QIII", self._take(20))
            data = self._take(length)
            if data[:2] == b"\0\0":
                (self.size,) = struct.unpack(">Q", data[2:10])

    def __enter__(self) -> NbdClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _take(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self._socket.recv(count - len(data))
            if not more:
                raise ConnectionError("the server has left")
            data += more
        return data

    def _call(self, command: int, offset: int, length: int, data: bytes = b"") -> bytes:
        head = struct.pack(">IHHQQI", 0x25609513, 0, command, 7, offset, length)
        self._socket.sendall(head + data)
        magic, error, cookie = struct.unpack(">IIQ", self._take(16))
        assert (magic, cookie) == (0x67446698, 7)
        if error:
            raise OSError(error, "the server refuses")
        return self._take(length) if command == _READ else b""

    def read(self, offset: int, length: int) -> bytes:
        return self._call(_READ, offset, length)

    def write(self, offset: int, data: bytes) -> None:
        self._call(_WRITE, offset, len(data), data)

    def flush(self) -> None:
        self._call(_FLUSH, 0, 0)

    def trim(self, offset: int, length: int) -> None:
        self._call(_TRIM, offset, length)


def socket_uri(path: Path) -> str:
    """Return the URI of a Unix socket."""
    return f"nbd+unix:///?socket={path}"
