"""Types of the native module that are about traces of other programs; see `_native.pyi`."""

from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

@final
class TraceReader:
    """A block trace of any format, read in batches; memory does not depend on its length.

    All methods but `next` say what is known so far. Reading raises NativeConfigError: a file that
    cannot be read, is cut off, or is mostly no trace.
    """

    def __new__(
        cls,
        path: str | Path,
        *,
        format: str | None = None,
        columns: str | None = None,
        member: str | None = None,
    ) -> TraceReader:
        """Open a trace. `format` is recognised by default; `columns` is a mapping of a CSV of one's
        own, `member` the one of an archive that is read. Raises NativeConfigError.
        """
    def next(self) -> dict[str, Any] | None:
        """The next I/Os as arrays, nearly in the order of time: time_ns (since the first),
        offset_bytes, length_bytes, response_ns (-1: not known), all int64; volume and process
        (int32, numbers of names), operation (uint8: 0 read, 1 write, 2 flush, 3 discard), content
        (uint64, a hash of the data; 0: not known). None at the end.
        """
    @property
    def formats(self) -> list[str]: ...
    @property
    def members(self) -> list[str]:
        """Of an archive: those that were read."""
    @property
    def passed_over(self) -> list[str]:
        """Of an archive: those that are no traces."""
    @property
    def volumes(self) -> list[str]: ...
    @property
    def processes(self) -> list[str]:
        """The first one is empty: not known."""
    @property
    def late(self) -> int:
        """I/Os whose time is before that of one that was given before."""
    @property
    def span(self) -> tuple[int, int]:
        """Return the I/Os so far, and the time from the first to the last of them in ns."""
    @property
    def read_of_file(self) -> tuple[int, int]:
        """Bytes of the file that have been read so far, as they are packed, and all of them; of a
        trace in several files, those of all.
        """
    def skipped(self) -> list[tuple[str, int, int, bool]]:
        """Lines (of binary formats: records) that are no I/Os: reason, how many, the number of the
        first one, and whether the format has such lines.
        """

@final
class TraceWriter:
    """A trace that is written in a format of `trace_formats_written`."""

    def __new__(cls, path: str | Path, format: str) -> TraceWriter:
        """Begin a file, which is replaced. Raises NativeConfigError."""
    def take(self, reader: TraceReader) -> bool:
        """Write the next I/Os of a reader; false at its end. Raises NativeConfigError, OSError."""
    def add(self, columns: dict[str, Any], volumes: list[str], processes: list[str]) -> None:
        """Write I/Os as `TraceReader.next` gives them. Raises NativeConfigError, OSError."""
    def finish(self) -> None:
        """Complete the file. Raises OSError."""
    def counts(self) -> dict[str, int]:
        """So far: records, left_out (that the format cannot have), moved (to a later time)."""

@final
class TraceMeasures:
    """What a trace says of its workload, in one pass and bounded memory."""

    def __new__(cls, *, steps: bool = False, length_s: int | None = None) -> TraceMeasures:
        """`steps`: the time steps of an I/O capture too, of `length_s` or by duration."""
    def take(self, reader: TraceReader) -> bool:
        """Measure the next I/Os of a reader; false at its end. Raises NativeConfigError."""
    def add(self, columns: dict[str, Any], volumes: list[str], processes: list[str]) -> None:
        """Measure I/Os as `TraceReader.next` gives them. Raises NativeConfigError."""
    @property
    def ios(self) -> int: ...
    def steps(self) -> str | None:
        """The time steps, as JSON; None unless they were asked for."""
    def result(self) -> str:
        """All measures, as JSON."""

def trace_formats() -> list[tuple[str, str, str, str]]:
    """All formats that are recognised by content: name, title, columns, units."""

def trace_formats_written() -> list[str]:
    """Names of the formats that are written."""

def trace_columns(text: str) -> list[tuple[str, str, int]]:
    """The columns of a mapping: meaning, name, and unit of its numbers in nanoseconds or bytes.
    Raises NativeConfigError.
    """

def trace_column_words() -> tuple[list[str], list[str], list[str]]:
    """Meanings of columns, units of times, units of addresses and lengths."""

def trace_operation(word: str) -> int:
    """The number of the operation that a word means. Raises NativeConfigError."""

def assign_schemes() -> list[str]:
    """Schemes of stream assignment: none, rules, sfr, multi-queue, sepbit, oracle."""

def writebacks() -> list[str]:
    """Names of the ways in which writes reach the drive: from a page cache, or at once."""

def allocators() -> list[str]:
    """Where a file system puts what files get new: next-fit, first-fit, folders."""

def row_classes(
    path: npt.NDArray[np.int32],
    thread: npt.NDArray[np.int32],
    process: npt.NDArray[np.int32],
    hint: npt.NDArray[np.int8],
    size: npt.NDArray[np.uint16] | None = None,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Classes of rows that agree in everything: the class of each row, and the first row of each
    class, in the order in which they appear. Raises NativeConfigError.
    """

def synthetic_trace(
    table_bytes: int, chunk_bytes: int, logged_bytes: int, seed: int
) -> dict[str, Any]:
    """File operations of a small log-structured merge store: columns of equal length (op, numbers
    as those that `FileTrace.add` gives a meaning; file, offset_bytes, length_bytes, origin), and
    `origins`, the names of the origins. Raises NativeConfigError.
    """

def trace_runs(columns: dict[str, Any]) -> dict[str, Any]:
    """The runs of the reads and writes of one volume, I/Os as `TraceReader.next` gives them.

    `run`: the number of the I/O that began the run of each; `back`: by how many bytes an I/O goes
    back before the end of the run that it continues (both int64); `read_ranks` and `write_ranks`:
    how often the run was continued that was the most, second most, ... recently used one of those
    that go on. Raises NativeConfigError.
    """

def model_ios(json: str) -> dict[str, Any]:
    """The I/Os of one pass of a workload (as JSON) whose only job has a model, as columns like
    those of `TraceReader.next`. Raises NativeConfigError.
    """
