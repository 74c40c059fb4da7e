"""The run store, with the functions of `writecliff runs`."""

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
    """Convert a query value for JSON: times to ISO 8601 in UTC, and whole decimals to integers."""
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
    """A store of runs, opened by `open_store`.

    >>> import tempfile
    >>> store = open_store(tempfile.mkdtemp())
    >>> len(store.list(test="wsat", since="7d"))
    0
    >>> store.sql("select count(*) as runs from runs").column("runs").to_pylist()
    [0]
    """

    def __init__(self, location: str, progress: WorkProgress = UNSEEN) -> None:
        """Use the store at `location`, without reading it yet."""
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
        """Return one row per run that meets all given conditions, as `writecliff runs list` does.

        Args:
            test: Name of the test.
            device: Text that the target or the drive name contains.
            status: Status of the runs.
            tags: Required tags.
            since: A date, a time, or an age such as "7d".
            where: An SQL condition on the columns of `runs`.
            sort: A column; a leading "-" sorts in descending order.
            limit: Maximum number of runs.

        Raises:
            ConfigError: If an argument is invalid.
            QueryError: If the condition is not valid SQL.
            StoreError: If the store cannot be read.
        """
        from writecliff.runs.queries import Selection, list_table

        chosen = Selection(
            test=test, device=device, status=status, tags=tags, since=since, where=where,
            sort=sort, limit=limit,
        )  # fmt: skip
        return Table(list_table(self._catalogue, chosen, progress=self._read))

    def rows(self, **selection: Any) -> Sequence[Mapping[str, Any]]:
        """Return the selected runs, with the columns that run lists show.

        `selection` contains arguments of `list`. Raises as `list`.
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
        """Return the names of the specified runs.

        Runs are specified by name, path or name prefix, or by a selection that contains arguments
        of `list`.

        Args:
            runs: The runs.
            selection: The selection, or `None`.
            suites: `True` to allow the names of suites.

        Raises:
            ConfigError: If both or neither of runs and selection are given, or a name does not
                match exactly one run.
        """
        from writecliff.runs.names import known_runs, run_named

        if bool(runs) == (selection is not None):
            raise ConfigError(
                "runs and a selection are mutually exclusive" if runs else "no runs specified",
                hint="specify runs by name, or select them, for example with --test wsat --since "
                "7d",
            )
        if selection is not None:
            return [row["run"] for row in self.rows(**selection)]
        candidates = known_runs(self._place, suites=suites)
        return list(dict.fromkeys(run_named(name, self._place, candidates) for name in runs))

    def details(self, run: str) -> RunDetails:
        """Return a run's set-up, figures and limits. Raises as `load`."""
        from writecliff.api.answers.runs import RunDetails, StoredFigure
        from writecliff.runs.details import details

        (name,) = self.names([run])
        stored = details(self._catalogue, name)
        expected = [] if stored.manifest is None else list(stored.manifest.expectations)
        figures = [StoredFigure(**figure) for figure in stored.figures]
        return RunDetails(self.location, plain(stored.run), figures, expected)

    def check_deletable(self, names: Sequence[str]) -> None:
        """Check that the named runs or suites can be deleted. Raises ConfigError."""
        from writecliff.runs.delete import check_deletable

        check_deletable(self._place, names)

    def delete(self, names: Sequence[str]) -> Sequence[str]:
        """Delete runs, or suites and all their runs, and return the names. Raises StoreError."""
        from writecliff.runs.delete import delete_runs

        return delete_runs(self._place, names)

    def index(
        self, *, rebuild: bool = False, tables: bool = False, note: Note = lambda text: None
    ) -> RunsIndex:
        """Update the catalogue from the figures of all runs.

        Args:
            rebuild: `True` to discard the catalogue first.
            tables: `True` to also copy rounds, intervals and histograms for SQL queries.
            note: Callback that receives remarks about runs that the tables omit.
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

        Raises:
            ConfigError: If there are no runs, or `output` is not a folder.
            StoreError: If a file cannot be written.
        """
        if not names:
            raise ConfigError(
                "the selection matches no run",
                hint="specify runs by name, or use less restrictive selection options",
            )
        if tables is None:
            from writecliff.runs.importing import write_archive

            write_archive(self._place, names, output)
            return
        from writecliff.runs.tables import write_tables

        if output.exists() and not output.is_dir():
            raise ConfigError(
                f"{output} is not a directory",
                hint="specify the folder that will contain the tables",
            )
        for text in write_tables(self._catalogue, names, output, tables, progress=self._read):
            note(text)

    def add(
        self, paths: Sequence[Path], *, tags: Sequence[str] = (), capacity_bytes: int | None = None
    ) -> Sequence[str]:
        """Copy run directories, suites, archives and fio results into the store.

        Args:
            paths: The files and folders.
            tags: Tags to add to every imported run.
            capacity_bytes: Capacity of the drive in fio results.

        Returns:
            The names of the imported runs and suites.

        Raises:
            ConfigError: If a path contains nothing to import, or a tag is invalid.
            StoreError: If the store cannot be written, or a run is damaged.
        """
        from writecliff.runs.importing import import_path
        from writecliff.runs.tags import change_tags, check_tag

        if not paths:
            raise ConfigError(
                "found no runs to import",
                hint="specify run directories, archives or JSON files from fio",
            )
        for tag in tags:
            check_tag(tag)
        made: list[str] = []
        for path in paths:
            made += import_path(self._place, path, capacity_bytes=capacity_bytes)
        for run in [*self._place.find()] if tags else ():
            if run.run in made or run.member_of in made:
                change_tags(self._place, run.run, add=tags)
        return made

    def sql(self, query: str, *, allow_files: bool = False) -> Table:
        """Return the result of an SQL query (DuckDB) over all runs, as `writecliff runs sql` does.

        The views are runs, figures, tags, rounds, intervals and histograms
        (docs/reference/run-store.md). The query can read and write files, attach databases and load
        extensions only if `allow_files` is set. A warning is issued if data are missing from the
        result, for example because runs are damaged.

        Raises:
            ConfigError: If the statement returns no result.
            QueryError: If the query fails.
            StoreError: If the store cannot be read.
        """
        import warnings

        answer, notes = self.query(query, allow_files=allow_files)
        for note in notes:
            warnings.warn(note, stacklevel=2)
        if answer is None:
            raise ConfigError(
                "the SQL statement does not return rows",
                hint="use a query that returns rows, for example select * from runs",
            )
        return Table(answer)

    def query(
        self, sql: str, *, allow_files: bool = False
    ) -> tuple[pa.Table | None, Sequence[str]]:
        """Return the result of an SQL query, and remarks about runs that the result omits.

        The result is `None` for a statement that returns no rows.

        Raises:
            QueryError: If the query fails.
            StoreError: If the store cannot be read.
        """
        from writecliff.runs.queries import sql_table

        return sql_table(self._catalogue, sql, allow_files=allow_files, progress=self._read)

    def load(self, run: str) -> Run:
        """Return the run that has the name or path `run`, or whose name starts with `run`.

        Raises:
            ConfigError: If `run` does not match exactly one run, or if the store is an object store
                (first copy the run with `writecliff runs export`).
            StoreError: If the run is damaged.
        """
        from writecliff.runs.location import is_remote
        from writecliff.runs.names import known_runs, run_named

        place = self._catalogue.place
        name = run_named(run, place, known_runs(place))
        if is_remote(self.location):
            hint = f"run `writecliff runs export {name}` to copy the run into a folder"
            raise ConfigError(f"the store {self.location} is not a local folder", hint=hint)
        return load_run(place.path_of(name))

    def diff(self, first: str, second: str) -> RunDifference:
        """Return the differences between two runs or suites, as `writecliff runs diff` does.

        The result contains differences in set-up and environment, and a verdict on each figure:
        better, worse, equal or undecided. Raises as `load`.
        """
        from writecliff.runs.difference import difference
        from writecliff.runs.names import known_runs, run_named

        place = self._catalogue.place
        runs = known_runs(place, suites=True)
        names = [run_named(name, place, runs) for name in (first, second)]
        with ExitStack() as stack:
            paths = [stack.enter_context(place.as_folder(name)) for name in names]
            compared = difference(paths[0], paths[1], names)
            # Evaluate both properties before the temporary folders are deleted.
            _ = compared.judgements, compared.compared.differences
            return compared

    def tag(
        self, run: str, *, add: Iterable[str] = (), remove: Iterable[str] = ()
    ) -> Sequence[str]:
        """Add and remove tags of a run, as `writecliff runs tag` does, and return its tags.

        Raises:
            ConfigError: If the run does not exist, or a tag is invalid.
            StoreError: If the store cannot be written.
        """
        from writecliff.runs.names import runs_named
        from writecliff.runs.tags import change_tags

        place = self._catalogue.place
        (name,) = runs_named([run], place)
        try:
            return change_tags(place, name, add=add, remove=remove)
        except FileNotFoundError:
            raise ConfigError(
                f"run {name} was deleted", hint="list the existing runs with `writecliff runs list`"
            ) from None

    def __repr__(self) -> str:
        """Return the constructor call that recreates the object."""
        return f"Store({self.location!r})"

    def _shown(self) -> Shown:
        runs: Any = self.list()
        columns = ("run", "status", "test", "target", "created_utc", "verdict")
        return Shown(self.location, (), Table(runs.select(columns))._shown().grids)


def open_store(location: str | None = None, *, progress: WorkProgress = UNSEEN) -> Store:
    """Return the store at a folder or URL (default: WRITECLIFF_STORE, else the current folder).

    The first query reads the store, and passes its progress to `progress`.

    Raises:
        ConfigError: If the location is empty.
    """
    from writecliff.runs.location import store_location

    return Store(store_location(None if location is None else str(location)), progress)


def difference_answer(difference: RunDifference) -> RunsDifference:
    """Return the output of `writecliff runs diff --json`."""
    from writecliff.api.answers.base import Difference
    from writecliff.api.answers.runs import RunsDifference
    from writecliff.report.comparison.figures import RULE
    from writecliff.report.comparison.page import figure_mapping

    return RunsDifference(
        runs=difference.names,
        differences=[
            Difference(part.what, part.values, part.tests)
            for part in difference.compared.differences
        ],
        environment=[
            {"what": what, "values": [mine, its]} for what, mine, its in difference.environment
        ],
        figures=[
            {**figure_mapping(difference.compared, figure), "judgement": word}
            for figure, word in difference.judgements
        ],
        rule=RULE,
        judgement=difference.judgement,
        verdict=difference.verdict,
    )
