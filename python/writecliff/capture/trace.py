"""The format of trace files: columns and constraints of the schema "writecliff/trace/1".

time_ns       int64   since the start of the capture, monotonic
op            string  one of `OPS`
file          int32   number of the file object; a renamed file retains its number, and a new
                      file always gets a new number
path          string  current path (after a rename, the new path), relative to the root if below it
offset_bytes  int64   write, read, punch: offset; truncate: the new size; hint: the requested hint
length_bytes  int64   write, read, punch: length; hint: 0 if the kernel accepted it, else its errno
thread        string  thread name in the kernel (15 bytes)
process       string  process name
hint          int8    write-lifetime hint that the program set for the file, null before the first

A block device trace has additional columns (`BLOCK_COLUMNS`):

issue_ns      int64   time at which the driver received the request; null if unknown
complete_ns   int64   completion time; null if the request was outstanding when the capture stopped
flags         string  request flags, as words: sync fua preflush readahead
                      metadata zeroes erase atomic
pid           int32   process that issued the request
errno         int16   error reported by the drive; 0 if there was none

Hints are numbered as `RWH_WRITE_LIFE_*` (fcntl(2)): 0 not set, 1 none, 2 short, 3 medium, 4 long, 5
extreme. The hint column contains the hint that the program requested, even if the kernel rejected
the hint. The metadata contain the number of requested and rejected hints.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from writecliff.errors import WritecliffError, encoded
from writecliff.store.files import write_atomically

SCHEMA = "writecliff/trace/1"
METADATA_KEY = b"writecliff"
BLOCK = "block"
"""Value of "level" in the metadata of a trace that was recorded at a drive."""
OPS = ("write", "read", "fsync", "create", "truncate", "unlink", "rename", "punch", "hint")
COLUMNS = {
    "time_ns": "int64", "op": "string", "file": "int32", "path": "string",
    "offset_bytes": "int64", "length_bytes": "int64", "thread": "string", "process": "string",
    "hint": "int8",
}  # fmt: skip
BLOCK_COLUMNS = {
    "issue_ns": "int64", "complete_ns": "int64", "flags": "string", "pid": "int32",
    "errno": "int16",
}  # fmt: skip
"""Additional columns of a trace of a block device; traces of served drives have others."""
_TEXTS = tuple(name for name, kind in COLUMNS.items() if kind == "string")
_ROWS_PER_GROUP = 1 << 20
# Maximum byte count or time in ns, so that the sum of two values fits in 64 bits.
NUMBER_MAX = 1 << 62
FILES_MAX = 50_000_000  # Maximum file number; reading a trace uses 8 bytes per file number.


STREAM_THREAD = "stream "
"""Start of the `thread` of a request to a drive; the stream or placement identifier follows."""


class TraceError(WritecliffError):
    """Error raised for an invalid trace, or for a file that is not a trace."""

    exit_code = 2


@dataclass(frozen=True)
class Trace:
    """A trace in memory, with dictionary-encoded text columns."""

    table: pa.Table
    metadata: dict[str, Any]
    requests: pa.Table | None = None
    """`BLOCK_COLUMNS` of these rows, if the trace has them."""

    @property
    def rows(self) -> int:
        """Number of rows in the trace."""
        return int(self.table.num_rows)

    @property
    def is_block(self) -> bool:
        """`True` if the trace was recorded at a drive, below the page cache and file system."""
        return self.metadata.get("level") == BLOCK


def write_trace(path: Path, table: pa.Table, metadata: Mapping[str, object]) -> None:
    """Write a trace atomically.

    `table` must have the columns in `COLUMNS`, with plain or dictionary-encoded text columns.

    Raises:
        TraceError: If the table is not a valid trace.
        StoreError: If the file cannot be written.
    """
    table = _typed(table, str(path))
    _check(table, str(path))
    body = json.dumps({"schema": SCHEMA, **metadata}, ensure_ascii=False)
    table = table.replace_schema_metadata({METADATA_KEY: encoded(body)})
    sink = pa.BufferOutputStream()
    options = {"compression": "zstd", "row_group_size": _ROWS_PER_GROUP}
    pq.write_table(table, sink, use_dictionary=list(_TEXTS), **options)
    write_atomically(path, sink.getvalue().to_pybytes())


def read_trace(path: Path) -> Trace:
    """Read and validate a trace.

    Raises:
        TraceError: If the file is not a valid trace. The message names the file, and the row if
            possible.
    """
    if not path.is_file():
        raise TraceError(
            f"the trace {path} does not exist", hint="create a trace with `writecliff capture`"
        )
    try:
        # pyarrow would parse a path such as tr:1.parquet as a URI.
        with path.open("rb") as raw:
            # The metadata are checked before the columns. If a column is missing after that check,
            # the code raises KeyError.
            metadata = _metadata(path, pq.read_metadata(raw).metadata)
            raw.seek(0)
            with pq.ParquetFile(raw, read_dictionary=list(_TEXTS)) as file:
                table = file.read()
        _check_bytes(table, path)
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError):
        raise TraceError(
            f"{path} is not a trace: it is not a Parquet file",
            hint="create traces with `writecliff capture`",
        ) from None
    except KeyError as error:
        raise TraceError(
            f"{path}: column '{_column_name(error)}' is missing",
            hint=f"columns: {', '.join(COLUMNS)}",
        ) from None
    requests = None
    if set(BLOCK_COLUMNS) <= set(table.column_names):
        requests = _typed(table, str(path), BLOCK_COLUMNS)
    table = _typed(table, str(path))
    _check(table, str(path))
    return Trace(table, metadata, requests)


def _check_bytes(table: pa.Table, path: Path) -> None:
    """Check text encodings and code ranges, which reading does not check."""
    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        raise TraceError(f"{path} is damaged: {_one_line(error)}") from None


def _column_name(error: KeyError) -> str:
    name = error.args[0]
    return name.decode() if isinstance(name, bytes) else str(name)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _metadata(path: Path, stored: Mapping[bytes, bytes] | None) -> dict[str, object]:
    body = (stored or {}).get(METADATA_KEY)
    if body is None:
        raise TraceError(
            f"{path} is not a trace: its metadata do not contain '{METADATA_KEY.decode()}'",
            hint="create traces with `writecliff capture`",
        )
    try:
        metadata = json.loads(body)
    except (ValueError, RecursionError):
        raise TraceError(f"{path}: the metadata are not JSON") from None
    schema = metadata.get("schema") if isinstance(metadata, dict) else None
    if schema != SCHEMA:
        raise TraceError(f"{path}: schema is {schema!r}, not '{SCHEMA}'")
    return dict(metadata)


def _typed(table: pa.Table, where: str, wanted: Mapping[str, str] = COLUMNS) -> pa.Table:
    """Return the schema's columns in order, with text columns as dictionary arrays."""
    if len(set(table.column_names)) < table.num_columns:
        raise TraceError(f"{where}: two columns have the same name")
    missing = [name for name in wanted if name not in table.column_names]
    if missing:
        raise TraceError(
            f"{where}: column '{missing[0]}' is missing", hint=f"columns: {', '.join(wanted)}"
        )
    columns = []
    for name, kind in wanted.items():
        column = table.column(name)
        try:
            columns.append(_as_dictionary(column) if kind == "string" else column.cast(kind))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TraceError(
                f"{where}: column '{name}' is not {kind}: {_one_line(error)}"
            ) from None
    return pa.table(columns, names=list(wanted))


