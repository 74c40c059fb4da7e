"""Types of the native module for traces of other programs; see `_native.pyi`."""

from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

@final
class TraceReader:
    """Reader of block traces of any format, in batches and bounded memory.

    Properties refer to the I/Os read so far. Reading raises NativeConfigError if a file cannot be
    read, is truncated, or is mostly invalid.
    """

    def __new__(
        cls,
        path: str | Path,
        *,
        format: str | None = None,
        columns: str | None = None,
        member: str | None = None,
    ) -> TraceReader:
        """Open a trace.

        `format` is detected by default; `columns` is the mapping of a custom CSV, `member` selects
        a file of an archive. Raises NativeConfigError.
        """
    def next(self) -> dict[str, Any] | None:
        """Return the next I/Os as arrays, nearly in order of time; None at the end.

        time_ns (since the first I/O), offset_bytes, length_bytes, response_ns (-1: unknown), all
        int64; volume and process (int32, numbers of names), operation (uint8: 0 read, 1 write,
        2 flush, 3 discard), content (uint64, a hash of the data; 0: unknown).
        """
    @property
    def formats(self) -> list[str]: ...
    @property
    def members(self) -> list[str]:
        """Files of an archive that were read."""
    @property
    def passed_over(self) -> list[str]:
        """Files of an archive that are not traces."""
    @property
    def volumes(self) -> list[str]: ...
    @property
    def processes(self) -> list[str]:
        """Names of processes; the first name is empty, for unknown processes."""
    @property
    def late(self) -> int:
        """Number of I/Os with a time before that of an earlier I/O."""
    @property
    def span(self) -> tuple[int, int]:
        """Return the I/Os so far, and the time from the first to the last of them in ns."""
    @property
    def read_of_file(self) -> tuple[int, int]:
        """Packed bytes read so far, and in total, of all files of the trace."""
    def skipped(self) -> list[tuple[str, int, int, bool]]:
        """Lines (or binary records) that are not I/Os, by reason.

        Each row has the reason, the count, the number of the first line, and a flag that is true if
        such lines belong to the format.
        """

@final
class TraceWriter:
    """Writer of a trace in a format of `trace_formats_written`."""

    def __new__(cls, path: str | Path, format: str) -> TraceWriter:
        """Create or replace a file. Raises NativeConfigError."""
    def take(self, reader: TraceReader) -> bool:
        """Write the next I/Os of a reader; return False at its end.

        Raises NativeConfigError, OSError.
        """
    def add(self, columns: dict[str, Any], volumes: list[str], processes: list[str]) -> None:
        """Write I/Os in columns of `TraceReader.next`. Raises NativeConfigError, OSError."""
    def finish(self) -> None:
        """Complete the file. Raises OSError."""
    def counts(self) -> dict[str, int]:
        """Return records, left_out (not supported by the format), moved (to a later time)."""

@final
class TraceMeasures:
    """Measures of the workload of a trace, in one pass and bounded memory."""

    def __new__(cls, *, steps: bool = False, length_s: int | None = None) -> TraceMeasures:
        """Start to measure; with `steps` also time steps of `length_s` or by duration."""
    def take(self, reader: TraceReader) -> bool:
        """Measure the next I/Os of a reader; return False at its end. Raises NativeConfigError."""
    def add(self, columns: dict[str, Any], volumes: list[str], processes: list[str]) -> None:
        """Measure I/Os in columns of `TraceReader.next`. Raises NativeConfigError."""
    @property
    def ios(self) -> int: ...
    def steps(self) -> str | None:
        """Return the time steps as JSON; None without `steps`."""
    def result(self) -> str:
        """Return all measures as JSON."""

def trace_formats() -> list[tuple[str, str, str, str]]:
    """Return all formats that are detected by content: name, title, columns, units."""

def trace_formats_written() -> list[str]:
    """Return the names of the formats that can be written."""

def trace_columns(text: str) -> list[tuple[str, str, int]]:
    """Parse the columns of a mapping: meaning, name, and unit in nanoseconds or bytes.

    Raises NativeConfigError.
    """

def trace_column_words() -> tuple[list[str], list[str], list[str]]:
    """Return meanings of columns, units of times, and units of addresses and lengths."""

def trace_operation(word: str) -> int:
    """Return the number of an operation by name. Raises NativeConfigError."""

def assign_schemes() -> list[str]:
    """Return the schemes of stream assignment: none, rules, sfr, multi-queue, sepbit, oracle."""

def writebacks() -> list[str]:
    """Return the modes by which writes reach the drive: from a page cache, or at once."""

def allocators() -> list[str]:
    """Return the block allocators of file systems: next-fit, first-fit, folders."""

def row_classes(
    path: npt.NDArray[np.int32],
    thread: npt.NDArray[np.int32],
    process: npt.NDArray[np.int32],
    hint: npt.NDArray[np.int8],
    size: npt.NDArray[np.uint16] | None = None,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Return the class of each row, and the first row of each class in order of appearance.

    Rows of a class are equal in all columns. Raises NativeConfigError.
    """

def synthetic_trace(
    table_bytes: int, chunk_bytes: int, logged_bytes: int, seed: int
) -> dict[str, Any]:
    """Generate the file operations of a small log-structured merge store.

    Returns columns of equal length (op, with the numbers of `FileTrace.add`; file, offset_bytes,
    length_bytes, origin), and `origins`, the names of the origins. Raises NativeConfigError.
    """

def trace_runs(columns: dict[str, Any]) -> dict[str, Any]:
    """Return the runs of the reads and writes of a volume, in columns of `TraceReader.next`.

    `run` is the number of the I/O that started the run of each I/O, `back` the number of bytes
    before the end of the continued run at which an I/O starts (both int64). `read_ranks` and
    `write_ranks` count the continuations of the most recently used run, the second most recently
    used run and so on. Raises NativeConfigError.
    """

def model_ios(json: str) -> dict[str, Any]:
    """Return the I/Os of a pass of a workload (JSON) whose only job has a model.

    Columns are those of `TraceReader.next`. Raises NativeConfigError.
    """
