"""Manual pages: complete, and rendered without warnings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from writecliff.cli.commands import build_app, commands
from writecliff.cli.manual import main, pages, roff


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("man1")
    assert main([str(made)]) == 0
    return made


def output_of(*command: str) -> str:
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "100"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return done.stdout + done.stderr


def test_there_is_a_page_for_each_command() -> None:
    expected = {
        "writecliff.1",
        "writecliff-lab.1",
        *(f"writecliff-{command.name}.1" for command in commands()),
    }
    assert pages().keys() == expected


def test_mandoc_finds_nothing(folder: Path) -> None:
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed")
    lines = output_of(
        "mandoc", "-T", "lint", "-W", "warning", *map(str, folder.iterdir())
    ).splitlines()
    # Pages have no date, so that the same source always yields the same pages.
    assert [line for line in lines if "missing date" not in line] == []


def test_man_finds_nothing_and_shows_every_option(folder: Path) -> None:
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("man and groff are not installed")
    for path in folder.iterdir():
        assert "warning" not in output_of(
            "sh", "-c", 'man --warnings -l -Z "$1" 2>&1 >&-', "", str(path)
        )
    shown = re.sub(
        "\x1b\\[[0-9;]*m|.\b", "", output_of("man", "-l", str(folder / "writecliff-runs.1"))
    )
    app = build_app()["runs"]
    for name in ("list", "sql", "export"):
        for argument in app[name].assemble_argument_collection():
            if argument.show and argument.name.startswith("--"):
                assert argument.name in shown, (name, argument.name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".so", "\\&.so"),
        ("'x", "\\(aqx"),
        ("--on a\\b", "\\-\\-on a\\eb"),
        ("10 × ~", "10 \\[u00D7] \\(ti"),
    ],
)
def test_no_text_is_a_request(text: str, expected: str) -> None:
    assert roff(text) == expected
