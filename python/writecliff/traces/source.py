"""Readers for traces in any format, which return I/Os as batches of columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from writecliff import _native
from writecliff.capture.trace import METADATA_KEY
from writecliff.errors import ConfigError
from writecliff.native_errors import as_user_errors
from writecliff.workload.fiojob.iolog import doubt_of_times

if TYPE_CHECKING:
    from numpy.typing import NDArray

PARQUET = "parquet"
CAPTURED_TRACE = "writecliff"
FIO_LOG = "fio-iolog"
_PARQUET_MAGIC = b"PAR1"


@dataclass(frozen=True)
class Skipped:
    """Lines or table rows that are not I/Os."""

    reason: str
    lines: int
    first_line: int  # Line number, counted from 1.
    expected: bool  # `True` if such lines are part of the format.


def skipped_mapping(skipped: Iterable[Skipped]) -> dict[str, Any]:
    """Return the JSON keys for skipped lines."""
    rows = [asdict(reason) for reason in skipped]
    return {"skipped_lines": sum(row["lines"] for row in rows), "skipped": rows}


class Target(Protocol):
    """A consumer of I/Os: `_native.TraceMeasures` or `_native.TraceWriter`."""

    def take(self, reader: _native.TraceReader) -> bool:
        """Consume the next I/Os from a reader, or return `False` at the end."""

    def add(self, columns: dict[str, Any], volumes: list[str], processes: list[str]) -> None:
        """Consume I/Os in columns. `volumes` and `processes` map numbers to names."""


class Source(Protocol):
    """A trace that is read once from start to end."""

    @property
    def formats(self) -> list[str]:
        """Format of the trace, or formats of the archive's members."""

    @property
    def volumes(self) -> list[str]:
        """Volume names encountered so far, by number."""

    @property
    def processes(self) -> list[str]:
        """Process names encountered so far, by number."""

    @property
    def late(self) -> int:
        """Number of I/Os so far whose time is before a previous I/O's time."""

    @property
    def size_bytes(self) -> int:
        """Stored size of the file, or of all files in the trace."""

    @property
    def share(self) -> float:
        """Fraction of the stored bytes or table rows read so far, from 0 to 1."""

    def batches(self) -> Iterator[dict[str, Any]]:
        """Yield I/Os in the form of `_native.TraceReader.next`."""

    def feed(self, target: Target) -> Iterator[None]:
        """Pass all I/Os to `target`, yielding every few milliseconds."""

    def skipped(self) -> list[Skipped]:
        """Return the lines skipped so far, by reason."""

    def notes(self) -> list[str]:
        """Return remarks for the user about the trace."""


class _NativeSource:
    """A trace in a format supported by the native module."""

    def __init__(
        self, path: Path, format: str | None, columns: str | None, member: str | None
    ) -> None:
        """Open the trace.

        Raises:
            ConfigError: If the file cannot be read or is not a trace in this format.
        """
        with as_user_errors():
            self._reader = _native.TraceReader(path, format=format, columns=columns, member=member)

    @property
    def formats(self) -> list[str]:
        return self._reader.formats

    @property
    def volumes(self) -> list[str]:
        return self._reader.volumes

    @property
    def processes(self) -> list[str]:
        return self._reader.processes

    @property
    def late(self) -> int:
        return self._reader.late

    @property
    def size_bytes(self) -> int:
        return self._reader.read_of_file[1]

    @property
    def share(self) -> float:
        read, size = self._reader.read_of_file
        return min(read / size, 1.0)  # The file may grow while it is read.

    def batches(self) -> Iterator[dict[str, Any]]:
        while True:
            with as_user_errors():
                batch = self._reader.next()
            if batch is None:
                return
            yield batch

    def feed(self, target: Target) -> Iterator[None]:
        while True:
            with as_user_errors():
                more = target.take(self._reader)
            if not more:
                return
            yield

    def skipped(self) -> list[Skipped]:
        return [Skipped(*row) for row in self._reader.skipped()]

    def notes(self) -> list[str]:
        notes = []
        if passed_over := self._reader.passed_over:
            notes.append(f"skipped archive members that are not traces: {', '.join(passed_over)}")
        if self._reader.formats == [FIO_LOG] and (doubt := doubt_of_times(*self._reader.span)):
            notes.append(doubt)
        return notes


