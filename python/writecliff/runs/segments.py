"""The tables `rounds`, `intervals` and `histograms` of all runs, copied together for SQL.

Thousands of small files take seconds to open and to verify. A table is therefore copied, when a
query first names it, into few files of the catalogue ("segments"), with the name of the run before
its columns, and from then on only what is new. A list beside them says which runs a segment holds
and from which state. Runs that go on are read afresh each time. As all of the catalogue, the copies
can be deleted at any time.
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

_ROWS_MAX = 500_000  # of a segment: what is read and written again when one of its runs changes
_WANTED = f"select run, {DIGEST}, {UNENDED} from catalogue where status <> 'damaged' order by run"


@dataclass
class _Listed:
    """The list of a table: runs by segment, each with the digest of its manifest; and runs whose
    table cannot be read, with digest and reason.
    """

    segments: dict[str, dict[str, str]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)  # of each segment
    unreadable: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def load(cls, place: Place, name: str) -> _Listed:
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
    """Add the view `name` to `database`, which has that of the catalogue; sentences about runs that
    are not in it. `stack` closes the files of the view. Raises StoreError.
    """
    table: TableName = name  # type: ignore[assignment]
    place = catalogue.place
    wanted = {run: (digest, unended) for run, digest, unended in database.rows(_WANTED)[1]}
    ended = {run: digest for run, (digest, unended) in wanted.items() if not unended}
    going_on = [run for run, (_, unended) in wanted.items() if unended]
    try:
        with place.saving() if wanted else nullcontext():
            listed = _kept(place, table, ended, database, stack, progress)
    except StoreError:  # a store that is read only
        listed, going_on = _Listed(), list(wanted)
    notes = [f"{run} is left out of {name}: {why}" for run, (_, why) in listed.unreadable.items()]
    parts = []
    for run, found in _tables(place, table, going_on, unseen if listed.segments else progress):
        if isinstance(found, str):
            notes.append(f"{run} is left out of {name}: {found}")
        else:
            parts.append(found)
    database.add_table(f"{name}_going_on", _together(table, parts))
    both = f"select * from {name}_ended union all by name select * from {name}_going_on"
    database.add_view(name, both if listed.segments else f"select * from {name}_going_on")
    return notes


def _kept(
    place: Place,
    name: TableName,
    wanted: Mapping[str, str],
    database: Views,
    stack: ExitStack,
    progress: Progress,
) -> _Listed:
    """Bring the segments up to date and add them as a view; their list."""
    try:
        listed = _updated(place, name, wanted, progress)
        _open(place, name, listed, database, stack)
    except _Missing:  # somebody has deleted a part of the catalogue
        _discard(place, name)
        listed = _updated(place, name, wanted, progress)
        _open(place, name, listed, database, stack)
    return listed


def _open(
    place: Place, name: TableName, listed: _Listed, database: Views, stack: ExitStack
) -> None:
    """Add the segments as a view: as files, which a query reads in parts, where that is possible.
    Raises _Missing.
    """
    if not listed.segments:
        return
    paths = [path for one in listed.segments if (path := place.saved(one)) is not None]
    if not paths:
        parts = [_read_segment(place, segment) for segment in listed.segments]
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
) -> _Listed:
    """Bring the segments up to date with the runs that are `wanted`; their list."""
    listed = _Listed.load(place, name)
    changed = _drop_stale(place, name, listed, wanted)
    have = {run for runs in listed.segments.values() for run in runs} | listed.unreadable.keys()
    new = [run for run in wanted if run not in have]
    if new:
        _append(place, name, listed, new, wanted, progress)
    if new or changed:
        listed.save(place, name)
    return listed


def _drop_stale(place: Place, name: TableName, listed: _Listed, wanted: Mapping[str, str]) -> bool:
    """Take runs that are gone or have changed out of their segments; whether there were any."""
    import pyarrow as pa
    import pyarrow.compute as pc

    changed = False
    for run, (digest, _) in list(listed.unreadable.items()):
        if wanted.get(run) != digest:
            del listed.unreadable[run]
            changed = True
    for segment, runs in list(listed.segments.items()):
        kept = {run: digest for run, digest in runs.items() if wanted.get(run) == digest}
        if len(kept) == len(runs):
            continue
        changed = True
        table = _read_segment(place, segment)
        names = pa.array(list(kept), pa.string())
        _write(place, listed, segment, table.filter(pc.is_in(table["run"], names)), kept)
    return changed


def _append(
    place: Place,
    name: TableName,
    listed: _Listed,
    new: Sequence[str],
    wanted: Mapping[str, str],
    progress: Progress,
) -> None:
    """Add runs to the smallest segment, and to further ones."""
    segment, parts, runs = _smallest(place, name, listed)
    rows = sum(part.num_rows for part in parts)
    for run, found in _tables(place, name, new, progress):
        if isinstance(found, str):
            listed.unreadable[run] = [wanted[run], found]
            continue
        parts.append(found)
        runs[run] = wanted[run]
        rows += found.num_rows
        if rows >= _ROWS_MAX:
            _write(place, listed, segment, _together(name, parts), runs)
            segment, parts, runs, rows = _free_name(name, listed), [], {}, 0
    if runs:
        _write(place, listed, segment, _together(name, parts), runs)


def _smallest(
    place: Place, name: TableName, listed: _Listed
) -> tuple[str, list[pa.Table], dict[str, str]]:
    """The segment to add to, with what it holds; a new one if all are large."""
    segment = min(listed.rows, key=lambda one: listed.rows[one], default=None)
    if segment is None or listed.rows[segment] >= _ROWS_MAX // 2:
        return _free_name(name, listed), [], {}
    return segment, [_read_segment(place, segment)], dict(listed.segments[segment])


def _free_name(name: str, listed: _Listed) -> str:
    number = len(listed.segments)
    while f"{name}-1-{number}.parquet" in listed.segments:
        number += 1
    return f"{name}-1-{number}.parquet"


class _Missing(Exception):
    """A segment of the list is not there, or damaged."""


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
    place: Place, listed: _Listed, segment: str, table: pa.Table, runs: Mapping[str, str]
) -> None:
    import pyarrow.parquet as pq

    if not runs:
        place.discard(segment)
        listed.segments.pop(segment, None)
        listed.rows.pop(segment, None)
        return
    sink = io.BytesIO()
    sealed = table.replace_schema_metadata({PARQUET_KEY: NO_DIGEST})
    pq.write_table(sealed, sink, compression="zstd", compression_level=1)
    place.save(segment, seal_parquet(sink.getvalue()))
    listed.segments[segment] = dict(runs)
    listed.rows[segment] = table.num_rows


def discard_tables(place: Place) -> None:
    """Remove all segments and their lists. Raises StoreError."""
    for name in STEP_TABLES:
        _discard(place, name)


def _discard(place: Place, name: str) -> None:
    for segment in _Listed.load(place, name).segments:
        place.discard(segment)
    place.discard(f"{name}-1.json")


def _tables(
    place: Place, name: TableName, runs: Sequence[str], progress: Progress
) -> Iterator[tuple[str, pa.Table | str]]:
    """The table of each run, verified, with its name; or why it cannot be read."""
    from writecliff.store.rundir import RunDirectory

    for number, run in enumerate(runs, 1):
        try:
            with place.as_folder(run) as folder:
                table = RunDirectory.open(folder).table(name)
            yield run, _named(table, run)
        except WritecliffError as error:
            yield run, str(error).replace(f"{place.path_of(run)}/", "")
        except FileNotFoundError:
            yield run, "it is gone"
        progress(number, len(runs))


def _named(table: pa.Table, run: str) -> pa.Table:
    """The table with the name of the run before its columns."""
    import pyarrow as pa

    return table.add_column(0, "run", pa.repeat(pa.scalar(run), table.num_rows))


def _together(name: TableName, parts: Sequence[pa.Table]) -> pa.Table:
    """Tables one after the other; a column that some lack is null there."""
    import pyarrow as pa

    empty: Any = _named(SCHEMAS[name].empty_table(), "")
    try:
        return pa.concat_tables([empty, *parts], promote_options="permissive")
    except pa.ArrowException as error:
        raise StoreError(f"the tables {name} do not fit together: {error}") from error
