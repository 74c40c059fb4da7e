"""`RunDirectory`: one run on disk, for the one process that writes it and any number of readers.

A step is stored as a part of every table (see parts.py), each written to a temporary name and
renamed, that of `rounds` last: a kill loses at most the step in progress. `finish` merges them.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from writecliff.errors import StoreError
from writecliff.store import db
from writecliff.store.files import (
    FolderLock,
    is_locked,
    remove_temporaries,
    store_error,
    write_atomically,
)
from writecliff.store.manifest import (
    MANIFEST_NAME,
    Manifest,
    Status,
    read_manifest,
    write_manifest,
)
from writecliff.store.parts import PartedTable, read_tables
from writecliff.store.record import RoundRecord
from writecliff.store.tables import (
    SCHEMAS,
    TABLE_NAMES,
    rebuild_histograms,
    tables_of,
)

if TYPE_CHECKING:
    from writecliff._native import Histogram

_READ_ATTEMPTS = 3


class RunDirectory:
    """Use `create` or `open`; a context manager that releases the lock."""

    def __init__(self, path: Path, manifest: Manifest, lock: FolderLock | None) -> None:
        self.path = path
        self._manifest = manifest
        self._lock = lock
        self._tables = {name: PartedTable(path, name) for name in TABLE_NAMES}
        self._written: int | None = None  # steps in the store, once this writer knows it
        self._last_files: list[Path] = []

    # -- opening ----------------------------------------------------------------------------

    @classmethod
    def create(cls, path: Path, manifest: Manifest) -> Self:
        """Start a run in `path`, which must be absent or empty, and write its manifest.

        Raises StoreError: not empty, not writable, in use.
        """
        if path.exists() and not path.is_dir():
            raise StoreError(f"{path} is a file, not a directory for a run")
        if path.is_dir() and any(path.iterdir()):
            raise StoreError(
                f"{path} is not empty", hint="a run needs a directory of its own; give a new one"
            )
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise store_error(error, path) from error
        lock = FolderLock(path)
        try:
            write_manifest(path, manifest)
        except BaseException:
            lock.release()
            raise
        return cls(path, manifest, lock)

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> Self:
        """Open a run to read it or, with `write`, to go on with it.

        Raises StoreError: no run, unreadable, or (with `write`) in use by another process.
        """
        if not write:
            return cls(path, read_manifest(path), None)
        if not (path / MANIFEST_NAME).exists():
            read_manifest(path)  # says what is wrong, before a lock file is made here
        lock = FolderLock(path)
        try:
            run = cls(path, read_manifest(path), lock)
            run._tidy()
        except BaseException:
            lock.release()
            raise
        return run

    def _tidy(self) -> None:
        last = self.steps
        remove_temporaries(self.path)
        for table in self._tables.values():
            table.tidy(last)

    def close(self) -> None:
        """Let other processes write. Nothing is lost by not calling it."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- state ------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def manifest(self) -> Manifest:
        return self._manifest

    @property
    def status(self) -> Status:
        """As the manifest says, except that a run nobody is running any more is interrupted."""
        status = self._manifest.status
        if status == "running" and self._lock is None and not is_locked(self.path):
            return "interrupted"
        return status

    @property
    def steps(self) -> int:
        """Complete steps in the store."""
        return self._tables["rounds"].last() if self._written is None else self._written

    def _writable(self) -> None:
        if self._lock is None:
            raise StoreError(f"{self.path} is open for reading only")

    # -- writing ----------------------------------------------------------------------------

    def update(self, **changes: Any) -> Manifest:
        """Change fields of the manifest, on disk and here. Raises StoreError."""
        self._writable()
        manifest = self._manifest.changed(**changes)
        write_manifest(self.path, manifest)
        self._manifest = manifest
        return manifest

    def append_round(self, record: RoundRecord) -> int:
        """Store a measured step; its number, from 1. On return it survives a kill.

        Raises StoreError (full disk); all earlier steps are kept.
        """
        self._writable()
        self._written = self.steps
        number = self._written + 1
        tables = tables_of(number, record)
        if record.result.raw:
            self._write_raw(number, record.result.raw)
        for name in TABLE_NAMES:
            self._tables[name].write(number, tables[name])
        self._written = number
        return number

    def _write_raw(self, number: int, raw: Mapping[str, object]) -> None:
        """The load generator's own output of a step, for cross-checks."""
        folder = self.path / "raw"
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise store_error(error, folder) from error
        text = json.dumps(raw, default=str).encode()
        write_atomically(folder / f"{number:06d}.json.gz", gzip.compress(text, mtime=0))

    def finish(self, status: Status, **changes: Any) -> None:
        """End the session with `status` (and other manifest `changes`), merge the parts, release
        the lock. A run that is interrupted or failed may be opened and gone on with.

        Raises StoreError if the disk is full; the status is written before the merge is tried, and
        a run that could not be merged reads the same.
        """
        self.update(status=status, **changes)
        last = self.steps
        for name in TABLE_NAMES:
            self._tables[name].merge(last)
        for table in self._tables.values():
            table.drop_parts()
        self.close()

    # -- reading ----------------------------------------------------------------------------

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> pa.Table:
        """SQL over the views `rounds`, `intervals` and `histograms` (columns: see tables.py).

        Raises StoreError for an unreadable file or a query that cannot be answered.
        """
        for attempt in range(_READ_ATTEMPTS):
            try:
                return db.table(sql, self._views(sql), parameters)
            except StoreError as error:
                # A writer may merge parts between the listing and the reading: list again.
                gone = not all(path.exists() for path in self._last_files)
                if not gone or attempt == _READ_ATTEMPTS - 1:
                    raise StoreError(f"{self.path}: {error}") from error
        raise AssertionError("unreachable")

    def _views(self, sql: str) -> dict[str, Sequence[Path] | pa.Table]:
        """The tables that a query names: a file once merged, else put together from the parts."""
        last = self.steps
        views: dict[str, Sequence[Path] | pa.Table] = {}
        self._last_files = []
        for name, table in self._tables.items():
            if name not in sql:
                continue
            files = table.files(last)
            self._last_files += files
            merged = files == [table.merged]
            views[name] = files if merged else read_tables(files, SCHEMAS[name])
        return views

    def rounds(self) -> pa.Table:
        """A row a step, in the order they were made."""
        return self.query("select * from rounds order by seq")

    def intervals(self) -> pa.Table:
        """The series of all steps, in the order of time."""
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
        """All latencies of the chosen steps (numbers as `append_round` gave them), jobs and
        operations, merged; None if there is none."""
        merged = None
        found = self._histograms(phase, steps, operation, job, kind)
        for _, histogram in rebuild_histograms(found):
            if merged is None:
                merged = histogram
            else:
                merged.merge(histogram)
        return merged

    def histograms_by_step(
        self, *, phase: str | None = None, operation: str | None = None, kind: str = "service"
    ) -> dict[int, Histogram]:
        """A merged histogram for every step that has one, by step number."""
        merged: dict[int, Histogram] = {}
        found = self._histograms(phase, None, operation, None, kind)
        for step, histogram in rebuild_histograms(found):
            if step in merged:
                merged[step].merge(histogram)
            else:
                merged[step] = histogram
        return merged

    def histograms_by_job(self, step: int, *, kind: str = "service") -> dict[str, Histogram]:
        """Of one step: a histogram for each of its jobs, by the job's name, operations merged."""
        found = self._histograms(None, [step], None, None, kind)
        seen = zip(
            *(found.column(n).to_pylist() for n in ("job", "job_name", "operation")), strict=True
        )
        merged: dict[str, Histogram] = {}
        # Distinct keys come in the order of the rows, as the histograms do.
        for (_, name, _), (_, histogram) in zip(
            dict.fromkeys(seen), rebuild_histograms(found), strict=True
        ):
            if name in merged:
                merged[name].merge(histogram)
            else:
                merged[name] = histogram
        return merged

    def _histograms(
        self,
        phase: str | None,
        steps: Iterable[int] | None,
        operation: str | None,
        job: int | None,
        kind: str,
    ) -> pa.Table:
        conditions = ["kind = ?"]
        parameters: list[Any] = [kind]
        chosen: Mapping[str, Any] = {"phase": phase, "operation": operation, "job": job}
        for column, value in chosen.items():
            if value is not None:
                conditions.append(f"{column} = ?")
                parameters.append(value)
        if steps is not None:
            conditions.append("seq in (select unnest(?::int[]))")
            parameters.append([int(step) for step in steps])
        where = " and ".join(conditions)
        return self.query(
            f"select * from histograms where {where} order by seq, job, operation, kind, lower_ns",
            parameters,
        )
