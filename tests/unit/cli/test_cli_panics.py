"""Panics of the native module: internal errors with one line, exit code 1 and a report file."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest

from tests.support.small_drive import write_small_drive
from writecliff import SimEngine, _native
from writecliff.cli.main import main
from writecliff.devices import open_device
from writecliff.errors import InternalError
from writecliff.serve import DriveServer, ServeOptions

PLACE = r"\(crates/python/src/panics\.rs:\d+:\d+\)"


@pytest.fixture(autouse=True)
def _reports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def _assert_reported(folder: Path, err: str, message: str) -> None:
    """Check that the error has two lines, and that the report has the message and both stacks."""
    (report,) = folder.glob("writecliff-*.traceback")
    assert re.fullmatch(
        f"error: internal error: {message} {PLACE}\n"
        f"hint: this is a bug in writecliff; please report it with {re.escape(str(report))}\n",
        err,
    ), err
    text = report.read_text()
    assert message in text
    assert "Traceback" in text
    assert "panic_for_test" in text, "the native stack"


def test_a_panic_under_a_command_is_an_internal_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # The native module is expected to raise no error here.
    monkeypatch.setattr(_native, "trace_formats", lambda: _native.panic_for_test("lost a unit"))
    assert main(["trace", "formats"]) == 1
    _assert_reported(tmp_path, capfd.readouterr().err, "lost a unit")


def test_a_panic_under_the_seam_is_an_internal_error_for_commands_and_python(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    open_device.cache_clear()
    monkeypatch.setattr(_native, "Device", lambda *_: _native.panic_for_test("lost two units"))
    assert main(["device", "show", "sata-tlc-120", "--json"]) == 1
    error = json.loads(capfd.readouterr().err)["error"]
    assert re.fullmatch(f"internal error: lost two units {PLACE}", error["message"])
    assert error["exit_code"] == 1
    with pytest.raises(InternalError, match=f"lost two units {PLACE}") as raised:
        SimEngine("sata-tlc-120")
    assert "panic_for_test" in raised.value.details


def test_a_panic_in_a_thread_ends_a_served_drive_and_leaves_its_state_file(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    drive, state = f"sim:{write_small_drive(tmp_path)}", tmp_path / "drive.state"

    before: list[bytes] = []

    def panic() -> None:
        before.append(state.read_bytes())
        _native.panic_for_test("lost a connection", in_thread=True)

    timer = threading.Timer(0.5, panic)
    timer.start()
    words = ["serve", drive, "--nbd", f"unix:{tmp_path}/s", "--state", str(state), "--quiet"]
    assert main(words) == 1
    timer.join()
    err = capfd.readouterr().err
    assert err.startswith("serving ")
    _assert_reported(tmp_path, err.partition("\n")[2], "lost a connection")
    assert before == [state.read_bytes()]


def test_a_server_made_after_a_panic_serves(tmp_path: Path) -> None:
    with pytest.raises(_native.PanicException):
        _native.panic_for_test("before")
    server = DriveServer(f"sim:{write_small_drive(tmp_path)}", ServeOptions(slow_down=None))
    assert server.snapshot().connections == 0
    server.end()
