"""SQL queries over Arrow tables, run by DuckDB. No other module imports duckdb.

DuckDB receives run tables, but never their paths. DuckDB would interpret a path as a glob pattern
or URI, and it does not verify checksums. DuckDB reads the catalogue files directly, through
descriptors, so a list of thousands of runs requires no other library. The catalogue files are
derived from verified files. Each call uses a separate connection to the process's empty database,
because creating a database takes eight times as long as a query. If users write the SQL, which may
leave tables and settings behind, the call uses a database of its own.

User-supplied SQL cannot access files, the network or extensions. A DuckDB setting disables this
access, and a lock prevents statements from enabling it again. The setting permits the database to
read and write the listed paths. The list therefore contains in-memory copies of the catalogue
files, which are sealed against writing.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, BinaryIO

from writecliff.errors import StoreError, did_you_mean
from writecliff.startup import keep_loaded

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

Rows = list[tuple[Any, ...]]

# Settings in the order in which DuckDB accepts them.
_CLOSED = {
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",  # Variables in the calling program are not tables.
    "enable_external_access": "false",
    "lock_configuration": "true",
}
_NO_TABLE = re.compile(r"Table with name (\S+) does not exist")
_SUGGESTION = re.compile(r"(?:Did you mean|Candidate bindings: ).*")
_FILES_CLOSED = ("file system operations are disabled", "external extensions is disabled",
                 "configuration has been locked", "Persistent secrets are disabled")  # fmt: skip
_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class QueryError(StoreError):
    """Raised if DuckDB rejects a query."""

    exit_code = 2


def query(sql: str, tables: Mapping[str, pa.Table], parameters: Sequence[Any] = ()) -> pa.Table:
    """Run `sql` over `tables`, named by their keys, without access to any other data.

    Raises:
        QueryError: If If DuckDB rejects the query.
    """
    with _database(os.getpid(), closed=True).cursor() as connection, _errors(tables):
        for name, table in tables.items():
            connection.register(name, table)
        return connection.sql(sql, params=list(parameters)).to_arrow_table()


class Views:
    """Named views for a user's queries, created by `views`."""

    def __init__(
        self, connection: Any, closing: ExitStack | None, suggested: Sequence[str]
    ) -> None:
        """Use `views` instead."""
        self._connection = connection
        # Context that deletes copies of files; `None` if files are read directly.
        self._closing = closing
        self._copies: list[str] = []
        self._suggested = suggested

    def add_table(self, name: str, table: Any) -> None:
        """Add an Arrow table or dataset."""
        self._connection.register(name, table)

    def add_files(self, name: str, files: Sequence[BinaryIO]) -> None:
        """Add open Parquet files as a view; the files must remain open.

        A column missing from some files is null in those files' rows.
        """
        paths = [self._readable_path(file) for file in files]
        listed = ", ".join(f"'{path}'" for path in paths)
        union = f"read_parquet([{listed}], union_by_name = true)"
        self._run(f"create temp view {name} as select * from {union}")

    def _readable_path(self, file: BinaryIO) -> str:
        """Return the path that DuckDB reads for a file; for user SQL, the path of a sealed copy."""
        if self._closing is None:
            return f"/proc/self/fd/{file.fileno()}"
        descriptor = os.memfd_create("view", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        copy = self._closing.enter_context(os.fdopen(descriptor, "wb"))
        shutil.copyfileobj(file, copy)
        copy.flush()
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        self._copies.append(f"/proc/self/fd/{descriptor}")
        return self._copies[-1]

    def add_view(self, name: str, sql: str) -> None:
        """Add a view of the rows selected by `sql`."""
        self._run(f"create temp view {name} as {sql}")

    def close_files(self) -> None:
        """Restrict all later statements to the views.

        This method must be called before any user-supplied statement runs. No files can be added
        after this call.
        """
        if self._closing is None:
            raise ValueError("the views of this run read its files directly")
        if self._copies:
            self._run(f"set allowed_paths = {self._copies}")
        _close_files(self._connection)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> tuple[list[str], Rows]:
        """Return the column names and the rows; times must not have a time zone.

        Raises:
            QueryError: If DuckDB rejects the query.
        """
        relation = self._run(sql, parameters)
        if relation is None:
            return [], []
        with _errors(self._suggested):
            return list(relation.columns), relation.fetchall()

    def arrow(self, sql: str, parameters: Sequence[Any] = ()) -> pa.Table | None:
        """Return the result as a table, or None for a statement without a result.

        Raises:
            QueryError: If DuckDB rejects the query.
        """
        relation = self._run(sql, parameters)
        with _errors(self._suggested):
            return None if relation is None else relation.to_arrow_table()

    def _run(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        with _errors(self._suggested):
            return self._connection.sql(sql, params=list(parameters) or None)


@contextmanager
def views(
    *, ours: bool = False, allow_files: bool = False, suggested: Sequence[str] = ()
) -> Iterator[Views]:
    """Open an empty database for views that starts no threads.

    Args:
        ours: `True` if no statement is written by a user. Such statements use the process's
            database, where each connection has its own views.
        allow_files: `True` if the user's statements may access files and extensions. Otherwise
            `Views.close_files` must be called before the first of these statements.
        suggested: Table names to suggest for unknown names.
    """
    with ExitStack() as closing:
        if ours:
            connection = closing.enter_context(_database(os.getpid(), closed=False).cursor())
            yield Views(connection, None, suggested)
            return
        folder = closing.enter_context(tempfile.TemporaryDirectory(prefix="writecliff-sql-"))
        connection = closing.enter_context(_new_database(folder))
        yield Views(connection, None if allow_files else closing, suggested)


@contextmanager
def _errors(suggested: Iterable[str]) -> Iterator[None]:
    """Convert DuckDB errors to QueryError, with the closest suggested name as a hint."""
    try:
        yield
    except _duckdb().Error as error:
        raise QueryError(
            f"query failed: {_first_line(error)}", hint=_hint(error, suggested)
        ) from error


def _hint(error: duckdb.Error, suggested: Iterable[str]) -> str | None:
    text = str(error)
    if any(reason in text for reason in _FILES_CLOSED):
        return (
            "queries can only access the views of the store; `runs sql --allow-files` "
            "(in Python allow_files=True) permits files and extensions"
        )
    if (missing := _NO_TABLE.search(text)) and (names := list(suggested)):
        return did_you_mean(missing[1].lower(), names)
    suggestion = _SUGGESTION.search(text)
    return None if suggestion is None else suggestion[0][0].lower() + suggestion[0][1:]


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


@cache
def _database(process: int, *, closed: bool) -> Any:
    """Return this process's empty database, which has no access to files if `closed` is set.

    A parent process's database must not be used. Because this database has no threads, it survives
    a fork.
    """
    database = _new_database("")
    if closed:
        _close_files(database)
    return database


def _duckdb() -> Any:
    """Load DuckDB."""
    keep_loaded()  # Load now, because DuckDB reports objects that are not collected as leaks.
    import duckdb

    return duckdb


def _new_database(temporary: str) -> Any:
    """Return an empty database that spills large results into the folder `temporary`.

    The database never spills to disk if `temporary` is empty.
    """
    return _duckdb().connect(":memory:", config={"threads": 1, "temp_directory": temporary})


def _close_files(connection: Any) -> None:
    for name, value in _CLOSED.items():
        connection.execute(f"set {name} = {value}")
