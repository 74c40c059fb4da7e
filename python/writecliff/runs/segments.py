"""The `rounds`, `intervals` and `histograms` tables of all runs, merged for SQL queries.

Opening and verifying thousands of small files takes seconds. When a query first uses a table, the
table is therefore copied from all runs into a few catalogue files ("segments"), where the run name
precedes the table's columns. Later queries add only new runs. An index file next to the segments
lists the runs in each segment with the digests of their manifests. Running tests are read again for
each query. Like the rest of the catalogue, segments can be deleted at any time.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.errors import StoreError, WritecliffError
from writecliff.runs.catalogue import Catalogue, Progress, unseen
from writecliff.runs.columns import DIGEST, STEP_TABLES, UNENDED
from writecliff.store.checksums import (
    NO_DIGEST,
    PARQUET_KEY,
    check_parquet,
    check_parquet_file,
    seal_parquet,
)
from writecliff.store.tables import SCHEMAS, TableName

if TYPE_CHECKING:
    import pyarrow as pa

    from writecliff.runs.place import Place
    from writecliff.store.db import Views

# Maximum rows per segment; a segment is rewritten when one of its runs changes.
_ROWS_MAX = 500_000
_WANTED = f"select run, {DIGEST}, {UNENDED} from catalogue where status <> 'damaged' order by run"


@dataclass
class _Index:
    """Runs by segment, and unreadable runs, each with its manifest digest."""

    segments: dict[str, dict[str, str]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)  # Row counts by segment.
    unreadable: dict[str, list[str]] = field(default_factory=dict)  # Digest and reason by run.

    @classmethod
    def load(cls, place: Place, name: str) -> _Index:
        data = place.load(f"{name}-1.json")
        try:
            return cls(**json.loads(data)) if data is not None else cls()
        except (ValueError, TypeError):
            return cls()

    def save(self, place: Place, name: str) -> None:
        place.save(f"{name}-1.json", json.dumps(vars(self)).encode())


def add_step_table(
    catalogue: Catalogue,
    database: Views,
    name: str,
    stack: ExitStack,
    *,
    progress: Progress = unseen,
) -> list[str]:
    """Add the view `name` to `database`, which must have a view named `catalogue`.

    Args:
        catalogue: Catalogue of the store.
        database: Database to which the view is added.
        name: Table name from `STEP_TABLES`.
        stack: Stack that closes the view's files.
        progress: Function called after each run has been read.

    Returns:
        A note for each run omitted from the view.

    Raises:
        StoreError: If the store cannot be read.
    """
    table: TableName = name  # type: ignore[assignment]
    place = catalogue.place
    wanted = {run: (digest, unended) for run, digest, unended in database.rows(_WANTED)[1]}
    ended = {run: digest for run, (digest, unended) in wanted.items() if not unended}
    running = [run for run, (_, unended) in wanted.items() if unended]
    try:
        with place.saving() if wanted else nullcontext():
            index = _add_segments(place, table, ended, database, stack, progress)
    except StoreError:  # The store is read-only.
        index, running = _Index(), list(wanted)
    notes = [f"{run} is left out of {name}: {why}" for run, (_, why) in index.unreadable.items()]
    parts = []
    for run, rows in _tables(place, table, running, unseen if index.segments else progress):
        if isinstance(rows, str):
            notes.append(f"{run} is left out of {name}: {rows}")
        else:
            parts.append(rows)
    database.add_table(f"{name}_running", _together(table, parts))
    both = f"select * from {name}_ended union all by name select * from {name}_running"
    database.add_view(name, both if index.segments else f"select * from {name}_running")
    return notes


def _add_segments(
    place: Place,
    name: TableName,
    wanted: Mapping[str, str],
    database: Views,
    stack: ExitStack,
    progress: Progress,
) -> _Index:
    """Update the segments, add them as a view, and return their index."""
    try:
        index = _updated(place, name, wanted, progress)
        _open(place, name, index, database, stack)
    except _Missing:  # A catalogue file was deleted.
        _discard(place, name)
        index = _updated(place, name, wanted, progress)
        _open(place, name, index, database, stack)
    return index


def _open(place: Place, name: TableName, index: _Index, database: Views, stack: ExitStack) -> None:
    """Add the segments as a view; files are preferred because queries read them in parts.

    Raises:
        _Missing: If a segment is missing or damaged.
    """
    if not index.segments:
        return
    paths = [path for segment in index.segments if (path := place.saved(segment)) is not None]
    if not paths:
        parts = [_read_segment(place, segment) for segment in index.segments]
        database.add_table(f"{name}_ended", _together(name, parts))
        return
    try:
        for path in paths:
            check_parquet_file(path)
        files = [stack.enter_context(path.open("rb")) for path in paths]
    except (OSError, StoreError) as error:
        raise _Missing(name) from error
    database.add_files(f"{name}_ended", files)


def _updated(
    place: Place, name: TableName, wanted: Mapping[str, str], progress: Progress
) -> _Index:
    """Update the segments to include the runs in `wanted`, and return their index."""
    index = _Index.load(place, name)
    changed = _drop_stale(place, name, index, wanted)
    have = {run for runs in index.segments.values() for run in runs} | index.unreadable.keys()
    new = [run for run in wanted if run not in have]
    if new:
        _append(place, name, index, new, wanted, progress)
    if new or changed:
        index.save(place, name)
    return index


def _drop_stale(place: Place, name: TableName, index: _Index, wanted: Mapping[str, str]) -> bool:
    """Remove deleted and changed runs from their segments; return `True` if any was removed."""
    import pyarrow as pa
    import pyarrow.compute as pc

    changed = False
    for run, (digest, _) in list(index.unreadable.items()):
        if wanted.get(run) != digest:
            del index.unreadable[run]
            changed = True
    for segment, runs in list(index.segments.items()):
        unchanged = {run: digest for run, digest in runs.items() if wanted.get(run) == digest}
        if len(unchanged) == len(runs):
            continue
        changed = True
        table = _read_segment(place, segment)
        names = pa.array(list(unchanged), pa.string())
        _write(place, index, segment, table.filter(pc.is_in(table["run"], names)), unchanged)
    return changed


def _append(
    place: Place,
    name: TableName,
    index: _Index,
    new: Sequence[str],
    wanted: Mapping[str, str],
    progress: Progress,
) -> None:
    """Append runs to the smallest segment, and create new segments once it is full."""
    segment, parts, runs = _smallest(place, name, index)
    rows = sum(part.num_rows for part in parts)
    for run, part in _tables(place, name, new, progress):
        if isinstance(part, str):
            index.unreadable[run] = [wanted[run], part]
            continue
        parts.append(part)
        runs[run] = wanted[run]
        rows += part.num_rows
        if rows >= _ROWS_MAX:
            _write(place, index, segment, _together(name, parts), runs)
            segment, parts, runs, rows = _free_name(name, index), [], {}, 0
    if runs:
        _write(place, index, segment, _together(name, parts), runs)


def _smallest(
    place: Place, name: TableName, index: _Index
) -> tuple[str, list[pa.Table], dict[str, str]]:
    """Return the name, tables and runs of the segment to append to, or a new segment's name."""
    segment = min(index.rows, key=lambda name: index.rows[name], default=None)
    if segment is None or index.rows[segment] >= _ROWS_MAX // 2:
        return _free_name(name, index), [], {}
    return segment, [_read_segment(place, segment)], dict(index.segments[segment])