def _as_dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    kind = pa.dictionary(pa.int32(), pa.string())
    column = column.cast(kind) if pa.types.is_dictionary(column.type) else column.cast(pa.string())
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    combined = column.unify_dictionaries().combine_chunks()
    if isinstance(combined, pa.ChunkedArray):  # An empty column remains chunked.
        return pa.array([], type=kind) if len(combined) == 0 else combined.chunk(0)
    return combined


def codes(table: pa.Table, name: str) -> tuple[NDArray[np.int32], list[str]]:
    """Return a text column as indices and the words that the indices refer to."""
    column = _as_dictionary(table.column(name))
    words = [str(word) for word in column.dictionary.to_pylist()]
    return np.ascontiguousarray(column.indices.to_numpy(), np.int32), words


def _check(table: pa.Table, where: str) -> None:
    """Check the columns against the format's constraints.

    Raises:
        TraceError: If a row violates a constraint. The message names the first such row.
    """
    for name in COLUMNS:
        if name != "hint" and table.column(name).null_count:
            raise TraceError(f"{where}: column '{name}' contains null values")
    whole = {name: table.column(name) for name in COLUMNS if name not in _TEXTS}
    whole["hint"] = whole["hint"].fill_null(0)
    number = {name: column.to_numpy() for name, column in whole.items()}
    op, words = codes(table, "op")
    unknown = [name for name in words if name not in OPS]
    if unknown:
        raise TraceError.unknown("operation", unknown[0], OPS, where=where)
    moves = np.array([name in ("write", "read", "punch") for name in words], bool)[op]
    hint, time_ns = number["hint"], number["time_ns"]
    back = time_ns[1:] < time_ns[:-1]
    broken = (
        ("time_ns decreases", np.concatenate(([time_ns[:1].min(initial=0) < 0], back))),
        ("time_ns is above 2^62", time_ns > NUMBER_MAX),
        ("file is negative", number["file"] < 0),
        # These arrays contain the files' data, indexed by file number.
        (f"file is above {FILES_MAX:,}", number["file"] > FILES_MAX),
        ("offset_bytes is negative", number["offset_bytes"] < 0),
        ("length_bytes is negative", number["length_bytes"] < 0),
        ("offset_bytes is above 2^61", number["offset_bytes"] > NUMBER_MAX // 2),
        ("length_bytes is above 2^61", number["length_bytes"] > NUMBER_MAX // 2),
        ("write, read or punch of zero bytes", moves & (number["length_bytes"] == 0)),
        ("hint is not 0 to 5", (hint < 0) | (hint > 5)),
    )
    for what, rows in broken:
        if rows.any():
            raise TraceError(f"{where}: row {int(np.argmax(rows))}: {what}")
