"""A writer that stores traces in parts, so that memory does not limit the trace length."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from writecliff.capture.trace import COLUMNS, METADATA_KEY, SCHEMA
from writecliff.output_files import open_part, part_of, remove_part
from writecliff.store.checksums import NO_DIGEST, PARQUET_KEY, seal_parquet_file
from writecliff.store.files import store_error, sync_folder

TEXT = pa.dictionary(pa.int32(), pa.string())
_ROWS_PER_GROUP = 1 << 17


def fields(more: Mapping[str, object]) -> pa.Schema:
    """Return the columns common to all traces, followed by the columns `more`."""
    all_columns: dict[str, Any] = {**COLUMNS, **more}
    types = {name: TEXT if kind == "string" else kind for name, kind in all_columns.items()}
    return pa.schema(list(types.items()))


def texts(indices: Any, words: Any) -> pa.DictionaryArray:
    """Return a text column, given as indices and words."""
    numbers = pa.array(np.asarray(indices, np.int32))
    return pa.DictionaryArray.from_arrays(numbers, pa.array(words, pa.string()))


def _encodings(schema: pa.Schema) -> dict[str, object]:
    """Return the column encodings: dictionaries for words, and differences for numbers.

    For numbers, differences take a quarter of the time and half the space of dictionaries.
    """
    words = [field.name for field in schema if field.type == TEXT]
    numbers = [field.name for field in schema if field.type in (pa.int32(), pa.int64())]
    encoding = dict.fromkeys(numbers, "DELTA_BINARY_PACKED")
    return {
        "use_dictionary": words,
        "column_encoding": encoding,
        "compression": "zstd",
        "write_statistics": ["time_ns"],
    }


class TraceFile:
    """A trace file being written, which is renamed to its final name upon completion."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        """Start a trace.

        Raises:
            StoreError: If the file cannot be created.
            ConfigError: `path` is a device.
        """
        self.rows = 0
        self._path = path
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        try:
            self._part = part_of(path)
            # pyarrow would interpret some paths as URIs.
            self._file = os.fdopen(open_part(self._part), "wb")
            self._writer = pq.ParquetWriter(self._file, schema, **_encodings(schema))
        except OSError as error:
            raise store_error(error, path) from error

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows in time order.

        Raises:
            StoreError: If the disk is full.
        """
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

    def _close(self) -> None:
        try:
            self._writer.close()
        finally:
            self._file.close()

    def finish(self, metadata: Mapping[str, Any]) -> None:
        """Complete the trace file.

        Raises:
            StoreError: If the file cannot be written.
        """
        body = {"schema": SCHEMA, **metadata}
        try:
            self._flush()
            self._writer.add_key_value_metadata(
                {METADATA_KEY: json.dumps(body).encode(), PARQUET_KEY: NO_DIGEST}
            )
            self._close()
            seal_parquet_file(self._part)
            os.replace(self._part, self._path)
            sync_folder(self._path.parent)
        except OSError as error:
            raise store_error(error, self._path) from error

    def abandon(self) -> None:
        """Remove the incomplete trace file."""
        try:
            self._close()
        finally:
            remove_part(self._part)
