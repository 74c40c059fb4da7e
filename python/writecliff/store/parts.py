"""The files of one table: a part a step while the run is going on, one merged file afterwards.

`rounds/000042.parquet` holds the rows of step 42; `rounds.parquet` those of all steps up to the
number in its metadata. Whatever the moment of a crash, each step is read once: a part whose number
the merged file covers is ignored, and so is a part of a step that did not come to its end (the part
of the table `rounds` is written last, and makes the step count).
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from writecliff.errors import StoreError
from writecliff.store.files import remove_temporaries, store_error, write_atomically
from writecliff.store.tables import SCHEMAS, TableName

COVERED_KEY = b"writecliff.steps"
_PART = re.compile(r"(\d{6,})\.parquet")
_COMPRESSION_LEVEL = 3


class PartedTable:
    """One table of the run directory `folder`."""

    def __init__(self, folder: Path, name: TableName) -> None:
        self.name = name
        self.merged = folder / f"{name}.parquet"
        self.folder = folder / name

    def covered(self) -> int:
        """The last step that the merged file holds; 0 without one."""
        if not self.merged.exists():
            return 0
        metadata = read_schema(self.merged).metadata or {}
        return int(metadata.get(COVERED_KEY, b"0"))

    def numbers(self) -> list[int]:
        """The steps that have a part, ascending."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return sorted(int(match[1]) for name in names if (match := _PART.fullmatch(name)))

    def last(self) -> int:
        """The last step of the table, merged or not."""
        return max([self.covered(), *self.numbers()])

    def part(self, number: int) -> Path:
        return self.folder / f"{number:06d}.parquet"

    def files(self, last: int) -> list[Path]:
        """What a reader must read to see steps 1 to `last` once each."""
        covered = self.covered()
        merged = [self.merged] if covered else []
        return merged + [self.part(n) for n in self.numbers() if covered < n <= last]

    def write(self, number: int, table: pa.Table) -> None:
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise store_error(error, self.folder) from error
        write_atomically(self.part(number), _parquet(table, number))

    def tidy(self, last: int) -> None:
        """Remove what a crash left: temporary files and parts of steps that do not count."""
        remove_temporaries(self.folder)
        covered = self.covered()
        for number in self.numbers():
            if number > last or number <= covered:
                self.part(number).unlink(missing_ok=True)

    def merge(self, last: int) -> None:
        """Put steps 1 to `last` into the merged file; the parts stay until `drop_parts`."""
        files = self.files(last)
        if not files or files == [self.merged]:
            return
        table = read_tables(files, SCHEMAS[self.name])
        write_atomically(self.merged, _parquet(table, last))

    def drop_parts(self) -> None:
        """Remove the parts that the merged file covers."""
        self.tidy(self.last())
        with suppress(OSError):  # absent, or it holds what is not ours
            self.folder.rmdir()


def read_tables(files: Sequence[Path], schema: pa.Schema) -> pa.Table:
    """The files as one table; a column that some of them lack is null there."""
    tables = []
    for path in files:
        try:
            # Not read_table: its machinery costs several times the reading of a small file.
            file = pq.ParquetFile(pa.BufferReader(path.read_bytes()))
            tables.append(file.read(use_threads=False))
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"cannot read {path}: {error}") from error
    tables.insert(0, schema.empty_table())
    return pa.concat_tables(tables, promote_options="permissive").combine_chunks()


def read_schema(path: Path) -> pa.Schema:
    try:
        return pq.read_schema(path)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"cannot read {path}: {error}") from error


def _parquet(table: pa.Table, last: int) -> bytes:
    metadata = {**(table.schema.metadata or {}), COVERED_KEY: str(last).encode()}
    sink = io.BytesIO()
    pq.write_table(
        table.replace_schema_metadata(metadata),
        sink,
        compression="zstd",
        compression_level=_COMPRESSION_LEVEL,
    )
    return sink.getvalue()
