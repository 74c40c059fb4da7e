"""Sealed documents with values of wrong types: errors on reading, with the location."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.support.synthetic_run import manifest
from writecliff.errors import StoreError
from writecliff.store.checksums import read_document, sealed_document, write_document
from writecliff.store.manifest import MANIFEST_NAME, SCHEMA, parse_manifest, read_manifest
from writecliff.suite import folder as suite
from writecliff.suite.folder import Member, SuiteFolder

NESTED = ("device", "purge", "write_cache")
STRANGE = (None, True, -1, 0, 1.5, 1e308, 10**22, "", "²", "../x", "\0", [], [[]], {}, {"": None})


def changed(document: Any) -> Iterator[Any]:
    """Yield the document with a value, at any depth, replaced or omitted."""
    keys = list(document) if isinstance(document, dict) else range(len(document))
    for key in keys:
        for strange in STRANGE:
            other = copy.deepcopy(document)
            other[key] = strange
            yield other
        if isinstance(document[key], dict | list | tuple):
            for inner in changed(document[key]):
                other = copy.deepcopy(document)
                other[key] = inner
                yield other
        other = copy.deepcopy(document)
        del other[key]
        yield other


def listed(value: Any) -> Any:
    """Convert tuples to lists, as in JSON."""
    if isinstance(value, dict):
        return {key: listed(inner) for key, inner in value.items()}
    return [listed(inner) for inner in value] if isinstance(value, tuple | list) else value


def test_a_manifest_is_read_as_it_says_or_refused() -> None:
    refused = 0
    for document in changed(listed(asdict(manifest()))):
        try:
            parsed = parse_manifest(sealed_document(SCHEMA, document), Path("manifest.json"))
        except StoreError as error:
            refused += 1
            assert str(error).startswith("damaged: manifest.json: ")
        else:
            stored = listed(asdict(parsed))
            for key, value in document.items():
                # A dataclass may have more keys than the document, if these keys have defaults.
                same = value.items() <= stored[key].items() if key in NESTED and value else None
                assert stored[key] == value if same is None else same
    assert refused > 500


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"device": {**asdict(manifest().device), "serial": []}},
            r"device\.serial: .* got `array`",
        ),
        ({"device": []}, "device: Expected `object`, got `array`"),
        ({"seed": True}, "seed: Expected `int`, got `bool`"),
        ({"warnings": ["one", 2]}, r"warnings\[1\]: Expected `str`, got `int`"),
        ({"setup": {"round": 5}}, r"setup\[\.\.\.\]: Expected `str`, got `int`"),
    ],
)
def test_the_place_is_named(tmp_path: Path, change: dict[str, object], why: str) -> None:
    write_document(tmp_path / MANIFEST_NAME, SCHEMA, asdict(manifest()) | change)
    with pytest.raises(StoreError, match=why):
        read_manifest(tmp_path)


def test_numbers_beyond_floating_point_are_damage(tmp_path: Path) -> None:
    for number in ("1e999", "NaN", "-Infinity", "9" * 5000, "[" * 100_000):
        (tmp_path / "x.json").write_text(f'{{"schema": "s", "n": {number}}}')
        with pytest.raises(StoreError, match="not JSON"):
            read_document(tmp_path / "x.json", "s")


def test_a_suite_is_read_as_it_says_or_refused(tmp_path: Path) -> None:
    folder = SuiteFolder.create(
        tmp_path / "suite", "sweep", "seed", {"a": Member("wsat", {"seed": 1}, "sim:x", {"k": "v"})}
    )
    path = folder.path / suite.SUITE_NAME
    sound = read_document(path, suite.SCHEMA)
    refused = 0
    for document in changed(sound):
        path.write_bytes(sealed_document(suite.SCHEMA, document))
        try:
            reopened = SuiteFolder.open(folder.path)
        except StoreError:
            refused += 1
        else:
            assert {key: asdict(member) for key, member in reopened.members.items()} == {
                key: {"settings": {}, **member} for key, member in document["members"].items()
            }
    assert refused > 60


@pytest.mark.parametrize("name", ["../out-side", "/tmp/x", "", ".", "..", "a/b", ".hidden", "a\0b"])
def test_no_member_leaves_its_suite(tmp_path: Path, name: str) -> None:
    member = Member("wsat", {}, "sim:x")
    with pytest.raises(StoreError, match="not a plain folder name"):
        folder = SuiteFolder.create(tmp_path / "suite", "suite", "PTS-E", {name: member})
        SuiteFolder.open(folder.path)
