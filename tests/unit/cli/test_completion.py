"""Tab completion: the words that the program offers, and Tab in real shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from tests.support.terminal import Terminal
from writecliff.cli.commands import build_app, commands
from writecliff.cli.complete import answer
from writecliff.cli.complete_values import OPTIONS, POSITIONS
from writecliff.lab import commands as lab_commands

ROOT = Path(__file__).resolve().parents[3]


def completed(*words: str) -> list[str]:
    return [word for word, _ in answer(words).words]


def test_commands_and_their_commands() -> None:
    assert {*completed("")} == {
        *(c.name for c in commands() if c.shown),
        "lab",
        "--help",
        "--version",
    }
    assert {*completed("rep")} == {"report", "replay"}
    assert {*completed("lab", "rep")} == {"reproduce"}
    assert {"list", "show", "sql", "diff"} <= {*completed("runs", "")}
    assert {"wsat", "act"} <= {*completed("test", "")}


def test_options_with_their_help() -> None:
    options = dict(answer(["test", "wsat", "--"]).words)
    assert options["--on"] == "Target drive: sim:NAME, sim:PATH.toml, file:PATH or /dev/NAME."
    assert {"--quick", "--seed", "--json", "--help"} <= options.keys()
    assert "--no-json" not in options
    assert {"--trim", "--no-trim"} <= {*completed("replay", "--")}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["test", "wsat", "--on", "sim:sas-ms"], ["sim:sas-ms-480"]),
        (["test", "wsat", "--on=sim:sas-ms"], ["--on=sim:sas-ms-480"]),
        (["test", "wsat", "--quick", "--on", "sim:sas-ms"], ["sim:sas-ms-480"]),
        (["suite", "pts-e", "--tests", "iops,ws"], ["iops,wsat"]),
        (["run", "--output-format", ""], ["table", "json", "fio-json"]),
        (["run", "--output-format=f"], ["--output-format=fio-json"]),
        (["suite", ""], ["pts-e", "pts-c"]),
        (["profile", "show", "vdi-"], ["vdi-boot"]),
        (["run", "web-server", "--seed", ""], []),
        (["device", "show", "nvme-tlc"], ["nvme-tlc-960"]),
        (["serve", "sim:nvme-tlc"], ["sim:nvme-tlc-960"]),
        (["lab", "torture", "sim:nvme-tlc"], ["sim:nvme-tlc-960"]),
        (["lab", "fit", "pm86"], ["pm863"]),
    ],
)
def test_values(words: list[str], expected: list[str]) -> None:
    assert completed(*words) == expected


@pytest.mark.parametrize(
    ("words", "files"),
    [
        (["test", "wsat", "--output", ""], True),
        (["run", ""], True),
        (["report", ""], True),
        (["capture", "--", "dd", "if"], True),
        (["suite", ""], False),
        (["test", "wsat", "--on", ""], False),
    ],
)
def test_where_a_path_may_stand(words: list[str], files: bool) -> None:
    assert answer(words).files is files


def test_own_drives_and_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.toml").touch()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "more").mkdir()
    assert completed("serve", "sim:./") == ["sim:./my.toml", "sim:./more/"]
    assert completed("test", "tp", "--on", "file:./n") == ["file:./notes.txt"]
    run = tmp_path / "runs" / "first"
    run.mkdir(parents=True)
    (run / "manifest.json").write_text("{}", encoding="utf-8")
    assert completed("runs", "show", "") == ["runs/first"]
    monkeypatch.setenv("WRITECLIFF_STORE", "memory://elsewhere")
    assert completed("runs", "show", "") == []


def test_nonsense_completes_to_nothing() -> None:
    assert completed("nonsense", "x", "") == []
    assert completed("test", "nonsense", "--set") == []
    assert completed("doctor", "--nonsense", "x") == []


def test_the_tables_name_what_there_is() -> None:
    app = build_app()
    for path in (*POSITIONS, *lab_commands.POSITIONS):
        command = app
        for word in path.split():
            command = command[word]
        places = [a for a in command.assemble_argument_collection() if a.index is not None]
        assert places, path
    taken = {
        name
        for words in (["test", "wsat"], ["suite"], ["sweep"], ["replay"], ["capture"])
        for name in completed(*words, "--")
    }
    assert {"--on", "--baseline", "--resume", "--tests", "--test", "--workload"} <= taken
    assert {"--on", "--baseline", "--resume"} <= OPTIONS.keys()


def test_answers_come_without_cyclopts_where_they_can() -> None:
    code = (
        "import sys\n"
        "from writecliff.cli.main import main\n"
        "main(['completion', 'words', '--', 'test', 'wsat', '--on', 'sim:'])\n"
        "main(['completion', 'words', '--', ''])\n"
        "print([m for m in ('cyclopts', 'rich', 'numpy') if m in sys.modules], file=sys.stderr)"
    )
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stderr.strip() == "[]"
    assert "sim:nvme-tlc-960" in done.stdout


def test_the_script_of_each_shell(cli: CommandLine) -> None:
    assert "complete -F" in cli("completion bash").out
    assert cli("completion zsh").out.startswith("#compdef writecliff\n")
    assert "complete --command writecliff" in cli("completion fish").out


SHELLS = {
    "bash": (["bash", "--norc", "-i"], "source {script}"),
    "zsh": (
        ["zsh", "-f", "-i"],
        "autoload -Uz compinit; compinit -u -D; source {script}",
    ),
    "fish": (["fish", "--no-config", "--private"], "source {script}"),
}


@pytest.mark.parametrize("shell", SHELLS)
def test_in_a_real_shell(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "writecliff"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m writecliff "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "job file.fio").touch()
    script = ROOT / "python/writecliff/cli/shells" / shell
    command, load = SHELLS[shell]
    environment = {
        **{name: value for name, value in os.environ.items() if name not in ("ZDOTDIR", "PS1")},
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "python"),
        "HOME": str(tmp_path),
        "TERM": "vt100",
        "PWD": str(tmp_path),
    }
    with Terminal(["env", "-C", str(tmp_path), *command], environment) as terminal:
        terminal.type(f"{load.format(script=script)}\r")
        terminal.type("echo loa''ded\r")
        terminal.until("loaded")
        for typed, expected in (
            ("writecliff lab relia", "bility"),
            ("writecliff profile show jesd", "219-enterprise"),
            ("writecliff test wsat --on sim:sas-m", "s-480"),
            ("writecliff test wsat --on=sim:sas-m", "s-480"),
            ("writecliff suite pts-e --rev", "ision"),
            ("writecliff run job", "\\ file.fio"),
        ):
            terminal.type(f"{typed}\t")
            terminal.until(expected)
            terminal.type("\x15echo on''ward\r")  # Ctrl-U clears the line.
            terminal.until("onward")
