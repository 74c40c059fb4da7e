"""The run store on an object store (fsspec's in-memory file system)."""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from tests.support.cli import CommandLine
from writecliff.errors import StoreError
from writecliff.runs.catalogue import Catalogue
from writecliff.runs.place import open_place
from writecliff.runs.queries import Selection, listed, sql_table

URL = "memory://lab/store"


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    files = fsspec.filesystem("memory")
    files.store.clear()
    yield
    files.store.clear()


def rows(cli: CommandLine, words: str) -> list[dict[str, Any]]:
    return list(json.loads(cli(f"runs {words} --store {URL} --json").out)["runs"])


def test_runs_go_to_an_object_store_and_back(cli: CommandLine, store: Path, tmp_path: Path) -> None:
    assert cli(f"runs import {store} --tag s3 --store {URL}").code == 0
    stored = rows(cli, "list --sort seed")
    assert [row["run"] for row in stored] == [f"imports/{n}" for n in ("first", "second", "third")]
    assert [row["status"] for row in stored] == ["complete", "complete", "interrupted"]
    assert {tuple(row["tags"]) for row in stored} == {("s3",)}
    assert cli(f"runs tag first +x --store {URL}").out == "s3, x\n"
    assert [row["run"] for row in rows(cli, "list --tag x")] == ["imports/first"]
    output = cli(["runs", "sql", "select count(*) as n from rounds", "--store", URL, "--json"])
    assert json.loads(output.out)["rows"] == [{"n": 36}]
    assert cli(f"runs delete second --yes --store {URL}").code == 0
    assert len(rows(cli, "list")) == 2
    assert cli(f"runs export first --output x.zip --store {URL}").code == 0
    assert cli("runs import x.zip --store back").code == 0
    (back,) = (tmp_path / "back" / "imports").iterdir()
    for name in ("rounds.parquet", "manifest.json"):
        assert (back / name).read_bytes() == (store / "runs" / "first" / name).read_bytes()
    assert json.loads(cli(f"runs diff first third --store {URL} --json").out)["figures"]
    assert cli(f"runs show first --store {URL}").code == 0


def test_the_catalogue_is_kept_there_and_can_be_lost(store: Path) -> None:
    place = open_place(URL)
    for name in ("first", "second"):
        place.add(store / "runs" / name, f"runs/{name}")
    made = Catalogue(place)
    assert len(made.refresh().read) == 2
    assert Catalogue(place).refresh().read == []
    files = fsspec.filesystem("memory")
    saved = [path for path in files.store if "/.writecliff/" in path]
    assert saved
    for path in saved:
        files.rm_file(path)
    assert len(listed(Catalogue(open_place(URL)), Selection())) == 2


def test_a_run_that_is_half_there_is_no_run(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = open_place(URL)
    place.add(store / "runs" / "first", "runs/first")
    files = fsspec.filesystem("memory")

    def stop(*given: Any, **options: Any) -> None:
        raise OSError("connection lost")

    monkeypatch.setattr(type(files), "rm", stop)
    with pytest.raises(StoreError, match="cannot remove runs/first: connection lost"):
        place.remove("runs/first")
    (left,) = listed(Catalogue(place), Selection())
    assert (left["status"], left["damage"]) == ("damaged", "it has no manifest.json")


def test_errors_of_a_protocol_are_one_line(
    cli: CommandLine, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = fsspec.filesystem("memory")

    def refuse(*given: Any, **options: Any) -> None:
        raise RuntimeError("403\nForbidden")

    monkeypatch.setattr(type(files), "find", refuse)
    output = cli(f"runs list --store {URL}")
    assert (output.code, output.err) == (1, f"error: cannot list {URL}: 403\n")
    assert cli("runs list --store nonsense://x").err.startswith("error: cannot open nonsense://x")


def test_without_the_package_a_hint_says_which(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "fsspec":
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    output = cli("runs list --store s3://bucket")
    assert output.code == 2
    assert "writecliff[object-store]" in output.err


def test_sql_over_an_empty_store() -> None:
    answer, notes = sql_table(
        Catalogue(open_place(URL)), "select * from rounds, runs, figures, tags"
    )
    assert answer is not None
    assert (answer.num_rows, list(notes)) == (0, [])
