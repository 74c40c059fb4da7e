"""List, query, tag, compare, export and import runs."""

from __future__ import annotations

import csv as csv_files
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Group, Parameter

from writecliff.cli.options import MadePath, Whole
from writecliff.cli.output import JsonFlag, emit_json, log, table
from writecliff.errors import ConfigError, printable

if TYPE_CHECKING:
    import pyarrow as pa

    from writecliff.api import Store

GROUP = "tests and suites", 8
app = App(name="runs", help=__doc__)

StoreOption = Annotated[
    str | None,
    Parameter(
        name="--store",
        help="Run store: a folder, or the URL of an object store (default: the store in "
        "WRITECLIFF_STORE, else the current folder).",
    ),
]
"""Type of a parameter `store`."""
_Status = Literal["complete", "running", "interrupted", "failed", "planned", "damaged"]
_MOST = 200  # Maximum number of rows on a terminal.


@Parameter(name="*", group=Group("Selection", sort_key=0))
@dataclass(frozen=True, kw_only=True)
class SelectionOptions:
    """Conditions that select runs; a selected run meets all of them."""

    test: str | None = None
    """Select runs of this test, such as wsat, workload, trace_replay or served."""

    device: str | None = None
    """Select runs on drives whose target or name contains this text."""

    status: _Status | None = None
    """Select runs with this status."""

    tag: tuple[str, ...] = ()
    """Select runs with this tag; may be repeated."""

    since: str | None = None
    """Select runs that started at or after this time, such as 2026-01-31, 2026-01-31T14:00, 36h or
    7d."""

    where: str | None = None
    """Select runs that meet an SQL condition on the columns of `runs` (see
    docs/reference/run-store.md), such as "capacity_bytes > 1e12 and seed = 2"."""

    sort: Annotated[str, Parameter(allow_leading_hyphen=True)] = "-created_utc"
    """Column of `runs` to sort by; a leading "-" sorts in descending order."""

    limit: Whole = None
    """Maximum number of runs to list."""

    def given(self) -> dict[str, Any] | None:
        """Return the arguments for `Store.list`, or `None` if no condition is given."""
        return None if self == ALL_RUNS else self.arguments()

    def arguments(self) -> dict[str, Any]:
        """Return the arguments for `Store.list`."""
        named = asdict(self)
        tags = named.pop("tag")
        return {**named, "tags": tags}


ALL_RUNS = SelectionOptions()


def opened_store(location: str | None) -> Store:
    """Open the store given by --store or the environment, and show the reading progress.

    Raises:
        ConfigError: If the store does not exist or cannot be read.
    """
    from writecliff.api import open_store
    from writecliff.cli.progress import WorkView
    from writecliff.cli.screen import Screen
    from writecliff.progress import WorkProgress

    return open_store(location, progress=WorkProgress(WorkView(Screen()), "reading runs"))


def _warn(text: str) -> None:
    log(f"warning: {text}")


@app.command(name="list")
def list_(
    *,
    selection: SelectionOptions = ALL_RUNS,
    store: StoreOption = None,
    json: JsonFlag = False,
) -> int:
    """List the runs in a store, latest first."""
    opened = opened_store(store)
    rows = opened.rows(**selection.arguments())
    if json:
        from writecliff.api.answers.runs import RunsList
        from writecliff.api.store import plain

        emit_json(RunsList(opened.location, plain(rows)))
        return 0
    from writecliff.cli.runs_view import runs_table

    print(runs_table(rows) if rows else f"no runs found in {opened.location}")
    return 0


@app.command
def show(run: str, *, store: StoreOption = None, json: JsonFlag = False) -> int:
    """Show a run's set-up, figures with confidence intervals, limits and tags.

    Parameters
    ----------
    run
        The run's name, a unique prefix of its name, or its directory.
    """
    from writecliff.cli.runs_view import run_text

    details = opened_store(store).details(run)
    if json:
        emit_json(details)
    else:
        print(run_text(details))
    return 0


