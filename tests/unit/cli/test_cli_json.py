"""Every command takes --json, and what it prints has a schema whose keys are documented."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from writecliff.cli.commands import build_app, commands, names_below
from writecliff.cli.schemas import SCHEMAS, reference, schema_id, stamped
from writecliff.lab.commands.schemas import SCHEMAS as LAB_SCHEMAS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "json-commands.md"
LISTS = {
    "test --list": "test-list",
    "sweep --list": "sweep-list",
    "profile list": "profile-list",
    "profile show oltp-4k": "profile",
    "device list": "device-list",
    "device show sata-tlc-120": "device",
    "device show hdd-15k-80": "device",
    "device export sata-tlc-120": "device-file",
    "device probe .": "device-probe",
    "device cache list": "cache-list",
    "device cache prune": "cache-prune",
    "lab reproduce --list": "campaign-list",
    "lab experiment --list": "experiment-list",
    "lab reliability --list": "feature-list",
    "lab fit --list": "fit-list",
    "test wsat --on sim:fake --dry-run": "test-plan",
    "suite pts-e --on sim:fake --dry-run": "suite-plan",
}


def _leaves() -> Iterator[tuple[str, ...]]:
    """All commands that do something."""
    app = build_app()

    def below(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        names = names_below(app, words)
        yield from (leaf for name in names for leaf in below((*words, name)))
        if not names or words == ("serve",):
            yield words

    for name in (*(command.name for command in commands()), "lab"):
        yield from below((name,))


def test_every_command_takes_json(cli: CommandLine) -> None:
    for words in _leaves():
        said = cli([*words, "--help"])
        option = (
            "--output-format" if words == ("fio",) else "--json"
        )  # fio has an option of its own
        assert option in said.out, " ".join(words)


@pytest.mark.parametrize("words", LISTS)
def test_an_object_has_its_schema_and_documented_keys(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setenv("WRITECLIFF_CACHE", str(tmp_path))
    found = json.loads(cli(f"{words} --json").out)
    name = LISTS[words]
    schemas = LAB_SCHEMAS if words.startswith("lab ") else SCHEMAS
    assert next(iter(found)) == "schema" and found["schema"] == schema_id(name, schemas)
    assert set(found) == {"schema", *schemas[name].keys}


def test_a_key_that_is_not_documented_is_refused() -> None:
    assert stamped("device-file", {"name": "x"}) == {
        "schema": "writecliff/device-file/1",
        "name": "x",
    }
    with pytest.raises(ValueError, match="'size' is no key of writecliff/device-file/1"):
        stamped("device-file", {"size": 1})


def test_the_page_is_what_the_program_says() -> None:
    written = PAGE.read_text(encoding="utf-8")
    run = "python -m writecliff.cli.schemas > docs/reference/json-commands.md"
    assert written == reference(), f"run: {run}"
    anchors = (PAGE.parent / "json.md").read_text(encoding="utf-8").lower()
    for one in (*SCHEMAS.values(), *LAB_SCHEMAS.values()):
        if one.more:
            heading = one.more.replace("-", " ")
            plain = "".join(c for c in anchors if c not in "`,:/")
            assert f"# {heading}\n" in plain, one.more
