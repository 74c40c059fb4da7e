"""SQL over Arrow tables, by DuckDB. The only module that imports duckdb.

DuckDB gets tables, never paths: it would take a path for a glob pattern or a URI, and it does not
verify checksums. Each call has a connection of its own, to an empty database that the process
keeps: to make one takes eight times as long as a query.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from writecliff.errors import StoreError


def query(sql: str, tables: Mapping[str, pa.Table], parameters: Sequence[Any] = ()) -> pa.Table:
    """The result of `sql` over `tables`, which it names by their keys.

    Raises StoreError for a query that DuckDB refuses.
    """
    import duckdb  # a run that only stores does without

    with _database(os.getpid()).cursor() as connection:
        try:
            for name, table in tables.items():
                connection.register(name, table)
            return connection.sql(sql, params=list(parameters)).to_arrow_table()
        except duckdb.Error as error:
            raise StoreError(f"query failed: {str(error).strip().splitlines()[0]}") from error


@cache
def _database(process: int) -> Any:
    """The empty database of this process; one of a parent must not be used. Its tables are small,
    and without threads of its own it may be forked."""
    import duckdb

    return duckdb.connect(":memory:", config={"threads": 1})
