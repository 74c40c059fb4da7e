"""`writecliff serve` as a process: address, end by signal, summary."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from tests.support.nbd_client import NbdClient
from tests.support.processes import WAIT_LIMIT_S
from tests.support.small_drive import write_small_drive
from writecliff.serve import DriveServer, ServeOptions
from writecliff.serve.addresses import is_open_to_others


def _start(drive: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "writecliff", "serve", f"sim:{drive}", *words]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    line = process.stderr.readline()
    if not line.startswith("serving sim:"):
        process.kill()
        pytest.fail(line + process.stderr.read())
    return line.split(" at ")[1].strip()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_a_summary_and_the_state(
    tmp_path: Path, number: signal.Signals
) -> None:
    drive, state = write_small_drive(tmp_path), tmp_path / "drive.state"
    process = _start(drive, "--nbd", "127.0.0.1:0", "--fast", "--json", "--state", str(state))
    with NbdClient(_address(process)) as client:
        client.write(0, b"x" * 65536)
        process.send_signal(number)
        out, err = process.communicate(timeout=WAIT_LIMIT_S)
    assert process.returncode == 0, err
    answer = json.loads(out)
    assert answer["schema"] == "writecliff/serve/1"
    assert answer["operations"]["write"]["bytes"] == 65536
    assert answer["slow_down"] is None
    assert answer["waf"] >= 1
    assert answer["state"] == str(state) and state.stat().st_size > 0


def _cpu_s(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_an_idle_server_takes_no_cpu_and_says_what_it_did(tmp_path: Path) -> None:
    process = _start(write_small_drive(tmp_path), "--nbd", f"unix:{tmp_path / 'nbd.sock'}")
    with NbdClient(_address(process)) as client:
        client.write(0, b"x" * 4096)
        before = _cpu_s(process)
        time.sleep(2.5)
        assert _cpu_s(process) - before < 0.25, "a look every second, and nothing else"
    process.terminate()
    out, _ = process.communicate(timeout=WAIT_LIMIT_S)
    assert process.returncode == 0
    assert re.search(r"^write +1 \(0 IOPS\), 4.1 kB, mean ", out, re.M), out
    assert re.search(r"^lateness +mean ", out, re.M), out


def test_mistakes_are_explained(cli: CommandLine, tmp_path: Path) -> None:
    drive = f"sim:{write_small_drive(tmp_path)}"
    completed = cli(f"serve {drive}")
    assert (completed.code, "no listen address was given" in completed.err) == (2, True)
    completed = cli(f"serve {drive} --nbd unix:{tmp_path}/s --fast --slow-down 2")
    assert (completed.code, "--slow-down cannot be combined with --fast" in completed.err) == (
        2,
        True,
    )
    completed = cli(f"serve {drive} --nbd unix:{tmp_path}/s --allow-host nqn.host")
    assert (completed.code, "add --listen" in completed.err) == (2, True)
    for address in ("nowhere", f"unix:{tmp_path}/s", "unix:4420", "host:70000", "::1:4420"):
        completed = cli(f"serve {drive} --listen {address}")
        message = f"'{address}' is not an NVMe/TCP address (expected HOST:PORT)"
        assert (completed.code, message in completed.err) == (2, True), completed.err
        assert completed.err.count("unix") == address.count("unix")
    completed = cli(f"serve {drive} --nbd nonsense")
    assert (completed.code, "'nonsense' is not an address" in completed.err) == (2, True)
    completed = cli(f"serve /dev/null --nbd unix:{tmp_path}/s")
    assert (completed.code, "not simulated" in completed.err) == (2, True)


def test_addresses_that_other_machines_reach_are_warned_of(tmp_path: Path) -> None:
    server = DriveServer(f"sim:{write_small_drive(tmp_path)}", ServeOptions(slow_down=None))
    try:
        server.listen_nbd(f"unix:{tmp_path / 'nbd.sock'}")
        server.listen_nbd("127.0.0.1:0")
        server.listen_nvme(["localhost:0"])
        server.listen_nvme(["0.0.0.0:0"], hosts=["nqn.2026-01.test:host"])
        assert server.warnings == []
        nbd = server.listen_nbd("0.0.0.0:0")
        (nvme,) = server.listen_nvme(["0.0.0.0:0"])
    finally:
        server.end()
    no_control, any_host = server.warnings
    assert no_control.startswith(f"{nbd}: NBD has no access control")
    assert any_host.startswith(f"{nvme}: any host") and any_host.endswith("--allow-host")


def test_a_warning_is_one_line_on_stderr(tmp_path: Path) -> None:
    process = _start(write_small_drive(tmp_path), "--nbd", "0.0.0.0:0", "--fast", "--json")
    _address(process)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("warning: nbd://0.0.0.0:")
    process.terminate()
    out, _ = process.communicate(timeout=WAIT_LIMIT_S)
    assert len(json.loads(out)["warnings"]) == 1


@pytest.mark.parametrize(
    ("address", "is_open"),
    [
        ("127.0.0.1:1", False), ("127.9.9.9:1", False), ("[::1]:1", False), ("unix:/a", False),
        ("[::ffff:127.0.0.1]:1", False), ("0.0.0.0:1", True), ("[::]:1", True),
        ("192.168.1.5:1", True), ("[fe80::1%eth0]:1", True),
    ],
)  # fmt: skip
def test_only_loopback_and_sockets_are_closed_to_others(address: str, is_open: bool) -> None:
    assert is_open_to_others(address) is is_open


def test_power_is_cut_at_a_write_and_by_a_signal(tmp_path: Path) -> None:
    """Check that clients lose their connection, and that the drive returns with flushed data."""
    words = ("--fast", "--json", "--cut-at-write", "3", "--cut-seed", "5")
    process = _start(write_small_drive(tmp_path), "--nbd", "127.0.0.1:0", *words)
    address, data = _address(process), b"x" * 4096
    with NbdClient(address) as client:
        client.write(0, data)
        client.flush()
        client.write(4096, data)
        with pytest.raises(OSError):
            client.write(8192, data)
    with NbdClient(address) as client:
        assert client.read(0, 4096) == data
        process.send_signal(signal.SIGUSR1)
        while True:  # Delivering the signal takes some time.
            try:
                client.read(0, 4096)
            except OSError:
                break
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=WAIT_LIMIT_S)
    assert process.returncode == 0, err
    first, second = json.loads(out)["power_cuts"]
    assert (first["writes"], first["seed"], second["seed"]) == (3, 5, 6)
    assert second["pages_open"] == 0
    assert re.search(r"power cut 2: after 3 writes, 0 requests without a reply", err)
    assert json.loads(out)["power_cycles"] == 3


def test_power_is_cut_after_times_and_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    words = ("--fast", "--json", "--cut-after", "1 ms..2 ms", "--cuts", "2")
    process = _start(write_small_drive(tmp_path), "--nbd", "127.0.0.1:0", *words)
    address, two = _address(process), "power cut 2: "
    assert process.stderr is not None
    while two not in process.stderr.readline():
        pass
    done = cli(["serve", "power-cut", address, "--json"])
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert (answer["pid"], answer["addresses"], answer["number"]) == (process.pid, [address], 3)
    assert cli(f"serve power-cut {process.pid}").out.startswith("sim:")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=WAIT_LIMIT_S)
    assert process.returncode == 0, err
    cuts = json.loads(out)["power_cuts"]
    assert [cut["seed"] for cut in cuts] == [1, 2, 3, 4]
    assert cuts[0]["wall_ns"] >= 1e6 and cuts[2] == answer["cut"]
    assert cli("serve power-cut").code == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--cut-at-write", "0"), "--cut-at-write must be at least 1, not 0"),
        (("--cuts", "2"), "--cuts requires --cut-at-write or --cut-after"),
        (("--cut-at-write", "1", "--cut-after", "1 s"), "are mutually exclusive"),
        (("--cut-after", "2 s..1 s"), "must be a time greater than 0"),
        (("--cut-after", "0 s"), "must be a time greater than 0"),
        (("--cut-after", "soon"), "invalid time 'soon'"),
        (("--cut-after", "1 s", "--cuts", "0"), "--cuts must be at least 1, not 0"),
    ],
)
def test_plans_of_power_cuts_are_checked(
    tmp_path: Path, cli: CommandLine, words: tuple[str, ...], message: str
) -> None:
    drive = f"sim:{write_small_drive(tmp_path)}"
    done = cli(["serve", drive, "--nbd", "127.0.0.1:0", *words])
    assert done.code == 2 and message in done.err
