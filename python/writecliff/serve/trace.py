"""The block trace of a served drive, in the format of captured traces: what replays read.

The drive is one file, which exists before the trace begins, so that repeated rounds overwrite its
addresses. A request's `thread` is its stream, by which rules tell writes apart. Two more columns
are for other readers: `stream`, the stream or placement identifier, and `session`, a number for
each connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from writecliff.capture.trace import BLOCK, STREAM_THREAD
from writecliff.capture.trace_file import TraceFile, fields, texts

TRACE_NAME = "trace.parquet"
PATH, PROCESS = "drive", "clients"
_OPS = ("read", "write", "punch", "fsync")  # by the numbers of `take_trace`
_FLUSH = 3
_FIELDS = fields({"stream": pa.int32(), "session": pa.int64()})


class TraceWriter:
    """Writes requests as they come; the file has its name when it is whole."""

    def __init__(self, path: Path) -> None:
        """Begin a trace. Raises StoreError."""
        self.lost = 0
        self._file = TraceFile(path, _FIELDS)

    @property
    def rows(self) -> int:
        return self._file.rows

    def add(self, taken: Mapping[str, Any]) -> None:
        """Add what `DriveServer.take_trace` gave. Raises StoreError (full disk)."""
        self.lost += taken["lost"]
        self._file.add(_batch(taken))

    def finish(self, metadata: Mapping[str, Any]) -> None:
        """Complete the file. Raises StoreError."""
        self._file.finish({"level": BLOCK, **metadata, "lost_requests": self.lost})

    def abandon(self) -> None:
        """Remove what there is of the file."""
        self._file.abandon()


def _batch(taken: Mapping[str, Any]) -> pa.RecordBatch:
    """The columns of a trace. Requests without data do nothing, and a trace does not have them."""
    kept = (taken["length_bytes"] > 0) | (taken["operation"] == _FLUSH)
    whole = {name: values[kept] for name, values in taken.items() if name != "lost"}
    rows = len(whole["time_ns"])
    numbers, streams = np.unique(whole["stream"], return_inverse=True)
    columns = {
        "time_ns": whole["time_ns"].astype(np.int64),
        "op": texts(whole["operation"], _OPS),
        "file": np.zeros(rows, np.int32),
        "path": texts(np.zeros(rows), (PATH,)),
        "offset_bytes": whole["offset_bytes"].astype(np.int64),
        "length_bytes": whole["length_bytes"].astype(np.int64),
        "thread": texts(streams, [f"{STREAM_THREAD}{number}" for number in numbers]),
        "process": texts(np.zeros(rows), (PROCESS,)),
        "hint": pa.nulls(rows, pa.int8()),
        "stream": whole["stream"].astype(np.int32),
        "session": whole["session"].astype(np.int64),
    }
    return pa.record_batch([pa.array(values) for values in columns.values()], schema=_FIELDS)
