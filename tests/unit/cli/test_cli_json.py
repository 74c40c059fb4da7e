"""JSON of commands: each accepts --json, and its output has a type that describes every key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.answers import check_answer
from tests.support.cli import CommandLine
from writecliff.api.answers.devices import DeviceFile
from writecliff.api.answers.reference import (
    all_types,
    answer_types,
    descriptions,
    reference,
    schemas,
)
from writecliff.cli.commands import build_app, commands, names_below

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "json-commands.md"
LAB = "writecliff.lab.commands.answers"
SCHEMAS = PAGE.with_suffix(".schema.json")
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
    """Return all commands that perform an action."""
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
        completed = cli([*words, "--help"])
        # The fio command has a separate option.
        option = "--output-format" if words == ("fio",) else "--json"
        assert option in completed.out, " ".join(words)


@pytest.mark.parametrize("words", LISTS)
def test_an_answer_is_of_its_type(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setenv("WRITECLIFF_CACHE", str(tmp_path))
    document = json.loads(cli(f"{words} --json").out)
    assert next(iter(document)) == "schema"
    check_answer(document, LISTS[words])


def test_a_key_without_a_description_is_refused() -> None:
    with pytest.raises(TypeError, match="Unexpected keyword argument 'size'"):
        DeviceFile.of({"name": "x", "output": None, "text": "", "size": 1})


def test_every_field_of_an_answer_is_described() -> None:
    for kind in {*all_types(answer_types().values()), *all_types(answer_types(LAB).values())}:
        missing = {*kind.__struct_fields__} - {*descriptions(kind)}  # type: ignore[attr-defined]
        assert not missing, kind


def test_the_page_and_the_schemas_are_those_of_the_types() -> None:
    run = "run python -m writecliff.api.answers.reference, see its docstring"
    assert PAGE.read_text(encoding="utf-8") == reference(), run
    assert json.loads(SCHEMAS.read_text(encoding="utf-8")) == schemas(), run
    anchors = (PAGE.parent / "json.md").read_text(encoding="utf-8").lower()
    plain = "".join(c for c in anchors if c not in "`,:/")
    for kind in (*answer_types().values(), *answer_types(LAB).values()):
        assert not kind.more or f"# {kind.more.replace('-', ' ')}\n" in plain, kind.more
