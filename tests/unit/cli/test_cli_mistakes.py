"""Common mistakes on the command line, and their error messages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from writecliff.engines.blockdev.protection import SERIAL_FLAG, SIGNATURE_FLAG
from writecliff.engines.target import FORMS, open_target
from writecliff.errors import TargetError

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("help", "see `writecliff --help`"),
        ("test help", "see `writecliff test --help`"),
        ("version", "see `writecliff --version`"),
        ("-V", "see `writecliff --version`"),
        ("wsat", "did you mean `writecliff test wsat`?"),
        ("devcie", "did you mean 'device'?"),
        ("test wsta --on sim:fake", "did you mean 'wsat'?"),
        ("serve drive.toml --wxyz", "see `writecliff serve --help`"),
    ],
)
def test_a_word_that_is_no_command(cli: CommandLine, words: str, hint: str) -> None:
    completed = cli(words)
    assert (completed.code, completed.out) == (2, "")
    assert completed.err.splitlines()[1] == f"hint: {hint}"


@pytest.mark.parametrize("option", ["--threads", "--queue-depth", "--max-rounds", "--seed"])
@pytest.mark.parametrize("value", ["2.7", "5.", "0x10", "1e3", "many"])
def test_whole_numbers_are_not_rounded(cli: CommandLine, option: str, value: str) -> None:
    completed = cli(f"test wsat --on sim:fake --dry-run {option} {value}")
    assert (completed.code, completed.out) == (2, "")
    assert (
        f"invalid value '{value}' for {option}: the option requires a whole number" in completed.err
    )


def test_the_seed_of_run_is_not_rounded(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "w.toml").touch()
    completed = cli(["run", str(tmp_path / "w.toml"), "--on", "sim:fake", "--seed", "1.5"])
    assert (completed.code, completed.out) == (2, "")
    assert "invalid value '1.5' for --seed: the option requires a whole number" in completed.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--on sim:fake --size 1GB", "--size does not apply to sim:fake"),
        ("--on sim:fake --destroy S1", "--destroy does not apply to sim:fake"),
        ("--on sim:fake --wipe-signatures", "--wipe-signatures does not apply to sim:fake"),
        ("--on file:image --destroy S1", "--destroy does not apply to file:image"),
        ("--on /dev/none --size 1GB", "--size does not apply to /dev/none"),
    ],
)
def test_options_of_another_kind_of_target(cli: CommandLine, words: str, message: str) -> None:
    completed = cli(f"test wsat --dry-run {words}")
    assert (completed.code, completed.out) == (2, "")
    assert completed.err.startswith(f"error: {message}\nhint: the option applies only to ")


def test_refusals_of_drives_name_options_that_exist(cli: CommandLine) -> None:
    help_words = set(cli("test wsat --help").out.split())
    assert {SERIAL_FLAG, SIGNATURE_FLAG} <= help_words


def test_json_lists_the_tests(cli: CommandLine) -> None:
    listed = json.loads(cli("test --json").out)["tests"]
    names = [entry["name"] for entry in listed if not entry["campaign"]]
    assert names == ["iops", "tp", "lat", "wsat", "hir", "xsr", "ecw", "dirth"]
    campaigns = {entry["name"] for entry in listed if entry["campaign"]}
    real_world = {"replay-native", "multi-wsat", "is-wsat", "tcqd"}
    assert campaigns == {
        "datacentre", "consistency", "act", "blocksizes", "endurance", "ssd-iq", *real_world
    }  # fmt: skip


def test_output_that_is_a_file(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").touch()
    completed = cli("test wsat --on sim:fake --output taken")
    assert completed.code == 2
    assert (
        completed.err == "error: taken is a file, not a directory\nhint: specify a new directory\n"
    )


@pytest.mark.parametrize(("closed", "code"), [("1>&-", 0), ("2>&-", 0), ("1>&- 2>&-", 0)])
def test_closed_streams_are_no_fault(closed: str, code: int) -> None:
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m writecliff test --list {closed}', sys.executable],
        capture_output=True,
        env=environment,
        check=False,
    )
    assert done.returncode == code
    assert b"bug in" not in done.stderr


@pytest.mark.parametrize(
    ("target", "meant"),
    [
        ("sata-tlc-120", "sim:sata-tlc-120"),
        ("pm863_960", "sim:pm863-960"),
        ("my.toml", "sim:my.toml"),
        ("image", "file:image"),
    ],
)
def test_a_target_without_its_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, meant: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("my.toml", "image"):
        Path(name).touch()
    with pytest.raises(TargetError) as caught:
        open_target(target)
    assert caught.value.hint == f"did you mean '{meant}'?"
    with pytest.raises(TargetError) as caught:
        open_target("x:y")
    assert caught.value.hint == f"targets are {FORMS}"


@pytest.mark.parametrize(
    "words",
    [
        "test wsat sim:fake --dry-run --quick",
        "test sim:fake wsat --dry-run --quick",
    ],
)
def test_the_drive_may_be_the_first_argument(cli: CommandLine, words: str) -> None:
    expected = cli("test wsat --on sim:fake --dry-run --quick").out
    assert expected and cli(words).out == expected


def test_a_trace_in_shared_memory_is_no_drive(cli: CommandLine) -> None:
    assert "/dev/shm/none" in cli("replay /dev/shm/none --on sim:sata-tlc-120").err


@pytest.mark.parametrize(
    ("words", "key", "meant"),
    [
        ("--workload oltp-4k", "overprovision", "overprovision_pct"),
        ("--workload oltp-4k", "queue_depth", "load.queue_depth"),
        ("", "drive-fill", "drive_fills"),
    ],
)
def test_an_unknown_setting_of_a_sweep(
    capsys: pytest.CaptureFixture[str], words: str, key: str, meant: str
) -> None:
    completed = CommandLine(capsys)(f"sweep --on sim:sata-tlc-120 {words} --vary {key}=1,2")
    name = key.replace("-", "_")
    assert completed.code == 2
    assert completed.err == (
        f"error: --vary: unknown setting '{name}'\nhint: did you mean '{meant}'?\n"
    )


def test_an_unknown_candidate(cli: CommandLine) -> None:
    completed = cli("choose --workload oltp-4k --on sim:none-such")
    assert completed.code == 2
    assert completed.err.endswith("hint: see `writecliff device list`\n")


def test_a_dashboard_of_a_folder_that_does_not_exist(cli: CommandLine) -> None:
    completed = cli("ui none-such")
    assert completed.code == 2
    assert completed.err.startswith("error: the store none-such does not exist\n")
