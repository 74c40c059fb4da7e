"""Small components of the bench: the first root's archive, the monitor's client, the table."""

from __future__ import annotations

import json
import lzma
import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from tests.guest import first_root, job
from tests.guest.figures import Figures
from tests.guest.job import run_folder
from tests.guest.qmp import Qmp, QmpError
from tests.guest.reasons import CannotRun

if TYPE_CHECKING:
    from tests.guest.fetch import Parts


def unpacked(archive: bytes) -> dict[str, tuple[int, bytes]]:
    """Return the names with mode and content of a cpio archive in newc format."""
    members, at = {}, 0
    while True:
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        size, length = fields[6], fields[11]
        name = archive[at + 110 : at + 110 + length - 1].decode()
        start = at + (110 + length + 3) // 4 * 4
        if name == "TRAILER!!!":
            return members
        members[name] = fields[1], archive[start : start + size]
        at = start + (size + 3) // 4 * 4


def test_the_first_root_loads_modules_after_what_they_need(tmp_path: Path) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    for name in ("a", "b-b", "c"):
        (modules / f"{name}.ko.xz").write_bytes(lzma.compress(name.encode()))
    (modules / "modules.dep").write_text(
        "a.ko.xz: b-b.ko.xz c.ko.xz\nb-b.ko.xz: c.ko.xz\nc.ko.xz:\n"
    )
    busybox = tmp_path / "busybox"
    busybox.write_bytes(b"box")
    place = tmp_path / "root"
    load = {"built_in": "", "b_b": "size=1 fast=1", "a": ""}
    first_root.write(place, busybox=busybox, modules=modules, load=load)
    members = unpacked(place.read_bytes())
    assert members["modules/order"][1] == b"c.ko\nb-b.ko size=1 fast=1\na.ko\n"
    assert members["modules/a.ko"] == (0o100755, b"a")
    assert members["bin/sh"] == (0o120777, b"busybox")
    assert members["proc"] == (0o040755, b"")
    assert members["init"][1].startswith(b"#!/bin/sh\n")


Answer = Callable[[dict[str, object]], list[dict[str, object]]]


def monitor(answer: Answer) -> Qmp:
    """Return a client of a monitor that greets and sends the results of `answer`."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        with theirs, theirs.makefile("rw") as lines:
            lines.write('{"QMP": {"version": {}}}\n')
            for line in lines:
                command = json.loads(line)
                replies = answer(command)
                lines.write(
                    "".join(json.dumps({"id": command["id"], **reply}) + "\n" for reply in replies)
                )
                lines.flush()

    threading.Thread(target=serve, daemon=True).start()
    return Qmp(ours.detach())


def test_the_client_tells_answers_from_events() -> None:
    gone = {"event": "DEVICE_DELETED", "data": {"device": "nvme", "path": "x"}, "id": None}

    def answer(command: dict[str, object]) -> list[dict[str, object]]:
        stale = {"return": "stale", "id": "of another client"}
        return [gone, stale, {"return": command.get("arguments")}]

    qmp = monitor(answer)
    assert qmp.execute("device_del", id="nvme") == {"id": "nvme"}
    assert qmp.wait_event("DEVICE_DELETED", device="nvme")["data"]["path"] == "x"
    with pytest.raises(QmpError, match=r"no event DEVICE_DELETED .*'sata'.* in 0 s"):
        qmp.wait_event("DEVICE_DELETED", timeout_s=0, device="sata")


def test_the_client_says_why_a_command_failed() -> None:
    def answer(command: dict[str, object]) -> list[dict[str, object]]:
        # An earlier client has already negotiated capabilities.
        if command["execute"] == "qmp_capabilities":
            return [{"error": {"class": "CommandNotFound", "desc": "complete"}}]
        return [{"error": {"class": "GenericError", "desc": "it is not there"}}]

    with pytest.raises(QmpError, match=r"device_del: it is not there \(GenericError\)"):
        monitor(answer).execute("device_del", id="nvme")


def test_the_table_counts_cases(tmp_path: Path) -> None:
    figures = Figures()
    for phase in ("passed", "passed", "passed"):
        figures.count("faults", "vanished", phase)
    for phase in ("passed", "failed", "passed"):  # The phases are set-up, call and teardown.
        figures.count("faults", "throttled", phase)
    figures.count("cache", "sata", "skipped")
    figures.save(tmp_path / "inside")
    outside = Figures()
    outside.count("faults", "power", "passed")
    outside.save(tmp_path / "outside")
    files = (tmp_path / "inside", tmp_path / "outside", tmp_path / "never written")
    lines = Figures.of_files(*files).lines()
    assert [(line.split()[0], line.split()[-3:]) for line in lines] == [
        ("drives", ["0", "of", "1"]),
        ("sata:", ["sata:", "skipped"]),
        ("faults", ["2", "of", "3"]),
        ("throttled:", ["throttled:", "failed"]),
    ]
    with pytest.raises(ValueError, match="no figure is called speed"):
        figures.count("speed", "nvme", "passed")


def test_what_killed_benches_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = tmp_path / "writecliff-guest-killed"
    left.mkdir()
    (left / "lock").touch()
    with run_folder() as other, run_folder() as folder:
        (folder / "image").touch()
        assert not left.exists()
        assert other.exists()  # The folder is still in use.
    assert list(tmp_path.iterdir()) == []


class Hanging:
    """A machine whose first `hangs` starts hang."""

    def __init__(self, out: Path, hangs: int) -> None:
        self.console = out / "console"
        self.started: list[subprocess.Popen[str]] = []
        self._hangs = hangs

    def start(self, *, terminal: bool = False) -> subprocess.Popen[str]:
        words = ["sleep", "60"]
        self.started.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
        line = "hpet0: 3 comparators" if len(self.started) <= self._hangs else job.STARTED
        self.console.write_text(f"{line}\n")
        return self.started[-1]


@pytest.mark.parametrize("hangs", [1, 3])
def test_a_guest_that_hangs_is_started_again(
    hangs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Hanging(tmp_path, hangs)
    monkeypatch.setattr(job, "_START_S", 0.3)
    monkeypatch.setattr(job, "Machine", lambda parts, **folders: machine)
    monkeypatch.setattr(job, "environment", lambda parts, **more: {})
    guest = job.Job(cast("Parts", None), ["true"], run=tmp_path, out=tmp_path)
    if hangs == 3:
        with pytest.raises(CannotRun, match=r"the guest did not start in 3 x .* hpet0"), guest:
            pass
    else:
        with guest:
            assert [process.poll() for process in machine.started] == [-signal.SIGKILL, None]
    assert len(machine.started) == min(hangs + 1, 3)
    assert all(process.poll() == -signal.SIGKILL for process in machine.started)
