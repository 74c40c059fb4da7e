"""Client of QEMU's monitor, for use in the guest: remove, throttle and add drives.

    with Qmp.of_guest() as qmp:
        qmp.execute("device_del", id="nvme")

QEMU's documents call the protocol QMP: lines of JSON, where replies to commands are mixed with
events.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PORT = "/dev/virtio-ports/qmp"
_PATIENCE_S = 30.0


class QmpError(Exception):
    """Error of QEMU: it rejected a command, or did not reply."""


class Qmp:
    """A connection to the monitor; `events` holds the events reported so far, oldest first."""

    def __init__(self, descriptor: int) -> None:
        self.events: list[dict[str, Any]] = []
        self._descriptor = descriptor
        self._rest = b""
        self._number = 0
        try:
            self.execute("qmp_capabilities")
        except QmpError as error:
            # An earlier client of the same machine may already have negotiated capabilities.
            if "CommandNotFound" not in str(error):
                raise

    @classmethod
    @contextmanager
    def of_guest(cls, port: str = PORT) -> Iterator[Qmp]:
        """Connect to the monitor of the QEMU process that runs this guest."""
        descriptor = os.open(port, os.O_RDWR)
        try:
            yield cls(descriptor)
        finally:
            os.close(descriptor)

    def execute(self, command: str, **arguments: Any) -> Any:
        """Run a command and return QEMU's reply.

        Raises:
            QmpError: QmpError: QEMU rejected the command.
        """
        self._number += 1
        mark = f"{os.getpid()}.{self._number}"
        message = {"execute": command, "arguments": arguments, "id": mark}
        _write(self._descriptor, json.dumps(message).encode() + b"\n")
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            answer = self._line(deadline)
            if answer is None:
                raise QmpError(f"{command}: no answer")
            if answer.get("id") != mark:
                continue
            if "error" in answer:
                error = answer["error"]
                raise QmpError(f"{command}: {error['desc']} ({error['class']})")
            return answer["return"]

    def wait_event(self, name: str, timeout_s: float = _PATIENCE_S, **data: Any) -> dict[str, Any]:
        """Wait for an event whose data include `data`, and remove it from `events`.

        Raises:
            QmpError: the event did not arrive within `timeout_s`.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            for event in self.events:
                if event["event"] == name and data.items() <= event.get("data", {}).items():
                    self.events.remove(event)
                    return event
            if self._line(deadline) is None:
                raise QmpError(f"no event {name} {data or ''} in {timeout_s:g} s")

    def _line(self, deadline: float) -> dict[str, Any] | None:
        """Return the next message, or `None` at the deadline; events are also added to `events`."""
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._descriptor], [], [], left)[0]:
                return None
            self._rest += os.read(self._descriptor, 1 << 16)
        line, self._rest = self._rest.split(b"\n", 1)
        message: dict[str, Any] = json.loads(line)
        if "event" in message:
            self.events.append(message)
        return message


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
