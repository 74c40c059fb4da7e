"""`RunDirectory`: one run on disk, for the one process that writes it and any number of readers.

Steps are stored as a part of every table (see parts.py), each written to a temporary name and
renamed, that of `rounds` last: a kill loses at most the steps in progress. `finish` merges the
parts. A reader sees the steps that were complete when it first looked, even if the run goes on.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from itertools import groupby
from operator import and_
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from writecliff.errors import StoreError
from writecliff.latency_causes import LatencyCauses, causes
from writecliff.store import db
from writecliff.store.files import (
    FolderLock,
    claim_directory,
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
from writecliff.store.parts import PartedTable
from writecliff.store.record import RoundRecord
from writecliff.store.tables import (
    HISTOGRAM_KEYS,
    OPERATION_NAMES,
    TABLE_NAMES,
    TableName,
    cause_column,
    rebuild_histograms,
    tables_of,
)

if TYPE_CHECKING:
    from writecliff._native import Histogram

K = TypeVar("K")

CHECKPOINT_GLOB = "checkpoint-*.wcs"  # saved drives; a complete run needs none


class RunDirectory:
    """Use `create` or `open`; a context manager that releases the lock."""

    def __init__(
        self, path: Path, manifest: Manifest, status: Status, lock: FolderLock | None
    ) -> None:
        self.path = path
        self._manifest = manifest
        self._status = status
        self._lock = lock
        self._files = {name: PartedTable(path, name) for name in TABLE_NAMES}
        self._steps: int | None = None  # complete steps, once they are counted
        self._tables: dict[TableName, pa.Table] = {}  # as read, of these steps

    # -- opening ----------------------------------------------------------------------------

    @classmethod
    def create(cls, path: Path, manifest: Manifest) -> Self:
        """Start a run in `path`, which must be absent or empty, and write its manifest.

        Raises ConfigError (in use), StoreError (not writable).
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
        """Open a run to read it or, with `write`, to resume it.

        If a crash kept a complete run from being merged, it is merged now, where that is possible.
        Raises ConfigError (no run there), StoreError: damaged, or (with `write`) in use by another
        process.
        """
        manifest, status = read_state(path)
        if not write:
            run = cls(path, manifest, status, None)
            if status == "complete" and any(table.folder.exists() for table in run._files.values()):
                with suppress(StoreError):  # no permission, or another process is merging it
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
        """Remove what a crash left behind; merge the parts of a run that is not going on."""
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
        """As the manifest says, except that a run without a process is not "running"."""
        return self._status

    @property
    def steps(self) -> int:
        """Complete steps in the store; for a reader, those at its first look."""
        if self._steps is None:
            self._steps = self._files["rounds"].last()
        return self._steps

    def _writable(self) -> None:
        if self._lock is None:
            raise StoreError(f"{self.path} is open for reading only")

    # -- writing ----------------------------------------------------------------------------

    def update(self, **changes: Any) -> Manifest:
        """Change fields of the manifest, on disk and here. Raises StoreError."""
        self._writable()
        manifest = self._manifest.changed(**changes)
        write_manifest(self.path, manifest)
        self._manifest, self._status = manifest, manifest.status
        return manifest

    def append_round(self, record: RoundRecord) -> int:
        """Store a measured step, as `append_rounds` does; its number, from 1."""
        return self.append_rounds([record])

    def append_rounds(self, records: Sequence[RoundRecord]) -> int:
        """Store measured steps, all of them or none; the number of the last one. On return they
        survive a kill.

        Raises StoreError (full disk); all earlier steps are kept.
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
        """The load generator's own output of a step, for cross-checks."""
        folder = self.path / "raw"
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise store_error(error, folder) from error
        text = json.dumps(raw, default=str).encode()
        write_atomically(folder / f"{number:06d}.json.gz", gzip.compress(text, mtime=0))

    def finish(self, status: Status, **changes: Any) -> None:
        """End the session with `status` (and other manifest `changes`), merge the parts, remove the
        checkpoints of a complete run, release the lock. Other runs can be opened and resumed.

        Raises StoreError if the disk is full; the status is written before the merge is tried, and
        a run that could not be merged reads the same.
        """
        self.update(status=status, **changes)
        self._settle()
        self.close()

    # -- reading ----------------------------------------------------------------------------

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> pa.Table:
        """SQL over the tables of `TABLE_NAMES` (columns: see tables.py).

        Raises StoreError for a damaged file or a query that cannot be answered.
        """
        tables: Mapping[str, pa.Table] = {
            name: self.table(name) for name in TABLE_NAMES if name in sql
        }
        return db.query(sql, tables, parameters)

    def table(self, name: TableName) -> pa.Table:
        """One of the tables, whole, as it is stored. Raises StoreError: damaged."""
        if name not in self._tables:
            self._tables[name] = self._files[name].read(self.steps)
        return self._tables[name]

    def rows_after(
        self, name: TableName, step: int, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The rows of a table that belong to steps after `step`, with all columns or those of
        `columns` that there are; `seq` must be among them. Raises StoreError: damaged."""
        return self._files[name].read(self.steps, after=step, columns=columns)

    def merged_rows(self, name: TableName) -> int:
        """How many rows the merged file of a table says that it has. Raises StoreError."""
        return self._files[name].rows()

    def rounds(self) -> pa.Table:
        """A row a step, in the order they were made."""
        return self.table("rounds").sort_by("seq")

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
        operations, merged; None if there is none. Flushes only as `operation="flush"`."""
        columns = {"phase": phase, "operation": operation, "job": job, "kind": kind}
        return self._merged(lambda label: None, columns, steps).get(None)

    def histograms_by_step(
        self, *, phase: str | None = None, operation: str | None = None, kind: str = "service"
    ) -> dict[int, Histogram]:
        """A merged histogram for every step that has one, by step number."""
        columns = {"phase": phase, "operation": operation, "kind": kind}
        return self._merged(lambda label: label["seq"], columns)

    def histograms_by_job(self, step: int, *, kind: str = "service") -> dict[str, Histogram]:
        """A histogram for each job of a step, by the job's name, with all operations merged."""
        columns = {"operation": None, "kind": kind}
        return self._merged(lambda label: label["job_name"], columns, [step])

    def histograms_by_operation(
        self, steps: Iterable[int], *, kind: str = "service"
    ) -> dict[tuple[int, str], Histogram]:
        """Return the merged histograms of some steps by (job number, operation).

        The operation of flushes is "flush".
        """
        return self._merged(lambda label: (label["job"], label["operation"]), {"kind": kind}, steps)

    def histograms_by_cell(self, *, kind: str) -> dict[tuple[int, int, str], Histogram]:
        """Return the histograms by (step number, job number, operation)."""
        return self._merged(
            lambda label: (label["seq"], label["job"], label["operation"]), {"kind": kind}
        )

    @property
    def attributes_latency(self) -> bool:
        """Whether the drive recorded what latency is spent on."""
        return cause_column(next(iter(causes()))) in self.table("histograms").column_names

    def latency_causes(
        self, steps: Iterable[int], *, by: Literal["label", "job"] = "label"
    ) -> dict[tuple[Any, str], LatencyCauses]:
        """What the service times of the chosen steps were spent on, by the label of the step or the
        number of the job (None: of all together) and the operation; empty if it was not recorded.
        """
        if not self.attributes_latency:
            return {}
        # A run may be older than a cause, whose time it then counted as nothing.
        stored = set(self.table("histograms").column_names)
        sums = ", ".join(
            f"{f'sum({column})' if (column := cause_column(c)) in stored else 0}::ubigint as {c}"
            for c in causes()
        )
        found = self.query(
            f"select {by}, operation, lower_ns, any_value(upper_ns) as upper_ns, "
            f"sum(count)::ubigint as ios, {sums} "
            "from histograms join rounds using (seq) "
            f"where {cause_column(next(iter(causes())))} is not null "
            "and seq in (select unnest(?::int[])) "
            f"group by grouping sets (({by}, operation, lower_ns), (operation, lower_ns)) "
            f"order by {by} nulls first, operation, lower_ns",
            [[int(step) for step in steps]],
        )
        keys = list(zip(*(found[name].to_pylist() for name in (by, "operation")), strict=True))
        merged = {}
        for key, group in groupby(range(len(keys)), key=keys.__getitem__):
            numbers = list(group)
            part = found.slice(numbers[0], len(numbers))
            merged[key] = LatencyCauses.of({n: part[n].to_numpy() for n in part.column_names[2:]})
        return merged

    def _merged(
        self,
        key: Callable[[Mapping[str, Any]], K],
        columns: Mapping[str, str | int | None],
        steps: Iterable[int] | None = None,
    ) -> dict[K, Histogram]:
        """Return the histograms with these values of `columns`, merged by `key`.

        None means any value; for `operation` it means any I/O.
        """
        chosen = [pc.field(name) == value for name, value in columns.items() if value is not None]
        if steps is not None:
            chosen.append(pc.field("seq").isin([int(step) for step in steps]))
        if "operation" in columns and columns["operation"] is None:
            chosen.append(pc.field("operation").isin(OPERATION_NAMES))
        found = self.table("histograms")
        if chosen:
            found = found.filter(reduce(and_, chosen))
        found = found.sort_by([(name, "ascending") for name in HISTOGRAM_KEYS])
        merged: dict[K, Histogram] = {}
        for label, histogram in rebuild_histograms(found):
            if key(label) in merged:
                merged[key(label)].merge(histogram)
            else:
                merged[key(label)] = histogram
        return merged
