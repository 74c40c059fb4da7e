"""SQL over Arrow tables, by DuckDB. The only module that imports duckdb.

DuckDB gets tables of runs, never their paths: it would take a path for a glob pattern or a URI, and
it does not verify checksums. Files of the catalogue, which are made from verified ones, it reads by
itself, through descriptors: a list of thousands of runs then needs no other library. Each call has
a connection of its own, to an empty database that the process keeps: to make one takes eight times
as long as a query. Only where users write the SQL, which may leave tables and settings behind, is
the database of the call alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, BinaryIO

from writecliff.errors import StoreError

if TYPE_CHECKING:
    import pyarrow as pa

Rows = list[tuple[Any, ...]]


class QueryError(StoreError):
    """A query that DuckDB refuses."""

    exit_code = 2


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
            raise StoreError(f"query failed: {_first_line(error)}") from error


class Views:
    """Named views that queries of a user may use; begin with `views`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def add_table(self, name: str, table: Any) -> None:
        """An Arrow table or dataset."""
        self._connection.register(name, table)

    def add_files(self, name: str, files: Sequence[BinaryIO]) -> None:
        """Open Parquet files, which must stay open; a column that some lack is null there."""
        paths = ", ".join(f"'/proc/self/fd/{file.fileno()}'" for file in files)
        union = f"read_parquet([{paths}], union_by_name = true)"
        self._run(f"create temp view {name} as select * from {union}")

    def add_view(self, name: str, sql: str) -> None:
        """What `sql` selects."""
        self._run(f"create temp view {name} as {sql}")

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> tuple[list[str], Rows]:
        """Names of columns, and rows, without times that have a zone. Raises QueryError."""
        found = self._run(sql, parameters)
        if found is None:
            return [], []
        with self._errors():
            return list(found.columns), found.fetchall()

    def arrow(self, sql: str, parameters: Sequence[Any] = ()) -> pa.Table | None:
        """The result as a table; None of a statement that has none. Raises QueryError."""
        found = self._run(sql, parameters)
        with self._errors():
            return None if found is None else found.to_arrow_table()

    def _run(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        with self._errors():
            return self._connection.sql(sql, params=list(parameters) or None)

    @staticmethod
    @contextmanager
    def _errors() -> Iterator[None]:
        import duckdb

        try:
            yield
        except duckdb.Error as error:
            raise QueryError(f"query failed: {_first_line(error)}") from error


@contextmanager
def views(*, ours: bool = False) -> Iterator[Views]:
    """An empty database for views, without threads of its own; with `ours`, for statements that no
    user writes, that of the process, in which each connection sees its own views only."""
    connection = _database(os.getpid()).cursor() if ours else _new_database()
    with connection:
        yield Views(connection)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


@cache
def _database(process: int) -> Any:
    """The empty database of this process; one of a parent must not be used. Its tables are small,
    and without threads of its own it may be forked."""
    return _new_database()


def _new_database() -> Any:
    import duckdb

    return duckdb.connect(":memory:", config={"threads": 1})
