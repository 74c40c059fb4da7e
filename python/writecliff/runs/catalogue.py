"""Run catalogue with one row per run in a store, in a single Parquet file in the store's root.

The catalogue is derived from the run directories, which are authoritative. Each refresh compares
the modification times of all runs with the times recorded in the catalogue, and rereads changed
runs. The catalogue file is always replaced as a whole, so readers do not need a lock. Writers take
a lock, and merge the rows that they have read into the latest file. A damaged catalogue, or one
from another version, is rebuilt. If the file cannot be written, the catalogue remains in memory.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.errors import StoreError, WritecliffError
from writecliff.procedures.registry import PROCEDURES, USER_LOADS
from writecliff.report.kept_figures import (
    KEPT_NAME,
    figures_mapping,
    manifest_digest,
    parse_kept_figures,
)
from writecliff.runs.columns import (
    CATALOGUE_TABLES,
    DIGEST,
    FIGURES,
    HAS_FIGURES,
    RUNS,
    STEP_TABLES,
    TAGS,
    TOKEN,
    UNENDED,
)
from writecliff.runs.place import Place, StoredRun
from writecliff.runs.tags import TagsError, read_tags
from writecliff.store.checksums import check_parquet_file
from writecliff.store.db import Views, views
from writecliff.store.manifest import MANIFEST_NAME, Manifest, parse_manifest

if TYPE_CHECKING:
    import pyarrow as pa

FILE_NAME = "catalogue-1.parquet"  # Catalogue file name; the number is the version of the columns.
Progress = Callable[[int, int], None]  # Callback with the number of runs read so far and the total.
_STATE = f"select run, {TOKEN}, {HAS_FIGURES}, {UNENDED}, status from catalogue"


@dataclass(frozen=True)
class Changes:
    """Result of a refresh: the run count, the runs read again, and the deleted runs."""

    runs: int
    read: Sequence[str] = ()
    gone: Sequence[str] = ()


def unseen(done: int, total: int) -> None:
    """Ignore progress."""


class Catalogue:
    """Catalogue of a run store. Call `refresh` before `opened`, or call only `current`."""

    def __init__(self, place: Place, *, ours: bool = False) -> None:
        """Create the catalogue for a store.

        Args:
            place: Run store to catalogue.
            ours: `True` if the SQL does not come from a user, which lets the database open faster.
        """
        self.place = place
        self._ours = ours
        # Catalogue in memory, used if the file cannot be written.
        self._table: pa.Table | None = None
        # File content and the table read from it.
        self._loaded: tuple[bytes, pa.Table] | None = None

    def refresh(
        self, *, figures: bool = False, rebuild: bool = False, progress: Progress = unseen
    ) -> Changes:
        """Update the catalogue to match the run directories.

        Args:
            figures: `True` to also compute the headline figures of runs without stored figures,
                which takes about 0.1 s per run.
            rebuild: `True` to read all runs again.
            progress: Function called after each run has been read.

        Raises:
            StoreError: If the store cannot be listed.
        """
        state = {}
        with suppress(StoreError, OSError):  # If no catalogue is readable, every run counts as new.
            if not rebuild:
                with self.opened() as database:
                    state = _state_of(database)
        return self._bring(state, figures=figures, progress=progress)

    @contextmanager
    def current(
        self, *, figures: bool = False, allow_files: bool = False, progress: Progress = unseen
    ) -> Iterator[Views]:
        """Refresh the catalogue and open it, in a single step if no run has changed.

        Raises:
            StoreError: If the store cannot be listed or the catalogue is damaged.
        """
        with ExitStack() as stack:
            database, state = None, {}
            with suppress(StoreError, OSError):
                database = stack.enter_context(self.opened(allow_files=allow_files))
                state = _state_of(database)
            changes = self._bring(state, figures=figures, progress=progress)
            if database is None or not state or changes.read or changes.gone:
                stack.close()
                database = stack.enter_context(self.opened(allow_files=allow_files))
            yield database

    def _bring(
        self, state: Mapping[str, tuple[Any, ...]], *, figures: bool, progress: Progress
    ) -> Changes:
        """Update the catalogue, given its present `state`."""
        stored = {run.run: run for run in self.place.find()}
        stale = [run for run in stored.values() if self._is_stale(run, state, figures)]
        gone = [run for run in state if run not in stored]
        if not stored and not state:  # An empty store needs no catalogue file.
            self._table = self._merged(None, (), set())
        elif stale or gone:
            rows = self._read(stale, figures=figures, progress=progress)
            self._merge(rows, {*gone, *(run.run for run in stale)}, anew=not state)
        return Changes(len(stored), [run.run for run in stale], gone)

    def complete(self, runs: Sequence[str]) -> None:
        """Add the headline figures of those `runs` whose figures are missing."""
        rows = {row["run"]: row for row in self._rows(set(runs)) if not row[HAS_FIGURES]}
        if rows:
            self._merge([with_figures(self.place, row) for row in rows.values()], {*rows})

    def _rows(self, runs: set[str]) -> list[Entry]:
        """Return the catalogue rows of those `runs` that the catalogue contains."""
        import pyarrow as pa
        import pyarrow.compute as pc

        table = self._load()
        if table is None:
            return []
        names = pa.array(sorted(runs), pa.string())
        return [dict(row) for row in table.filter(pc.is_in(table["run"], names)).to_pylist()]

    def _is_stale(
        self, run: StoredRun, state: Mapping[str, tuple[Any, ...]], figures: bool
    ) -> bool:
        entry = state.get(run.run)
        if entry is None or not run.token or entry[0] != run.token:
            return True
        _, has_figures, unended, status = entry
        if unended and self.place.is_running(run.run) is not (status == "running"):
            return True
        return figures and not has_figures and status != "damaged"

    def _read(
        self, stale: Sequence[StoredRun], *, figures: bool, progress: Progress
    ) -> list[Entry]:

        before = {row["run"]: row for row in self._rows({run.run for run in stale})}
        rows = []
        for number, run in enumerate(stale, 1):
            row = read_entry(self.place, run, before.get(run.run))
            if row is not None:
                rows.append(with_figures(self.place, row) if figures else row)
            progress(number, len(stale))
        return rows

    # -- the file -----------------------------------------------------------------------------

    @contextmanager
    def opened(self, *, allow_files: bool = False) -> Iterator[Views]:
        """Open the views `runs`, `figures` and `tags` for SQL queries.

        Raises:
            StoreError: If the catalogue does not exist or is damaged.
        """
        tables = (*CATALOGUE_TABLES, *STEP_TABLES)
        with ExitStack() as stack:
            database = stack.enter_context(
                views(ours=self._ours, allow_files=allow_files, suggested=tables)
            )
            path = None if self._table is not None else self.place.saved(FILE_NAME)
            if path is not None:
                try:
                    check_parquet_file(path)
                    database.add_files("catalogue", [stack.enter_context(path.open("rb"))])
                except OSError as error:
                    raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
            else:
                table = self._table if self._table is not None else self._load()
                if table is None:
                    raise StoreError(
                        f"{self.place.location} does not contain a catalogue",
                        hint="create the catalogue with `writecliff runs index`",
                    )
                database.add_table("catalogue", table)
            _add_views(database)
            yield database

    def _load(self) -> pa.Table | None:
        """Return the saved table, or None if it is missing or damaged."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        from writecliff.store.checksums import check_parquet

        data = self.place.load(FILE_NAME)
        if data is None:
            return self._table
        if self._loaded is not None and self._loaded[0] == data:
            return self._loaded[1]
        try:
            check_parquet(Path(FILE_NAME), data)
            table = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
        except (StoreError, pa.ArrowException, OSError):
            return None
        if not table.schema.equals(_schema()):
            return None
        self._loaded = data, table
        return table

    def _merge(self, rows: Sequence[Entry], replaced: set[str], *, anew: bool = False) -> None:
        """Replace the rows of the `replaced` runs in the file by `rows`."""
        import pyarrow as pa

        try:
            with self.place.saving():
                table = self._merged(None if anew else self._load(), rows, replaced)
                self.place.save(FILE_NAME, _sealed(table))
                self._table = None
        except StoreError:  # The store is read-only.
            self._table = self._merged(None if anew else self._load(), rows, replaced)
        except pa.ArrowException as error:
            raise StoreError(f"cannot build the catalogue: {error}") from error

    @staticmethod
    def _merged(before: pa.Table | None, rows: Sequence[Entry], replaced: set[str]) -> pa.Table:
        import pyarrow as pa
        import pyarrow.compute as pc

        schema = _schema()
        new = pa.Table.from_pylist([*rows], schema=schema)
        if before is None:
            return new
        names = pa.array(sorted(replaced | {row["run"] for row in rows}), pa.string())
        unchanged = before.filter(pc.invert(pc.is_in(before["run"], names)))
        return pa.concat_tables([unchanged, new]).combine_chunks()


