"""Databases of views: calls are isolated, even in a shared database."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from writecliff.store.db import QueryError, query, views

OURS = pytest.mark.parametrize("ours", [False, True])


@OURS
def test_each_call_has_views_of_its_own(ours: bool) -> None:
    with views(ours=ours) as first, views(ours=ours) as second:
        first.add_view("x", "select 1 as n")
        second.add_view("x", "select 2 as n")
        first.add_table("t", pa.table({"n": [3]}))
        assert first.rows("select n from x union select n from t order by n")[1] == [(1,), (3,)]
        assert second.rows("select n from x")[1] == [(2,)]
        with pytest.raises(QueryError, match="t does not exist"):
            second.rows("select n from t")
    with views(ours=ours) as later, pytest.raises(QueryError, match="x does not exist"):
        later.rows("select n from x")


def test_what_a_user_leaves_behind_is_gone() -> None:
    with views() as database:
        database.rows("create table left_behind as select 1 as n")
    for ours in (False, True):
        with views(ours=ours) as database, pytest.raises(QueryError, match="does not exist"):
            database.rows("select * from left_behind")


@OURS
def test_another_file_of_the_same_size_time_and_descriptor_is_read(
    ours: bool, tmp_path: Path
) -> None:
    """Read a catalogue that was replaced."""
    descriptors, sums = set(), []
    for number in (1, 2):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"n": [number] * 1000}), path)
        os.utime(path, ns=(10**18, 10**18))
        with path.open("rb") as file, views(ours=ours) as database:
            descriptors.add(file.fileno())
            database.add_files("t", [file])
            sums += database.rows("select sum(n) from t")[1]
    assert sums == [(1000,), (2000,)]
    assert len(descriptors) == 1 and len({path.stat().st_size for path in tmp_path.iterdir()}) == 1


FILE_STATEMENTS = (
    "copy (select 1) to '{folder}/out.csv'",
    "copy (select 1) to '{folder}/out.csv' (use_tmp_file false)",
    "explain analyze copy (select 1) to '{folder}/out.csv'",
    "export database '{folder}/out'",
    "attach '{folder}/out.db'",
    "select * from read_text('{folder}/secret.txt')",
    "select * from read_csv('{folder}/secret.txt')",
    "select * from '{folder}/secret.txt'",
    "select * from glob('{folder}/*')",
    "select * from '/proc/self/environ'",
    "install httpfs",
    "force install httpfs from '{folder}'",
    "load '{folder}/any.duckdb_extension'",
    "set enable_external_access = true",
    "reset lock_configuration",
    "set profiling_output = '{folder}/out.json'",
    "call enable_logging(storage = 'file', storage_path = '{folder}/out')",
    "create persistent secret s (type http, bearer_token 'x')",
    "select * from visible_to_python",
)


@pytest.mark.parametrize("statement", FILE_STATEMENTS)
@pytest.mark.parametrize("entry", ["views", "query"])
def test_a_users_statement_reaches_no_file(entry: str, statement: str, tmp_path: Path) -> None:
    visible_to_python = pa.table({"n": [1]})
    assert visible_to_python.num_rows == 1
    (tmp_path / "secret.txt").write_text("secret\n")
    sql = statement.format(folder=tmp_path)
    if entry == "query":
        with pytest.raises(QueryError):
            query(sql, {"t": pa.table({"n": [1]})})
    else:
        with views() as database:
            database.add_table("t", pa.table({"n": [1]}))
            database.close_files()
            with pytest.raises(QueryError):
                database.rows(sql)
            assert database.rows("select n from t")[1] == [(1,)]
    assert [path.name for path in tmp_path.iterdir()] == ["secret.txt"]


def test_a_users_statement_cannot_overwrite_the_file_of_a_view(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"n": [1, 2]}), path)
    before = path.read_bytes()
    with path.open("rb") as file, views() as database:
        database.add_files("t", [file])
        database.close_files()
        listed = database.rows("select value from duckdb_settings() where name = 'allowed_paths'")
        (readable,) = listed[1][0][0].strip("[]").split(", ")
        for options in ("", " (use_tmp_file false)", " (use_tmp_file false, format parquet)"):
            with pytest.raises(QueryError):
                database.rows(f"copy (select 3 as n) to '{readable}'{options}")
        with pytest.raises(QueryError):
            database.rows(f"attach '{readable}'")
        assert database.rows("select sum(n) from t")[1] == [(3,)]
    assert path.read_bytes() == before


def test_files_are_open_where_they_are_allowed(tmp_path: Path) -> None:
    with views(allow_files=True) as database:
        database.rows(f"copy (select 7 as n) to '{tmp_path}/out.csv'")
        assert database.rows(f"select n from '{tmp_path}/out.csv'")[1] == [(7,)]


def test_large_answers_spill_into_a_folder_of_the_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with views() as database:
        database.close_files()
        ((folder,),) = database.rows("select current_setting('temp_directory')")[1]
        assert Path(folder).is_dir() and tmp_path not in Path(folder).parents
    assert not Path(folder).exists()
