"""Control of a user's served drives by other programs, through Unix sockets.

The sockets are in a folder that is accessible only to the user. A killed server's socket is removed
the next time another program lists the sockets. A connection carries one request and its reply,
each as a line of JSON.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from writecliff.errors import ConfigError, EngineError, WritecliffError

if TYPE_CHECKING:
    from writecliff.serve.server import DriveServer

_LINE_BYTES_MAX = 1 << 16
_REQUEST_S = 10.0  # Time for a client to send its line.
_ANSWER_S = 600.0  # Response time, which includes the rebuild of a slowed-down drive's mapping.
_SUFFIX = ".sock"
_numbers = count()
_PEER = struct.Struct("3i")  # Layout of struct ucred: process, user, group.


def control_folder() -> Path:
    """Return the folder for this user's sockets, creating it if necessary.

    Raises:
        EngineError: If the folder belongs to another user, or if other users can enter it.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        folder = Path(runtime) / "writecliff"
    else:
        folder = Path(tempfile.gettempdir()) / f"writecliff-{os.geteuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise EngineError(f"{folder}: {error.strerror}") from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise EngineError(
            f"other users can enter {folder}, or it is not a folder",
            hint="remove the folder, then run the command again",
        )
    return folder


class ControlServer:
    """Let the user's other programs query `server`'s addresses and cut its power."""

    def __init__(self, server: DriveServer) -> None:
        """Listen on a new socket.

        Raises:
            EngineError: If the socket cannot be created.
        """
        self._server = server
        self._path = control_folder() / f"{os.getpid()}-{next(_numbers)}{_SUFFIX}"
        _remove_if_dead(self._path)  # A killed server may have had this process number.
        self._listener = socket.socket(socket.AF_UNIX)
        try:
            self._listener.bind(str(self._path))
            self._path.chmod(0o600)
            self._listener.listen()
        except OSError as error:
            self._listener.close()
            raise EngineError(f"{self._path}: {error.strerror or error}") from None
        self._thread = threading.Thread(target=self._accept, name="control", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        """Return the server."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop listening, and remove the socket."""
        self._path.unlink(missing_ok=True)
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.settimeout(_REQUEST_S)
                if _user_of(connection) in (0, os.geteuid()):
                    answer = self._answer(_read_line(connection))
                    connection.sendall(json.dumps(answer).encode() + b"\n")

    def _answer(self, line: bytes) -> Mapping[str, Any]:
        try:
            asked = json.loads(line)
        except ValueError:
            asked = None
        try:
            match asked:
                case {"command": "identify"}:
                    return {
                        "pid": os.getpid(),
                        "target": self._server.identity.target,
                        "addresses": list(self._server.addresses),
                    }
                case {"command": "power-cut"}:
                    return self._cut()
        except WritecliffError as error:
            return {"error": str(error)}
        return {"error": "unknown request"}

    def _cut(self) -> Mapping[str, Any]:
        """Cut the power, and wait until the drive accepts commands again."""
        cut = self._server.power_cut()
        number = len(self._server.power_cuts)
        slow_down = self._server.options.slow_down
        if slow_down is not None and cut.rebuild_ns is not None:
            time.sleep((cut.rebuild_ns + (cut.hold_up_ns or 0)) * slow_down / 1e9)
        return {"number": number, "cut": asdict(cut)}


@dataclass(frozen=True)
class ServedDrive:
    """A drive that this user is serving."""

    pid: int
    target: str
    addresses: tuple[str, ...]
    socket: Path

    def power_cut(self) -> dict[str, Any]:
        """Cut the power, and wait until the drive is ready again.

        Returns:
            "cut", which holds the fields of `PowerCut`, and "number", the number of cuts so far.

        Raises:
            EngineError: If the server has stopped or rejects the request.
        """
        try:
            answer = _ask(self.socket, "power-cut")
        except OSError as error:
            raise EngineError(f"{self.target}: the server has stopped ({error})") from None
        if "error" in answer:
            raise EngineError(f"{self.target}: {answer['error']}")
        return answer

    def __str__(self) -> str:
        """Return the target, addresses and process number."""
        return f"{self.target} at {', '.join(self.addresses)} (process {self.pid})"


def served_drives() -> list[ServedDrive]:
    """Return the drives served by this user, by process number.

    Raises:
        EngineError: If other users can enter the socket folder.
    """
    drives = []
    for path in control_folder().iterdir():
        if path.suffix != _SUFFIX or not path.is_socket():
            continue
        try:
            answer = _ask(path, "identify")
            addresses = tuple(answer["addresses"])
            drives.append(ServedDrive(answer["pid"], answer["target"], addresses, path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)  # The drive's server was killed.
        except (OSError, KeyError):
            continue  # The server is stopping.
    return sorted(drives, key=lambda drive: drive.pid)


def find_served(drives: list[ServedDrive], what: str | None) -> ServedDrive:
    """Return the drive with an address or process number, or the only drive for None.

    Raises:
        ConfigError: If no drive matches or several drives match.
    """
    listed = "\n".join(f"  {drive}" for drive in drives)
    if not drives:
        raise ConfigError(
            "the current user serves no drive on this machine", hint="see `writecliff serve`"
        )
    matches = drives if what is None else [drive for drive in drives if _is(drive, what)]
    if not matches:
        raise ConfigError(f"no drive is served at '{what}'", hint=f"served drives:\n{listed}")
    if len(matches) > 1:
        raise ConfigError(
            "several served drives match",
            hint=f"specify the address of a served drive:\n{listed}",
        )
    return matches[0]


def _is(drive: ServedDrive, what: str) -> bool:
    from writecliff.serve.addresses import parse_address

    if what.isdecimal():
        return drive.pid == int(what)
    wanted = parse_address(what)
    served = [parse_address(address) for address in drive.addresses]
    return any(
        wanted.where == place.where and wanted.name in (None, place.name) for place in served
    )


def _remove_if_dead(path: Path) -> None:
    """Remove a socket that no server listens on."""
    with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)


def _user_of(connection: socket.socket) -> int:
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    return int(_PEER.unpack(raw)[1])


def _read_line(connection: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n") and len(line) < _LINE_BYTES_MAX:
        part = connection.recv(4096)
        if not part:
            break
        line += part
    return line


def _ask(path: Path, command: str) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_ANSWER_S if command == "power-cut" else _REQUEST_S)
        connection.connect(str(path))
        connection.sendall(json.dumps({"command": command}).encode() + b"\n")
        line = _read_line(connection)
    if not line.endswith(b"\n"):
        raise ConnectionResetError("the server does not respond")
    answer = json.loads(line)
    if not isinstance(answer, dict):
        raise ConnectionResetError("the server does not respond")
    return answer