def _free_name(name: str, index: _Index) -> str:
    number = len(index.segments)
    while f"{name}-1-{number}.parquet" in index.segments:
        number += 1
    return f"{name}-1-{number}.parquet"


class _Missing(Exception):
    """Raised if a segment listed in the index is missing or damaged."""


def _read_segment(place: Place, segment: str) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = place.load(segment)
    try:
        if data is None:
            raise _Missing(segment)
        check_parquet(Path(segment), data)
        return pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
    except (StoreError, pa.ArrowException, OSError) as error:
        raise _Missing(segment) from error


def _write(
    place: Place, index: _Index, segment: str, table: pa.Table, runs: Mapping[str, str]
) -> None:
    import pyarrow.parquet as pq

    if not runs:
        place.discard(segment)
        index.segments.pop(segment, None)
        index.rows.pop(segment, None)
        return
    sink = io.BytesIO()
    sealed = table.replace_schema_metadata({PARQUET_KEY: NO_DIGEST})
    pq.write_table(sealed, sink, compression="zstd", compression_level=1)
    place.save(segment, seal_parquet(sink.getvalue()))
    index.segments[segment] = dict(runs)
    index.rows[segment] = table.num_rows


def discard_tables(place: Place) -> None:
    """Remove all segments and their indexes.

    Raises:
        StoreError: If a file cannot be removed.
    """
    for name in STEP_TABLES:
        _discard(place, name)


def _discard(place: Place, name: str) -> None:
    for segment in _Index.load(place, name).segments:
        place.discard(segment)
    place.discard(f"{name}-1.json")


def _tables(
    place: Place, name: TableName, runs: Sequence[str], progress: Progress
) -> Iterator[tuple[str, pa.Table | str]]:
    """Yield each run's verified table with the run name, or why the table is unreadable."""
    from writecliff.store.rundir import RunDirectory

    for number, run in enumerate(runs, 1):
        try:
            with place.as_folder(run) as folder:
                table = RunDirectory.open(folder).table(name)
            yield run, _named(table, run)
        except WritecliffError as error:
            yield run, str(error).replace(f"{place.path_of(run)}/", "")
        except FileNotFoundError:
            yield run, "it was deleted"
        progress(number, len(runs))


def _named(table: pa.Table, run: str) -> pa.Table:
    """Return the table with the run name as its first column."""
    import pyarrow as pa

    return table.add_column(0, "run", pa.repeat(pa.scalar(run), table.num_rows))


def _together(name: TableName, parts: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables; a column missing from a table is null in that table's rows."""
    import pyarrow as pa

    empty: Any = _named(SCHEMAS[name].empty_table(), "")
    try:
        return pa.concat_tables([empty, *parts], promote_options="permissive")
    except pa.ArrowException as error:
        raise StoreError(f"cannot merge the {name} of all runs: {error}") from error
