"""The trace of what was issued: rows in the form of a captured block device."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from writecliff.capture.trace import BLOCK, BLOCK_COLUMNS
from writecliff.capture.trace_file import TraceFile, fields, texts

_OPS = ("read", "write", "punch", "fsync")  # by the numbers of `_native.Issuer.done`
_PROCESS = "writecliff"
HORIZON_NS = 600 * 1_000_000_000  # after which no I/O is waited for: the replay has failed by then
_ROWS_WAITING = 1 << 20


class IssuedTrace:
    """A trace that is being written; rows are put in order of their times."""

    def __init__(self, path: Path, device: str) -> None:
        """Begin it. Raises StoreError."""
        self._schema = fields(BLOCK_COLUMNS)
        self._file = TraceFile(path, self._schema)
        self._device = device
        self._waiting: list[dict[str, Any]] = []  # completed, while an earlier one may be open
        self._rows = 0  # of them
        self._latest_ns = 0

    def add(self, done: Mapping[str, Any]) -> None:
        """Add I/Os, in the order in which they were completed. Raises StoreError."""
        rows = len(done["intended_ns"])
        if rows:
            self._waiting.append(dict(done))
            self._rows += rows
            self._latest_ns = max(self._latest_ns, int(done["intended_ns"].max()))
        if self._rows >= _ROWS_WAITING:
            self._write(self._latest_ns - HORIZON_NS)

    def finish(self, metadata: Mapping[str, Any]) -> None:
        """Write what was added and complete the file. Raises StoreError."""
        self._write(self._latest_ns)
        self._file.finish({"level": BLOCK, "device": self._device, **metadata})

    def _write(self, upto_ns: int) -> None:
        """Write the rows up to a time, in order; the others wait."""
        if not self._waiting:
            return
        names = self._waiting[0].keys()
        of = {name: np.concatenate([one[name] for one in self._waiting]) for name in names}
        order = np.argsort(of["intended_ns"], kind="stable")
        of = {name: values[order] for name, values in of.items()}
        end = int(np.searchsorted(of["intended_ns"], max(upto_ns, 0), side="right"))
        if upto_ns >= 0:
            self._file.add(self._batch({name: values[:end] for name, values in of.items()}))
        else:
            end = 0
        self._waiting = [{name: values[end:] for name, values in of.items()}]
        self._rows = len(order) - end

    def abandon(self) -> None:
        self._file.abandon()

    def _batch(self, of: Mapping[str, Any]) -> pa.RecordBatch:
        rows = len(of["intended_ns"])
        zeros = np.zeros(rows, np.int32)
        columns = {
            "time_ns": of["intended_ns"].astype(np.int64),
            "op": texts(of["operation"], _OPS),
            "file": zeros,
            "path": texts(zeros, (self._device,)),
            "offset_bytes": of["offset_bytes"].astype(np.int64),
            "length_bytes": of["length_bytes"].astype(np.int64),
            "thread": texts(zeros, (_PROCESS,)),
            "process": texts(zeros, (_PROCESS,)),
            "hint": pa.nulls(rows, pa.int8()),
            "issue_ns": of["issue_ns"].astype(np.int64),
            "complete_ns": of["complete_ns"].astype(np.int64),
            "flags": texts(zeros, ("",)),
            "pid": zeros,
            "errno": np.where(of["result"] < 0, -of["result"], 0).astype(np.int32),
        }
        arrays = [pa.array(columns[field.name]).cast(field.type) for field in self._schema]
        return pa.record_batch(arrays, schema=self._schema)
