"""Reference pages against the program: no option, column or key is missing or stale."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from tests.support.small_drive import write_small_drive
from writecliff.cli.commands import commands
from writecliff.cli.main import main
from writecliff.cli.reference import reference
from writecliff.cli.reference_limits import reference as limits_reference
from writecliff.engines.counters import declared
from writecliff.engines.counters import reference as counters_reference
from writecliff.lab.commands import lab_commands
from writecliff.lab.reference import reference as lab_reference
from writecliff.latency_causes import reference as causes_reference
from writecliff.procedures.registry import PROCEDURES, procedure_class
from writecliff.store.manifest import Manifest
from writecliff.store.rundir import RunDirectory

DOCS = Path(__file__).parents[3] / "docs"


def cli_reference() -> str:
    """Return the page; a separate test checks once, in seconds, that `reference()` generates it."""
    return (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")


def test_the_command_line_reference_is_what_help_says() -> None:
    hint = "run: python -m writecliff.cli.reference > docs/reference/cli.md"
    assert cli_reference() == reference(), hint


def test_the_reference_of_the_lab_is_what_its_commands_say() -> None:
    hint = "run: python -m writecliff.lab.reference > docs/reference/lab.md"
    assert (DOCS / "reference" / "lab.md").read_text(encoding="utf-8") == lab_reference(), hint


def test_every_command_is_in_the_reference() -> None:
    text = cli_reference()
    for command in commands():
        assert f"\n### `writecliff {command.name}`\n" in text, command.name
    text = (DOCS / "reference" / "lab.md").read_text(encoding="utf-8")
    for command in lab_commands():
        assert f"\n### `writecliff lab {command.name}`\n" in text, command.name


@pytest.mark.parametrize("test", PROCEDURES)
def test_every_option_of_a_test_is_in_its_reference(test: str) -> None:
    text = cli_reference()
    kind = "campaigns" if PROCEDURES[test].campaign else "SNIA PTS tests"
    common = text.split(f"### Options of all {kind}\n", 1)[1].split("\n### ", 1)[0]
    help_text = text.split(f"\n### `writecliff test {test}`", 1)[1].split("\n### ", 1)[0]
    for item in fields(procedure_class(test).options_type):
        if item.metadata["measured"]:  # The test determines this value, so the user cannot give it.
            continue
        name = item.name.replace("_", "-")
        assert (f"--{name}" in common) or (f"--{name}" in help_text), name


def _documented(heading: str) -> set[str]:
    """Return the names in the first column of the tables below a heading."""
    text = (DOCS / "reference" / "run-directory.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    firsts = (line.split("|")[1] for line in section.splitlines() if line.startswith("| `"))
    return {name for first in firsts for name in re.findall(r"`([^`]+)`", first)}


def test_every_key_of_a_manifest_is_documented() -> None:
    names = {item.name for item in fields(Manifest)} | {"schema"}
    assert _documented("`manifest.json`") == names


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    folder = tmp_path_factory.mktemp("run")
    drive = write_small_drive(folder)
    words = f"test wsat --on sim:{drive} --output {folder / 'r'} --quiet --end time"
    words += " --time-hours 0.0005 --sample-seconds 0.1 --round-minutes 0.005"
    assert main(words.split()) == 0
    return RunDirectory.open(folder / "r")


@pytest.mark.parametrize("table", ["rounds", "intervals", "histograms"])
def test_every_column_that_a_run_writes_is_documented(run: RunDirectory, table: str) -> None:
    written = set(run.query(f"select * from {table}").column_names)
    columns = _documented(f"`{table}`") | _documented("Columns of every table")
    assert written == (columns | declared().keys() if table == "rounds" else columns)


def test_the_reference_of_limits_is_what_the_program_refuses() -> None:
    written = (DOCS / "reference" / "limits.md").read_text(encoding="utf-8")
    assert written == limits_reference(), (
        "run: python -m writecliff.cli.reference_limits > docs/reference/limits.md"
    )


def test_the_reference_of_counters_is_what_the_simulator_declares() -> None:
    written = (DOCS / "reference" / "counters.md").read_text(encoding="utf-8")
    assert written == counters_reference(), (
        "run: python -m writecliff.engines.counters > docs/reference/counters.md"
    )


def test_the_reference_of_causes_is_what_the_simulator_declares() -> None:
    written = (DOCS / "reference" / "latency-causes.md").read_text(encoding="utf-8")
    assert written == causes_reference(), (
        "run: python -m writecliff.latency_causes > docs/reference/latency-causes.md"
    )


def test_help_names_options_as_they_are_given() -> None:
    """Check that no help text has the Python name of an option of its command, except JSON keys."""
    text = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    for section in re.split(r"^##+ ", text, flags=re.M):
        options = re.findall(r"^  --([a-z]+(?:-[a-z]+)+)", section, flags=re.M)
        for name in {option.replace("-", "_") for option in options}:
            match = re.search(rf'(?<![\w."]){name}(?!\w)', section)
            assert match is None, (section.splitlines()[0], name)
