"""Trace of a small log-structured merge store, for tests and for experiments with streams.

The native module generates the file operations (sizes only, no keys). This module adds names,
threads, and the timing of a program with a steady write rate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from writecliff import _native
from writecliff.native_errors import as_user_errors

if TYPE_CHECKING:
    import pyarrow as pa

RATE_BYTES_PER_S = 100e6
_OPS = ("write", "truncate", "unlink", "punch", "fsync", "create")
_THREADS = ("writer", "flush", "merge-1", "merge-2", "merge-3")
RULES = """\
name = "synthetic store"

[[rule]]
path = "*.log"
stream = 1
name = "log"

[[rule]]
thread = "flush"
stream = 2
name = "flush"

[[rule]]
thread = "merge-1"
stream = 3
name = "level 1"

[[rule]]
thread = "merge-2"
stream = 4
name = "level 2"

[[rule]]
thread = "merge-3"
stream = 5
name = "level 3"
"""
"""Rules that separate the store's kinds of data."""


def synthetic_table(
    *,
    table_bytes: int = 1 << 20,
    chunk_bytes: int = 64 << 10,
    logged_bytes: int = 256 << 20,
    seed: int = 1,
) -> pa.Table:
    """Return the trace of a key-value store that writes tables of `table_bytes` in chunks.

    Raises:
        ConfigError: If a size is out of range.
    """
    import pyarrow as pa

    with as_user_errors():
        raw = _native.synthetic_trace(table_bytes, chunk_bytes, logged_bytes, seed)
    op, file, length = raw["op"], raw["file"], raw["length_bytes"].astype(np.int64)
    # All writes to a file have the same origin. Creations and unlinks have no origin.
    origin_of = np.zeros(int(file.max()) + 1, np.int64)
    written = op == _OPS.index("write")
    origin_of[file[written]] = raw["origin"][written]
    origin = origin_of[file]
    time_ns = np.cumsum(np.where(written, length, 0)) / RATE_BYTES_PER_S * 1e9
    numbers, path_of_row = np.unique(file, return_inverse=True)
    suffixes = np.where(origin_of[numbers] == 0, ".log", ".tbl")
    paths = [f"{n:06d}{suffix}" for n, suffix in zip(numbers, suffixes, strict=True)]
    rows = len(op)

    def words(codes: np.ndarray, names: tuple[str, ...] | list[str]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), list(names))

    return pa.table(
        {
            "time_ns": time_ns.astype(np.int64),
            "op": words(op, _OPS),
            "file": file.astype(np.int32),
            "path": words(path_of_row.reshape(-1), paths),
            "offset_bytes": raw["offset_bytes"].astype(np.int64),
            "length_bytes": length,
            "thread": words(origin, _THREADS),
            "process": words(np.zeros(rows), ["store"]),
            "hint": pa.nulls(rows, pa.int8()),
        }
    )
