"""SQL over Arrow tables, by DuckDB. The only module that imports duckdb.

DuckDB gets tables, never paths: it would take a path for a glob pattern or a URI, and it does not
verify checksums. Each call has its own in-memory database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from writecliff.errors import StoreError


def query(sql: str, tables: Mapping[str, pa.Table], parameters: Sequence[Any] = ()) -> pa.Table:
    """The result of `sql` over `tables`, which it names by their keys.

    Raises StoreError for a query that DuckDB refuses.
    """
    import duckdb  # a run that only stores does without

    with duckdb.connect(":memory:") as connection:
        try:
            for name, table in tables.items():
                connection.register(name, table)
            return connection.sql(sql, params=list(parameters)).to_arrow_table()
        except duckdb.Error as error:
            raise StoreError(f"query failed: {str(error).strip().splitlines()[0]}") from error
