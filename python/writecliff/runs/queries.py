"""Lists of runs, and SQL queries over all runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from writecliff.errors import ConfigError
from writecliff.runs.catalogue import Catalogue, Progress, unseen
from writecliff.runs.columns import RUNS, STEP_TABLES
from writecliff.store.db import Views

if TYPE_CHECKING:
    import pyarrow as pa

LISTED = ("run", "status", "test", "target", "drive", "created_utc", "verdict", "tags",
          "member_of", "kind", "limits_met", "damage")  # fmt: skip
_SPANS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_FIGURES = re.compile(r"\b(figures|verdict|stamp|steps|device_time_ns|host_write_bytes)\b", re.I)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Filters, sort order and limits for a list of runs. A listed run must match all filters.

    `device` matches a substring of the target or drive name, and `text` matches a substring of any
    name, tag or outcome. A listed run must have all `tags`. `since` is a date, a time, or a time
    span, such as "7d". `where` is an SQL condition on the columns of `runs`. `sort` is a column
    name, with a leading "-" for descending order. The first `offset` runs are skipped.
    """

    kind: str | None = None
    test: str | None = None
    device: str | None = None
    status: str | None = None
    tags: Sequence[str] = ()
    member_of: str | None = None
    since: str | None = None
    text: str | None = None
    where: str | None = None
    sort: str = "-created_utc"
    limit: int | None = None
    offset: int = 0

    def sql(self, columns: Sequence[str], *, now: datetime | None = None) -> tuple[str, list[Any]]:
        """Return the SQL query and its parameters.

        Raises:
            ConfigError: If a column is unknown, if a time is invalid, or if a limit is negative.
        """
        condition, values = self._condition(now)
        return f"select {', '.join(columns)} from runs{condition}{self._order()}", values

    def count_sql(self, *, now: datetime | None = None) -> tuple[str, list[object]]:
        """Return a query that counts the matching runs, ignoring `limit` and `offset`.

        Raises:
            ConfigError: If a time is invalid.
        """
        condition, values = self._condition(now)
        return f"select count(*) from runs{condition}", values

    def _condition(self, now: datetime | None) -> tuple[str, list[object]]:
        conditions: dict[str, Any] = {}
        if self.test is not None:
            conditions["test = ?"] = self.test.replace("-", "_")
        for name in ("kind", "status", "member_of"):
            if getattr(self, name) is not None:
                conditions[f"{name} = ?"] = getattr(self, name)
        if self.since is not None:
            conditions["created_utc >= ?"] = since_utc(self.since, now)
        parts, values = list(conditions), list(conditions.values())
        if self.device is not None:
            parts.append("(contains(lower(target), ?) or contains(lower(drive), ?))")
            values += [self.device.lower()] * 2
        for tag in self.tags:
            parts.append("list_contains(tags, ?)")
            values.append(tag)
        if self.text is not None:
            tags = "array_to_string(tags, ' ')"
            columns = f"run, title, test, target, drive, serial, firmware, verdict, {tags}"
            parts.append(f"contains(lower(concat_ws(' ', {columns})), ?)")
            values.append(self.text.lower())
        if self.where is not None:
            parts.append(f"({self.where}\n)")  # The line break terminates a trailing comment.
        return (f" where {' and '.join(parts)}" if parts else ""), values

    def _order(self) -> str:
        name, down = self.sort.removeprefix("-"), self.sort.startswith("-")
        columns = [column.name for column in RUNS]
        if name not in columns:
            raise ConfigError.unknown("column", name, columns, where="--sort")
        if self.limit is not None and self.limit < 0:
            raise ConfigError(f"--limit must be 0 or more, not {self.limit}")
        limit = "" if self.limit is None else f" limit {self.limit}"
        offset = f" offset {self.offset}" if self.offset else ""
        return f" order by {name} {'desc' if down else 'asc'} nulls last, run{limit}{offset}"


def since_utc(text: str, now: datetime | None = None) -> datetime:
    """Parse a date, a time or a time span before `now` to UTC without a time zone.

    Raises:
        ConfigError: If `text` is not a date, time or time span.
    """
    now = now or datetime.now(UTC)
    span = re.fullmatch(r"(\d{1,5})([mhdw])", text.strip())
    try:
        if span is not None:
            start = now - timedelta(**{_SPANS[span[2]]: int(span[1])})
        elif len(text.strip()) <= len("2026-01-31"):
            start = datetime.combine(date.fromisoformat(text.strip()), datetime.min.time())
        else:
            start = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise ConfigError(
            f"--since '{text}' is not a date, time or time span",
            hint="for example 2026-01-31, 2026-01-31T14:00, 36h, 7d",
        ) from None
    return start.astimezone(UTC).replace(tzinfo=None)


def listed(
    catalogue: Catalogue, selection: Selection, *, progress: Progress = unseen
) -> list[dict[str, Any]]:
    """Return the matching runs with the columns shown in lists.

    Raises:
        ConfigError: If a filter is invalid.
        QueryError: If `where` is not a valid condition.
        StoreError: If the store or the catalogue cannot be read.
    """
    sql, values = selection.sql(LISTED)
    with catalogue.current(figures=_needs_figures(selection), progress=progress) as database:
        database.close_files()
        names, rows = database.rows(sql, values)
    return [dict(zip(names, row, strict=True)) for row in rows]


def list_table(
    catalogue: Catalogue, selection: Selection, *, progress: Progress = unseen
) -> pa.Table:
    """Return the matching runs as an Arrow table. Raises the same errors as `listed`."""
    sql, values = selection.sql(LISTED)
    with catalogue.current(figures=_needs_figures(selection), progress=progress) as database:
        database.close_files()
        return database.arrow(sql, values)


def _needs_figures(selection: Selection) -> bool:
    return _FIGURES.search(f"{selection.where or ''} {selection.sort}") is not None


@contextmanager
def answering(
    catalogue: Catalogue, sql: str, *, allow_files: bool = False, progress: Progress = unseen
) -> Iterator[tuple[Views, Sequence[str]]]:
    """Open a database with all views that `sql` may refer to, brought up to date.

    Yields the database, and a note for each run omitted from a view. SQL statements can only read
    files if `allow_files` is set.

    Raises:
        StoreError: If the store or the catalogue cannot be read.
    """
    from writecliff.runs.segments import add_step_table

    lower = sql.lower()
    notes: list[str] = []
    with ExitStack() as stack:
        figures = _FIGURES.search(sql) is not None or "*" in sql
        database = stack.enter_context(
            catalogue.current(figures=figures, allow_files=allow_files, progress=progress)
        )
        for name in STEP_TABLES:
            if name in lower:
                notes += add_step_table(catalogue, database, name, stack, progress=progress)
        if not allow_files:
            database.close_files()
        yield database, notes


def sql_table(
    catalogue: Catalogue, sql: str, *, allow_files: bool = False, progress: Progress = unseen
) -> tuple[pa.Table | None, Sequence[str]]:
    """Run an SQL query over the store.

    Returns:
        The result (`None` for a statement that returns no rows), and a note for each omitted run.

    Raises:
        QueryError: If DuckDB rejects the query.
        StoreError: If the store or the catalogue cannot be read.
    """
    with answering(catalogue, sql, allow_files=allow_files, progress=progress) as (database, notes):
        return database.arrow(sql), notes
