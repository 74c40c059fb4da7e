"""Served drives under nvme-cli commands: identify, logs, features, data, purges."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.served_in_guest import connected, run
from tests.support.small_drive import write_small_drive
from writecliff.serve import DriveServer, ServeOptions

# Features that are mandatory for an I/O controller over fabrics and need no data buffer to be read.
FEATURES = ("0x01", "0x02", "0x04", "0x05", "0x06", "0x07", "0x0a", "0x0b", "0x0f")


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Path]:
    run("modprobe", "nvme-tcp")
    path = write_small_drive(tmp_path, power_loss_protection="false")
    server = DriveServer(f"sim:{path}", ServeOptions(slow_down=None))
    try:
        with connected(server) as device:
            yield device
    finally:
        server.end()


def controller(device: Path) -> str:
    return str(device).removesuffix("n1")


def test_nvme_cli_reads_what_the_controller_has(device: Path, tools: Callable[[str], Path]) -> None:
    tools("newer")
    of = controller(device)
    for command in ("id-ctrl", "smart-log", "error-log", "fw-log"):
        json.loads(run("nvme", command, of, "-o", "json"))
    for command in ("effects-log", "list-ctrl"):
        run("nvme", command, of)
    for command in ("id-ns", "ns-descs", "nvm-id-ctrl"):
        run("nvme", command, str(device), *(["-n", "1"] if command != "nvm-id-ctrl" else []))
    for command in ("supported-log-pages", "fid-support-effects-log", "list-ns", "sanitize-log",
                    "endurance-log", "changed-ns-list-log", "show-regs"):  # fmt: skip
        more = {"list-ns": ("--all",), "endurance-log": ("-g", "1")}.get(command, ())
        run("nvme", command, of, *more)
    for page, length in ((0, 1024), (1, 4096), (2, 512), (3, 512), (5, 4096), (0x12, 1024)):
        run("nvme", "get-log", of, f"--log-id={page}", f"--log-len={length}")
    for feature in FEATURES:
        for select in ("0", "1", "3"):
            run("nvme", "get-feature", str(device), "-f", feature, "-s", select, "-n", "1")
    run("nvme", "set-feature", of, "-f", "0x0a", "--value=1")
    shown = run("nvme", "get-feature", of, "-f", "0x0a").strip()
    assert int(shown.rpartition(":")[2], 16) == 1
    assert run("nvme", "get-ns-id", str(device)).strip().endswith("1")
    assert controller(device).rpartition("/")[2] in run("nvme", "list-subsys")


def test_nvme_cli_moves_data_and_purges(device: Path, generation: str, tmp_path: Path) -> None:
    data, read_back = tmp_path / "data", tmp_path / "found"
    data.write_bytes(bytes(range(256)) * 16)
    blocks = ("-s", "8", "-c", "7", "-z", "4096")
    run("nvme", "write", str(device), *blocks, "-d", str(data))
    run("nvme", "compare", str(device), *blocks, "-d", str(data))
    run("nvme", "flush", str(device), "-n", "1")
    run("nvme", "verify", str(device), "-s", "8", "-c", "7", "-n", "1")
    run("nvme", "read", str(device), *blocks, "-d", str(read_back))
    assert read_back.read_bytes() == data.read_bytes()
    smart = json.loads(run("nvme", "smart-log", controller(device), "-o", "json"))
    assert int(smart["data_units_read"]) >= 1 and int(smart["host_read_commands"]) >= 3
    errors = int(smart["num_err_log_entries"])
    other = tmp_path / "other"
    other.write_bytes(bytes(4096))
    words = ("nvme", "compare", str(device), *blocks, "-d", str(other))
    assert subprocess.run(words, capture_output=True, check=False).returncode != 0
    smart = json.loads(run("nvme", "smart-log", controller(device), "-o", "json"))
    assert int(smart["num_err_log_entries"]) == errors + 1
    run("nvme", "write-zeroes", str(device), "-s", "8", "-c", "3", "-n", "1")
    run("nvme", "dsm", str(device), "-n", "1", "--ad", "-s", "12", "-b", "4")
    run("nvme", "read", str(device), *blocks, "-d", str(read_back))
    assert read_back.read_bytes() == bytes(4096)
    run("nvme", "write", str(device), *blocks, "-d", str(data))
    run("nvme", "sanitize", controller(device), "-a", "2")
    run("nvme", "format", str(device), "-l", "0", "--force")
    run("nvme", "read", str(device), *blocks, "-d", str(read_back))
    assert read_back.read_bytes() == bytes(4096)
