"""`RunDirectory`, a run on disk with a single writing process and any number of readers.

Each step is stored as a part in every table (`PartedTable`). Parts are written under a temporary
name and then renamed, `rounds` last. A kill therefore loses at most the steps in progress. The
method `finish` merges the parts. A reader sees the steps that were complete at the reader's first
access, even if the run continues.
"""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from itertools import groupby
from operator import and_
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from writecliff.errors import StoreError
from writecliff.latency_causes import LatencyCauses, causes
from writecliff.parallel import available_memory_bytes
from writecliff.store import db
from writecliff.store.checked import checked, with_types
from writecliff.store.checksums import (
    NO_DIGEST,
    PARQUET_KEY,
    check_parquet,
    damaged,
    seal_parquet,
)
from writecliff.store.files import (
    FolderLock,
    claim_directory,
    read_regular,
    remove_temporaries,
    store_error,
    write_atomically,
)
from writecliff.store.manifest import (
    Manifest,
    Status,
    read_manifest,
    read_state,
    write_manifest,
)
from writecliff.store.record import RoundRecord
from writecliff.store.tables import (
    HISTOGRAM_KEYS,
    OPERATION_NAMES,
    OPTIONAL_TABLES,
    SCHEMAS,
    TABLE_NAMES,
    TableName,
    cause_column,
    rebuild_histograms,
    tables_of,
)

if TYPE_CHECKING:
    from writecliff._native import Histogram

K = TypeVar("K")

CHECKPOINT_GLOB = "checkpoint-*.wcs"  # Saved drives, which a complete run no longer needs.


