"""`writecliff runs export` and `writecliff runs import`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from writecliff.cli.options import MadePath
from writecliff.cli.output import JsonFlag, emit_json, log
from writecliff.cli.runs_options import (
    ALL_RUNS,
    SelectionOptions,
    StoreOption,
    catalogue_of,
    progress_log,
)
from writecliff.errors import ConfigError
from writecliff.units import parse_size

if TYPE_CHECKING:
    from writecliff.runs.catalogue import Catalogue


def export(
    *runs: str,
    output: MadePath,
    tables: Literal["parquet", "csv"] | None = None,
    selection: SelectionOptions = ALL_RUNS,
    store: StoreOption = None,
    json: JsonFlag = False,
) -> int:
    """Write runs to an archive, or their tables to a folder.

    Parameters
    ----------
    runs
        Their names or paths; none with a selection by --test, --where and the like.
    output
        The archive: .zip, .tar, .tar.gz or .tar.xz. With --tables, the folder.
    tables
        Write the tables of these runs instead: runs, figures, tags, rounds, intervals and
        histograms, as Parquet or CSV.
    store
        The store (default: WRITECLIFF_STORE, else the current folder).
    """
    from writecliff.cli.runs_view import printable, select_runs

    catalogue = catalogue_of(store)
    chosen = select_runs(catalogue, runs, selection, suites=tables is None)
    if not chosen:
        raise ConfigError("no run is selected")
    if tables is None:
        from writecliff.runs.archive import write_archive

        write_archive(catalogue.place, chosen, output)
    else:
        _write_tables(catalogue, chosen, output, tables)
    if json:
        from writecliff.api.answers.runs import RunsExported

        emit_json(RunsExported(catalogue.place.location, chosen, output))
    else:
        print("\n".join(map(printable, chosen)), output, sep="\n")
    return 0


def _write_tables(
    catalogue: Catalogue, runs: Sequence[str], output: Path, form: Literal["parquet", "csv"]
) -> None:
    from writecliff.runs.tables import write_tables

    if output.exists() and not output.is_dir():
        raise ConfigError(f"{output} is not a directory", hint="give a folder for the tables")
    for note in write_tables(catalogue, runs, output, form, progress=progress_log()):
        log(f"warning: {note}")


def import_(
    *paths: Path,
    tag: tuple[str, ...] = (),
    capacity: str | None = None,
    store: StoreOption = None,
    json: JsonFlag = False,
) -> int:
    """Copy run directories, suites, archives of them and results of fio into a store.

    They go below its folder `imports`, under the names that they have.

    Parameters
    ----------
    paths
        Run directories, suites, folders of them, archives, or fio's JSON output (latencies need
        that of --output-format=json+).
    tag
        A tag for each of the runs; may be repeated.
    capacity
        Of the drive of a result of fio, such as 960GB (default: the largest size of its jobs).
    store
        The store (default: WRITECLIFF_STORE, else the current folder).
    """
    from writecliff.cli.runs_view import printable
    from writecliff.runs.importing import import_path
    from writecliff.runs.tags import change_tags, check_tag

    if not paths:
        raise ConfigError("nothing to import", hint="give run directories, archives or fio's .json")
    for one in tag:
        check_tag(one)
    capacity_bytes = None if capacity is None else parse_size(capacity)
    place = catalogue_of(store).place
    made: list[str] = []
    for path in paths:
        made += import_path(place, path, capacity_bytes=capacity_bytes)
    if tag:
        for found in list(place.find()):
            if found.run in made or found.member_of in made:
                change_tags(place, found.run, add=tag)
    if json:
        from writecliff.api.answers.runs import RunsImported

        emit_json(RunsImported(place.location, made))
    else:
        print("\n".join(map(printable, made)))
    return 0
