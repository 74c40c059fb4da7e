"""Served drives in Python: data, state, figures, and errors."""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.dangers import require
from tests.support.nbd_client import NbdClient
from tests.support.processes import WAIT_LIMIT_S
from tests.support.small_drive import write_small_drive
from writecliff.cli.cmd_serve import cut_text
from writecliff.errors import ConfigError, EngineError, TargetError
from writecliff.serve import DriveServer, ServeOptions, difference

FAST = ServeOptions(slow_down=None)


@pytest.fixture
def drive(tmp_path: Path) -> str:
    return f"sim:{write_small_drive(tmp_path)}"


@contextmanager
def serving(drive: str, options: ServeOptions = FAST) -> Iterator[DriveServer]:
    server = DriveServer(drive, options)
    try:
        yield server
    finally:
        server.end()


def at(server: DriveServer, folder: Path) -> NbdClient:
    return NbdClient(server.listen_nbd(f"unix:{folder / 'nbd.sock'}"))


def test_data_and_state_outlive_the_server(drive: str, tmp_path: Path) -> None:
    options = ServeOptions(slow_down=None, state=tmp_path / "drive.state", compress=True)
    with serving(drive, options) as server, at(server, tmp_path) as client:
        client.write(8192, b"kept" * 1024)
        client.write(0, b"gone" * 1024)
        client.trim(0, 4096)
        written = server.snapshot().counters.host_write_bytes
    with serving(drive, options) as server, at(server, tmp_path) as client:
        assert server.restored
        assert client.read(0, 12288) == bytes(8192) + b"kept" * 1024
        assert server.first.counters.host_write_bytes == written == 8192
    assert not (tmp_path / "nbd.sock").exists()


def test_the_drive_takes_its_time(drive: str, tmp_path: Path) -> None:
    with serving(drive, ServeOptions(slow_down=50.0)) as server, at(server, tmp_path) as client:
        client.write(0, bytes(range(256)) * 256)
        client.flush()
        assert client.read(0, 4096) == bytes(range(256)) * 16
        # The server measures lateness after it has sent a reply, so the client may be faster.
        require(lambda: server.snapshot().lateness.count == 3)
        figures = difference(server.first, server.snapshot())
    read = figures.operations["read"]
    assert (read.requests, read.bytes) == (1, 4096)
    assert figures.operations["write"].bytes == 65536
    assert read.latency["max_ns"] is not None
    assert figures.seconds > 50 * read.latency["max_ns"] / 1e9
    assert (figures.waf or 0) >= 1


def test_recent_figures_are_those_since_the_last_look(drive: str, tmp_path: Path) -> None:
    with serving(drive) as server, at(server, tmp_path) as client:
        for _ in range(3):
            client.write(0, bytes(4096))
        before = server.snapshot()
        client.read(0, 512)
        now = server.snapshot()
    assert before.recent["write"].requests == 3
    assert (now.recent["write"].requests, now.operations["write"].requests) == (0, 3)
    figures = difference(before, now, recent=True)
    assert figures.operations["read"].requests == 1
    assert figures.waf is None
    assert (now.connections, now.outstanding) == (1, 0)


