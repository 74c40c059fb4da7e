"""SQL over Parquet files, by DuckDB. The only module that imports duckdb.

Every call has its own in-memory database and drains its result: an open DuckDB result makes the
next query on its connection fail (DuckDB 2.0: ResourceInUseException).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from writecliff.errors import StoreError

# A view is a list of files, or a table in memory where a list would be empty.
Views = Mapping[str, Sequence[Path] | pa.Table]


def table(sql: str, views: Views, parameters: Sequence[Any] = ()) -> pa.Table:
    """The result of a query as an Arrow table.

    Raises StoreError for files that cannot be read and for a query that DuckDB refuses.
    """
    with _Connection(views) as connection:
        return connection.sql(sql, params=list(parameters)).to_arrow_table()


class _Connection:
    """A database with the views defined; turns DuckDB's errors into ours."""

    def __init__(self, views: Views) -> None:
        self._views = views

    def __enter__(self) -> duckdb.DuckDBPyConnection:
        self._connection = duckdb.connect(":memory:")
        try:
            for name, source in self._views.items():
                if isinstance(source, pa.Table):
                    self._connection.register(name, source)
                else:
                    self._connection.execute(_view(name, source)).fetchall()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self._connection

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._connection.close()
        if isinstance(error, duckdb.IOException | duckdb.InvalidInputException):
            raise StoreError(f"cannot read the run: {_first_line(error)}") from error
        if isinstance(error, duckdb.Error):
            raise StoreError(f"query failed: {_first_line(error)}") from error


def _view(name: str, files: Sequence[Path]) -> str:
    quoted = ", ".join("'" + str(path).replace("'", "''") + "'" for path in files)
    return f"create view {name} as select * from read_parquet([{quoted}], union_by_name = true)"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
