"""The catalogue: a row for each run of a store, in one Parquet file in the root.

It follows from the run directories and is never the truth. Each look compares what the file system
says of all runs with what it said when their rows were read, and reads those again that changed.
The file is replaced as a whole, so readers need no lock; writers merge what they have read into the
file as it is then, one after the other. A catalogue that is damaged, or of another version, is made
anew; one that cannot be written is kept in memory.
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
from writecliff.runs.place import Found, Place
from writecliff.runs.tags import TagsError, read_tags
from writecliff.store.checksums import check_parquet_file
from writecliff.store.db import Views, views
from writecliff.store.manifest import MANIFEST_NAME, Manifest, parse_manifest

if TYPE_CHECKING:
    import pyarrow as pa

FILE_NAME = "catalogue-1.parquet"  # with the version of its columns
Progress = Callable[[int, int], None]  # runs that are read, of how many
_STATE = f"select run, {TOKEN}, {HAS_FIGURES}, {UNENDED}, status from catalogue"


@dataclass(frozen=True)
class Changes:
    """What a look has found since the last one."""

    runs: int
    read: Sequence[str] = ()
    gone: Sequence[str] = ()


def unseen(done: int, total: int) -> None:
    """A `Progress` that shows nothing."""


class Catalogue:
    """The catalogue of a store. `refresh` it, then use `opened`; `ours` if no user writes the SQL
    that then asks it, which makes it quicker to open.
    """

    def __init__(self, place: Place, *, ours: bool = False) -> None:
        self.place = place
        self._ours = ours
        self._table: pa.Table | None = None  # where the file cannot be used
        self._loaded: tuple[bytes, pa.Table] | None = None  # a file and what it holds

    def refresh(
        self, *, figures: bool = False, rebuild: bool = False, progress: Progress = unseen
    ) -> Changes:
        """Bring the catalogue up to date; with `figures`, also the headline figures of runs that
        do not keep theirs, which takes a tenth of a second each. `rebuild`: from nothing.

        Raises StoreError if the store cannot be listed.
        """
        state = {}
        with suppress(StoreError, OSError):  # without one that can be read all is new
            if not rebuild:
                with self.opened() as database:
                    state = _state_of(database)
        return self._bring(state, figures=figures, progress=progress)

    @contextmanager
    def current(
        self, *, figures: bool = False, allow_files: bool = False, progress: Progress = unseen
    ) -> Iterator[Views]:
        """`refresh`, then `opened`; opened once where nothing has changed. Raises as both."""
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
        """Bring the catalogue, which says `state`, up to date."""
        found = {one.run: one for one in self.place.find()}
        stale = [one for one in found.values() if self._is_stale(one, state, figures)]
        gone = [run for run in state if run not in found]
        if not found and not state:  # nothing is written where there are no runs
            self._table = self._merged(None, (), set())
        elif stale or gone:
            rows = self._read(stale, figures=figures, progress=progress)
            self._merge(rows, {*gone, *(one.run for one in stale)}, anew=not state)
        return Changes(len(found), [one.run for one in stale], gone)

    def complete(self, runs: Sequence[str]) -> None:
        """Add the headline figures of some runs, where they are not there yet."""
        rows = {row["run"]: row for row in self._rows(set(runs)) if not row[HAS_FIGURES]}
        if rows:
            self._merge([with_figures(self.place, row) for row in rows.values()], {*rows})

    def _rows(self, runs: set[str]) -> list[Entry]:
        """The rows of some runs, as far as they are there."""
        import pyarrow as pa
        import pyarrow.compute as pc

        table = self._load()
        if table is None:
            return []
        names = pa.array(sorted(runs), pa.string())
        return [dict(row) for row in table.filter(pc.is_in(table["run"], names)).to_pylist()]

    def _is_stale(self, found: Found, state: Mapping[str, tuple[Any, ...]], figures: bool) -> bool:
        known = state.get(found.run)
        if known is None or not found.token or known[0] != found.token:
            return True
        _, has_figures, unended, status = known
        if unended and self.place.is_running(found.run) is not (status == "running"):
            return True
        return figures and not has_figures and status != "damaged"

    def _read(self, stale: Sequence[Found], *, figures: bool, progress: Progress) -> list[Entry]:

        before = {row["run"]: row for row in self._rows({one.run for one in stale})}
        rows = []
        for number, one in enumerate(stale, 1):
            row = read_entry(self.place, one, before.get(one.run))
            if row is not None:
                rows.append(with_figures(self.place, row) if figures else row)
            progress(number, len(stale))
        return rows

    # -- the file -----------------------------------------------------------------------------

    @contextmanager
    def opened(self, *, allow_files: bool = False) -> Iterator[Views]:
        """SQL over the views `runs`, `figures` and `tags`. Raises StoreError: without a catalogue,
        or damaged.
        """
        known = (*CATALOGUE_TABLES, *STEP_TABLES)
        with ExitStack() as stack:
            database = stack.enter_context(
                views(ours=self._ours, allow_files=allow_files, known=known)
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
                    raise StoreError(f"there is no catalogue in {self.place.location}")
                database.add_table("catalogue", table)
            _add_views(database)
            yield database

    def _load(self) -> pa.Table | None:
        """The table as it is saved; None without one that can be read."""
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
        """Put `rows` into the file, in place of those of the runs that are `replaced`."""
        import pyarrow as pa

        try:
            with self.place.saving():
                table = self._merged(None if anew else self._load(), rows, replaced)
                self.place.save(FILE_NAME, _sealed(table))
                self._table = None
        except StoreError:  # a store that is read only
            self._table = self._merged(None if anew else self._load(), rows, replaced)
        except pa.ArrowException as error:
            raise StoreError(f"the catalogue cannot be made: {error}") from error

    @staticmethod
    def _merged(before: pa.Table | None, rows: Sequence[Entry], replaced: set[str]) -> pa.Table:
        import pyarrow as pa
        import pyarrow.compute as pc

        schema = _schema()
        new = pa.Table.from_pylist([*rows], schema=schema)
        if before is None:
            return new
        names = pa.array(sorted(replaced | {row["run"] for row in rows}), pa.string())
        kept = before.filter(pc.invert(pc.is_in(before["run"], names)))
        return pa.concat_tables([kept, new]).combine_chunks()


def _state_of(database: Views) -> dict[str, tuple[Any, ...]]:
    """What the catalogue says of each run. Raises StoreError."""
    return {run: tuple(known) for run, *known in database.rows(_STATE)[1]}


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

# Catalogue entry of a run, read from its directory. Unreadable runs do not raise errors: their
# entry is a damaged run with the reason.

Entry = dict[str, Any]
_KINDS = {"trace_replay": "replay"}  # of what is no test; others have the name of the procedure
_LONG_OPTION = 400  # characters of JSON
_SUMMED = ("verdict", "stamp", "steps", "device_time_ns", "host_write_bytes")


def read_entry(place: Place, found: Found, before: Mapping[str, Any] | None = None) -> Entry | None:
    """The row of a run; None if it has gone. `before` is the row that the catalogue had, whose
    figures stay while the manifest does.
    """
    entry = _nothing(found)
    if not found.has_manifest:
        return {**entry, "status": "damaged", "damage": f"it has no {MANIFEST_NAME}"}
    try:
        data = place.read(found.run, MANIFEST_NAME)
        entry |= _of_manifest(place, found, data)
        entry["tags"] = read_tags(place, found.run)
        entry |= _kept(place, found.run, entry[DIGEST], before)
    except FileNotFoundError:
        return None
    except TagsError as error:
        entry |= {"damage": _reason(error, place, found.run)}
    except WritecliffError as error:
        entry |= {"status": "damaged", "damage": _reason(error, place, found.run)}
    return _checked(entry, found)


def with_figures(place: Place, entry: Mapping[str, Any]) -> Entry:
    """The row with its figures, made from the run as its report would."""
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
        ended = entry["status"] == "complete"  # others may have measured nothing
        without = f"no figures: {reason}" if ended else None
        return {**entry, HAS_FIGURES: not entry[UNENDED], "damage": without}
    except Exception as error:  # a run that another version wrote may hold anything
        return {**entry, HAS_FIGURES: True, "damage": f"no figures: {error!r}"}
    return {**entry, **_of_figures(made), HAS_FIGURES: not entry[UNENDED]}


def _nothing(found: Found) -> Entry:
    entry: Entry = {column.name: None for column in RUNS}
    return entry | {
        "run": found.run,
        "name": found.run.rpartition("/")[2],
        "member_of": found.member_of,
        "tags": [],
        "figures": [],
        TOKEN: found.token,
        DIGEST: "",
        HAS_FIGURES: False,
        UNENDED: False,
    }


def _checked(entry: Entry, found: Found) -> Entry:
    """The row, if all of it is what its columns hold: a manifest may say anything."""
    for column in RUNS:
        value = entry[column.name]
        if value is None or column.name == "tags":
            continue
        if column.kind == "varchar" and isinstance(value, str):
            entry[column.name] = value.encode("utf-8", "backslashreplace").decode()
        elif not _fits(value, column.kind):
            why = f"{column.name} is {value!r} in its {MANIFEST_NAME}"
            return _nothing(found) | {"status": "damaged", "damage": why[:_LONG_OPTION]}
    return entry


def _fits(value: Any, kind: str) -> bool:
    if kind == "bigint":
        return type(value) is int and -(2**63) <= value < 2**63
    kinds: dict[str, Any] = {"double": (int, float), "boolean": bool, "timestamp": datetime}
    return kind in kinds and isinstance(value, kinds[kind])


def _of_manifest(place: Place, found: Found, data: bytes) -> Entry:
    manifest = parse_manifest(data, place.path_of(found.run) / MANIFEST_NAME)
    status: str = manifest.status
    unended = status == "running"
    if unended and not place.is_running(found.run):
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
    """The options; of loads of one's own, which hold whole files and answers, those that are
    short.
    """
    if manifest.procedure not in USER_LOADS:
        return manifest.options
    return {k: v for k, v in manifest.options.items() if len(json.dumps(v)) <= _LONG_OPTION}


def _limits_met(manifest: Manifest) -> bool | None:
    if not manifest.expectations:
        return None
    return all(item.get("result") == "met" for item in manifest.expectations)


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)


def _kept(place: Place, run: str, digest: str, before: Mapping[str, Any] | None) -> Entry:
    """The figures that the run directory keeps, or that the catalogue has of the same state."""
    try:
        data = place.read(run, KEPT_NAME)
    except FileNotFoundError:
        kept = None
    else:
        kept = parse_kept_figures(data, place.path_of(run) / KEPT_NAME, digest)
    if kept is not None:
        try:
            return {**_of_figures(kept), HAS_FIGURES: True}
        except (KeyError, TypeError, AttributeError):
            return {}
    if before is not None and before[HAS_FIGURES] and before[DIGEST] == digest:
        return {name: before[name] for name in (*_SUMMED, "figures", HAS_FIGURES)}
    return {}


def _of_figures(made: Mapping[str, Any]) -> Entry:
    own = [column.name for column in FIGURES[1:]]
    rows = []
    for item in made["figures"]:
        interval = item["interval"] or {}
        row = {**item, "low": interval.get("low"), "high": interval.get("high"),
               "interval_of": interval.get("of")}  # fmt: skip
        rows.append({name: row[name] for name in own})
    return {**{name: made[name] for name in _SUMMED}, "figures": rows}


def _reason(error: WritecliffError, place: Place, run: str) -> str:
    """The error without the path of the run, which stands beside it."""
    text = str(error).replace(f"{place.path_of(run)}/", "")
    return text.removeprefix("damaged: ")
