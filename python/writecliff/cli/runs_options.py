"""What the commands of the run store share: the store, the selection, progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

from writecliff.cli.options import Whole
from writecliff.cli.progress import WorkView
from writecliff.cli.screen import Screen
from writecliff.progress import WorkProgress

if TYPE_CHECKING:
    from writecliff.runs.catalogue import Catalogue
    from writecliff.runs.queries import Selection

StoreOption = Annotated[str | None, Parameter(name="--store")]
"""The annotation of `store`: where runs are."""
_Status = Literal["complete", "running", "interrupted", "failed", "planned", "damaged"]


@Parameter(name="*", group=Group("Selection", sort_key=0))
@dataclass(frozen=True, kw_only=True)
class SelectionOptions:
    """Which runs; all that is given must hold."""

    test: str | None = None
    """Runs of this test: wsat, workload, trace_replay, served, ..."""

    device: str | None = None
    """Runs on drives whose target or name contains this."""

    status: _Status | None = None
    """Runs of this status."""

    tag: tuple[str, ...] = ()
    """Runs with this tag; may be repeated."""

    since: str | None = None
    """Runs begun since then: 2026-01-31, 2026-01-31T14:00, 36h, 7d."""

    where: str | None = None
    """Runs for which a condition of SQL on the columns of `runs` holds (see the reference of the
    run store): "capacity_bytes > 1e12 and seed = 2"."""

    sort: Annotated[str, Parameter(allow_leading_hyphen=True)] = "-created_utc"
    """Order by a column of `runs`; with - before it, the largest first."""

    limit: Whole = None
    """At most so many."""

    def selection(self) -> Selection:
        from writecliff.runs.queries import Selection

        return Selection(
            test=self.test,
            device=self.device,
            status=self.status,
            tags=self.tag,
            since=self.since,
            where=self.where,
            sort=self.sort,
            limit=self.limit,
        )

    @property
    def given(self) -> bool:
        """Whether anything is."""
        return self != ALL_RUNS


ALL_RUNS = SelectionOptions()


def catalogue_of(store: str | None) -> Catalogue:
    """The catalogue of the store that --store or the environment names. Raises ConfigError."""
    from writecliff.runs.catalogue import Catalogue
    from writecliff.runs.location import store_location
    from writecliff.runs.place import open_place

    return Catalogue(open_place(store_location(store)))


def progress_log() -> Callable[[int, int], None]:
    """Return a function that shows how many runs of a store are read."""
    progress = WorkProgress(WorkView(Screen()), "reading runs")
    return lambda done, total: progress.done(done / total, figures=f"{done:,} of {total:,}")
