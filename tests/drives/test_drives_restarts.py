"""Restarts of a drive server that is repeatedly stopped and killed, under fio in the guest.

The kernel's host reconnects (`ctrl-loss-tmo=-1`). fio must see no error and must verify all data
that it wrote, immediately and again after the last restart.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.served_in_guest import HOST, kernel_warnings, namespace, run
from tests.support.small_drive import write_small_drive

RESTARTS = 10
MIB = 1 << 20
PART = 3 * MIB
BEFORE_RESTART = MIB
WAIT_S = 180


class ServerProcess:
    """A process of `writecliff serve` with a state file and a fixed port."""

    def __init__(self, folder: Path) -> None:
        self._drive, self._state = write_small_drive(folder), folder / "drive.state"
        self.port = "0"
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "writecliff", "serve", f"sim:{self._drive}", "--quiet"]
        # The drive is slowed down so that commands are outstanding when the server ends.
        words = ("--slow-down", "10", "--state", str(self._state))
        self.process = subprocess.Popen(
            [*command, *words, "--listen", f"127.0.0.1:{self.port}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        output = ""
        while "serving " not in output:
            line = self.process.stderr.readline()
            assert line, output
            output = line
        _, _, uri = output.strip().rpartition(" at nvme+tcp://127.0.0.1:")
        self.port, _, self.name = uri.partition("/")

    def restart(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        code = self.process.wait(WAIT_S)
        assert code == (-number if number == signal.SIGKILL else 0)
        self.start()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    run("modprobe", "nvme-tcp")
    server = ServerProcess(tmp_path)
    yield server
    server.end()


def serial_of(name: str) -> str:
    for folder in Path("/sys/class/nvme").glob("nvme*"):
        if (folder / "subsysnqn").read_text().strip() == name:
            return (folder / "serial").read_text().strip()
    raise AssertionError(f"{name} is not connected")


def written_bytes(device: Path) -> int:
    return int(Path("/sys/block", device.name, "stat").read_text().split()[6]) * 512


def fio(device: Path, part: int, *more: str) -> tuple[str, ...]:
    """Return the fio command for random writes to one section of the drive, with verification."""
    where = (f"--filename={device}", f"--offset={part * PART}", f"--size={PART}")
    how = ("--ioengine=libaio", "--direct=1", "--rw=randwrite", "--bsrange=4k-16k", "--iodepth=8")
    verify = ("--verify=crc32c", "--verify_fatal=1", f"--randseed={part + 1}", "--fsync=32")
    return ("fio", f"--name=part{part}", *where, *how, *verify, *more)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_fio_sees_no_error_when_the_server_restarts(
    number: signal.Signals, server: ServerProcess
) -> None:
    before = run("dmesg")
    where = ("-t", "tcp", "-a", "127.0.0.1", "-s", server.port, "-n", server.name)
    again = ("--reconnect-delay", "1", "--ctrl-loss-tmo", "-1")
    run("nvme", "connect", *where, "-i", "2", *HOST, *again)
    try:
        device = namespace(serial_of(server.name))
        for part in range(RESTARTS):
            start = written_bytes(device)
            command = fio(device, part, "--do_verify=1", "--rate=,1m")
            load = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            deadline = time.monotonic() + WAIT_S
            while written_bytes(device) < start + BEFORE_RESTART:
                assert time.monotonic() < deadline and load.poll() is None
                time.sleep(0.02)
            server.restart(number)
            output = load.communicate(timeout=WAIT_S)[0].decode()
            assert load.returncode == 0, output
            print(f"{number.name} {part + 1}: fio verified {PART} bytes")
        for part in range(RESTARTS):
            run(*fio(device, part, "--verify_only"))
    finally:
        run("nvme", "disconnect", "-n", server.name)
    lines = run("dmesg").removeprefix(before).splitlines()
    assert not [s for s in lines if "I/O error" in s or "medium error" in s]
    assert not kernel_warnings(before, lost=True)
