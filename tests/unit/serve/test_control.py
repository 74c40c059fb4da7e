"""Served drives of a user: listing, and power cuts from another process."""

from __future__ import annotations

import itertools
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.support.small_drive import write_small_drive
from writecliff.errors import ConfigError, EngineError
from writecliff.serve import DriveServer, PowerCut, ServeOptions, control
from writecliff.serve.addresses import parse_address
from writecliff.serve.control import ControlServer, control_folder, find_served, served_drives


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def server(tmp_path: Path) -> Iterator[DriveServer]:
    server = DriveServer(f"sim:{write_small_drive(tmp_path)}", ServeOptions(slow_down=None))
    server.listen_nbd("127.0.0.1:0")
    yield server
    server.end()


def test_power_is_cut_from_outside(server: DriveServer) -> None:
    server.seed_cuts(7)
    with ControlServer(server):
        (drive,) = served_drives()
        assert (drive.pid, drive.addresses) == (os.getpid(), tuple(server.addresses))
        answer = drive.power_cut()
    assert answer["number"] == 1
    assert PowerCut(**answer["cut"]) == server.power_cuts[0]
    assert server.power_cuts[0].seed == 7
    assert asdict(server.power_cuts[0])["rebuild_parts_ns"].keys() == {
        "start", "checkpoint", "journal", "scan", "erase",
    }  # fmt: skip
    assert served_drives() == []
    with pytest.raises(EngineError, match="the server has stopped"):
        drive.power_cut()


def test_only_the_user_reaches_it(server: DriveServer, runtime: Path) -> None:
    with ControlServer(server):
        folder = runtime / "writecliff"
        assert folder.stat().st_mode & 0o777 == 0o700
        (path,) = folder.iterdir()
        assert path.stat().st_mode & 0o777 == 0o600
    assert list(folder.iterdir()) == []
    folder.chmod(0o755)
    with pytest.raises(EngineError, match="other users can enter"):
        control_folder()
    folder.rmdir()
    (runtime / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(runtime / "elsewhere")
    with pytest.raises(EngineError, match="other users can enter"):
        ControlServer(server)


def test_what_a_killed_server_left_is_removed(runtime: Path) -> None:
    left = control_folder() / "1-0.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(left))
    (control_folder() / "notes.sock").write_text("no socket")
    assert served_drives() == []
    assert [path.name for path in control_folder().iterdir()] == ["notes.sock"]


def test_a_killed_server_of_the_same_process_number_is_replaced(
    server: DriveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_numbers", itertools.count(7))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(control_folder() / f"{os.getpid()}-7.sock"))
    with ControlServer(server):
        (drive,) = served_drives()
        assert drive.pid == os.getpid()


@pytest.mark.parametrize("line", [b"", b"\n", b"[1]\n", b'{"command": "format"}\n', b"\xff\n"])
def test_other_requests_are_refused(server: DriveServer, line: bytes) -> None:
    with ControlServer(server):
        (path,) = control_folder().iterdir()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(line)
            client.shutdown(socket.SHUT_WR)
            assert json.loads(client.makefile().read()) == {"error": "unknown request"}
        assert len(served_drives()) == 1
    assert server.power_cuts == ()


def test_drives_are_named_by_process_or_address(server: DriveServer) -> None:
    with ControlServer(server), ControlServer(server):
        drives = served_drives()
        assert len(drives) == 2
        with pytest.raises(ConfigError, match="several served drives match"):
            find_served(drives, None)
        only = drives[:1]
        address = server.addresses[0].replace("127.0.0.1", "localhost")
        assert find_served(only, None) == find_served(only, str(os.getpid())) == only[0]
        assert find_served(only, address) == only[0]
        for other in ("nbd://127.0.0.1:1", "4000000", "nvme-tcp://127.0.0.1:4420"):
            with pytest.raises(ConfigError, match=f"no drive is served at '{other}'"):
                find_served(only, other)
    with pytest.raises(ConfigError, match="the current user serves no drive"):
        find_served([], None)


def test_an_address_has_several_forms(tmp_path: Path) -> None:
    path = tmp_path / "drive.sock"
    forms = (f"unix:{path}", f"nbd+unix:{path}", f"nbd+unix:///?socket={path}")
    assert len({parse_address(form) for form in forms}) == 1
    named = parse_address("nvme+tcp://[::1]:4420/nqn.2014-08.org.example:a")
    assert named.where == parse_address("nvme-tcp://[::1]:4420").where
    assert named.name == "nqn.2014-08.org.example:a"
    for wrong in ("", "drive", "http://a:1", "nbd://a", "nvme-tcp://a:b", "nbd+unix:///"):
        with pytest.raises(ConfigError, match="neither the address of a served drive"):
            parse_address(wrong)
