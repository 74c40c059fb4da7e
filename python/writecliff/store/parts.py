"""The files of one table: some for a step or several while the run goes on, one merged afterwards.

`rounds/000042.parquet`, a part, holds the rows of step 42, `rounds/000043-000049.parquet` those of
steps 43 to 49; `rounds.parquet` those of all steps up to the number in its metadata. Whenever a
crash happens, each step is read once: a part that the merged file covers is ignored, and so is one
of unfinished steps (the part of the table `rounds` is written last and completes its steps).
"""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from writecliff.errors import StoreError
from writecliff.parallel import available_memory_bytes
from writecliff.store.checked import checked, with_types
from writecliff.store.checksums import (
    NO_DIGEST,
    PARQUET_KEY,
    check_parquet,
    damaged,
    seal_parquet,
)
from writecliff.store.files import read_regular, remove_temporaries, store_error, write_atomically
from writecliff.store.tables import OPTIONAL_TABLES, SCHEMAS, TableName

COVERED_KEY = b"writecliff.steps"
VALUE_BYTES = 16  # of memory for a value while a table is read and joined
SMALL_BYTES = 1 << 28  # not worth asking how much memory there is
_NUMBER = re.compile(rb"\d{1,9}")
_PART = re.compile(r"(\d{6,})(?:-(\d{6,}))?\.parquet")
_MERGED_FORMAT = {"compression": "zstd", "compression_level": 3}
# A third of the time for a few rows, which matters while a stopped run merges thousands of parts.
_PART_FORMAT = {"compression": "none", "use_dictionary": False, "write_statistics": False}


class PartedTable:
    """One table of the run directory `folder`."""

    def __init__(self, folder: Path, name: TableName) -> None:
        self.merged = folder / f"{name}.parquet"
        self.folder = folder / name
        self._name = name
        self._schema = SCHEMAS[name]
        # By the first and last step: parts that this object has written.
        self._written: dict[tuple[int, int], pa.Table] = {}
        self._merged_to: int | None = None  # last step of the file that this object has merged
        self._verified: Any = None  # the merged file, once its end is read and until its rows are

    def _parts(self) -> dict[int, int]:
        """The last step of each part, by its first."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return {}
        found = filter(None, map(_PART.fullmatch, names))
        return {int(match[1]): int(match[2] or match[1]) for match in found}

    def _part(self, first: int, last: int) -> Path:
        steps = f"{first:06d}" if first == last else f"{first:06d}-{last:06d}"
        return self.folder / f"{steps}.parquet"

    def _merged(self, columns: Sequence[str] | None = None) -> tuple[int, pa.Table]:
        """The last step that the merged file covers, and its rows; 0 and none without one."""
        file, self._verified = self._verified, None
        try:
            table = with_types(self._name, _read(self.merged, columns, file), self.merged)
        except FileNotFoundError:
            return 0, self._schema.empty_table()
        return _covered(table.schema.metadata, self.merged), table

    def _rows_of(self, first: int, last: int, columns: Sequence[str] | None) -> pa.Table:
        """The rows of a part."""
        table = self._written.get((first, last))
        if table is None:
            path = self._part(first, last)
            return with_types(self._name, _read(path, columns), path)
        if columns is None:
            return table
        return table.select([name for name in table.column_names if name in columns])

    def _rows_between(
        self, covered: int, after: int, last: int, columns: Sequence[str] | None
    ) -> list[pa.Table]:
        """The rows of the parts with steps beyond `after` and `covered`, up to `last`. Raises
        FileNotFoundError if one is missing."""
        ends = self._parts()
        tables = []
        while covered < last:
            first = covered + 1
            if self._name in OPTIONAL_TABLES:
                first = min((step for step in ends if step > covered), default=last + 1)
                if first > last:
                    break
            elif first not in ends:
                raise FileNotFoundError(errno.ENOENT, "", str(self._part(first, first)))
            covered = ends[first]
            if covered > after:
                tables.append(self._rows_of(first, covered, columns))
        return tables

    def last(self) -> int:
        """The last step of the table, merged or not."""
        ends = self._parts().values()  # first: a writer removes parts only after it has merged them
        return max([self._covered(), *ends])

    def _covered(self) -> int:
        """Return the last step that the merged file covers; 0 without one."""
        try:
            with _opened(self.merged) as file:
                self._verified = file
                return _covered(file.metadata.metadata, self.merged)
        except FileNotFoundError:
            return 0

    def rows(self) -> int:
        """Rows of the merged file, as its end says; reads none of them. Raises StoreError."""
        try:
            return int(pq.read_metadata(self.merged).num_rows)
        except FileNotFoundError:
            return 0
        except (OSError, pa.ArrowException) as error:
            raise damaged(self.merged, str(error)) from None

    def read(self, last: int, *, after: int = 0, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of the steps after `after` up to `last`; a column that some of the files lack is
        null there. `columns`, with `seq`: those of them that there are, else all.

        Raises StoreError for a file that is missing, unreadable or damaged.
        """
        covered = -1
        while True:
            before = covered
            covered, merged = self._merged(columns)
            try:
                parts = self._rows_between(covered, after, last, columns)
            except FileNotFoundError as error:
                if covered == before:
                    raise damaged(Path(error.filename), "the file is missing") from None
                continue  # a writer has merged it meanwhile
            if covered > last:  # the run went on after the reader had opened it
                merged = merged.filter(pc.field("seq") <= last)
            nothing = self._schema.empty_table()
            if columns is not None:
                nothing = nothing.select([n for n in self._schema.names if n in columns])
                merged = merged.select([n for n in merged.column_names if n in columns])
            tables = [nothing, merged, *parts]
            try:
                whole = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
            except pa.ArrowException as error:  # columns that no schema has
                raise damaged(self.merged, _one_line(error)) from None
            if after:
                whole = whole.filter(pc.field("seq") > after)
            return checked(self._name, whole.replace_schema_metadata(None), self.merged)

    def write(self, first: int, last: int, table: pa.Table) -> None:
        """Store the rows of steps `first` to `last` as one part; an optional table without rows has
        none."""
        if self._name in OPTIONAL_TABLES and not table.num_rows:
            return
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise store_error(error, self.folder) from error
        write_atomically(self._part(first, last), _parquet(table, last, _PART_FORMAT))
        self._written[first, last] = table

    def tidy(self, last: int) -> None:
        """Remove what a crash left behind: temporary files, and parts that do not count."""
        remove_temporaries(self.folder)
        if parts := self._parts():
            covered = self._covered() if self._merged_to is None else self._merged_to
            for first, end in parts.items():
                if end > last or end <= covered:
                    self._part(first, end).unlink(missing_ok=True)
        with suppress(OSError):  # absent, or there are parts to be merged
            self.folder.rmdir()

    def merge(self, last: int) -> None:
        """Put steps 1 to `last` into the merged file; `tidy` then removes the parts."""
        if self._parts():
            write_atomically(self.merged, _parquet(self.read(last), last, _MERGED_FORMAT))
            self._written.clear()
            self._merged_to, self._verified = last, None


