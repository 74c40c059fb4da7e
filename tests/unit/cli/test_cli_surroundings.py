"""Commands with undecodable or hostile names, other locales and unusual terminals.

Check several starts within one second as well.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.small_drive import write_small_drive

LOAD = 'name = "w"\n[[job]]\nblock_size = "4 KiB"\nvolume = "1 MB"\n'
ASCII = {
    "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii",
}  # fmt: skip
UTF_8 = {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8:strict"}
# Name with escape sequences, a direction mark, and an umlaut.
ODD = "e\x1b[31mred\x1b]0;title\x07\x7f-a\u202eb\u2028c-sm\u00e4ll"
NAMES = {"no-text": os.fsdecode(b"b\xff\xfed"), "odd": ODD}
UNSAFE = {"\x1b", "\x07", "\x7f", "\u202e", "\u2028"}


def start(folder: Path, *words: str, **more: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "WRITECLIFF_CACHE": str(folder / "cache"), **more}
    environment.pop("WRITECLIFF_STORE", None)
    command = [os.fsencode(word) for word in (sys.executable, "-m", "writecliff", *words)]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def run_program(folder: Path, *words: str, code: int = 0, **more: str) -> str:
    """Run a command and return its output, which must not contain control characters."""
    child = start(folder, *words, **more)
    text = b"".join(child.communicate()).decode("utf-8", "strict")
    assert child.returncode == code, text
    assert "Traceback" not in text and "unexpected" not in text
    assert not UNSAFE & set(text)
    return text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_small_drive(tmp_path)
    (tmp_path / "w.toml").write_text(LOAD)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "surroundings"),
    [
        pytest.param(NAMES["odd"], UTF_8, id="odd-utf-8"),
        pytest.param(NAMES["no-text"], ASCII, id="no-text-ascii"),
        pytest.param(NAMES["odd"], ASCII, id="odd-ascii", marks=pytest.mark.long),
        pytest.param(NAMES["no-text"], UTF_8, id="no-text-utf-8", marks=pytest.mark.long),
    ],
)
def test_names_that_are_no_plain_text(
    folder: Path, name: str, surroundings: dict[str, str]
) -> None:
    """Check that device, workload and output have the name and can be listed and reported."""
    for kind in ("small", "w"):
        (folder / f"{kind}.toml").rename(folder / f"{kind}{name}.toml")
    run = ("run", f"w{name}.toml", "--on", f"sim:small{name}.toml", "--output", f"r{name}")
    assert "IOPS" in run_program(folder, *run, **surroundings)
    assert (folder / f"r{name}" / "report.html").read_bytes().rstrip().endswith(b"</html>")
    assert "complete" in run_program(folder, "runs", "list", "--store", ".", **surroundings)
    run_program(folder, "report", f"r{name}", "--output", f"{name}.html", **surroundings)


def test_a_device_whose_fields_move_the_cursor(folder: Path) -> None:
    """Check texts of a foreign device file, which commands and pages show."""
    text = (folder / "small.toml").read_text()
    odd = "".join(f"\\u{ord(character):04x}" for character in f"{ODD}<script>")
    for key in ("name", "description", "model"):
        text, replaced = re.subn(
            rf'(?m)^{key} = ".*?"', lambda _, key=key: f'{key} = "{odd}"', text
        )
        assert replaced == 1
    (folder / "small.toml").write_text(text)
    run_program(folder, "run", "w.toml", "--on", "sim:small.toml", "--output", "run", **UTF_8)
    page = (folder / "run/report.html").read_text()
    assert "sm\u00e4ll" in page and f"{ODD[-5:]}<script>" not in page
    for words in ("device show small.toml", "device show small.toml --sheet", "runs list --store .",
                  "runs show run", "report run"):  # fmt: skip
        run_program(folder, *words.split(), **UTF_8)


@pytest.mark.parametrize("columns", ["0", "1", "-5", "x", "1000000"])
def test_help_at_any_width(tmp_path: Path, columns: str) -> None:
    for words in (["--help"], ["run", "--help"]):
        text = run_program(tmp_path, *words, COLUMNS=columns)
        assert "Usage: writecliff" in text
        assert "--help" in text or "--on" in text


@pytest.mark.parametrize("size", ["999999999999TB", "1e30TB", "0", "\u00b2TB", "-1GB", "9" * 5000])
def test_sizes_that_no_file_has(folder: Path, size: str) -> None:
    run = ("run", "w.toml", "--on", "file:new.img", f"--size={size}", "--output", "out", "--quiet")
    assert run_program(folder, *run, code=2).startswith("error: ")
    assert not (folder / "new.img").exists() and not (folder / "out").exists()


@pytest.mark.parametrize(
    "command", [("run", "w.toml"), ("test", "wsat", "--quick")], ids=["run", "test"]
)
def test_a_refused_file_leaves_no_run_directory(folder: Path, command: tuple[str, ...]) -> None:
    (folder / "mine.img").write_bytes(b"\x5a" * (20 << 20))
    run_program(folder, *command, "--on", "file:mine.img", "--quiet", code=2)
    run_program(folder, *command, "--on", "file:mine.img", "--output", "out", code=2)
    assert not list(folder.glob("runs/*")) and not (folder / "out").exists()
    assert (folder / "mine.img").read_bytes() == b"\x5a" * (20 << 20)


@pytest.mark.parametrize("count", [2, pytest.param(5, marks=pytest.mark.long)])
def test_starts_in_one_second_have_a_directory_each(folder: Path, count: int) -> None:
    run = ("run", "w.toml", "--on", "sim:small.toml", "--quiet")
    children = [start(folder, *run) for _ in range(count)]
    for child in children:
        error = child.communicate()[1]
        assert child.returncode == 0, error
    assert len(list(folder.glob("runs/*/manifest.json"))) == count
