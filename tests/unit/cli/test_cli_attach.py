"""`writecliff attach` and `detach` on a simulated machine whose nvme-cli connects."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.block_machine import Machine
from tests.support.cli import CommandLine
from writecliff.engines.blockdev.tools import ABSENT, ToolResult

NQN = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555"
OTHER = "nqn.2014-08.org.nvmexpress:uuid:99999999-2222-3333-4444-555555555555"
DISCOVERY = "nqn.2014-08.org.nvmexpress.discovery"
DONE = ToolResult(0, "")


class Initiator:
    """The kernel's initiator, controlled by the simulated machine's `modprobe` and `nvme`."""

    def __init__(self, root: Path) -> None:
        self.machine = Machine(root)
        self.served = [DISCOVERY, NQN]
        self.failures: dict[str, ToolResult] = {}
        self.has_namespace = self.disconnects = True
        self.calls: list[list[str]] = []
        self.system = replace(self.machine.system, run=self.run)

    def run(self, argv: Sequence[str], *, timeout_s: float = 30.0) -> ToolResult:
        self.calls.append(list(argv))
        step = "modprobe" if argv[0] == "modprobe" else argv[1]
        if step in self.failures:
            return self.failures[step]
        if step == "modprobe":
            (self.machine.sys / "module/nvme_tcp").mkdir(parents=True)
        elif step == "discover":
            records = [{"trtype": "tcp", "subnqn": name} for name in self.served]
            return ToolResult(0, json.dumps({"genctr": 1, "records": records}))
        elif step == "connect":
            self.connect(argv[argv.index("-n") + 1])
        elif step == "disconnect" and self.disconnects:
            (self.machine.sys / "class/nvme/nvme0").unlink()
            shutil.rmtree(self.machine.sys / "devices/virtual/nvme0")
        return DONE

    def connect(self, nqn: str, transport: str = "tcp") -> None:
        machine, controller = self.machine, self.machine.sys / "devices/virtual/nvme0"
        files = {"subsysnqn": nqn, "transport": transport, "state": "live"}
        machine.write(controller, files)
        (machine.sys / "class/nvme").mkdir(parents=True, exist_ok=True)
        (machine.sys / "class/nvme/nvme0").symlink_to(controller)
        if self.has_namespace:
            machine.disk("nvme0n1", (259, 0))
            directory = machine.sys / "devices/nvme0n1"
            shutil.rmtree(directory / "device")
            (directory / "device").symlink_to(controller)
            (controller / "nvme0n1").symlink_to(directory)


@pytest.fixture
def initiator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Initiator:
    made = Initiator(tmp_path)
    monkeypatch.setattr("writecliff.engines.blockdev.topology.System", lambda: made.system)
    monkeypatch.setattr("writecliff.engines.blockdev.nvme.fabrics._APPEARS_S", 0.0)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return made


def test_a_drive_is_attached_and_detached(cli: CommandLine, initiator: Initiator) -> None:
    device = str(initiator.machine.dev / "nvme0n1")
    completed = cli("attach nvme-tcp://127.0.0.1:4420")
    assert (completed.code, completed.out, completed.err) == (0, f"{device}\n", "")
    where = ["-t", "tcp", "-a", "127.0.0.1", "-s", "4420"]
    assert initiator.calls == [
        ["modprobe", "nvme-tcp"],
        ["nvme", "discover", *where, "-o", "json"],
        ["nvme", "connect", *where, "-n", NQN],
    ]
    again = cli("attach nvme-tcp://127.0.0.1:4420")
    assert (again.code, f"is already attached as {device}" in again.err) == (2, True)
    completed = cli(f"attach --detach {device}")
    assert (completed.code, completed.out) == (0, f"{device} detached\n")
    assert initiator.calls[-1] == ["nvme", "disconnect", "-n", NQN]


def test_json_and_a_name(cli: CommandLine, initiator: Initiator) -> None:
    device = str(initiator.machine.dev / "nvme0n1")
    answer = json.loads(cli(f"attach nvme+tcp://[::1]:4420/{NQN} --json").out)
    assert answer == {
        "schema": "writecliff/attach/1",
        "device": device,
        "devices": [device],
        "nqn": NQN,
    }
    assert [call[1] for call in initiator.calls] == ["nvme-tcp", "connect"], "nothing to discover"
    assert initiator.calls[-1][5] == "::1"
    assert "--hostnqn" not in initiator.calls[-1]
    answer = json.loads(cli(f"attach --detach {NQN} --json").out)
    assert answer == {"schema": "writecliff/detach/1", "devices": [device], "nqn": NQN}


def test_the_name_of_the_host(cli: CommandLine, initiator: Initiator) -> None:
    uuid = "12345678-1234-1234-1234-123456789abc"
    for name, more in ((f"nqn.2014-08.org.nvmexpress:uuid:{uuid}", ["--hostid", uuid]), ("x", [])):
        assert cli(f"attach nvme-tcp://127.0.0.1:4420 --host-nqn {name}").code == 0
        for call in initiator.calls[-2:]:
            assert call[8:][: 2 + len(more)] == ["--hostnqn", name, *more]
        initiator.run(["nvme", "disconnect"])
        shutil.rmtree(initiator.machine.sys / "devices/nvme0n1")
        for link in ("block/nvme0n1", "dev/block/259:0"):
            (initiator.machine.sys / link).unlink()


def test_several_drives_need_a_name(cli: CommandLine, initiator: Initiator) -> None:
    initiator.served = [OTHER, NQN]
    completed = cli("attach nvme-tcp://127.0.0.1:4420")
    assert (
        completed.code,
        "2 drives are served at this address" in completed.err,
        NQN in completed.err,
    ) == (
        2,
        True,
        True,
    )
    initiator.served = [DISCOVERY]
    completed = cli("attach nvme-tcp://127.0.0.1:4420")
    assert (completed.code, "no drive is served at this address" in completed.err) == (2, True)


REFUSED = "Failed to write to /dev/nvme-fabrics: Connection refused"


@pytest.mark.parametrize(
    ("step", "failure", "code", "words"),
    [
        (
            "modprobe",
            ToolResult(1, "", "modprobe: FATAL: Module nvme-tcp not found"),
            1,
            ["module nvme-tcp cannot be loaded: modprobe: FATAL", "linux-modules-extra"],
        ),
        (
            "discover",
            ToolResult(ABSENT, "", "nvme is not installed"),
            1,
            ["nvme-cli is not installed", "install the nvme-cli package"],
        ),
        (
            "discover",
            ToolResult(1, "", f"{REFUSED}\n"),
            2,
            [
                "127.0.0.1:4420: the command `nvme discover` failed",
                REFUSED,
                "--listen 127.0.0.1:4420",
            ],
        ),
        (
            "connect",
            ToolResult(1, "", "could not add new controller: invalid arguments/configuration"),
            2,
            ["`nvme connect` failed: could not add", "--allow-host"],
        ),
    ],
)
def test_failures_are_explained(
    cli: CommandLine,
    initiator: Initiator,
    step: str,
    failure: ToolResult,
    code: int,
    words: list[str],
) -> None:
    initiator.failures[step] = failure
    completed = cli("attach nvme-tcp://127.0.0.1:4420")
    assert (completed.code, completed.out) == (code, "")
    assert all(word in completed.err for word in words), completed.err


def test_mistakes_are_explained(
    cli: CommandLine, initiator: Initiator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for address in ("127.0.0.1:4420", "nvme-tcp://127.0.0.1", "nvme-tcp://:1", "nbd://host:1"):
        completed = cli(f"attach {address}")
        assert (completed.code, f"'{address}' is not the address of" in completed.err) == (2, True)
    initiator.has_namespace = False
    completed = cli("attach nvme-tcp://127.0.0.1:4420")
    assert (completed.code, "no block device appeared" in completed.err) == (1, True)
    completed = cli(f"attach --detach {OTHER}")
    assert (completed.code, f"attached over NVMe/TCP: {NQN}" in completed.err) == (2, True)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    before = len(initiator.calls)
    for words in ("attach nvme-tcp://127.0.0.1:4420", f"detach {NQN}"):
        completed = cli(words)
        assert (completed.code, "requires root" in completed.err, "sudo" in completed.err) == (
            2,
            True,
            True,
        )
    assert len(initiator.calls) == before


def test_a_drive_in_use_or_of_this_machine_stays(cli: CommandLine, initiator: Initiator) -> None:
    device = initiator.machine.dev / "nvme0n1"
    cli("attach nvme-tcp://127.0.0.1:4420")
    initiator.machine.mount("259:0", "/mnt", str(device))
    completed = cli(f"attach --detach {device}")
    assert (completed.code, "in use" in completed.err, "/mnt" in completed.err) == (2, True, True)
    (initiator.machine.sys / "devices/virtual/nvme0/transport").write_text("pcie\n")
    completed = cli(f"attach --detach {device}")
    assert (completed.code, "is not attached over NVMe/TCP" in completed.err) == (2, True)
    assert initiator.calls[-1][1] == "connect", "nothing was disconnected"


def test_a_drive_that_stays_is_an_error(cli: CommandLine, initiator: Initiator) -> None:
    cli("attach nvme-tcp://127.0.0.1:4420")
    initiator.disconnects = False
    completed = cli(f"attach --detach {NQN}")
    assert (completed.code, "is still attached" in completed.err) == (1, True)
