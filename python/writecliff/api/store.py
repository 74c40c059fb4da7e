"""The run store: what `writecliff runs` does, as functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any

from writecliff.api.runs import Run, load_run
from writecliff.api.tables import Table
from writecliff.errors import ConfigError
from writecliff.shown import Shown, Shows

if TYPE_CHECKING:
    from writecliff.runs.catalogue import Catalogue
    from writecliff.runs.difference import RunDifference


class Store(Shows):
    """A store of runs. Begin with `open_store`.

    >>> import tempfile
    >>> store = open_store(tempfile.mkdtemp())
    >>> len(store.list(test="wsat", since="7d"))
    0
    >>> store.sql("select count(*) as runs from runs").column("runs").to_pylist()
    [0]
    """

    def __init__(self, location: str) -> None:
        self.location = location
        """The folder, or the URL of the object store."""

    @cached_property
    def _catalogue(self) -> Catalogue:
        from writecliff.runs.catalogue import Catalogue
        from writecliff.runs.place import open_place

        return Catalogue(open_place(self.location))

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
        return Table(list_table(self._catalogue, chosen))

    def sql(self, query: str, *, allow_files: bool = False) -> Table:
        """The answer to SQL (of DuckDB) over all runs, as `writecliff runs sql`: views runs,
        figures, tags, rounds, intervals, histograms (docs/reference/run-store.md). Only with
        `allow_files` may it read and write files, attach databases and load extensions.

        What is left out of the answer, such as damaged runs, is a warning. Raises ConfigError for
        a statement without an answer, QueryError, StoreError.
        """
        import warnings

        from writecliff.runs.queries import sql_table

        answer, notes = sql_table(self._catalogue, query, allow_files=allow_files)
        for note in notes:
            warnings.warn(note, stacklevel=2)
        if answer is None:
            raise ConfigError("the statement has no answer", hint="for example select * from runs")
        return Table(answer)

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
        `load`."""
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
        ConfigError, StoreError."""
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


def open_store(location: str | None = None) -> Store:
    """The store at a folder or URL (default: WRITECLIFF_STORE, else the current folder).

    It is read when something is asked. Raises ConfigError for an empty location.
    """
    from writecliff.runs.location import store_location

    return Store(store_location(None if location is None else str(location)))
