"""The trace file: Parquet, schema "writecliff/trace/1". Owns its columns and what must hold in it.

time_ns       int64   since the capture began, monotonic
op            string  one of `OPS`
file          int32   number of the file object: renaming keeps it, a new file of an old name gets
                      another
path          string  current path (the new one of a rename), relative to the root where below it
offset_bytes  int64   write, read, punch: where; truncate: the new size; hint: what was asked for
length_bytes  int64   write, read, punch: how much; hint: 0 if the kernel took it, else its errno
thread        string  thread name, as the kernel has it (15 bytes)
process       string  process name
hint          int8    write-lifetime hint that the program gave the file, null before it gave one

Hints are numbered as `RWH_WRITE_LIFE_*` (fcntl(2)): 0 not set, 1 none, 2 short, 3 medium, 4 long,
5 extreme. The column has what the program asked for, also where the kernel refused it; the
metadata count both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.errors import WritecliffError

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "writecliff/trace/1"
METADATA_KEY = b"writecliff"
OPS = ("write", "read", "fsync", "create", "truncate", "unlink", "rename", "punch", "hint")
COLUMNS = {
    "time_ns": "int64",
    "op": "string",
    "file": "int32",
    "path": "string",
    "offset_bytes": "int64",
    "length_bytes": "int64",
    "thread": "string",
    "process": "string",
    "hint": "int8",
}
_TEXTS = tuple(name for name, kind in COLUMNS.items() if kind == "string")
_ROWS_PER_GROUP = 1 << 20


class TraceError(WritecliffError):
    """A file that is no trace, or a trace that cannot be right."""

    exit_code = 2


@dataclass(frozen=True)
class Trace:
    """A trace in memory; the columns of text are dictionaries."""

    table: pa.Table
    metadata: dict[str, Any]

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)


def write_trace(path: Path, table: pa.Table, metadata: Mapping[str, Any]) -> None:
    """Write a trace as a whole or not at all.

    `table` has the columns of `COLUMNS`; text may be plain or a dictionary. Raises TraceError if
    it is no valid trace, StoreError if it cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from writecliff.store.files import write_atomically

    table = _typed(table, str(path))
    _check(table, str(path))
    body = json.dumps({"schema": SCHEMA, **metadata}, ensure_ascii=False)
    table = table.replace_schema_metadata({METADATA_KEY: body.encode()})
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression="zstd",
        use_dictionary=list(_TEXTS),
        row_group_size=_ROWS_PER_GROUP,
    )
    write_atomically(path, sink.getvalue().to_pybytes())


def read_trace(path: Path) -> Trace:
    """Read and check a trace. Raises TraceError with the file's name, and the row where there is
    one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise TraceError(f"{path}: no such trace", hint="`writecliff capture` makes one")
    try:
        # pyarrow takes a path such as tr:1.parquet for a URI.
        with path.open("rb") as raw, pq.ParquetFile(raw, read_dictionary=list(_TEXTS)) as file:
            metadata = _metadata(path, file.schema_arrow.metadata)
            table = file.read()
    except pa.ArrowInvalid as error:
        raise TraceError(f"{path}: not a Parquet file: {_one_line(error)}") from None
    table = _typed(table, str(path))
    _check(table, str(path))
    return Trace(table, metadata)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _metadata(path: Path, found: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    body = (found or {}).get(METADATA_KEY)
    if body is None:
        raise TraceError(
            f"{path}: no trace of writecliff: its metadata lack '{METADATA_KEY.decode()}'",
            hint="`writecliff capture` makes traces",
        )
    try:
        metadata = json.loads(body)
    except ValueError:
        raise TraceError(f"{path}: its metadata are not JSON") from None
    schema = metadata.get("schema") if isinstance(metadata, dict) else None
    if schema != SCHEMA:
        raise TraceError(f"{path}: schema is {schema!r}, not '{SCHEMA}'")
    return dict(metadata)


def _typed(table: pa.Table, where: str) -> pa.Table:
    """The columns of the schema in its order, text as dictionaries of one numbering each."""
    import pyarrow as pa

    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        raise TraceError(
            f"{where}: column '{missing[0]}' is missing", hint=f"columns: {', '.join(COLUMNS)}"
        )
    columns = []
    for name, kind in COLUMNS.items():
        column = table.column(name)
        try:
            columns.append(_as_dictionary(column) if kind == "string" else column.cast(kind))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TraceError(f"{where}: column '{name}' is no {kind}: {_one_line(error)}") from None
    return pa.table(columns, names=list(COLUMNS))


def _as_dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    import pyarrow as pa

    kind = pa.dictionary(pa.int32(), pa.string())
    column = column.cast(kind) if pa.types.is_dictionary(column.type) else column.cast(pa.string())
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    combined = column.unify_dictionaries().combine_chunks()
    if isinstance(combined, pa.ChunkedArray):  # an empty column stays chunked
        return pa.array([], type=kind) if len(combined) == 0 else combined.chunk(0)
    return combined


def _check(table: pa.Table, where: str) -> None:
    """What every reader may rely on. Raises TraceError with the first row that breaks it."""
    import numpy as np

    for name in COLUMNS:
        if name != "hint" and table.column(name).null_count:
            raise TraceError(f"{where}: column '{name}' has empty values")
    whole = {name: table.column(name) for name in COLUMNS if name not in _TEXTS}
    whole["hint"] = whole["hint"].fill_null(0)
    number = {name: column.to_numpy() for name, column in whole.items()}
    ops = table.column("op").combine_chunks()
    ops = ops.chunk(0) if hasattr(ops, "chunks") and ops.num_chunks else ops
    known = [str(name) for name in ops.dictionary.to_pylist()] if table.num_rows else []
    unknown = [name for name in known if name not in OPS]
    if unknown:
        raise TraceError(
            f"{where}: unknown operation '{unknown[0]}'", hint=f"known are: {', '.join(OPS)}"
        )
    op = ops.indices.to_numpy() if table.num_rows else np.zeros(0, np.int32)
    moves = np.array([name in ("write", "read", "punch") for name in known], bool)[op]
    hint, time_ns = number["hint"], number["time_ns"]
    back = time_ns[1:] < time_ns[:-1]
    broken = (
        ("time_ns goes back", np.concatenate(([time_ns[:1].min(initial=0) < 0], back))),
        ("file is negative", number["file"] < 0),
        ("offset_bytes is negative", number["offset_bytes"] < 0),
        ("length_bytes is negative", number["length_bytes"] < 0),
        ("nothing is written, read or punched", moves & (number["length_bytes"] == 0)),
        ("hint is none of 0 to 5", (hint < 0) | (hint > 5)),
    )
    for what, rows in broken:
        if rows.any():
            raise TraceError(f"{where}: row {int(np.argmax(rows))}: {what}")