def test_a_preconditioned_drive(
    drive: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRITECLIFF_CACHE", str(tmp_path / "cache"))
    with serving(drive, ServeOptions(slow_down=None, precondition="fill")) as server:
        size = server.identity.capacity_bytes
        assert 0 <= (server.first.counters.host_write_bytes or 0) - size < 128 << 10
        with at(server, tmp_path) as client:
            assert client.size == size
            assert client.read(size - 4096, 4096) == bytes(4096), "filled, but with no data"


def test_contents_in_a_file(drive: str, tmp_path: Path) -> None:
    file = tmp_path / "data"
    options = ServeOptions(slow_down=None, contents=file)
    with serving(drive, options) as server, at(server, tmp_path) as client:
        client.write(4096, b"x" * 4096)
    assert file.read_bytes()[4096:8192] == b"x" * 4096
    file.write_bytes(b"short")
    with pytest.raises(ConfigError, match="has 5 bytes, but the drive has"):
        DriveServer(drive, options)


def test_a_memory_limit_is_no_space_to_clients(drive: str, tmp_path: Path) -> None:
    options = ServeOptions(slow_down=None, memory_limit_bytes=1 << 20)
    with serving(drive, options) as server, at(server, tmp_path) as client:
        with pytest.raises(OSError, match="refuses") as caught:
            client.write(0, b"x" * (2 << 20))
        assert caught.value.errno == errno.ENOSPC
        client.write(0, b"y" * 4096)


def test_what_cannot_be_served_is_said(drive: str, tmp_path: Path) -> None:
    def refused(match: str, **how: object) -> None:
        with pytest.raises(ConfigError, match=match):
            DriveServer(drive, ServeOptions(**how))  # type: ignore[arg-type]

    refused("--slow-down is 0.5; it must be 1 or more", slow_down=0.5)
    refused("unknown preconditioning 'wet'", precondition="wet")
    refused("--contents is a file", contents=tmp_path / "c", compress=True)
    state = tmp_path / "state"
    state.write_bytes(b"not a state")
    refused("applies only to a new drive", state=state, precondition="fill")
    refused("state: not a writecliff device state", state=state)
    with pytest.raises(TargetError, match="not simulated"):
        DriveServer("/dev/null", FAST)
    with serving(drive) as server:
        with pytest.raises(ConfigError, match="is not an address; examples: unix:"):
            server.listen_nbd("nowhere")
        with pytest.raises(EngineError, match="No such file"):
            server.listen_nbd(f"unix:{tmp_path}/none/nbd.sock")
        server.end()
        server.end()  # A second call has no effect.
        with pytest.raises(RuntimeError, match="has stopped"):
            server.snapshot()


def test_a_host_of_nvme_tcp_is_answered(drive: str) -> None:
    request = bytes([0, 0, 128, 0, 128]).ljust(128, b"\0")  # ICReq without digests.
    with serving(drive) as server:
        (uri,) = server.listen_nvme(["127.0.0.1:0"], hosts=["nqn.2014-08.org.example:host"])
        match = re.fullmatch(r"nvme\+tcp://127\.0\.0\.1:(\d+)/(nqn\.2014-08\..*:uuid:.{36})", uri)
        assert match is not None
        assert server.addresses == [uri]
        with socket.create_connection(("127.0.0.1", int(match[1])), timeout=WAIT_LIMIT_S) as host:
            host.sendall(request)
            answer = host.recv(128, socket.MSG_WAITALL)
        assert (answer[0], answer[2], len(answer)) == (1, 128, 128)
    with serving(drive) as server, pytest.raises(ConfigError, match="is not an NVMe/TCP address"):
        server.listen_nvme(["nowhere"])


@pytest.mark.parametrize("protected", [True, False])
def test_a_power_cut_says_why_it_may_undo_pages(protected: bool, tmp_path: Path) -> None:
    path = write_small_drive(tmp_path, power_loss_protection=str(protected).lower())
    undone = 0
    with serving(f"sim:{path}") as server:
        uri = server.listen_nbd(f"unix:{tmp_path / 'cut.sock'}")
        for seed in range(8):
            server.seed_cuts(seed)
            server.plan_cuts(write=5)
            with NbdClient(uri) as client:
                for page in range(4):
                    client.write(page * 4096, bytes([seed + 1]) * 4096)
                with pytest.raises(OSError):
                    client.write(4 * 4096, bytes([seed + 1]) * 4096)
            cut = server.power_cuts[-1]
            assert cut.undone_as == ("unacknowledged" if protected else "unflushed")
            assert cut.pages_undone <= cut.pages_open <= (1 if protected else 5)
            undone += cut.pages_undone
            with NbdClient(uri) as client:
                contents = (
                    [client.read(page * 4096, 512)[:1] for page in range(4)] if protected else []
                )
                assert all(data == bytes([seed + 1]) for data in contents), "it was acknowledged"
    assert undone > 0
    shown = cut_text(cut)
    why = "unacknowledged writes" if protected else "writes without a flush"
    assert f"of {why} undone (allowed)" in shown and "lost" not in shown.partition(";")[0]