def _state_of(database: Views) -> dict[str, tuple[Any, ...]]:
    """Return each run's token, flags and status from the catalogue."""
    return {run: tuple(entry) for run, *entry in database.rows(_STATE)[1]}


def _add_views(database: Views) -> None:
    columns = ", ".join(f'"{column.name}"' for column in RUNS)
    database.add_view("runs", f"select {columns} from catalogue")
    columns = ", ".join(f'f."{column.name}"' for column in FIGURES[1:])
    database.add_view(
        "figures",
        f"select run, {columns} from (select run, unnest(figures) as f from catalogue)",
    )
    database.add_view("tags", f"select run, unnest(tags) as {TAGS[1].name} from catalogue")


def _schema() -> pa.Schema:
    import pyarrow as pa

    kinds = {"varchar": pa.string(), "bigint": pa.int64(), "double": pa.float64(),
             "boolean": pa.bool_(), "timestamp": pa.timestamp("us"),
             "varchar[]": pa.list_(pa.string())}  # fmt: skip
    figure = pa.struct([(column.name, kinds[column.kind]) for column in FIGURES[1:]])
    return pa.schema(
        [
            *((column.name, kinds[column.kind]) for column in RUNS),
            ("figures", pa.list_(figure)),
            (TOKEN, pa.string()),
            (DIGEST, pa.string()),
            (HAS_FIGURES, pa.bool_()),
            (UNENDED, pa.bool_()),
        ]
    )


