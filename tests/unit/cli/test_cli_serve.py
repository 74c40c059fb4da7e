"""`writecliff serve` as a process: its address, its end by a signal, its summary."""

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
from tests.support.small_drive import write_small_drive


def _start(drive: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "writecliff", "serve", f"sim:{drive}", *words]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith("serving sim:"), line + process.stderr.read()
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
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    said = json.loads(out)
    assert said["schema"] == "writecliff/serve/1"
    assert said["operations"]["write"]["bytes"] == 65536
    assert said["slow_down"] is None
    assert said["waf"] >= 1
    assert said["state"] == str(state) and state.stat().st_size > 0


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
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert re.search(r"^write +1 \(0 IOPS\), 4.1 kB, mean ", out, re.M), out
    assert re.search(r"^lateness +mean ", out, re.M), out


def test_mistakes_are_explained(cli: CommandLine, tmp_path: Path) -> None:
    drive = f"sim:{write_small_drive(tmp_path)}"
    said = cli(f"serve {drive}")
    assert (said.code, "no address to serve at" in said.err) == (2, True)
    said = cli(f"serve {drive} --nbd unix:{tmp_path}/s --fast --slow-down 2")
    assert (said.code, "--fast has no time" in said.err) == (2, True)
    said = cli(f"serve {drive} --nbd unix:{tmp_path}/s --allow-host nqn.host")
    assert (said.code, "give --listen, too" in said.err) == (2, True)
    said = cli(f"serve {drive} --listen nowhere")
    assert (said.code, "'nowhere' is not an address" in said.err) == (2, True)
    said = cli(f"serve {drive} --nbd nonsense")
    assert (said.code, "'nonsense' is not an address" in said.err) == (2, True)
    said = cli(f"serve /dev/null --nbd unix:{tmp_path}/s")
    assert (said.code, "not simulated" in said.err) == (2, True)
