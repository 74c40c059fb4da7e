"""Transfer a trace to the native module as columns of numbers, without copying if possible.

This module contains no loops over rows. Streams and labels are determined once for each class of
rows that have the same labels. Each write also has an origin, determined by thread and file type;
only the origins that write most are distinguished.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from writecliff import _native
from writecliff.capture.trace import codes
from writecliff.errors import ConfigError
from writecliff.native_errors import as_user_errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from writecliff.capture.rules import Rules

ORIGINS_MAX = 12
OTHERS = "others"
# Operation numbers in the native module. Operations that do not change data on a drive are omitted.
_NUMBERS = {"write": 0, "truncate": 1, "unlink": 2, "punch": 3, "fsync": 4, "create": 5}
_LEFT_OUT = 255
_REGION_BYTES = 64 << 20


@dataclass(frozen=True)
class FileIO:
    """A trace in the native module, with its totals."""

    native: _native.FileTrace  # Operations as native columns.
    rows: int  # Number of rows in the trace.
    duration_ns: int  # Time from the first row to the last row.
    origins: tuple[str, ...]  # Threads and file types, starting with the largest writer.
    rules: str | None  # Name of the rule set.
    streams: dict[int, str]  # Stream names by number; empty if there are no rules.
    left_out: int  # Number of rows that have no effect on a drive: reads, renames and hints.
    is_block: bool = False  # `True` if recorded at the drive, below the page cache and file system.


def file_io(table: pa.Table, rules: Rules | None = None, *, is_block: bool = False) -> FileIO:
    """Pass a trace to the native module.

    Args:
        table: The trace.
        rules: Rules that assign writes to streams, if any.
        is_block: `True` if the trace was recorded at a drive.

    Raises:
        ConfigError: If the trace has no writes, or is too large.
    """
    rows = table.num_rows
    if is_block:
        table = _by_region(table)
    op, words = codes(table, "op")
    ops = np.array([_NUMBERS.get(word, _LEFT_OUT) for word in words], np.uint8)
    counts = np.bincount(op, minlength=len(words))
    if "write" not in words or not counts[words.index("write")]:
        raise ConfigError("the trace contains no writes")
    labels = {name: codes(table, name) for name in ("path", "thread", "process")}
    hint = np.ascontiguousarray(table.column("hint").fill_null(-1).to_numpy(), np.int8)
    shown, size = (np.zeros(1), None) if rules is None else rules.size_classes(table)
    with as_user_errors():
        path, thread, process = (indices for indices, _ in labels.values())
        row_class, first = _native.row_classes(path, thread, process, hint, size)
    length = _column(table, "length_bytes")
    written = np.bincount(row_class, length * (op == words.index("write")), len(first))
    labels = {name: (indices[first], words) for name, (indices, words) in labels.items()}
    origin, names = _origins(labels, written)
    stream = np.zeros(len(first), np.uint16)
    if rules is not None:
        reached = np.zeros(1) if size is None else shown[size[first]]
        stream = rules.streams_of(labels, hint[first], reached)
    native = _native.FileTrace()
    file, offset = _column(table, "file"), _column(table, "offset_bytes")
    folder, time_ns = _folders(*labels["path"]), _column(table, "time_ns")
    with as_user_errors():
        native.add(op, file, offset, length, row_class, ops, stream, origin, folder, time_ns)
    return FileIO(
        native=native,
        rows=rows,
        duration_ns=int(time_ns[-1] - time_ns[0]),
        origins=names,
        rules=rules.name if rules is not None else None,
        streams=dict(rules.streams) if rules is not None else {},
        left_out=int(counts[ops == _LEFT_OUT].sum()),
        is_block=is_block,
    )


def _by_region(table: pa.Table) -> pa.Table:
    """Return a trace recorded at a drive, with each address region as a separate file.

    File blocks are tracked sequentially, which is slow for a file with millions of extents.
    """
    offset, length = _column(table, "offset_bytes"), _column(table, "length_bytes")
    first = offset // _REGION_BYTES
    pieces = (offset + np.maximum(length, 1) - 1) // _REGION_BYTES - first + 1
    row = np.repeat(np.arange(len(offset)), pieces)
    piece = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    region = first[row] + piece
    # The volumes in a trace use the same addresses for different data.
    of_volume = _column(table, "file")[row].astype(np.int64) << 40 | region
    _, numbers = np.unique(of_volume, return_inverse=True)
    begin = np.maximum(offset[row], region * _REGION_BYTES)
    end = np.minimum((offset + length)[row], (region + 1) * _REGION_BYTES)
    cut = table.take(pa.array(row))
    for name, values in (
        ("file", numbers.reshape(-1).astype(np.int32)),
        ("offset_bytes", begin),
        ("length_bytes", np.maximum(end - begin, 0)),
    ):
        cut = cut.set_column(cut.column_names.index(name), name, pa.array(values))
    return cut


def _column(table: pa.Table, name: str) -> NDArray[Any]:
    """Return a column of numbers, which is copied only if it consists of several chunks."""
    column = table.column(name)
    whole = column.chunk(0) if column.num_chunks == 1 else column
    values: NDArray[Any] = whole.to_numpy()
    return values


def _folders(paths: NDArray[np.int32], words: list[str]) -> NDArray[np.uint16]:
    """Return the folder number of each class, in order of first use."""
    numbers, _ = _merged([words[n].rpartition("/")[0] for n in paths])
    return (numbers % (1 << 16)).astype(np.uint16)


def _origins(
    labels: dict[str, tuple[NDArray[np.int32], list[str]]], written: NDArray[Any]
) -> tuple[NDArray[np.uint16], tuple[str, ...]]:
    """Return the origin of each row class, and the names of the origins, largest writer first."""
    (paths, path_words), (threads, thread_words) = labels["path"], labels["thread"]
    thread_class, thread_names = _merged([_thread_kind(word) for word in thread_words])
    path_class, path_names = _merged([_path_kind(word) for word in path_words])
    both = thread_class[threads] * len(path_names) + path_class[paths]
    volume = np.bincount(both, weights=written, minlength=len(thread_names) * len(path_names))
    writers = [int(n) for n in np.argsort(-volume, kind="stable") if volume[n] > 0]
    shown = writers if len(writers) <= ORIGINS_MAX else writers[: ORIGINS_MAX - 1]
    names = [
        f"{thread_names[n // len(path_names)]}: {path_names[n % len(path_names)]}" for n in shown
    ]
    origin_of = np.full(len(volume), len(shown), np.uint16)
    origin_of[shown] = np.arange(len(shown), dtype=np.uint16)
    origin = origin_of[both]
    if len(shown) < len(writers):
        names.append(OTHERS)
    else:
        origin[origin == len(shown)] = 0  # Rows that are not writes.
    return origin, tuple(names)


def _merged(words: list[str]) -> tuple[NDArray[np.int64], list[str]]:
    """Return a number for each word, equal for equal words, and the list of distinct words."""
    names = list(dict.fromkeys(words))
    number = {name: index for index, name in enumerate(names)}
    return np.array([number[word] for word in words], np.int64), names


def _thread_kind(name: str) -> str:
    """Return a thread's name without its thread pool number."""
    return re.sub(r"[-_:#.]?\d+$", "", name) or name


def _path_kind(path: str) -> str:
    """Return a file's type: a suffix that starts with a letter, otherwise the folder."""
    folder, _, name = path.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    if stem and suffix.isascii() and suffix.isalnum() and suffix[0].isalpha() and len(suffix) <= 10:
        return dot + suffix
    top = folder.strip("/").split("/")[0]
    return f"{top}/" if top else re.sub(r"[-_.]?\d+$", "", name) or name
