"""The block trace of a served drive, in the format of captured traces: what replays read.

The drive is one file, which exists before the trace begins, so that repeated rounds overwrite its
addresses. A request's `thread` is its stream, by which rules tell writes apart. Two more columns
are for other readers: `stream`, the stream or placement identifier, and `session`, a number for
each connection.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from writecliff.capture.trace import BLOCK, COLUMNS, METADATA_KEY, SCHEMA, STREAM_THREAD
from writecliff.store.checksums import NO_DIGEST, PARQUET_KEY, seal_parquet_file
from writecliff.store.files import TEMPORARY_SUFFIX, store_error, sync_folder

TRACE_NAME = "trace.parquet"
PATH, PROCESS = "drive", "clients"
_OPS = ("read", "write", "punch", "fsync")  # by the numbers of `take_trace`
_FLUSH = 3
_TEXT = pa.dictionary(pa.int32(), pa.string())
_FIELDS = pa.schema(
    [
        *((name, _TEXT if kind == "string" else kind) for name, kind in COLUMNS.items()),
        ("stream", pa.int32()),
        ("session", pa.int64()),
    ]
)
_ROWS_PER_GROUP = 1 << 17


class TraceWriter:
    """Writes requests as they come; the file has its name when it is whole."""

    def __init__(self, path: Path) -> None:
        """Begin a trace. Raises StoreError."""
        self.rows = 0
        self.lost = 0
        self._path = path
        self._part = path.with_name(path.name + TEMPORARY_SUFFIX)
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        try:
            self._writer = pq.ParquetWriter(self._part, _FIELDS, compression="zstd")
        except OSError as error:
            raise store_error(error, path) from error

    def add(self, taken: Mapping[str, Any]) -> None:
        """Add what `DriveServer.take_trace` gave. Raises StoreError (full disk)."""
        self.lost += taken["lost"]
        batch = _batch(taken)
        if not batch.num_rows:
            return
        self.rows += batch.num_rows
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        if self._waiting_rows >= _ROWS_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting).unify_dictionaries()
        self._waiting, self._waiting_rows = [], 0
        try:
            self._writer.write_table(table, row_group_size=_ROWS_PER_GROUP)
        except OSError as error:
            raise store_error(error, self._path) from error

    def finish(self, metadata: Mapping[str, Any]) -> None:
        """Complete the file. Raises StoreError."""
        body = {"schema": SCHEMA, "level": BLOCK, **metadata, "lost_requests": self.lost}
        try:
            self._flush()
            self._writer.add_key_value_metadata(
                {METADATA_KEY: json.dumps(body).encode(), PARQUET_KEY: NO_DIGEST}
            )
            self._writer.close()
            seal_parquet_file(self._part)
            os.replace(self._part, self._path)
            sync_folder(self._path.parent)
        except OSError as error:
            raise store_error(error, self._path) from error

    def abandon(self) -> None:
        """Remove what there is of the file."""
        try:
            self._writer.close()
        finally:
            self._part.unlink(missing_ok=True)


def _batch(taken: Mapping[str, Any]) -> pa.RecordBatch:
    """The columns of a trace. Requests without data do nothing, and a trace does not have them."""
    kept = (taken["length_bytes"] > 0) | (taken["operation"] == _FLUSH)
    whole = {name: values[kept] for name, values in taken.items() if name != "lost"}
    rows = len(whole["time_ns"])
    numbers, streams = np.unique(whole["stream"], return_inverse=True)
    columns = {
        "time_ns": whole["time_ns"].astype(np.int64),
        "op": _texts(whole["operation"], _OPS),
        "file": np.zeros(rows, np.int32),
        "path": _texts(np.zeros(rows, np.int32), (PATH,)),
        "offset_bytes": whole["offset_bytes"].astype(np.int64),
        "length_bytes": whole["length_bytes"].astype(np.int64),
        "thread": _texts(streams, [f"{STREAM_THREAD}{number}" for number in numbers]),
        "process": _texts(np.zeros(rows, np.int32), (PROCESS,)),
        "hint": pa.nulls(rows, pa.int8()),
        "stream": whole["stream"].astype(np.int32),
        "session": whole["session"].astype(np.int64),
    }
    return pa.record_batch([pa.array(values) for values in columns.values()], schema=_FIELDS)


def _texts(indices: Any, words: Any) -> pa.DictionaryArray:
    numbers = pa.array(indices.astype(np.int32))
    return pa.DictionaryArray.from_arrays(numbers, pa.array(words, pa.string()))