@app.command
def tag(
    run: str,
    *changes: Annotated[str, Parameter(allow_leading_hyphen=True)],
    store: StoreOption = None,
    json: JsonFlag = False,
) -> int:
    """Add tags to or remove tags from a run, as in `runs tag RUN +baseline -draft`.

    Parameters
    ----------
    run
        The run's name, a unique prefix of its name, or its directory.
    changes
        Tag changes: +TAG adds a tag, and -TAG removes a tag (default: show the run's tags).
    """
    for change in changes:
        if change[:1] not in ("+", "-"):
            raise ConfigError(
                f"'{change}' is not a tag change",
                hint=f"use +{change} to add the tag, or -{change} to remove it",
            )
    opened = opened_store(store)
    (name,) = opened.names([run])
    added, removed = ([c[1:] for c in changes if c[0] == sign] for sign in "+-")
    tags = opened.tag(name, add=added, remove=removed)
    if json:
        from writecliff.api.answers.runs import RunTags

        emit_json(RunTags(name, tags))
    else:
        print(", ".join(map(printable, tags)) or "the run has no tags")
    return 0


@app.command
def delete(
    *runs: str,
    selection: SelectionOptions = ALL_RUNS,
    yes: bool = False,
    store: StoreOption = None,
    json: JsonFlag = False,
) -> int:
    """Delete runs, or suites with all their runs, after confirmation.

    Parameters
    ----------
    runs
        Names or paths of the runs. Omit all names to select runs with --test, --where and similar
        options.
    yes
        Delete the runs without confirmation.
    """
    opened = opened_store(store)
    chosen = opened.names(runs, selection.given(), suites=True)
    opened.check_deletable(chosen)
    deleted: Sequence[str] = []
    if chosen and (yes or _confirmed(chosen, opened.location)):
        deleted = opened.delete(chosen)
    if json:
        from writecliff.api.answers.runs import RunsDeleted

        emit_json(RunsDeleted(opened.location, deleted))
    else:
        print("\n".join(map(printable, deleted)) or "nothing was deleted")
    return 0