def _read(path: Path, columns: Sequence[str] | None, verified: Any = None) -> pa.Table:
    """The rows of a file, which may be `verified` already. Raises FileNotFoundError, and
    StoreError: unreadable or damaged."""
    try:
        if verified is not None:
            return verified.read(columns, use_threads=False)
        with _opened(path) as file:
            return file.read(columns, use_threads=False)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise damaged(path, _one_line(error)) from error


def _covered(metadata: Mapping[bytes, bytes] | None, path: Path) -> int:
    """The number of steps in a file's metadata. Raises StoreError: damaged."""
    text = (metadata or {}).get(COVERED_KEY, b"")
    if not _NUMBER.fullmatch(text):
        raise damaged(path, f"its metadata do not say how many steps it has ({COVERED_KEY!r})")
    return int(text)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A file that is verified. Raises FileNotFoundError, and StoreError: unreadable or damaged."""
    try:
        data = read_regular(path)
        check_parquet(path, data)
        # Not read_table: its machinery costs several times the reading of a small file.
        file = pq.ParquetFile(pa.BufferReader(data))
        _check_size(file.metadata, path)
        yield file
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise damaged(path, _one_line(error)) from error


def _check_size(metadata: Any, path: Path) -> None:
    """A few bytes can stand for billions of rows. Raises StoreError: more than the memory holds."""
    bytes_needed = metadata.num_rows * metadata.num_columns * VALUE_BYTES
    if bytes_needed > SMALL_BYTES and bytes_needed > (available := available_memory_bytes()):
        raise StoreError(
            f"{path}: its {metadata.num_rows:,} rows need {bytes_needed / 1e9:.3g} GB of memory; "
            f"this machine has {available / 1e9:.3g} GB"
        )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _parquet(table: pa.Table, last: int, options: Mapping[str, Any]) -> bytes:
    metadata = {COVERED_KEY: str(last).encode(), PARQUET_KEY: NO_DIGEST}
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), sink, **options)
    return seal_parquet(sink.getvalue())
