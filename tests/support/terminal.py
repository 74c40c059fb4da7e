"""Programs on a pseudoterminal: send keys, and read the output up to an expected text."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import struct
import termios
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from types import TracebackType

_CONTROLS = re.compile(
    rb"\x1b(?:\[[0-9;?>=]*[a-zA-Z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>])"
)


class Terminal:
    """A program on a terminal wide enough that no line wraps; leaving the block kills it."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._pid, self._file = pty.fork()
        if self._pid == 0:
            os.execvpe(command[0], list(command), dict(environment))
        ioctl(self._file, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 250, 0, 0))
        self._seen = b""

    def type(self, text: str) -> None:
        os.write(self._file, text.encode())

    def until(self, text: str, timeout_s: float = 60.0) -> str:
        """Return the output up to `text`, without control sequences.

        Raises:
            TimeoutError: the text did not appear in time.
        """
        shown = b""
        while True:
            shown = _CONTROLS.sub(b"", self._seen).replace(b"\r", b"")
            place = shown.find(text.encode())
            if place >= 0:
                break
            ready, _, _ = select.select([self._file], [], [], timeout_s)
            if not ready:
                raise TimeoutError(f"no {text!r} in {shown.decode(errors='replace')!r}")
            self._seen += os.read(self._file, 4096)
        end = place + len(text.encode())
        self._seen = shown[end:]
        return shown[:end].decode(errors="replace")

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._file)