def open_trace(
    path: Path,
    *,
    format: str | None = None,
    columns: str | None = None,
    member: str | None = None,
) -> Source:
    """Open a trace.

    Args:
        path: Path of the trace file.
        format: Format name (default: detected from the content).
        columns: Meaning of a table's columns, such as
            `time=ts:us,operation=op,offset=lba:sectors,length=size`.
        member: Archive member to read (default: all members).

    Raises:
        ConfigError: If the file is not a trace or has a different format.
    """
    if format == CAPTURED_TRACE:
        format = PARQUET
    if columns is not None and format not in (None, PARQUET):
        raise ConfigError(
            f"--columns cannot be combined with --format {format}", hint="omit either option"
        )
    if format == PARQUET or (format is None and _is_parquet(path)):
        if member is not None:
            raise ConfigError(
                f"{path} is not an archive, so a member cannot be selected", hint="omit --member"
            )

        return _ParquetSource(path, columns)
    return _NativeSource(path, format, columns, member)


def _is_parquet(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC
    except OSError as error:
        raise ConfigError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None


def format_names() -> list[str]:
    """Return the names of all formats that `open_trace` can read."""
    return [*(name for name, *_ in _native.trace_formats()), PARQUET]


# -- parquet ---------------------------------------------------------------------------------------

# Parquet traces from `writecliff capture`, and user tables read with `--columns`.

_ROWS = 1 << 16
_LENGTH_MAX_BYTES = 1 << 30
_ADDRESS_MAX = 1 << 62
_FLUSH, _DISCARD = 2, 3
_LEFT_OUT = 255
_CAPTURED_OPS = {"read": 0, "write": 1, "fsync": _FLUSH, "punch": _DISCARD}
_CAPTURED_COLUMNS = (
    ("time", "time_ns", 1), ("volume", "path", 1), ("operation", "op", 1),
    ("offset", "offset_bytes", 1), ("length", "length_bytes", 1), ("process", "process", 1),
)  # fmt: skip


class _Names:
    """Numbers for names, assigned in order of first appearance."""

    def __init__(self, *first: str) -> None:
        self.words = [*first]
        self._numbers = {word: number for number, word in enumerate(first)}

    def of(self, column: pa.ChunkedArray) -> NDArray[np.int32]:
        # Linux paths, and paths in damaged files, are not always valid UTF-8.
        words = pc.cast(pc.cast(column, pa.string()), pa.binary()).combine_chunks()
        words = words.dictionary_encode()
        words = words.chunk(0) if isinstance(words, pa.ChunkedArray) else words
        names = (raw.decode(errors="backslashreplace") for raw in words.dictionary.to_pylist())
        numbers_of = [self._number(name) for name in names]
        indices = words.indices.fill_null(len(numbers_of)).to_numpy(zero_copy_only=False)
        numbers_of.append(self._number("") if words.null_count else 0)  # Rows that have no name.
        numbers: NDArray[np.int32] = np.array(numbers_of, np.int32)[indices]
        return numbers

    def _number(self, word: str) -> int:
        if word not in self._numbers:
            self._numbers[word] = len(self.words)
            self.words.append(word)
        return self._numbers[word]


class _ParquetSource:
    """A table with a row for each I/O."""

    def __init__(self, path: Path, columns: str | None) -> None:
        """Open the table's file.

        Raises:
            ConfigError: If the file is not Parquet or lacks a column.
        """
        self._path = path
        if not path.is_file():
            raise ConfigError(
                f"the file {path} does not exist", hint="check that the path is correct"
            )
        try:
            self._file = pq.ParquetFile(path.open("rb"))
        except (pa.ArrowInvalid, OSError) as error:
            text = " ".join(str(error).split())[:200]
            raise ConfigError(f"{path} is not a Parquet file: {text}") from None
        self._is_captured = columns is None
        with as_user_errors():
            self._columns = _CAPTURED_COLUMNS if columns is None else _native.trace_columns(columns)
        names = self._file.schema_arrow.names
        if len(set(names)) < len(names):
            raise ConfigError(f"{path}: two columns have the same name")
        for _, name, _ in self._columns:
            if name not in names:
                hint = f"columns: {', '.join(names)}" if columns else "give --columns"
                raise ConfigError(f"{path} does not contain the column '{name}'", hint=hint)
        if self._is_captured and METADATA_KEY not in (self._file.metadata.metadata or {}):
            raise ConfigError(
                f"{path} is not a trace of `writecliff capture`",
                hint="add --columns to read the file as a table",
            )
        self._volumes, self._processes = _Names(), _Names("")
        self._skipped: dict[str, Skipped] = {}
        self._rows = self._late = 0
        self._first_ns: int | None = None
        self._last_ns = 0

    @property
    def formats(self) -> list[str]:
        return [CAPTURED_TRACE if self._is_captured else PARQUET]

    @property
    def volumes(self) -> list[str]:
        return self._volumes.words

    @property
    def processes(self) -> list[str]:
        return self._processes.words

    @property
    def late(self) -> int:
        return self._late

    @property
    def size_bytes(self) -> int:
        return self._path.stat().st_size

    @property
    def share(self) -> float:
        return self._rows / (self._file.metadata.num_rows or 1)

    def notes(self) -> list[str]:
        return []

    def skipped(self) -> list[Skipped]:
        return list(self._skipped.values())

    def feed(self, target: Target) -> Iterator[None]:
        for batch in self.batches():
            with as_user_errors():
                target.add(batch, self.volumes, self.processes)
            yield

    def batches(self) -> Iterator[dict[str, Any]]:
        wanted = [name for _, name, _ in self._columns]
        if self._is_captured and "complete_ns" in self._file.schema_arrow.names:
            wanted.append("complete_ns")
        try:
            for batch in self._file.iter_batches(batch_size=_ROWS, columns=wanted):
                ios = self._batch(pa.Table.from_batches([batch]))
                if len(ios["time_ns"]):
                    yield ios
        except pa.ArrowException as error:
            text = " ".join(str(error).split())[:200]
            raise ConfigError(f"{self._path}: {text}") from None

    def _batch(self, table: pa.Table) -> dict[str, Any]:
        rows = table.num_rows
        zeros = np.zeros(rows, np.int64)
        ios: dict[str, Any] = {
            "volume": np.zeros(rows, np.int32), "process": np.zeros(rows, np.int32),
            "response_ns": zeros - 1, "content": zeros.astype(np.uint64),
        }  # fmt: skip
        bad = np.zeros(rows, bool)
        for role, name, unit in self._columns:
            column = table.column(name)
            if role in ("volume", "process"):
                names = self._volumes if role == "volume" else self._processes
                ios[role] = names.of(column)
            elif role == "operation":
                ios[role] = self._operations(column)
            elif role == "content":
                ios[role] = _hashes(column)
            else:
                key = f"{role}_{'ns' if role in ('time', 'response') else 'bytes'}"
                numbers, wrong = self._numbers(column, name, unit)
                if role == "response":
                    ios[key] = np.where(wrong, -1, numbers)
                else:
                    ios[key], bad = numbers, bad | wrong
        if not any(role == "volume" for role, _, _ in self._columns) and not self.volumes:
            self._volumes.words.append("volume")
        if "complete_ns" in table.column_names:
            done = table.column("complete_ns").fill_null(-1).to_numpy()
            ios["response_ns"] = np.where(done < 0, -1, np.maximum(done - ios["time_ns"], 0))
        return self._checked(ios, bad)

    def _numbers(
        self, column: pa.ChunkedArray, name: str, unit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return a column in ns or bytes, and `True` for each row without a valid number."""
        kind = column.type
        if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
            column = column.cast(pa.timestamp("ns") if pa.types.is_timestamp(kind) else
                                 pa.duration("ns"))  # fmt: skip
            missing = column.is_null().to_numpy()
            return column.cast(pa.int64()).fill_null(0).to_numpy(), missing
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise ConfigError(
                f"{self._path}: column '{name}' has the type {kind}, but numbers are required"
            )
        missing = column.is_null().to_numpy()
        values = column.fill_null(0).to_numpy()
        if pa.types.is_floating(kind):
            missing = missing | ~np.isfinite(values)
            values = np.where(missing, 0, values)
        limit = (2**63 - 1) // unit
        wrong = missing | (values < 0) | (values > limit)
        whole = np.where(wrong, 0, values)
        if not pa.types.is_floating(kind):
            return whole.astype(np.int64) * unit, wrong
        seconds = np.floor(whole)
        return (seconds.astype(np.int64) * unit
                + np.round((whole - seconds) * unit).astype(np.int64)), wrong  # fmt: skip

    def _operations(self, column: pa.ChunkedArray) -> NDArray[np.uint8]:
        """Return the operation numbers, with `_LEFT_OUT` for rows that are not I/Os."""
        names = _Names()
        numbers = names.of(column)
        codes = [self._operation(word) for word in names.words]
        operations = np.array([*codes, _LEFT_OUT], np.uint8)[numbers]
        return np.where(column.is_null().to_numpy(), np.uint8(_LEFT_OUT), operations)

    def _operation(self, word: str | None) -> int:
        if self._is_captured:
            return _CAPTURED_OPS.get(word or "", _LEFT_OUT)
        try:
            return _native.trace_operation(word or "")
        except _native.NativeConfigError:
            return _LEFT_OUT

    def _checked(self, ios: dict[str, Any], bad: NDArray[np.bool_]) -> dict[str, object]:
        """Return the rows that are valid I/Os, with times relative to the first I/O."""
        operation, length = ios["operation"], ios["length_bytes"]
        flush = operation == _FLUSH
        for name in ("offset_bytes", "length_bytes"):
            ios[name] = np.where(flush, 0, ios[name])
        moves = operation < _FLUSH
        first = self._rows + 1
        self._rows += len(operation)
        keep = np.ones(len(operation), bool)
        for reason, is_bad, expected in (
            ("operation that moves no data", operation == _LEFT_OUT, self._is_captured),
            ("missing number, or number out of range", bad, False),
            ("length of 0", moves & (length == 0), False),
            ("length over 1 GiB", moves & (length > _LENGTH_MAX_BYTES), False),
            ("address too large", ios["offset_bytes"] > _ADDRESS_MAX - length, False),
        ):
            rows = is_bad & keep
            if rows.any():
                self._skip(reason, int(rows.sum()), first + int(np.argmax(rows)), expected)
                keep &= ~rows
        ios = {name: np.ascontiguousarray(values[keep]) for name, values in ios.items()}
        times = ios["time_ns"]
        if len(times):
            if self._first_ns is None:
                self._first_ns = int(times[0])
            times = times - self._first_ns
            latest = np.maximum.accumulate(np.concatenate(([self._last_ns], times)))
            self._late += int((times < latest[:-1]).sum())
            ios["time_ns"], self._last_ns = times, int(latest[-1])
        return ios

    def _skip(self, reason: str, lines: int, first_line: int, expected: bool) -> None:
        before = self._skipped.get(reason)
        if before is not None:
            lines, first_line = before.lines + lines, before.first_line
        self._skipped[reason] = Skipped(reason, lines, first_line, expected)


def _hashes(column: pa.ChunkedArray) -> NDArray[np.uint64]:
    """Return hashes of the I/Os' data; equal words in a column have equal hashes in all batches."""
    if pa.types.is_integer(column.type):
        hashes: NDArray[np.uint64] = column.fill_null(0).to_numpy().astype(np.uint64)
        return hashes
    import zlib

    names = _Names()
    numbers = names.of(column)
    hashes_of = [
        0 if not word else zlib.crc32(word.encode()) << 32 | zlib.adler32(word.encode())
        for word in names.words
    ]
    return np.array([*hashes_of, 0], np.uint64)[numbers]