def _confirmed(runs: Sequence[str], location: str) -> bool:
    """Ask for confirmation on the terminal. Raises ConfigError if there is no terminal."""
    if not sys.stdin.isatty():
        raise ConfigError(
            f"refusing to delete {len(runs)} runs without confirmation",
            hint="confirm the deletion with --yes",
        )
    for run in runs[:10]:
        log(f"  {printable(run)}")
    more = f" (10 of {len(runs)} are shown)" if len(runs) > 10 else ""
    log(f"delete {len(runs)} from {location}{more}? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


@app.command
def index(
    *,
    rebuild: bool = False,
    tables: bool = False,
    store: StoreOption = None,
    json: JsonFlag = False,
) -> int:
    """Update a store's catalogue from the figures of the store's runs.

    Other commands update only the catalogue tables that they need. The catalogue is derived from
    the run directories, so its folder .writecliff can be deleted without loss.

    Parameters
    ----------
    rebuild
        Discard the catalogue, and rebuild the catalogue from the run directories.
    tables
        Also copy rounds, intervals and histograms into the catalogue for SQL queries.
    """
    updated = opened_store(store).index(rebuild=rebuild, tables=tables, note=_warn)
    if json:
        emit_json(updated)
        return 0
    for run in updated.damaged:
        print(f"{printable(run.run)}: {printable(run.damage)}")
    print(f"{updated.runs} runs, {updated.read} read, {updated.gone} removed")
    return 0


@app.command
def sql(
    query: str,
    *,
    csv: bool = False,
    allow_files: bool = False,
    store: StoreOption = None,
    json: JsonFlag = False,
) -> int:
    """Query all runs with SQL.

    Queries use DuckDB's dialect and the views runs, figures, tags, rounds, intervals and
    histograms. Column names include units; docs/reference/run-store.md describes them. The first
    query on rounds, intervals or histograms copies these tables from all runs into the catalogue.
    Statements cannot read or write files, attach databases or load extensions without
    --allow-files.

    Parameters
    ----------
    query
        SQL query, such as "select test, count(*) from runs group by test".
    csv
        Print all rows as CSV.
    allow_files
        Allow the query to read and write any of your files, and to load DuckDB extensions,
        including from the network. Use this option only for queries that you wrote or have
        reviewed.
    """
    if csv and json:
        raise ConfigError("--csv and --json are mutually exclusive", hint="omit either option")
    opened = opened_store(store)
    answer, notes = opened.query(query, allow_files=allow_files)
    for note in notes:
        _warn(note)
    if json:
        from writecliff.api.answers.runs import Column, QueryResult
        from writecliff.api.store import plain

        fields = () if answer is None else answer.schema
        columns = [Column(field.name, str(field.type)) for field in fields]
        rows = [] if answer is None else plain(answer.to_pylist())
        emit_json(QueryResult(opened.location, columns, rows))
    elif answer is not None:
        _show(answer, csv=csv)
    return 0


def _show(answer: pa.Table, *, csv: bool) -> None:
    from writecliff.cli.runs_view import cell
    from writecliff.csv_cells import cell as safe

    names = list(answer.column_names)
    shown = answer if csv else answer.slice(0, _MOST)
    columns = [[cell(value) for value in column.to_pylist()] for column in shown.columns]
    rows = list(zip(*columns, strict=True))
    if csv:
        writer = csv_files.writer(sys.stdout, lineterminator="\n")
        writer.writerow(map(safe, names))
        writer.writerows([safe(v) if isinstance(v, str) else v for v in row] for row in rows)
        return
    kinds = "".join("r" if _is_number(field) else "l" for field in answer.schema)
    print(table([*map(printable, names)], [[*map(printable, row)] for row in rows], kinds))
    if (more := answer.num_rows - len(rows)) > 0:
        log(f"... and {more} more rows (--csv and --json print all rows)")


def _is_number(field: Any) -> bool:
    import pyarrow.types as kinds

    kind = field.type
    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


@app.command
def diff(first: str, second: str, *, store: StoreOption = None, json: JsonFlag = False) -> int:
    """Compare the set-up, versions, host and figures of two runs.

    Each figure of run B is reported as better than, worse than or equal to that of run A, or as
    undecided. A difference counts if it is statistically significant at the 5 % level for the whole
    comparison. Overall, B is better if at least one figure is better and none is worse.

    Parameters
    ----------
    first
        Run or suite A: a name in the store, or a path.
    second
        Run or suite B: a name in the store, or a path.
    """
    from writecliff.api.store import difference_answer
    from writecliff.cli.runs_view import difference_text

    difference = opened_store(store).diff(first, second)
    if json:
        emit_json(difference_answer(difference))
    else:
        print(difference_text(difference))
    return 0


@app.command
def export(
    *runs: str,
    output: MadePath,
    tables: Literal["parquet", "csv"] | None = None,
    selection: SelectionOptions = ALL_RUNS,
    store: StoreOption = None,
    json: JsonFlag = False,
) -> int:
    """Write runs to an archive, or write their tables to a folder.

    Parameters
    ----------
    runs
        Names or paths of the runs. Omit all names to select runs with --test, --where and similar
        options.
    output
        Archive to write: .zip, .tar, .tar.gz or .tar.xz. With --tables, the path is the output
        folder.
    tables
        Write the tables of these runs instead of an archive: runs, figures, tags, rounds, intervals
        and histograms, as Parquet or CSV.
    """
    opened = opened_store(store)
    chosen = opened.names(runs, selection.given(), suites=tables is None)
    opened.export(chosen, output, tables=tables, note=_warn)
    if json:
        from writecliff.api.answers.runs import RunsExported

        emit_json(RunsExported(opened.location, chosen, output))
    else:
        print("\n".join(map(printable, chosen)), output, sep="\n")
    return 0


@app.command(name="import")
def import_(
    *paths: Path,
    tag: tuple[str, ...] = (),
    capacity: str | None = None,
    store: StoreOption = None,
    json: JsonFlag = False,
) -> int:
    """Copy runs, archives and fio results into a store.

    The copies go into the folder `imports` of the store, under their original names.

    Parameters
    ----------
    paths
        Run directories, suites, folders of runs, archives, or fio's JSON output (latencies require
        --output-format=json+).
    tag
        Tag to add to each imported run; may be repeated.
    capacity
        Capacity of the drive in a fio result, such as 960GB (default: the largest job size).
    """
    from writecliff.units import parse_size

    opened = opened_store(store)
    capacity_bytes = None if capacity is None else parse_size(capacity)
    made = opened.add(paths, tags=tag, capacity_bytes=capacity_bytes)
    if json:
        from writecliff.api.answers.runs import RunsImported

        emit_json(RunsImported(opened.location, made))
    else:
        print("\n".join(map(printable, made)))
    return 0
