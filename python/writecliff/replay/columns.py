"""A trace as columns of numbers, handed over the seam in batches. Nothing here loops over rows.

Also says of each write where it comes from: by thread and kind of file, a few classes, those that
write most.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from writecliff import _native
from writecliff.errors import ConfigError
from writecliff.native_errors import as_user_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from writecliff.capture.rules import Rules

BATCH_ROWS = 1 << 20
ORIGINS_MAX = 12
OTHERS = "others"
# Numbers of the native module; operations that do not change what lies on a drive are left out.
_NUMBERS = {"write": 0, "truncate": 1, "unlink": 2, "punch": 3, "fsync": 4, "create": 5}
_LEFT_OUT = 255


@dataclass(frozen=True)
class FileIO:
    """A trace on the native side, and what is known of it as a whole."""

    native: _native.FileTrace
    rows: int
    duration_ns: int
    origins: tuple[str, ...]
    streams: dict[int, str]  # of the rules, by number; empty without rules
    left_out: int  # rows that a drive does not see: reads, renames, hints


def file_io(table: pa.Table, rules: Rules | None = None) -> FileIO:
    """Hand a trace over. Raises ConfigError for a trace without writes, or one too large."""
    op_codes, op_words = _codes(table, "op")
    number = np.array([_NUMBERS.get(word, _LEFT_OUT) for word in op_words], np.uint8)
    op = number[op_codes] if len(op_words) else np.zeros(0, np.uint8)
    if not (op == _NUMBERS["write"]).any():
        raise ConfigError("the trace has no writes")
    kept = op != _LEFT_OUT
    length = np.where(op <= _NUMBERS["punch"], _column(table, "length_bytes"), 0)
    origin, names = _origins(table, np.where(op == _NUMBERS["write"], length, 0))
    stream = rules.assign(table) if rules is not None else np.zeros(len(op), np.uint16)
    columns = (
        op,
        _column(table, "file").astype(np.uint32),
        _column(table, "offset_bytes").astype(np.uint64),
        length.astype(np.uint64),
        stream.astype(np.uint16),
        origin,
    )
    native = _native.FileTrace()
    for begin in range(0, len(op), BATCH_ROWS):
        part = slice(begin, begin + BATCH_ROWS)
        with as_user_errors():
            native.add(*(np.ascontiguousarray(column[part][kept[part]]) for column in columns))
    time_ns = _column(table, "time_ns")
    return FileIO(
        native=native,
        rows=len(op),
        duration_ns=int(time_ns[-1] - time_ns[0]),
        origins=names,
        streams=dict(rules.streams) if rules is not None else {},
        left_out=int((~kept).sum()),
    )


def _column(table: pa.Table, name: str) -> NDArray[np.int64]:
    found: NDArray[np.int64] = table.column(name).to_numpy()
    return found


def _codes(table: pa.Table, name: str) -> tuple[NDArray[np.int64], list[str]]:
    """A column of text as numbers and the words that they stand for."""
    column = table.column(name)
    if table.num_rows == 0:
        return np.zeros(0, np.int64), []
    chunk = column.combine_chunks()
    chunk = chunk.chunk(0) if hasattr(chunk, "chunks") else chunk
    if not hasattr(chunk, "dictionary"):
        chunk = chunk.dictionary_encode()
    words = [str(word) for word in chunk.dictionary.to_pylist()]
    return chunk.indices.to_numpy().astype(np.int64), words


def _origins(
    table: pa.Table, written: NDArray[np.int64]
) -> tuple[NDArray[np.uint16], tuple[str, ...]]:
    """The class of each row, and the names of the classes, the largest writer first."""
    threads, thread_words = _codes(table, "thread")
    paths, path_words = _codes(table, "path")
    thread_class, thread_names = _merged([_thread_kind(word) for word in thread_words])
    path_class, path_names = _merged([_path_kind(word) for word in path_words])
    both = thread_class[threads] * len(path_names) + path_class[paths]
    volume = np.bincount(both, weights=written, minlength=len(thread_names) * len(path_names))
    found = [int(n) for n in np.argsort(-volume, kind="stable") if volume[n] > 0]
    shown = found if len(found) <= ORIGINS_MAX else found[: ORIGINS_MAX - 1]
    names = [
        f"{thread_names[n // len(path_names)]}: {path_names[n % len(path_names)]}" for n in shown
    ]
    origin_of = np.full(len(volume), len(shown), np.uint16)
    origin_of[shown] = np.arange(len(shown), dtype=np.uint16)
    origin = origin_of[both]
    if len(shown) < len(found):
        names.append(OTHERS)
    else:
        origin[origin == len(shown)] = 0  # rows that write nothing
    return origin, tuple(names)


def _merged(words: list[str]) -> tuple[NDArray[np.int64], list[str]]:
    """Numbers of equal words, and the words."""
    names = list(dict.fromkeys(words))
    number = {name: index for index, name in enumerate(names)}
    return np.array([number[word] for word in words], np.int64), names


def _thread_kind(name: str) -> str:
    """Threads of a pool differ by a number at the end."""
    return re.sub(r"[-_:#.]?\d+$", "", name) or name


def _path_kind(path: str) -> str:
    """What kind of file it is: its suffix if that has letters, else the folder it lies in."""
    folder, _, name = path.rpartition("/")
    suffix = re.search(r"(?<=.)\.[A-Za-z][A-Za-z0-9]{0,9}$", name)
    if suffix is not None:
        return suffix[0]
    top = folder.strip("/").split("/")[0]
    return f"{top}/" if top else re.sub(r"[-_.]?\d+$", "", name) or name
