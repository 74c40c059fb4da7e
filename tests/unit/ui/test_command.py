"""`writecliff ui`: output, termination, and errors at the start."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest

from tests.support.processes import WAIT_LIMIT_S

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "python")}


def begin(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "writecliff", "ui", *words]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_and_ends_when_it_is_told(
    tmp_path: Path, number: signal.Signals
) -> None:
    with begin(str(tmp_path), "--port", "0") as process:
        assert process.stdout is not None and process.stderr is not None
        address = process.stdout.readline().strip()
        parts = urlsplit(address)
        assert parts.hostname == "127.0.0.1" and len(parts.query) > len("token=") + 16
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(address, timeout=WAIT_LIMIT_S) as page:
            assert b"This store has no runs yet" in page.read()
            assert "token" not in page.geturl()
        with pytest.raises(HTTPError, match="403"):
            urllib.request.urlopen(f"http://{parts.netloc}/", timeout=WAIT_LIMIT_S)
        process.send_signal(number)
        assert process.wait(WAIT_LIMIT_S) == 0
        assert (process.stdout.read(), process.stderr.read()) == ("", "")


def test_json_is_there_when_it_is_ready(tmp_path: Path) -> None:
    token = "a-token-of-the-user-1"
    words = ("--port", "0", "--json", "--allow-changes", "--token", token)
    with begin(str(tmp_path), *words) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        while lines[-1] != "}\n":
            lines.append(process.stdout.readline())
        answer = json.loads("".join(lines))
        assert answer["address"].endswith(f"/?token={token}")
        assert (answer["store"], answer["allow_changes"]) == (str(tmp_path), True)
        assert answer["schema"] == "writecliff/ui/1"
        process.terminate()
        assert process.wait(WAIT_LIMIT_S) == 0


def run(*words: str) -> tuple[int, str, str]:
    process = begin(*words)
    out, err = process.communicate(timeout=WAIT_LIMIT_S)
    return process.returncode, out, err


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = run(str(tmp_path), "--port", str(port))
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        f"error: port {port} at 127.0.0.1 is in use",
        "hint: choose another port with --port, or use --port 0 for any free port",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--port", "70000"), "--port must be from 0 to 65535, not 70000"),
        (("--listen", "no such name.invalid", "--port", "0"), "is not an address"),
        (("--token", "short"), "--token requires at least 16 letters and digits"),
    ],
)
def test_options_that_mean_nothing(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    code, out, err = run(str(tmp_path), *words)
    assert (code, out) == (2, "")
    assert message in err and "Traceback" not in err


def test_a_store_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, _, err = run(str(tmp_path / "file"), "--port", "0")
    assert code == 2 and "is a file" in err and "Traceback" not in err


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['bokeh'] = None\n"
        "from writecliff.cli.main import main\n"
        f"sys.exit(main(['ui', {str(tmp_path)!r}, '--port', '0']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error: the dashboard requires the package bokeh",
        "hint: install it with: pip install 'writecliff[ui]'",
    ]


def test_the_program_and_its_help_load_nothing_of_it() -> None:
    code = (
        "import sys, writecliff\n"
        "from writecliff.cli.main import main\n"
        "main(['--help']); main(['ui', '--help'])\n"
        "print([m for m in ('bokeh', 'tornado', 'writecliff.ui', 'pyarrow') if m in sys.modules],"
        " file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == "[]"
