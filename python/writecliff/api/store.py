"""The run store: what `writecliff runs` does, as functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from writecliff.api.runs import Run, load_run
from writecliff.api.tables import Table
from writecliff.errors import ConfigError
from writecliff.progress import UNSEEN, WorkProgress
from writecliff.shown import Shown, Shows

if TYPE_CHECKING:
    import pyarrow as pa

    from writecliff.api.answers.runs import RunDetails, RunsDifference, RunsIndex
    from writecliff.runs.catalogue import Catalogue
    from writecliff.runs.difference import RunDifference
    from writecliff.runs.place import Place

Note = Callable[[str], None]


def plain(value: Any) -> Any:
    """Return a value of a query for JSON: times are ISO 8601 in UTC, whole decimals integers."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value.hex() if isinstance(value, bytes) else value


class Store(Shows):
    """A store of runs. Begin with `open_store`.

    >>> import tempfile
    >>> store = open_store(tempfile.mkdtemp())
    >>> len(store.list(test="wsat", since="7d"))
    0
    >>> store.sql("select count(*) as runs from runs").column("runs").to_pylist()
    [0]
    """

    def __init__(self, location: str, progress: WorkProgress = UNSEEN) -> None:
        self.location = location
        """The folder, or the URL of the object store."""
        self._progress = progress

    @cached_property
    def _catalogue(self) -> Catalogue:
        from writecliff.runs.catalogue import Catalogue
        from writecliff.runs.place import open_place

        return Catalogue(open_place(self.location))

    @property
    def _place(self) -> Place:
        return self._catalogue.place

    def _read(self, done: int, total: int) -> None:
        self._progress.done(done / total, figures=f"{done:,} of {total:,}")

    def list(
        self,
        *,
        test: str | None = None,
        device: str | None = None,
        status: str | None = None,
        tags: Sequence[str] = (),
        since: str | None = None,
        where: str | None = None,
        sort: str = "-created_utc",
        limit: int | None = None,
    ) -> Table:
        """The runs for which all that is given holds, a row each, as `writecliff runs list`.

        `device` is part of the target or the name of the drive; `since` a date, a time or a span
        such as "7d"; `where` a condition of SQL on the columns of `runs`; `sort` a column, with "-"
        before it the largest first. Raises ConfigError, QueryError, StoreError.
        """
        from writecliff.runs.queries import Selection, list_table

        chosen = Selection(
            test=test, device=device, status=status, tags=tags, since=since, where=where,
            sort=sort, limit=limit,
        )  # fmt: skip
        return Table(list_table(self._catalogue, chosen, progress=self._read))

    def rows(self, **selection: Any) -> Sequence[Mapping[str, Any]]:
        """Return the runs of a selection, whose arguments are those of `list`, with the columns
        that lists show. Raises as `list`.
        """
        from writecliff.runs.queries import Selection, listed

        return listed(self._catalogue, Selection(**selection), progress=self._read)

    def names(
        self,
        runs: Sequence[str],
        selection: Mapping[str, Any] | None = None,
        *,
        suites: bool = False,
    ) -> Sequence[str]:
        """Return the names of runs that are given by name, path or prefix of their name, or else of
        a selection, whose items are the arguments of `list`.

        Args:
            runs: The runs.
            selection: The selection; None without one.
            suites: Suites may be named.

        Raises:
            ConfigError: Neither or both are given, or a name that matches no run or several.
        """
        from writecliff.runs.names import known_runs, run_named

        if bool(runs) == (selection is not None):
            raise ConfigError(
                "runs and a selection are given" if runs else "no runs are given",
                hint="give names of runs, or a selection such as --test wsat --since 7d",
            )
        if selection is not None:
            return [row["run"] for row in self.rows(**selection)]
        known = known_runs(self._place, suites=suites)
        return list(dict.fromkeys(run_named(name, self._place, known) for name in runs))

    def details(self, run: str) -> RunDetails:
        """Return the set-up, figures and limits of a run. Raises as `load`."""
        from writecliff.api.answers.runs import RunDetails, StoredFigure
        from writecliff.runs.details import details

        (name,) = self.names([run])
        found = details(self._catalogue, name)
        expected = [] if found.manifest is None else list(found.manifest.expectations)
        figures = [StoredFigure(**figure) for figure in found.figures]
        return RunDetails(self.location, plain(found.run), figures, expected)

    def check_deletable(self, names: Sequence[str]) -> None:
        """Check that runs or suites can be deleted. Raises ConfigError."""
        from writecliff.runs.delete import check_deletable

        check_deletable(self._place, names)

    def delete(self, names: Sequence[str]) -> Sequence[str]:
        """Delete runs, or suites with all their runs, and return their names. Raises StoreError."""
        from writecliff.runs.delete import delete_runs

        return delete_runs(self._place, names)

    def index(
        self, *, rebuild: bool = False, tables: bool = False, note: Note = lambda text: None
    ) -> RunsIndex:
        """Bring the catalogue up to date, with the figures of all runs.

        Args:
            rebuild: Rebuild the catalogue.
            tables: Also copy rounds, intervals and histograms for SQL.
            note: Receives remarks about runs that the tables omit.
        """
        from writecliff.api.answers.runs import DamagedRun, RunsIndex
        from writecliff.runs.columns import STEP_TABLES
        from writecliff.runs.queries import answering

        catalogue = self._catalogue
        if rebuild:
            from writecliff.runs.segments import discard_tables

            discard_tables(catalogue.place)
        changes = catalogue.refresh(figures=True, rebuild=rebuild, progress=self._read)
        if tables:
            with answering(catalogue, ", ".join(STEP_TABLES), progress=self._read) as (_, notes):
                for text in notes:
                    note(text)
        catalogue.place.sweep()
        with catalogue.opened() as database:
            damaged = database.rows(
                "select run, damage from runs where damage is not null order by run"
            )[1]
        rows = [DamagedRun(*row) for row in damaged]
        read, gone = len(changes.read), len(changes.gone)
        return RunsIndex(catalogue.place.location, changes.runs, read, gone, rows)

    def export(
        self,
        names: Sequence[str],
        output: Path,
        *,
        tables: Literal["parquet", "csv"] | None = None,
        note: Note = lambda text: None,
    ) -> None:
        """Write runs and suites to an archive, or the `tables` of runs to a folder in that format.

        Raises ConfigError: no runs, or not a folder; StoreError.
        """
        if not names:
            raise ConfigError("no run is selected")
        if tables is None:
            from writecliff.runs.importing import write_archive

            write_archive(self._place, names, output)
            return
        from writecliff.runs.tables import write_tables

        if output.exists() and not output.is_dir():
            raise ConfigError(f"{output} is not a directory", hint="give a folder for the tables")
        for text in write_tables(self._catalogue, names, output, tables, progress=self._read):
            note(text)

    def add(
        self, paths: Sequence[Path], *, tags: Sequence[str] = (), capacity_bytes: int | None = None
    ) -> Sequence[str]:
        """Copy run directories, suites, archives and results of fio into the store.

        Args:
            paths: The files and folders.
            tags: Tags for each of the runs.
            capacity_bytes: Capacity of the drive of a result of fio.

        Returns:
            The names of the new runs and suites.

        Raises:
            ConfigError, StoreError.
        """
        from writecliff.runs.importing import import_path
        from writecliff.runs.tags import change_tags, check_tag

        if not paths:
            raise ConfigError(
                "nothing to import", hint="give run directories, archives or fio's .json"
            )
        for tag in tags:
            check_tag(tag)
        made: list[str] = []
        for path in paths:
            made += import_path(self._place, path, capacity_bytes=capacity_bytes)
        for found in [*self._place.find()] if tags else ():
            if found.run in made or found.member_of in made:
                change_tags(self._place, found.run, add=tags)
        return made

    def sql(self, query: str, *, allow_files: bool = False) -> Table:
        """The answer to SQL (of DuckDB) over all runs, as `writecliff runs sql`: views runs,
        figures, tags, rounds, intervals, histograms (docs/reference/run-store.md). Only with
        `allow_files` may it read and write files, attach databases and load extensions.

        What is left out of the answer, such as damaged runs, is a warning. Raises ConfigError for
        a statement without an answer, QueryError, StoreError.
        """
        import warnings

        answer, notes = self.query(query, allow_files=allow_files)
        for note in notes:
            warnings.warn(note, stacklevel=2)
        if answer is None:
            raise ConfigError("the statement has no answer", hint="for example select * from runs")
        return Table(answer)

    def query(
        self, sql: str, *, allow_files: bool = False
    ) -> tuple[pa.Table | None, Sequence[str]]:
        """Return the result of an SQL query (None for a statement without a result), and remarks
        about missing runs. Raises QueryError, StoreError.
        """
        from writecliff.runs.queries import sql_table

        return sql_table(self._catalogue, sql, allow_files=allow_files, progress=self._read)

    def load(self, run: str) -> Run:
        """The run that is named so, or whose name begins so, or that is at this path.

        Raises ConfigError: none or several are, or the store is an object store (`writecliff runs
        export` copies a run from there); StoreError: damaged.
        """
        from writecliff.runs.location import is_remote
        from writecliff.runs.names import known_runs, run_named

        place = self._catalogue.place
        name = run_named(run, place, known_runs(place))
        if is_remote(self.location):
            hint = f"`writecliff runs export {name}` copies it into a folder"
            raise ConfigError(f"{self.location} is no folder", hint=hint)
        return load_run(place.path_of(name))

    def diff(self, first: str, second: str) -> RunDifference:
        """How run or suite `second` differs from `first`, as `writecliff runs diff`: set-up,
        environment, and each figure: better, worse, equal, or it cannot be told. Raises as
        `load`.
        """
        from writecliff.runs.difference import difference
        from writecliff.runs.names import known_runs, run_named

        place = self._catalogue.place
        runs = known_runs(place, suites=True)
        names = [run_named(name, place, runs) for name in (first, second)]
        with ExitStack() as stack:
            paths = [stack.enter_context(place.as_folder(name)) for name in names]
            found = difference(paths[0], paths[1], names)
            _ = found.judgements, found.compared.differences  # read while the folders are there
            return found

    def tag(
        self, run: str, *, add: Iterable[str] = (), remove: Iterable[str] = ()
    ) -> Sequence[str]:
        """Add tags to a run and remove tags, as `writecliff runs tag`; its tags after that. Raises
        ConfigError, StoreError.
        """
        from writecliff.runs.names import runs_named
        from writecliff.runs.tags import change_tags

        place = self._catalogue.place
        (name,) = runs_named([run], place)
        try:
            return change_tags(place, name, add=add, remove=remove)
        except FileNotFoundError:
            raise ConfigError(f"{name} has gone") from None

    def __repr__(self) -> str:
        return f"Store({self.location!r})"

    def _shown(self) -> Shown:
        found: Any = self.list()
        columns = ("run", "status", "test", "target", "created_utc", "verdict")
        return Shown(self.location, (), Table(found.select(columns))._shown().grids)


def open_store(location: str | None = None, *, progress: WorkProgress = UNSEEN) -> Store:
    """The store at a folder or URL (default: WRITECLIFF_STORE, else the current folder).

    The first query reads the store and reports to `progress`. Raises ConfigError: an empty
    location.
    """
    from writecliff.runs.location import store_location

    return Store(store_location(None if location is None else str(location)), progress)


def difference_answer(found: RunDifference) -> RunsDifference:
    """Return the answer of `writecliff runs diff --json`."""
    from writecliff.api.answers.base import Difference
    from writecliff.api.answers.runs import RunsDifference
    from writecliff.report.comparison.figures import RULE
    from writecliff.report.comparison.page import figure_mapping

    return RunsDifference(
        runs=found.names,
        differences=[
            Difference(part.what, part.values, part.tests) for part in found.compared.differences
        ],
        environment=[
            {"what": what, "values": [mine, its]} for what, mine, its in found.environment
        ],
        figures=[
            {**figure_mapping(found.compared, figure), "judgement": word}
            for figure, word in found.judgements
        ],
        rule=RULE,
        judgement=found.judgement,
        verdict=found.verdict,
    )
