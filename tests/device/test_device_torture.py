"""`writecliff lab torture`: programs on a file system on a drive whose power is cut."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.cli import CommandLine
from tests.support.processes import WAIT_LIMIT_S
from tests.support.small_drive import write_small_drive

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("nbdfuse") is None or not Path("/dev/fuse").exists(),
    reason="needs root, FUSE and nbdfuse",
)
# The program appends one page-sized line at a time and reports the line when it is durable, or
# immediately.
APPEND = """
import os, sys
with open("file", "ab") as file:
    for number in range(10**6):
        file.write(b"%06d\\n" % number + bytes(4089))
        file.flush()
        if "--sync" in sys.argv:
            os.fsync(file.fileno())
        elif number % 50 == 0:
            os.system("sync")
        print(number, flush=True)
"""
CHECK = """
import os, sys
lines = open("file", "rb").read()
said = open(os.environ["WRITECLIFF_ACKNOWLEDGED"]).read().split("\\n")[:-1]
lost = [n for n in map(int, said) if lines[4096 * n : 4096 * n + 7] != b"%06d\\n" % n]
sys.exit(f"lost from {lost[0]}" if lost else 0)
"""


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture
def drive(tmp_path: Path) -> str:
    """Return the device file of a drive with a volatile cache."""
    return f"sim:{write_small_drive(tmp_path, power_loss_protection='false')}"


def _program(folder: Path, name: str, text: str) -> str:
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder for this test's temporary files, with a path short enough for sockets."""
    with TemporaryDirectory(prefix="writecliff-test-") as made:
        Path(made).chmod(0o755)
        monkeypatch.setattr("tempfile.tempdir", made)
        monkeypatch.setenv("TMPDIR", made)
        yield Path(made)


def attached(folder: Path) -> list[str]:
    """Return the loop devices and mounts that still use files in the folder."""
    loops = Path("/sys/block").glob("loop*/loop/backing_file")
    used = [*(file.read_text() for file in loops), *Path("/proc/mounts").read_text().splitlines()]
    return [line for line in used if str(folder) in line]


@pytest.mark.parametrize("sync", [True, False])
def test_a_program_keeps_what_it_syncs(
    drive: str, sync: bool, tmp_path: Path, cli: CommandLine
) -> None:
    check = f"{sys.executable} {_program(tmp_path, 'check', CHECK)}"
    command = [sys.executable, _program(tmp_path, "append", APPEND), *(["--sync"] if sync else [])]
    words = ["--cuts", "4", "--writes", "60", "--check", check, "--json", "--", *command]
    done = cli(["lab", "torture", drive, *words])
    answer = json.loads(done.out)
    if sync:
        assert (done.code, answer["intact"], answer["first_failure"]) == (0, 4, None), done.err
    else:
        assert done.code == 1, done.err
        failure = answer["first_failure"]
        assert failure["finding"].startswith("check: lost from")
        assert failure["acknowledged"] > 0
        assert f"seed {failure['seed']}, cut at write {failure['at_write']}" in done.err


def test_sqlite_keeps_what_it_has_committed(drive: str, cli: CommandLine) -> None:
    done = cli(f"lab torture {drive} --app sqlite --cuts 2 --writes 100")
    assert done.code == 0, done.err
    assert "No acknowledged data were lost." in done.out


def test_sqlite_that_does_not_sync_loses_something(drive: str, cli: CommandLine) -> None:
    done = cli(f"lab torture {drive} --app sqlite --no-sync --cuts 5 --writes 200")
    assert (done.code, "Lost at seed" in done.out) == (1, True), done


def test_a_program_that_ends_early_is_an_error(drive: str, folder: Path, cli: CommandLine) -> None:
    done = cli(f"lab torture {drive} --check true -- false")
    assert (done.code, "false exited with code 1 before write" in done.err) == (1, True), done
    assert not attached(folder)


def test_nothing_stays_mounted_after_sigterm(drive: str, folder: Path) -> None:
    words = f"-m writecliff lab torture {drive} --app sqlite --cuts 1000".split()
    process = subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "preparing" in process.stderr.readline()
    assert "[1/1000]" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=WAIT_LIMIT_S)
    assert process.returncode == 128 + signal.SIGINT
    assert not attached(folder)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--app oracle", "unknown program 'oracle'"),
        ("--file-system fat --app sqlite", "unknown file system 'fat'"),
        ("-- true", "the program to run, or the command that checks"),
        ("--app sqlite --check true", "--app defines its own commands"),
        ("--app sqlite --cuts 0", "at least 1"),
    ],
)
def test_bad_words_are_refused(drive: str, words: str, message: str, cli: CommandLine) -> None:
    done = cli(f"lab torture {drive} {words}")
    assert (done.code, message in done.err) == (2, True), done
