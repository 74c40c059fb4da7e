"""List, query, tag, compare and move runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

from cyclopts import App, Parameter

from writecliff.cli.output import JsonFlag, emit_json, log
from writecliff.cli.runs_options import (
    ALL_RUNS,
    SelectionOptions,
    StoreOption,
    catalogue_of,
    progress_log,
)
from writecliff.errors import ConfigError

GROUP = "tests and suites", 8
app = App(name="runs", help=__doc__)


@app.command(name="list")
def list_(
    *,
    selection: SelectionOptions = ALL_RUNS,
    store: StoreOption = None,
    json: JsonFlag = False,
) -> int:
    """List the runs of a store, the latest first.

    Parameters
    ----------
    store
        The store: a folder, or the URL of an object store (default: WRITECLIFF_STORE, else the
        current folder).
    """
    from writecliff.runs.queries import listed

    catalogue = catalogue_of(store)
    found = listed(catalogue, selection.selection(), progress=progress_log())
    if json:
        from writecliff.api.answers.runs import RunsList
        from writecliff.cli.runs_view import plain

        shown = [plain(one) for one in found]
        emit_json(RunsList(catalogue.place.location, shown))
        return 0
    from writecliff.cli.runs_view import runs_table

    print(runs_table(found) if found else f"no runs in {catalogue.place.location}")
    return 0


@app.command
def show(run: str, *, store: StoreOption = None, json: JsonFlag = False) -> int:
    """Show a run: its set-up, figures with intervals, limits and tags.

    Parameters
    ----------
    run
        Its name, the path of its directory, or what only its name begins with.
    store
        The store (default: WRITECLIFF_STORE, else the current folder).
    """
    from writecliff.cli.runs_view import details, run_text
    from writecliff.runs.names import known_runs, run_named

    catalogue = catalogue_of(store)
    name = run_named(run, catalogue.place, known_runs(catalogue.place))
    found = details(catalogue, name)
    if json:
        from writecliff.api.answers.runs import RunDetails

        emit_json(RunDetails(catalogue.place.location, **found))
    else:
        print(run_text(found))
    return 0


@app.command
def tag(
    run: str,
    *changes: Annotated[str, Parameter(allow_leading_hyphen=True)],
    store: StoreOption = None,
    json: JsonFlag = False,
) -> int:
    """Add tags to a run and remove tags: `runs tag RUN +baseline -draft`.

    Parameters
    ----------
    run
        Its name, the path of its directory, or what only its name begins with.
    changes
        +TAG adds a tag, -TAG removes it; without any, the tags are shown.
    store
        The store (default: WRITECLIFF_STORE, else the current folder).
    """
    from writecliff.cli.runs_view import printable
    from writecliff.runs.names import runs_named
    from writecliff.runs.tags import change_tags

    for change in changes:
        if change[:1] not in ("+", "-"):
            raise ConfigError(f"'{change}' neither adds nor removes", hint=f"give +{change}")
    place = catalogue_of(store).place
    (name,) = runs_named([run], place)
    added, removed = ([c[1:] for c in changes if c[0] == sign] for sign in "+-")
    try:
        tags = change_tags(place, name, add=added, remove=removed)
    except FileNotFoundError:
        raise ConfigError(f"{name} has gone") from None
    if json:
        from writecliff.api.answers.runs import RunTags

        emit_json(RunTags(name, tags))
    else:
        print(", ".join(map(printable, tags)) or "no tags")
    return 0


@app.command
def delete(
    *runs: str,
    selection: SelectionOptions = ALL_RUNS,
    yes: bool = False,
    store: StoreOption = None,
    json: JsonFlag = False,
) -> int:
    """Delete runs, or suites with all their runs. Asks before.

    Parameters
    ----------
    runs
        Their names or paths; none with a selection by --test, --where and the like.
    yes
        Do not ask.
    store
        The store (default: WRITECLIFF_STORE, else the current folder).
    """
    from writecliff.cli.runs_view import printable, select_runs
    from writecliff.runs.delete import check_deletable, delete_runs

    catalogue = catalogue_of(store)
    place = catalogue.place
    chosen = select_runs(catalogue, runs, selection, suites=True)
    check_deletable(place, chosen)
    deleted: Sequence[str] = []
    if chosen and (yes or _confirmed(chosen, place.location)):
        deleted = delete_runs(place, chosen)
    if json:
        from writecliff.api.answers.runs import RunsDeleted

        emit_json(RunsDeleted(place.location, deleted))
    else:
        print("\n".join(map(printable, deleted)) or "nothing was deleted")
    return 0


def _confirmed(runs: Sequence[str], location: str) -> bool:
    """Ask on the terminal. Raises ConfigError where there is none."""
    from writecliff.cli.runs_view import printable

    if not sys.stdin.isatty():
        raise ConfigError(f"{len(runs)} runs would be deleted", hint="confirm with --yes")
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
    """Bring the catalogue of a store up to date, with the figures of all runs.

    Other commands do as much of it as they need. The catalogue follows from the run directories:
    deleting its folder .writecliff loses nothing.

    Parameters
    ----------
    rebuild
        Make it from nothing, whatever it says.
    tables
        Also copy rounds, intervals and histograms for SQL.
    store
        The store (default: WRITECLIFF_STORE, else the current folder).
    """
    from writecliff.cli.runs_view import index_mapping, index_text
    from writecliff.runs.columns import STEP_TABLES
    from writecliff.runs.queries import answering

    catalogue, progress = catalogue_of(store), progress_log()
    if rebuild:
        from writecliff.runs.segments import discard_tables

        discard_tables(catalogue.place)
    changes = catalogue.refresh(figures=True, rebuild=rebuild, progress=progress)
    if tables:
        with answering(catalogue, ", ".join(STEP_TABLES), progress=progress) as (_, notes):
            for note in notes:
                log(f"warning: {note}")
    catalogue.place.sweep()
    found = index_mapping(catalogue, changes)
    if json:
        from writecliff.api.answers.runs import RunsIndex

        emit_json(RunsIndex(**found))
    else:
        print(index_text(found))
    return 0


app.command("writecliff.cli.runs_query:sql", name="sql", help="Answer SQL over all runs.")
app.command("writecliff.cli.runs_query:diff", name="diff", help="Say how two runs differ.")
app.command(
    "writecliff.cli.runs_transfer:export", name="export", help="Write runs or tables to files."
)
app.command(
    "writecliff.cli.runs_transfer:import_",
    name="import",
    help="Copy runs, archives and results of fio into a store.",
)