def _sealed(table: pa.Table) -> bytes:
    import io

    import pyarrow.parquet as pq

    from writecliff.store.checksums import NO_DIGEST, PARQUET_KEY, seal_parquet

    sink = io.BytesIO()
    sealed = table.replace_schema_metadata({PARQUET_KEY: NO_DIGEST})
    pq.write_table(sealed, sink, compression="zstd", compression_level=1)
    return seal_parquet(sink.getvalue())


# -- catalogue entries -----------------------------------------------------------------------------

# Construction of a catalogue entry from a run directory. An unreadable run does not raise an error.
# The catalogue entry of an unreadable run has the status "damaged" and the reason.

Entry = dict[str, Any]
# Other runs that are not tests are named after their procedure.
_KINDS = {"trace_replay": "replay"}
_LONG_OPTION = 400  # JSON characters
_SUMMED = ("verdict", "stamp", "steps", "device_time_ns", "host_write_bytes")


def read_entry(
    place: Place, stored: StoredRun, before: Mapping[str, Any] | None = None
) -> Entry | None:
    """Read a run's row, or return None if the run was deleted.

    `before` is the run's existing row in the catalogue. The figures in `before` are reused if the
    manifest is unchanged.
    """
    entry = _nothing(stored)
    if not stored.has_manifest:
        return {**entry, "status": "damaged", "damage": f"it has no {MANIFEST_NAME}"}
    try:
        data = place.read(stored.run, MANIFEST_NAME)
        entry |= _of_manifest(place, stored, data)
        entry["tags"] = read_tags(place, stored.run)
        entry |= _saved_figures(place, stored.run, entry[DIGEST], before)
    except FileNotFoundError:
        return None
    except TagsError as error:
        entry |= {"damage": _reason(error, place, stored.run)}
    except WritecliffError as error:
        entry |= {"status": "damaged", "damage": _reason(error, place, stored.run)}
    return _checked(entry, stored)


def with_figures(place: Place, entry: Mapping[str, Any]) -> Entry:
    """Return the row with the headline figures, which are computed as for the report."""
    if entry[HAS_FIGURES] or entry["status"] == "damaged":
        return dict(entry)
    from writecliff.report import report_of
    from writecliff.store.rundir import RunDirectory

    run = entry["run"]
    try:
        with place.as_folder(run) as folder:
            report = report_of(RunDirectory.open(folder))
            made = figures_mapping(report)
    except WritecliffError as error:
        reason = _reason(error, place, run)
        if str(error).startswith("damaged: "):
            return {**entry, "status": "damaged", "damage": reason}
        ended = entry["status"] == "complete"  # An incomplete run may have no measurements.
        without = f"no figures: {reason}" if ended else None
        return {**entry, HAS_FIGURES: not entry[UNENDED], "damage": without}
    except Exception as error:  # Files written by another version may have any content.
        return {**entry, HAS_FIGURES: True, "damage": f"no figures: {error!r}"}
    return {**entry, **_of_figures(made), HAS_FIGURES: not entry[UNENDED]}


def _nothing(stored: StoredRun) -> Entry:
    entry: Entry = {column.name: None for column in RUNS}
    return entry | {
        "run": stored.run,
        "name": stored.run.rpartition("/")[2],
        "member_of": stored.member_of,
        "tags": [],
        "figures": [],
        TOKEN: stored.token,
        DIGEST: "",
        HAS_FIGURES: False,
        UNENDED: False,
    }