class RunDirectory:
    """A run directory opened by `create` or `open`, as a context manager that releases the lock."""

    def __init__(
        self, path: Path, manifest: Manifest, status: Status, lock: FolderLock | None
    ) -> None:
        """Call `create` or `open` instead of the constructor."""
        self.path = path
        self._manifest = manifest
        self._status = status
        self._lock = lock
        self._files = {name: PartedTable(path, name) for name in TABLE_NAMES}
        self._steps: int | None = None  # Number of complete steps; `None` until counted.
        self._tables: dict[TableName, pa.Table] = {}  # Tables that contain these steps.

    # -- opening ----------------------------------------------------------------------------

    @classmethod
    def create(cls, path: Path, manifest: Manifest) -> Self:
        """Start a run in `path`, which must be nonexistent or empty, and write its manifest.

        Raises:
            ConfigError: If the directory is already in use.
            StoreError: If the directory cannot be written.
        """
        claim_directory(path)
        lock = FolderLock(path)
        try:
            write_manifest(path, manifest)
        except BaseException:
            lock.release()
            raise
        return cls(path, manifest, manifest.status, lock)

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> Self:
        """Open a run for reading or, with `write`, for resuming.

        A complete run that was left unmerged by a crash is merged if possible.

        Raises:
            ConfigError: If the directory does not contain a run.
            StoreError: If the run is damaged, or if another process uses it (with `write`).
        """
        manifest, status = read_state(path)
        if not write:
            run = cls(path, manifest, status, None)
            if status == "complete" and any(table.folder.exists() for table in run._files.values()):
                # Permission is missing, or another process is merging the run.
                with suppress(StoreError):
                    cls.open(path, write=True).close()
            return run
        lock = FolderLock(path)
        try:
            manifest = read_manifest(path)
            run = cls(path, manifest, manifest.status, lock)
            run._settle()
        except BaseException:
            lock.release()
            raise
        return run

    def _settle(self) -> None:
        """Remove the remains of a crash, and merge the parts of a run that has stopped."""
        last = self.steps
        remove_temporaries(self.path)
        if self._manifest.status != "running":
            for name in TABLE_NAMES:
                self._files[name].merge(last)
        for table in self._files.values():
            table.tidy(last)
        if self._manifest.status == "complete":
            for path in self.path.glob(CHECKPOINT_GLOB):
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock. No data are lost if this method is not called."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        """Return the run directory."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the lock."""
        self.close()

    # -- state ------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Directory name."""
        return self.path.resolve().name

    @property
    def manifest(self) -> Manifest:
        """Manifest as of the last read or write."""
        return self._manifest

    @property
    def status(self) -> Status:
        """Status in the manifest, or "interrupted" if a running run's process is gone."""
        return self._status

    @property
    def steps(self) -> int:
        """Number of complete steps; for a reader, as of its first access."""
        if self._steps is None:
            self._steps = self._files["rounds"].last()
        return self._steps

    def _writable(self) -> None:
        if self._lock is None:
            raise StoreError(f"{self.path} is open for reading only")

    # -- writing ----------------------------------------------------------------------------

    def update(self, **changes: Any) -> Manifest:
        """Change manifest fields on disk and in memory, and return the manifest.

        Raises:
            StoreError: If the manifest cannot be written.
        """
        self._writable()
        manifest = self._manifest.changed(**changes)
        write_manifest(self.path, manifest)
        self._manifest, self._status = manifest, manifest.status
        return manifest

    def append_round(self, record: RoundRecord) -> int:
        """Store a measured step like `append_rounds`, and return its number, counted from 1."""
        return self.append_rounds([record])

    def append_rounds(self, records: Sequence[RoundRecord]) -> int:
        """Store all measured steps or none of them, and return the last step's number.

        After the call, the steps are safe if the process is killed.

        Raises:
            StoreError: If the disk is full. All earlier steps are preserved.
        """
        self._writable()
        first, last = self.steps + 1, self.steps + len(records)
        tables = tables_of(first, records)
        for number, record in enumerate(records, first):
            if record.result.raw:
                self._write_raw(number, record.result.raw)
        for name in TABLE_NAMES:
            self._files[name].write(first, last, tables[name])
        self._steps = last
        self._tables.clear()
        return last

    def _write_raw(self, number: int, raw: Mapping[str, object]) -> None:
        """Store the load generator's output for a step, for cross-checks."""
        folder = self.path / "raw"
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise store_error(error, folder) from error
        text = json.dumps(raw, default=str).encode()
        write_atomically(folder / f"{number:06d}.json.gz", gzip.compress(text, mtime=0))

    def finish(self, status: Status, **changes: Any) -> None:
        """End the session by writing the status, merging the parts, and releasing the lock.

        A complete run's checkpoints are removed. Runs that are not complete can be resumed.

        Args:
            status: New status of the run.
            changes: Further changes to the manifest.

        Raises:
            StoreError: If the disk is full. The status is written before the merge, so an unmerged
                run has the same content.
        """
        self.update(status=status, **changes)
        self._settle()
        self.close()

    # -- reading ----------------------------------------------------------------------------

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> pa.Table:
        """Run an SQL query over the tables in `TABLE_NAMES` (see tables.py for the columns).

        Raises:
            StoreError: If a file is damaged or the query is invalid.
        """
        tables: Mapping[str, pa.Table] = {
            name: self.table(name) for name in TABLE_NAMES if name in sql
        }
        return db.query(sql, tables, parameters)

    def table(self, name: TableName) -> pa.Table:
        """Return a complete table.

        Raises:
            StoreError: If the table is damaged.
        """
        if name not in self._tables:
            self._tables[name] = self._files[name].read(self.steps)
        return self._tables[name]

    def rows_after(
        self, name: TableName, step: int, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Return a table's rows after step `step`.

        Args:
            name: Table name.
            step: Number of the step.
            columns: Columns to return if they exist, including `seq` (default: all columns).

        Raises:
            StoreError: If the table is damaged.
        """
        return self._files[name].read(self.steps, after=step, columns=columns)

    def merged_rows(self, name: TableName) -> int:
        """Return the row count of a table's merged file, from its metadata.

        Raises:
            StoreError: If the file is damaged.
        """
        return self._files[name].rows()

    def rounds(self) -> pa.Table:
        """Return the `rounds` table in step order."""
        return self.table("rounds").sort_by("seq")

    def intervals(self) -> pa.Table:
        """Return the series of all steps in chronological order."""
        return self.query("select * from intervals order by seq, end_ns, job, operation")

    def histogram(
        self,
        *,
        phase: str | None = None,
        steps: Iterable[int] | None = None,
        operation: str | None = None,
        job: int | None = None,
        kind: str = "service",
    ) -> Histogram | None:
        """Return the merged latencies of steps, jobs and operations, or None without latencies.

        Flushes are included only if `operation` is "flush". `steps` holds step numbers returned by
        `append_round`.
        """
        columns = {"phase": phase, "operation": operation, "job": job, "kind": kind}
        return self._merged(lambda label: None, columns, steps).get(None)

    def histograms_by_step(
        self, *, phase: str | None = None, operation: str | None = None, kind: str = "service"
    ) -> dict[int, Histogram]:
        """Return each step's merged histogram, by step number, if the step has a histogram."""
        columns = {"phase": phase, "operation": operation, "kind": kind}
        return self._merged(lambda label: label["seq"], columns)

    def histograms_by_job(self, step: int, *, kind: str = "service") -> dict[str, Histogram]:
        """Return each job's histogram for a step, by job name, with all operations merged."""
        columns = {"operation": None, "kind": kind}
        return self._merged(lambda label: label["job_name"], columns, [step])

    def histograms_by_operation(
        self, steps: Iterable[int], *, kind: str = "service"
    ) -> dict[tuple[int, str], Histogram]:
        """Return the merged histograms of the given steps by (job number, operation).

        Flushes have "flush" as their operation.
        """
        return self._merged(lambda label: (label["job"], label["operation"]), {"kind": kind}, steps)

    def histograms_by_cell(self, *, kind: str) -> dict[tuple[int, int, str], Histogram]:
        """Return the histograms by (step number, job number, operation)."""
        return self._merged(
            lambda label: (label["seq"], label["job"], label["operation"]), {"kind": kind}
        )

    @property
    def attributes_latency(self) -> bool:
        """`True` if the drive attributed latencies to causes."""
        return cause_column(next(iter(causes()))) in self.table("histograms").column_names

    def latency_causes(
        self, steps: Iterable[int], *, by: Literal["label", "job"] = "label"
    ) -> dict[tuple[Any, str], LatencyCauses]:
        """Return the causes of the steps' service times, or empty if they were not recorded.

        Each key is (step label or job number, operation), where `None` as label or number covers
        all labels or numbers.
        """
        if not self.attributes_latency:
            return {}
        # A run may predate a latency cause, whose time is then 0.
        stored = set(self.table("histograms").column_names)
        sums = ", ".join(
            f"{f'sum({column})' if (column := cause_column(c)) in stored else 0}::ubigint as {c}"
            for c in causes()
        )
        rows = self.query(
            f"select {by}, operation, lower_ns, any_value(upper_ns) as upper_ns, "
            f"sum(count)::ubigint as ios, {sums} "
            "from histograms join rounds using (seq) "
            f"where {cause_column(next(iter(causes())))} is not null "
            "and seq in (select unnest(?::int[])) "
            f"group by grouping sets (({by}, operation, lower_ns), (operation, lower_ns)) "
            f"order by {by} nulls first, operation, lower_ns",
            [[int(step) for step in steps]],
        )
        keys = list(zip(*(rows[name].to_pylist() for name in (by, "operation")), strict=True))
        merged = {}
        for key, group in groupby(range(len(keys)), key=keys.__getitem__):
            numbers = list(group)
            part = rows.slice(numbers[0], len(numbers))
            merged[key] = LatencyCauses.of({n: part[n].to_numpy() for n in part.column_names[2:]})
        return merged

    def _merged(
        self,
        key: Callable[[Mapping[str, Any]], K],
        columns: Mapping[str, str | int | None],
        steps: Iterable[int] | None = None,
    ) -> dict[K, Histogram]:
        """Return the histograms with these values in `columns`, merged by `key`.

        `None` matches any value; for `operation`, it matches any I/O.
        """
        chosen = [pc.field(name) == value for name, value in columns.items() if value is not None]
        if steps is not None:
            chosen.append(pc.field("seq").isin([int(step) for step in steps]))
        if "operation" in columns and columns["operation"] is None:
            chosen.append(pc.field("operation").isin(OPERATION_NAMES))
        histograms = self.table("histograms")
        if chosen:
            histograms = histograms.filter(reduce(and_, chosen))
        histograms = histograms.sort_by([(name, "ascending") for name in HISTOGRAM_KEYS])
        merged: dict[K, Histogram] = {}
        for label, histogram in rebuild_histograms(histograms):
            if key(label) in merged:
                merged[key(label)].merge(histogram)
            else:
                merged[key(label)] = histogram
        return merged


# -- parts -----------------------------------------------------------------------------------------

# Table files. During the run, each part file holds one or more steps; afterwards, a single merged
# file holds all steps.
#
# The part file `rounds/000042.parquet` contains the rows of step 42, `rounds/000043-000049.parquet`
# contains those of steps 43 to 49, and `rounds.parquet` contains those of all steps up to the
# number in its metadata. Each step is read exactly once, even after a crash. Readers ignore part
# files that the merged file covers, and part files of unfinished steps (the `rounds` part is
# written last and completes its steps).

COVERED_KEY = b"writecliff.steps"
VALUE_BYTES = 16  # Memory per value while a table is read and joined.
SMALL_BYTES = 1 << 28  # Size below which available memory is not checked.
_NUMBER = re.compile(rb"\d{1,9}")
_PART = re.compile(r"(\d{6,})(?:-(\d{6,}))?\.parquet")
_MERGED_FORMAT = {"compression": "zstd", "compression_level": 3}
# For few rows, this method takes a third of the time, which matters when a run merges thousands of
# part files.
_PART_FORMAT = {"compression": "none", "use_dictionary": False, "write_statistics": False}


class PartedTable:
    """A table in the run directory `folder`, stored as parts and a merged file."""

    def __init__(self, folder: Path, name: TableName) -> None:
        """Refer to the table `name` in a run directory."""
        self.merged = folder / f"{name}.parquet"
        self.folder = folder / name
        self._name = name
        self._schema = SCHEMAS[name]
        # Part files that this object has written, by first and last step.
        self._written: dict[tuple[int, int], pa.Table] = {}
        self._merged_to: int | None = None  # Last step in the file that this object merged.
        # Merged file whose footer has been read but whose rows have not.
        self._verified: Any = None

    def _parts(self) -> dict[int, int]:
        """Return the last step of each part, by the part's first step."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return {}
        matches = filter(None, map(_PART.fullmatch, names))
        return {int(match[1]): int(match[2] or match[1]) for match in matches}

    def _part(self, first: int, last: int) -> Path:
        steps = f"{first:06d}" if first == last else f"{first:06d}-{last:06d}"
        return self.folder / f"{steps}.parquet"

    def _merged(self, columns: Sequence[str] | None = None) -> tuple[int, pa.Table]:
        """Return the merged file's last step and rows, or 0 and no rows if the file is missing."""
        file, self._verified = self._verified, None
        try:
            table = with_types(self._name, _read(self.merged, columns, file), self.merged)
        except FileNotFoundError:
            return 0, self._schema.empty_table()
        return _covered(table.schema.metadata, self.merged), table

    def _rows_of(self, first: int, last: int, columns: Sequence[str] | None) -> pa.Table:
        """Return the rows of a part."""
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
        """Return the rows of the parts whose steps are after `after` and `covered`, up to `last`.

        Raises:
            FileNotFoundError: If a part is missing.
        """
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
        """Return the table's last step, whether merged or not."""
        ends = (
            self._parts().values()
        )  # The part files are listed first, because a writer deletes them after merging.
        return max([self._covered(), *ends])

    def _covered(self) -> int:
        """Return the last step in the merged file, or 0 without a merged file."""
        try:
            with _opened(self.merged) as file:
                self._verified = file
                return _covered(file.metadata.metadata, self.merged)
        except FileNotFoundError:
            return 0

    def rows(self) -> int:
        """Return the merged file's row count without reading its rows.

        Raises:
            StoreError: If the file is damaged.
        """
        try:
            return int(pq.read_metadata(self.merged).num_rows)
        except FileNotFoundError:
            return 0
        except (OSError, pa.ArrowException) as error:
            raise damaged(self.merged, str(error)) from None

    def read(self, last: int, *, after: int = 0, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of steps after `after`, up to `last`.

        A column missing from some files is null in those files' rows.

        Args:
            last: Last step to read.
            after: Step before the first step to read.
            columns: Columns to return if they exist, including `seq` (default: all columns).

        Raises:
            StoreError: If a file is missing, unreadable or damaged.
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
                continue  # A writer has just merged this part file.
            if covered > last:  # The run continued after the reader opened it.
                merged = merged.filter(pc.field("seq") <= last)
            nothing = self._schema.empty_table()
            if columns is not None:
                nothing = nothing.select([n for n in self._schema.names if n in columns])
                merged = merged.select([n for n in merged.column_names if n in columns])
            tables = [nothing, merged, *parts]
            try:
                whole = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
            except pa.ArrowException as error:  # The columns have incompatible types.
                raise damaged(self.merged, _one_line(error)) from None
            if after:
                whole = whole.filter(pc.field("seq") > after)
            return checked(self._name, whole.replace_schema_metadata(None), self.merged)

    def write(self, first: int, last: int, table: pa.Table) -> None:
        """Store the rows of steps `first` to `last` as a part, if the table requires a part."""
        if self._name in OPTIONAL_TABLES and not table.num_rows:
            return
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise store_error(error, self.folder) from error
        write_atomically(self._part(first, last), _parquet(table, last, _PART_FORMAT))
        self._written[first, last] = table

    def tidy(self, last: int) -> None:
        """Remove the remains of a crash, which are temporary files and invalid parts."""
        remove_temporaries(self.folder)
        if parts := self._parts():
            covered = self._covered() if self._merged_to is None else self._merged_to
            for first, end in parts.items():
                if end > last or end <= covered:
                    self._part(first, end).unlink(missing_ok=True)
        with suppress(OSError):  # The folder is absent or not empty.
            self.folder.rmdir()

    def merge(self, last: int) -> None:
        """Merge steps 1 to `last`, and remove the parts if `tidy` is set."""
        if self._parts():
            write_atomically(self.merged, _parquet(self.read(last), last, _MERGED_FORMAT))
            self._written.clear()
            self._merged_to, self._verified = last, None


def _read(path: Path, columns: Sequence[str] | None, verified: Any = None) -> pa.Table:
    """Return a file's rows; the file may have been `verified` before.

    Raises:
        FileNotFoundError: If the file does not exist.
        StoreError: If the file is unreadable or damaged.
    """
    try:
        if verified is not None:
            return verified.read(columns, use_threads=False)
        with _opened(path) as file:
            return file.read(columns, use_threads=False)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise damaged(path, _one_line(error)) from error


def _covered(metadata: Mapping[bytes, bytes] | None, path: Path) -> int:
    """Return the number of steps stated in a file's metadata.

    Raises:
        StoreError: If the metadata are damaged.
    """
    text = (metadata or {}).get(COVERED_KEY, b"")
    if not _NUMBER.fullmatch(text):
        raise damaged(
            path, f"the file's metadata do not contain the number of steps ({COVERED_KEY!r})"
        )
    return int(text)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open and verify a file.

    Raises:
        FileNotFoundError: If the file does not exist.
        StoreError: If the file is unreadable or damaged.
    """
    try:
        data = read_regular(path)
        check_parquet(path, data)
        # `read_table` would take several times as long for a small file.
        file = pq.ParquetFile(pa.BufferReader(data))
        _check_size(file.metadata, path)
        yield file
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise damaged(path, _one_line(error)) from error


def _check_size(metadata: Any, path: Path) -> None:
    """Check that the rows fit in memory, because even a small file can claim billions of rows.

    Raises:
        StoreError: If the rows require more memory than the machine has.
    """
    bytes_needed = metadata.num_rows * metadata.num_columns * VALUE_BYTES
    if bytes_needed > SMALL_BYTES and bytes_needed > (available := available_memory_bytes()):
        raise StoreError(
            f"{path}: the table's {metadata.num_rows:,} rows require {bytes_needed / 1e9:.3g} "
            f"GB of memory; "
            f"this machine has {available / 1e9:.3g} GB"
        )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _parquet(table: pa.Table, last: int, options: Mapping[str, object]) -> bytes:
    metadata = {COVERED_KEY: str(last).encode(), PARQUET_KEY: NO_DIGEST}
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), sink, **options)
    return seal_parquet(sink.getvalue())
