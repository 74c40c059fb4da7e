"""Servers that are stopped and killed while clients reconnect: no errors, no lost data."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.support.nbd_client import NbdClient
from tests.support.nvme_tcp_host import NvmeTcpHost
from tests.support.processes import WAIT_LIMIT_S
from tests.support.small_drive import write_small_drive

PAGE = 4096
RESTARTS = 3
WRITES_BETWEEN = 150
NVME_PAGES = range(0, 4000)
NBD_PAGES = range(4000, 8000)


class Server:
    """`writecliff serve` with a state file, as a process."""

    def __init__(self, folder: Path) -> None:
        self.uris: list[str] = []
        self._drive = write_small_drive(folder)
        self._state = folder / "drive.state"
        self._nbd = f"unix:{folder / 'nbd.sock'}"
        self.start("127.0.0.1:0")

    def start(self, listen: str) -> None:
        # The drive is slowed down so that it has commands when the server ends.
        words = ("--slow-down", "3", "--listen", listen, "--nbd", self._nbd, "--quiet")
        command = [sys.executable, "-m", "writecliff", "serve", f"sim:{self._drive}", *words]
        self.process = subprocess.Popen(
            [*command, "--state", str(self._state)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        uris: list[str] = []
        output = ""
        while len(uris) < 2:
            line = self.process.stderr.readline()
            assert line, output
            output += line
            if line.startswith("serving "):
                uris.append(line.split(" at ")[1].strip())
        self.uris = uris

    def restart(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        code = self.process.wait(WAIT_LIMIT_S)
        assert code == (-number if number == signal.SIGKILL else 0)
        self.start(self.uris[0].removeprefix("nvme+tcp://").split("/")[0])

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def content(page: int, version: int) -> bytes:
    return f"{page:8}{version:8}".encode() * (PAGE // 16)


class Writer(Thread):
    """A client that writes pages until `ended` is set, and repeats writes without a reply."""

    def __init__(self, connect: Callable[[], NbdClient | NvmeTcpHost], pages: range) -> None:
        super().__init__(daemon=True)
        self.acknowledged: dict[int, int] = {}
        self.failure: Exception | None = None
        self.count = 0
        self.ended = Event()
        self._connect, self._pages = connect, pages

    def run(self) -> None:
        client: NbdClient | NvmeTcpHost | None = None
        while not self.ended.is_set() and self.failure is None:
            page = self._pages[(self.count * 7919) % len(self._pages)]
            try:
                client = client or self._connect()
                client.write(page * PAGE, content(page, self.count))
            except (ConnectionError, FileNotFoundError):
                client = None
                time.sleep(0.02)
                continue
            except Exception as error:  # The server has reported an error.
                self.failure = error
                return
            self.acknowledged[page] = self.count
            self.count += 1

    def write_more(self) -> None:
        """Wait until the client has written more, and raise the client's error, if any."""
        enough = self.count + WRITES_BETWEEN
        deadline = time.monotonic() + WAIT_LIMIT_S
        while self.count < enough and self.failure is None:
            assert time.monotonic() < deadline, f"{self.count} writes"
            time.sleep(0.01)
        if self.failure is not None:
            raise self.failure


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.long)],
)
def test_clients_lose_nothing_when_the_server_restarts(
    number: signal.Signals, tmp_path: Path
) -> None:
    server = Server(tmp_path)
    writers = (
        Writer(lambda: NvmeTcpHost(server.uris[0]), NVME_PAGES),
        Writer(lambda: NbdClient(server.uris[1]), NBD_PAGES),
    )
    try:
        for writer in writers:
            writer.start()
        for _ in range(RESTARTS if number == signal.SIGKILL else 1):
            for writer in writers:
                writer.write_more()
            server.restart(number)
        for writer in writers:
            writer.write_more()
            writer.ended.set()
        server.restart(signal.SIGKILL)
        for writer in writers:
            writer.join(WAIT_LIMIT_S)
        with NbdClient(server.uris[1]) as client:
            for writer in writers:
                assert len(writer.acknowledged) >= 2 * WRITES_BETWEEN
                for page, version in writer.acknowledged.items():
                    data = client.read(page * PAGE, PAGE)
                    # The last write may have succeeded without a reply.
                    assert data in (content(page, version), content(page, writer.count))
    finally:
        server.end()


def test_a_state_has_one_server(tmp_path: Path) -> None:
    server = Server(tmp_path)
    try:
        words = ("serve", f"sim:{tmp_path / 'small.toml'}", "--nbd", f"unix:{tmp_path / 'other'}")
        second = subprocess.run(
            [sys.executable, "-m", "writecliff", *words, "--state", str(tmp_path / "drive.state")],
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT_LIMIT_S,
        )
        assert second.returncode == 2
        assert "another server uses the state" in second.stderr
        assert second.stderr.count("\n") == 1
        with NbdClient(server.uris[1]) as client:
            client.write(0, content(0, 0))
    finally:
        server.end()
