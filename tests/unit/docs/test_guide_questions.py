"""The guide "Four questions": its commands give answers, on small traces and drives."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from tests.support.small_drive import write_small_drive
from writecliff.capture.apps import postgres
from writecliff.errors import TargetError

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "four-questions.md"
# Commands with loads and replays that take seconds, and a test that takes seconds on a 960 MB
# drive.
SHORTER = {
    "capture --app postgres": "--records 20000 --operations 200",
    "capture --app rocksdb": "--records 25000 --operations 25000",
    "replay": "--fills 2",
    "advise-streams": "--fills 2 --counts 2",
    "sweep": "--set drive_fills=2 --set sample_seconds=1 --set round_minutes=0.1 --quiet",
}


def questions() -> dict[str, list[str]]:
    """Return the commands of each section by its title."""
    parts = re.split(r"^## (.*)$", GUIDE.read_text(encoding="utf-8"), flags=re.M)[1:]
    return {
        title: re.findall(r"^writecliff (.*)$", body, re.M)
        for title, body in zip(parts[::2], parts[1::2], strict=True)
    }


@pytest.fixture
def ask(cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Return a function that runs the commands of a section and returns the last one's output."""
    monkeypatch.chdir(tmp_path)
    drive = write_small_drive(tmp_path)

    def run(word: str) -> list[str]:
        (commands,) = (
            commands_of_title for title, commands_of_title in questions().items() if word in title
        )
        assert 1 <= len(commands) <= 2
        for command in commands:
            words = [command]
            words += [more for start, more in SHORTER.items() if command.startswith(start)]
            # The blocks of the small drive are too large for 7 % over-provisioning.
            if command.startswith("sweep"):
                words[0] = command.replace("sata-tlc-120", str(drive)).replace("7,", "20,")
            completed = cli(" ".join(words))
            assert completed.code == 0, completed.err
        return completed.out.strip().splitlines()

    return run


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


def test_the_guide_has_four_questions() -> None:
    assert len(questions()) == 4


def test_two_drives_and_streams_for_postgresql(ask) -> None:  # type: ignore[no-untyped-def]
    try:
        postgres.installed()
    except TargetError as error:
        pytest.skip(str(error))
    assert re.match(r"(Switch streams on|Leave streams off)[.,] ?.*1\.\d+", ask("streams")[-1])
    *_, page, compared = ask("two drives")  # Both pages show replays of the same trace.
    assert page.split() == ["comparison", "pro/comparison.html"]
    assert re.match(r"compared .*(845dc-pro-800|pm863-960) is better at \d+ of \d+", compared)


def test_more_spare_flash(ask) -> None:  # type: ignore[no-untyped-def]
    lines = ask("spare flash")
    assert any(line.startswith("p99.99 ") for line in lines)
    assert lines[-1].startswith("Over-provisioning 27 % is better at")


@pytest.mark.skipif(shutil.which("db_bench") is None, reason="db_bench is not installed")
def test_the_lifetime_under_rocksdb(ask) -> None:  # type: ignore[no-untyped-def]
    assert re.search(r"^[\d.,]+ years at 500 GB written a day, .* WAF [\d.]+", ask("RocksDB")[-1])
