"""SQL over Arrow tables, by DuckDB. The only module that imports duckdb.

DuckDB gets tables of runs, never their paths: it would take a path for a glob pattern or a URI, and
it does not verify checksums. Files of the catalogue, which are made from verified ones, it reads by
itself, through descriptors: a list of thousands of runs then needs no other library. Each call has
a connection of its own, to an empty database that the process keeps: to make one takes eight times
as long as a query. Only where users write the SQL, which may leave tables and settings behind, is
the database of the call alone.

SQL of a user cannot reach files, the network or extensions. DuckDB's own switch closes them, and a
lock prevents a statement from turning it back. The switch spares listed paths, for reading and for
writing alike, so the list has sealed copies in memory of the catalogue's files, which the kernel
protects against writing.
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

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

Rows = list[tuple[Any, ...]]

# Settings in the order in which DuckDB accepts them.
_CLOSED = {
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",  # variables of the calling program are not tables
    "enable_external_access": "false",
    "lock_configuration": "true",
}
_NO_TABLE = re.compile(r"Table with name (\S+) does not exist")
_SUGGESTION = re.compile(r"(?:Did you mean|Candidate bindings: ).*")
_FILES_CLOSED = ("file system operations are disabled", "external extensions is disabled",
                 "configuration has been locked", "Persistent secrets are disabled")  # fmt: skip
_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class QueryError(StoreError):
    """A query that DuckDB refuses."""

    exit_code = 2


def query(sql: str, tables: Mapping[str, pa.Table], parameters: Sequence[Any] = ()) -> pa.Table:
    """Run `sql` over `tables`, by their keys; it cannot reach anything else.

    Raises:
        QueryError: DuckDB refuses the query.
    """
    with _database(os.getpid(), closed=True).cursor() as connection, _errors(tables):
        for name, table in tables.items():
            connection.register(name, table)
        return connection.sql(sql, params=list(parameters)).to_arrow_table()


class Views:
    """Named views that queries of a user may use; begin with `views`."""

    def __init__(self, connection: Any, closing: ExitStack | None, known: Sequence[str]) -> None:
        self._connection = connection
        self._closing = closing  # closes the copies of files; None: read the files themselves
        self._copies: list[str] = []
        self._known = known

    def add_table(self, name: str, table: Any) -> None:
        """Add an Arrow table or dataset."""
        self._connection.register(name, table)

    def add_files(self, name: str, files: Sequence[BinaryIO]) -> None:
        """Add open Parquet files, which must stay open, as a view; a column that some of them lack
        is null there.
        """
        paths = [self._readable_path(file) for file in files]
        listed = ", ".join(f"'{path}'" for path in paths)
        union = f"read_parquet([{listed}], union_by_name = true)"
        self._run(f"create temp view {name} as select * from {union}")

    def _readable_path(self, file: BinaryIO) -> str:
        """Return the path by which DuckDB reads a file, or a sealed copy of it if users write the
        SQL.
        """
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
        """Add a view of the rows that `sql` selects."""
        self._run(f"create temp view {name} as {sql}")

    def close_files(self) -> None:
        """Confine all later statements to the views.

        Call it before a statement of a user runs; no files can be added afterwards.
        """
        if self._closing is None:
            raise ValueError("these views read files themselves")
        if self._copies:
            self._run(f"set allowed_paths = {self._copies}")
        _close_files(self._connection)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> tuple[list[str], Rows]:
        """Names of columns, and rows, without times that have a zone. Raises QueryError."""
        found = self._run(sql, parameters)
        if found is None:
            return [], []
        with _errors(self._known):
            return list(found.columns), found.fetchall()

    def arrow(self, sql: str, parameters: Sequence[Any] = ()) -> pa.Table | None:
        """The result as a table; None of a statement that has none. Raises QueryError."""
        found = self._run(sql, parameters)
        with _errors(self._known):
            return None if found is None else found.to_arrow_table()

    def _run(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        with _errors(self._known):
            return self._connection.sql(sql, params=list(parameters) or None)


@contextmanager
def views(
    *, ours: bool = False, allow_files: bool = False, known: Sequence[str] = ()
) -> Iterator[Views]:
    """Open an empty database for views, without threads of its own.

    Args:
        ours: no user writes the statements. They use the database of the process, in which each
            connection sees its own views only.
        allow_files: the user's statements may read and write files and load extensions. Otherwise
            call `Views.close_files` before the first of them.
        known: names of tables that messages about unknown ones suggest.
    """
    with ExitStack() as closing:
        if ours:
            connection = closing.enter_context(_database(os.getpid(), closed=False).cursor())
            yield Views(connection, None, known)
            return
        folder = closing.enter_context(tempfile.TemporaryDirectory(prefix="writecliff-sql-"))
        connection = closing.enter_context(_new_database(folder))
        yield Views(connection, None if allow_files else closing, known)


@contextmanager
def _errors(known: Iterable[str]) -> Iterator[None]:
    """Turn errors of DuckDB into QueryError, with the nearest name of `known` as a hint."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise QueryError(f"query failed: {_first_line(error)}", hint=_hint(error, known)) from error


def _hint(error: duckdb.Error, known: Iterable[str]) -> str | None:
    text = str(error)
    if any(reason in text for reason in _FILES_CLOSED):
        return (
            "queries reach nothing but the views of the store; `runs sql --allow-files` "
            "(in Python allow_files=True) opens files and extensions"
        )
    if (missing := _NO_TABLE.search(text)) and (names := list(known)):
        return did_you_mean(missing[1].lower(), names)
    suggestion = _SUGGESTION.search(text)
    return None if suggestion is None else suggestion[0][0].lower() + suggestion[0][1:]


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


@cache
def _database(process: int, *, closed: bool) -> Any:
    """Return the empty database of this process; that of a parent must not be used. Its tables are
    small, and without threads of its own it may be forked. A closed one reaches no files.
    """
    database = _new_database("")
    if closed:
        _close_files(database)
    return database


def _new_database(temporary: str) -> Any:
    """Return an empty database that spills large results into the folder `temporary`.

    It never spills if `temporary` is empty.
    """
    import duckdb

    return duckdb.connect(":memory:", config={"threads": 1, "temp_directory": temporary})


def _close_files(connection: Any) -> None:
    for name, value in _CLOSED.items():
        connection.execute(f"set {name} = {value}")
