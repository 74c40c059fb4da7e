"""Lifetime of the fio process: it always ends, and its last output is kept. A stub replaces fio."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import WAIT_LIMIT_S
from writecliff.engines.blockdev.tools import ABSENT, ToolResult
from writecliff.engines.fio import capability
from writecliff.engines.fio.process import Document, Exit, FioProcess
from writecliff.errors import EngineError

DOCUMENT = '{\n "jobs": []\n}\n'


@pytest.fixture
def stand_in(tmp_path: Path) -> Any:
    """Create a program from a few lines of shell; it receives fio's arguments."""

    def make(script: str) -> str:
        program = tmp_path / "fio"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return str(program)

    return make


def gone(pid: int) -> bool:
    """Return `True` if a process has ended (or is a zombie, but no child of this one)."""
    deadline = time.monotonic() + WAIT_LIMIT_S
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def run(process: FioProcess) -> tuple[list[Document], Exit]:
    """Run to the end and return all reports and the exit status."""
    process.start()
    return list(iter(process.next, None)), process.ended()


def test_reports_arguments_and_job_file(stand_in: Any) -> None:
    script = f"""
    for last; do :; done
    echo "args: $*" >&2
    grep -q hello "$last" || exit 3
    printf '{DOCUMENT.encode("unicode_escape").decode()}'
    """
    documents, ended = run(FioProcess(stand_in(script), "hello\n", 1500))
    assert documents == [{"jobs": []}]
    assert ended.returncode == 0
    assert ended.reason == ""
    assert "--output-format=json+ --eta=never --status-interval=1500ms" in ended.message


def test_a_failure_is_reported_with_fios_last_message(stand_in: Any) -> None:
    script = 'echo "fio: first" >&2; echo "fio: io_u error: No space left" >&2; exit 1'
    _, ended = run(FioProcess(stand_in(script), "", 1000))
    assert ended.reason == "io_u error: No space left"


def test_a_kill_is_reported_as_one(stand_in: Any) -> None:
    _, ended = run(FioProcess(stand_in("kill -9 $$"), "", 1000))
    assert ended.reason == "killed by SIGKILL"


def test_an_absent_program_is_an_engine_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot start"):
        FioProcess(str(tmp_path / "none"), "", 1000).start()


def test_stop_asks_the_child_to_end_and_reads_its_last_report(stand_in: Any) -> None:
    text = DOCUMENT.encode("unicode_escape").decode()
    script = f"""
    say() {{ printf '{text}'; }}
    trap 'say; exit 128' INT
    say
    while :; do sleep 0.05; done
    """
    process = FioProcess(stand_in(script), "", 1000).start()
    assert process.next() == {"jobs": []}
    try:
        assert process.stop() == [{"jobs": []}]
        assert process.next() is None
    finally:
        process.close()
    assert process.pid is not None
    assert gone(process.pid)


def test_reports_are_read_while_nobody_takes_them(stand_in: Any, tmp_path: Path) -> None:
    """Check that fio does not wait for a driver that stores a step: a pipe holds 64 KiB."""
    done = tmp_path / "done"
    text = DOCUMENT.encode("unicode_escape").decode()
    script = f"head -c 1000000 /dev/zero | tr '\\0' '\\n'; printf '{text}'; touch {done}"
    process = FioProcess(stand_in(script), "", 1000).start()
    deadline = time.monotonic() + WAIT_LIMIT_S
    while not done.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        assert done.exists()
        time.sleep(0.05)
        assert process.next() == {"jobs": []}
        assert process.waited_ns > 0
        assert process.next() is None
    finally:
        process.close()


def test_broken_json_is_told_once_and_the_rest_is_dropped(stand_in: Any) -> None:
    process = FioProcess(stand_in("printf '{\n x\n}\n{\n}\n'"), "", 1000).start()
    try:
        with pytest.raises(EngineError, match="cannot be read"):
            process.next()
        assert process.next() is None
    finally:
        process.close()


def test_a_child_that_does_not_stop_is_killed(
    stand_in: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("writecliff.engines.fio.process._STOP_GRACE_S", 0.3)
    text = DOCUMENT.encode("unicode_escape").decode()
    script = f"trap '' INT TERM; printf '{text}'; while :; do sleep 0.05; done"
    process = FioProcess(stand_in(script), "", 1000).start()
    assert process.next() == {"jobs": []}
    process.stop()
    process.close()
    assert process.pid is not None
    assert gone(process.pid)


STARTS = {
    "main thread": "process.start().next()",
    "another thread": (
        "import threading, time; "
        "threading.Thread(target=lambda: process.start().next()).start(); time.sleep(3600)"
    ),
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS.keys())
def test_the_child_dies_with_its_parent(stand_in: Any, tmp_path: Path, start: str) -> None:
    pid_file = tmp_path / "pid"
    program = stand_in(f"echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; exec sleep 3600")
    code = (
        "from writecliff.engines.fio.process import FioProcess\n"
        f"process = FioProcess({program!r}, '', 1000)\n{start}\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    try:
        deadline = time.monotonic() + WAIT_LIMIT_S
        while not pid_file.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        pid = int(pid_file.read_text())
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert gone(pid)


def test_a_child_whose_parent_died_before_it_could_ask_for_its_death_signal_ends() -> None:
    code = (
        "from writecliff.signals import die_with_parent\n"
        "import os\n"
        "die_with_parent(os.getppid() + 1)\n"
        "print('lives on')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, b"")


def answers(version: str, engines: str = "") -> Any:
    def run(argv: Any, *, timeout_s: float = 30.0) -> ToolResult:
        return ToolResult(0, version if argv[1] == "--version" else engines)

    return run


def test_absent_fio_says_what_to_install() -> None:
    with pytest.raises(EngineError, match="fio is not installed") as caught:
        capability.find_fio(lambda argv, timeout_s=30.0: ToolResult(ABSENT, ""))
    assert caught.value.hint is not None
    assert "package 'fio'" in caught.value.hint


def test_engine_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capability, "find_tool", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(capability, "kernel_has_io_uring", lambda: True)
    both = "Available IO engines:\n\tlibaio\n\tio_uring\n\tio_uring_cmd\n"
    assert capability.find_fio(answers("fio-3.33\n", both)).ioengine == "io_uring"
    only = "Available IO engines:\n\tlibaio\n\tio_uring_cmd\n"
    assert capability.find_fio(answers("fio-3.33\n", only)).ioengine == "libaio"
    monkeypatch.setattr(capability, "kernel_has_io_uring", lambda: False)
    assert capability.find_fio(answers("fio-3.33\n", both)).ioengine == "libaio"
    with pytest.raises(EngineError, match="too old"):
        capability.find_fio(answers("fio-3.1\n", both))
    with pytest.raises(EngineError, match="not fio"):
        capability.find_fio(answers("busybox\n", both))
    with pytest.raises(EngineError, match="neither"):
        capability.find_fio(answers("fio-3.33\n", "\tsync\n"))


@pytest.mark.parametrize(
    ("text", "version"),
    [("fio-3.33", (3, 33)), ("fio-3.36-12-g1a2b", (3, 36)), ("fio 3", None)],
)
def test_versions(text: str, version: tuple[int, int] | None) -> None:
    assert capability.parse_version(text) == version
