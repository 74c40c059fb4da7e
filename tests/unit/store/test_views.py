"""Databases of views: what one call sees is nothing of another's, also where they share a database."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from writecliff.store.db import QueryError, views

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
    """As a catalogue that has been replaced."""
    descriptors, found = set(), []
    for number in (1, 2):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"n": [number] * 1000}), path)
        os.utime(path, ns=(10**18, 10**18))
        with path.open("rb") as file, views(ours=ours) as database:
            descriptors.add(file.fileno())
            database.add_files("t", [file])
            found += database.rows("select sum(n) from t")[1]
    assert found == [(1000,), (2000,)]
    assert len(descriptors) == 1 and len({path.stat().st_size for path in tmp_path.iterdir()}) == 1
