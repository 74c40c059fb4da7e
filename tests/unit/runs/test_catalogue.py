"""The catalogue: it stays equal to the run directories after changes, damage and deletions."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.run_store import aged, make_run
from writecliff.errors import StoreError
from writecliff.procedures.registry import USER_LOADS
from writecliff.runs import catalogue as entry_module
from writecliff.runs.catalogue import FILE_NAME, Catalogue
from writecliff.runs.columns import RUNS
from writecliff.runs.place import LocalPlace, open_place
from writecliff.runs.queries import Selection, listed, sql_table
from writecliff.runs.tags import change_tags
from writecliff.store.checksums import sealed_document
from writecliff.store.files import FolderLock
from writecliff.store.manifest import MANIFEST_NAME, SCHEMA
from writecliff.suite.folder import Member, SuiteFolder


def catalogue(root: Path) -> Catalogue:
    return Catalogue(open_place(str(root)))


def names(root: Path, **selection: Any) -> list[str]:
    return [row["run"] for row in listed(catalogue(root), Selection(**selection))]


def everything(root: Path) -> list[tuple[Any, ...]]:
    stored = catalogue(root)
    stored.refresh(figures=True)
    with stored.opened() as database:
        rows = database.rows("select * from runs order by run")[1]
        return rows + database.rows("select * from figures order by run, key")[1]


def test_runs_of_all_kinds_of_folders_are_found(tmp_path: Path) -> None:
    make_run(tmp_path / "direct")
    make_run(tmp_path / "runs" / "team" / "drive" / "deep")
    make_run(tmp_path / "imports" / "old")
    make_run(tmp_path / ".hidden" / "no")
    make_run(tmp_path / "sources" / "no")
    member = Member("wsat", {}, "sim:fake")
    SuiteFolder.create(tmp_path / "suites" / "pts-e", "suite", "pts-e", {"wsat": member})
    make_run(tmp_path / "suites" / "pts-e" / "wsat")
    rows = {row["run"]: row["member_of"] for row in listed(catalogue(tmp_path), Selection())}
    assert rows == {
        "direct": None,
        "runs/team/drive/deep": None,
        "imports/old": None,
        "suites/pts-e/wsat": "suites/pts-e",
    }


@pytest.mark.parametrize("name", [*USER_LOADS, "wsat", "datacentre", "of-another-version"])
def test_runs_of_every_procedure_have_a_kind(tmp_path: Path, name: str) -> None:
    make_run(tmp_path / "run", procedure=name)
    (row,) = listed(catalogue(tmp_path), Selection())
    kinds = next(column.text for column in RUNS if column.name == "kind")
    assert row["test"] == name and f"`{row['kind']}`" in kinds


def test_only_what_has_changed_is_read(store: Path) -> None:
    first = catalogue(store).refresh()
    assert (first.runs, len(first.read)) == (3, 3)
    assert catalogue(store).refresh().read == []
    make_run(store / "runs" / "fourth")
    shutil.rmtree(store / "runs" / "first")
    aged(store / "runs" / "fourth")
    changes = catalogue(store).refresh()
    assert (changes.runs, changes.read, changes.gone) == (3, ["runs/fourth"], ["runs/first"])
    change_tags(open_place(str(store)), "runs/second", add=["new"])
    assert catalogue(store).refresh().read == ["runs/second"]


def test_a_change_within_the_tick_of_a_clock_is_seen(store: Path) -> None:
    manifest = store / "runs" / "first" / MANIFEST_NAME
    manifest.touch()
    assert "runs/first" in catalogue(store).refresh().read
    text = manifest.read_text()
    manifest.write_text(text.replace('"seed": 1', '"seed": 9'))  # The new text has the same length.
    assert {row["status"] for row in listed(catalogue(store), Selection(limit=3))} >= {"damaged"}


@pytest.mark.parametrize("what", ["catalogue", "all", "cut", "flipped"])
def test_a_lost_or_damaged_catalogue_loses_nothing(store: Path, what: str) -> None:
    change_tags(open_place(str(store)), "runs/first", add=["keep", "me"])
    before = everything(store)
    folder = store / ".writecliff"
    file = folder / FILE_NAME
    if what == "all":
        shutil.rmtree(folder)
    elif what == "catalogue":
        file.unlink()
    else:
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 16
        file.write_bytes(data if what == "flipped" else data[: len(data) // 2])
    assert everything(store) == before
    assert any(row[-1] == ["keep", "me"] for row in before[:3])


def test_rebuilding_gives_the_same(store: Path) -> None:
    before = everything(store)
    made = catalogue(store)
    assert len(made.refresh(figures=True, rebuild=True).read) == 3
    assert everything(store) == before


def test_a_store_that_cannot_be_written_is_listed(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(place: LocalPlace, name: str, data: bytes) -> None:
        raise StoreError("read-only file system")

    monkeypatch.setattr(LocalPlace, "save", refuse)
    assert len(names(store)) == 3
    table, _ = sql_table(catalogue(store), "select count(*) as n from rounds")
    assert table is not None
    assert table.to_pylist() == [{"n": 36}]
    assert not (store / ".writecliff" / FILE_NAME).exists()


def test_where_there_is_no_run_nothing_is_written(tmp_path: Path) -> None:
    assert names(tmp_path) == []
    assert names(tmp_path / "absent") == []
    assert list(tmp_path.iterdir()) == []


def test_a_killed_run_is_interrupted_and_a_going_one_running(store: Path) -> None:
    assert names(store, status="interrupted") == ["runs/third"]
    lock = FolderLock(store / "runs" / "third")
    assert names(store, status="running") == ["runs/third"]
    lock.release()
    assert names(store, status="interrupted") == ["runs/third"]


# -- damage -----------------------------------------------------------------------------------


def damage_of(root: Path, run: str) -> str:
    rows = {row["run"]: row for row in listed(catalogue(root), Selection())}
    assert len(rows) == 3
    assert rows[run]["status"] == "damaged"
    return str(rows[run]["damage"])


def sealed(**fields: Any) -> bytes:
    return sealed_document(SCHEMA, fields)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1]", "has schema null"),
        (b'{"schema": "writecliff/run/1"}', "checksum mismatch"),
        (b'{"schema": "writecliff/run/9"}', 'has schema "writecliff/run/9"'),
        (sealed(), "missing required field `procedure`"),
        (sealed(status="\x1b[2J"), "status: Invalid enum value '\\x1b[2J'"),
    ],
)
def test_a_damaged_manifest_is_a_damaged_run(store: Path, data: bytes, reason: str) -> None:
    (store / "runs" / "first" / MANIFEST_NAME).write_bytes(data)
    assert reason in damage_of(store, "runs/first")


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("seed", "seven", "seed: Expected `int`, got `str`"),
        ("seed", 2**70, f"seed is {2**70} in its manifest.json"),
        ("title", ["x"], "title: Expected `str`, got `array`"),
        ("reason", {"a": 1}, "reason: Expected `str`, got `object`"),
        ("seed", True, "seed: Expected `int`, got `bool`"),
    ],
)
def test_a_manifest_may_say_anything(store: Path, field: str, value: Any, reason: str) -> None:
    path = store / "runs" / "first" / MANIFEST_NAME
    document = json.loads(path.read_bytes())
    del document["sha256"], document["schema"]
    path.write_bytes(sealed(**{**document, field: value}))
    assert reason in damage_of(store, "runs/first")


def test_text_that_is_no_unicode_is_kept_as_escapes(store: Path) -> None:
    path = store / "runs" / "first" / MANIFEST_NAME
    document = json.loads(path.read_bytes())
    del document["sha256"], document["schema"]
    path.write_bytes(sealed(**{**document, "title": "a\ud800b"}))
    table, _ = sql_table(catalogue(store), "select title from runs where run = 'runs/first'")
    assert table is not None
    assert table.to_pylist() == [{"title": "a\\ud800b"}]


def test_a_run_without_a_manifest_is_damaged(store: Path) -> None:
    (store / "runs" / "first" / MANIFEST_NAME).unlink()
    assert damage_of(store, "runs/first") == "it has no manifest.json"


def test_damaged_tags_do_not_make_a_run_worse(store: Path) -> None:
    (store / "runs" / "first" / "tags.json").write_bytes(b"{}")
    (first,) = (o for o in listed(catalogue(store), Selection()) if o["run"] == "runs/first")
    assert (first["status"], first["tags"]) == ("complete", [])
    assert "tags.json" in first["damage"]


def test_figures_of_another_state_do_not_count(store: Path) -> None:
    before = everything(store)
    figures_path = store / "runs" / "first" / "figures.json"
    document = {"manifest": "0" * 64, "figures": [], "verdict": "best of all", "stamp": "",
                "steps": 1, "device_time_ns": 1, "host_write_bytes": 1}  # fmt: skip
    figures_path.write_bytes(sealed_document("writecliff/figures/1", document))
    assert everything(store) == before


def test_a_damaged_table_is_left_out_with_a_warning(store: Path) -> None:
    table = store / "runs" / "first" / "rounds.parquet"
    data = bytearray(table.read_bytes())
    data[len(data) // 2] ^= 1
    table.write_bytes(data)
    for _ in range(2):  # The second query reads the segments.
        answer, notes = sql_table(catalogue(store), "select distinct run from rounds order by 1")
        assert answer is not None
        assert answer.to_pylist() == [{"run": "runs/second"}, {"run": "runs/third"}]
        assert notes == [
            "runs/first is left out of rounds: damaged: rounds.parquet: checksum mismatch"
        ]


def test_a_listing_survives_runs_that_go_meanwhile(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = entry_module.read_entry

    def read_and_delete(place: Any, stored: Any, before: Any = None) -> Any:
        shutil.rmtree(store / "runs" / "second", ignore_errors=True)
        return read(place, stored, before)

    monkeypatch.setattr(entry_module, "read_entry", read_and_delete)
    assert "runs/second" not in names(store)


# -- several processes ------------------------------------------------------------------------


def _tag_and_list(root: str, number: int) -> None:
    place = open_place(root)
    for turn in range(6):
        change_tags(place, "runs/first", add=[f"w{number}-{turn}"])
        make = Catalogue(place)
        make.refresh()
        with make.opened() as database:
            assert database.rows("select count(*) from runs")[1][0][0] >= 2


def test_two_writers_at_once_lose_no_tag(store: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_tag_and_list, args=(str(store), n)) for n in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0]
    (first,) = listed(catalogue(store), Selection(where="run = 'runs/first'"))
    assert first["tags"] == sorted(f"w{n}-{turn}" for n in range(2) for turn in range(6))


@pytest.mark.parametrize(
    "name", ["\x1b[31mred\x1b[0m", "line\nbreak", "*[?]'\";--", "\N{RIGHT-TO-LEFT OVERRIDE}x", "-x"]
)
def test_a_run_may_have_any_name(tmp_path: Path, name: str) -> None:
    make_run(tmp_path / "runs" / name)
    assert names(tmp_path) == [f"runs/{name}"]
    table, notes = sql_table(
        catalogue(tmp_path), "select run, count(*) as n from rounds group by 1"
    )
    assert table is not None
    assert (table.to_pylist(), notes) == ([{"run": f"runs/{name}", "n": 12}], [])


def test_a_name_that_is_no_unicode_is_shown_as_escapes(tmp_path: Path) -> None:
    made = make_run(tmp_path / "runs" / "x")
    os.rename(os.fsencode(made), os.fsencode(made.parent) + b"/bad\xff")
    assert names(tmp_path) == ["runs/bad\\xff"]
    place = open_place(str(tmp_path))
    list(place.find())
    assert change_tags(place, "runs/bad\\xff", add=["t"]) == ["t"]
    place.remove("runs/bad\\xff")
    assert names(tmp_path) == []


def test_the_root_may_have_any_name(tmp_path: Path) -> None:
    root = tmp_path / "a[1]*'?"
    make_run(root / "runs" / "x")
    assert names(root) == names(root) == ["runs/x"]
