"""Opens a trace, whatever its format: I/Os as batches of columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from writecliff import _native
from writecliff.errors import ConfigError
from writecliff.native_errors import as_user_errors
from writecliff.workload.fiojob.iolog import doubt_of_times

PARQUET = "parquet"
OWN_TRACE = "writecliff"
FIO_LOG = "fio-iolog"
_PARQUET_MAGIC = b"PAR1"


@dataclass(frozen=True)
class Skipped:
    """Lines (of tables: rows) that are no I/Os."""

    reason: str
    lines: int
    first_line: int  # from 1
    expected: bool  # the format has such lines; others are damage, or another format


def skipped_mapping(skipped: Iterable[Skipped]) -> dict[str, Any]:
    """The keys of JSON about skipped lines."""
    found = [asdict(one) for one in skipped]
    return {"skipped_lines": sum(one["lines"] for one in found), "skipped": found}


class Target(Protocol):
    """What takes I/Os: `_native.TraceMeasures` and `_native.TraceWriter`."""

    def take(self, reader: _native.TraceReader) -> bool: ...
    def add(self, columns: dict[str, Any], volumes: list[str], processes: list[str]) -> None: ...


class Source(Protocol):
    """A trace that is read once, from begin to end."""

    @property
    def formats(self) -> list[str]: ...
    @property
    def volumes(self) -> list[str]: ...
    @property
    def processes(self) -> list[str]: ...
    @property
    def late(self) -> int: ...
    @property
    def size_bytes(self) -> int:
        """Of the file, packed as it is; of a trace in several files, of all."""

    @property
    def share(self) -> float:
        """The share of the file that has been read, 0 to 1: of its bytes, as they are packed; of a
        table, of its rows."""

    def batches(self) -> Iterator[dict[str, Any]]:
        """I/Os as `_native.TraceReader.next` gives them."""

    def feed(self, target: Target) -> Iterator[None]:
        """Give all I/Os to `target`, with a stop after some milliseconds of work each."""

    def skipped(self) -> list[Skipped]: ...
    def notes(self) -> list[str]: ...


class NativeSource:
    """A trace of a format that the native module reads."""

    def __init__(
        self, path: Path, format: str | None, columns: str | None, member: str | None
    ) -> None:
        """Raises ConfigError."""
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
        return min(read / size, 1.0)  # a file may grow meanwhile

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
        return [Skipped(*one) for one in self._reader.skipped()]

    def notes(self) -> list[str]:
        notes = []
        if passed_over := self._reader.passed_over:
            notes.append(f"members of the archive that are no traces: {', '.join(passed_over)}")
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
    """Open a trace. `format` insists on one; `columns` gives the columns of a table their meaning,
    as `time=ts:us,operation=op,offset=lba:sectors,length=size`; `member` is one of an archive.

    Raises ConfigError: no trace, or of another format.
    """
    if format == OWN_TRACE:
        format = PARQUET
    if columns is not None and format not in (None, PARQUET):
        raise ConfigError("--columns is a format of its own", hint="drop --format")
    if format == PARQUET or (format is None and _is_parquet(path)):
        if member is not None:
            raise ConfigError(f"{path}: is no archive, so it has no members")
        from writecliff.traces.parquet import ParquetSource

        return ParquetSource(path, columns)
    return NativeSource(path, format, columns, member)


def _is_parquet(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC
    except OSError as error:
        raise ConfigError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None


def format_names() -> list[str]:
    """All formats that `open_trace` knows."""
    return [*(name for name, *_ in _native.trace_formats()), PARQUET]