def _checked(entry: Entry, stored: StoredRun) -> Entry:
    """Return the row if all values have their column's type, otherwise a damaged run's row.

    A manifest may have been edited by hand.
    """
    for column in RUNS:
        value = entry[column.name]
        if value is None or column.name == "tags":
            continue
        if column.kind == "varchar" and isinstance(value, str):
            entry[column.name] = value.encode("utf-8", "backslashreplace").decode()
        elif not _fits(value, column.kind):
            why = f"{column.name} is {value!r} in its {MANIFEST_NAME}"
            return _nothing(stored) | {"status": "damaged", "damage": why[:_LONG_OPTION]}
    return entry


def _fits(value: Any, kind: str) -> bool:
    if kind == "bigint":
        return type(value) is int and -(2**63) <= value < 2**63
    kinds: dict[str, Any] = {"double": (int, float), "boolean": bool, "timestamp": datetime}
    return kind in kinds and isinstance(value, kinds[kind])


def _of_manifest(place: Place, stored: StoredRun, data: bytes) -> Entry:
    manifest = parse_manifest(data, place.path_of(stored.run) / MANIFEST_NAME)
    status: str = manifest.status
    unended = status == "running"
    if unended and not place.is_running(stored.run):
        status = "interrupted"
    device, versions = manifest.device, manifest.versions
    names = ("serial", "firmware", "capacity_bytes", "interface", "simulated", "scale",
             "device_hash", "target")  # fmt: skip
    return {
        **{name: getattr(device, name) for name in names},
        **{name: getattr(manifest, name) for name in ("title", "edition", "ended_by", "reason")},
        "kind": _kind(manifest.procedure),
        "test": manifest.procedure,
        "status": status,
        "drive": " ".join(filter(None, (device.vendor, device.model))),
        "seed": manifest.seed,
        "options_json": json.dumps(_short(manifest)),
        "command": shlex.join(map(str, manifest.command)),
        "created_utc": _utc(manifest.created),
        "updated_utc": _utc(manifest.updated),
        "limits_met": _limits_met(manifest),
        "warnings": len(manifest.warnings),
        "writecliff_version": versions.get("writecliff"),
        "fio_version": None if device.simulated else versions.get("fio"),
        "kernel": versions.get("kernel"),
        "cpu": manifest.host.get("cpu"),
        UNENDED: unended,
        DIGEST: manifest_digest(data),
    }


def _kind(procedure: str) -> str:
    if procedure in USER_LOADS:
        return _KINDS.get(procedure, procedure)
    entry = PROCEDURES.get(procedure)
    return "campaign" if entry is not None and entry.campaign else "test"


def _short(manifest: Manifest) -> Mapping[str, Any]:
    """Return the options; for workloads, replays and served drives, only short options."""
    if manifest.procedure not in USER_LOADS:
        return manifest.options
    return {k: v for k, v in manifest.options.items() if len(json.dumps(v)) <= _LONG_OPTION}


def _limits_met(manifest: Manifest) -> bool | None:
    if not manifest.expectations:
        return None
    return all(item.get("result") == "met" for item in manifest.expectations)


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)


def _saved_figures(place: Place, run: str, digest: str, before: Mapping[str, Any] | None) -> Entry:
    """Return the run directory's figures or, failing that, the catalogue's figures."""
    try:
        data = place.read(run, KEPT_NAME)
    except FileNotFoundError:
        saved = None
    else:
        saved = parse_kept_figures(data, place.path_of(run) / KEPT_NAME, digest)
    if saved is not None:
        try:
            return {**_of_figures(saved), HAS_FIGURES: True}
        except (KeyError, TypeError, AttributeError):
            return {}
    if before is not None and before[HAS_FIGURES] and before[DIGEST] == digest:
        return {name: before[name] for name in (*_SUMMED, "figures", HAS_FIGURES)}
    return {}


def _of_figures(made: Mapping[str, Any]) -> Entry:
    columns = [column.name for column in FIGURES[1:]]
    rows = []
    for item in made["figures"]:
        interval = item["interval"] or {}
        row = {**item, "low": interval.get("low"), "high": interval.get("high"),
               "interval_of": interval.get("of")}  # fmt: skip
        rows.append({name: row[name] for name in columns})
    return {**{name: made[name] for name in _SUMMED}, "figures": rows}


def _reason(error: WritecliffError, place: Place, run: str) -> str:
    """Return the error text, excluding the run's path and "damaged: "."""
    text = str(error).replace(f"{place.path_of(run)}/", "")
    return text.removeprefix("damaged: ")
